"""Samples of a run's counts, and the rates, capacities and curves that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from multilang.engine.status import History, Series, work_done

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.engine.counters import TaskStats
    from multilang.engine.status import ComponentStatus

WINDOW_SECS = 10.0
"""The longest window of a rate."""
EVERY_SECS = 0.9
"""The least time between two samples: those that are a second apart may come a little early."""
REPORT_SECS = 60.0
"""The longest time between two reports of a cluster's executor (executor.metrics.frequency.secs)."""
MAX_SAMPLES = 60
"""The most samples that are stored."""


class Sample(NamedTuple):
    """The counts of a component at one moment, since the run's start.

    Attributes:
        done: The number that its rate counts; None: not known.
        failed: Failed tuples; None: not known.
        pending: Tuples that are neither acked nor failed; None: not known.
        measured: The number of measured latencies.
        latency_secs: The sum of the measured latencies.
        by_task: Task -> the number that a rate counts, and the seconds in which it was busy (None: not known).
    """

    done: int | None = 0
    failed: int | None = 0
    pending: int | None = 0
    measured: int = 0
    latency_secs: float = 0.0
    by_task: Mapping[int, tuple[int | None, float | None]] = {}


class Rates(NamedTuple):
    """The rates in a window.

    Attributes:
        window_secs: The window's length; None: no time has passed, and there are no rates.
        rate: Component id -> tuples per second.
        capacity: Component id -> the share of the window in which its busiest task was busy, if it is known.
        task_rate: Task -> tuples per second.
        task_capacity: Task -> the share of the window in which it was busy, if it is known.
    """

    window_secs: float | None
    rate: Mapping[str, float] = {}
    capacity: Mapping[str, float] = {}
    task_rate: Mapping[int, float] = {}
    task_capacity: Mapping[int, float] = {}


_START = Sample()


class Recorder:
    """The samples of the last minute, one a second at most.

    One thread may add samples while others read.

    Args:
        start: The time of the run's start, at which all counts are 0; None: the run began before it was watched.
        report_secs: The longest time between two reports of a count: one that stays the same for less is not known anew.
    """

    def __init__(self, start: float | None = 0.0, report_secs: float = 0.0) -> None:
        self._report_secs = report_secs
        # replaced, and never changed
        self._samples: tuple[tuple[float, Mapping[str, Sample]], ...] = () if start is None else ((start, {}),)

    def record(self, at: float, components: Mapping[str, Sample]) -> None:
        """Store a sample, unless the last one is younger than a second."""
        samples = self._samples
        if not samples or at - samples[-1][0] >= EVERY_SECS:
            self._samples = (*samples[-MAX_SAMPLES:], (at, components))

    def rates(self, at: float, components: Mapping[str, Sample]) -> Rates:
        """Return the rates from the oldest sample of the last ``WINDOW_SECS`` seconds until now."""
        samples = self._samples
        if not samples:
            return Rates(None)
        then, before = next((each for each in samples if at - each[0] <= WINDOW_SECS), samples[-1])
        secs = at - then
        if secs <= 0:
            return Rates(None)
        rate: dict[str, float] = {}
        capacity: dict[str, float] = {}
        task_rate: dict[int, float] = {}
        task_capacity: dict[int, float] = {}
        for id, sample in components.items():
            old = before.get(id, _START)
            if (done := _increase(sample.done, old.done)) is not None:
                rate[id] = done / secs
            shares = _shares(sample, old, secs)
            if shares:
                capacity[id] = max(shares.values())
                task_capacity.update(shares)
            for task, (count, _) in sample.by_task.items():
                if (done := _increase(count, old.by_task.get(task, _NONE)[0])) is not None:
                    task_rate[task] = done / secs
        return Rates(secs, rate, capacity, task_rate, task_capacity)

    def history(self) -> History:
        """Return the curves of the stored samples."""
        samples = self._samples
        ids = dict.fromkeys(id for _, components in samples[1:] for id in components)
        columns: dict[str, list[tuple[Any, ...]]] = {id: [] for id in ids}
        for id, column in columns.items():
            (then, first), *later = samples
            before = first.get(id, _START)
            for at, components in later:
                now = components.get(id)
                if now == before and at - then < self._report_secs:
                    column.append((None,) * len(_NAMES))
                else:
                    column.append(_interval(before, now, at - then))
                    then, before = at, now or _START
        return History(
            at=tuple(at for at, _ in samples[1:]),
            components={
                id: Series(**dict(zip(_NAMES, zip(*rows, strict=True), strict=True))) for id, rows in columns.items()
            },
        )


def sample_of(kind: str, tasks: Mapping[int, TaskStats]) -> Sample:
    """Return the sample of a component, from the counts of its tasks."""
    spout = kind == "spout"
    emitted = executed = acked = failed = pending = measured = 0
    latency = 0.0
    by_task: dict[int, tuple[int | None, float | None]] = {}
    for id, stats in tasks.items():
        emitted += stats.emitted
        executed += stats.executed
        acked += stats.acked
        failed += stats.failed
        done = work_done(kind, stats.emitted, stats.executed, stats.acked, stats.failed, stats.pending)
        by_task[id] = (done, stats.busy)
        pending += stats.pending if spout else stats.unfinished
        for average in (stats.complete,) if spout else (stats.process, stats.execute):
            if average.count:
                measured += average.count
                latency += average.total
                break
    done = work_done(kind, emitted, executed, acked, failed, pending)
    return Sample(done, failed, pending, measured, latency, by_task)


def sample_of_status(component: ComponentStatus) -> Sample:
    """Return the sample of a component, from an engine's figures of it, which have no sums of latencies."""
    by_task = {
        task.id: (
            work_done(component.kind, task.emitted, task.executed, task.acked, task.failed, task.pending),
            task.busy_secs,
        )
        for task in component.by_task
    }
    acked, latency_ms = component.acked or 0, component.latency_ms
    return Sample(
        component.done,
        component.failed,
        component.waiting,
        0 if latency_ms is None else acked,
        (latency_ms or 0.0) * acked / 1000,
        by_task,
    )


_NONE: tuple[int | None, float | None] = (0, None)
_NAMES = ("rate", "failed", "pending", "latency_ms", "capacity")


def _interval(old: Sample, new: Sample | None, secs: float) -> tuple[Any, ...]:
    """Return the figures of one interval, in the order of _NAMES."""
    if new is None:
        return (None,) * len(_NAMES)
    done = _increase(new.done, old.done)
    measured = new.measured - old.measured
    latency_ms = 1000 * (new.latency_secs - old.latency_secs) / measured if measured > 0 else None
    shares = _shares(new, old, secs)
    capacity = max(shares.values()) if shares else None
    return (
        None if done is None else done / secs,
        _increase(new.failed, old.failed),
        new.pending,
        latency_ms,
        capacity,
    )


def _increase(now: int | None, before: int | None) -> int | None:
    """Return by how much a count grew; one that became smaller began again at 0, as after a worker's restart."""
    if now is None or before is None:
        return None
    return now - before if now >= before else now


def _shares(new: Sample, old: Sample, secs: float) -> dict[int, float]:
    """Return the share of the time in which each task was busy, as far as it is known."""
    shares = {}
    for task, (_, busy) in new.by_task.items():
        if busy is not None:
            before = old.by_task.get(task, _NONE)[1] or 0.0
            # An estimate, or a late report, may give a little more than all of the time, or less than none.
            shares[task] = min(max(busy - before, 0.0) / secs, 1.0)
    return shares
