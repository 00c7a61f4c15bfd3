"""Descriptions of components, by which a task's process finds out whether it found the component that was submitted.

Another process finds a topology by the name of its module, and builds it anew by importing that. What it builds is another
topology where the script binds the name a second time (``if __name__ == "__main__": topology = build(1000)``, a loop), builds
by what only it knows (``sys.argv``), or replaces a method or an attribute afterwards. Then the answer would be wrong, in silence.

So the submitting process describes each component as *parts*, a short digest for each: its class, the code and the plain
attributes of its class, each argument that it was made with, each plain attribute that was set after it was made, and its
streams. Its conf is not one of them: a task's process gets that of the submitted topology. The process describes what it found in the same way, and refuses a
difference, which it names. No value is part of a description, so that it tells no secret. What ``__init__`` makes of its
arguments is not compared: a random number or a lock differs in each process. Nor is what code finds by a global name.
"""

from __future__ import annotations

import os
import sys
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from multilang.component.base import Component, made_with
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from multilang.topology.model import ComponentSpec, Topology

_OURS = ("multilang", "spark_bridge")
_PLAIN = (type(None), bool, int, float, str, bytes)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_OF_PYTHON = "~"
_OR = "|"
_DEEPEST = 100
_MOST = 100_000  # parts of one value that are looked at: a model or a table among the arguments costs no seconds
_LONG = 1000  # characters from which on a digest stands for a text
PYTHON = "python"  # the part that names the Python of the digests


def submission(topology: Topology, arguments: Sequence[str], *only: str, root: str = "") -> dict[str, Any]:
    """Return what a task's process is told of the topology that was submitted.

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
    """Return the parts of a component: what each is, in words, with its digest.

    Args:
        spec: The component.
        root: The folder of the topology's files, which paths among its arguments may begin with.
    """
    parts = {PYTHON: f"{sys.implementation.cache_tag}-{sys.flags.optimize}"}
    parts.update(
        (f"its stream {name!r}", digest([list(stream.fields), stream.direct])) for name, stream in spec.streams.items()
    )
    component: Any = spec.component
    while isinstance(component, Component):
        parts.update(_own_parts(component, root))
        component = component.wrapped
    return parts


def check_found(submission: Mapping[str, Any], spec: ComponentSpec, where: str, root: str = "") -> None:
    """Compare the component that was found with the one that was submitted.

    Args:
        submission: What ``submission`` returned, where the topology was submitted.
        spec: The one that was found.
        where: The place where it was found.
        root: The folder of the topology's files here.

    Raises:
        ConfigError: It is another one; the text names the first difference.
    """
    submitted = submission["components"].get(spec.id)
    if submitted is None:
        return
    found = parts_of(spec, root)
    same_python = submitted.get(PYTHON) == found[PYTHON]
    for part in {**submitted, **found}:
        before, now = submitted.get(part, ""), found.get(part, "")
        if part == PYTHON or (not same_python and _OF_PYTHON in before[:1] + now[:1]):
            continue
        if not set(before.split(_OR)) & set(now.split(_OR)):
            raise ConfigError(
                f"component {spec.id!r} of {where} is not the one that was submitted: {part} differs. A task's process imports "
                "the module, and builds the topology anew: build it there in the same way in each process, outside of "
                'if __name__ == "__main__", from nothing that only the submitting process has (its arguments, a loop, an '
                "attribute set later), give what varies by the conf, and change the file only between runs"
            )


def _own_parts(component: Component, root: str) -> Iterator[tuple[str, str]]:
    kind = type(component)
    name = kind.__name__
    yield "its class", digest(kind)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in (*_OURS, "builtins", "abc", "typing"):
            continue
        for attribute, value in vars(base).items():
            if isinstance(value, FunctionType | staticmethod | classmethod | property):
                yield f"the code of {base.__name__}.{attribute}", digest(value)
            elif isinstance(value, _PLAIN) and not attribute.startswith("__"):
                yield f"the attribute {attribute!r} of the class {base.__name__}", digest(value, root)
    arguments, named, before = made_with(component)
    names = _parameters(kind)
    given: dict[Any, Any] = {names[n] if n < len(names) else n + 1: each for n, each in enumerate(arguments)}
    for argument, value in {**given, **named}.items():
        if value is not component.wrapped:
            yield f"the argument {argument!r} of {name}", digest(value, root)
    for attribute, value in vars(component).items():
        was = before.get(attribute, before)
        if (
            was is not value
            and not attribute.startswith("_")
            and isinstance(value, (*_PLAIN, FunctionType))
            and was != value
        ):
            yield f"the attribute {attribute!r} of {name}, set after it was made,", digest(value, root)


def _parameters(kind: type) -> tuple[str, ...]:
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    return () if code is None else code.co_varnames[1 : code.co_argcount]


def digest(value: object, root: str = "") -> str:
    """Return a short digest of a value, the same in each process that makes the value in the same way.

    It begins with ``~`` if it may be another one under another Python. If there is code in it, a second one follows, in which
    the text of its source stands for the code: what a tool such as pytest has rewritten is the same by that.
    """
    walk = _Walk(root)
    walk.see(value)
    found = ("" if walk.is_plain else _OF_PYTHON) + _short("\n".join(walk.texts))
    if walk.has_code:
        walk = _Walk(root, by_source=True)
        walk.see(value)
        found += _OR + _OF_PYTHON + _short("\n".join(walk.texts))
    return found


def _short(value: str | bytes) -> str:
    return blake2b(
        value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass"), digest_size=6
    ).hexdigest()


class _Walk:
    """A walk through a value, which gives the same texts in each process that makes the value in the same way."""

    def __init__(self, root: str, by_source: bool = False) -> None:
        self.texts: list[str] = []
        self.is_plain = True
        self.has_code = False
        self._root = os.path.normpath(root) if root else ""
        self._by_source = by_source
        self._around: list[object] = []  # what the place in the walk is inside of

    def see(self, value: Any) -> None:
        texts, around = self.texts, self._around
        if len(texts) > _MOST:
            return
        kind = type(value)
        if hasattr(kind, "__fspath__"):
            value = os.fspath(value)
            kind = type(value)
        if kind is str and value == "__main__":
            value = _main()
        elif kind is str and value.startswith(os.sep):
            value = os.path.normpath(value)
        if self._root and kind is str and value.startswith(self._root):
            texts.append(f"below {value.removeprefix(self._root)!r}")
        elif kind in (str, bytes) and len(value) > _LONG:
            texts.append(f"{kind.__name__} {_short(value)}")
        elif kind in _PLAIN:
            texts.append(f"{kind.__name__} {value!r}")
        elif isinstance(value, type | BuiltinFunctionType | ModuleType):
            texts.append(_name(value))
        elif any(each is value for each in around) or len(around) > _DEEPEST:
            texts.append("again")
        else:
            self.is_plain = self.is_plain and kind in _CONTAINERS
            around.append(value)
            texts.append(_name(kind))
            if kind in _CONTAINERS:
                texts.append(str(len(value)))
            elif kind is CodeType:
                self.has_code = True
            source = _source(value) if self._by_source and kind is CodeType else None
            for part in _inside(value, kind) if source is None else (source,):
                self.see(part)
            texts.append("end")
            around.pop()


def _inside(value: Any, kind: type) -> Iterator[Any]:
    """Return what makes up a value."""
    if kind is list or kind is tuple:
        yield from value
    elif kind is dict:
        for key, each in value.items():
            yield key
            yield each
    elif kind in (set, frozenset):
        if len(value) <= _MOST // 10:
            yield from sorted(map(digest, value))
    elif kind is FunctionType:
        yield value.__qualname__
        yield value.__code__
        # Not what is in a dict, list or set there: it may be a memory of earlier calls.
        yield from map(_if_fixed, value.__defaults__ or ())
        yield from map(_if_fixed, (value.__kwdefaults__ or {}).values())
        for cell in value.__closure__ or ():
            try:
                yield _if_fixed(cell.cell_contents)
            except ValueError:  # it is empty
                yield None
    elif kind is CodeType:
        yield value.co_code
        yield value.co_names
        yield value.co_varnames
        yield value.co_consts
    elif kind is MethodType:
        yield value.__func__
        yield value.__self__
    elif kind in (staticmethod, classmethod):
        yield value.__func__
    elif kind is property:
        yield from (value.fget, value.fset, value.fdel)
    else:
        try:
            made = value.__reduce_ex__(2)
        except Exception:  # noqa: BLE001 - a lock, a socket, a client: its class says enough
            return
        yield from made if isinstance(made, tuple) else (made,)


def _if_fixed(value: Any) -> Any:
    return type(value) if isinstance(value, dict | list | set) else value


def _source(code: CodeType) -> str | None:
    """Return the text of the source of some code, if it is known."""
    from inspect import getsource

    try:
        return getsource(code)
    except (OSError, TypeError, IndexError, SyntaxError):
        return None


def _main() -> str:
    """Return the name by which other processes import what is ``__main__`` here."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    name = getattr(spec, "name", None) or os.path.basename(getattr(main, "__file__", None) or "").removesuffix(".py")
    return str(name).removesuffix(".__main__") or "__main__"


def _name(value: Any) -> str:
    """Return the name of a class, function or module, with the name of its file: that of its module differs between processes."""
    module = getattr(value, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None) or module.replace(".", "/")
    stem = file.rpartition("/")[2].partition(".")[0]
    return f"{module.rpartition('.')[2] if stem == '__init__' else stem} {getattr(value, '__qualname__', None) or value.__name__}"
