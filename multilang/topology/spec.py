"""One component of a topology as it was declared, with its subscriptions."""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.shell import Foreign, ShellComponent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from multilang.component.base import Component
    from multilang.component.streams import Stream
    from multilang.topology.groupings import Grouping
    from multilang.topology.home import Home

TASKS = "topology.tasks"
_MAX_PARALLELISM = "topology.max.task.parallelism"


class Input:
    """A bolt's subscription to one stream of one component."""

    __slots__ = ("component", "grouping", "stream")

    def __init__(self, component: str, stream: str, grouping: Grouping) -> None:
        self.component = component
        self.stream = stream
        self.grouping = grouping

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Input):
            return NotImplemented
        return (self.component, self.stream, self.grouping) == (other.component, other.stream, other.grouping)

    def __hash__(self) -> int:
        return hash((self.component, self.stream))

    def __repr__(self) -> str:
        return f"Input({self.component!r}, {self.stream!r}, {self.grouping!r})"


class ComponentSpec:
    """One component of a topology.

    Attributes:
        id: Its id.
        kind: "spout" or "bolt".
        component: The instance (of Spout, Bolt, ShellSpout, ShellBolt, JavaSpout or JavaBolt) that describes it. An engine with several
            tasks in one process calls ``new()`` for each.
        factory: Its class, if the builder was given a class.
        streams: Its output streams by name.
        parallelism: The number of executors (threads of a Storm worker), at most ``tasks``.
        tasks: The number of tasks.
        conf: Its own conf, which overrides the topology's.
        inputs: A bolt's subscriptions, in the order in which they were declared.
        home: The folder with the files that a command in another language names.
        declared: The parallelism and the number of tasks (None: as many) as they were declared, which a conf may change.
    """

    __slots__ = (
        "component",
        "conf",
        "declared",
        "factory",
        "home",
        "id",
        "inputs",
        "kind",
        "parallelism",
        "streams",
        "tasks",
    )

    def __init__(
        self,
        id: str,
        kind: Literal["spout", "bolt"],
        component: Component | Foreign,
        *,
        factory: type[Component] | None = None,
        streams: Mapping[str, Stream],
        parallelism: int = 1,
        tasks: int | None = None,
        conf: Mapping[str, Any] | None = None,
        inputs: list[Input] | None = None,
        home: Home | None = None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.component = component
        self.factory = factory
        self.streams = dict(streams)
        self.conf = dict(conf or {})
        self.inputs = list(inputs or ())
        self.home = home
        self.declared = (parallelism, tasks)
        self.parallelism = parallelism
        self.tasks = tasks or parallelism

    @property
    def command(self) -> list[str] | None:
        """The command line of a component in another language; None for one in Python."""
        return self.component.command if isinstance(self.component, ShellComponent) else None

    def new(self) -> Component | Foreign:
        """Return a component for one more task that shares nothing with the others, as if Storm deserialised it."""
        if self.factory is not None:
            return self.factory()
        from copy import deepcopy

        return deepcopy(self.component)

    def settle(self, conf: Mapping[str, Any]) -> None:
        """Compute ``tasks`` and ``parallelism`` from a topology's conf, as Storm's ``componentParallelism`` does."""
        parallelism, tasks = self.declared
        if tasks is None:
            tasks = _count(self, TASKS, conf) or parallelism
        limit = _count(self, _MAX_PARALLELISM, conf)
        self.tasks = min(tasks, limit) if limit else tasks
        self.parallelism = min(parallelism, self.tasks)

    def copy(self) -> ComponentSpec:
        """Return a copy of the declaration, which can be changed independently; the component itself is shared."""
        parallelism, tasks = self.declared
        return ComponentSpec(
            self.id,
            self.kind,
            self.component,
            factory=self.factory,
            streams=self.streams,
            parallelism=parallelism,
            tasks=tasks,
            conf=self.conf,
            inputs=self.inputs,
            home=self.home,
        )

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id!r}: {describe(self.component)}, {self.tasks} task{'s'[: self.tasks > 1]}>"


def describe(component: object) -> str:
    """Return the name of a component for messages: its class (inside of wrappers), or its command line."""
    if isinstance(component, Foreign):
        return component.description
    wrapped = None if isinstance(component, type) else getattr(component, "wrapped", None)
    if wrapped is not None:
        return describe(wrapped)
    return component.__name__ if isinstance(component, type) else type(component).__name__


def is_count(number: object) -> bool:
    """Return whether this is an integer above 0."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _count(spec: ComponentSpec, key: str, conf: Mapping[str, Any]) -> int | None:
    number = spec.conf.get(key, conf.get(key))
    if number is not None and not is_count(number):
        raise TopologyError(f"{spec.kind} {spec.id!r}: conf {key!r} is a number from 1 on, not {number!r}")
    return number
