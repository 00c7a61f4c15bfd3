"""The sources of a run: an RDD, a DataFrame or a PartitionSource for each spout. A row is a spout tuple, with its offset as message id."""

from __future__ import annotations

import marshal
from array import array
from collections import deque
from hashlib import blake2b
from itertools import count, islice
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pyspark.accumulators import AccumulatorParam

from multilang.component.errors import ChangedRowsError, ConnectorError
from multilang.connectors.values import plain
from multilang.errors import SparkJobError
from multilang.helpers.checksums import extended
from multilang.protocol.codec import normalize
from multilang.protocol.errors import UnserializableValue, shown
from multilang.settings import ALIGNMENT, EXACT, value
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.stand_in import check_runs_here
from multilang.transactional.api import AnySpout
from spark_bridge.installed import unsuitable
from spark_bridge.job.plan import as_declared
from spark_bridge.job.watch import SPARK_ERRORS, collected, raise_readable
from spark_bridge.replayable import ReplayablePartitionSpout, marks_of, positions_at
from spark_bridge.sources.source import Comparison, Mark, PartitionSource, described
from spark_bridge.sources.values import by_place, converter, exact_rows, in_order, kinds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import ComponentSpec, Topology
    from spark_bridge.job.state import States
    from spark_bridge.sources.values import Kind

    Row = tuple[int | None, list[Any], str | None, int | None]

_MAX_SHOWN = 200  # characters of a row in a message
_SUMMED = 512  # rows that share a checksum
_PIECE = 32  # rows that are in memory at once, a divisor of it
_BLOCK = 4096  # rows of one read
_MASK = (1 << 63) - 1


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
        self.bytes = 0  # about how long the rows were that were read since whoever reads has set this to 0

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
        for start in count(0, _SUMMED):
            for offset, found in self._summed(partition, start, rows, sums):
                for values in found:
                    yield offset, values, None, None
                    offset += 1
            if len(sums) * _SUMMED <= start:
                return

    def _summed(
        self, partition: int, start: int, rows: Iterator[Any], sums: array[int]
    ) -> Iterator[tuple[int, list[list[Any]]]]:
        """Return the values of up to _SUMMED rows, piece by piece with its offset, and add their checksum to ``sums``."""
        total = 0
        end = start
        while end < start + _SUMMED and (piece := list(islice(rows, _PIECE))):
            found = [self._values(partition, offset, row) for offset, row in enumerate(piece, end)]
            text = marshal.dumps(found, 0)  # before the rows are given away: a bolt in this process may change them
            total = crc32(text, total)
            self.bytes += len(text)
            yield end, found
            end += len(found)
        if end > start:
            sums.append(total)

    def _again(self, partition: int, rows: Iterator[Any], wanted: Sequence[int]) -> Iterator[Row]:
        """Return the wanted rows, after checking that they and their neighbours have not changed."""
        known = self.known.get(partition)
        places: dict[int, list[int]] = {}
        for offset in wanted:
            places.setdefault(offset // _SUMMED, []).append(offset)
        for number in range(max(places) + 1):
            start = number * _SUMMED
            due = places.get(number)
            if due is None:
                deque(islice(rows, _SUMMED), 0)
                continue
            sums = array("I")
            again = {
                offset: values
                for first, found in self._summed(partition, start, rows, sums)
                for offset, values in enumerate(found, first)
                if offset in due
            }
            if len(again) < len(due):
                self._refuse(partition, "fewer rows than when it was read first")
            if known is not None and list(known[number : number + 1]) != list(sums):
                self._refuse(partition, f"other rows, from offset {start} on, than when it was read first")
            for offset, values in again.items():
                yield offset, values, None, None

    def _refuse(self, partition: int, what: str) -> None:
        raise SparkJobError(
            f"partition {partition} of the source of {self.name!r} has {what}: "
            "an RDD must give the same rows each time that it is computed. Give its random numbers a seed, sort what a shuffle left "
            "in any order, checkpoint() it, or publish() it and read that"
        )

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


class _Summed:
    """Runs in an executor: the number of a partition's rows, and the sum of their hashes."""

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[tuple[int, int]]:
        count = total = 0
        for _, values, _, _ in self._reader.read(partition, rows):
            count += 1
            total += int.from_bytes(blake2b(marshal.dumps(values, 0), digest_size=8).digest(), "big")
        yield count, total & _MASK


def fingerprint(rows: RDD[Any], reader: SourceReader, description: str) -> list[int]:
    """Return the number of a source's rows and the sum of their hashes, whatever their order and partitions.

    Args:
        rows: The rows, which are read for this.
        reader: Reads them.
        description: Of the Spark job, in its UI.
    """
    found = collected(rows.mapPartitionsWithIndex(_Summed(reader)), description)
    return [sum(count for count, _ in found), sum(total for _, total in found) & _MASK]


class Cut:
    """The sources of a job and where they end. ``sources``: as given, with an RDD for each PartitionSource."""

    def __init__(
        self,
        topology: Topology,
        sources: Mapping[Any, Any],
        positions: Mapping[str, Sequence[Any]],
        spark: SparkSession,
        before: States | None,
        after: States | None,
    ) -> None:
        self._declared = as_declared(topology)
        self._is_exact = value(topology.conf, ALIGNMENT) == EXACT
        self._positions: dict[str, Sequence[Any]] = dict(positions)
        self._ends: dict[str, _Ends] = {}
        if positions and after is None:
            raise TopologyError("positions are saved with the states: name their place, state or save_state")
        for spout, each in positions.items():
            self._check(spout, each)
        self.sources = dict(sources)
        for key, given in sources.items():
            if isinstance(given, PartitionSource):
                self.sources[key] = self._rows(key, given, spark, before, after)

    def positions(self) -> dict[str, Sequence[Any]]:
        """Return spout -> the positions from which its tasks resume, once the job has read the sources."""
        return {**self._positions, **{spout: ends.positions() for spout, ends in self._ends.items()}}

    def _check(self, spout: str, positions: Sequence[Any]) -> None:
        spec = self._declared.components.get(spout)
        if spec is None or spec.kind != "spout":
            raise TopologyError(f"positions: {spout!r} is no spout; {did_you_mean(spout, self._declared.spouts)}")
        if not self._is_exact or not isinstance(spec.component, ReplayableSpout):
            raise TopologyError(
                f"positions: spout {spout!r} can't continue there: it must be a ReplayableSpout, and the topology must be "
                "built with exact alignment"
            )
        if isinstance(positions, str) or len(positions) != spec.tasks or None in positions:
            raise TopologyError(
                f"positions: spout {spout!r} has {spec.tasks} tasks, and {positions!r} is not a list of one position for each of them"
            )

    def _rows(
        self, key: Any, source: PartitionSource, spark: SparkSession, before: States | None, after: States | None
    ) -> RDD[Any]:
        """Return the source's rows, from the state's position to their present end."""
        ((spout, stream),) = check_sources(self._declared, {key: source})
        spec = self._declared.components[spout]
        fields = fields_of_rows(spec, stream)
        if tuple(source.fields) != fields:
            raise TopologyError(
                f"the source of {spout!r} has the fields {', '.join(source.fields)}, and its stream {', '.join(fields)}"
            )
        begins: dict[int, Mark] = {}
        totals: dict[int, int] = {}
        sums: _Ends | None = None
        ends = {partition: source.count(partition) for partition in range(source.partitions)}
        if self._is_exact and isinstance(spec.component, ReplayablePartitionSpout):
            if before is not None:
                begins = marks_of(before.positions(spout))
            if spout in self._positions:
                raise TopologyError(f"positions: spout {spout!r} resumes where its source ends; leave it out")
            self._check_begins(spout, begins, ends)
            try:
                totals = Comparison(
                    source, begins, "the jobs and topologies whose state this is", "an empty state"
                ).finish()
            except ChangedRowsError as error:
                raise TopologyError(str(error)) from error
            if after is not None:
                sums = self._ends[spout] = _Ends(source, ends, spec.tasks, spark)
        elif after is not None:
            raise TopologyError(
                f"where the source of {spout!r} ends can't be saved with the states, so that the live topology would read it "
                "from the beginning: make the spout a ReplayablePartitionSpout, with exact alignment; or give an RDD or a "
                "DataFrame of what it does not read"
            )
        sc = spark.sparkContext
        read = _reader(
            source, {each: mark.watermark for each, mark in begins.items()}, ends, totals, sums and sums.found
        )
        return sc.parallelize(range(len(ends)), max(len(ends), 1)).mapPartitions(read)

    def _check_begins(self, spout: str, begins: Mapping[int, Mark], ends: Mapping[int, int]) -> None:
        for partition, mark in begins.items():
            if mark.watermark > ends.get(partition, 0):
                raise TopologyError(
                    f"the state has {mark.watermark} rows of partition {partition} of the source of {spout!r}, which ends at "
                    f"{ends.get(partition, 0)}: this is another source, or a cut before the state's"
                )


class _Ends:
    """The ends of a source's partitions, with the checksums there.

    ``found``: the accumulator in which executors put what they read.
    """

    def __init__(self, source: PartitionSource, ends: Mapping[int, int], tasks: int, spark: SparkSession) -> None:
        self._about = described(source)
        self._source = source
        self._ends = dict(ends)
        self._tasks = tasks
        self.found = spark.sparkContext.accumulator({}, _Totals())

    def positions(self) -> list[dict[str, Any]]:
        """Return the position of each task of the spout."""
        totals = self.found.value
        marks = {}
        for each, end in self._ends.items():
            if len(totals.get(each, {0})) != 1:
                raise SparkJobError(
                    f"partition {each} of {self._source.name!r} gave other rows the second time that it was read: a source must "
                    "give the same rows each time; sort it, checkpoint() it, or publish() it"
                )
            (total,) = totals.get(each, {0})
            marks[each] = Mark(end, total)
        return positions_at(marks, self._about, self._tasks)


class _Totals(AccumulatorParam[dict[int, set[int]]]):
    """An accumulator of partition -> the checksums that were found.

    There is only one for each partition, however often Spark ran the task, unless the rows changed.
    """

    def zero(self, value: dict[int, set[int]]) -> dict[int, set[int]]:
        return {}

    def addInPlace(self, value1: dict[int, set[int]], value2: dict[int, set[int]]) -> dict[int, set[int]]:  # noqa: N802
        for partition, totals in value2.items():
            value1.setdefault(partition, set()).update(totals)
        return value1


def _reader(
    source: PartitionSource, begins: Mapping[int, int], ends: Mapping[int, int], totals: Mapping[int, int], found: Any
) -> Any:
    def read(partitions: Iterable[int]) -> Iterator[Any]:
        for partition in partitions:
            offset, end, total = begins.get(partition, 0), ends[partition], totals.get(partition, 0)
            while offset < end:
                rows = source.read(partition, offset, min(_BLOCK, end - offset))
                if not rows:
                    raise ConnectorError(
                        f"partition {partition} of {source.name!r} ends at {offset}, and had {end} rows before"
                    )
                if found is not None:
                    total = extended(total, rows)
                yield from map(tuple, rows)
                offset += len(rows)
            if found is not None:
                found.add({partition: {total}})

    return read
