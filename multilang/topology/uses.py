"""The uses of names in bytecode: which values code reads and writes into, and which attributes objects fill.

In two processes that do the same, a value that code writes into may differ: one of them may have run it already.
"""

from __future__ import annotations

import sys
from dis import get_instructions, opmap, stack_effect
from functools import cache, cached_property
from types import CodeType, FunctionType, MappingProxyType

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet
    from typing import Any

_MADE_BY = ("__init", "__new__", "__post_init__", "__attrs_", "__setstate__", "__copy__", "__deepcopy__", "__reduce")
_SETTING = ("__set", "__del", "__i")  # operators that change an object
_WRITING = {*dir(list), *dir(dict), *dir(set)} - {*dir(tuple), *dir(frozenset), *dir(MappingProxyType)}
_GIVING = ("get", "items", "values")
_FILLING = {
    "heappush",
    "heappop",
    "heapify",
    "heapreplace",
    "heappushpop",
    "insort",
    "insort_left",
    "insort_right",
    "shuffle",
}
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_SWAPS = ("SWAP", "ROT_TWO")
_LOOKS: frozenset[str] = frozenset()
_WRITES = "="
# With the number of arguments; Python 3.11 has PRECALL before each CALL.
_CALLS = {"PRECALL"} if "PRECALL" in opmap else {"CALL", "CALL_KW", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_METHOD"}


class Uses:
    """The uses that some code makes of names.

    Attributes:
        globals: The global names that it reads, each with whether it writes into the value.
        bound: Those that it binds.
        attributes: The number of reads of each attribute.
        stored: The attributes that it sets.
        updated: Those of them that it reads, too.
        changed: The attributes, and names of the functions around it, into which it writes.
        rebound: The names of the functions around it that it binds.
        passed: Global names with the functions that their values are passed to, and with "." and a changed attribute.
        fills: Whether it writes into its arguments.
        texts: The texts in it.
    """

    def __init__(self, code: CodeType) -> None:
        self.globals: dict[str, bool] = {}
        self.bound: set[str] = set()
        self.attributes: dict[str, int] = {}
        self.stored: set[str] = set()
        self.changed: set[str] = set()
        self.rebound: set[str] = set()
        self.passed: set[tuple[str, str]] = set()
        self.texts = {each for each in code.co_consts if isinstance(each, str)}
        self._steps = list(_steps_of(code))
        self._locals: dict[str, AbstractSet[str]] = {}
        for n, (kind, name, *_) in enumerate(self._steps):
            if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                does = self._does_with(n)
                self.globals[name] = self.globals.get(name, False) or _WRITES in does
                self.passed.update((name, each) for each in does)
            elif kind in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_DEREF"):
                self.attributes[name] = self.attributes.get(name, 0) + 1
                if _WRITES in self._does_with(n):
                    self.changed.add(name)
            elif kind in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.bound.add(name)
            elif kind in ("STORE_ATTR", "DELETE_ATTR"):
                self.stored.add(name)
            elif kind == "STORE_DEREF" and name in code.co_freevars:
                self.rebound.add(name)
        self.updated = self.stored & self.attributes.keys()
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.fills = any(_WRITES in self._does_with_local(each) for each in parameters if each not in ("self", "cls"))

    def _does_with(self, n: int, inside: bool = False) -> AbstractSet[str]:
        """Return the uses of the value that a step loads, or of a value inside of that.

        Code may write into it or bind it to another name; the attributes that it changes have a dot. And it may pass it
        to functions, whose names are returned.
        """
        kind, name, *_ = self._steps[n + 1]
        if kind not in _ATTRIBUTE:
            return self._follow(n, inside)
        if name in _WRITING:
            return {_WRITES}
        if name in _GIVING and self._steps[n + 2][0] not in _ATTRIBUTE:
            return self._follow(n + 1, inside=True, is_asked=True)
        does = self._does_with(n + 1, inside=True)
        return does | {f".{name}"} if _WRITES in does else does

    def _follow(self, n: int, inside: bool, is_asked: bool = False) -> AbstractSet[str]:
        """Return the uses of the value on the stack after a step, or of the result of calling it."""
        steps = self._steps
        depth = 0  # of the stack, above what was loaded
        is_copied = False  # by X[k] += 1, which reads X[k] before it writes there
        for m in range(n + 1, len(steps)):
            kind, name, effect, number = steps[m]
            above = depth
            depth += effect
            is_copied = is_copied or kind.startswith(("COPY", "DUP"))
            if kind in _SWAPS:
                other = max(number, 2) - 1
                depth = {0: other, other: 0}.get(depth, depth)
            elif kind in _CALLS and depth <= 0:
                if not is_asked or above < number:
                    return self._called(n, number - above - 1) if above < number else _LOOKS
                depth, is_asked = (1 if kind == "PRECALL" else 0), False
            elif depth < 0:
                if kind in ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR") and (is_copied or depth == -2):
                    return {_WRITES, f".{name}"}
                if kind in ("STORE_SUBSCR", "STORE_SLICE"):
                    return _LOOKS  # at the value that is stored somewhere, or at its key
                if kind == "STORE_FAST":
                    return self._does_with_local(name)
                return {_WRITES} if kind == "DELETE_SUBSCR" or (kind.startswith("STORE_") and not inside) else _LOOKS
            elif above == 0 and kind.startswith("UNPACK_"):
                return self._does_with_items(m)
            elif depth == 0 and kind == "GET_ITER":
                return self._does_with_items(m + 2) if steps[m + 1][0] == "FOR_ITER" else _LOOKS
            elif depth == 0 and kind.startswith(("BINARY_", "INPLACE_")) and not is_copied:
                return self._does_with(m, inside=True) if kind.startswith("BINARY_") else _LOOKS
        return _LOOKS

    def _called(self, n: int, before: int) -> AbstractSet[str]:
        """Return the name of the function whose argument a step loads, after so many other arguments."""
        depth = -1
        for kind, name, effect, _ in reversed(self._steps[: n + 1]):
            if depth >= before and kind != "PUSH_NULL":
                return {_WRITES if name in _FILLING else str(name)}
            depth += effect
        return _LOOKS

    def _does_with_items(self, n: int) -> AbstractSet[str]:
        """Return the uses of the local names that a step and those after it bind."""
        while self._steps[n][0].startswith("UNPACK_"):
            n += 1
        found = _LOOKS
        while n < len(self._steps) and self._steps[n][0] == "STORE_FAST":
            found = found | self._does_with_local(self._steps[n][1])
            n += 1
        return found

    def _does_with_local(self, name: str) -> AbstractSet[str]:
        if name not in self._locals:
            self._locals[name] = _LOOKS  # as a = b; b = a
            uses = [n for n, step in enumerate(self._steps) if step[:2] == ("LOAD_FAST", name)]
            self._locals[name] = _LOOKS.union(*map(self._does_with, uses))
        return self._locals[name]


uses_of = cache(Uses)


def _steps_of(code: CodeType) -> Iterator[tuple[str, Any, int, int]]:
    """Return the steps of some code, those of two local names as two: name, argument, effect on the stack, number."""
    for step in get_instructions(code):
        kind = step.opname
        if kind.startswith(("LOAD_FAST", "STORE_FAST")):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            kinds = [each for each in kind.split("_") if each in ("LOAD", "STORE")]
            for each, name in zip(kinds, names, strict=True):
                yield f"{each}_FAST", name, 1 if each == "LOAD" else -1, 0
        else:
            number = (step.arg or 0) + kind.endswith("_KW")
            yield kind, step.argval, stack_effect(step.opcode, step.arg, jump=False), number


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Return some code, and all code inside of it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_in(each)


def members_of(kind: type) -> Iterator[tuple[str, Any, list[Uses]]]:
    """Return the members of a class and its bases: name, value and the uses in its code."""
    for base in kind.__mro__:
        for name, member in vars(base).items() if base not in (object, Component) else ():
            inside = {staticmethod: "__func__", classmethod: "__func__", property: "fget"}.get(type(member))
            function = getattr(member, inside) if inside else member
            codes = [function.__code__] if type(function) is FunctionType else []
            yield name, member, [uses_of(inner) for code in codes for inner in codes_in(code)]


@cache
def memory_of(kind: type, strict: bool) -> frozenset[str]:
    """Return the attributes that objects of a class fill by themselves, such as a cache.

    These are set by a property or an operator like ``__repr__``, or read and set by a method. A method that sets an
    attribute without reading it, or adds to it, may be a part of making the object.

    Args:
        kind: The class.
        strict: Whether to count attributes that a method adds to: objects may have been used since they were made.
    """
    found: set[str] = set()
    for name, member, its_uses in members_of(kind):
        if type(member) is cached_property:
            found.add(name)
        is_quiet = isinstance(member, property) or (name.startswith("__") and not name.startswith(_SETTING))
        for uses in its_uses if not name.startswith(_MADE_BY) else ():
            found |= uses.stored if is_quiet else uses.updated
            found |= {each for each in uses.changed if is_quiet or strict or uses.attributes[each] > 1}
            if is_quiet:  # object.__setattr__(self, "_hash", ...)
                found |= uses.texts
    return frozenset(found)


def as_written(function: FunctionType) -> CodeType:
    """Return the code of a function as its file has it, if a tool such as pytest has rewritten it for this process."""
    code = function.__code__
    spec = getattr(sys.modules.get(function.__globals__.get("__name__", "")), "__spec__", None)
    if spec is None or type(spec.loader).__module__.startswith(("_frozen_importlib", "importlib", "zipimport")):
        return code
    found = [
        each
        for each in _compiled(code.co_filename)
        if (each.co_name, each.co_firstlineno) == (code.co_name, code.co_firstlineno)
    ]
    return next((each for each in found if each.co_code == code.co_code), found[0] if found else code)


@cache
def _compiled(file: str) -> tuple[CodeType, ...]:
    try:
        with open(file, "rb") as text:
            return tuple(codes_in(compile(text.read(), file, "exec", dont_inherit=True)))
    except (OSError, SyntaxError, ValueError):
        return ()


def varies(module: str, name: str) -> bool:
    """Return whether a name's value may differ by process, as a time: a call makes it, and nothing else sets it."""
    import ast
    from importlib.util import resolve_name
    from linecache import getlines

    home = sys.modules.get(module)
    lines = getlines(getattr(home, "__file__", None) or "", getattr(home, "__dict__", None))
    try:
        tree = list(ast.walk(ast.parse("".join(lines))))
    except (SyntaxError, ValueError):
        tree = []
    if not tree[1:]:
        return True  # unknown: it is compiled, for example
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    local: set[ast.AST] = set()  # where the name is one of a function's own
    for node in tree:
        if isinstance(node, functions):
            named = [each for each in ast.walk(node) if name in (getattr(each, "id", ""), *getattr(each, "names", ()))]
            if any(isinstance(getattr(each, "ctx", None), ast.Store) for each in named):
                local.update(named if all(isinstance(each, ast.Name) for each in named) else ())
    made: list[ast.AST] = []
    sources: list[tuple[str, str]] = []
    for node in tree:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                if each.name == "*" or name == (each.asname or each.name):
                    place = "." * getattr(node, "level", 0) + (getattr(node, "module", None) or "")
                    sources.append((place, name if each.name == "*" else each.name))
                    made += [node] if each.name != "*" else []
        if isinstance(node, (*functions, ast.ClassDef)) and node.name == name:
            return False
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for part in [part for target in targets if target for part in ast.walk(target)]:
            an_attribute = (
                isinstance(part, ast.Attribute) and part.attr == name and getattr(part.value, "id", "") != "self"
            )
            if an_attribute or (isinstance(part, ast.Name) and part.id == name and part not in local):
                made.append(node)
    if all(isinstance(each, ast.Import | ast.ImportFrom) for each in made):
        package = getattr(home, "__package__", None)
        return any(place and varies(resolve_name(place, package), theirs) for place, theirs in sources)
    found = [each for node in made for each in ast.walk(node)]
    return len(made) == 1 and any(isinstance(each, ast.Call) or "environ" in vars(each).values() for each in found)
