"""Code that a topology's conf names, such as a state provider, serializers or middleware.

It is shipped as imports are.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.topology import Foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from multilang.topology import Topology

# The modules that read names from a conf. ``named`` returns these names, and ``check_named`` checks the objects.
READERS = ("multilang.component.middleware", "multilang.state.providers", "multilang.transactional.stores")


@dataclass(frozen=True)
class Named:
    """An object that a topology has only by name.

    ``why``: the place that names it; ``reader``: the module whose ``check_named`` checks it.
    """

    module: str
    attribute: str
    why: str
    reader: str | None

    @property
    def dotted(self) -> str:
        """The name as it was written."""
        return f"{self.module}.{self.attribute}"


def confs(topology: Topology) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return every conf of which a component written in Python gets entries, each with a description."""
    yield "the topology's conf", topology.conf
    for spec in topology.components.values():
        if not isinstance(spec.component, Foreign):
            yield f"the conf of {spec.kind} {spec.id!r}", spec.conf


def named_in(topology: Topology) -> list[Named]:
    """Return what the confs name, and the transformations of components. Raises ConfigError for a wrong setting."""
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
