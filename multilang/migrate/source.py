"""A file of Python that Python 3 can read, taken apart once for all that look for something in it."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import cached_property

from multilang.migrate.files import why_unread

_CAUGHT = {"ImportError", "ModuleNotFoundError", "NameError", "AttributeError", "Exception"}
_VERSIONS = {"PY2", "PY3", "version_info", "hexversion"}
_DIVISION = re.compile(rb"^from\s+__future__\s+import\s+(\([^)]*|[^\n(]*)\bdivision\b", re.MULTILINE)
_ONLY_PYTHON_3 = (
    *(ast.AnnAssign, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.JoinedStr, ast.MatMult, ast.Match),
    *(ast.NamedExpr, ast.Nonlocal, ast.YieldFrom),
)
ITERATORS = {
    *("chain", "count", "cycle", "enumerate", "filter", "ifilter", "imap", "islice", "iter", "iteritems", "iterkeys"),
    *("itervalues", "izip", "map", "open", "reader", "repeat", "zip"),
}
"""The names of functions that give iterators."""

_OF_PRINT = {"end", "file", "flush", "sep"}


@dataclass(frozen=True)
class Source:
    """A file of Python.

    Attributes:
        path: The file.
        text: Its bytes.
        tree: Its syntax tree, as Python 3.
    """

    path: str
    text: bytes
    tree: ast.Module

    @classmethod
    def read(cls, path: str) -> Source:
        """Return a file.

        Args:
            path: The file.

        Raises:
            OSError: It can't be read.
            SyntaxError: It is not valid in Python 3.
            ValueError: It is no text.
            RecursionError, MemoryError: It is nested too deeply.
        """
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old string escapes
            text = file.read()
            return cls(path, text, ast.parse(text, path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node that each node is in."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def imported(self) -> set[str]:
        """The names that it imports."""
        return {
            alias.asname or alias.name
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }

    @cached_property
    def homes(self) -> dict[str, str]:
        """The module of each name that it imports from one."""
        return {
            alias.asname or alias.name: node.module or ""
            for node in self.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """Its classes."""
        return {each.name: each for each in self.tree.body if isinstance(each, ast.ClassDef)}

    @cached_property
    def iterators(self) -> set[str]:
        """The names and attributes to which it assigns an iterator."""
        return {
            dotted(target)
            for node in self.nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if dotted(node.value.func).rpartition(".")[2] in ITERATORS
            for target in node.targets
        }

    @cached_property
    def bound(self) -> set[str]:
        """The names that it gives a meaning of its own."""
        stored = {node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return stored | self.defined

    @cached_property
    def defined(self) -> set[str]:
        """Those of these names that are arguments, imports, functions, classes, and caught exceptions."""
        found = {node.arg for node in self.nodes if isinstance(node, ast.arg)} | self.imported
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
        return found | {node.name for node in self.nodes if isinstance(node, kinds) and node.name}

    @cached_property
    def for_one_version(self) -> set[ast.AST]:
        """The nodes that are for one version of Python only: what is tried, or under a question for the version."""
        found: set[ast.AST] = set()
        for node in self.nodes:
            if isinstance(node, ast.Try):
                caught = {
                    each.id for one in node.handlers for each in ast.walk(one.type or one) if isinstance(each, ast.Name)
                }
                if caught & _CAUGHT or any(one.type is None for one in node.handlers):
                    asks = (each.value if isinstance(each, ast.Expr) else each for each in node.body)
                    if any(isinstance(each, ast.Import | ast.ImportFrom | ast.Name) for each in asks):
                        found.update(ast.walk(node))
            elif isinstance(node, ast.If | ast.IfExp):
                asked = {
                    each.attr if isinstance(each, ast.Attribute) else each.id
                    for each in ast.walk(node.test)
                    if isinstance(each, ast.Attribute | ast.Name)
                }
                if asked & _VERSIONS:
                    found.update(ast.walk(node))
        return found

    @cached_property
    def old_text(self) -> bytes:
        """Its bytes before ``--fix``."""
        if why_unread(f"{self.path}.bak"):
            return self.text
        with open(f"{self.path}.bak", "rb") as file:
            return file.read()

    @cached_property
    def divides_as_python_3(self) -> bool:
        """True if it asks Python 2 for the division of Python 3, or did so before ``--fix``."""
        return _DIVISION.search(self.old_text) is not None

    @cached_property
    def is_only_python_3(self) -> bool:
        """True if it has something that Python 2 can't read."""
        return any(_is_only_python_3(node) for node in self.nodes)


def _is_only_python_3(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return node.cause is not None
    if isinstance(node, ast.arguments):
        named = [*node.args, *node.kwonlyargs, *node.posonlyargs]
        return bool(node.kwonlyargs or node.posonlyargs) or any(each.annotation is not None for each in named)
    if isinstance(node, ast.FunctionDef):
        return node.returns is not None
    if isinstance(node, ast.ClassDef):
        return bool(node.keywords)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "print":
            return any(each.arg in _OF_PRINT for each in node.keywords)
        return node.func.id == "super" and not node.args
    return isinstance(node, _ONLY_PYTHON_3)


def dotted(node: ast.AST | None) -> str:
    """Return a name with its dots. What is before the last eight, or is no name, is ``?``: it may be endlessly long."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and len(names) < 8:
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "?")
    return ".".join(reversed(names))
