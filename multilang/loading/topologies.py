"""Find a topology by ``module:attr`` or a file, as the command line and a task's process do."""

from __future__ import annotations

import os
import sys

from multilang.component.base import Component
from multilang.component.errors import ConfigError
from multilang.loading.modules import load_module, project_around
from multilang.topology.conf import renamed
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.home import Home, home_of_place
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

TOPOLOGY = "topology"
"""The name of the topology in its module, unless another one is given."""

YAML = (".yaml", ".yml")
"""The ends of the names of files that declare a topology in YAML, as Storm's Flux has them."""


def load_topology(where: str) -> Topology:
    """Return the topology at ``"module:attr"`` or ``"path/file.py:attr"``; ``attr`` is ``topology`` by default.

    It may be a Topology or a function without arguments that returns one. A file of Flux's in YAML is a topology, too.

    Raises:
        ConfigError: There is no topology at that place; most often it is a TopologyError. An exception of the module's
            own code is raised unchanged.
    """
    if where.endswith(YAML):
        return _from_yaml(where)
    place, attr = split_target(where)
    value = load_object(where)
    is_own = not is_foreign(value)
    if not is_own:
        attr, value = value.__name__, from_foreign(value, where)
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
    if is_own:  # one of another library's has its own
        value = _in_project(value, place)
    value.origin = f"{place}:{attr}"
    _settle_home(value, place)
    return value


def _in_project(topology: Topology, place: str) -> Topology:
    """Return a topology with the conf and the folder of its streamparse project.

    The topology's own conf overrides the environment's. In a project with multilang.toml the conf is that file's, which
    the command adds.
    """
    project = project_around(place) if place.endswith(".py") else None
    if project is None:
        return topology
    has_settings = os.path.isfile(os.path.join(project.root, "multilang.toml"))
    given = {} if has_settings else renamed(project.conf(project.environment()[1]))
    lacking = {key: value for key, value in given.items() if key not in topology.conf}
    own = topology.with_conf(lacking) if lacking else topology
    if own.home is None and os.path.isdir(project.source) and (project.config or _is_made_of(own, project.source)):
        own.home = Home(project.source, plain=True)
    return own


def _is_made_of(topology: Topology, folder: str) -> bool:
    """Return whether a class of a topology's components is in a folder."""
    modules = (sys.modules.get(type(spec.component).__module__) for spec in topology.components.values())
    files = (getattr(module, "__file__", None) or "" for module in modules)
    return any(file.startswith(folder + os.sep) for file in files)


def _settle_home(topology: Topology, place: str) -> None:
    if any(spec.command is not None for spec in topology.components.values()):
        home = topology.home or home_of_place(place)
        for spec in topology.components.values():
            spec.home = home


def load_object(where: str) -> Any:
    """Return the object at ``"module:attr"`` or ``"path/file.py:attr"``, imported as load_topology does.

    Raises:
        ConfigError: There is no such file, module or name in it.
    """
    place, attr = split_target(where)
    module = load_module(place)
    try:
        return getattr(module, attr)
    except AttributeError:
        foreign = _foreign_in(module) if attr == TOPOLOGY else None
        if foreign is not None:
            return foreign
        raise TopologyError(f"{place} has no {attr!r}; {_hint(module, place, attr)}") from None


def _hint(module: ModuleType, place: str, attr: str) -> str:
    """Return what to write instead of a name that a module does not have."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    there = [name for name, value in public.items() if isinstance(value, Topology)]
    if there:
        return f"{did_you_mean(attr, there)} (as {place}:{there[0]})"
    own = [
        name
        for name, value in public.items()
        if isinstance(value, Component) or (callable(value) and getattr(value, "__module__", None) == module.__name__)
    ]
    has = f"; it has {', '.join(own[:20])}" if own else ""
    if attr != TOPOLOGY and own:
        return f"name a topology or component that it has, as {place}:{own[0]}{has}"
    return f"write {attr} = builder.build(...) in it, outside of any function and of if __name__{has}"


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


def from_foreign(found: Any, where: str) -> Topology:
    """Return a topology of streamparse's as one of this library, with the name of its module or file.

    Args:
        found: A class for which ``is_foreign`` is true.
        where: Its place.
    """
    place = split_target(where)[0]
    name = os.path.basename(place)[:-3] if place.endswith(".py") else place.rpartition(".")[2]
    topology: Topology = found.__multilang_topology__(name)
    return topology


def _foreign_in(module: ModuleType) -> Any:
    """Return the first topology of streamparse's that a module defines; None if it defines none."""
    return next(
        (each for each in vars(module).values() if is_foreign(each) and each.__module__ == module.__name__), None
    )


def _from_yaml(path: str) -> Topology:
    """Return the topology that a file of Flux's declares as one of this library."""
    from multilang.compat.flux import written

    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path!r}; write the path of a file of Flux's")
    module, folder = written(path)
    topology = load_topology(module)
    home = topology.home = Home(folder, plain=True)
    for spec in topology.components.values():
        spec.home = home
    return topology


def _check_no_arguments(function: Any, where: str) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    required = code.co_argcount - len(function.__defaults__ or ())
    required += code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    if required > (1 if hasattr(function, "__self__") else 0):
        raise TopologyError(f"{where} is a function with arguments; name one without, that returns the Topology")
