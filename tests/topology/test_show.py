from __future__ import annotations

import json

import pytest

from multilang.component.bolt import BasicBolt
from multilang.component.spout import Spout
from multilang.component.streams import Stream
from multilang.topology import CustomGrouping, ShellBolt, TopologyBuilder


class Sentences(Spout):
    output_fields = ["sentence"]


class Split(BasicBolt):
    output_fields = ["word"]
    output_streams = {"routed": Stream(["task"], direct=True)}


class ByLength(CustomGrouping):
    def choose_tasks(self, source_task, values):
        return []


@pytest.fixture
def topology():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences, parallelism=2, tasks=4)
    builder.set_bolt("split", Split, parallelism=3, conf={"split.on": " "}).shuffle_grouping("sentences")
    builder.set_bolt('the "count"', ShellBolt(["count-by", "node"], output_fields=["word", "n"])).fields_grouping(
        "split", "word"
    ).direct_grouping("split", stream="routed").custom_grouping("sentences", ByLength)
    return builder.build("word-count", {"topology.max.spout.pending": 10})


def test_as_text_it_reads_from_inputs_to_streams(topology):
    assert topology.to_text() == (
        "topology word-count\n"
        "  topology.max.spout.pending = 10\n"
        "\n"
        "spout sentences: Sentences, 4 tasks in 2 executors\n"
        "  -> default (sentence)\n"
        "\n"
        "bolt split: Split, 3 tasks\n"
        "  <- sentences by shuffle\n"
        "  -> default (word)\n"
        "  -> routed (task) direct\n"
        '  split.on = " "\n'
        "\n"
        'bolt the "count": count-by node, 1 task\n'
        "  <- split by fields (word)\n"
        "  <- split (routed) by direct\n"
        "  <- sentences by custom ByLength\n"
        "  -> default (word, n)\n"
    )


def test_as_mermaid_every_subscription_is_an_arrow_and_no_name_breaks_the_syntax(topology):
    assert topology.to_mermaid() == (
        "flowchart LR\n"
        '    c0(["sentences<br>Sentences × 4"])\n'
        '    c1["split<br>Split × 3"]\n'
        '    c2["the #quot;count#quot;<br>count-by node"]\n'
        '    c0 -->|"shuffle"| c1\n'
        '    c1 -->|"fields (word)"| c2\n'
        '    c1 -.->|"routed: direct"| c2\n'
        '    c0 -->|"custom ByLength"| c2\n'
    )


def test_as_json_it_holds_all_that_was_declared(topology):
    shown = json.loads(topology.to_json())
    assert shown["name"] == "word-count"
    assert shown["conf"] == {"topology.max.spout.pending": 10}
    sentences, split, count = shown["components"]
    assert (sentences["kind"], sentences["parallelism"], sentences["tasks"]) == ("spout", 2, 4)
    assert sentences["component"] == {"class": f"{__name__}:Sentences"}
    assert split["conf"] == {"split.on": " "}
    assert split["streams"]["routed"] == {"fields": ["task"], "direct": True}
    assert count["component"] == {"command": ["count-by", "node"], "change_child_cwd": True}
    assert count["inputs"] == [
        {"component": "split", "stream": "default", "grouping": {"type": "fields", "fields": ["word"]}},
        {"component": "split", "stream": "routed", "grouping": {"type": "direct"}},
        {
            "component": "sentences",
            "stream": "default",
            "grouping": {"type": "custom", "class": f"{__name__}:ByLength"},
        },
    ]


def test_a_component_and_a_topology_show_what_they_are(topology):
    assert repr(topology) == "<topology 'word-count': sentences, split, the \"count\">"
    assert repr(topology["split"]) == "<bolt 'split': Split, 3 tasks>"
    assert repr(topology["split"].inputs) == "[Input('sentences', 'default', Grouping('shuffle', (), None))]"
