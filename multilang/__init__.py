"""storm-multilang: Apache Storm components and whole topologies in Python.

The names below are imported when they are first used, so that a child process that needs only a few of them
starts fast.
"""

from __future__ import annotations

from multilang import alone
from multilang.helpers.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.component import (
        BasicBolt,
        BatchingBolt,
        Bolt,
        Component,
        Context,
        FailedException,
        LingeringBolt,
        ReliableSpout,
        ReportedFailedException,
        Spout,
        Stream,
        Tuple,
        Tuples,
    )
    from multilang.coordination import BatchBolt, KeyedFairBolt
    from multilang.errors import MultilangError
    from multilang.local import LocalCluster
    from multilang.state import KeyValueState, StatefulBasicBolt, StatefulBolt
    from multilang.topology import (
        CustomGrouping,
        JavaBolt,
        JavaLong,
        JavaObject,
        JavaSpout,
        ShellBolt,
        ShellSpout,
        Topology,
        TopologyBuilder,
    )

__version__ = "0.2.0"

__all__ = [
    "BasicBolt",
    "BatchBolt",
    "BatchingBolt",
    "Bolt",
    "Component",
    "Context",
    "CustomGrouping",
    "FailedException",
    "JavaBolt",
    "JavaLong",
    "JavaObject",
    "JavaSpout",
    "KeyValueState",
    "KeyedFairBolt",
    "LingeringBolt",
    "LocalCluster",
    "MultilangError",
    "ReliableSpout",
    "ReportedFailedException",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StatefulBasicBolt",
    "StatefulBolt",
    "Stream",
    "Topology",
    "TopologyBuilder",
    "Tuple",
    "Tuples",
    "__version__",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "multilang.component": (
            "BasicBolt",
            "BatchingBolt",
            "Bolt",
            "Component",
            "Context",
            "FailedException",
            "LingeringBolt",
            "ReliableSpout",
            "ReportedFailedException",
            "Spout",
            "Stream",
            "Tuple",
            "Tuples",
        ),
        "multilang.coordination": ("BatchBolt", "KeyedFairBolt"),
        "multilang.errors": ("MultilangError",),
        "multilang.local": ("LocalCluster",),
        "multilang.state": ("KeyValueState", "StatefulBasicBolt", "StatefulBolt"),
        "multilang.topology": (
            "CustomGrouping",
            "JavaBolt",
            "JavaLong",
            "JavaObject",
            "JavaSpout",
            "ShellBolt",
            "ShellSpout",
            "Topology",
            "TopologyBuilder",
        ),
    },
)


def _run_alone(component: Component) -> None:
    from multilang.child.process import run_component

    run_component(component)


alone.run_alone = _run_alone
