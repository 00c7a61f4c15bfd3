"""Code that a topology's conf names: a state provider, serializers, middleware, who is told of steps; it is shipped as imports are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.topology import ShellComponent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from multilang.topology import Topology

# Each says what it reads of a conf by ``named``, and by ``check_named`` whether it is there and what it must be.
READERS = ("multilang.component.middleware", "multilang.state.providers", "multilang.transactional.stores")


@dataclass(frozen=True)
class Named:
    """An object that a topology has by its name alone. ``why``: who names it; ``reader``: whose ``check_named`` looks at it."""

    module: str
    attribute: str
    why: str
    reader: str | None

    @property
    def dotted(self) -> str:
        """As it was written."""
        return f"{self.module}.{self.attribute}"


def confs(topology: Topology) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every conf that a component written in Python gets entries of, with the words for it."""
    yield "the topology's conf", topology.conf
    for spec in topology.components.values():
        if not isinstance(spec.component, ShellComponent):
            yield f"the conf of {spec.kind} {spec.id!r}", spec.conf


def named_in(topology: Topology) -> list[Named]:
    """What the confs name, and the transformations that components ask for. Raises ConfigError for a setting that is wrong."""
    found: dict[tuple[str, str], Named] = {}
    for whose, conf in confs(topology):
        for reader in READERS:
            for setting, name in import_module(reader).named(conf):
                module, _, attribute = name.rpartition(".")
                why = f"named by {setting} in {whose}"
                found.setdefault((module, attribute), Named(module, attribute, why, reader))
    for spec in topology.components.values():
        for component in (spec.component, innermost(spec.component)):
            for name in getattr(component, "transformations", ()):
                module, _, attribute = str(name).partition(":")
                why = f"named by the transformations of {spec.kind} {spec.id!r}"
                found.setdefault((module, attribute), Named(module, attribute, why, None))
    return list(found.values())
