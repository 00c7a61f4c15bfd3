"""The embedded cluster: plays Storm for topologies on one machine."""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING

from multilang.component import Component, find
from multilang.local.errors import LocalClusterError, TaskStartError
from multilang.runtime.clock import SystemClock
from multilang.runtime.plan import Plan
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Literal

    from multilang.local.faults import Faults
    from multilang.local.topology import Capture, LocalTopology
    from multilang.topology.model import Topology

MODES = ("process", "inprocess", "simulated")


class LocalCluster:
    """Runs topologies on this machine; a context manager that ends them all.

    ``mode``: "process" (every task a child process over the real wire, any language), "inprocess" (component objects in
    this process, run by the thread that waits; for tests and debugging) or "simulated" (the same on a virtual clock,
    with the order of events and ``faults`` drawn from ``seed``). ``conf`` is laid over each topology's own. ``seed``
    makes in-process and simulated runs repeat. ``fail_fast``: an exception that would end a task, to be started again,
    is raised out of ``wait`` instead (not with processes).

        with LocalCluster(mode="inprocess") as cluster:
            run = cluster.submit(topology, capture=["count"])
            run.wait(timeout=10)
            print(run.captured("count"))
    """

    def __init__(
        self,
        mode: Literal["process", "inprocess", "simulated"] = "process",
        conf: Mapping[str, Any] | None = None,
        seed: int | None = None,
        faults: Faults | None = None,
        *,
        fail_fast: bool = False,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"LocalCluster(mode={mode!r}): use one of {', '.join(map(repr, MODES))}")
        if faults is not None and mode != "simulated":
            raise ValueError(f'faults are for LocalCluster(mode="simulated"), not for mode={mode!r}')
        self.mode = mode
        self.conf = dict(conf or {})
        self.seed = Random().getrandbits(32) if seed is None else seed
        self.faults = faults
        self.fail_fast = fail_fast
        self.topologies: dict[str, LocalTopology] = {}
        self._closed = False

    def submit(
        self,
        topology: Topology,
        name: str | None = None,
        conf: Mapping[str, Any] | None = None,
        capture: Capture = (),
        *,
        inactive: bool = False,
    ) -> LocalTopology:
        """Start a topology.

        ``conf`` is laid over the cluster's and the topology's own. ``capture``: the streams whose tuples are kept for
        ``captured``, each a component (all of its streams) or a pair (component, stream); or a dict of these and of
        functions, each called with every tuple instead of keeping it (in the cluster's thread, with processes).
        ``inactive``: no component is started before ``activate`` is called.
        """
        if self._closed:
            raise LocalClusterError("this LocalCluster is closed; make another")
        if self.mode == "process" and find.is_finding:
            raise LocalClusterError(
                "the module of the topology submits it when it is imported, and each task's process imports it; "
                'put what submits it under if __name__ == "__main__":'
            )
        name = topology.name if name is None else name
        if name in self.topologies:
            raise LocalClusterError(f"a topology {name!r} runs already; kill it first, or submit with another name=")
        rng = Random(self.seed)
        run = self._start(topology, name, {**self.conf, **(conf or {})}, capture, rng)
        if not inactive:
            run.activate()
        self.topologies[name] = run
        return run

    def _start(
        self, topology: Topology, name: str, conf: dict[str, Any], capture: Capture, rng: Random
    ) -> LocalTopology:
        plan = Plan(topology, name, conf, rng)
        _check_start(plan)
        if self.mode == "process":
            from multilang.local.process.topology import ProcessTopology

            return ProcessTopology(plan, SystemClock(), capture, rng)
        if self.mode == "simulated":
            from multilang.local.simulated import SimulatedTopology

            return SimulatedTopology(plan, capture, rng, self.seed, self.faults, self.fail_fast)
        from multilang.local.inprocess import InProcessTopology

        return InProcessTopology(plan, SystemClock(), capture, rng, self.fail_fast)

    def kill(self, name: str, wait_secs: float = 0) -> None:
        """End a topology, see LocalTopology.kill; its name is free again."""
        if name not in self.topologies:
            raise LocalClusterError(f"no topology {name!r} runs here; {did_you_mean(name, self.topologies)}")
        self.topologies.pop(name).kill(wait_secs)

    def close(self) -> None:
        """End all topologies."""
        self._closed = True
        with ExitStack() as stack:  # one that can't be ended does not keep the others from it
            while self.topologies:
                stack.callback(self.topologies.popitem()[1].kill)

    def __enter__(self) -> LocalCluster:  # noqa: PYI034  # Self is not in typing of Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_start(plan: Plan) -> None:
    """Ask each component once what all of its tasks would find out, one after the other."""
    asked = set()
    for task in plan.tasks.values():
        component = task.spec.component
        if task.component in asked or not isinstance(component, Component):
            continue
        asked.add(task.component)
        try:
            component.check_start(task.conf)
        except Exception as error:
            raise TaskStartError(f"{task.spec.kind} {task.component!r} can't be started: {error}") from error
