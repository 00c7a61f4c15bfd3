"""A Python file with its syntax tree, and edits of its text at the places of nodes."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LAYER = "multilang.compat."


@dataclass
class Source:
    """One file.

    Attributes:
        path: The file.
        text: Its text, with its own ends of lines.
        encoding: Its encoding.
        tree: Its syntax tree.
        names: What each name that the module imports stands for, with dots; None for a name that is bound in several ways.
    """

    path: str
    text: str
    encoding: str
    tree: ast.Module
    names: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._starts = [found.start() for found in _LINE.finditer(self.text)]
        self._lines = [found.group() for found in _LINE.finditer(self.text)]
        self.names = _names(self.tree)

    @classmethod
    def read(cls, path: str) -> Source | None:
        """Return a file; None for one that is no Python 3."""
        try:
            with tokenize.open(path) as file:
                encoding = file.encoding
            with open(path, encoding=encoding, newline="") as file:
                text = file.read()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of old string escapes
                return cls(path, text, encoding, ast.parse(text, path))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def start(self, node: Any) -> int:
        """Return where a node begins, as a position in the text."""
        return self.position(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        """Return where a node ends."""
        return self.position(node.end_lineno, node.end_col_offset)

    def position(self, line: int, column: int) -> int:
        """Return a place in the text; the tree counts columns in bytes of UTF-8."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def segment(self, node: Any) -> str:
        """Return the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def line_start(self, line: int) -> int:
        """Return where a line begins."""
        return self._starts[line - 1]

    def line_end(self, line: int) -> int:
        """Return where a line ends, behind its end-of-line characters."""
        return self._starts[line - 1] + len(self._lines[line - 1])

    @property
    def newline(self) -> str:
        """The end of the first line, which those of new lines are like."""
        found = re.search(r"\r\n|\r|\n", self.text)
        return found.group() if found else "\n"

    def has_comment(self, node: Any) -> bool:
        """Return whether there is a comment in the text of a node."""
        if "#" not in self.segment(node):
            return False
        tokens = tokenize.generate_tokens(io.StringIO(f"({self.segment(node)})").readline)
        try:
            return any(each.type == tokenize.COMMENT for each in tokens)
        except (tokenize.TokenError, SyntaxError):
            return True

    def dotted(self, node: ast.expr) -> str | None:
        """Return what a name with dots stands for, by the module's imports; None for anything else."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        found = self.names.get(node.id)
        return None if found is None else ".".join([found, *reversed(names)])


class Edits:
    """Changes of a source's text: each replaces a part of it, and no two overlap."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.made: dict[tuple[int, int], str] = {}

    def replace(self, node: Any, text: str) -> None:
        """Replace a node."""
        self.made[self.source.start(node), self.source.end(node)] = text

    def insert(self, position: int, text: str) -> None:
        """Insert text; what is inserted at the same place before comes before it."""
        self.made[position, position] = self.made.get((position, position), "") + text

    def cut(self, start: int, end: int, text: str = "") -> None:
        """Replace a part of the text."""
        self.made[start, end] = text

    def applied(self) -> str:
        """Return the new text.

        Raises:
            ValueError: Two changes overlap.
        """
        parts: list[str] = []
        at = 0
        for (start, end), text in sorted(self.made.items()):
            if start < at:
                raise ValueError(f"two changes of {self.source.path} overlap at {start}")
            parts += [self.source.text[at:start], text]
            at = end
        return "".join([*parts, self.source.text[at:]])


def _names(tree: ast.Module) -> dict[str, str | None]:
    """Return what the names of a module's own imports stand for; None for those that something else binds, too."""
    found: dict[str, str | None] = {}

    def bind(name: str, meaning: str | None) -> None:
        found[name] = meaning if name not in found or found[name] == meaning else None

    for node in _top_level(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                full = alias.name.removeprefix(_LAYER)
                if alias.asname:
                    bind(alias.asname, full)
                else:
                    bind(alias.name.partition(".")[0], alias.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module == _LAYER[:-1]:
                module = ""
            for alias in node.names:
                full = f"{module}{'' if module.endswith('.') else '.'}{alias.name}" if module else alias.name
                bind(alias.asname or alias.name, full.removeprefix(_LAYER))
    for name in _bound_otherwise(tree):
        if name in found:
            found[name] = None
    return found


def _bound_otherwise(tree: ast.Module) -> Iterator[str]:
    """Return the names that something else than an import of the module's binds, at any place."""
    imports = {id(node) for node in _top_level(tree.body)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in imports:
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Return the statements that a module runs when it is imported, those in its try and if included."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.Try | ast.If | ast.With):
                yield from _top_level(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from _top_level(handler.body)
