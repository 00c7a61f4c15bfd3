"""Wrappers: bolts that the topology runs around the user's components."""

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
    """A bolt around a component, by which a topology's transformation replaces it (see topology.transform).

    A subclass's ``start`` returns the function that runs a tuple, with as few calls as possible. It starts the wrapped
    bolt with its own collector, or with a BoltFilter around it, which changes ``emit``, ``ack`` or ``fail``.

    Args:
        wrapped: The component, as its topology declares it.
        factory: Its class, if the builder was given a class.
    """

    own_streams: ClassVar[Mapping[str, Stream]] = {}
    """Streams in addition to those of the wrapped component."""

    commits: ClassVar[bool] = False
    """True if it has a state that is committed at checkpoints; then it has ``uncommitted`` and ``worked``, too."""

    wrapped: Any

    def __init__(self, wrapped: Component, factory: type[Component] | None = None) -> None:
        self.wrapped = wrapped
        self.factory = factory
        self.component_conf = wrapped.component_conf  # type: ignore[misc]
        self.transformations = wrapped.transformations  # type: ignore[misc]  # those that were not applied yet

    def new_wrapped(self) -> Any:
        """Return a new copy of the wrapped component as the topology declares it, before it is started."""
        return deepcopy(self.wrapped) if self.factory is None else self.factory()

    def declared_streams(self) -> dict[str, Stream]:
        return {**self.wrapped.declared_streams(), **self.own_streams}

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        """Initialize the wrapper and the wrapped component; return the function that runs one tuple."""
        raise TypeError(f"{type(self).__name__} has no start method: define start(self, collector, conf, context)")

    def close(self) -> None:
        if hasattr(self.wrapped, "_collector"):  # it was started
            close(self.wrapped)

    @property
    def _metrics(self) -> MetricsRegistry | None:  # type: ignore[override]
        """The metrics of the wrapped component, which are the ones that get reported."""
        found: MetricsRegistry | None = self.wrapped._metrics
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Wrapper:
        twin = copy(self)
        twin.wrapped = self.new_wrapped()
        return twin


def innermost(component: Any) -> Any:
    """Return the user's component inside of its wrappers."""
    while getattr(component, "wrapped", None) is not None:  # a component in another language has none
        component = component.wrapped
    return component
