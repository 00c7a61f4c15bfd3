"""streamparse's DSL for topologies."""

from __future__ import annotations

from multilang.compat.streamparse.dsl.stream import Grouping, Stream
from multilang.compat.streamparse.dsl.topology import Topology

__all__ = ["Grouping", "Stream", "Topology"]
