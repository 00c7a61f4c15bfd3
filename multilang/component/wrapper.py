"""Components around a component: the wrapper is what the topology runs, the user's is what it stands around."""

from __future__ import annotations

from copy import copy, deepcopy

from multilang.component.bolt import Bolt
from multilang.component.runner import close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, TypeAlias

    from multilang.component.base import Component
    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.streams import Stream
    from multilang.protocol.messages import Tuple

    Execute: TypeAlias = Callable[[Tuple], object]


class Wrapper(Bolt):
    """A bolt around a component: a higher system puts it in the component's place (see topology.transform).

    ``wrapped``: the component, as its topology declares it; ``factory``: its class, when the builder was given that.
    A subclass says in ``start`` what happens to a tuple, in as few calls as can be: it may put functions of its own in
    the place of its collector's ``emit``, ``ack`` and ``fail`` before the wrapped bolt is started behind that.
    """

    own_streams: ClassVar[Mapping[str, Stream]] = {}
    """Streams besides those of the wrapped component."""

    wrapped: Any

    def __init__(self, wrapped: Component, factory: type[Component] | None = None) -> None:
        self.wrapped = wrapped
        self._factory = factory
        self.component_conf = wrapped.component_conf  # type: ignore[misc]

    def new_wrapped(self) -> Any:
        """The wrapped component afresh, as the topology declares it; asked before it is started."""
        return deepcopy(self.wrapped) if self._factory is None else self._factory()

    def declared_streams(self) -> dict[str, Stream]:
        return {**self.wrapped.declared_streams(), **self.own_streams}

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        """Initialize the wrapper and what it stands around; the function that runs one tuple."""
        raise TypeError(f"{type(self).__name__} has no start method: define start(self, collector, conf, context)")

    def close(self) -> None:
        if hasattr(self.wrapped, "_collector"):  # it was started
            close(self.wrapped)

    @property
    def _metrics(self) -> MetricsRegistry | None:  # type: ignore[override]
        """Those of the wrapped component, for whoever reports them."""
        found: MetricsRegistry | None = self.wrapped._metrics
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapper:
        twin = copy(self)
        twin.wrapped = self.new_wrapped()
        return twin


def innermost(component: Any) -> Any:
    """The user's component behind its wrappers."""
    while getattr(component, "wrapped", None) is not None:  # one in another language has none
        component = component.wrapped
    return component
