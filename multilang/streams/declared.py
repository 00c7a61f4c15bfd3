"""The spouts and bolts of the user's own in a graph, declared as the topology's components."""

from __future__ import annotations

from multilang.component.base import Component
from multilang.topology.builder import TopologyBuilder
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.streams.graph import Stage


class Declared:
    """The spouts and bolts of one builder.

    Attributes:
        components: The builder of the topology as far as it is declared.
    """

    def __init__(self) -> None:
        self.components = TopologyBuilder()

    def name_for(self, component: object) -> str:
        """Return the name of a stage for a spout or bolt that the user gave none: that of its class, in small letters."""
        kind = component if isinstance(component, type) else type(component)
        if not issubclass(kind, Component):
            return "bolt"
        letters = [f"-{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__]
        return "".join(letters).strip("-_") or "component"

    def add_spout(self, stage: Stage, spout: Any) -> None:
        """Declare the spout of a stage."""
        self.components.set_spout(stage.name, spout, stage.parallelism)

    def add_bolt(self, stage: Stage, bolt: Any) -> None:
        """Declare the bolt of a stage."""
        self.components.set_bolt(stage.name, bolt, stage.parallelism)

    def fields_of(self, name: str) -> list[str]:
        """Return the fields of a component's default stream.

        Raises:
            TopologyError: It has none.
        """
        spec = self.components.specs[name]
        if "default" not in spec.streams:
            raise TopologyError(
                f"{spec.kind} {name!r} declares no output_fields, so that a stream has nothing to take from it; declare them"
            )
        return list(spec.streams["default"].fields)
