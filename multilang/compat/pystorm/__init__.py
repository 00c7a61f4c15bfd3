"""pystorm's names, on this library's engine: ``from pystorm import Bolt, Spout, Tuple``.

The semantics are those of pystorm 3.1.4. A component's process is this library's, and so are the embedded cluster,
Spark, the tests and the jar: ``multilang.compat.pystorm.running.adapted`` makes a component for a topology of a class.
"""

from __future__ import annotations

from multilang.compat.pystorm import component as own
from multilang.compat.pystorm.bolt import BatchingBolt, Bolt, TicklessBatchingBolt
from multilang.compat.pystorm.component import Component, Tuple
from multilang.compat.pystorm.spout import ReliableSpout, Spout
from multilang.compat.pystorm.version import VERSION as VERSION
from multilang.compat.pystorm.version import __version__ as __version__

__all__ = ["BatchingBolt", "Bolt", "Component", "ReliableSpout", "Spout", "TicklessBatchingBolt", "Tuple"]


def _run_alone(component: Component) -> None:
    from multilang.compat.pystorm.running import adapted

    adapted(component).run()


own.run_alone = _run_alone
