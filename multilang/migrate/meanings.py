"""Shapes that both Pythons read, and that fail in Python 3 or mean something else there."""

from __future__ import annotations

import ast
import builtins
import re

from multilang.migrate.finding import Finding
from multilang.migrate.source import ITERATORS, Source, dotted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON_2 = re.compile(r"(?:/\w+)*/?\bpython2(?:\.\d)?")
"""The name of a program that is Python 2."""

_CODECS = {
    "base64",
    "bz2",
    "hex",
    "hex_codec",
    "quopri",
    "rot13",
    "string-escape",
    "string_escape",
    "uu",
    "zip",
    "zlib",
}
_ORDERS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
_METHODS = {  # which only Python 2 calls -> which of Python 3's do their work, and what to write
    "__cmp__": (("__lt__",), "__eq__ and __lt__, below functools.total_ordering"),
    "__coerce__": ((), "__add__, __radd__ and the like"),
    "__delslice__": (("__delitem__",), "__delitem__, which gets a slice"),
    "__div__": (("__truediv__", "__floordiv__"), "__truediv__ and __floordiv__"),
    "__getslice__": (("__getitem__",), "__getitem__, which gets a slice"),
    "__idiv__": (("__itruediv__", "__ifloordiv__"), "__itruediv__ and __ifloordiv__"),
    "__long__": (("__int__",), "__int__"),
    "__rdiv__": (("__rtruediv__", "__rfloordiv__"), "__rtruediv__ and __rfloordiv__"),
    "__setslice__": (("__setitem__",), "__setitem__, which gets a slice"),
    "__unicode__": (("__str__",), "__str__"),
}
_RENAMED = {"__metaclass__": "class NAME(metaclass=...)", "__nonzero__": "__bool__", "next": "__next__"}
_HASHES = {"md5", "sha1", "sha224", "sha256", "sha384", "sha512"}
_TEXT_METHODS = {"capitalize", "format", "join", "lower", "lstrip", "replace", "rstrip", "strip", "title", "upper"}
_LISTS = {
    "filter",
    "items",
    "keys",
    "list",
    "map",
    "range",
    "readlines",
    "sorted",
    "split",
    "splitlines",
    "values",
    "zip",
}
_BYTES = {
    *("base64.b64decode", "base64.b64encode", "base64.decodestring", "base64.encodestring", "binascii.hexlify"),
    *("binascii.unhexlify", "marshal.dumps", "pickle.dumps", "struct.pack", "subprocess.check_output"),
    *("urllib.request.urlopen", "zlib.compress", "zlib.decompress"),
}
_BUILTINS = set(dir(builtins))
_BYTES_METHODS = {"communicate", "recv"}


def meanings(source: Source) -> Iterator[Finding]:
    """Return what a file has that fails in Python 3, or certainly means something else.

    Args:
        source: The file.
    """
    own = {node.name for node in source.nodes if isinstance(node, ast.FunctionDef)}
    for node in source.nodes:
        if node in source.for_one_version:
            continue
        if isinstance(node, ast.ExceptHandler):
            yield from _in_handler(source, node)
        elif isinstance(node, ast.ClassDef):
            yield from _in_class(source, node)
        elif isinstance(node, ast.FunctionDef):
            yield from _in_function(source, node)
        elif isinstance(node, ast.Call):
            yield from _in_call(source, node, own)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PYTHON_2.fullmatch(node.value):
            what = f"it names the program {node.value}, on which nothing of this library runs"
            yield Finding(source.path, node.lineno, what, "write python3", python2=True)
        elif isinstance(node, ast.Compare):
            yield from _in_compare(source, node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from _in_division(source, node)
        elif isinstance(node, ast.Expr) and _is_print(node.value):
            text = "as Python 3 reads it, this print does not write what Python 2 does"
            yield Finding(source.path, node.lineno, text, "write print(...); --fix does", python2=True)
    yield from _leaks(source)
    yield from _hashed(source)


def _in_handler(source: Source, handler: ast.ExceptHandler) -> Iterator[Finding]:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    kinds = [getattr(builtins, dotted(each), None) or dotted(each) for each in caught]
    certain = all(isinstance(each, type) or each == "StandardError" for each in kinds)
    inside = [each for statement in handler.body for each in ast.walk(statement)]
    if handler.name is None or any(isinstance(each, ast.Constant) and each.value == "message" for each in inside):
        return  # which asks whether there is one
    for each in inside:
        if isinstance(each, ast.Attribute) and dotted(each) == f"{handler.name}.message":
            what = "Python 3's exceptions have no message"
            yield Finding(source.path, each.lineno, what, f"write str({handler.name})", stops=certain, python2=certain)


def _in_class(source: Source, node: ast.ClassDef) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            lines[each.name] = each.lineno
        elif isinstance(each, ast.Assign):
            lines.update((target.id, each.lineno) for target in each.targets if isinstance(target, ast.Name))
    for name, (instead, write) in _METHODS.items():
        if name in lines and not lines.keys() & set(instead):
            what = f"Python 3 does not call {name}"
            yield Finding(source.path, lines[name], what, f"write {write}", python2=True)
    for name, write in _RENAMED.items():
        if name not in lines or write in lines or (name == "next" and "__iter__" not in lines) or node.keywords:
            continue
        what = f"Python 3 does not look for {name} in a class"
        yield Finding(source.path, lines[name], what, f"write {write}; --fix does", python2=True)


def _in_function(source: Source, node: ast.FunctionDef) -> Iterator[Finding]:
    inside = list(_inside(node))
    if not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in inside):
        return
    for each in inside:
        if isinstance(each, ast.Raise):
            raised = each.exc.func if isinstance(each.exc, ast.Call) else each.exc
            if dotted(raised) == "StopIteration":
                what = "a generator that raises StopIteration fails in Python 3"
                yield Finding(source.path, each.lineno, what, "write return")


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of a function without those of functions in it."""
    left = list(ast.iter_child_nodes(node))
    while left:
        each = left.pop()
        if not isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield each
            left += ast.iter_child_nodes(each)


def _in_call(source: Source, node: ast.Call, own: set[str]) -> Iterator[Finding]:
    path, line, name = source.path, node.lineno, dotted(node.func)
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    first = node.args[0] if node.args else None
    if name == "map" and isinstance(first, ast.Constant) and first.value is None and "map" not in source.bound:
        what = "Python 3's map needs a function"
        yield Finding(path, line, what, "write list(itertools.zip_longest(...))", python2=True)
    elif _sorts_by_two(node, own):
        what = "Python 3 sorts by no function of two arguments"
        yield Finding(path, line, what, "write key=functools.cmp_to_key(...); --fix does", python2=True)
    elif attribute == "next" and not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
        what = "Python 3's iterators have no next"
        write = f"write next({ast.unparse(node.func.value)})"
        if _is_iterator(node.func.value) or dotted(node.func.value) in source.iterators:
            yield Finding(path, line, what, f"{write}; --fix does", python2=True)
        else:
            yield Finding(path, line, what, f"{write}, unless it is a method of yours", False)
    elif attribute in ("decode", "encode") and isinstance(first, ast.Constant) and first.value in _CODECS:
        what = f"Python 3 has no {attribute}({first.value!r}) of texts"
        yield Finding(path, line, what, f"write codecs.{attribute}(BYTES, {first.value!r})", python2=True)
    elif attribute == "decode" and _is_text(node.func.value):  # type: ignore[attr-defined]
        what = "Python 3's texts have no decode"
        yield Finding(path, line, what, 'leave it out, or write the text as bytes: b"..."', python2=True)


def _is_iterator(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ITERATORS


def _sorts_by_two(node: ast.Call, own: set[str]) -> bool:
    """Return whether it sorts by a function of two arguments, as Python 2 could."""
    by_cmp = any(each.arg == "cmp" for each in node.keywords)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sort":
        return by_cmp or (len(node.args) == 1 and _is_function(node.args[0], own))
    return dotted(node.func) == "sorted" and (by_cmp or len(node.args) > 1)


def _is_function(node: ast.expr, own: set[str]) -> bool:
    return isinstance(node, ast.Lambda) or dotted(node).rpartition(".")[2] in {"cmp", *own}


def _is_text(node: ast.expr) -> bool:
    """Return whether an expression certainly is a text in Python 3."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (_is_text(node.left) or _is_text(node.right))
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS and _is_text(node.func.value)
        return made or dotted(node.func) in ("repr", "str")
    return isinstance(node, ast.JoinedStr)


def _is_bytes(node: ast.expr) -> bool:
    """Return whether an expression certainly is bytes in Python 3."""
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in ("bytearray", "bytes", "encode", "memoryview", "digest")
    return isinstance(node, ast.Constant) and isinstance(node.value, bytes)


def _in_compare(source: Source, node: ast.Compare) -> Iterator[Finding]:
    sides = [node.left, *node.comparators]
    kinds = {type(each.value) for each in sides if isinstance(each, ast.Constant)}
    if isinstance(node.ops[0], _ORDERS) and (type(None) in kinds or {str, int} <= kinds or {str, float} <= kinds):
        what = f"Python 3 can't order the two of {ast.unparse(node)!r}"
        yield Finding(
            source.path, node.lineno, what, "ask for the type first, or compare values of one type", python2=True
        )


def _in_division(source: Source, node: ast.BinOp) -> Iterator[Finding]:
    """Return the division of two integers where Python takes only an integer."""
    at = source.parents[node]
    needed = isinstance(at, ast.Subscript | ast.Slice) or (isinstance(at, ast.Call) and dotted(at.func) == "range")
    if needed and _is_integer(node.left) and _is_integer(node.right):
        what = f"{ast.unparse(node)!r} is no integer in Python 3, and one is needed here"
        yield Finding(source.path, node.lineno, what, "write //", python2=True)


def _is_integer(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div) and _is_integer(node.left) and _is_integer(node.right)
    return dotted(node.func) in ("int", "len") if isinstance(node, ast.Call) else False


def _is_print(node: ast.expr) -> bool:
    """Return whether a statement is one of Python 2's print that Python 3 can read."""
    if isinstance(node, ast.Name):
        return node.id == "print"
    first = node.elts[0] if isinstance(node, ast.Tuple) and node.elts else node
    if first is node and not isinstance(node, ast.BinOp):
        return False
    while isinstance(first, ast.BinOp):
        if isinstance(first.op, ast.RShift) and dotted(first.left) == "print":
            return True
        first = first.left
    return isinstance(first, ast.Call) and dotted(first.func) == "print"


def _leaks(source: Source) -> Iterator[Finding]:
    """Return the names of list comprehensions that are read outside of them."""
    inside: dict[str, set[ast.AST]] = {}
    for node in source.nodes:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            within = set(ast.walk(node))
            for each in within:
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    inside.setdefault(each.id, set()).update(within)
    names = [node for node in source.nodes if isinstance(node, ast.Name)]
    outside = {node.id for node in names if isinstance(node.ctx, ast.Store) and node not in inside.get(node.id, ())}
    for node in names:
        if node not in inside.get(node.id, {node}) and node.id not in outside | source.defined | _BUILTINS:
            what = f"{node.id} is a name of a list comprehension, which Python 3 does not know outside of it"
            yield Finding(source.path, node.lineno, what, "write a loop", python2=True)


def _hashed(source: Source) -> Iterator[Finding]:
    """Return the calls of hashlib whose argument may be a text."""
    made: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_hash(node.value.func, source):
            made.update(dotted(each) for each in node.targets)
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not node.args or _is_bytes(node.args[0]):
            continue
        updates = isinstance(node.func, ast.Attribute) and node.func.attr == "update"
        if _is_hash(node.func, source) or (updates and dotted(node.func.value) in made):  # type: ignore[attr-defined]
            certain = _is_text(node.args[0])
            what = f"{dotted(node.func)} takes bytes in Python 3, and no text"
            write = f"write {ast.unparse(node.args[0])}.encode('utf-8')"
            yield Finding(source.path, node.lineno, what, write if certain else f"{write} if it is one", certain)


def _is_hash(node: ast.expr, source: Source) -> bool:
    module, _, name = dotted(node).rpartition(".")
    if name not in _HASHES:
        return False
    return module == "hashlib" or (not module and name in source.imported)


def changed_meanings(source: Source) -> Iterator[Finding]:
    """Return what means something else in a file that was written for Python 2, as far as its types can't be known.

    Args:
        source: The file, already as Python 3.
    """
    compared = {dotted(each) for node in source.nodes for each in _ordered(node)}
    for node in source.nodes:
        changed = _changed(source, node)
        if changed is not None:
            yield Finding(source.path, getattr(node, "lineno", 0), *changed, stops=False)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
            for each in sorted({dotted(target) for target in node.targets} & compared):
                what = f"{each} is None here and is ordered elsewhere, which fails in Python 3 while it is None"
                yield Finding(source.path, node.lineno, what, "ask for None first", False)


def _ordered(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], _ORDERS):
        return []
    return [each for each in (node.left, *node.comparators) if isinstance(each, ast.Attribute | ast.Name)]


def _changed(source: Source, node: ast.AST) -> tuple[str, str] | None:
    """Return how a node's meaning has changed, and what to write; None if it has not."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return _division(source, node)
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        return _filter(node.generators[0].iter) if _was_filter(source, node) else None
    if isinstance(node, ast.ClassDef):
        own = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        if "__eq__" in own and "__hash__" not in own:
            return (
                f"{node.name} has __eq__ and no __hash__, so Python 3 allows it in no set and as no key",
                "define __hash__",
            )
    return _call(node) if isinstance(node, ast.Call) else None


def _call(node: ast.Call) -> tuple[str, str] | None:
    name = dotted(node.func)
    attribute = name.rpartition(".")[2]
    if name == "filter" and len(node.args) == 2:
        return _filter(node.args[1])
    if name == "map" and len(node.args) > 2:
        return (
            "Python 2's map() filled up shorter arguments with None, and Python 3's ends",
            "write itertools.zip_longest",
        )
    if name == "round" and len(node.args) == 1:
        return "Python 2 rounded halves away from zero, and gave a float", "write math.floor(x + 0.5) if this matters"
    if name == "hash":
        return (
            "the hash of a text differs from process to process in Python 3",
            "write zlib.crc32(TEXT.encode('utf-8'))",
        )
    if name == "open" and any(isinstance(each, ast.Constant) and "b" in str(each.value) for each in _modes(node)):
        return "a file that is opened in a binary mode reads and writes bytes in Python 3", "leave out the b for texts"
    if name in _BYTES or attribute in _BYTES_METHODS:
        return f"{attribute} takes or gives bytes in Python 3", "write .encode('utf-8') or .decode('utf-8') for texts"
    if attribute == "decode" and isinstance(node.func, ast.Attribute):
        return "Python 3's texts have no decode", "leave it out if this is a text"
    return None


def _was_filter(source: Source, node: ast.ListComp) -> bool:
    """Return whether fissix has written a comprehension for a call of filter."""
    name, target = dotted(node.elt), dotted(node.generators[0].target)
    lambdas = re.compile(rf"\bfilter\(\s*lambda\s+{re.escape(name)}\s*:".encode())
    return name == target and (name == "_f" or lambdas.search(source.old_text) is not None)


def _filter(read: ast.expr) -> tuple[str, str] | None:
    """Return how a filter has changed, and what to write, unless the text shows that it reads a list."""
    made = dotted(read.func).rpartition(".")[2] if isinstance(read, ast.Call) else ""
    if isinstance(read, ast.List | ast.ListComp) or made in _LISTS:
        return None
    what = "Python 2's filter() gave a text for a text and a tuple for a tuple, and this gives a list"
    return what, "write ''.join(...) if it reads a text, and tuple(...) if it reads a tuple"


def _modes(node: ast.Call) -> list[ast.expr]:
    return [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "mode")]


def _division(source: Source, node: ast.BinOp | ast.AugAssign) -> tuple[str, str] | None:
    """Return how a division has changed, and what to write, where both sides may be integers."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    if source.divides_as_python_3 or not isinstance(node.op, ast.Div) or any(_is_fraction(side) for side in sides):
        return None
    what = f"the division {ast.unparse(node)!r} drops the fraction in Python 2 if both sides are integers"
    return f"{what}", "write // if both are integers and nothing needs the fraction"


def _is_fraction(side: ast.expr) -> bool:
    """Return whether a number is one with a fraction, as far as the text shows, so that both Pythons divide alike."""
    if isinstance(side, ast.Constant):
        return not isinstance(side.value, int)
    if isinstance(side, ast.Call):
        name = ast.unparse(side.func)
        return name in ("float", "math.sqrt", "sqrt", "time.time", "time")
    if isinstance(side, ast.BinOp):
        return any(_is_fraction(each) for each in (side.left, side.right))
    return isinstance(side, ast.UnaryOp) and _is_fraction(side.operand)
