"""RDD partitions as replayable spout sources, and topologies run as Spark jobs.

This is the only package of storm-multilang that may import pyspark (extra ``spark``). Its names are imported when they
are first used, because a spout's process reads a source without Spark.
"""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component.errors import ChangedRowsError, ConnectorError, SourceUnavailable
    from spark_bridge.replayable import ReplayablePartitionSpout
    from spark_bridge.sources.live import RDDSource
    from spark_bridge.sources.publish import publish
    from spark_bridge.sources.published import PublishedSource
    from spark_bridge.sources.serve import Served, serve
    from spark_bridge.sources.served import ServedSource
    from spark_bridge.sources.source import ListSource, PartitionSource, Progress
    from spark_bridge.sources.store import forget_progress, rename_progress
    from spark_bridge.spout import PartitionSpout, open_source
    from spark_bridge.transactional import OpaqueTransactionalPartitionSpout, TransactionalPartitionSpout

__all__ = [
    "ChangedRowsError",
    "ConnectorError",
    "ListSource",
    "OpaqueTransactionalPartitionSpout",
    "PartitionSource",
    "PartitionSpout",
    "Progress",
    "PublishedSource",
    "RDDSource",
    "ReplayablePartitionSpout",
    "Served",
    "ServedSource",
    "SourceUnavailable",
    "TransactionalPartitionSpout",
    "forget_progress",
    "open_source",
    "publish",
    "rename_progress",
    "serve",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "multilang.component.errors": ("ChangedRowsError", "ConnectorError", "SourceUnavailable"),
        "spark_bridge.replayable": ("ReplayablePartitionSpout",),
        "spark_bridge.sources.live": ("RDDSource",),
        "spark_bridge.sources.publish": ("publish",),
        "spark_bridge.sources.published": ("PublishedSource",),
        "spark_bridge.sources.serve": ("Served", "serve"),
        "spark_bridge.sources.served": ("ServedSource",),
        "spark_bridge.sources.source": ("ListSource", "PartitionSource", "Progress"),
        "spark_bridge.sources.store": ("forget_progress", "rename_progress"),
        "spark_bridge.spout": ("PartitionSpout", "open_source"),
        "spark_bridge.transactional": ("OpaqueTransactionalPartitionSpout", "TransactionalPartitionSpout"),
    },
)
