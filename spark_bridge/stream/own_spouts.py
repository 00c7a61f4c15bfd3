"""Spouts of a streaming query that have no source: each runs as a ``storm_spout``, with its log beside the
checkpoint.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from multilang.protocol.codec import dumps
from multilang.topology.errors import TopologyError
from multilang.topology.identity import submission
from multilang.transactional.api import AnySpout
from spark_bridge.job.declared import as_declared
from spark_bridge.stream.checkpoint import local_folder
from spark_bridge.stream.spout_source import register_spouts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology.model import ComponentSpec, Topology

FOLDER = "spouts"


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
