"""A topology as a Structured Streaming query: each micro-batch is a run of it, with which its states are committed."""

from __future__ import annotations

from spark_bridge.stream.progress import BatchProgress
from spark_bridge.stream.query import TopologyQuery, stream_topology
from spark_bridge.stream.spout_source import register_spouts

__all__ = ["BatchProgress", "TopologyQuery", "register_spouts", "stream_topology"]
