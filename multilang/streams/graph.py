"""The graph of stages that a user declares, with spouts and bolts of the user's own; the planner makes components of it."""

from __future__ import annotations

from multilang.component.base import Component
from multilang.topology.builder import TopologyBuilder
from multilang.topology.check import check_id
from multilang.topology.errors import TopologyError
from multilang.topology.spec import is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


PLAIN, PAIRS, TRIPLES = "plain", "pairs", "triples"


class Stage:
    """One operation of a stream.

    Attributes:
        name: The user's name of it, or the operation's with a number; it is unique in the graph.
        operation: The operation, see operations and heads.
        parents: The stages whose elements it gets.
        children: The stages that get its elements.
        shape: The form of its elements: PLAIN, PAIRS of a key and a value, or TRIPLES of a key and two more.
        parallelism: The number of tasks of the component that it begins, if it begins one.
        fields: The fields of its elements if they (or the values of its pairs) are tuples, as spouts and bolts emit
            them; None: they are the user's values.
    """

    __slots__ = ("children", "fields", "graph", "name", "operation", "parallelism", "parents", "shape")

    def __init__(
        self,
        graph: Graph,
        name: str,
        operation: Any,
        parents: Sequence[Stage],
        shape: str,
        parallelism: int,
        fields: Sequence[str] | None,
    ) -> None:
        self.graph = graph
        self.name = name
        self.operation = operation
        self.parents = list(parents)
        self.children: list[Stage] = []
        self.shape = shape
        self.parallelism = parallelism
        self.fields = fields

    def __repr__(self) -> str:
        return f"<stage {self.name!r}>"


class Graph:
    """All stages of one builder, in the order in which they were declared.

    Attributes:
        stages: The stages by name.
    """

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}

    def add(
        self,
        operation: Any,
        parents: Sequence[Stage],
        shape: str,
        *,
        name: str | None,
        parallelism: int | None = None,
        fields: Sequence[str] | None = None,
    ) -> Stage:
        """Add a stage and return it.

        Args:
            operation: The operation.
            parents: The stages before it.
            shape: PLAIN or PAIRS.
            name: The user's name; None: that of the operation.
            parallelism: The number of tasks; None: the greatest of its parents.
            fields: See Stage.

        Raises:
            TopologyError: The name or the number can't be, or a parent is of another builder.
        """
        if name is None:
            name = self.free(operation.name)
        else:
            check_id(name, "stage")
            if name in self.stages:
                raise TopologyError(f"there is already a stage {name!r}; give this {operation.name} another name=")
        for parent in parents:
            if parent.graph is not self:
                raise TopologyError(
                    f"stage {name!r} gets stream {parent.name!r}, which is of another StreamBuilder; declare both with one builder"
                )
        if parallelism is None:
            parallelism = max(parent.parallelism for parent in parents)
        elif not is_count(parallelism):
            raise TopologyError(f"stage {name!r}: parallelism is a number from 1 on, not {parallelism!r}")
        stage = self.stages[name] = Stage(self, name, operation, parents, shape, parallelism, fields)
        for parent in parents:
            parent.children.append(stage)
        return stage

    def free(self, name: str) -> str:
        """Return ``name``, or ``name-2`` and so on if there is such a stage already."""
        found, number = name, 1
        while found in self.stages:
            number += 1
            found = f"{name}-{number}"
        return found


class Declared:
    """The spouts and bolts of one builder.

    Attributes:
        components: The builder of the topology declared so far.
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
                f"{spec.kind} {name!r} declares no output_fields, so that a stream can't get anything from it; declare them"
            )
        return list(spec.streams["default"].fields)
