"""``--top``: the greatest values of one field, by another, among the tuples of a component."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Any

import click

from multilang.helpers.masked import masked
from multilang.topology.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from multilang.cli.arguments import Top
    from multilang.protocol import Tuple
    from multilang.topology import Topology


class Ranking:
    """The last value of each key, or its number of tuples, ranked on demand."""

    def __init__(self, top: Top, topology: Topology) -> None:
        spec = topology.components.get(top.component)
        if spec is None:
            raise _refusal(f"there is no component {top.component!r}", top.component, topology.components)
        stream = spec.streams.get(top.stream)
        if stream is None:
            raise _refusal(f"{top.component!r} has no stream {top.stream!r}", top.stream, spec.streams)
        for name in (top.key, top.value):
            if name is not None and name not in stream.fields:
                what = f"{top.component!r}" + ("" if top.stream == "default" else f", stream {top.stream!r},")
                raise _refusal(f"{what} emits no field {name!r}", name, stream.fields)
        self.top = top
        self._key = stream.fields.index(top.key)
        self._value = None if top.value is None else stream.fields.index(top.value)
        self._seen: dict[Any, Any] = {}

    def add(self, tup: Tuple) -> None:
        """Add one tuple of the stream."""
        values = tup.values
        key = values[self._key]
        if isinstance(key, list | dict):
            key = str(key)
        self._seen[key] = self._seen.get(key, 0) + 1 if self._value is None else values[self._value]

    def rows(self, number: int) -> list[tuple[Any, Any]]:
        """Return the greatest, equal ones in the order of their keys' text, without secrets. Values that are no numbers come last."""
        ranked = nsmallest(number, self._seen.items(), key=_rank)
        return [(masked(key, self.top.key), masked(value, self.top.value)) for key, value in ranked]


def _rank(item: tuple[Any, Any]) -> tuple[float, str]:
    key, value = item
    return (-value if isinstance(value, int | float) else float("inf"), str(key))


def _refusal(what: str, wrong: str, known: Iterable[str]) -> click.BadParameter:
    return click.BadParameter(f"{what}; {did_you_mean(wrong, known)}", param_hint="--top")
