"""The cut between the rows that a job reads and those that the live topology reads after it.

The sources' positions are saved with the states. A spout under exact alignment goes on at the position that is beside
its topology's states, so each row is either counted in the saved states or comes after the position that was saved in
the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from multilang.checksums import extended
from multilang.component.errors import ChangedRowsError, ConnectorError
from multilang.errors import SparkJobError
from multilang.settings import ALIGNMENT, EXACT, value
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import TopologyError, did_you_mean
from spark_bridge.job.declared import as_declared
from spark_bridge.job.sources import check_sources, fields_of_rows
from spark_bridge.replayable import ReplayablePartitionSpout, marks_of, positions_at
from spark_bridge.sources.identity import Comparison, Mark, described
from spark_bridge.sources.source import PartitionSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from multilang.topology.model import Topology
    from spark_bridge.job.states import States

_BLOCK = 4096  # rows of one read


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
        """Return spout -> the positions at which its tasks go on, once the job has read the sources."""
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
                raise TopologyError(f"positions: spout {spout!r} goes on where its source ends; leave it out")
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
