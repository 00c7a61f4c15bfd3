"""The source of a spout's rows: an RDD or a DataFrame. Each row is a spout tuple, with its offset as message id."""

from __future__ import annotations

import marshal
from array import array
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from multilang.component.errors import ConnectorError
from multilang.connectors.values import plain
from multilang.errors import SparkJobError
from multilang.protocol.codec import normalize
from multilang.protocol.errors import UnserializableValue, shown
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.stand_in import check_runs_here
from multilang.transactional.api import AnySpout
from spark_bridge.installed import unsuitable
from spark_bridge.job.watch import SPARK_ERRORS, raise_readable
from spark_bridge.sources.exact import by_place, exact_rows
from spark_bridge.sources.named import in_order
from spark_bridge.sources.values import converter, kinds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from multilang.topology.model import ComponentSpec, Topology
    from spark_bridge.sources.values import Kind

    Row = tuple[int | None, list[Any], str | None, int | None]

_MAX_SHOWN = 200  # characters of a row in a message
_SUMMED = 512  # rows that share a checksum


class SourceReader:
    """Reads rows of one source, on an executor. ``picks``: partition -> ascending offsets; None: all rows.

    ``kinds``: of a DataFrame's columns, whose values get a JSON form as in ``spark_bridge.sources``. ``known``: the
    ``sums`` of each partition from the time when all of it was read, which show whether rows have changed since.
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
        self.sums = array("I")  # a checksum of every _SUMMED rows, if all rows were read

    def read(self, partition: int, rows: Iterable[Any]) -> Iterator[Row]:
        """Return offset and values of the wanted rows. The others are not even checked."""
        self._converters = [(index, convert) for index, kind in enumerate(self.kinds) if (convert := converter(kind))]
        rows = iter(rows)
        if self.picks is not None:
            wanted = self.picks.get(partition, ())
            if wanted:
                yield from self._again(partition, rows, wanted)
            return
        self.sums = sums = array("I")
        offset = 0
        while block := list(islice(rows, _SUMMED)):
            found = self._block(partition, offset, block)
            sums.append(_sum(found))  # before the rows are given away: a bolt in this process may change them
            for values in found:
                yield offset, values, None, None
                offset += 1

    def _again(self, partition: int, rows: Iterator[Any], wanted: Sequence[int]) -> Iterator[Row]:
        """Return the wanted rows, after checking that they and their neighbours have not changed."""
        known = self.known.get(partition)
        places: dict[int, list[int]] = {}
        for offset in wanted:
            places.setdefault(offset // _SUMMED, []).append(offset)
        for number in range(max(places) + 1):
            block = list(islice(rows, _SUMMED))
            if number not in places:
                continue
            start = number * _SUMMED
            found = self._block(partition, start, block)
            if places[number][-1] - start >= len(found):
                self._refuse(partition, "fewer rows than when it was read first")
            if known is not None and (number >= len(known) or known[number] != _sum(found)):
                self._refuse(partition, f"other rows, from offset {start} on, than when it was read first")
            for offset in places[number]:
                yield offset, found[offset - start], None, None

    def _refuse(self, partition: int, what: str) -> None:
        raise SparkJobError(
            f"partition {partition} of the source of {self.name!r} has {what}: "
            "an RDD must give the same rows each time that it is computed. Give its random numbers a seed, sort what a shuffle left "
            "in any order, checkpoint() it, or publish() it and read that"
        )

    def _block(self, partition: int, start: int, rows: Sequence[Any]) -> list[list[Any]]:
        return [self._values(partition, offset, row) for offset, row in enumerate(rows, start)]

    def _values(self, partition: int, offset: int, row: Any) -> list[Any]:
        """Return a row as a tuple's values, as a component in a process of its own would get them."""
        width = len(self.fields)
        try:
            if self.kinds:  # of a DataFrame, whose columns were put into the fields' order
                values = list(row)
            else:
                values = in_order(row, self.fields) if isinstance(row, list | tuple) else [row]
        except ConnectorError as error:
            raise SparkJobError(
                f"row {offset} of partition {partition} of the source of {self.name!r}: {error}"
            ) from None
        if len(values) != width:
            raise SparkJobError(
                f"row {offset} of partition {partition} of the source of {self.name!r} has {len(values)} values, "
                f"{shown(row, _MAX_SHOWN)}; its stream has {width} fields: {', '.join(self.fields)}"
            )
        for index, convert in self._converters:
            values[index] = convert(values[index])
        try:
            try:
                return normalize(values)
            except UnserializableValue:
                return normalize([plain(each) for each in values])
        except UnserializableValue as error:
            raise SparkJobError(
                f"row {offset} of partition {partition} of the source of {self.name!r}, {shown(row, _MAX_SHOWN)}: {error}"
            ) from None


def _sum(rows: list[list[Any]]) -> int:
    return crc32(marshal.dumps(rows, 0))


def rows_of(component: str, fields: Sequence[str], given: RDD[Any] | DataFrame) -> tuple[RDD[Any], list[Kind]]:
    """Return the source of a spout's stream as an RDD, and the kinds of a DataFrame's columns.

    Raises TopologyError for what can't be a source.
    """
    from pyspark import RDD

    if isinstance(given, RDD):
        return given, []
    if getattr(given, "isStreaming", False):
        raise TopologyError(
            f"the source of {component!r} is a streaming DataFrame, which has no end: run it with stream_topology, or read it "
            "with spark.read"
        )
    try:
        return exact_rows(columns_of(component, fields, given))
    except SPARK_ERRORS as error:  # Spark looks at rows that it has here when it plans
        raise_readable(error)


def columns_of(component: str, fields: Sequence[str], given: Any) -> DataFrame:
    """Return a stream's fields out of a DataFrame, streaming or not.

    Raises TopologyError as ``rows_of`` does.
    """
    schema = getattr(given, "schema", None)
    if schema is None or not hasattr(given, "columns"):
        raise TopologyError(
            f"the source of {component!r} is an RDD or a DataFrame, not {shown(given, _MAX_SHOWN)}; "
            "make one of a list with sc.parallelize(...)"
        )
    names = list(given.columns)
    missing = [field for field in fields if field not in names]
    if missing:
        raise TopologyError(
            f"the DataFrame for {component!r} has no column {missing[0]!r}; its stream's fields are "
            f"{', '.join(fields)}, its columns {', '.join(names)}: rename them with withColumnRenamed, or in the file"
        )
    twice = [field for field in fields if names.count(field) > 1]
    if twice:
        raise TopologyError(f"the DataFrame for {component!r} has two columns {twice[0]!r}; rename one")
    wanted = by_place(given).select(*[f"c{names.index(field)}" for field in fields]).toDF(*fields)
    try:
        kinds_of(wanted.schema)
    except ConnectorError as error:
        raise TopologyError(f"the DataFrame for {component!r}: {error}") from error
    return wanted


def fields_of_rows(spec: ComponentSpec, stream: str) -> tuple[str, ...]:
    """Return the fields of a spout's stream for which a source has values: all but a transactional spout's attempt."""
    fields = tuple(spec.streams[stream].fields)
    return fields[1:] if isinstance(spec.component, AnySpout) else fields


def check_sources(topology: Topology, sources: Mapping[Any, Any]) -> dict[tuple[str, str], Any]:
    """Return the sources by (spout, stream).

    Raises TopologyError for one of an unknown spout or stream, and for what belongs to another library.
    """
    found: dict[tuple[str, str], Any] = {}
    for key, given in sources.items():
        component, stream = key if isinstance(key, tuple) else (key, None)
        spec = topology.components.get(component)
        if spec is None or spec.kind != "spout":
            what = "is a bolt" if spec is not None else "is no component"
            raise TopologyError(
                f"sources: {component!r} {what} of topology {topology.name!r}; name a spout: "
                f"{did_you_mean(str(component), topology.spouts)}"
            )
        if stream is None:
            stream = next(iter(spec.streams)) if len(spec.streams) == 1 else "default"
        if stream not in spec.streams:
            raise TopologyError(
                f"sources: spout {component!r} has no stream {stream!r}; name one by ({component!r}, stream): "
                f"{did_you_mean(stream, spec.streams)}"
            )
        if (component, stream) in found:
            raise TopologyError(
                f"sources: stream {stream!r} of {component!r} has two sources; union() makes one of them"
            )
        why_not = unsuitable(given)
        if why_not is not None:
            raise TopologyError(f"the {type(given).__name__} for {component!r} can't be its source: {why_not}")
        found[component, stream] = given
    check_runs_here(topology, "Spark", {component for component, _ in found})
    return found
