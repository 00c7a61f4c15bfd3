"""The sources of a streaming query, which reads all of them as one DataFrame.

A spout that has no source runs as a ``storm_spout``, with its log beside the checkpoint.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from multilang.protocol.codec import dumps
from multilang.topology.errors import TopologyError
from multilang.topology.identity import submission
from multilang.transactional.api import AnySpout
from spark_bridge.job.plan import as_declared
from spark_bridge.job.sources import columns_of, fields_of_rows
from spark_bridge.sources.values import by_place
from spark_bridge.stream.checkpoint import local_folder
from spark_bridge.stream.spout_source import register_spouts, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import ComponentSpec, Topology


_SOURCE = "source"  # the column with the number of a row's source, if there are several
FOLDER = "spouts"


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


def own_spouts(
    topology: Topology, sources: Mapping[tuple[str, str], Any], conf: Mapping[str, Any], checkpoint: str
) -> dict[tuple[str, str], DataFrame]:
    """Return (spout, stream) -> what it emits, for each spout without a source, as rows for ``values_of``.

    Raises TopologyError where a spout can't run so.
    """
    sourced = {component for component, _ in sources}
    found = {}
    for id, spec in as_declared(topology).spouts.items():
        if id not in sourced:
            frame = _frame(topology, spec, conf, checkpoint)
            found[id, next(iter(spec.streams))] = frame
    return found


def log_of(folder: str | None, spout: str) -> str:
    """Return the file with the tuples of a spout, for the query whose checkpoint is in this folder of this machine."""
    return f"{folder}/{FOLDER}/{quote(spout, safe='')}.log"


def _frame(topology: Topology, spec: ComponentSpec, conf: Mapping[str, Any], checkpoint: str) -> DataFrame:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.types import BinaryType, StructField, StructType

    id, streams = spec.id, list(spec.streams)
    try:
        # Or the only one: a thread that Spark does not know has none that is active.
        spark: SparkSession | None = SparkSession.active()
    except PySparkException:
        spark = None
    origin = topology.origin
    folder = None if spark is None else local_folder(spark, checkpoint)
    problem = ""
    if spark is None:
        problem = "there is no Spark session"
    elif isinstance(spec.component, AnySpout):
        problem = "it makes transactions, and the query's batches are the transactions"
    elif len(streams) != 1:
        problem = f"it has the streams {', '.join(streams) or 'none'}"
    elif origin is None:
        problem = "another process runs it, which can't import the topology; make it in a module"
    elif folder is None:
        problem = f"{checkpoint} is no folder on this machine, where the log of what it emitted could be"
    if spark is None or origin is None or problem:
        raise TopologyError(
            f"spout {id!r} has no source, and can't run as it is ({problem}): give it one, {{{id!r}: spark.readStream...}}"
        )
    register_spouts(spark)
    reader = spark.readStream.format("storm_spout").options(topology=origin, spout=id, conf=dumps(dict(conf)))
    reader = reader.option("submission", dumps(submission(topology.declared, sys.argv, id)))
    columns = [StructField(field, BinaryType()) for field in spec.streams[streams[0]].fields]
    return reader.option("log", log_of(folder, id)).schema(StructType(columns)).load()
