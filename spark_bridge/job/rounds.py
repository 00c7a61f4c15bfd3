"""The rounds of a run: the rows that each reads, those that the next one reads again, and the reports of its workers."""

from __future__ import annotations

import pickle
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps
from spark_bridge.job.blocks import REPORT
from spark_bridge.job.layout import StageSource
from spark_bridge.job.routes import row_of
from spark_bridge.job.sources import SourceReader
from spark_bridge.job.spouts import EmittedReader
from spark_bridge.job.watch import collected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pyspark import RDD, SparkContext

    from spark_bridge.job.blocks import Record
    from spark_bridge.job.layout import Layout
    from spark_bridge.job.spouts import SpoutFeed
    from spark_bridge.sources.values import Kind

MAX_FAILING = (
    1_000_000  # different tuples that fail one after the other, none of them acked, after which a spout is given up
)
MAX_NAMED = 1000  # failed tuples whose values are stored, or fetched, for the result
_AGAIN = (
    "A component on Spark must do the same again for the same input (no clock, no random numbers "
    "without a seed), and an RDD give the same rows; or persist() the RDD, and run it again"
)


class RowFeed:
    """An RDD in the place of a spout.

    Every row is read once; rows that failed are read again, at most ``max_replays`` times.
    """

    errors = 0

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

    @property
    def lost_count(self) -> int:
        """The number of rows that were given up."""
        return sum(map(len, self.lost.values()))

    @property
    def acked(self) -> int:
        """The number of rows that were acked, after the last round."""
        return self.total - self.lost_count

    def lost_tuples(self, most: int) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Return the message id and the values of rows that were given up, which are read once more for this."""
        picks: dict[int, list[int]] = {}
        for partition in sorted(self.lost):
            taken = self.lost[partition][:most]
            most -= len(taken)
            if taken:
                picks[partition] = taken
        if not picks:
            return []
        reader = self.reader(picks)

        def named(partition: int, rows: Iterable[Any]) -> Iterable[Any]:
            return (((partition, offset), values) for offset, values, _, _ in reader.read(partition, rows))

        return collected(self.rows.mapPartitionsWithIndex(named), f"{self.component}: the rows that failed")

    def source(self) -> StageSource:
        """Return the source in the form that a layout takes."""
        return StageSource(self.component, self.stream, self.rows.getNumPartitions())

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

    It is given up with an error of its component when nothing of ``max_replays + 1`` batches in a row was acked and all
    that failed had failed before, since it might never end; also when so many different tuples failed in a row that the
    earlier ones are no longer known.
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
        # Values (a hash) that failed since the last ack, and may be replayed with another id.
        self._failing: set[int] = set()
        self._fruitless = 0
        self._max_fruitless = max_replays + 1

    @property
    def waiting(self) -> bool:
        """True if the spout may emit more."""
        return not self.spout.exhausted and self._fruitless < self._max_fruitless

    @property
    def lost_count(self) -> int:
        """The number of tuples that failed and were not acked since."""
        return len(self.lost)

    @property
    def errors(self) -> int:
        """The number of the spout's errors."""
        return self.spout.errors

    def lost_tuples(self, most: int) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Return the message id and the values of tuples that failed and were not acked since."""
        return list(self.named.values())[:most]

    def source(self) -> StageSource:
        """Return the source in the form that a layout takes."""
        return StageSource(self.component, "default", self.size)

    def narrow(self, size: int) -> None:
        """Divide each batch among so many workers."""
        self.size = size

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


class RoundReport:
    """The sum of the reports of a round's workers.

    ``failed``: for each source, (partition, offset) of the rows that failed. ``timed_out``: for each source, how many
    of these no bolt failed. ``rows``: how many rows each source read. ``sums``: for each source, partition -> the
    checksums of its rows. ``gave_up``:
    whether something in a transaction failed. ``tasks``: task -> executed, emitted, transferred, acked, failed, errors.
    ``busy``: task -> the seconds in which it was busy, if they were measured.
    ``kinds``: output -> the types of its columns. ``updated``: whether a map was perhaps updated.
    ``digests``: worker -> what its rows, in and out, must be again if Spark makes its records anew.
    """

    def __init__(self, layout: Layout, records: Iterable[Record], described: dict[int, str]) -> None:
        self.rows = [0] * len(layout.sources)
        self.sums: list[dict[int, Any]] = [{} for _ in layout.sources]
        self.tasks: dict[int, list[int]] = {}
        self.busy: dict[int, float] = {}
        self.kinds: dict[tuple[str, str], list[set[str]]] = {}
        self.digests: dict[tuple[int, int], int] = {}
        self.gave_up = False
        self.updated = False
        self.errors: list[tuple[int, str, int]] = []
        self.left: dict[str, set[str]] = {}
        roots: set[int] = set()
        timed_out: set[int] = set()
        sent: dict[Any, Any] = {}
        got: dict[Any, Any] = {}
        for record in records:
            report = _read(record)
            worker = report["worker"]
            self.digests[worker] = _digest(report)
            sent.update({(worker, end): sums for end, sums in report["sent"].items()})
            got.update({(end, worker): sums for end, sums in report["got"].items()})
            roots.update(_numbers(report["failed"]))
            timed_out.update(_numbers(report["timed_out"]))
            self._add(layout, worker, report)
        _compare(layout, sent, got, described)
        self.failed: list[list[tuple[int, int]]] = [[] for _ in layout.sources]
        self.timed_out = [0] * len(layout.sources)
        timed_out -= roots
        for root in roots | timed_out:
            reader, offset = row_of(root)
            found = layout.source_of(reader)
            if found is not None:
                number, partition = found
                self.failed[number].append((partition, offset))
                self.timed_out[number] += root in timed_out

    def _add(self, layout: Layout, worker: tuple[int, int], report: dict[str, Any]) -> None:
        for task, counts in report["tasks"].items():
            sums = self.tasks.setdefault(task, [0] * len(counts))
            sums[:] = [a + b for a, b in zip(sums, counts, strict=True)]
        for task, secs in report["busy"].items():
            self.busy[task] = self.busy.get(task, 0.0) + secs
        self.errors += report["errors"]
        self.gave_up |= report["gave_up"]
        self.updated |= report["updated"]
        for component, names in report["left"].items():
            self.left.setdefault(component, set()).update(names)
        for stream, columns in report["kinds"].items():
            known = self.kinds.setdefault(stream, [set() for _ in columns])
            for seen, more in zip(known, columns, strict=True):
                seen |= more
        level, index = worker
        found = layout.source_of(index) if level == 0 else None
        if found is not None:
            number, partition = found
            self.rows[number] += report["rows"]
            self.sums[number][partition] = report["sums"]


class Unchanged:
    """Passes on a round's records, unless Spark has made some of them anew with another result than was reported.

    Records wait on an executor's disk. When that is lost, or when two attempts of a task have left theirs, Spark gives records
    that belong to no report, and what was counted would not be what is there.
    """

    def __init__(self, topology: str, digests: Mapping[tuple[int, int], int]) -> None:
        self._topology = topology
        self._digests = dict(digests)

    def __call__(self, records: Iterable[Any]) -> Iterator[Any]:
        for record in records:
            if record[0] == REPORT:
                report = _read(record)
                if self._digests[report["worker"]] != _digest(report):
                    raise SparkJobError(
                        f"what {self._topology!r} emitted is not there any more as it was counted: Spark lost some of it and made "
                        f"it anew, with another result. {_AGAIN}"
                    )
            yield record


def _read(record: Record) -> dict[str, Any]:
    """Return the report in a record: written by a task of this very job, and carried by Spark's shuffle, which pickles, too."""
    return pickle.loads(record[-1])  # type: ignore[no-any-return]  # noqa: S301


def _digest(report: Mapping[str, Any]) -> int:
    """Return a checksum of the rows that a worker read, got, sent and output, and of those that failed."""
    ends = [sorted(report[name].items()) for name in ("sent", "got", "output")]
    sums = report["sums"]
    return crc32(repr((ends, report["rows"], report["failed"], report["timed_out"], sums and list(sums))).encode())


def _numbers(data: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(data)
    return numbers


def _compare(layout: Layout, sent: dict[Any, Any], got: dict[Any, Any], described: Mapping[int, str]) -> None:
    """Raise SparkJobError unless what was sent is what was received.

    A tuple that never arrived must not count as acked.
    """
    for pair in sorted(sent.keys() | got.keys()):
        if sent.get(pair) != got.get(pair):
            raise SparkJobError(
                f"what {layout.who(pair[0], described)} sent differs from what was received: Spark lost its output and made it anew, with another "
                f"result. {_AGAIN}"
            )
