"""streamparse's names, on this library's engine: ``from streamparse import Bolt, Grouping, Spout, Topology``.

A topology of its DSL is one of this library's for whatever loads topologies: ``multilang run topologies/wordcount.py``.
"""

from __future__ import annotations

from multilang.compat.streamparse import bolt as bolt
from multilang.compat.streamparse import component as component
from multilang.compat.streamparse import dsl as dsl
from multilang.compat.streamparse import spout as spout
from multilang.compat.streamparse import storm as storm
from multilang.compat.streamparse.dsl import Grouping, Stream, Topology
from multilang.compat.streamparse.storm import (
    BatchingBolt,
    Bolt,
    JavaBolt,
    JavaSpout,
    ReliableSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    StormHandler,
    TicklessBatchingBolt,
    Tuple,
)
from multilang.compat.streamparse.version import VERSION as VERSION
from multilang.compat.streamparse.version import __version__ as __version__

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
    "bolt",
    "component",
    "dsl",
    "spout",
    "storm",
]
