"""Programs written for Storm's storm.py run on this library's engine."""

from __future__ import annotations

import os
import sys
import textwrap
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.compat.storm.running import adapted
from multilang.component import ConfigError
from multilang.local import LocalCluster
from multilang.protocol.messages import Ack, Emit, Error, Fail, Log
from multilang.topology import load_topology
from tests.compat import storm_words
from tests.component.harness import context
from tests.patience import patient
from tests.storm.conftest import maven

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter


def program(start: Starter, body: str, conf: Any = None, ctx: Any = None, **how: Any) -> Child:
    """The process of a program that imports storm and runs its class Part."""
    path = start.folder / "program.py"
    path.write_text("import storm\n" + textwrap.dedent(body) + "\nPart().run()\n")
    return start.command([sys.executable, "-m", "multilang.compat", str(path)], **how).set_up(conf, ctx)


def said(child: Child, *kinds: type) -> list[object]:
    return [message for message in child.messages if isinstance(message, kinds)]


def test_storms_own_splitsentence_runs_unedited(start: Starter) -> None:
    with zipfile.ZipFile(maven("org.apache.storm", "flux-core", plugin="2.10")) as jar:
        jar.extract("resources/splitsentence.py", start.folder)
    path = start.folder / "resources" / "splitsentence.py"
    child = start.command([sys.executable, "-m", "multilang.compat", str(path)]).set_up().started()
    id = child.give("the cow jumped")
    child.until(lambda: child.acked)
    assert child.emitted == [["the"], ["cow"], ["jumped"]]
    assert all(list(emit.anchors) == [id] for emit in child.all(Emit))


def test_initialize_may_put_another_method_in_the_place_of_process(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(storm.BasicBolt):
            def initialize(self, conf, context):
                self.process = self.written

            def written(self, tup):
                storm.emit([storm.json_encode(storm.json_decode(tup.values[0]))])
                storm.sync()
        """,
    )
    child.give('{"a":1}')
    child.until(lambda: child.acked)
    assert child.emitted == [['{"a": 1}']]


TESTERS = """\
from multilang.topology import ShellBolt, ShellSpout, TopologyBuilder

builder = TopologyBuilder()
builder.set_spout("spout", ShellSpout(["python3", "tester_spoutEND.py"], ["word"]))
builder.set_bolt("bolt", ShellBolt(["python3", "tester_boltEND.py"], ["word"])).shuffle_grouping("spout")
topology = builder.build("testers", {"topology.message.timeout.secs": 30, "topology.max.spout.pending": 50})
"""
WORDS = {"nathan", "mike", "jackson", "golda", "bertels人"}


def storms_testers(folder: Path, end: str = "") -> Path:
    """A topology of Storm's own tester_spout.py and tester_bolt.py, which are in the jar of its tests."""
    with zipfile.ZipFile(maven("org.apache.storm", "storm-core", "1.2.4", plugin="2.10", classifier="tests")) as jar:
        for name in ("spout", "bolt"):
            (folder / f"tester_{name}{end}.py").write_bytes(jar.read(f"resources/tester_{name}{end}.py"))
    file = folder / f"testers{end}.py"
    file.write_text(TESTERS.replace("END", end))
    return file


def test_storms_own_tester_spout_and_bolt_run_unedited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with LocalCluster("process") as cluster:
        run = cluster.submit(load_topology(str(storms_testers(tmp_path))), capture=["spout", "bolt"])
        run.wait(lambda run: run.counters["spout"].acked >= 5, timeout=patient(60))
        said = [tup.values[0] for tup in run.captured("spout")]
        answers = [tup.values[0] for tup in run.captured("bolt")]
    assert said[0] == "spout initializing"
    assert set(said[1:]) <= WORDS
    assert answers.count("bolt initializing") == 1
    rest = [each for each in answers if each != "bolt initializing"]
    assert len(rest) >= 5
    assert set(rest) <= {f"{word}lalala" for word in [*WORDS, "spout initializing"]}


def test_storms_own_testers_of_metrics_run_unedited(start: Starter, tmp_path: Path) -> None:
    storms_testers(start.folder, "_metrics")
    command = [sys.executable, "-m", "multilang.compat"]
    bolt = start.command([*command, str(start.folder / "tester_bolt_metrics.py")]).set_up()
    bolt.give("nathan")
    bolt.until(lambda: bolt.acked)
    assert bolt.metrics == [("my-custom-shell-metric", 1)]
    spout = start.command([*command, str(start.folder / "tester_spout_metrics.py")], spout=True).set_up().started()
    spout.ask("activate")
    (emit,) = [each for each in spout.ask() if isinstance(each, Emit) and each.id is not None]
    assert emit.values[0] in WORDS


def test_task_ids_are_waited_for_when_they_are_looked_at(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(storm.BasicBolt):
            def process(self, tup):
                first = storm.emit(["a"])
                second = storm.emit(["b"])
                storm.log("emitted")
                storm.log(f"{second} {first} {len(first)} {first[0]} {first == [2]}", 3)
        """,
        answer=lambda emit: [2] if emit.values == ["a"] else [3, 2],
    )
    child.give("v")
    child.until(lambda: child.acked)
    assert [log.message for log in child.all(Log)] == ["emitted", "[3, 2] [2] 1 2 True"]


def test_an_exception_of_a_basic_bolt_is_reported_and_fails_the_tuple_alone(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(storm.BasicBolt):
            def process(self, tup):
                if tup.values[0] == "bad":
                    raise KeyError("no such price")
                storm.emit(tup.values)
        """,
    )
    bad, good = child.give("bad"), child.give("good")
    child.until(lambda: child.acked)
    assert (child.failed, child.acked, child.emitted) == ([bad], [good], [["good"]])
    assert "no such price" in child.errors[0]


def test_a_bolt_anchors_acks_and_fails_by_itself_and_gets_the_ticks(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(storm.Bolt):
            def initialize(self, conf, context):
                self.kept = []
            def process(self, tup):
                if tup.stream == "__tick":
                    storm.emit([b"tick"], anchors=[tup])
                    storm.ack(tup)
                    return
                self.kept.append(tup)
                if len(self.kept) == 2:
                    storm.emit(["both"], anchors=self.kept)
                    storm.emit(["none"])
                    storm.ack(self.kept[0])
                    storm.fail(self.kept[1])
        """,
    )
    a, b = child.give("a"), child.give("b")
    tick = child.tick()
    child.until(lambda: len(child.acked) == 2)
    assert [(emit.values, list(emit.anchors)) for emit in child.all(Emit)] == [
        (["both"], [a, b]),
        (["none"], []),
        (["tick"], [tick]),
    ]
    assert said(child, Ack, Fail) == [Ack(a), Fail(b), Ack(tick)]


def test_a_spout_has_storms_names_and_may_emit_before_storm_listens(start: Starter) -> None:
    child = program(
        start,
        """
        class Part(storm.Spout):
            def initialize(self, conf, context):
                storm.emit(["early"], id="e")
            def nextTuple(self):
                storm.emit(["next"], None, 7)
            def ack(self, id):
                storm.logWarn(f"acked {id}")
            def fail(self, id):
                storm.reportError(f"failed {id}")
        """,
        spout=True,
    ).started()
    assert [(emit.values, emit.id) for emit in child.ask("activate") if isinstance(emit, Emit)] == [(["early"], "e")]
    assert [(emit.values, emit.id) for emit in child.ask() if isinstance(emit, Emit)] == [(["next"], 7)]
    assert child.ask("ack", "e") == [Log("acked e", 3)]
    assert child.ask("fail", 7) == [Error("failed 7")]


def test_a_direct_emit_goes_to_its_task(start: Starter) -> None:
    child = program(
        start,
        "class Part(storm.BasicBolt):\n    def process(self, tup): storm.emitDirect(7, tup.values)",
        ctx=context(direct=["default"]),
    )
    id = child.give("v")
    child.until(lambda: child.acked)
    (emit,) = child.all(Emit)
    assert (emit.values, emit.task, list(emit.anchors)) == (["v"], 7, [id])


def test_what_is_no_component_is_refused() -> None:
    with pytest.raises(ConfigError, match="int is neither a Bolt, a BasicBolt nor a Spout"):
        adapted(int)


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_topology_counts_the_same_in_every_mode(mode: str) -> None:
    expected = Counter(word for n in range(storm_words.TOTAL) for word in storm_words.SENTENCES[n % 3].split())
    with LocalCluster(mode, conf={"topology.message.timeout.secs": 60}) as cluster:
        run = cluster.submit(storm_words.topology, capture=["count"])
        run.wait(lambda run: run.counters["sentences"].acked == storm_words.TOTAL, timeout=patient(60))
        counts: dict[str, int] = {}
        for tup in run.captured("count"):
            counts[tup.values[0]] = max(counts.get(tup.values[0], 0), tup.values[1])
        assert counts == expected


def test_without_a_running_component_its_functions_say_so() -> None:
    import subprocess

    script = "from multilang.compat import storm; storm.logInfo('first'); storm.emit(['too early'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.startswith("first\n")
    assert done.stdout == ""
    assert "storm's functions are there from a component's initialize() on" in done.stderr
