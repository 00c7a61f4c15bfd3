"""Descriptions of components, by which a task's process checks that it found the component that was submitted.

Another process finds a topology by the name of its module, and builds it anew by importing that. This gives another
topology if the script binds a name a second time (``if __name__ == "__main__": topology = build(1000)``, a loop,
``FACTOR = 2``), uses values of its own process (``sys.argv``), or replaces a method or an attribute afterwards. Then the
results would be wrong, without an error.

So the submitting process describes each component as *parts*, a short digest for each: its class, the code and the attributes
of its class, each argument that it was made with, each attribute that was set after it was made, its streams, and what its code
finds by global names. These are followed through the code of the user's own functions and classes; of installed ones the
name counts. Its conf is not a part: a task's process gets that of the submitted topology. The process describes the
component that it found in the same way, and refuses a difference, which it names. No value is part of a description, so
that it contains no secret.

Two processes that build the same topology may yet differ, and that is no difference:

- Values that ``__init__`` makes: a random number or a lock is another one in each process.
- Caches: the code of an object's class shows which attributes it fills on demand (``uses.memory_of``), and code that
  reads a global name shows whether it writes into the value, or passes it to code that does (``Uses``).
- Values that a module or a class makes by a call, as ``time.time()``, and nothing else in its file sets
  (``uses.varies``); and those of a module without a source. A debug line of the log names them.
- The order of sets and dicts, the name of ``__main__``, the folder of the topology's files.
"""

from __future__ import annotations

import builtins
import os
import sys
from copyreg import dispatch_table
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from marshal import dumps
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from multilang.component.base import Component, made_with
from multilang.component.errors import ConfigError
from multilang.topology.uses import as_written, codes_in, members_of, memory_of, uses_of, varies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.topology.model import ComponentSpec, Topology
    from multilang.topology.uses import Uses

_OURS = ("multilang", "spark_bridge")
_NUMBERS = {type(None), bool, int, float, bytes}
_PLAIN = {*_NUMBERS, str}
_FIXED = (tuple, frozenset)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_CODE = (FunctionType, MethodType, staticmethod, classmethod, property, cached_property)
_FUNCTIONAL = ("functools", "operator")
_OF_PYTHON = "~"
_GLOBAL = "what "
_NAMED = (type, BuiltinFunctionType, FunctionType, ModuleType)
_DEEPEST = 100
_MOST = 20_000  # parts of one value that are looked at one by one: a table among the arguments costs no seconds
PYTHON = "python"  # the part that names the Python of the digests
MODULES = "modules"  # the one with the names of the modules whose code is followed


def submission(topology: Topology, arguments: Sequence[str], *only: str, root: str = "") -> dict[str, Any]:
    """Return the description of a submitted topology for its tasks' processes.

    Args:
        topology: The topology.
        arguments: ``sys.argv`` for the processes.
        only: The components that they may run; all, if none is named.
        root: The folder of its files, if the processes have them in another one.
    """
    specs = [spec for spec in topology.components.values() if isinstance(spec.component, Component)]
    components = {spec.id: parts_of(spec, root) for spec in specs if not only or spec.id in only}
    return {"arguments": list(arguments), "components": components}


def parts_of(spec: ComponentSpec, root: str = "") -> dict[str, str]:
    """Return the parts of a component: the digest of each, by a text that names it.

    Args:
        spec: The component.
        root: The folder of the topology's files, which paths among its arguments may begin with.
    """
    return _Description(spec, root).parts


def check_found(submission: Mapping[str, Any], spec: ComponentSpec, where: str, root: str = "") -> None:
    """Compare the component that was found with the one that was submitted.

    Args:
        submission: The result of ``submission`` where the topology was submitted.
        spec: The one that was found.
        where: The place where it was found.
        root: The folder of the topology's files here.

    Raises:
        ConfigError: It is another one; the text names the first difference.
    """
    submitted = submission["components"].get(spec.id)
    if submitted is None:
        return
    description = _Description(spec, root, submitted)
    found = description.parts
    same_python = submitted.get(PYTHON) == found[PYTHON]
    for part in {**submitted, **found}:
        before, now = submitted.get(part, ""), found.get(part, "")
        if before == now or part in (PYTHON, MODULES) or (not same_python and _OF_PYTHON in before[:1] + now[:1]):
            continue
        if not (before and now) and (part.startswith(_GLOBAL) or not same_python):
            continue  # code that only one of the two has, or which another Python has compiled
        module, name = description.bound.get(part, ("", ""))
        if module and not _is_library(module) and varies(module, name):
            import logging

            logging.getLogger(__name__).debug(
                "component %r: %s differs in each process; it is not compared", spec.id, part
            )
            continue
        raise ConfigError(
            f"component {spec.id!r} of {where} is not the one that was submitted: {part} differs. A task's process imports "
            "the module, and builds the topology anew: build it there in the same way in each process, outside of "
            'if __name__ == "__main__", from nothing that only the submitting process has (its arguments, a loop, a name or '
            "attribute set later, the order of a set), give what varies by the conf, and change the file only between runs"
        )


class _Description:
    """The parts of a component.

    Args:
        spec: The component.
        root: The folder of the topology's files.
        submitted: The parts of the component that was submitted, if this is the one that was found.

    Attributes:
        parts: The digests.
        bound: The module and the name of each part that a module or class binds.
    """

    def __init__(self, spec: ComponentSpec, root: str, submitted: Mapping[str, str] | None = None) -> None:
        self.parts = {PYTHON: f"{sys.implementation.cache_tag}-{sys.hexversion:x}-{sys.flags.optimize}"}
        self.bound: dict[str, tuple[str, str]] = {}
        self._root = os.path.normpath(root) if root else ""
        self._finds = submitted is not None
        self._own = set((submitted or {}).get(MODULES, "").split())
        self._left: list[Any] = []  # functions and classes that are still to be followed
        self._seen: dict[Any, Any] = {}
        self._written: set[tuple[str, str]] = set()
        self._passed: set[tuple[tuple[str, str], str]] = set()
        self._filling: set[str] = set()  # functions that write into what they are called with
        self._behind: list[tuple[tuple[str, str], list[Any]]] = []  # functions and classes met in the values of names
        for name, stream in spec.streams.items():
            self._add(f"its stream {name!r}", [list(stream.fields), stream.direct])
        component: Any = spec.component
        while isinstance(component, Component):
            self._add_component(component)
            component = component.wrapped
        self._follow()

    def _add(self, part: str, value: Any, bound: tuple[str, str] | None = None) -> None:
        while part in self.parts:  # two classes of one name
            part += " "
        if bound is not None:
            self.bound[part] = bound
        walk = _Walk(self._root, bound is not None, self._is_own)
        self.parts[part] = walk.digest(value)
        if bound is None or issubclass(type(value), _NAMED):
            self._left += walk.met
        else:
            self._behind.append((bound, walk.met))

    def _add_component(self, component: Component) -> None:
        kind = type(component)
        name = kind.__name__
        self._add("its class", kind)
        arguments, named, before = made_with(component)
        names = _parameters(kind)
        given: dict[Any, Any] = {names[n] if n < len(names) else n + 1: each for n, each in enumerate(arguments)}
        for argument, value in {**given, **named}.items():
            if value is not component.wrapped:
                self._add(f"the argument {argument!r} of {name}", value)
        for attribute, value in vars(component).items():
            was = before.get(attribute, before)
            if was is value or attribute in memory_of(kind, True) or (was is before and attribute.startswith("_")):
                continue
            if self._is_comparable(value) and (was is before or digest(was) != digest(value)):
                self._add(f"the attribute {attribute!r} of {name}, set after it was made,", value)

    def _follow(self) -> None:
        """Add what the code of functions and classes finds, what the code there finds, and so on."""
        while self._left or self._behind:
            if not self._left:
                place, self._left = self._behind.pop(0)
                self._left = [] if place in self._memory() else self._left
                continue
            each = self._left.pop(0)
            if id(each) in self._seen or not self._is_own(_home(each)):
                continue
            self._seen[id(each)] = each
            if isinstance(each, type):
                self._add_class(each)
            else:
                self._add_globals(each)
        memory = self._memory()
        for part, place in self.bound.items():
            if place in memory:
                del self.parts[part]
        self.parts[MODULES] = " ".join(sorted(self._own))

    def _memory(self) -> set[tuple[str, str]]:
        """Return the places into which code writes, or which it passes to a function that does."""
        return self._written | {place for place, called in self._passed if called in self._filling}

    def _is_own(self, module: object) -> bool:
        """Return whether a module is the user's own, and not installed."""
        # Where the component runs, modules that are installed here may stand beside the user's own.
        if not self._finds and not _is_library(module):
            self._own.add(_stem(str(module)))
        return _stem(str(module)) in self._own

    def _is_comparable(self, value: Any) -> bool:
        """Return whether a name's value may be compared: plain data or code, and not a lock, a client, a logger."""
        kind: Any = type(value)
        if kind in _PLAIN or kind in _CONTAINERS or issubclass(kind, (*_CODE, type)):
            return True
        return kind.__eq__ is not object.__eq__ or kind.__module__ in _FUNCTIONAL or self._is_own(kind.__module__)

    def _add_class(self, kind: type) -> None:
        self._left += kind.__bases__
        # What objects remember; and what they count, even in __init__.
        left_out = memory_of(kind, True) | {
            each for *_, its in members_of(kind) for uses in its for each in uses.updated | uses.changed
        }
        for attribute, value in list(vars(kind).items()):
            if attribute.startswith("__annotate") or (attribute == "__hash__" and _is_generated(value)):
                continue  # attrs puts the hash of a text into the code
            if issubclass(type(value), _CODE):
                self._add(f"the code of {kind.__name__}.{attribute}", value)
                continue
            is_python_s = attribute.startswith("_") and attribute.endswith("_")
            if not is_python_s and attribute not in left_out and self._is_comparable(value):
                place = kind.__module__, attribute
                self._add(f"the attribute {attribute!r} of the class {kind.__name__}", value, place)

    def _add_globals(self, function: FunctionType) -> None:
        names = function.__globals__
        module = str(names.get("__name__"))
        for code in codes_in(function.__code__):
            uses = uses_of(code)
            self._written.update((module, name) for name in uses.bound)
            self._filling.update([code.co_name] if uses.fills else ())
            for name, writes in uses.globals.items():
                if name in names or name in vars(builtins):
                    self._add_global(module, name, names.get(name, vars(builtins).get(name)), uses, writes)

    def _add_global(self, module: str, name: str, value: Any, uses: Uses, writes: bool) -> None:
        part = f"{_GLOBAL}{name!r} is in {_stem(module)}"
        is_code = issubclass(type(value), _NAMED)
        is_fixed = is_code or type(value) in _PLAIN or (type(value) in _FIXED and set(map(type, value)) <= _PLAIN)
        if not is_fixed and (writes or not uses.stored.isdisjoint(_attributes(value))):
            self._written.add((module, name))
        if not is_fixed:
            self._passed.update(((module, name), called) for each, called in uses.passed if each == name)
        if writes and is_code:
            home = value.__name__ if issubclass(type(value), ModuleType) else str(value.__module__)
            self._written.update((home, does[1:]) for each, does in uses.passed if each == name and does[0] == ".")
        if part not in self.parts:
            if is_code or (self._is_own(module) and self._is_comparable(value)):
                self._add(part, value, (module, name))
            elif callable(value):
                self._add(part, type(value))  # such as a test's mock of a function
        if issubclass(type(value), ModuleType) and (value, uses) not in self._seen:
            self._seen[value, uses] = value  # as modules may import each other
            for attribute in uses.attributes:
                if attribute in vars(value):
                    self._add_global(value.__name__, attribute, vars(value)[attribute], uses, attribute in uses.changed)


def _parameters(kind: type) -> tuple[str, ...]:
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    return () if code is None else code.co_varnames[1 : code.co_argcount]


def _is_library(module: object) -> bool:
    """Return whether a module is installed, and not the user's own."""
    found = sys.modules.get(str(module))
    if found is None or module == "__main__":
        return False
    file = getattr(found, "__file__", None)
    return (
        file is None
        or _is_ours(module)
        or not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))
        or file.startswith(os.path.dirname(os.__file__) + os.sep)
    )


def _is_generated(value: Any) -> bool:
    """Return whether the code of a method is in no file."""
    return type(value) is FunctionType and value.__code__.co_filename.startswith("<")


def _attributes(value: object) -> dict[str, Any]:
    try:
        found = value.__dict__
    except Exception:  # noqa: BLE001 - such as a proxy of something that does not exist yet
        return {}
    return found if type(found) is dict else {}


def _is_foreign(kind: type) -> bool:
    """Return whether a class is another library's, and not Python's own or that of data, as a table of pandas."""
    is_python_s = str(kind.__module__).partition(".")[0] in sys.stdlib_module_names
    is_known = is_python_s or _is_ours(kind.__module__) or hasattr(kind, "__array__")
    return not is_known and _is_library(kind.__module__)


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in _OURS


def _home(value: Any) -> object:
    """Return the name of the module that a class or function is from, also behind a decorator."""
    return value.__globals__.get("__name__") if isinstance(value, FunctionType) else value.__module__


def digest(value: object, root: str = "") -> str:
    """Return a short digest of a value, the same in each process that makes the value in the same way.

    It begins with ``~`` if it may be another one under another Python.
    """
    return _Walk(os.path.normpath(root) if root else "").digest(value)


class _Walk:
    """A walk through a value, which gives the same form in each process that makes the value in the same way.

    Args:
        root: The folder of the topology's files.
        strict: Whether the value may have been used since it was made.
        is_own: Whether the code of a module's functions is compared, and not their names.
    """

    def __init__(self, root: str, strict: bool = False, is_own: Callable[[object], bool] = bool) -> None:
        self.met: list[Any] = []  # functions and classes
        self._root = root
        self._strict = strict
        self._is_own = is_own
        self._is_plain = True
        self._left = _MOST
        self._codes = 0  # around the place in the walk
        self._called: frozenset[str] = frozenset()  # the attributes that a method fills, around the place in the walk
        self._around: list[object] = []  # what the place in the walk is inside of

    def digest(self, value: object) -> str:
        try:
            form = dumps(self.form(value), 2)
        except Exception:  # noqa: BLE001 - whatever an object raises: its class is enough
            form = dumps(_name(type(value)), 2)
            self._is_plain = False
        return ("" if self._is_plain else _OF_PYTHON) + blake2b(form, digest_size=8).hexdigest()

    def form(self, value: Any) -> Any:
        """Return the form of a value: plain values, in lists."""
        kind = type(value)
        if kind in _NUMBERS:
            return value
        if kind is str:
            return self._text(value)
        if hasattr(kind, "__fspath__"):
            return self.form(os.fspath(value))
        self._left -= 1
        if any(each is value for each in self._around) or len(self._around) > _DEEPEST or self._left < 0:
            return ["again"]
        if isinstance(value, type | FunctionType):
            self.met.append(value)
        if isinstance(value, type | BuiltinFunctionType | ModuleType) or (
            kind is FunctionType and not self._is_own(_home(value))
        ):
            inside = [getattr(value, "__wrapped__", None)] if kind is FunctionType else []
            if inside and _is_ours(_home(value)):
                inside += _enclosed(value)
            return [_name(value), *map(self.form, inside)]
        self._around.append(value)
        try:
            if kind in _CONTAINERS:
                return [kind.__name__, len(value), self._items(value, kind)]
            self._is_plain = False
            return [_name(kind), *map(self.form, self._inside(value, kind))]
        finally:
            self._around.pop()

    def _text(self, value: str) -> Any:
        if self._codes:  # in both processes it is the same
            return value
        if value == "__main__":
            return _main()
        if value.startswith(os.sep):
            value = os.path.normpath(value)
        if self._root and value.startswith(self._root):
            return ["below", value.removeprefix(self._root)]
        return value

    def _items(self, value: Any, kind: type) -> Any:
        """Return the form of a container's items, fast if they are plain."""
        if kind is dict:
            pairs = zip(self._items(list(value), list), self._items(list(value.values()), list), strict=False)
            return sorted(pairs, key=_dumped)
        kinds = set(map(type, value))
        if kinds <= _NUMBERS:
            found = list(value)
        elif kinds == {str}:
            found = [self._text(each) if each[:1] in "/_" else each for each in value]
        elif kind in (list, tuple) or len(value) <= _MOST // 10:
            found = [self.form(each) for each in islice(value, max(self._left, 0))]
        else:
            return []
        return (
            found
            if kind in (list, tuple)
            else sorted(found, key=None if kinds == {int} or (kinds == {str} and not self._root) else _dumped)
        )

    def _inside(self, value: Any, kind: type) -> Iterator[Any]:
        """Return the parts of a value."""
        if kind is FunctionType:
            yield value.__qualname__
            yield as_written(value)
            # Not the items of a dict, list or set there: it may be a cache of earlier calls.
            yield from map(_if_fixed, value.__defaults__ or ())
            yield from map(_if_fixed, (value.__kwdefaults__ or {}).values())
            yield from _enclosed(value)
        elif kind is CodeType:
            yield value.co_code
            yield value.co_names
            yield value.co_varnames
            self._codes += 1
            yield value.co_consts
            self._codes -= 1
        elif kind is MethodType:
            yield value.__func__
            called = self._called
            self._called |= {name for each in _uses_in(value.__func__) for name in each.stored | each.changed}
            yield _if_fixed(value.__self__)
            self._called = called
        elif kind in (staticmethod, classmethod):
            yield value.__func__
        elif kind is property:
            yield from (value.fget, value.fset, value.fdel)
        elif kind is cached_property:
            yield value.func
        elif "__wrapped__" in _attributes(value):  # a cache around a function
            yield value.__wrapped__
        elif _attributes(value) and _is_foreign(kind):
            return  # it may store anything there: its class is enough
        else:
            try:
                made = dispatch_table[kind](value) if kind in dispatch_table else value.__reduce_ex__(2)
            except Exception:  # noqa: BLE001 - a lock, a socket, a client: its class is enough
                return
            self.met.append(kind)
            for part in made if isinstance(made, tuple) else (made,):
                # The attributes, those in slots behind them; or the items of a dict of another class.
                for each in part if made[2:3] == (part,) and isinstance(part, tuple) else (part,):
                    yield self._fixed(each, kind) if type(each) is dict else each

    def _fixed(self, attributes: dict[Any, Any], kind: type) -> dict[Any, Any]:
        memory = memory_of(kind, self._strict) | self._called
        return {name: each for name, each in attributes.items() if name not in memory}


def _dumped(form: Any) -> bytes:
    return dumps(form, 2)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    """Return a function's closure values, except for those that it, or another function there, may fill."""
    around = function.__globals__.get(function.__qualname__.partition(".")[0])
    outer = around.__code__ if type(around) is FunctionType else function.__code__
    uses = [uses_of(each) for code in (function.__code__, outer) for each in codes_in(code)]
    changed = {name for each in uses for name in each.changed}
    rebound = {name for each in uses for name in each.rebound}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found = cell.cell_contents
        except ValueError:
            found = None  # it is empty
        yield None if name in rebound else _if_fixed(found) if name in changed else found


def _uses_in(function: Any) -> Iterator[Uses]:
    code = getattr(function, "__code__", None)
    return map(uses_of, codes_in(code)) if type(code) is CodeType else iter(())


def _if_fixed(value: Any) -> Any:
    return type(value) if issubclass(type(value), (dict, list, set)) else value


def _main() -> str:
    """Return the name by which other processes import what is ``__main__`` here."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    name = getattr(spec, "name", None) or os.path.basename(getattr(main, "__file__", None) or "").removesuffix(".py")
    return str(name).removesuffix(".__main__") or "__main__"


def _stem(module: str) -> str:
    """Return the name of a module's file, or package: the module's own differs between processes."""
    file = getattr(sys.modules.get(module), "__file__", None) or module.replace(".", "/")
    stem = str(file).rpartition("/")[2].partition(".")[0]
    return module.rpartition(".")[2] if stem == "__init__" else stem


def _name(value: Any) -> str:
    if isinstance(value, ModuleType):
        return _stem(value.__name__)
    return f"{_stem(getattr(value, '__module__', None) or '')} {getattr(value, '__qualname__', None) or value.__name__}"
