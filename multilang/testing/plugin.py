"""The pytest plugin, loaded by itself where this distribution is installed.

Fixtures: ``run_bolt`` and ``run_spout`` (one component on given tuples, without a process), ``run_topology`` (a
topology to its end, in any mode), ``each_seed`` (a check of a simulated one, with many seeds). Everything is imported when it is first used: pytest loads this in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Literal, Protocol

    from multilang.local import Faults, LocalTopology
    from multilang.local.topology import Capture, Until
    from multilang.testing.bolts import BoltRun
    from multilang.testing.spouts import SpoutRun
    from multilang.topology import Topology

    class RunTopology(Protocol):
        """What the fixture ``run_topology`` gives."""

        def __call__(
            self,
            topology: Topology,
            mode: Literal["process", "inprocess", "simulated"] = "inprocess",
            *,
            conf: Mapping[str, Any] | None = None,
            capture: Capture = (),
            until: Until = "drained",
            timeout: float | None = None,
            seed: int | None = None,
            faults: Faults | None = None,
            fail_fast: bool = False,
        ) -> LocalTopology: ...


@pytest.fixture(name="run_bolt")
def _run_bolt() -> Callable[..., BoltRun]:
    """``run_bolt(bolt, tuples, conf=...)``: what one bolt does with some tuples; see multilang.testing.run_bolt."""
    from multilang.testing.bolts import run_bolt

    return run_bolt


@pytest.fixture(name="run_spout")
def _run_spout() -> Callable[..., SpoutRun]:
    """``run_spout(spout, nexts, conf=...)``: one spout by itself; see multilang.testing.run_spout."""
    from multilang.testing.spouts import run_spout

    return run_spout


@pytest.fixture(name="run_topology")
def _run_topology() -> Iterator[RunTopology]:
    """``run_topology(topology, mode, capture=[...])``: the topology, run until it is drained; ended with the test.

    ``timeout``: 60 seconds unless given; virtual ones, and a day, when simulated.
    """
    from contextlib import ExitStack

    from multilang.local import LocalCluster

    with ExitStack() as stack:

        def run(
            topology: Topology,
            mode: Literal["process", "inprocess", "simulated"] = "inprocess",
            *,
            conf: Mapping[str, Any] | None = None,
            capture: Capture = (),
            until: Until = "drained",
            timeout: float | None = None,
            seed: int | None = None,
            faults: Faults | None = None,
            fail_fast: bool = False,
        ) -> LocalTopology:
            cluster = stack.enter_context(LocalCluster(mode, seed=seed, faults=faults, fail_fast=fail_fast))
            run = cluster.submit(topology, conf=conf, capture=capture)
            run.wait(until, 60 if timeout is None and mode != "simulated" else timeout)
            return run

        yield run


@pytest.fixture(name="each_seed")
def _each_seed() -> Callable[..., None]:
    """``each_seed(check, seeds=100)``: ``check(seed)`` with many seeds; see multilang.testing.each_seed."""
    from multilang.testing.seeds import each_seed

    return each_seed
