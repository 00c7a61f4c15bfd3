"""The progress of a query, batch by batch: Spark's figures, and the counts of its tuples."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from multilang.engine.samples import Recorder, sample_of_status
from multilang.engine.status import CheckpointStatus, RunStatus, by_kind, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.engine.samples import Sample
    from multilang.engine.status import ComponentStatus, RunError


@dataclass(frozen=True)
class BatchProgress:
    """The figures of one batch.

    Attributes:
        batch: The batch's number.
        rows: The number of rows, each counted once.
        input_rate: Rows that came, a second.
        process_rate: Rows that were processed, a second.
        seconds: The time from the batch's start to its commit.
        acked: Rows whose whole tree was acked.
        failed: Failures of rows; each attempt counts.
        timed_out: Those of these failures that no bolt caused by failing a tuple.
        replayed: The number of rounds that repeated what failed.
        lost: Rows that failed at the last attempt.
        repeated: Whether the state was committed already before a crash, so that nothing was processed.
    """

    batch: int
    rows: int
    input_rate: float
    process_rate: float
    seconds: float
    acked: int = 0
    failed: int = 0
    timed_out: int = 0
    replayed: int = 0
    lost: int = 0
    repeated: bool = False

    def __str__(self) -> str:
        timed_out = f" ({self.timed_out:,} timed out)" if self.timed_out else ""
        text = (
            f"batch {self.batch}: {self.rows:,} rows in {self.seconds:.2f} s, in {self.input_rate:,.0f}/s, "
            f"processed {self.process_rate:,.0f}/s, {self.failed:,} failed{timed_out}, {self.replayed} replayed, {self.lost:,} lost"
        )
        return f"{text}, committed before" if self.repeated else text


class ProgressListener(StreamingQueryListener):
    """Gets Spark's events of a batch's end.

    ``name``: the query's; ``outcomes``: batch -> the topology's counts, removed when used.
    """

    def __init__(self, name: str, outcomes: dict[int, dict[str, Any]], tell: Callable[[BatchProgress], None]) -> None:
        self._name = name
        self._outcomes = outcomes
        self._tell = tell

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing: there is no progress yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Report a batch. Spark also calls this now and then when there was no batch."""
        progress = event.progress
        if progress.name != self._name:
            return
        outcome = self._outcomes.pop(progress.batchId, None)
        if outcome is not None:
            # Spark counts a row each time that it is read: for each source of several, and in each round.
            once = outcome["rows"] / (progress.numInputRows or 1)
            self._tell(
                BatchProgress(
                    batch=progress.batchId,
                    input_rate=progress.inputRowsPerSecond * once,
                    process_rate=progress.processedRowsPerSecond * once,
                    seconds=progress.batchDuration / 1000,
                    **outcome,
                )
            )

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing: no rows came."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing: the query's ``wait`` reports its end."""


MAX_ERRORS = 100  # kinds of errors in a query's status, the latest ones


class QueryFigures:
    """The sums of a query's batches."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._components: dict[str, ComponentStatus] = {}
        self._errors: tuple[RunError, ...] = ()
        self._recorder = Recorder()
        self._last: tuple[int, float, float] | None = None  # the last committed batch, its time, and when it was

    def add(self, batch: int, status: RunStatus, seconds: float) -> None:
        """Add a batch that was committed, and took so many seconds."""
        for each in status.components:
            before = self._components.get(each.id)
            self._components[each.id] = each if before is None else joined(before, each)
        now = time.monotonic()
        new = (replace(each, at=now - self._start) for each in status.errors)
        self._errors = by_kind((*self._errors, *new))[-MAX_ERRORS:]
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
            errors=self._errors,
            checkpoint=None
            if last is None
            else CheckpointStatus(number=last[0], age_secs=now - last[2], seconds=last[1]),
            history=self._recorder.history(),
        )

    def _samples(self) -> dict[str, Sample]:
        return {id: sample_of_status(each) for id, each in list(self._components.items())}
