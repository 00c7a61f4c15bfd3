"""How a query gets on, batch by batch: what Spark knows of it, and what became of its tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class BatchProgress:
    """``rows``: of the batch, each once; ``input_rate``: of rows that came, and ``process_rate``: of rows that were processed, a
    second; ``seconds``: from the batch's start to its commit. ``acked``: rows whose whole tree was acked; ``failed``: failures,
    each attempt counted; ``timed_out``: of these, rows that no bolt failed; ``replayed``: rounds that repeated what failed; ``lost``: rows that failed at the last attempt.
    ``repeated``: its state was committed already before a crash, so nothing was processed.
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
    """Hears from Spark when a batch is over. ``name``: the query's; ``outcomes``: batch -> what the topology says of it, taken when it is told."""

    def __init__(self, name: str, outcomes: dict[int, dict[str, Any]], tell: Callable[[BatchProgress], None]) -> None:
        self._name = name
        self._outcomes = outcomes
        self._tell = tell

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Nothing is known then."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is over; Spark also says so now and then when there was none."""
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
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The query tells that itself."""
