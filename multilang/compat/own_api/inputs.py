"""The inputs of a bolt in streamparse's DSL, as subscriptions of this library's builder."""

from __future__ import annotations

import ast

from multilang.compat.own_api.parts import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.compat.own_api.parts import Part
    from multilang.compat.own_api.source import Source

_PLAIN = {
    "ALL": "all_grouping",
    "DIRECT": "direct_grouping",
    "GLOBAL": "global_grouping",
    "LOCAL_OR_SHUFFLE": "local_or_shuffle_grouping",
    "NONE": "none_grouping",
    "SHUFFLE": "shuffle_grouping",
}
_HOMES = ("streamparse.Grouping", "streamparse.dsl.Grouping", "streamparse.dsl.stream.Grouping")


class Inputs:
    """The inputs of a bolt.

    Args:
        bolt: The bolt's name.
        source: The file.
        source_of: Returns the name and class of the component that an expression stands for, if it is one.
        keep: Notes at a node why the topology stays as it is.

    Attributes:
        used: The names that are left unused when the inputs are written over, as nodes.
    """

    def __init__(
        self,
        bolt: str,
        source: Source,
        source_of: Callable[[ast.expr], tuple[str, Part] | None],
        keep: Callable[[Any, str], None],
    ) -> None:
        self.bolt = bolt
        self.source = source
        self.source_of = source_of
        self.keep = keep
        self.used: set[ast.AST] = set()

    def write(self, inputs: ast.expr) -> list[str]:
        """Return the calls that subscribe the bolt, ``.shuffle_grouping("lines")``; none if the inputs stay as they are."""
        found: dict[tuple[str, str], str] = {}
        for source, grouping in self._pairs(inputs):
            at = self._stream(source)
            if at is None:
                continue
            call = self._default(source, at) if grouping is None else self._grouping(grouping)
            if call is None:
                continue
            method, fields = call
            name, stream = at
            arguments = [quoted(name), *fields, *([] if stream == "default" else [f"stream={quoted(stream)}"])]
            found[at] = f".{method}({', '.join(arguments)})"
        return list(found.values())

    def _pairs(self, inputs: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
        """Return the sources with their groupings, which are None where none is written."""
        if isinstance(inputs, ast.Dict) and all(key is not None for key in inputs.keys):
            yield from ((key, value) for key, value in zip(inputs.keys, inputs.values, strict=True) if key is not None)
        elif isinstance(inputs, ast.List | ast.Tuple):
            yield from ((each, None) for each in inputs.elts)
        elif isinstance(inputs, ast.Name):
            yield inputs, None
        elif not (isinstance(inputs, ast.Constant) and inputs.value is None):
            self.keep(inputs, f"the inputs of {self.bolt!r} are not written as a list or a dict")

    def _stream(self, node: ast.expr) -> tuple[str, str] | None:
        """Return a source's name and stream."""
        stream = "default"
        of = node
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            of, stream = node.value, node.slice.value
        found = self.source_of(of)
        if found is None:
            text = self.source.segment(node)
            self.keep(node, f"the input {text} of {self.bolt!r} is no component that its class declares before")
            return None
        self.used.update(ast.walk(node))
        return found[0], stream

    def _default(self, source: ast.expr, at: tuple[str, str]) -> tuple[str, list[str]] | None:
        """Return the grouping of an input that names none."""
        if isinstance(source, ast.Subscript):
            return "shuffle_grouping", []
        found = self.source_of(source)
        is_direct = None if found is None else found[1].is_direct
        if is_direct is None:
            self.keep(
                source,
                f"the outputs of {at[0]!r} are not written as a list, so that the grouping of {self.bolt!r} is not known",
            )
            return None
        return ("direct_grouping" if is_direct else "shuffle_grouping"), []

    def _grouping(self, node: ast.expr) -> tuple[str, list[str]] | None:
        """Return the builder's method for a grouping, and its fields."""
        called = node.func if isinstance(node, ast.Call) else node
        home, _, name = (self.source.dotted(called) or "").rpartition(".")
        known = home in _HOMES
        if known and name in _PLAIN and called is node:
            self.used.update(ast.walk(node))
            return _PLAIN[name], []
        if known and name == "fields" and isinstance(node, ast.Call) and not node.keywords:
            fields = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.List) else node.args
            names = [each.value for each in fields if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if len(names) == len(fields) == len(set(names)) > 0:
                self.used.update(ast.walk(called))
                return "fields_grouping", [quoted(each) for each in names]
            self.keep(node, f"the fields by which {self.bolt!r} subscribes are not written as different texts")
        elif known and name.startswith("custom"):
            self.keep(node, f"{self.bolt!r} subscribes by a grouping in Java; write a CustomGrouping in Python instead")
        else:
            self.keep(node, f"the grouping of {self.bolt!r} is not written as one of Grouping's")
        return None
