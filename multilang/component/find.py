"""Find the object that ``MODULE:NAME`` or ``path/file.py:NAME`` stands for."""

from __future__ import annotations

import os
import sys

from multilang.component.base import Component
from multilang.component.errors import ConfigError
from multilang.component.modules import load_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

    from multilang.component.context import Context


TOPOLOGY = "topology"
"""The name of the topology in its module, unless another one is given."""

YAML = (".yaml", ".yml")
"""The ends of the names of files that declare a topology in YAML, as Storm's Flux has them."""

is_finding = False  # set while a task's process imports the topology, whose module must not start another cluster


def find_component(
    target: str, context: Context, submitted: Mapping[str, Any] | None = None, root: str = ""
) -> Component:
    """Return the component that this task runs.

    It is ``target`` itself, or the component with the task's id in the topology that ``target`` names.

    Args:
        target: The place of the topology or component.
        context: The task's context.
        submitted: What topology.identity.submission() told of the topology that was submitted.
        root: The folder of the topology's files, if that is another one than where it was submitted.

    Raises:
        ConfigError: There is no such object, or it is no component that runs in Python, or it is not the one that was submitted.
    """
    global is_finding
    is_finding = True
    if submitted is not None:
        sys.argv[:] = submitted["arguments"]
    try:
        found = find_object(target)
        if is_foreign(found):
            found = from_foreign(found, module_name(split_target(target)[0]))
        if callable(found) and not isinstance(found, type | Component) and not hasattr(found, "components"):
            found = found()
    finally:
        is_finding = False
    if isinstance(found, type) and issubclass(found, Component):
        found = found()
    if isinstance(found, Component):
        return found
    components = getattr(found, "components", None)
    if components is None:
        raise ConfigError(
            f"{target} is a {type(found).__name__}; name a Topology, a function that returns one, or a component"
        )
    try:
        component = components[context.component].component
    except KeyError:
        raise ConfigError(
            f"the topology {target} has no component {context.component!r}; it has "
            f"{', '.join(map(repr, components))}: is this the code that was submitted?"
        ) from None
    if not isinstance(component, Component):
        raise ConfigError(
            f"component {context.component!r} of {target} is a {type(component).__name__}, which runs by its own command"
        )
    if submitted is not None:
        from importlib import import_module

        import_module("multilang.topology.identity").check_found(submitted, components[context.component], target, root)
    return component


def find_object(target: str) -> Any:
    """Return the object that ``target`` names.

    Raises:
        ConfigError: There is no such file, module or name in it.
    """
    place, name = split_target(target)
    module = load_module(place)
    try:
        return getattr(module, name)
    except AttributeError:
        its_own = [n for n, value in vars(module).items() if _may_be_meant(n, value, module.__name__)]
        raise ConfigError(
            f"{place} has no {name!r}; name a topology or component that it has, as {place}:NAME "
            f"(it has {', '.join(its_own[:20]) or 'none'})"
        ) from None


def _may_be_meant(name: str, value: object, module: str) -> bool:
    """Return whether it is a topology, or a component or function that the module itself defines."""
    if name.startswith("_"):
        return False
    own = getattr(value, "__module__", None) == module and callable(value)
    return own or isinstance(value, Component) or (hasattr(value, "components") and not isinstance(value, type))


def split_target(target: str) -> tuple[str, str]:
    """Split ``"module:attr"``; the name is ``topology`` if it is missing, and a file's path is made absolute.

    Raises:
        ConfigError: The target has another form.
    """
    place, _, name = target.rpartition(":") if ":" in target else (target, "", TOPOLOGY)
    if not place or not name.isidentifier():
        raise ConfigError(f"{target!r} names nothing; write 'module:attr' or 'path/file.py:attr'")
    if place.endswith(".py"):
        return os.path.abspath(place), name
    if os.sep in place or not all(part.isidentifier() for part in place.split(".")):
        raise ConfigError(f"{target!r} names no module; write 'package.module:attr', or a file's path with its .py")
    return place, name


def is_foreign(found: object) -> bool:
    """Return whether it is a topology of streamparse's, which is a class."""
    return isinstance(found, type) and hasattr(found, "__multilang_topology__")


def from_foreign(found: Any, name: str) -> Any:
    """Return a topology of streamparse's as one of this library.

    Args:
        found: A class that ``is_foreign`` says this of.
        name: The topology's name.
    """
    return found.__multilang_topology__(name)


def from_yaml(path: str) -> Any:
    """Return the topology that a file of Flux's declares as one of this library.

    Raises:
        ConfigError: It is not there, or has something that only Java can make.
    """
    from importlib import import_module

    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path!r}; write the path of a file of Flux's")
    return import_module("multilang.compat.flux").own_topology(path)  # a package above this one


def foreign_in(module: ModuleType) -> Any:
    """Return the first topology of streamparse's that a module defines; None if it defines none."""
    for value in vars(module).values():
        if is_foreign(value) and value.__module__ == module.__name__:
            return value
    return None


def module_name(place: str) -> str:
    """Return the last part of a module's name, or the name of a file without its ``.py``."""
    return os.path.basename(place)[:-3] if place.endswith(".py") else place.rpartition(".")[2]
