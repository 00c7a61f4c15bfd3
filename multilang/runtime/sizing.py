"""The size of a topology for a given rate: tasks, CPUs and what gives out first, from measured costs.

The model is the usual one of autoscalers: a component's load is the rate of its tuples times the cost of one, where the rate
follows from that of the spouts by the measured ratio; so many tasks are needed that none is busier than a wanted share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from typing import TYPE_CHECKING

from multilang.errors import MultilangError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

VERSION = 1
UTILIZATION = 0.7
"""The share of its time in which a task is busy at most: what is left is for unevenness and for what failed."""
_SURE_TUPLES = 1000  # fewer are too few to say what one costs


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A component's cost, as it was measured.

    Attributes:
        id: The component.
        kind: "spout" or "bolt".
        tasks: The number of its tasks.
        tuples: The tuples that were measured: a bolt's inputs, or a spout's emits.
        cost_us: Microseconds for one of them.
        low_us: The same in the cheapest part of the measurement.
        high_us: The same in the dearest one.
        per_source: The tuples for each tuple of the spouts.
        skew: The tuples of the busiest task over the average of all.
        undivided: The reason for which more tasks would not share the work; None: they would.
    """

    id: str
    kind: str
    tasks: int
    tuples: int
    cost_us: float
    low_us: float
    high_us: float
    per_source: float
    skew: float = 1.0
    undivided: str | None = None


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The measured costs of a topology.

    Attributes:
        topology: Its name.
        engine: The engine that ran it.
        by: "cpu": the CPU time of the components' processes; "busy": the time in which they did not wait.
        seconds: The length of the measurement.
        cpus: The number of CPUs of the machine.
        source_tuples: The tuples that the spouts emitted.
        components: The components.
        acker_messages: The messages to ackers for each tuple of the spouts; None: there are no ackers.
        messages: The messages between processes for each tuple of the spouts, without those to ackers; None: not known.
        notes: What is to be known of the measurement, one sentence each.
        alone: The costs where each tuple travels alone; None: it did so, or blocks do not get smaller with more tasks.
    """

    topology: str
    engine: str
    by: str
    seconds: float
    cpus: int
    source_tuples: int
    components: tuple[Cost, ...]
    acker_messages: float | None = None
    messages: float | None = None
    notes: tuple[str, ...] = ()
    alone: Costs | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the costs in JSON's types."""
        alone = None if self.alone is None else self.alone.as_json()
        return {"version": VERSION, **asdict(replace(self, alone=None)), "alone": alone}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Costs:
        """Return the costs that ``as_json`` made this document of.

        Raises:
            MultilangError: It is something else, or of another version.
        """
        try:
            if document["version"] != VERSION:
                raise MultilangError(f"the costs are of version {document['version']!r}, and this is version {VERSION}")
            known = {each.name: document[each.name] for each in fields(cls)}
            known["components"] = tuple(Cost(**each) for each in document["components"])
            known["notes"] = tuple(document["notes"])
            known["alone"] = None if document["alone"] is None else cls.from_json(document["alone"])
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise MultilangError(
                "the file has no measured costs; `multilang plan TOPOLOGY --json` writes them (key 'measured')"
            ) from error


@dataclass(frozen=True, kw_only=True)
class PlannedComponent:
    """A component at the planned rate.

    Attributes:
        id: The component.
        rate: Its tuples per second.
        cost_us: Microseconds for one.
        low_us: The same at least.
        high_us: The same at most.
        tasks: The number of tasks that it needs.
        least_tasks: The same at the lowest cost.
        most_tasks: The same at the highest.
        cpus: The CPUs that these tasks use together.
        busy: The share of its time in which the busiest task is busy.
        limit: The rate of the spouts at which the busiest of these tasks has no time left.
    """

    id: str
    rate: float
    cost_us: float
    low_us: float
    high_us: float
    tasks: int
    least_tasks: int
    most_tasks: int
    cpus: float
    busy: float
    limit: float


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """The size of a topology for a rate.

    Attributes:
        rate: Tuples per second of all spouts together.
        utilization: The share of its time in which a task is busy at most.
        components: The components.
        tasks: The number of their tasks.
        cpus: The CPUs that their processes use.
        first: The component that gives out first at these tasks.
        first_at: The rate of the spouts at which it does.
        declared_first: The component that gives out first with the tasks that it was measured with.
        declared_at: The rate of the spouts at which it does.
        workers: The number of workers.
        ackers: The number of ackers: one for each worker, as Storm starts them, unless the conf has another number.
        acker_rate: Messages per second to each acker; None: there are none.
        message_rate: Messages per second between processes; None: not known.
        worker_cpus: The CPUs that the workers' own processes use; None: not known.
        problems: The reasons for which no number of tasks is enough.
        in_blocks: The size if blocks were as large as in the measurement, where it is that of tuples that travel alone,
            since blocks get smaller with more tasks; None: it is that of the measurement itself.
    """

    rate: float
    utilization: float
    components: tuple[PlannedComponent, ...]
    tasks: int
    cpus: float
    first: str
    first_at: float
    declared_first: str
    declared_at: float
    workers: int
    ackers: int
    acker_rate: float | None
    message_rate: float | None
    worker_cpus: float | None
    problems: tuple[str, ...]
    in_blocks: Sizing | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the size in JSON's types."""
        return asdict(self)


def size(
    costs: Costs,
    rate: float,
    *,
    workers: int = 1,
    ackers: int | None = None,
    utilization: float = UTILIZATION,
    worker_us: float | None = None,
) -> Sizing:
    """Return the size of a topology for a rate.

    Args:
        costs: The measured costs.
        rate: Tuples per second of all spouts together.
        workers: The number of workers.
        ackers: The number of ackers; None: one for each worker.
        utilization: The share of its time in which a task is busy at most, above 0 and at most 1.
        worker_us: Microseconds of CPU that a worker's own process takes for a message; None: not known.
    """
    found = _size(costs, rate, workers, ackers, utilization, worker_us)
    if costs.alone is None or all(
        part.tasks <= cost.tasks for cost, part in zip(costs.components, found.components, strict=True)
    ):
        return found
    dearer = _size(costs.alone, rate, workers, ackers, utilization, worker_us)
    components = tuple(
        replace(part, low_us=min(less.low_us, part.low_us), least_tasks=min(less.least_tasks, part.least_tasks))
        for less, part in zip(found.components, dearer.components, strict=True)
    )
    return replace(
        dearer,
        components=components,
        declared_first=found.declared_first,
        declared_at=found.declared_at,
        in_blocks=found,
    )


def _size(
    costs: Costs, rate: float, workers: int, ackers: int | None, utilization: float, worker_us: float | None
) -> Sizing:
    planned = [_planned(each, rate, utilization) for each in costs.components]
    first = min(planned, key=lambda each: each.limit)
    declared = min(costs.components, key=lambda each: _limit(each, each.tasks))
    ackers = workers if ackers is None else ackers
    per_second = None if costs.messages is None else costs.messages * rate
    return Sizing(
        rate=rate,
        utilization=utilization,
        components=tuple(planned),
        tasks=sum(each.tasks for each in planned),
        cpus=sum(each.cpus for each in planned),
        first=first.id,
        first_at=first.limit,
        declared_first=declared.id,
        declared_at=_limit(declared, declared.tasks),
        workers=workers,
        ackers=ackers,
        acker_rate=None if costs.acker_messages is None or not ackers else costs.acker_messages * rate / ackers,
        message_rate=per_second,
        worker_cpus=None if per_second is None or worker_us is None else per_second * worker_us / 1e6,
        problems=tuple(
            f"no number of tasks is enough for {cost.id!r}: {cost.undivided}, and one task is busy for {part.busy:.0%} of its "
            f"time at this rate; {part.limit * utilization:,.0f} tuples/s of the spouts keep it below {utilization:.0%}"
            for cost, part in zip(costs.components, planned, strict=True)
            if cost.undivided is not None and part.busy > utilization
        ),
    )


def _planned(cost: Cost, rate: float, utilization: float) -> PlannedComponent:
    def needed(us: float) -> int:
        if cost.undivided is not None:
            return cost.tasks
        return max(ceil(rate * cost.per_source * us / 1e6 * cost.skew / utilization), 1)

    tasks = needed(cost.cost_us)
    limit = _limit(cost, tasks)
    return PlannedComponent(
        id=cost.id,
        rate=rate * cost.per_source,
        cost_us=cost.cost_us,
        low_us=cost.low_us,
        high_us=cost.high_us,
        tasks=tasks,
        least_tasks=needed(cost.low_us),
        most_tasks=needed(cost.high_us),
        cpus=rate * cost.per_source * cost.cost_us / 1e6,
        busy=rate / limit,
        limit=limit,
    )


def _limit(cost: Cost, tasks: int) -> float:
    """Return the rate of the spouts at which the busiest of so many tasks has no time left."""
    load = cost.per_source * cost.cost_us / 1e6 * cost.skew / tasks
    return 1 / load if load else float("inf")


@dataclass(frozen=True, kw_only=True)
class Part:
    """The counts of a component at one moment, since the run's start.

    Attributes:
        tuples: A bolt's inputs, or a spout's emits, of each of its tasks.
        secs: The time that its processes took.
    """

    tuples: tuple[int, ...]
    secs: float


def cost_of(
    id: str,
    kind: str,
    parts: Sequence[Part],
    source_tuples: int,
    undivided: str | None,
    notes: list[str],
    resolution: float = 0.0,
) -> Cost:
    """Return a component's cost.

    Args:
        id: The component.
        kind: "spout" or "bolt".
        parts: What was counted, oldest first.
        source_tuples: The tuples that the spouts emitted until the end.
        undivided: See Cost.
        notes: Gets a sentence if there is something to be known of the cost.
        resolution: The seconds by which ``secs`` may be wrong.

    Raises:
        MultilangError: It saw no tuple, or all at once.
    """
    done = [sum(each.tuples) for each in parts]
    if not done or not done[-1] or not source_tuples:
        raise MultilangError(
            f"{kind} {id!r} {'emitted' if kind == 'spout' else 'saw'} no tuple while it was measured, so that its cost is not "
            "known: measure for longer (--for), or give the spouts what leads to tuples for it (--input)"
        )
    working = [task for task, count in enumerate(parts[-1].tuples) if count]
    # What it cost to start is not a tuple's cost.
    begun = next(index for index, part in enumerate(parts) if all(part.tuples[task] for task in working))
    if begun == len(done) - 1:
        raise MultilangError(
            f"{kind} {id!r} did all its work at once, in less time than can be measured: give the spouts more to read"
        )
    tuples, secs = done[-1] - done[begun], parts[-1].secs - parts[begun].secs
    if not tuples:
        raise MultilangError(
            f"{kind} {id!r} did so little that its cost can't be measured ({done[-1]:,} tuples in all): give the spouts more "
            "to read"
        )
    if tuples < _SURE_TUPLES:
        notes.append(f"{id!r} was measured with {tuples:,} tuples only, so that its cost is not sure")
    if secs <= resolution:
        notes.append(f"{id!r} took less time than the clock can tell, so that it costs at most what is shown")
        secs = resolution
    middle, unsure = secs / tuples * 1e6, resolution / tuples * 1e6
    slices = _slices(parts[begun:])
    per_task = parts[-1].tuples
    return Cost(
        id=id,
        kind=kind,
        tasks=len(per_task),
        tuples=tuples,
        cost_us=middle,
        low_us=max(min([*slices, middle - unsure]), 0.0),
        high_us=max([*slices, middle + unsure]),
        per_source=done[-1] / source_tuples,
        skew=max(per_task) * len(per_task) / done[-1],
        undivided=undivided,
    )


def _slices(parts: Sequence[Part], number: int = 4) -> list[float]:
    """Return the costs in a few parts of the measurement, each with about as many tuples, in microseconds."""
    first, last = sum(parts[0].tuples), sum(parts[-1].tuples)
    found, before = [], parts[0]
    for each in parts[1:]:
        tuples = sum(each.tuples) - sum(before.tuples)
        if tuples * number >= last - first or (each is parts[-1] and tuples * number * 2 >= last - first):
            found.append(max(each.secs - before.secs, 0.0) / tuples * 1e6)
            before = each
    return found
