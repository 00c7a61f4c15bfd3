"""What stands in for a spout: an RDD or a DataFrame, each of whose rows is a spout tuple with its place as message id."""

from __future__ import annotations

import marshal
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from multilang.protocol.codec import MAX_INT, MIN_INT, normalize
from multilang.protocol.errors import UnserializableValue
from multilang.topology.errors import did_you_mean
from spark_bridge.job.errors import NotOnSparkError, SparkJobError
from spark_bridge.sources.errors import SourceError
from spark_bridge.sources.values import converter, kinds_of, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from multilang.topology.model import Topology
    from spark_bridge.sources.values import Kind

    Row = tuple[int | None, list[Any], str | None, int | None]

_MAX_SHOWN = 200  # characters of a row in a message
_SUMMED = 512  # rows to a checksum


class Reader:
    """Reads rows of one source, on an executor. ``picks``: partition -> ascending offsets; None: all rows of all.

    ``kinds``: of a DataFrame's columns, those that JSON lacks being encoded as ``spark_bridge.sources`` does. ``known``: the
    ``sums`` of each partition when all of it was read, by which rows that changed since are noticed.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[str],
        picks: Mapping[int, Sequence[int]] | None,
        kinds: Sequence[Kind] = (),
        known: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self.name = name
        self.fields = tuple(fields)
        self.picks = picks
        self.kinds = list(kinds)
        self.known = known or {}
        self.sums = array("I")  # of what was read, if it was all: a checksum of every so many rows, and of the rest

    def read(self, partition: int, rows: Iterable[Any]) -> Iterator[Row]:
        """Offset and values of the rows that are wanted; the rest is not even looked at."""
        values = self._values
        self._converters = [(index, convert) for index, kind in enumerate(self.kinds) if (convert := converter(kind))]
        if self.picks is None:
            self.sums = sums = array("I")
            sum, left, text_of = 0, _SUMMED, marshal.dumps
            for offset, row in enumerate(rows):
                found = values(partition, offset, row)
                sum = crc32(text_of(found, 0), sum)  # now: a bolt in this process may change them
                left -= 1
                if not left:
                    sums.append(sum)
                    sum, left = 0, _SUMMED
                yield offset, found, None, None
            sums.append(sum)
            return
        wanted = self.picks.get(partition, ())
        if wanted:
            yield from self._again(partition, rows, wanted)

    def _again(self, partition: int, rows: Iterable[Any], wanted: Sequence[int]) -> Iterator[Row]:
        """The rows that are wanted, if they and those around them are what they were."""
        known = self.known.get(partition)
        groups = {offset // _SUMMED for offset in wanted}
        last = max(groups)
        offsets = iter(wanted)
        next_one: int | None = next(offsets)
        sum = 0
        count = 0
        for offset, row in enumerate(rows):
            group, place = divmod(offset, _SUMMED)
            if group > last:
                break
            count = offset + 1
            if group not in groups:
                continue
            found = self._values(partition, offset, row)
            sum = crc32(marshal.dumps(found, 0), sum)
            if offset == next_one:
                next_one = next(offsets, None)
                yield offset, found, None, None
            if place == _SUMMED - 1:
                self._compare(partition, known, group, sum)
                sum = 0
        if next_one is not None:
            self._refuse(partition, "fewer rows than when it was read first")
        if count <= last * _SUMMED + _SUMMED - 1:
            self._compare(partition, known, last, sum)

    def _compare(self, partition: int, known: Sequence[int] | None, group: int, sum: int) -> None:
        if known is not None and (group >= len(known) or known[group] != sum):
            self._refuse(partition, f"other rows, from offset {group * _SUMMED} on, than when it was read first")

    def _refuse(self, partition: int, what: str) -> None:
        raise SparkJobError(
            f"partition {partition} of the source of {self.name!r} has {what}: "
            "an RDD must give the same rows each time that it is computed; persist() it"
        )

    def _values(self, partition: int, offset: int, row: Any) -> list[Any]:
        """A row as a tuple's values: what a component in a process of its own would get."""
        width = len(self.fields)
        values = list(row) if isinstance(row, list | tuple) else [row]
        if len(values) != width:
            raise SparkJobError(
                f"row {offset} of partition {partition} of the source of {self.name!r} has {len(values)} values, "
                f"{_shown(row)}; its stream has {width} fields: {', '.join(self.fields)}"
            )
        for index, convert in self._converters:
            values[index] = convert(values[index])
        for value in values:
            kind = type(value)
            if (kind is str and value.isascii()) or (kind is int and MIN_INT <= value <= MAX_INT):
                continue
            try:
                try:
                    return normalize(values)
                except UnserializableValue:
                    return normalize([plain(each) for each in values])
            except UnserializableValue as error:
                raise SparkJobError(
                    f"row {offset} of partition {partition} of the source of {self.name!r}, {_shown(row)}: {error}"
                ) from None
        return values


def _shown(row: object) -> str:
    text = repr(row)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def rows_of(component: str, fields: Sequence[str], given: RDD[Any] | DataFrame) -> tuple[RDD[Any], list[Kind]]:
    """What was given for a spout's stream as an RDD, and the kinds of a DataFrame's columns.

    Raises NotOnSparkError for what can't be a source.
    """
    from pyspark import RDD

    if isinstance(given, RDD):
        return given, []
    schema = getattr(given, "schema", None)
    if schema is None or not hasattr(given, "rdd"):
        raise NotOnSparkError(
            f"the source of {component!r} is an RDD or a DataFrame, not {_shown(given)}; "
            "make one of a list with sc.parallelize(...)"
        )
    missing = [field for field in fields if field not in given.columns]
    if missing:
        raise NotOnSparkError(
            f"the DataFrame for {component!r} has no column {missing[0]!r}; its stream's fields are "
            f"{', '.join(fields)}, its columns {', '.join(given.columns)}: rename them with withColumnRenamed"
        )
    wanted: Any = given.select(*[given[field] for field in fields])
    try:
        return wanted.rdd, kinds_of(wanted.schema)
    except SourceError as error:
        raise NotOnSparkError(f"the DataFrame for {component!r}: {error}") from error


def check_sources(topology: Topology, sources: Mapping[Any, Any]) -> dict[tuple[str, str], Any]:
    """The sources by (spout, stream). Raises NotOnSparkError for one that belongs to no spout, or to no stream of it."""
    found: dict[tuple[str, str], Any] = {}
    for key, given in sources.items():
        component, stream = key if isinstance(key, tuple) else (key, None)
        spec = topology.components.get(component)
        if spec is None or spec.kind != "spout":
            what = "is a bolt" if spec is not None else "is no component"
            raise NotOnSparkError(
                f"sources: {component!r} {what} of topology {topology.name!r}; name a spout: "
                f"{did_you_mean(str(component), topology.spouts)}"
            )
        if stream is None:
            stream = next(iter(spec.streams)) if len(spec.streams) == 1 else "default"
        if stream not in spec.streams:
            raise NotOnSparkError(
                f"sources: spout {component!r} has no stream {stream!r}; name one by ({component!r}, stream): "
                f"{did_you_mean(stream, spec.streams)}"
            )
        found[component, stream] = given
    return found
