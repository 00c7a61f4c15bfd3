"""Chains in a component's process: the members behind one another, and the names of what comes from other chains."""

from __future__ import annotations

from multilang.chains.component import Chain
from multilang.chains.running import Running
from multilang.chains.view import View
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.child.wire import Wire
    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context


class Chaining:
    """A task of a topology with chains.

    Args:
        wire: The task's wire.
        conf: The task's conf; ``conf`` is that of its component as it was declared, or of the first member.
        context: The task's context; ``context`` is the same as it was declared.
    """

    def __init__(self, wire: Wire, conf: dict[str, Any], context: Context) -> None:
        self._wire = wire
        self._local = conf.get("multilang.parent") == "local"
        self.view = View(conf, context)
        first = self.view.components[0]
        self.conf = self.view.conf(first)
        self.context = self.view.context(first)
        wire.connection.schema.update(self.view.schema())

    def component(self, find: Callable[[Context], Component]) -> Component:
        """Return the component that the task runs."""
        view = self.view
        if view.chain is None:
            return find(self.context)
        return Chain({id: find(view.context(id)) for id in view.components})

    def start(self, component: Component, collector: BoltCollector) -> None:
        """Prepare a chain for its start with this collector."""
        if isinstance(component, Chain):
            component.running = Running(component.members, collector, self._wire, self.view, self._local)

    def receiver(self, execute: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """Return the function that takes a tuple off the wire for ``execute``, with its source as declared."""
        source = self.view.source
        if not self.view.renames:
            return execute

        def receive(tup: Tuple) -> None:
            if type(tup) is Tuple:  # those of blocks know it
                tup.component, tup.stream, tup.task = source(tup.component, tup.stream, tup.task)
            execute(tup)

        return receive
