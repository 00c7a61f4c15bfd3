"""Finding a topology by name: what the command line and a task's process are given, ``module:attr`` or a file."""

from __future__ import annotations

import sys

from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

DEFAULT = "topology"


def load_topology(where: str) -> Topology:
    """The topology at ``"module:attr"`` or ``"path/file.py:attr"``; ``attr`` is ``topology`` unless given.

    It may be a Topology or a function without arguments that returns one. An exception of the module's own code comes
    through as it is; everything else is a TopologyError that says what to write.
    """
    place, attr = split(where)
    value = load_object(where)
    if callable(value) and not isinstance(value, type):
        _check_no_arguments(value, where)
        value = value()
        if not isinstance(value, Topology):
            raise TopologyError(
                f"{where}: {attr}() returned a {type(value).__name__}, not a Topology; end it with return builder.build(...)"
            )
    if not isinstance(value, Topology):
        if hasattr(value, "set_spout"):
            raise TopologyError(f"{where} is a builder, not a topology yet; write {attr} = builder.build(...)")
        raise TopologyError(
            f"{where} is {value!r}, not a Topology; name a Topology, or a function without arguments that returns one"
        )
    value.origin = f"{place}:{attr}"
    return value


def load_object(where: str) -> Any:
    """Whatever is at ``"module:attr"`` or ``"path/file.py:attr"``, imported as load_topology does."""
    place, attr = split(where)
    module = _from_file(place) if place.endswith(".py") else _from_module(place)
    try:
        return getattr(module, attr)
    except AttributeError:
        there = [name for name, value in vars(module).items() if isinstance(value, Topology)]
        if there:
            hint = f"{did_you_mean(attr, there)} (as {place}:{there[0]})"
        else:
            hint = f"write {attr} = builder.build(...) in it, outside of any function"
        raise TopologyError(f"{place} has no {attr!r}; {hint}") from None


def split(where: str) -> tuple[str, str]:
    """``"module:attr"`` in its two parts, ``attr`` filled in and a file's path made absolute."""
    place, _, attr = where.rpartition(":") if ":" in where else (where, "", DEFAULT)
    if not place or not attr.isidentifier():
        raise TopologyError(f"{where!r} names no topology; write 'module:attr' or 'path/file.py:attr'")
    if place.endswith(".py"):
        from os.path import abspath

        return abspath(place), attr
    if "/" in place or not all(part.isidentifier() for part in place.split(".")):
        raise TopologyError(f"{where!r} names no module; write 'package.module:attr', or a file's path with its .py")
    return place, attr


def find_origin(topology: Topology) -> str | None:
    """``"module:attr"`` where another process finds this very topology: first in the module that built it."""
    home = sys.modules.get(topology.module or "")
    modules = [module for module in (home, sys.modules.get("__main__"), *sys.modules.values()) if module is not None]
    for module in modules:
        for attr, value in list(getattr(module, "__dict__", {}).items()):
            if value is topology and attr.isidentifier():
                place = _place(module)
                if place is not None:
                    return f"{place}:{attr}"
    return None


def _place(module: ModuleType) -> str | None:
    """How to name a module to another process: by its package, or else by its file, which needs no search path."""
    spec = getattr(module, "__spec__", None)
    if spec is not None and "." in spec.name:  # also python -m package.module, whose module is called __main__
        return str(spec.name)
    file: str | None = getattr(module, "__file__", None)
    if file is not None and file.endswith(".py"):
        from os.path import abspath

        return abspath(file)
    return None  # typed at a prompt, or piped in


def _from_module(name: str) -> ModuleType:
    from os import getcwd

    if name not in sys.modules and not {"", getcwd()} & set(sys.path):
        sys.path.insert(0, getcwd())  # a console command's path starts at its own folder, not the user's
    try:
        __import__(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
            raise  # something that the module itself imports
        raise TopologyError(
            f"there is no module {problem.name!r} in this folder or on Python's path; for a file write its path, such as "
            f"{name.replace('.', '/')}.py"
        ) from None
    return sys.modules[name]


def _from_file(path: str) -> ModuleType:
    """As Python runs a script: its folder first on the path. Imported once, under its own name when that is free."""
    from os.path import basename, dirname, isfile

    if not isfile(path):
        raise TopologyError(
            f"there is no file {path!r}; write the path of a Python file, or package.module for a module"
        )
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path and module.__name__ != "__main__":
            return module
    name = basename(path)[:-3]
    if name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier():
        name = "".join(letter if letter.isalnum() else "_" for letter in path)
    folder = dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)

    from importlib.machinery import ModuleSpec, SourceFileLoader

    loader = SourceFileLoader(name, path)
    module = type(sys)(name)
    module.__file__ = path
    module.__loader__ = loader
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check_no_arguments(function: Any, where: str) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    required = code.co_argcount - len(function.__defaults__ or ())
    required += code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    if required > (1 if hasattr(function, "__self__") else 0):
        raise TopologyError(f"{where} is a function with arguments; name one without, that returns the Topology")
