"""docs/testing.md names everything that a test can use."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import multilang.testing
from multilang import BasicBolt, Component, LocalCluster, Spout, TopologyBuilder
from multilang.engine.counters import Counters
from multilang.local.topology import LocalTopology, TaskError, TaskInfo
from multilang.protocol import Tuple
from multilang.testing import AckTracker, ControlledBolt, FeederSpout, complete_topology, run_bolt, run_spout

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
NAMED = {name for code in re.findall(r"`([^`\n]+)`", PAGE) for name in re.findall(r"\w+", code)}


class Numbers(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        self.emit([1], 1)


class Double(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        self.emit([2 * tup["n"]])


def whole(*components):
    builder = TopologyBuilder()
    builder.set_spout("numbers", components[0])
    builder.set_bolt("bolt", components[1]).shuffle_grouping("numbers")
    return builder.build("numbers")


def returned():
    """One of each thing that a test is given."""
    bolt, spout = run_bolt(Double, [{"n": 1}]), run_spout(Numbers, 1)
    feeder, held = FeederSpout(["n"]), ControlledBolt()
    feeder.feed([1])
    with LocalCluster("inprocess") as cluster:
        cluster.submit(whole(feeder, held)).wait(lambda _: held.received, 10)
    done = complete_topology(whole(Numbers, Double), {"numbers": [[1]]})
    found = [bolt, spout, bolt.emitted[0], feeder, held, held.received[0], AckTracker(), done]
    return {type(each).__name__: names(each) for each in found}


def names(thing, of=Component):
    common = set(dir(of)) if isinstance(thing, of) else set()
    if isinstance(thing, Spout):
        common |= set(dir(Spout))
    if isinstance(thing, ControlledBolt):
        common |= set(dir(BasicBolt))
    return {name for name in dir(thing) if not name.startswith("_")} - common


KINDS = {
    **returned(),
    "LocalTopology": names(LocalTopology) | {"name", "plan", "clock", "started", "stats"},
    "Counters": names(Counters) | {field.name for field in fields(Counters)},
    "TaskError": {field.name for field in fields(TaskError)},
    "TaskInfo": {field.name for field in fields(TaskInfo)},
    "Tuple": names(Tuple),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_attribute_is_in_the_manual(kind):
    assert KINDS[kind] - NAMED == set()


def test_every_public_name_is_in_the_manual_or_is_what_one_returns():
    results = {
        "BoltRun",
        "SpoutRun",
        "Emitted",
        "CompletedTopology",
        "HeldTuple",
        "multilang_conformance",
    }
    assert set(multilang.testing.__all__) - NAMED - results == set()
