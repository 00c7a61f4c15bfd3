"""From ``MODULE:NAME`` or ``path/file.py:NAME`` to the object behind it."""

from __future__ import annotations

import os
import sys

from multilang.component.base import Component
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from multilang.component.context import Context


def find_component(target: str, context: Context) -> Component:
    """The component that this task runs: ``target`` itself, or the one of its id in the topology ``target`` names."""
    found = find_object(target)
    if callable(found) and not isinstance(found, type | Component) and not hasattr(found, "components"):
        found = found()
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
    return component


def find_object(target: str, default: str = "topology") -> Any:
    """What ``target`` names. Raises ConfigError when there is no such file, module or name in it."""
    module, name = load_module(target, default)
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            public = [n for n in vars(module) if not n.startswith("_")]
            raise ConfigError(
                f"{module.__name__} ({getattr(module, '__file__', '?')}) has no {name!r}; name one that it has, as "
                f"{target.rpartition(':')[0] or target}:NAME (it has {', '.join(public[:20]) or 'nothing'})"
            ) from None
    return found


def load_module(target: str, default: str = "topology") -> tuple[ModuleType, str]:
    """Import the module of ``target`` and return it with the name asked for, ``default`` where there is none."""
    where, colon, name = target.rpartition(":")
    if not colon or os.sep in name:
        where, name = target, default
    if where.endswith(".py") or os.sep in where:
        return _load_file(where), name or default
    from importlib import import_module

    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return import_module(where), name or default
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(error.name + ".")):
            raise ConfigError(
                f"there is no module {where!r} on sys.path or in {os.getcwd()}; give a file as path/{where}.py:{name}"
            ) from None
        raise


def _load_file(path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path}")
    folder, base = os.path.split(path)
    stem = base.removesuffix(".py")
    known = sys.modules.get(stem)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    if folder not in sys.path:
        sys.path.insert(0, folder)  # its local imports, as when it is run as a script
    name = stem if known is None and stem.isidentifier() else f"_multilang_{abs(hash(path)):x}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
