"""The cut between what a job reads and what the live topology reads after it: the sources' positions, saved with the states.

What a spout under exact alignment finds beside its topology's states is where it goes on. So a row is either counted in the states
that were saved, or comes behind the positions that were saved in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.state.replayable import ReplayableSpout
from multilang.state.settings import EXACT, alignment
from multilang.topology.errors import did_you_mean
from spark_bridge.job.declared import as_declared
from spark_bridge.job.errors import NotOnSparkError
from spark_bridge.job.sources import check_sources, fields_of_rows
from spark_bridge.replayable import ReplayablePartitionSpout, offsets_of, positions_at
from spark_bridge.sources.errors import SourceError
from spark_bridge.sources.source import PartitionSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark import RDD
    from pyspark.sql import SparkSession

    from multilang.topology.model import Topology
    from spark_bridge.job.states import States

_BLOCK = 4096  # rows that are asked for at once


class Cut:
    """``sources``: as given, with an RDD for each PartitionSource; ``positions``: spout -> where its tasks go on."""

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
        self._is_exact = alignment(topology.conf) == EXACT
        self.positions: dict[str, Sequence[Any]] = dict(positions)
        if positions and after is None:
            raise NotOnSparkError("positions are saved with the states: name their place, save_state")
        for spout, each in positions.items():
            self._check(spout, each)
        self.sources = dict(sources)
        for key, given in sources.items():
            if isinstance(given, PartitionSource):
                self.sources[key] = self._rows(key, given, spark, before, after)

    def _check(self, spout: str, positions: Sequence[Any]) -> None:
        spec = self._declared.components.get(spout)
        if spec is None or spec.kind != "spout":
            raise NotOnSparkError(f"positions: {spout!r} is no spout; {did_you_mean(spout, self._declared.spouts)}")
        if not self._is_exact or not isinstance(spec.component, ReplayableSpout):
            raise NotOnSparkError(
                f"positions: spout {spout!r} would not go on there: that takes exact alignment, which is settled when the "
                "topology is built, and a ReplayableSpout"
            )
        if isinstance(positions, str) or len(positions) != spec.tasks or None in positions:
            raise NotOnSparkError(
                f"positions: spout {spout!r} has {spec.tasks} tasks, so that {positions!r} is not a position for each of them"
            )

    def _rows(
        self, key: Any, source: PartitionSource, spark: SparkSession, before: States | None, after: States | None
    ) -> RDD[Any]:
        """The source's rows, from where the state is to where they end now."""
        ((spout, stream),) = check_sources(self._declared, {key: source})
        spec = self._declared.components[spout]
        fields = fields_of_rows(spec, stream)
        if tuple(source.fields) != fields:
            raise NotOnSparkError(
                f"the source of {spout!r} has the fields {', '.join(source.fields)}, and its stream {', '.join(fields)}"
            )
        begins: dict[int, int] = {}
        ends = {partition: source.count(partition) for partition in range(source.partitions)}
        if self._is_exact and isinstance(spec.component, ReplayablePartitionSpout):
            if before is not None:
                begins = offsets_of(before.positions(spout))
            if spout in self.positions:
                raise NotOnSparkError(f"positions: spout {spout!r} goes on where its source ends; leave it out")
            self.positions[spout] = positions_at(ends, spec.tasks)
        elif after is not None:
            raise NotOnSparkError(
                f"where the source of {spout!r} ends can't be saved with the states, so that the live topology would read it "
                "from the beginning: make the spout a ReplayablePartitionSpout, with exact alignment; or give an RDD or a "
                "DataFrame of what it does not read"
            )
        for partition, begin in begins.items():
            if begin > ends.get(partition, 0):
                raise NotOnSparkError(
                    f"the state has {begin} rows of partition {partition} of the source of {spout!r}, which ends at "
                    f"{ends.get(partition, 0)}: this is another source, or a cut before the state's"
                )
        sc = spark.sparkContext
        return sc.parallelize(range(len(ends)), max(len(ends), 1)).mapPartitions(_reader(source, begins, ends))


def _reader(source: PartitionSource, begins: Mapping[int, int], ends: Mapping[int, int]) -> Any:
    def read(partitions: Iterable[int]) -> Iterator[Any]:
        for partition in partitions:
            offset, end = begins.get(partition, 0), ends[partition]
            while offset < end:
                rows = source.read(partition, offset, min(_BLOCK, end - offset))
                if not rows:
                    raise SourceError(
                        f"partition {partition} of {source.name!r} ends at {offset}, and had {end} rows before"
                    )
                yield from map(tuple, rows)
                offset += len(rows)

    return read
