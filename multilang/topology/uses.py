"""Read from bytecode what code does with names: what it finds, what it writes into, what objects remember.

In two processes that do the same, a value that code writes into may differ: one of them may have run it already.
"""

from __future__ import annotations

import sys
from dis import get_instructions, stack_effect
from functools import cache, cached_property
from types import CodeType, FunctionType, MappingProxyType

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from dis import Instruction
    from typing import Any

_MADE_BY = ("__init", "__new__", "__post_init__", "__attrs_", "__setstate__", "__copy__", "__deepcopy__", "__reduce")
_SETTING = ("__set", "__del", "__i")  # operators that somebody calls to change an object
_WRITING = {*dir(list), *dir(dict), *dir(set)} - {*dir(tuple), *dir(frozenset), *dir(MappingProxyType)}


class Uses:
    """The uses that some code makes of names.

    Attributes:
        globals: The global names that it reads, each with whether it writes into what it finds there.
        bound: Those that it binds.
        attributes: How often it reads each attribute.
        stored: The attributes that it sets.
        updated: Those of them that it reads, too.
        changed: The attributes, and names of the functions around it, into which it writes.
        texts: The texts in it.
    """

    def __init__(self, code: CodeType) -> None:
        self.globals: dict[str, bool] = {}
        self.bound: set[str] = set()
        self.attributes: dict[str, int] = {}
        self.stored: set[str] = set()
        self.changed: set[str] = set()
        self.texts = {each for each in code.co_consts if isinstance(each, str)}
        steps = list(get_instructions(code))
        for n, step in enumerate(steps):
            name, kind = step.argval, step.opname
            if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.globals[name] = self.globals.get(name, False) or _writes(steps, n)
            elif kind in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF"):
                self.attributes[name] = self.attributes.get(name, 0) + 1
                if _writes(steps, n):
                    self.changed.add(name)
            elif kind in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.bound.add(name)
            elif kind in ("STORE_ATTR", "DELETE_ATTR"):
                self.stored.add(name)
        self.updated = self.stored & self.attributes.keys()


uses_of = cache(Uses)


def _writes(steps: Sequence[Instruction], n: int, inside: bool = False) -> bool:
    """Return whether code writes into what a step loads, or into what is inside of that; or keeps it under another name."""
    if steps[n + 1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return steps[n + 1].argval in _WRITING or _writes(steps, n + 1, inside=True)
    depth = 0  # of the stack, above what was loaded
    is_copied = False  # by X[k] += 1, which reads X[k] before it writes there
    for m in range(n + 1, len(steps)):
        kind = steps[m].opname
        depth += stack_effect(steps[m].opcode, steps[m].arg, jump=False)
        is_copied = is_copied or kind.startswith(("COPY", "DUP"))
        if depth < 0:
            if kind in ("STORE_SUBSCR", "STORE_SLICE"):
                return is_copied or depth == -2  # not the value that is put somewhere, nor its key
            return kind == "DELETE_SUBSCR" or (kind.startswith("STORE_") and not inside)
        if depth == 0 and kind.startswith(("BINARY_", "INPLACE_", "GET_ITER")) and not is_copied:
            return kind.startswith("BINARY_") and _writes(steps, m, inside=True)
    return False


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Return some code, and all that is inside of it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_in(each)


def members_of(kind: type) -> Iterator[tuple[str, Any, list[Uses]]]:
    """Return the names of what a class and its bases have, with what that is, and what its code does."""
    for base in kind.__mro__:
        for name, member in vars(base).items() if base not in (object, Component) else ():
            functions = getattr(member, "__func__", member), getattr(member, "fget", None)
            codes = [each.__code__ for each in functions if isinstance(each, FunctionType)]
            yield name, member, [uses_of(inner) for code in codes for inner in codes_in(code)]


@cache
def memory_of(kind: type, strict: bool) -> frozenset[str]:
    """Return the attributes that objects of a class fill by themselves, such as a cache.

    These are what a property or an operator like ``__repr__`` sets, and what a method reads and sets. A method that sets what
    it does not read, or adds to it, may be how an object is made.

    Args:
        kind: The class.
        strict: Whether to count among them what a method adds to: objects may have been used since they were made.
    """
    found: set[str] = set()
    for name, member, its_uses in members_of(kind):
        if isinstance(member, cached_property):
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
    """Return whether each process may bind a name to a value of its own, as a time: a call makes it, and nothing else sets it."""
    import ast
    from importlib.util import resolve_name

    home = sys.modules.get(module)
    try:
        with open(getattr(home, "__file__", None) or "", "rb") as file:
            tree = list(ast.walk(ast.parse(file.read())))
    except (OSError, SyntaxError, ValueError):
        return False
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
