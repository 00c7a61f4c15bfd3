"""The cost of each component's tuples, measured by a short run of its topology."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from multilang.blocks.hops import hops
from multilang.blocks.names import BY_TUPLE, EXCHANGE
from multilang.errors import MultilangError
from multilang.local.cluster import LocalCluster
from multilang.local.errors import NotDrainedError
from multilang.runtime.sizing import Cost, Costs, Part, cost_of
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.local.topology import LocalTopology
    from multilang.runtime.status import RunStatus
    from multilang.topology import Topology

PENDING = "topology.max.spout.pending"
MAX_PENDING = 2000
"""A spout's tuples in flight, if the topology has no limit: without one, the bolts might fall far behind."""
_STEP = 0.1  # seconds between two looks
_IDLE = 0.5  # the share of its time in which a busy topology's busiest task works at least


def measure(topology: Topology, seconds: float, conf: Mapping[str, Any] | None = None, mode: Any = "process") -> Costs:
    """Run a topology, and return what its tuples cost.

    If its tuples travel in blocks with what comes of one tuple, it runs a second time with tuples that travel alone: the more
    tasks a bolt has, the smaller these blocks are.

    Args:
        topology: The topology.
        seconds: The longest time of a run; it ends before if the spouts have no more tuples.
        conf: What is added to its conf.
        mode: How the embedded cluster runs it: "process" or "inprocess".

    Raises:
        MultilangError: A component saw no tuple, or something went wrong.
        LocalClusterError: The topology can't run.
    """
    _check_spouts(topology)
    whole = topology.with_conf({PENDING: MAX_PENDING, **topology.conf, **(conf or {})})
    costs = _measured(whole, seconds, mode)
    if mode == "process" and any(hop.by_block and hop.by_root is not None for hop in hops(whole)):
        return replace(costs, alone=_measured(whole.with_conf({EXCHANGE: BY_TUPLE}), seconds, mode))
    return costs


def _check_spouts(topology: Topology) -> None:
    """Raise MultilangError for a topology without a spout of its own, before it runs and changes what it stores."""
    spouts = [spec.id for spec in topology.components.values() if spec.kind == "spout"]
    if not any(id in topology.declared.components for id in spouts):
        raise MultilangError(
            f"topology {topology.name!r} has no spout but the library's own ({', '.join(spouts)}), whose tuples begin batches: there is "
            "no rate of spouts to plan for"
        )


def _measured(topology: Topology, seconds: float, mode: Any) -> Costs:
    looks: list[tuple[RunStatus, dict[int, float]]] = []
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology)
        drained = _run(run, seconds, looks)
        if not drained:
            run.deactivate()
            _settle(run, seconds)
        looks.append(_look(run))
        status = run.status()
    for each in status.components:
        if each.restarts:
            last = next((error.message for error in reversed(status.errors) if error.component == each.id), "")
            raise MultilangError(f"{each.kind} {each.id!r} died while it was measured, {each.restarts} times: {last}")
    return _Reading(topology, mode, looks).costs()


def _run(run: LocalTopology, seconds: float, looks: list[Any]) -> bool:
    """Run it, and look at it now and then; return whether it was drained."""
    while run.clock.now() - run.started < seconds:
        try:
            run.wait(timeout=_STEP)
        except NotDrainedError:
            looks.append(_look(run))
        else:
            return True
    return False


def _settle(run: LocalTopology, seconds: float) -> None:
    """Wait until the bolts have done all that the spouts emitted, for so many seconds at most."""
    until, before = run.clock.now() + seconds, -1
    while run.clock.now() < until:
        done = run.status(by_task=False).total("executed", "bolt")
        if done == before:
            return
        before = done
        run.run_for(5 * _STEP)


def _look(run: LocalTopology) -> tuple[RunStatus, dict[int, float]]:
    status = run.status()
    cpu = {}
    for pid in {int(task.where) for each in status.components for task in each.by_task if task.where}:
        with suppress(OSError):  # it ended, or this machine has no such files
            cpu[pid] = _cpu_secs(pid)
    return status, cpu


def _cpu_secs(pid: int) -> float:
    """Return the CPU time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        parts = file.read().rpartition(") ")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


class _Reading:
    """The costs, from what was seen of a run."""

    def __init__(self, topology: Topology, mode: str, looks: list[tuple[RunStatus, dict[int, float]]]) -> None:
        self._topology = topology
        self._mode = mode
        self._looks = looks
        self._last = looks[-1][0]
        self._notes: list[str] = []
        pids = {int(task.where) for each in self._last.components for task in each.by_task if task.where}
        self._by_cpu = bool(pids) and pids <= looks[-1][1].keys()

    def costs(self) -> Costs:
        last = self._last
        declared = self._topology.declared.components
        spouts = [each for each in last.spouts if each.id in declared]
        source = sum(each.emitted or 0 for each in spouts)
        components = tuple(
            self._cost(each.id, source)
            for each in last.components
            if each.id != ACKER and not (each.kind == "spout" and each not in spouts)
        )
        ackers = next((each for each in last.components if each.id == ACKER), None)
        told = answered = None
        if ackers is not None and ackers.executed:
            told, answered = ackers.executed, ackers.emitted or 0
        self._tell(last, source)
        return Costs(
            topology=last.topology,
            engine=last.engine,
            by="cpu" if self._by_cpu else "busy",
            seconds=last.seconds,
            cpus=os.cpu_count() or 1,
            source_tuples=source,
            components=components,
            acker_messages=None if told is None else told / source,
            # An acker hears of each message that was delivered, and first of each tuple tree, which it answers.
            messages=None
            if told is None or answered is None or self._mode != "process"
            else (told - answered) / source,
            notes=tuple(self._notes),
        )

    def _cost(self, id: str, source: int) -> Cost:
        kind, silent = self._last[id].kind, False
        parts = []
        for status, cpu in self._looks:
            tasks = status[id].by_task
            secs = status[id].busy_secs
            if self._by_cpu:
                secs = sum(cpu.get(int(task.where), 0.0) for task in tasks if task.where)
            done = tuple((task.emitted if kind == "spout" else task.executed) or 0 for task in tasks)
            silent = secs is None and any(done)
            parts.append(Part(tuples=done, secs=secs or 0.0))
        if silent:
            raise MultilangError(f"{kind} {id!r} does not tell how busy it is (a program in another language does not), and its "
                              "CPU time can't be read on this machine")  # fmt: skip
        resolution = len(parts[-1].tuples) / os.sysconf("SC_CLK_TCK") if self._by_cpu else 0.0
        return cost_of(id, kind, parts, source, self._undivided(id), self._notes, resolution)

    def _undivided(self, id: str) -> str | None:
        """Return the reason for which more tasks of a component would not share its work."""
        for each in self._topology[id].inputs:
            if each.grouping.is_to_all:
                return f"the {each.grouping} grouping gives each tuple of {each.component!r} to all of its tasks"
            if each.grouping.is_to_same:
                return f"the {each.grouping} grouping gives all tuples of {each.component!r} to one of its tasks"
        return None

    def _tell(self, last: RunStatus, source: int) -> None:
        """Note what is to be known of the measurement."""
        busy = [each.capacity for status, _ in self._looks for each in status.components if each.capacity is not None]
        if busy and max(busy) < _IDLE:
            self._notes.append(
                f"no task was busy for more than {max(busy):.0%} of the time (the source, or the embedded cluster itself, was "
                "slower), so that a tuple cost rather more than under load"
            )
        failed = last.total("failed")
        if failed * 100 > source:
            self._notes.append(
                f"{failed:,} of {source:,} tuples of the spouts failed; emitted again, they count as tuples"
            )
