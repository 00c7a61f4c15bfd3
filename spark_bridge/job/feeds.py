"""The sources of a round, and the rows that the next round reads again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps
from spark_bridge.job.sources import SourceReader
from spark_bridge.job.spouts import EmittedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from pyspark import RDD, SparkContext

    from spark_bridge.job.layout import StageSource
    from spark_bridge.job.spouts import SpoutFeed
    from spark_bridge.sources.values import Kind

MAX_NAMED = 1000  # failed tuples whose values are kept, or fetched, for the result
MAX_FAILING = (
    1_000_000  # different tuples that fail one after the other, none of them acked, after which a spout is given up
)


class RowFeed:
    """An RDD in the place of a spout.

    Every row is read once; rows that failed are read again, at most ``max_replays`` times.
    """

    def __init__(
        self,
        component: str,
        stream: str,
        fields: Sequence[str],
        rows: RDD[Any],
        kinds: Sequence[Kind],
        max_replays: int,
    ) -> None:
        self.component = component
        self.stream = stream
        self.rows = rows
        self.total = 0
        self.failures = 0
        self.timed_out = 0  # failures at the end of a round, which no bolt reported
        self.lost: dict[int, list[int]] = {}  # partition -> offsets that were given up
        self._fields = fields
        self._kinds = kinds
        self._left = max_replays
        self._picks: dict[int, list[int]] | None = None
        self._sums: dict[int, Sequence[int]] = {}  # the checksums of the partitions with rows that failed
        self._undone: Mapping[int, Sequence[int]] | None = None  # the same of all, if undone

    @property
    def waiting(self) -> bool:
        """True if there is something to read."""
        return self._picks is None or bool(self._picks)

    @property
    def is_idle(self) -> bool:
        """True if the round that begins has nothing to read here."""
        return not self.waiting

    def undone(self, failures: int, sums: Mapping[int, Sequence[int]]) -> None:
        """Read all rows again in the next round, because the last round counts for nothing."""
        self.failures += failures
        self._check(sums)
        self._undone = sums

    def _check(self, sums: Mapping[int, Sequence[int]]) -> None:
        if self._undone is not None and self._undone != sums:
            raise SparkJobError(
                f"the source of {self.component!r} has other rows than when they were read first, and what was undone may "
                "be in a map: an RDD must give the same rows each time that it is computed: sort it, checkpoint() it, or publish() it"
            )

    def narrow(self, size: int) -> None:
        """Have at most ``size`` workers read the rows. From here on, a row's partition is the number of its worker."""
        if size < self.rows.getNumPartitions():
            self.rows = self.rows.coalesce(size)

    def round(self, _sc: SparkContext) -> tuple[RDD[Any], Any]:
        """Return the rows and the reader of the next round."""
        return self.rows, self.reader(self._picks)

    def reader(self, picks: Any) -> SourceReader:
        """Return a reader of these rows."""
        return SourceReader(self.component, self._fields, picks, self._kinds, self._sums)

    def settle(self, rows: int, failed: Iterable[tuple[int, int]], sums: Mapping[int, Sequence[int]]) -> int:
        """Take the result of a round: the number of rows, and (partition, offset) of those that failed.

        Return how many were acked.
        """
        first = self._picks is None
        if first:
            self._check(sums)
            self.total = rows
        again: dict[int, list[int]] = {}
        for partition, offset in failed:
            again.setdefault(partition, []).append(offset)
        for offsets in again.values():
            offsets.sort()
        if first:
            self._sums = {partition: sums[partition] for partition in again}
        count = sum(map(len, again.values()))
        self.failures += count
        if self._left <= 0:
            self.lost, again = again, {}
        self._left -= 1
        self._picks = again
        return rows - count


class EmittedFeed:
    """A spout that runs in the driver, which emits one batch for each round.

    It is given up, and an error of its component says so, when nothing of ``max_replays + 1`` batches in a row was acked and all
    that failed had failed before: it would go on so for ever. So it is when so many different tuples failed in a row
    that it can't be told any more which of them failed before.
    """

    def __init__(self, spout: SpoutFeed, size: int, max_replays: int) -> None:
        self.component = spout.spec.id
        self.spout = spout
        self.size = size
        self.acked = 0
        self.failures = 0
        self.timed_out = 0  # failures at the end of a round, which no bolt reported
        self.lost: set[Any] = set()  # the tuples that failed, not acked since
        self.named: dict[Any, tuple[Any, list[Any]]] = {}  # message id and values of some of them
        self._batch: list[Any] = []
        self._failing: set[int] = (
            set()
        )  # values (a hash) that failed since the last ack, and may come again with another id
        self._fruitless = 0
        self._max_fruitless = max_replays + 1

    @property
    def waiting(self) -> bool:
        """True if the spout may emit more."""
        return not self.spout.exhausted and self._fruitless < self._max_fruitless

    def round(self, sc: SparkContext) -> tuple[RDD[Any], Any]:
        """Return the spout's next batch, divided among the workers, and its reader."""
        self._batch = self.spout.emit() if self.waiting else []
        chunks: list[list[Any]] = [[] for _ in range(self.size)]
        for place, (_, (tup_id, *rest, _)) in enumerate(self._batch):
            chunks[place % self.size].append((tup_id is not None, *rest))
        return sc.parallelize(chunks, self.size), EmittedReader()

    @property
    def is_idle(self) -> bool:
        """True if the last batch was empty."""
        return not self._batch

    def settle(self, _rows: int, failed: Iterable[tuple[int, int]], _sums: Mapping[int, Sequence[int]]) -> int:
        """Take the result of a round, and tell the spout. Return how many tuples were acked."""
        places = {offset * self.size + partition for partition, offset in failed}
        failing = []
        acked = 0
        for place, (task, (tup_id, values, *_)) in enumerate(self._batch):
            if tup_id is None:
                continue
            key = (task.plan.id, repr(task.source_id(tup_id)))  # which may be a list or an object
            if place in places:
                failing.append((key, tup_id, values))
            else:
                acked += 1
                self.lost.discard(key)
                self.named.pop(key, None)
        if acked:
            self._failing.clear()
        is_new = False
        for key, tup_id, values in failing:
            text = hash(dumps(values))
            is_new = is_new or (key not in self.lost and text not in self._failing)
            self._failing.add(text)
            self.lost.add(key)
            if key in self.named or len(self.named) < MAX_NAMED:
                self.named[key] = (tup_id, values)
        self.failures += len(places)
        self.acked += acked
        if self._batch:  # otherwise it waits for its replays to be due, while others emit
            self._fruitless = 0 if acked or is_new or not places else self._fruitless + 1
        self.spout.settle(self._batch, places)
        why = ""
        if self._fruitless == self._max_fruitless:
            why = f"nothing of its last {self._fruitless} batches was acked, and all that failed had failed before"
        elif len(self._failing) > MAX_FAILING:
            why = f"{len(self._failing):,} different tuples failed, and none was acked meanwhile"
            self._fruitless = self._max_fruitless
        if why and not self.spout.exhausted:
            self.spout.report(
                f"spout {self.component!r} was given up: {why}. What it would have emitted next, if there is more, was not read"
            )
        return acked


def sources_of(feeds: Sequence[RowFeed | EmittedFeed]) -> list[StageSource]:
    """Return the sources in the form that a layout takes."""
    from spark_bridge.job.layout import StageSource

    return [
        StageSource(feed.component, feed.stream, feed.rows.getNumPartitions())
        if isinstance(feed, RowFeed)
        else StageSource(feed.component, "default", feed.size)
        for feed in feeds
    ]
