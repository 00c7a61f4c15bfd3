"""The sources of a streaming query, which reads all of them as one DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.topology.errors import TopologyError
from spark_bridge.job.sources import columns_of, fields_of_rows
from spark_bridge.sources.exact import by_place
from spark_bridge.stream.columns import values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import Topology

_SOURCE = "source"  # the column with the number of a row's source, if there are several


class Frames:
    """The sources.

    ``given`` and ``own``: (spout, stream) -> streaming DataFrame; the rows in ``own`` are for ``values_of``.

    ``union``: one DataFrame of all rows; ``columns``: those of each source.
    """

    def __init__(
        self,
        topology: Topology,
        given: Mapping[tuple[str, str], Any],
        own: Mapping[tuple[str, str], DataFrame],
    ) -> None:
        sources = {**given, **own}
        self._own = own.keys()
        if not sources:
            raise TopologyError(f"topology {topology.name!r}: name a streaming DataFrame for each of its spouts")
        self._keys = sorted(sources)  # sorted, because Spark's checkpoint identifies sources only by their order
        frames: list[DataFrame] = []
        for component, stream in self._keys:
            source = sources[component, stream]
            fields = fields_of_rows(topology.components[component], stream)
            if not getattr(source, "isStreaming", False):
                raise TopologyError(
                    f"the source of {component!r} is not a streaming DataFrame: make it with spark.readStream, or run what is "
                    "bounded with run_topology"
                )
            frames.append(columns_of(component, fields, source))
        self.spouts = {component for component, _ in sources}
        self.session: SparkSession = frames[0].sparkSession
        self.columns = {"/".join(key): frame.columns for key, frame in zip(self._keys, frames, strict=True)}
        self.union = frames[0] if len(frames) == 1 else _union(frames)

    def of(self, batch: DataFrame) -> dict[tuple[str, str], DataFrame | RDD[Any]]:
        """Return a batch's rows by source."""
        rows = {self._keys[0]: batch}
        if len(self._keys) > 1:
            rows = {
                key: batch.where(batch[_SOURCE] == number).select(f"row{number}.*").toDF(*self.columns["/".join(key)])
                for number, key in enumerate(self._keys)
            }
        return {key: frame.rdd.map(values_of) if key in self._own else frame for key, frame in rows.items()}


def _union(frames: list[DataFrame]) -> DataFrame:
    """Return the union of rows of several shapes: each source has a column for its own rows."""
    from pyspark.sql import functions as f

    placed = [by_place(frame) for frame in frames]

    def wide(number: int, frame: DataFrame) -> DataFrame:
        rows = [
            f.struct(*frame.columns) if place == number else f.lit(None).cast(other.schema)
            for place, other in enumerate(placed)
        ]
        return frame.select(f.lit(number).alias(_SOURCE), *(row.alias(f"row{n}") for n, row in enumerate(rows)))

    union = wide(0, placed[0])
    for number, frame in enumerate(placed[1:], 1):
        union = union.unionAll(wide(number, frame))
    return union
