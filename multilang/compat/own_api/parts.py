"""The component classes that topologies name, of whichever library, with what their topologies must know of them."""

from __future__ import annotations

import ast
import json
import os
from dataclasses import dataclass

from multilang.compat.own_api.declarations import STREAMS, stream_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Any

    from multilang.compat.own_api.classes import Found, Project
    from multilang.compat.own_api.source import Source

_OWN = {
    f"{home}{name}": name == "Spout" or name == "ReliableSpout"
    for home in ("multilang.", "multilang.component.")
    for name in ("BasicBolt", "BatchingBolt", "Bolt", "LingeringBolt", "ReliableSpout", "Spout")
}


@dataclass(frozen=True)
class Part:
    """A component class.

    Attributes:
        is_spout: Whether it is a spout.
        is_own: Whether it is one of this library's, or becomes one.
        is_direct: Whether its default stream is direct; None if that can't be read from the text.
        par: Its number of tasks; None if it has none.
        par_source: The file in which that is written.
        config: Its conf; None if it has none.
        unseen: Why that may not be all; empty if it is.
    """

    is_spout: bool
    is_own: bool
    is_direct: bool | None
    par: ast.expr | None
    par_source: Source
    config: ast.expr | None
    unseen: str


class Parts:
    """The component classes of a project.

    Args:
        project: The project.
        accepted: The classes that are written over to this library's.
    """

    def __init__(self, project: Project, accepted: Collection[Found]) -> None:
        self.project = project
        self.accepted = set(accepted)

    def find(self, expression: ast.expr, source: Source) -> Part | None:
        """Return the component class that an expression names; None if it names none of the project's."""
        found = self.project.resolve(expression, source)
        if found is not None and found.kind.library == "streamparse":
            values = [(each.source, each.node) for each in found.line]
            is_own = found in self.accepted
            return self._part(values, found.kind.is_spout, is_own, ("outputs",), "config", source, expression)
        line, is_spout = self._own_line(expression, source)
        if is_spout is None:
            return None
        return self._part(line, is_spout, True, ("output_fields", "outputs"), "component_conf", source, expression)

    def _own_line(self, expression: ast.expr, source: Source) -> tuple[list[tuple[Source, ast.ClassDef]], bool | None]:
        """Return a class of this library's with its bases in the project, and whether it is a spout; None if it is no such class."""
        line: list[tuple[Source, ast.ClassDef]] = []
        while len(line) < 8:
            is_spout = _OWN.get(source.dotted(expression) or "")
            if is_spout is not None:
                return line, is_spout
            at = self.project.definition(expression, source)
            if at is None or len(at[1].bases) != 1:
                break
            line.append(at)
            source, expression = at[0], at[1].bases[0]
        return [], None

    def _part(
        self,
        line: list[tuple[Source, ast.ClassDef]],
        is_spout: bool,
        is_own: bool,
        outputs: tuple[str, ...],
        config: str,
        source: Source,
        expression: ast.expr,
    ) -> Part:
        par, par_source = _value(line, "par")
        conf, _ = _value(line, config)
        declared, of = _given_outputs(source, expression), source
        for name in outputs if declared is None else ():
            declared, at = _value(line, name)
            if declared is not None and at is not None:
                of = at
                break
        return Part(
            is_spout,
            is_own,
            False if declared is None else _is_direct(declared, of),
            par,
            par_source or source,
            None if conf is not None and isinstance(conf, ast.Constant) and conf.value is None else conf,
            self._unseen(line, ("par", config)),
        )

    def _unseen(self, line: list[tuple[Source, ast.ClassDef]], names: tuple[str, ...]) -> str:
        """Return why declarations of a class may be at other places than the assignments of its body; empty if they are not."""
        for source, node in line:
            if len([each for each in node.bases if source.segment(each) != "object"]) > 1:
                return f"has several base classes, and what {node.name} declares may be in any of them"
            if node.decorator_list or node.keywords:
                return "has a decorator or a metaclass, which may change what it declares"
            plain = {id(target) for each in node.body if isinstance(each, ast.Assign) for target in each.targets}
            for each in in_scope(node.body):
                if isinstance(each, ast.Name) and each.id in names and is_stored(each) and id(each) not in plain:
                    return f"gives {each.id} a value in another way than {each.id} = ..."
        nodes = [node for _, node in line]
        for source in self.project.sources:
            for each in ast.walk(source.tree):
                if not isinstance(each, ast.Attribute) or each.attr not in names or isinstance(each.ctx, ast.Load):
                    continue
                at = self.project.definition(each.value, source)
                if at is not None and at[1] in nodes:
                    return f"gets its {each.attr} outside of the class, in line {each.lineno} of {os.path.basename(source.path)}"
        return ""

    @staticmethod
    def constant(expression: ast.expr, source: Source) -> ast.expr:
        """Return what a name stands for that a file assigns once, at its top; any other expression itself."""
        if not isinstance(expression, ast.Name):
            return expression
        stores = [
            node
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and node.id == expression.id and not isinstance(node.ctx, ast.Load)
        ]
        for node in source.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.targets == stores:
                return node.value
        return expression


def is_stored(node: ast.AST) -> bool:
    """Return whether a node is a name that gets a value."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def in_scope(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Return the nodes of a module's or a class's statements, without those inside of its functions and classes."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(each)


def is_literal(expression: ast.expr) -> bool:
    """Return whether the value of an expression is written out."""
    try:
        ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def literal(expression: ast.expr) -> Any:
    """Return the value of an expression that is written out; None if it is not, or no value that JSON has."""
    value = ast.literal_eval(expression) if is_literal(expression) else None
    return value if isinstance(value, dict | int | str) else None


def quoted(text: str) -> str:
    """Return a text as Python's source has it."""
    return json.dumps(text, ensure_ascii=False)


def _value(line: list[tuple[Source, ast.ClassDef]], name: str) -> tuple[ast.expr | None, Source | None]:
    """Return what a class gives to one of its names, or inherits, with the file."""
    for source, node in line:
        for each in reversed(node.body):
            if isinstance(each, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in each.targets):
                return each.value, source
    return None, None


def _given_outputs(source: Source, expression: ast.expr) -> ast.expr | None:
    """Return the outputs that a topology's file gives to a class: ``Count.outputs = [...]``."""
    for node in source.tree.body:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        is_outputs = isinstance(target, ast.Attribute) and target.attr == "outputs"
        if is_outputs and ast.dump(target.value) == ast.dump(expression):  # type: ignore[attr-defined]
            return node.value
    return None


def _is_direct(outputs: ast.expr, source: Source) -> bool | None:
    """Return whether the default stream of a declaration is direct; None if that can't be read."""
    if isinstance(outputs, ast.Call):
        return _is_direct(ast.List([outputs]), source)
    if isinstance(outputs, ast.Constant) and outputs.value is None:
        return False
    if not isinstance(outputs, ast.List | ast.Tuple | ast.Dict):
        return None
    for each in [] if isinstance(outputs, ast.Dict) else outputs.elts:
        if not isinstance(each, ast.Call):
            continue
        if source.dotted(each.func) in STREAMS:
            given = stream_arguments(each)
            name, direct = given.get("name"), given.get("direct")
        elif (source.dotted(each.func) or "").startswith("multilang."):
            given = dict(zip(("fields", "direct"), each.args, strict=False))
            given |= {keyword.arg or "": keyword.value for keyword in each.keywords}
            name, direct = None, given.get("direct")
        else:
            return None
        if name is not None and not isinstance(name, ast.Constant):
            return None
        if name is None or name.value == "default":
            if direct is not None and not isinstance(direct, ast.Constant):
                return None
            return direct is not None and bool(direct.value)
    return False
