"""Descriptions of components, by which a task's process finds out whether it found the component that was submitted.

Another process finds a topology by the name of its module, and builds it anew by importing that. What it builds is another
topology where the script binds the name a second time (``if __name__ == "__main__": topology = build(1000)``, a loop), builds
by what only it knows (``sys.argv``), or replaces a method or an attribute afterwards. Then the answer would be wrong, in silence.

So the submitting process describes each component as *parts*, a short digest for each: its class, the code of its class, each
argument that it was made with, each plain attribute that was set after it was made, and its streams. Its conf is not one of
them: a task's process gets that of the submitted topology. The process describes what it found in the same way, and refuses a
difference, which it names. No value is part of a description, so that it tells no secret. What ``__init__`` makes of its
arguments is not compared: a random number or a lock differs in each process.
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
_DEEPEST = 100
_MOST = 10_000  # parts of one value that are looked at: a model or a table among the arguments costs no seconds
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
        if before != now:
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

    It begins with ``~`` if it may be another one under another Python.
    """
    walk = _Walk(root)
    walk.see(value)
    return ("" if walk.is_plain else _OF_PYTHON) + blake2b(
        "\n".join(walk.texts).encode("utf-8", "surrogatepass"), digest_size=6
    ).hexdigest()


class _Walk:
    """A walk through a value, which gives the same texts in each process that makes the value in the same way."""

    def __init__(self, root: str) -> None:
        self.texts: list[str] = []
        self.is_plain = True
        self._root = root
        self._around: list[object] = []  # what the place in the walk is inside of

    def see(self, value: Any) -> None:
        texts, around = self.texts, self._around
        if len(texts) > _MOST:
            return
        kind = type(value)
        if hasattr(kind, "__fspath__"):
            value = os.fspath(value)
            kind = type(value)
        if self._root and kind is str and value.startswith(self._root):
            texts.append(f"below {value.removeprefix(self._root)!r}")
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
            for part in _inside(value, kind):
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
        yield from sorted(map(digest, value))
    elif kind is FunctionType:
        yield value.__qualname__
        yield value.__code__
        yield value.__defaults__
        yield value.__kwdefaults__
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
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


def _name(value: Any) -> str:
    """Return the name of a class, function or module, with the name of its file: that of its module differs between processes."""
    module = getattr(value, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None) or module.replace(".", "/")
    stem = file.rpartition("/")[2].partition(".")[0]
    return f"{module.rpartition('.')[2] if stem == '__init__' else stem} {getattr(value, '__qualname__', None) or value.__name__}"
