"""The reports of a round's workers, added up and checked."""

from __future__ import annotations

import pickle
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from multilang.errors import SparkJobError
from spark_bridge.job.blocks import REPORT
from spark_bridge.job.tuples import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from spark_bridge.job.blocks import Record
    from spark_bridge.job.layout import Layout


_AGAIN = (
    "A component on Spark must do the same again for the same input (no clock, no random numbers "
    "without a seed), and an RDD give the same rows; or persist() the RDD, and run it again"
)


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
            for number, source in enumerate(layout.sources):
                if source.first <= reader < source.first + source.size:
                    self.failed[number].append((reader - source.first, offset))
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
        if level == 0:
            for number, source in enumerate(layout.sources):
                if source.first <= index < source.first + source.size:
                    self.rows[number] += report["rows"]
                    self.sums[number][index - source.first] = report["sums"]


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
    """Return a checksum of the rows that a worker read, got, sent and kept, and of those that failed."""
    ends = [sorted(report[name].items()) for name in ("sent", "got", "kept")]
    sums = report["sums"]
    return crc32(repr((ends, report["rows"], report["failed"], report["timed_out"], sums and list(sums))).encode())


def _numbers(data: bytes) -> array[int]:
    numbers = array("q")
    numbers.frombytes(data)
    return numbers


def _compare(layout: Layout, sent: dict[Any, Any], got: dict[Any, Any], described: dict[int, str]) -> None:
    """Raise SparkJobError unless what was sent is what was received.

    A tuple that never arrived must not count as acked.
    """
    for pair in sorted(sent.keys() | got.keys()):
        if sent.get(pair) != got.get(pair):
            hosted = layout.hosts.get(pair[0], ())
            who = ", ".join(described[task] for task in hosted) or "a source"
            raise SparkJobError(
                f"what {who} sent differs from what was received: Spark lost its output and made it anew, with another "
                f"result. {_AGAIN}"
            )
