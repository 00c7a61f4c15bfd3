"""A topology as it was declared: data, with nothing running. Builders make it, engines read it."""

from __future__ import annotations

from multilang.topology.conf import check_built, check_keys, check_values, renamed
from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.spec import TASKS, ComponentSpec, Input, describe, is_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.topology.home import Home

__all__ = ["ACKER", "TASKS", "ComponentSpec", "Input", "Topology", "describe", "is_count"]

ACKER = "__acker"


class Topology:
    """A whole topology: the components by id, in the order in which they were declared, and the topology's conf.

    ``TopologyBuilder.build`` makes and checks one. If you put components together without the builder, call
    ``multilang.topology.check`` on the result.
    """

    def __init__(
        self,
        name: str,
        conf: Mapping[str, Any],
        components: Mapping[str, ComponentSpec],
        *,
        module: str | None = None,
    ) -> None:
        self.name = name
        self.conf = renamed(conf)
        self.components = dict(components)
        self.module = module
        self._origin: str | None = None
        self._home: Home | None = None
        self._made_from: Topology | None = None
        self._declared: Topology | None = None
        for spec in self.components.values():
            spec.settle(self.conf)

    @property
    def spouts(self) -> dict[str, ComponentSpec]:
        """The spouts by id."""
        return {id: spec for id, spec in self.components.items() if spec.kind == "spout"}

    @property
    def bolts(self) -> dict[str, ComponentSpec]:
        """The bolts by id."""
        return {id: spec for id, spec in self.components.items() if spec.kind == "bolt"}

    @property
    def declared(self) -> Topology:
        """The topology as its author declared it, without the additions for state and transactions on Storm.

        Storm and the embedded cluster run ``components``. An engine with its own states and batches, such as Spark, runs
        the declared topology. It is the topology itself if nothing was added.
        """
        return self if self._declared is None else self._declared

    @declared.setter
    def declared(self, declared: Topology) -> None:
        self._declared = None if declared is self else declared

    @property
    def origin(self) -> str | None:
        """The place where another process finds this topology, ``"module:attr"`` or ``"/path/file.py:attr"``, or None.

        It is the place that ``load_topology`` was given, or else the topology's name in the module that built it.
        """
        if self._origin is None:
            from multilang.topology.origin import find_origin

            self._origin = self._made_from.origin if self._made_from is not None else find_origin(self, self.module)
        return self._origin

    @origin.setter
    def origin(self, origin: str | None) -> None:
        self._origin = origin

    @property
    def home(self) -> Home | None:
        """The folder with the files of its components, in which their processes start; None: its module's folder.

        It is another one in projects whose topologies and components are in different folders.
        """
        return self._made_from.home if self._home is None and self._made_from is not None else self._home

    @home.setter
    def home(self, home: Home | None) -> None:
        self._home = home

    def require_origin(self) -> str:
        """Return ``origin``.

        Raises:
            TopologyError: No other process could import this topology; the message has the fix.
        """
        origin = self.origin
        if origin is None:
            raise TopologyError(
                f"topology {self.name!r} can't be imported by its tasks' processes: it has no name in the module that "
                "built it. Assign it there (topology = builder.build(...) outside of any function), or write a function "
                "without arguments that returns it and load it with load_topology('module:function')"
            )
        return origin

    def with_conf(self, conf: Mapping[str, Any], name: str | None = None) -> Topology:
        """Return a copy of this topology in which ``conf`` overrides its own, with the resulting numbers of tasks.

        Args:
            conf: The settings to add or replace.
            name: Another name for the topology.

        Raises:
            TopologyError: A key is misspelt, its value is of a wrong type or range, or the topology was built for another.
        """
        if conf:
            check_keys(conf, "conf")
            check_values(conf, "conf")
            check_built(self.conf, conf)
            conf = renamed(conf)
        copies = {id: spec.copy() for id, spec in self.components.items()}
        twin = Topology(self.name if name is None else name, {**self.conf, **conf}, copies, module=self.module)
        twin._made_from = self
        if self._declared is not None:
            twin._declared = self._declared.with_conf(conf, name)
        return twin

    def __getitem__(self, component: str) -> ComponentSpec:
        try:
            return self.components[component]
        except KeyError:
            hint = did_you_mean(component, self.components)
            raise TopologyError(f"topology {self.name!r} has no component {component!r}; {hint}") from None

    def subscribers(self, component: str) -> list[tuple[ComponentSpec, Input]]:
        """Return the subscribers to a component's streams, with their subscriptions."""
        return [
            (spec, input_)
            for spec in self.components.values()
            for input_ in spec.inputs
            if input_.component == component
        ]

    def task_ids(self, ackers: int) -> dict[int, str]:
        """Return task id -> component, numbered as in Storm: from 1, components sorted by id, ackers included."""
        counts = {id: spec.tasks for id, spec in self.components.items()}
        if ackers:
            counts[ACKER] = ackers
        owners = [id for id in sorted(counts, key=_java_order) for _ in range(counts[id])]
        return dict(enumerate(owners, 1))

    def context_for(self, task: int, assignment: Mapping[int, str]) -> dict[str, Any]:
        """Return the handshake's ``context`` for a task.

        It has all keys of Storm's ``TopologyContext.toJSONString``. As there, ``source->stream->fields`` has every
        stream of a source, subscribed or not, and streams without subscribers are missing from
        ``stream->target->grouping``.

        Args:
            task: The task's id.
            assignment: Task id -> component, for the whole topology.
        """
        spec = self[assignment[task]]
        targets: dict[str, dict[str, Any]] = {}
        for target, input_ in self.subscribers(spec.id):
            targets.setdefault(input_.stream, {})[target.id] = input_.grouping.to_wire()
        groupings: dict[str, dict[str, Any]] = {}
        fields: dict[str, dict[str, list[str]]] = {}
        for input_ in spec.inputs:
            groupings.setdefault(input_.component, {})[input_.stream] = input_.grouping.to_wire()
            fields[input_.component] = _fields(self[input_.component])
        return {
            "taskid": task,
            "componentid": spec.id,
            "task->component": {str(id): component for id, component in sorted(assignment.items())},
            "streams": list(spec.streams),
            "stream->outputfields": _fields(spec),
            "stream->target->grouping": targets,
            "source->stream->grouping": groupings,
            "source->stream->fields": fields,
        }

    def to_text(self) -> str:
        """Return a text for a terminal: each component with its tasks, inputs and streams."""
        from multilang.topology.show import to_text

        return to_text(self.name, self.conf, self.components)

    def explain(self) -> str:
        """Return a text that explains each component: of a topology of streams, its stages by the user's names."""
        from multilang.topology.show import explained

        return explained(self.name, self.declared.components)

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart: components as nodes, subscriptions as arrows."""
        from multilang.topology.show import to_mermaid

        return to_mermaid(self.components)

    def to_json(self) -> str:
        """Return the whole declaration as JSON text."""
        from multilang.topology.show import to_json

        return to_json(self.name, self.conf, self.components)

    def __repr__(self) -> str:
        return f"<topology {self.name!r}: {', '.join(self.components)}>"


def _fields(spec: ComponentSpec) -> dict[str, list[str]]:
    return {name: list(stream.fields) for name, stream in spec.streams.items()}


def _java_order(id: str) -> bytes:
    return id.encode("utf-16-be", "surrogatepass")  # Java compares strings by UTF-16 units
