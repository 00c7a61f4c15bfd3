"""The base of the adapters: components of this library that run components of another library."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Adapter:
    """A component of this library that runs one of another library's.

    Args:
        given: The other library's class, of which each task makes its own instance, or an instance.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.
    """

    def __init__(self, given: Any, output_fields: Any = None, output_streams: Any = None) -> None:
        self.given = given
        self.output_fields = output_fields
        self.output_streams = output_streams

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        given = self.given if isinstance(self.given, type) else deepcopy(self.given, memo)
        return type(self)(given, self.output_fields, self.output_streams)

    def __reduce__(self) -> Any:
        return _remade, (type(self).__base__, self.given, self.output_fields, self.output_streams)

    def made(self) -> Any:
        """Return the instance that a task runs."""
        return self.given() if isinstance(self.given, type) else self.given


def around(adapter: Any, given: Any, output_fields: Any = None, output_streams: Any = None) -> Any:
    """Return an adapter of a component, whose class has the name of the component's class.

    Errors, diagrams and lists name a component by its class, and users know only their own.

    Args:
        adapter: The adapter's class.
        given: The class or the instance that it runs.
        output_fields: The fields of the default stream.
        output_streams: Further streams by name.
    """
    kind = given if isinstance(given, type) else type(given)
    return _named(adapter, kind)(given, output_fields, output_streams)


def own(given: Any, output_fields: Any = None, output_streams: Any = None) -> Any:
    """Return a component of this library's own, which may be beside those of another library; None for any other.

    Args:
        given: The class, or an instance.
        output_fields: The fields of the default stream; None: those that the class declares.
        output_streams: Further streams by name.
    """
    kind = given if isinstance(given, type) else type(given)
    if not issubclass(kind, Component):
        return None
    component = given() if isinstance(given, type) else given
    if output_fields is not None or output_streams:
        component.output_fields = output_fields
        component.output_streams = output_streams
    return component


@cache
def _named(adapter: type, kind: type) -> Any:
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (adapter,), names)


def _remade(adapter: type, given: Any, output_fields: Any, output_streams: Any) -> Any:
    return around(adapter, given, output_fields, output_streams)
