"""The imports of a file whose components are written over."""

from __future__ import annotations

import ast

from multilang.compat.own_api.libraries import is_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.compat.own_api.source import Edits, Source

_HOMES = {
    "JavaBolt": "multilang.topology",
    "JavaLong": "multilang.topology",
    "JavaSpout": "multilang.topology",
    "TopologyBuilder": "multilang.topology",
    "adapted": "multilang.compat.streamparse.running",
    "spec": "multilang.compat.streamparse.dsl.spec",
}
_OTHERWISE = {"adapted": "adapted_part", "spec": "spec_of"}  # if the file has the name already


def write_imports(source: Source, edits: Edits, needs: set[str], used: set[ast.AST], others: set[str]) -> None:
    """Write a file's imports over, and put the names of this library's in the place of their marks.

    Args:
        source: The file.
        edits: Its changes, in which a name of this library's has a mark before it.
        needs: These names.
        used: The uses of the libraries' names that the changes leave out.
        others: The names that other files import from this one.
    """
    left = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node not in used} | others
    gone = {node.id for node in used if isinstance(node, ast.Name)} - left
    gone = {name for name in gone if is_library(source.names.get(name))}
    if "__all__" in left or "__all__" in {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}:
        gone = set()
    bound = _bound(source.tree) - gone
    local = {name: name if name not in bound else _OTHERWISE.get(name, f"Own{name}") for name in needs}
    for place, text in edits.made.items():
        for name in sorted(needs, key=len, reverse=True):
            text = text.replace(f"\0{name}", local[name])
        edits.made[place] = text
    lines = []
    for home in sorted({_HOMES.get(name, "multilang.component") for name in needs}):
        names = [name for name in sorted(needs) if _HOMES.get(name, "multilang.component") == home]
        given = ", ".join(name if local[name] == name else f"{name} as {local[name]}" for name in names)
        lines.append(f"from {home} import {given}")
    _place(source, edits, lines, gone)


def _place(source: Source, edits: Edits, lines: list[str], gone: set[str]) -> None:
    """Take names out of the imports, and add lines to them: in the place of the first that goes, or behind the last of all."""
    newline = source.newline
    new = newline.join(lines)
    at: int | None = None
    last: ast.stmt | None = None
    for node in source.tree.body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import or (
            isinstance(node, ast.Try) and any(isinstance(e, ast.Import | ast.ImportFrom) for e in node.body)
        ):
            last = node
        if not is_import:
            continue
        kept = [each for each in node.names if (each.asname or each.name.partition(".")[0]) not in gone]  # type: ignore[attr-defined]
        shares = source.text[source.end(node) : source.line_end(node.end_lineno)].strip()  # type: ignore[arg-type]
        if len(kept) == len(node.names) or source.has_comment(node) or shares.startswith(";"):  # type: ignore[attr-defined]
            continue
        given = ", ".join(each.name + (f" as {each.asname}" if each.asname else "") for each in kept)
        if isinstance(node, ast.ImportFrom):
            text = f"from {'.' * node.level}{node.module or ''} import {given}"
        else:
            text = f"import {given}"
        if kept and at is None:
            text += newline + new
        elif not kept:
            text = new if at is None else ""
        at = source.start(node)
        end = source.end(node)
        if not text and not shares:
            end = source.line_end(node.end_lineno)  # type: ignore[arg-type]
        edits.cut(at, end, text)
    if at is None and lines:
        if last is None:
            first = source.tree.body[0]
            edits.insert(source.line_start(first.lineno), new + newline)
        else:
            start = source.line_end(last.end_lineno)  # type: ignore[arg-type]
            before = "" if source.text[:start].endswith(("\n", "\r")) else newline
            edits.insert(start, before + new + newline)


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a module has."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found
