"""Tuples that a component of streamparse's emits, and that its ``outputs`` do not declare."""

from __future__ import annotations

import ast

from multilang.migrate.finding import Finding
from multilang.migrate.source import Source, dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    _Fields = dict[str, int | None]  # stream -> the number of its fields; None if the text does not show it

_MAX_BASES = 20
_BASES = {"BasicBolt", "BatchingBolt", "Bolt", "ReliableSpout", "Spout", "TicklessBatchingBolt"}
_ELSEWHERE = {"multilang", "petrel", "pyleus", "pystorm", "storm"}  # libraries that declare fields in another way


def undeclared(source: Source, node: ast.ClassDef) -> Iterator[Finding]:
    """Return what a class emits and does not declare.

    Args:
        source: The file.
        node: The class, of any library.
    """
    chain, bases = [node], []
    for each in chain:
        for base in map(dotted, each.bases):
            if base in source.classes and len(chain) < _MAX_BASES:
                chain.append(source.classes[base])
            elif base != "object":
                bases.append(base)
    if not bases or not all(_is_of_streamparse(source, base) for base in bases):
        return
    emits = [each for each in ast.walk(node) if isinstance(each, ast.Call) and dotted(each.func) == "self.emit"]
    given = next((value for each in chain if (value := _outputs(each)) is not None), None)
    fields: _Fields | None = {} if given is None else _fields(given)
    if fields is None:
        return
    if emits and not fields:
        what = f"{node.name} emits, and declares no outputs"
        yield Finding(source.path, node.lineno, what, 'write outputs = ["FIELD", ...] in the class')
        return
    for call in emits:
        yield from _in_emit(source, node.name, call, fields)


def _in_emit(source: Source, name: str, call: ast.Call, fields: _Fields) -> Iterator[Finding]:
    given = next((word.value for word in call.keywords if word.arg == "stream"), ast.Constant("default"))
    if len(call.args) != 1 or not isinstance(given, ast.Constant):
        return  # which the text does not show
    stream = str(given.value or "default")
    if stream not in fields:
        what = f"{name} emits to the stream {stream!r}, which its outputs do not declare"
        yield Finding(
            source.path, call.lineno, what, f'write Stream(fields=["FIELD", ...], name={stream!r}) in outputs'
        )
    number = _number_of(call.args[0])
    if number is not None and fields.get(stream) not in (None, number):
        what = f"{name} emits {number} values to the stream {stream!r}, for which its outputs declare {fields[stream]}"
        yield Finding(source.path, call.lineno, what, "declare a field for each value")


def _number_of(items: ast.expr | None) -> int | None:
    """Return the length of a list; None if the text does not show it."""
    if not isinstance(items, ast.List | ast.Tuple) or any(isinstance(each, ast.Starred) for each in items.elts):
        return None
    return len(items.elts)


def _is_of_streamparse(source: Source, base: str) -> bool:
    first, _, last = base.rpartition(".")
    homes = {
        module.removeprefix("multilang.compat.").partition(".")[0] for module in (first, source.homes.get(base, ""))
    }
    return last in _BASES and homes.isdisjoint(_ELSEWHERE)


def _outputs(node: ast.ClassDef) -> ast.expr | None:
    """Return what a class has as its ``outputs``."""
    for each in node.body:
        targets = (
            each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
        )
        if isinstance(each, ast.Assign | ast.AnnAssign) and "outputs" in map(dotted, targets):
            return each.value
    return None


def _fields(outputs: ast.expr) -> _Fields | None:
    """Return the streams that outputs declare; None if the text does not show them."""
    if not isinstance(outputs, ast.List | ast.Tuple):
        return {} if isinstance(outputs, ast.Constant) and outputs.value is None else None
    found: _Fields = {}
    for each in outputs.elts:
        if isinstance(each, ast.Constant):
            found["default"] = (found.get("default") or 0) + 1
            continue
        if not isinstance(each, ast.Call) or dotted(each.func).rpartition(".")[2] != "Stream":
            return None
        given: dict[str | None, ast.expr] = dict(zip(("fields", "name"), each.args, strict=False))
        given.update((word.arg, word.value) for word in each.keywords)
        name = given.get("name", ast.Constant("default"))
        if not isinstance(name, ast.Constant):
            return None
        found[str(name.value)] = _number_of(given.get("fields"))
    return found
