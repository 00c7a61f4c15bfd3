"""The pytest plugin, which is loaded automatically when this distribution is installed.

Fixtures: ``run_bolt`` and ``run_spout`` (run one component on given tuples, without a process), ``run_topology`` (run a
topology to its end, in any mode), ``each_seed`` (check a simulated topology with many seeds). Everything is imported
when it is first used, since pytest loads this module in every project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.register_assert_rewrite(
    "multilang.testing.state_providers", "multilang.testing.stores", "multilang.testing.store_machine"
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Literal, Protocol

    from multilang.local import Faults, LocalTopology
    from multilang.local.topology import Capture, Until
    from multilang.testing.bolts import BoltRun
    from multilang.testing.spouts import SpoutRun
    from multilang.topology import Topology

    class RunTopology(Protocol):
        """The function that the fixture ``run_topology`` returns."""

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
    """Run one bolt on some tuples: ``run_bolt(bolt, tuples, conf=...)``; see multilang.testing.run_bolt."""
    from multilang.testing.bolts import run_bolt

    return run_bolt


@pytest.fixture(name="run_spout")
def _run_spout() -> Callable[..., SpoutRun]:
    """Run one spout alone: ``run_spout(spout, nexts, conf=...)``; see multilang.testing.run_spout."""
    from multilang.testing.spouts import run_spout

    return run_spout


@pytest.fixture(name="run_topology")
def _run_topology() -> Iterator[RunTopology]:
    """Run a topology until it is drained: ``run_topology(topology, mode, capture=[...])``; it ends with the test.

    ``timeout`` is 60 seconds by default; a simulated topology has a virtual day.
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
    """Call ``check(seed)`` with many seeds: ``each_seed(check, seeds=100)``; see multilang.testing.each_seed."""
    from multilang.testing.seeds import each_seed

    return each_seed
