"""Find a topology by ``module:attr`` or a file, as the command line and a task's process do."""

from __future__ import annotations

import sys

from multilang.component.find import load_module, split_target
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def load_topology(where: str) -> Topology:
    """Return the topology at ``"module:attr"`` or ``"path/file.py:attr"``; ``attr`` is ``topology`` by default.

    It may be a Topology or a function without arguments that returns one.

    Raises:
        ConfigError: There is no topology at that place; most often it is a TopologyError. An exception of the module's
            own code is raised unchanged.
    """
    place, attr = split_target(where)
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
    _settle_home(value, place)
    return value


def _settle_home(topology: Topology, place: str) -> None:
    if any(spec.command is not None for spec in topology.components.values()):
        from multilang.topology.home import home_of_place

        home = home_of_place(place)
        for spec in topology.components.values():
            spec.home = home


def load_object(where: str) -> Any:
    """Return the object at ``"module:attr"`` or ``"path/file.py:attr"``, imported as load_topology does."""
    place, attr = split_target(where)
    module = load_module(place)
    try:
        return getattr(module, attr)
    except AttributeError:
        there = [name for name, value in vars(module).items() if isinstance(value, Topology)]
        if there:
            hint = f"{did_you_mean(attr, there)} (as {place}:{there[0]})"
        else:
            hint = f"write {attr} = builder.build(...) in it, outside of any function and of if __name__"
        raise TopologyError(f"{place} has no {attr!r}; {hint}") from None


def find_origin(topology: Topology) -> str | None:
    """Return ``"module:attr"`` under which another process finds this topology, first in the module that built it.

    A name that a script has only when it is run is left out: ``if __name__ == "__main__": topology = ...``.
    """
    home = sys.modules.get(topology.module or "")
    modules = [module for module in (home, sys.modules.get("__main__"), *sys.modules.values()) if module is not None]
    for module in modules:
        for attr, value in list(getattr(module, "__dict__", {}).items()):
            if value is topology and attr.isidentifier():
                place = place_of(module)
                if place is not None and not (module.__name__ == "__main__" and _is_guarded(module, attr)):
                    return f"{place}:{attr}"
    return None


def place_of(module: ModuleType) -> str | None:
    """Return the name of a module for another process: its package's, or else the path of its file."""
    spec = getattr(module, "__spec__", None)
    if spec is not None and "." in spec.name:  # also for python -m package.module, whose module is called __main__
        return str(spec.name)
    file: str | None = getattr(module, "__file__", None)
    if file is not None and file.endswith(".py"):
        from os.path import abspath

        return abspath(file)
    return None  # typed at a prompt, or piped in


def _is_guarded(module: ModuleType, attr: str) -> bool:
    """Return whether a script assigns ``attr`` only under ``if __name__ == ...``."""
    import ast
    import dis

    try:
        with open(module.__file__ or "", "rb") as file:
            tree = ast.parse(file.read())
        tree.body = [
            statement
            for statement in tree.body
            if not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
        ]
        code = compile(tree, "", "exec")
    except (OSError, SyntaxError, ValueError):
        return False  # the file changed since it was started
    return not any(step.opname == "STORE_NAME" and step.argval == attr for step in dis.get_instructions(code))


def _check_no_arguments(function: Any, where: str) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    required = code.co_argcount - len(function.__defaults__ or ())
    required += code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    if required > (1 if hasattr(function, "__self__") else 0):
        raise TopologyError(f"{where} is a function with arguments; name one without, that returns the Topology")
