"""For tests of your own components and topologies: one bolt or one spout without a process, a topology to its end.

With pytest, the same things are fixtures (``run_bolt``, ``run_spout``, ``run_topology``, ``each_seed``) of a plugin that
is loaded by itself.
"""

from __future__ import annotations

from multilang.testing.bolts import BoltRun, Emitted, make_tuple, run_bolt, tick
from multilang.testing.conformance import multilang_conformance
from multilang.testing.seeds import SeedFailed, each_seed
from multilang.testing.spouts import SpoutRun, run_spout

__all__ = [
    "BoltRun",
    "Emitted",
    "SeedFailed",
    "SpoutRun",
    "each_seed",
    "make_tuple",
    "multilang_conformance",
    "run_bolt",
    "run_spout",
    "tick",
]
