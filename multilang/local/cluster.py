"""The embedded cluster, which runs topologies on one machine as Storm would."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from multilang.component import Component
from multilang.component.report import describe
from multilang.engine.clock import SystemClock
from multilang.engine.plan import Plan
from multilang.errors import LocalClusterError, MultilangError, TaskStartError
from multilang.settings import OWN_STORE
from multilang.store.memory import simulated_url
from multilang.topology import importing
from multilang.topology.check import check_components
from multilang.topology.errors import did_you_mean
from multilang.topology.stand_in import check_runs_here

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Literal

    from multilang.local.faults import Faults
    from multilang.local.topology import Capture, LocalTopology
    from multilang.topology.model import Topology

MODES = ("process", "inprocess", "simulated")

_simulated_runs = count(1)


class LocalCluster:
    """Runs topologies on this machine; a context manager that ends them all.

        with LocalCluster(mode="inprocess") as cluster:
            run = cluster.submit(topology, capture=["count"])
            run.wait(timeout=10)
            print(run.captured("count"))

    Args:
        mode: "process" (every task is a child process on the real wire, in any language), "inprocess" (component
            objects in this process, run by the thread that waits; for tests and debugging), or "simulated" (the same on
            a virtual clock, with the order of events and ``faults`` drawn from ``seed``). A simulated run stores in memory of its
            own, which begins empty, whatever place the topology names.
        conf: Settings that override each topology's own. A place that they name is used by simulated runs, too.
        seed: Makes in-process and simulated runs repeatable.
        faults: The faults of a simulated run.
        fail_fast: Let ``wait`` raise an exception that would end a task, instead of restarting the task (not with
            processes).

    Raises:
        ValueError: There is no such mode, or it can't have faults.
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

        Args:
            topology: The topology.
            name: Its name here; its own name if it is None.
            conf: Settings that override the cluster's and the topology's own.
            capture: The streams whose tuples are stored for ``captured``, each a component (all of its streams) or a
                pair (component, stream). A dict of these with functions calls the function with every tuple instead of
                storing it (in the cluster's thread, with processes).
            inactive: Start no component before ``activate`` is called.

        Returns:
            The running topology.

        Raises:
            LocalClusterError: The cluster is closed, the name is taken, or a task can't be started.
            TopologyError: The topology can't run here.
            KeyError: A stream to capture does not exist.
        """
        if self._closed:
            raise LocalClusterError("this LocalCluster is closed; make another")
        if self.mode == "process" and importing.by_task:
            raise LocalClusterError(
                "the module of the topology submits it when it is imported, and each task's process imports it; "
                'put what submits it under if __name__ == "__main__":'
            )
        check_runs_here(topology, "the embedded cluster")
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
        if self.mode == "simulated":
            conf[OWN_STORE] = {"url": simulated_url(next(_simulated_runs)), "given": list(conf)}
        declared = topology.with_conf(conf, name)
        if self.mode == "process":
            from multilang.exchange.transform import by_blocks

            plan = Plan(by_blocks(declared, _streams(topology, capture)), name, conf, rng, declared)
        else:
            plan = Plan(declared, name, conf, rng)
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
        """End a topology, so that its name is free again; see LocalTopology.kill.

        Args:
            name: Its name.
            wait_secs: The seconds to wait for tuples in flight.

        Raises:
            LocalClusterError: No such topology runs here.
        """
        if name not in self.topologies:
            raise LocalClusterError(f"no topology {name!r} runs here; {did_you_mean(name, self.topologies)}")
        self.topologies.pop(name).kill(wait_secs)

    def close(self) -> None:
        """End all topologies."""
        self._closed = True
        with ExitStack() as stack:  # if one can't be ended, the others are ended all the same
            while self.topologies:
                stack.callback(self.topologies.popitem()[1].kill)

    def __enter__(self) -> LocalCluster:  # noqa: PYI034  # Self is not in typing of Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _streams(topology: Topology, capture: Capture) -> set[tuple[str, str]]:
    """Return the streams to capture as (component, stream)."""
    found: set[tuple[str, str]] = set()
    for wanted in [capture] if isinstance(capture, str) else capture:
        if isinstance(wanted, str):
            spec = topology.components.get(wanted)
            found.update((wanted, stream) for stream in (spec.streams if spec else ()))
        else:
            component, stream = wanted
            found.add((component, stream))
    return found


def _check_start(plan: Plan) -> None:
    """Check each component once, for what would otherwise fail in each of its tasks."""
    check_components(plan.topology, plan.conf)
    asked = set()
    for task in plan.tasks.values():
        component = task.spec.component
        if task.component in asked or not isinstance(component, Component):
            continue
        asked.add(task.component)
        try:
            component.check_start(task.conf)
        except Exception as error:
            is_explained = isinstance(error, MultilangError) and error.is_explained
            text = error if is_explained else describe(error, component, None)
            raise TaskStartError(f"{task.spec.kind} {task.component!r} can't be started: {text}") from error
