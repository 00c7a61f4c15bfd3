"""The exchange in a component's process, for tasks whose streams travel in blocks."""

from __future__ import annotations

from multilang.exchange.bolt import BlockBoltCollector
from multilang.exchange.names import MAX_PENDING
from multilang.exchange.routes import Routes
from multilang.exchange.spout import BlockSpoutCollector, BlockSpoutRunner
from multilang.settings import EDGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.child.wire import Wire
    from multilang.child.wire_collectors import WireSpoutCollector
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.runner import SpoutRunner


class Exchange:
    """A task's exchange by the block.

    Args:
        wire: The task's wire.
        conf: The task's conf; the attribute ``conf`` is the same without the exchange's own settings.
        context: The task's context; the attribute ``context`` has the streams as the topology declared them.
    """

    def __init__(self, wire: Wire, conf: dict[str, Any], context: Context) -> None:
        self._wire = wire
        self._routes = Routes(conf, context)
        self.context = self._routes.context
        self.conf = {key: value for key, value in conf.items() if key != EDGES}
        if (pending := conf[EDGES].get("pending")) is not None:
            self.conf[MAX_PENDING] = pending

    def bolt(self, inner: BoltCollector) -> BlockBoltCollector:
        """Return the collector for a bolt."""
        collector = BlockBoltCollector(inner, self._wire, self._routes, self.conf)
        self._wire.blocks = collector
        return collector

    def spout(self, inner: WireSpoutCollector) -> BlockSpoutCollector:
        """Return the collector for a spout."""
        collector = BlockSpoutCollector(inner, self._wire, self._routes, self.conf)
        self._wire.blocks = collector
        return collector

    def runner(self, runner: SpoutRunner, collector: BlockSpoutCollector) -> BlockSpoutRunner:
        """Return the runner for a started spout."""
        return BlockSpoutRunner(runner, collector, self.conf)
