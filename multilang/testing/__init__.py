"""Helpers for tests of your own components and topologies: run a bolt or a spout alone, or a topology to its end.

With pytest, the same functions are fixtures (``run_bolt``, ``run_spout``, ``run_topology``, ``each_seed``) of a plugin
that is loaded automatically.
"""

from __future__ import annotations

from multilang.engine.clock import VirtualClock
from multilang.testing.bolts import BoltRun, Emitted, make_tuple, run_bolt, tick
from multilang.testing.complete import CompletedTopology, complete_topology
from multilang.testing.conformance import multilang_conformance
from multilang.testing.controlled import ControlledBolt, HeldTuple
from multilang.testing.feeds import AckTracker, FeederSpout, FixedTupleSpout
from multilang.testing.seeds import each_seed
from multilang.testing.spouts import SpoutRun, run_spout

__all__ = [
    "AckTracker",
    "BoltRun",
    "CompletedTopology",
    "ControlledBolt",
    "Emitted",
    "FeederSpout",
    "FixedTupleSpout",
    "HeldTuple",
    "SpoutRun",
    "VirtualClock",
    "complete_topology",
    "each_seed",
    "make_tuple",
    "multilang_conformance",
    "run_bolt",
    "run_spout",
    "tick",
]
