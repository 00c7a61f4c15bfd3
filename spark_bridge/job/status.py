"""The counters and the status of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.engine.counters import Counters
from multilang.engine.status import (
    ComponentStatus,
    Figures,
    RunError,
    TaskStatus,
    declared,
)
from spark_bridge.job.result import FailedTuple
from spark_bridge.job.rounds import MAX_NAMED, EmittedFeed, RowFeed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from multilang.topology.model import Topology
    from spark_bridge.job.result import JobResult, ReportedError


def components_of(
    topology: Topology,
    counters: Mapping[str, Counters],
    assignment: Mapping[int, str],
    sums: Mapping[int, Sequence[int]],
    busy: Mapping[int, float],
    *,
    ended: bool,
) -> tuple[ComponentStatus, ...]:
    """Return the status of each component of a job.

    Args:
        topology: The topology as it is declared.
        counters: The counts of each component.
        assignment: Task -> its component.
        sums: Task -> executed, emitted, transferred, acked, failed, errors; of a spout's task, the first three.
        busy: Task -> the seconds in which it was busy, if they were measured.
        ended: Whether the job has ended. During a round, it is unknown how many of its tuples are done.
    """
    found = []
    for id, each in counters.items():
        tasks = [task for task, component in assignment.items() if component == id]
        known = [busy[task] for task in tasks if task in busy]
        counts = {name: value for name, value in each.as_dict().items() if name not in ("component", "kind", "tasks")}
        counts["restarts"] = None
        if not ended:
            counts["pending"] = None
        figures = Figures(
            **counts,
            busy_secs=sum(known) if known else None,
        )
        found.append(
            ComponentStatus(
                id=id,
                kind=each.kind,
                tasks=each.tasks,
                by_task=tuple(_task(task, each.kind, sums.get(task), busy.get(task)) for task in tasks),
                **vars(figures),
                **declared(topology.components[id], figures),
            )
        )
    return tuple(found)


def _task(id: int, kind: str, sums: Sequence[int] | None, busy_secs: float | None) -> TaskStatus:
    executed, emitted, transferred, acked, failed, errors = sums or (0,) * 6
    if kind == "spout":
        return TaskStatus(id=id, through=id, emitted=emitted, transferred=transferred, executed=0, busy_secs=busy_secs)
    return TaskStatus(
        id=id,
        through=id,
        emitted=emitted,
        transferred=transferred,
        executed=executed,
        acked=acked,
        failed=failed,
        unfinished=executed - acked - failed,
        errors=errors,
        busy_secs=busy_secs,
    )


def errors_of(errors: Iterable[ReportedError]) -> tuple[RunError, ...]:
    """Return the errors of a job as those of a status."""
    return tuple(
        RunError(component=each.component, message=each.message, task=each.task, fatal=False, times=each.times)
        for each in errors
    )


def conclude(
    result: JobResult,
    feeds: list[RowFeed | EmittedFeed],
    assignment: Mapping[int, str],
    sums: Mapping[int, list[int]],
) -> None:
    """Put the lost tuples and the counters into the result of a run whose rounds are over.

    Args:
        result: The result.
        feeds: The sources of the run.
        assignment: Task id -> component.
        sums: The figures of each task, added up over all rounds.
    """
    for feed in feeds:
        result.lost += feed.lost_count
        lost = feed.lost_tuples(MAX_NAMED - len(result.failed))
        result.failed += [FailedTuple(feed.component, id, values) for id, values in lost]
    result.counters = counters_of(result.topology, feeds, assignment, sums)


def counters_of(
    topology: Topology,
    feeds: list[RowFeed | EmittedFeed],
    assignment: Mapping[int, str],
    sums: Mapping[int, list[int]],
) -> dict[str, Counters]:
    """Return the counters of each component after the rounds that have ended.

    Args:
        topology: The topology.
        feeds: The sources of the run.
        assignment: Task id -> component.
        sums: The figures of each task, added up over these rounds.
    """
    counters = {}
    for id, spec in topology.components.items():
        of_tasks = [sums[task] for task, name in assignment.items() if name == id and task in sums]
        executed, emitted, transferred, acked, failed, errors = (
            (sum(each) for each in zip(*of_tasks, strict=True)) if of_tasks else (0,) * 6
        )
        lost = timed_out = unfinished = 0
        if spec.kind == "bolt":
            unfinished = executed - acked - failed
        for feed in feeds:
            if feed.component == id:
                lost += feed.lost_count
                failed += feed.failures
                timed_out += feed.timed_out
                acked += feed.acked
                errors += feed.errors
        counters[id] = Counters(
            id,
            spec.kind,
            spec.tasks,
            emitted=emitted,
            transferred=transferred,
            executed=executed,
            acked=acked,
            failed=failed,
            timed_out=timed_out,
            lost=lost,
            unfinished=unfinished,
            errors=errors,
        )
    return counters
