"""Transformations: functions from topology to topology, by which higher systems add plain components and streams.

A component's class names the transformations that its topology needs (``transformations = ["shop.audit:audited"]``),
and the builder applies each of them once. Every engine runs the result, without knowing the higher system. They are
found by name when they are needed, so that this package does not depend on them.
"""

from __future__ import annotations

from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.topology.check import check
from multilang.topology.errors import TopologyError
from multilang.topology.model import Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeAlias

    Transformation: TypeAlias = Callable[[Topology], Topology]


def transformed(topology: Topology, leaving: Collection[str] = ()) -> Topology:
    """Return ``topology``, which was checked before, with all transformations applied that its components ask for.

    The result keeps ``topology`` as its ``declared``. The transformations are applied in the order in which the
    components were declared; those that an added component asks for come last.

    Args:
        topology: The topology as it was declared.
        leaving: Transformations that are not applied, because the engine does not need them.

    Raises:
        TopologyError: A transformation can't be found, or can't be applied.
    """
    declared = topology
    applied = set(leaving)
    while (name := _next(topology, applied)) is not None:
        applied.add(name)
        try:
            topology = _load(name)(topology)
        except TopologyError:
            raise
        except ConfigError as problem:
            raise TopologyError(str(problem)) from problem
        check(topology)
    topology.declared = declared
    return topology


def _next(topology: Topology, applied: set[str]) -> str | None:
    for spec in topology.components.values():
        for name in getattr(spec.component, "transformations", ()):
            if name not in applied:
                return str(name)
    return None


def _load(name: str) -> Transformation:
    module, _, function = name.partition(":")
    try:
        found: Transformation = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as problem:
        raise TopologyError(
            f"a component asks for the transformation {name!r}, which can't be imported: {problem}; write 'module:function'"
        ) from problem
    return found
