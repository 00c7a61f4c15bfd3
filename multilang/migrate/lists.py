"""Lists of Python 2 that are iterators, views or ranges in Python 3.

``filter``, ``map`` and ``zip`` give iterators, which are read once; ``keys``, ``values`` and ``items`` give views, and
``range`` gives a range. In a loop they do as well as the list. Where one is used as only a list can be, also by the name or
the attribute that holds it, the file was written for Python 2. One that is passed on may or may not be.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from multilang.migrate.finding import Finding
from multilang.migrate.source import Source, dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    _Held = dict[
        tuple[ast.AST, str], ast.Call | None
    ]  # what a name of a scope, or an attribute of a class, always holds

_ITERATORS = {"filter", "map", "zip"}
_VIEWS = {"items", "keys", "values"}
_METHODS = {"append", "extend", "insert", "pop", "remove", "reverse", "sort"}
_OF_RANGES = {"count", "index"}
_WITH_LENGTH = {"choice", "dumps", "len", "reversed", "sample", "shuffle"}  # functions that need a list, or its like
_NO_VIEW = {"choice", "dumps", "sample", "shuffle"}
_NO_RANGE = {"dumps", "shuffle"}
_EMITS = {"emit", "emitBolt", "emitDirect", "emitSpout"}
_READERS = {
    *("Counter", "OrderedDict", "all", "any", "chain", "deque", "defaultdict", "dict", "enumerate", "extend", "filter"),
    *(
        "frozenset",
        "from_iterable",
        "iter",
        "join",
        "list",
        "map",
        "max",
        "min",
        "next",
        "set",
        "sorted",
        "sum",
        "tuple",
    ),
    *("update", "writelines", "zip", "imap", "izip", "ifilter", "reduce"),
}


def lists(source: Source, noted: bool) -> Iterator[Finding]:
    """Return what is used as a list and is none in Python 3.

    Args:
        source: The file.
        noted: Whether those that are only passed on are returned, too.
    """
    held = _held(source)
    calls = {node: what for node in source.nodes if isinstance(node, ast.Call) and (what := _what(node, source))}
    needed = {node: "one is needed here" for node, what in calls.items() if _is_list(node, what, source)}
    reads: dict[ast.Call, list[ast.expr]] = defaultdict(list)
    for node in source.nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            call = _holder_of(node, held, source)
            if call is not None and call not in needed and _is_list(node, calls[call], source):
                needed[call] = f"line {node.lineno} uses {dotted(node)} as one"
            if call is not None and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                reads[call].append(node)
    for call, what in calls.items():
        if call in needed:
            text = f"{what}() gives no list in Python 3, and {needed[call]}"
            of = f"DICT.{what}()" if what in _VIEWS else f"{what}(...)"
            yield Finding(source.path, call.lineno, text, f"write list({of}); --fix does", python2=True)
        elif (
            what in _ITERATORS
            and noted
            and not any(len(one) == 1 and _is_read(one[0], source) for one in ([call], reads[call]))
        ):
            text = f"{what}() gives an iterator in Python 3, which can be read only once and has no length"
            yield Finding(source.path, call.lineno, text, f"write list({what}(...)) where a list is needed", False)


def _what(node: ast.AST, source: Source) -> str:
    """Return the function that gave a list in Python 2; empty for any other."""
    if not isinstance(node, ast.Call) or node in source.for_one_version:
        return ""
    if isinstance(node.func, ast.Name) and node.func.id in (*_ITERATORS, "range"):
        return "" if node.func.id in source.bound else node.func.id
    if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS and not node.args and not node.keywords:
        return node.func.attr
    return ""


def _scope(node: ast.AST, source: Source, kinds: tuple[type[ast.AST], ...]) -> ast.AST:
    while node in source.parents:
        node = source.parents[node]
        if isinstance(node, kinds):
            break
    return node


def _key(node: ast.Name | ast.Attribute, source: Source) -> tuple[ast.AST, str]:
    kinds = (ast.FunctionDef, ast.Lambda) if isinstance(node, ast.Name) else (ast.ClassDef,)
    return _scope(node, source, kinds), dotted(node)


def _held(source: Source) -> _Held:
    given: dict[tuple[ast.AST, str], list[ast.AST]] = defaultdict(list)
    for node in source.nodes:
        if isinstance(node, ast.arg):
            given[_scope(node, source, (ast.FunctionDef, ast.Lambda)), node.arg].append(node)
        elif isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            into = source.parents[node]
            if isinstance(into, ast.Assign):
                given[_key(node, source)].append(into.value)
            elif not isinstance(into, ast.AugAssign):
                given[_key(node, source)].append(node)
    return {
        key: values[0] if isinstance(values[0], ast.Call) and all(_what(each, source) for each in values) else None
        for key, values in given.items()
    }


def _holder_of(node: ast.Name | ast.Attribute, held: _Held, source: Source) -> ast.Call | None:
    key = _key(node, source)
    return held[key] if key in held else held.get((source.tree, key[1]))


def _is_list(node: ast.expr, what: str, source: Source) -> bool:
    """Return whether an expression is used in a way that only a list allows, or where another thing means another."""
    at = source.parents[node]
    if isinstance(at, ast.Subscript):
        return at.value is node and (what != "range" or not isinstance(at.ctx, ast.Load))
    if isinstance(at, ast.Attribute):
        return at.attr in _METHODS or (at.attr in _OF_RANGES and what != "range")
    if isinstance(at, ast.Call):
        name = dotted(at.func).rpartition(".")[2]
        needs = _WITH_LENGTH if what in _ITERATORS else _NO_VIEW if what in _VIEWS else _NO_RANGE
        return node in at.args and name in needs
    if isinstance(at, ast.List | ast.Tuple):
        call = source.parents[at]
        return isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _EMITS
    if isinstance(at, ast.BinOp):
        return isinstance(at.op, ast.Add | ast.Mult)
    if isinstance(at, ast.AugAssign):
        return at.target is node and isinstance(at.op, ast.Add | ast.Mult)
    if isinstance(at, ast.Compare):
        others = [each for each in (at.left, *at.comparators) if each is not node]
        same = isinstance(at.ops[0], ast.Eq | ast.NotEq)
        return same and (what in _ITERATORS or any(isinstance(each, ast.List) for each in others))
    if isinstance(at, ast.For):
        return what in _VIEWS and at.iter is node and _is_shortened(at, node)
    if isinstance(at, ast.Expr):
        return what in _ITERATORS and isinstance(node, ast.Call)  # which calls nothing, as nobody reads it
    asks = isinstance(at, ast.If | ast.IfExp | ast.While) and at.test is node
    return what in _ITERATORS and (asks or isinstance(at, ast.BoolOp | ast.UnaryOp))


def _is_shortened(loop: ast.For, view: ast.expr) -> bool:
    """Return whether a loop over a dict takes entries out of it, and goes on."""
    name = dotted(view.func.value) if isinstance(view, ast.Call) and isinstance(view.func, ast.Attribute) else "?"
    inside = [each for statement in loop.body for each in ast.walk(statement)]
    if "?" in name or any(isinstance(each, ast.Break | ast.Return) for each in inside):
        return False
    deleted = (each.value for each in inside if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Del))
    called = (each.func for each in inside if isinstance(each, ast.Call))
    return name in map(dotted, deleted) or f"{name}.pop" in map(dotted, called)


def _is_read(node: ast.AST, source: Source) -> bool:
    """Return whether an expression is read to its end at once."""
    at = source.parents[node]
    if isinstance(at, ast.For | ast.comprehension):
        return at.iter is node
    if isinstance(at, ast.Call):
        return dotted(at.func).rpartition(".")[2] in _READERS
    if isinstance(at, ast.Assign):
        return all(isinstance(each, ast.List | ast.Tuple) for each in at.targets)
    if isinstance(at, ast.Compare):
        return isinstance(at.ops[0], ast.In | ast.NotIn)
    return isinstance(at, ast.Starred | ast.YieldFrom)
