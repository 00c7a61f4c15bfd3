"""The component classes of a project, with their bases."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field

from multilang.compat.own_api.libraries import kind_of
from multilang.compat.own_api.source import Edits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from multilang.compat.own_api.libraries import Kind
    from multilang.compat.own_api.source import Source


@dataclass(eq=False)
class Found:
    """A component class.

    Attributes:
        source: Its file.
        node: Its definition.
        kind: The class of the other library's that it comes from.
        base: The project's own class that it is a subclass of; None for a direct subclass of the library's.
        reasons: Why it stays as it is, each with its line.
        edits: The changes that write it over.
        used: The names of the library's that its changes leave unused, as nodes.
        needs: The names of this library's that its changes use.
    """

    source: Source
    node: ast.ClassDef
    kind: Kind
    base: Found | None = None
    reasons: list[tuple[int, str]] = field(default_factory=list)
    edits: Edits = field(init=False)
    used: set[ast.AST] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.edits = Edits(self.source)

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def line(self) -> list[Found]:
        """The class and those of the project that it comes from, the nearest first."""
        found, at = [], self
        while True:
            found.append(at)
            if at.base is None:
                return found
            at = at.base

    def keep(self, node: Any, reason: str) -> None:
        """Note why it stays as it is."""
        each = (node.lineno, reason)
        if each not in self.reasons:
            self.reasons.append(each)

    def functions(self) -> dict[str, ast.FunctionDef]:
        """Return its methods by name."""
        return {each.name: each for each in self.node.body if isinstance(each, ast.FunctionDef)}

    def assigned(self) -> dict[str, ast.Assign]:
        """Return the statements of its body that give a value to one name."""
        found = {}
        for each in self.node.body:
            if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
                found[each.targets[0].id] = each
        return found


class Project:
    """The sources of a project, and what its names stand for.

    Attributes:
        sources: The files that are Python 3.
        classes: The component classes, by file and name.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = list(sources)
        self.classes: dict[tuple[str, str], Found] = {}
        self._modules: dict[str, list[Source]] = {}
        for source in self.sources:
            parts = os.path.abspath(source.path)[:-3].split(os.sep)
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                self._modules.setdefault(".".join(parts[start:]), []).append(source)
        for source in self.sources:
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef):
                    found = self._find(source, node, set())
                    if found is not None and found.node is not node:
                        found.keep(node, f"{node.name} is defined twice")

    def module(self, name: str, source: Source) -> Source | None:
        """Return the file that a module's name stands for in a source; None if it is none of the project's."""
        level = len(name) - len(name.lstrip("."))
        if level:
            folder = os.path.dirname(os.path.abspath(source.path))
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            path = os.path.join(folder, *filter(None, name[level:].split(".")))
            wanted = (f"{path}.py", os.path.join(path, "__init__.py"))
            return next((each for each in self.sources if os.path.abspath(each.path) in wanted), None)
        found = self._modules.get(name, [])
        beside = [each for each in found if os.path.dirname(each.path) == os.path.dirname(source.path)]
        return beside[0] if len(beside) == 1 else found[0] if len(found) == 1 else None

    def resolve(self, node: ast.expr, source: Source) -> Found | None:
        """Return the component class that an expression names; None if it names none."""
        if isinstance(node, ast.Name):
            own = self.classes.get((source.path, node.id))
            if own is not None:
                return own
        dotted = source.dotted(node)
        return None if dotted is None else self.named(dotted, source, 0)

    def named(self, dotted: str, source: Source, depth: int) -> Found | None:
        """Return the component class of a name with dots, also through modules that only import it."""
        module, _, name = dotted.rpartition(".")
        other = self.module(module or ".", source) if module or dotted.startswith(".") else None
        if other is None or depth > 8:
            return None
        found = self.classes.get((other.path, name))
        if found is not None:
            return found
        through = other.names.get(name)
        return None if through is None else self.named(through, other, depth + 1)

    def _find(self, source: Source, node: ast.ClassDef, seen: set[ast.ClassDef]) -> Found | None:
        key = (source.path, node.name)
        if key in self.classes:
            return self.classes[key]
        if node in seen:
            return None
        seen.add(node)
        for expression in node.bases:
            kind = kind_of(source.dotted(expression))
            base = None if kind else self._base(expression, source, seen)
            if kind is None and base is None:
                continue
            found = Found(source, node, kind or base.kind, base)  # type: ignore[union-attr]
            others = [each for each in node.bases if each is not expression and source.segment(each) != "object"]
            if others:
                found.keep(others[0], f"{node.name} has another base class, {source.segment(others[0])}")
            if kind is not None:
                found.used.update(ast.walk(expression))
            self.classes[key] = found
            return found
        return None

    def definition(self, expression: ast.expr, source: Source) -> tuple[Source, ast.ClassDef] | None:
        """Return the project's class that an expression names, with its file; None if it names none."""
        dotted = source.dotted(expression)
        if isinstance(expression, ast.Name) and dotted is None:
            return _class_in(source, expression.id)
        for _ in range(8):
            if dotted is None:
                return None
            module, _, name = dotted.rpartition(".")
            other = self.module(module, source) if module else None
            if other is None:
                return None
            found = _class_in(other, name)
            if found is not None:
                return found
            source, dotted = other, other.names.get(name)
        return None

    def _base(self, expression: ast.expr, source: Source, seen: set[ast.ClassDef]) -> Found | None:
        at = self.definition(expression, source)
        return None if at is None else self._find(*at, seen)


def _class_in(source: Source, name: str) -> tuple[Source, ast.ClassDef] | None:
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return source, node
    return None
