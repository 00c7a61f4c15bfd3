"""A topology as a Structured Streaming query: each micro-batch is a run of it, with which its states are committed."""

from __future__ import annotations

from spark_bridge.installed import check_pyspark

check_pyspark(__name__)  # before the imports that would fail without a word about the extra

from spark_bridge.stream.progress import BatchProgress  # noqa: E402
from spark_bridge.stream.query import TopologyQuery, stream_topology  # noqa: E402
from spark_bridge.stream.spout_source import register_spouts  # noqa: E402

__all__ = ["BatchProgress", "TopologyQuery", "register_spouts", "stream_topology"]
