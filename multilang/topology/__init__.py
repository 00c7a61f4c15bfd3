"""Topologies: declared once, checked before anything runs, and read by every engine."""

from __future__ import annotations

from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.loading.topologies import load_object, load_topology
    from multilang.topology.builder import BoltDeclarer, SpoutDeclarer, TopologyBuilder
    from multilang.topology.errors import TopologyError
    from multilang.topology.groupings import CustomGrouping, Grouping, GroupingContext, chooser
    from multilang.topology.java import JavaBolt, JavaLong, JavaObject, JavaSpout
    from multilang.topology.model import ComponentSpec, Input, Topology
    from multilang.topology.shell import Foreign, ShellBolt, ShellComponent, ShellSpout

__all__ = [
    "BoltDeclarer",
    "ComponentSpec",
    "CustomGrouping",
    "Foreign",
    "Grouping",
    "GroupingContext",
    "Input",
    "JavaBolt",
    "JavaLong",
    "JavaObject",
    "JavaSpout",
    "ShellBolt",
    "ShellComponent",
    "ShellSpout",
    "SpoutDeclarer",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "chooser",
    "load_object",
    "load_topology",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".builder": (
            "BoltDeclarer",
            "SpoutDeclarer",
            "TopologyBuilder",
        ),
        ".errors": (
            "TopologyError",
            "TopologyError",
        ),
        ".groupings": (
            "CustomGrouping",
            "Grouping",
            "GroupingContext",
            "chooser",
        ),
        ".java": (
            "JavaBolt",
            "JavaLong",
            "JavaObject",
            "JavaSpout",
        ),
        ".model": (
            "ComponentSpec",
            "Input",
            "Topology",
        ),
        ".shell": (
            "Foreign",
            "ShellBolt",
            "ShellComponent",
            "ShellSpout",
        ),
        # The loader also knows other libraries' topologies, and is in a layer above this package.
        "multilang.loading.topologies": ("load_object", "load_topology"),
    },
)
