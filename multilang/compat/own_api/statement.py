"""One statement of a class's body that becomes a statement of the module, with the comments about it."""

from __future__ import annotations

import ast
import io
import tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from multilang.compat.own_api.source import Source


class Statement:
    """A statement of a class's body.

    Args:
        source: Its file.
        node: The statement.
        above: The line of what stands before it, from which on comments and empty lines are the statement's.
    """

    def __init__(self, source: Source, node: ast.stmt, above: int) -> None:
        self.source = source
        self.node = node
        self._indent = source.text[source.line_start(node.lineno) : source.start(node)]
        self._before = self._lines(above + 1, node.lineno - 1)

    @property
    def shares_its_line(self) -> bool:
        """True if another statement is on its first line, before it."""
        return bool(self._indent.strip())

    def segment(self, node: ast.expr) -> str:
        """Return the text of an expression, whose further lines begin as far to the left as the module's do."""
        lines = self.source.segment(node).splitlines()
        has_text_of_lines = any(
            isinstance(each, ast.Constant | ast.JoinedStr) and each.end_lineno != each.lineno for each in ast.walk(node)
        )
        return "\n".join(lines if has_text_of_lines else [lines[0], *map(self._outdented, lines[1:])])

    def with_comments(self, text: str, kept: Iterable[ast.expr] = ()) -> str:
        """Return a text that stands for the statement, with the statement's comments.

        Args:
            text: The text; empty: only the comments stay.
            kept: The expressions whose text, with the comments in it, is in the new one.
        """
        spans = [(self.source.start(each), self.source.end(each)) for each in kept]
        inside, behind = [], ""
        for place, comment in self._comments():
            if place > self.source.end(self.node):
                behind = comment
            elif not any(start <= place < end for start, end in spans):
                inside.append(comment)
        if behind and "\n" not in text and text:
            text = f"{text}  {behind}"
        elif behind:
            inside.append(behind)
        return "\n".join([*self._before, *inside, *([text] if text else [])])

    def _comments(self) -> Iterable[tuple[int, str]]:
        """Return the comments in the statement's lines, each with its place."""
        source = self.source
        text = source.text[source.start(self.node) : source.line_end(self.node.end_lineno or self.node.lineno)]
        lines = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
        first = self.node.lineno
        try:
            tokens = [each for each in lines if each.type == tokenize.COMMENT]
        except (tokenize.TokenError, SyntaxError):
            return
        for each in tokens:
            line, column = each.start
            offset = source.start(self.node) - source.line_start(first) if line == 1 else 0
            yield source.line_start(first + line - 1) + offset + column, each.string

    def _lines(self, first: int, last: int) -> list[str]:
        source = self.source
        return [
            self._outdented(source.text[source.line_start(line) : source.line_end(line)].rstrip())
            for line in range(first, last + 1)
        ]

    def _outdented(self, line: str) -> str:
        return line.removeprefix(self._indent) if line.startswith(self._indent) else line.lstrip()


def heading(source: Source, node: ast.ClassDef) -> tuple[int, str]:
    """Return the last line of what stands before a class's body, and the comments in it."""
    text = source.text[source.line_start(node.lineno) : source.line_start(node.body[0].lineno)]
    comments: list[str] = []
    depth = line = 0
    try:
        for each in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            depth += (each.string in ("(", "[", "{")) - (each.string in (")", "]", "}"))
            if each.type == tokenize.COMMENT:
                comments.append(each.string)
            elif each.string == ":" and not depth:
                line = each.start[0]
            elif each.type == tokenize.NEWLINE and line:
                break
    except (tokenize.TokenError, SyntaxError):
        pass  # a class without its body is no program
    return node.lineno + max(line, 1) - 1, "\n".join(comments)


def behind(source: Source, node: ast.ClassDef) -> tuple[int, str]:
    """Return the last line of a class with the indented comments behind its last statement, and these comments."""
    last = line = node.end_lineno or node.lineno
    first = node.body[0]
    indent = source.text[source.line_start(first.lineno) : source.start(first)]
    found: list[str] = []
    waiting: list[str] = []
    while source.line_end(line) < len(source.text):
        line += 1
        text = source.text[source.line_start(line) : source.line_end(line)].rstrip()
        if text and not (text[0].isspace() and text.lstrip().startswith("#")):
            break
        waiting.append(text.removeprefix(indent) if text.startswith(indent) else text.lstrip())
        if text:
            found, waiting, last = [*found, *waiting], [], line
    return last, "\n".join(found)


def joined(texts: Iterable[str]) -> str:
    """Return texts one below the other, without empty lines at the start or doubled ones."""
    lines: list[str] = []
    for line in "\n".join(each for each in texts if each).split("\n"):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines)
