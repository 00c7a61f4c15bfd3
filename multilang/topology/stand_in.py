"""Stand-ins: components that run here instead of those that only a cluster runs, written in Java."""

from __future__ import annotations

import os

from multilang.component.base import Component
from multilang.component.bolt import Bolt
from multilang.component.reliable import ReliableSpout
from multilang.component.spout import Spout
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.java import JavaComponent
from multilang.topology.replace import with_components

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from multilang.component.context import Context
    from multilang.topology.model import Topology

_JSON = (".json", ".jsonl", ".ndjson")


class LinesSpout(ReliableSpout):
    """Emits the tuples in the lines of a file, and replays failed ones; several tasks share the lines.

    Args:
        path: The file, in UTF-8. In one with a name that ends in ``.json``, ``.jsonl`` or ``.ndjson`` each line is an object with
            the stream's fields, or a list of their values; in any other, a line is the value of the only field.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        index, tasks = context.task_index, len(context.tasks(context.component))
        rows = read_rows(self.path, tuple(self.declared_streams()["default"].fields))
        self._rows = (row for number, row in enumerate(rows) if number % tasks == index)
        self._next = next(self._rows, None)

    def next_tuple(self) -> None:
        if self._next is not None:
            row, self._next = self._next, next(self._rows, None)
            self.emit(row)

    def exhausted(self) -> bool:
        return self._next is None


def read_rows(path: str, fields: tuple[str, ...]) -> Iterator[list[Any]]:
    """Return the values of each line of a file that replaces a spout.

    Args:
        path: The file.
        fields: The fields of the spout's default stream.

    Raises:
        TopologyError: A line has other fields; the message names it.
    """
    import ujson

    is_json = path.endswith(_JSON)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip("\r\n")
            if not is_json:
                yield [text]
                continue
            if not text.strip():
                continue
            try:
                found = ujson.loads(text)
            except ValueError as error:
                raise TopologyError(f"{path}, line {number}, is no JSON: {error}") from None
            if isinstance(found, dict) and set(found) == set(fields):
                yield [found[field] for field in fields]
            elif isinstance(found, list) and len(found) == len(fields):
                yield found
            else:
                raise TopologyError(
                    f"{path}, line {number}: write an object with {', '.join(fields)}, or a list of their {len(fields)} values"
                )


def with_stand_ins(topology: Topology, stand_ins: Mapping[str, str | Component | type[Component]]) -> Topology:
    """Return a topology in which Python components replace others, such as those written in Java.

    Args:
        topology: The topology, which is not changed.
        stand_ins: By component id, a component of Python with the same streams, or for a spout a file: see LinesSpout.

    Raises:
        TopologyError: There is no such component, or a stand-in does not have its streams.
    """
    made: dict[str, Component] = {}
    for id, given in stand_ins.items():
        spec = topology.declared.components.get(id)
        if spec is None:
            raise TopologyError(
                f"stand-in: topology {topology.name!r} has no component {id!r}; {did_you_mean(id, topology.declared.components)}"
            )
        if isinstance(given, str):
            fields = spec.streams["default"].fields if list(spec.streams) == ["default"] else ()
            if spec.kind != "spout" or not fields or (len(fields) > 1 and not given.endswith(_JSON)):
                raise TopologyError(
                    f"stand-in: a file of text stands in for a spout with one stream of one field, and one of JSON lines (.jsonl) for a "
                    f"spout with one stream; {spec.kind} {id!r} has {_streams(spec.streams)}: give {_what(given, spec.kind)}"
                )
            if not os.path.isfile(given):
                raise TopologyError(f"stand-in: {id!r} is to be read from {given}, and there is no such file")
            made[id] = LinesSpout(given)
            continue
        component = given() if isinstance(given, type) else given
        if not isinstance(component, Spout if spec.kind == "spout" else Bolt):
            raise TopologyError(f"stand-in: {id!r} is a {spec.kind}, and {given!r} is none")
        own = {name: (list(each.fields), each.direct) for name, each in component.declared_streams().items()}
        wanted = {name: (list(each.fields), each.direct) for name, each in spec.streams.items()}
        if own != wanted:
            raise TopologyError(
                f"stand-in: {id!r} has {_streams(spec.streams)}, and {type(component).__name__} has "
                f"{_streams(component.declared_streams())}; declare the same"
            )
        made[id] = component
    return with_components(topology, made, "stand-in")


def check_runs_here(topology: Topology, where: str, replaced: Collection[str] = ()) -> None:
    """Raise TopologyError for the first component that only a cluster of Storm's runs.

    Args:
        topology: The topology.
        where: The engine, for the message.
        replaced: Components that are not run.
    """
    for spec in topology.components.values():
        if isinstance(spec.component, JavaComponent) and spec.id not in replaced:
            instead = (
                f"--stand-in {spec.id}=FILE, with a tuple a line"
                if spec.kind == "spout"
                else f"--stand-in {spec.id}=module:Class, of a bolt in Python"
            )
            raise TopologyError(
                f"{spec.kind} {spec.id!r} is of the Java class {spec.component.java_class}, which runs on a cluster of Storm's and not on "
                f"{where}; give something in its place: {instead} (in a program: with_stand_ins)"
            )


def _streams(streams: Mapping[str, Any]) -> str:
    return "; ".join(f"{name!r} ({', '.join(each.fields)})" for name, each in streams.items()) or "no streams"


def _what(given: str, kind: str) -> str:
    return f"module:Class, of a {kind} in Python, in the place of {given}"
