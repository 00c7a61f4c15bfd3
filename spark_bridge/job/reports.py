"""The reports of a round's workers, added up and checked."""

from __future__ import annotations

import pickle
from array import array
from typing import TYPE_CHECKING

from spark_bridge.job.errors import SparkJobError
from spark_bridge.job.tuples import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from spark_bridge.job.blocks import Record
    from spark_bridge.job.layout import Layout


class RoundReport:
    """The sum of the reports of a round's workers.

    ``failed``: for each source, (partition, offset) of the rows that failed. ``timed_out``: for each source, how many
    of these no bolt failed. ``rows``: how many rows each source read. ``sums``: for each source, partition -> the
    checksums of its rows. ``gave_up``:
    whether something in a transaction failed. ``tasks``: task -> executed, emitted, transferred, acked, failed, errors.
    ``busy``: task -> the seconds in which it was busy, if they were measured.
    ``kinds``: output -> the types of its columns. ``maps``: place -> what is to be noted of a map that was updated.
    """

    def __init__(self, layout: Layout, records: Iterable[Record], described: dict[int, str]) -> None:
        self.rows = [0] * len(layout.sources)
        self.sums: list[dict[int, Any]] = [{} for _ in layout.sources]
        self.tasks: dict[int, list[int]] = {}
        self.busy: dict[int, float] = {}
        self.kinds: dict[tuple[str, str], list[set[str]]] = {}
        self.maps: dict[str, dict[str, Any]] = {}
        self.gave_up = False
        self.errors: list[tuple[int, str, int]] = []
        self.left: dict[str, set[str]] = {}
        roots: set[int] = set()
        timed_out: set[int] = set()
        sent: dict[Any, Any] = {}
        got: dict[Any, Any] = {}
        for record in records:
            # Written by a task of this very job and carried by Spark's own shuffle, which pickles as well.
            report = pickle.loads(record[-1])  # noqa: S301
            worker = report["worker"]
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
        self.maps.update(report["maps"])
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
                "result. A component on Spark must do the same again for the same input (no clock, no random numbers "
                "without a seed), and an RDD give the same rows; or persist() the RDD, and run it again"
            )
