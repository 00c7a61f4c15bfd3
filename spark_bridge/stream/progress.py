"""The progress of a query, batch by batch: Spark's figures, and the counts of its tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Callable


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
