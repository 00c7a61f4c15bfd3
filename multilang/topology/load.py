"""Find a topology by ``module:attr`` or a file, as the command line and a task's process do."""

from __future__ import annotations

from multilang.component.find import (
    TOPOLOGY,
    YAML,
    foreign_in,
    from_foreign,
    from_yaml,
    is_foreign,
    module_name,
    split_target,
)
from multilang.component.modules import load_module
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load_topology(where: str) -> Topology:
    """Return the topology at ``"module:attr"`` or ``"path/file.py:attr"``; ``attr`` is ``topology`` by default.

    It may be a Topology or a function without arguments that returns one. A file of Flux's in YAML is a topology, too.

    Raises:
        ConfigError: There is no topology at that place; most often it is a TopologyError. An exception of the module's
            own code is raised unchanged.
    """
    if where.endswith(YAML):
        declared: Topology = from_yaml(where)
        return declared
    place, attr = split_target(where)
    value = load_object(where)
    if is_foreign(value):
        attr, value = value.__name__, from_foreign(value, module_name(place))
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

        home = topology.home or home_of_place(place)
        for spec in topology.components.values():
            spec.home = home


def load_object(where: str) -> Any:
    """Return the object at ``"module:attr"`` or ``"path/file.py:attr"``, imported as load_topology does."""
    place, attr = split_target(where)
    module = load_module(place)
    try:
        return getattr(module, attr)
    except AttributeError:
        foreign = foreign_in(module) if attr == TOPOLOGY else None
        if foreign is not None:
            return foreign
        there = [name for name, value in vars(module).items() if isinstance(value, Topology)]
        if there:
            hint = f"{did_you_mean(attr, there)} (as {place}:{there[0]})"
        else:
            hint = f"write {attr} = builder.build(...) in it, outside of any function and of if __name__"
        raise TopologyError(f"{place} has no {attr!r}; {hint}") from None


def _check_no_arguments(function: Any, where: str) -> None:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    required = code.co_argcount - len(function.__defaults__ or ())
    required += code.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    if required > (1 if hasattr(function, "__self__") else 0):
        raise TopologyError(f"{where} is a function with arguments; name one without, that returns the Topology")
