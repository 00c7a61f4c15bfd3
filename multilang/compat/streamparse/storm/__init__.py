"""pystorm's classes with streamparse's additions."""

from __future__ import annotations

from multilang.compat.pystorm import Tuple
from multilang.compat.streamparse.storm.bolt import BatchingBolt, Bolt, JavaBolt, ShellBolt, TicklessBatchingBolt
from multilang.compat.streamparse.storm.component import Component, StormHandler
from multilang.compat.streamparse.storm.spout import JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "TicklessBatchingBolt",
    "Tuple",
]
