"""The tasks and CPUs that a topology needs for a rate, from the cost of its tuples in a short run on this machine.

The model is the usual one of autoscalers: a component's load is the rate of its tuples, which follows from that of the
spouts by the measured ratio, times the cost of one. There must be so many tasks that none is busier than a given share.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from multilang.errors import LocalClusterError
from multilang.local.cluster import LocalCluster
from multilang.local.errors import NotDrainedError
from multilang.topology.model import ACKER

if TYPE_CHECKING:
    from typing import TypeAlias

    from multilang.local.topology import LocalTopology
    from multilang.topology import ComponentSpec, Topology

    _Look: TypeAlias = dict[str, tuple[list[int], float | None]]
    """At one moment, for each component: the tuples of each task, and the seconds that all of them took."""

BUSY = 0.7  # the share of its time in which a task is busy at most: the rest is for uneven load and for catching up
PENDING = "topology.max.spout.pending"
MAX_PENDING = 2000  # if the topology has no limit: without one, the bolts might fall far behind
_STEP = 0.1  # seconds between two looks
_TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds: the resolution of a process' CPU time


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A component's cost, as it was measured.

    Attributes:
        id: The component.
        tasks: The number of its tasks.
        tuples: The tuples that were measured: a bolt's inputs, or a spout's emits.
        cost_us: Microseconds for one of them.
        per_source: The tuples for each tuple of the spouts.
        skew: The tuples of the busiest task over the average of all.
        undivided: The grouping by which more tasks would not share the work; None: they would.
    """

    id: str
    tasks: int
    tuples: int
    cost_us: float
    per_source: float
    skew: float = 1.0
    undivided: str | None = None

    def cpus(self, rate: float) -> float:
        """Return the CPUs that all tasks together use at a rate of the spouts."""
        return rate * self.per_source * self.cost_us / 1e6

    def needed(self, rate: float) -> int:
        """Return the number of tasks at which the busiest one is busy for at most 70 % of its time."""
        return self.tasks if self.undivided else max(ceil(self.cpus(rate) * self.skew / BUSY), 1)

    def limit(self, tasks: int) -> float:
        """Return the rate of the spouts at which the busiest of so many tasks has no time left."""
        return tasks / (self.cpus(1) * self.skew)


def measure(topology: Topology, seconds: float) -> tuple[list[Cost], float | None]:
    """Run a topology on the embedded cluster with processes to measure what its tuples cost.

    Args:
        topology: The topology.
        seconds: The longest time of the run; it ends before if the spouts have no more tuples.

    Returns:
        The cost of each component, and the messages between processes for each tuple of the spouts (None: without ackers).

    Raises:
        LocalClusterError: The topology can't run, or a component saw too few tuples, or died.
    """
    spouts = [id for id, spec in topology.components.items() if spec.kind == "spout"]
    own = [id for id in spouts if id in topology.declared.components]
    if not own:
        raise LocalClusterError(
            f"topology {topology.name!r} has no spout but the library's own ({', '.join(spouts)}), whose tuples begin "
            "batches: there is no rate of spouts to plan for"
        )
    looks: list[_Look] = []
    with LocalCluster("process") as cluster:
        run = cluster.submit(topology.with_conf({PENDING: MAX_PENDING, **topology.conf}))
        _run(run, seconds, looks)
        looks.append(_look(run))
        status = run.status()
    for each in status.components:
        if each.restarts:
            last = next((error.message for error in reversed(status.errors) if error.component == each.id), "")
            raise LocalClusterError(f"{each.kind} {each.id!r} died while it was measured: {last}")
    source = sum(status[id].emitted or 0 for id in own)
    specs = [spec for id, spec in topology.components.items() if id in own or spec.kind == "bolt"]
    costs = [_cost(spec, [look[spec.id] for look in looks], source) for spec in specs]
    for each in status.components:
        if each.id == ACKER and each.executed:
            # It gets a message for each delivery, and one for each new tuple tree, which it answers.
            return costs, (each.executed - (each.emitted or 0)) / source
    return costs, None


def _run(run: LocalTopology, seconds: float, looks: list[_Look]) -> None:
    """Let it run until the spouts have no more tuples or the time is over, and then until the bolts are done."""
    ends, done = run.clock.now() + seconds, -1
    while run.clock.now() < ends + seconds:
        with suppress(NotDrainedError):
            return run.wait(timeout=_STEP)
        looks.append(_look(run))
        if run.clock.now() >= ends:
            run.deactivate()
            run.run_for(5 * _STEP)
            before, done = done, run.status(by_task=False).total("executed", "bolt") or 0
            if done == before:
                return None
    return None


def _look(run: LocalTopology) -> _Look:
    """Return the tuples of each component's tasks, and the time that they took."""
    found = {}
    for each in run.status().components:
        secs = each.busy_secs
        with suppress(OSError):  # a process has ended, or this machine has no such files
            secs = sum(_cpu_secs(task.where) for task in each.by_task if task.where)
        found[each.id] = [(task.emitted if each.kind == "spout" else task.executed) or 0 for task in each.by_task], secs
    return found


def _cpu_secs(pid: str) -> float:
    with open(f"/proc/{pid}/stat") as file:
        parts = file.read().rpartition(") ")[2].split()
    return (int(parts[11]) + int(parts[12])) * _TICK


def _cost(spec: ComponentSpec, looks: list[tuple[list[int], float | None]], source: int) -> Cost:
    """Return the cost of a component's tuples, without that of its start."""
    done, secs = looks[-1]
    working = [task for task, count in enumerate(done) if count]
    done_at_first, secs_at_first = next(look for look in looks if all(look[0][task] for task in working))
    tuples = sum(done) - sum(done_at_first)
    if not tuples or not source:
        raise LocalClusterError(
            f"{spec.kind} {spec.id!r} {'emitted' if spec.kind == 'spout' else 'saw'} too few tuples to be measured "
            f"({sum(done):,}): measure for longer (--for), or give the spouts more to read (--input)"
        )
    if secs is None or secs_at_first is None:
        raise LocalClusterError(
            f"{spec.kind} {spec.id!r} is a program in another language, whose CPU time can't be read on this machine"
        )
    return Cost(
        id=spec.id,
        tasks=len(done),
        tuples=tuples,
        cost_us=max(secs - secs_at_first, _TICK) / tuples * 1e6,
        per_source=sum(done) / source,
        skew=max(done) * len(done) / sum(done),
        undivided=next(
            (str(each.grouping) for each in spec.inputs if each.grouping.is_to_all or each.grouping.is_to_same), None
        ),
    )
