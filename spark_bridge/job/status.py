"""The status of a topology that runs as a Spark job, and of a streaming query, which is one job for each batch."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from multilang.runtime.samples import Recorder, sample_of_status
from multilang.runtime.status import (
    CheckpointStatus,
    ComponentStatus,
    Figures,
    RunError,
    RunStatus,
    TaskStatus,
    declared,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from multilang.runtime.counters import Counters
    from multilang.runtime.samples import Sample
    from multilang.topology.model import Topology
    from spark_bridge.job.result import ReportedError

MAX_ERRORS = 100  # kinds of errors in a query's status, the latest ones


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
        sums: Task -> executed, emitted, transferred, acked, failed, errors; of a spout's task, which hears of acks as
            one of all, the first three.
        busy: Task -> the seconds in which it was busy, if they were measured.
        ended: Whether the job has ended. While a round goes on, nobody knows how many of its tuples are done.
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


class QueryFigures:
    """The sums of a query's batches."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._components: dict[str, ComponentStatus] = {}
        self._errors: list[RunError] = []
        self._recorder = Recorder()
        self._last: tuple[int, float, float] | None = None  # the last committed batch, its time, and when it was

    def add(self, batch: int, status: RunStatus, seconds: float) -> None:
        """Add a batch that was committed, and took so many seconds."""
        for each in status.components:
            before = self._components.get(each.id)
            self._components[each.id] = each if before is None else joined(before, each)
        self._errors = [*self._errors, *status.errors][-MAX_ERRORS:]
        now = time.monotonic()
        self._last = (batch, seconds, now)
        self._recorder.record(now - self._start, self._samples())

    def status(self, state: str, waiting_for: tuple[str, ...]) -> RunStatus:
        """Return the status now."""
        now = time.monotonic()
        rates = self._recorder.rates(now - self._start, self._samples())
        components = [
            replace(
                each,
                rate=rates.rate.get(each.id),
                capacity=rates.capacity.get(each.id),
                by_task=tuple(
                    replace(task, rate=rates.task_rate.get(task.id), capacity=rates.task_capacity.get(task.id))
                    for task in each.by_task
                ),
            )
            for each in list(self._components.values())
        ]
        last = self._last
        return RunStatus(
            topology=self._name,
            engine="spark-stream",
            state=state,
            seconds=now - self._start,
            window_secs=rates.window_secs,
            components=tuple(components),
            waiting_for=waiting_for,
            errors=tuple(self._errors),
            checkpoint=None
            if last is None
            else CheckpointStatus(number=last[0], age_secs=now - last[2], seconds=last[1]),
            history=self._recorder.history(),
        )

    def _samples(self) -> dict[str, Sample]:
        return {id: sample_of_status(each) for id, each in list(self._components.items())}
