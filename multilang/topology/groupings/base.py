"""The interface of all groupings, and their table."""

from __future__ import annotations

from multilang.topology.errors import TopologyError, did_you_mean
from multilang.topology.groupings.own import GroupingContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random
    from typing import Any, ClassVar

    from multilang.topology.groupings.own import CustomGrouping

    Chooser = Callable[[Sequence[Any]], Sequence[int]]
    Tasks = tuple[int, ...]

_HERE = "multilang.topology.groupings"
# Each type with its class, as "module:class": a component's process imports those alone that its topology has.
KINDS = {
    "shuffle": f"{_HERE}.shuffle:ShuffleGrouping",
    "fields": f"{_HERE}.fields:FieldsGrouping",
    "all": f"{_HERE}.all:AllGrouping",
    "global": f"{_HERE}.global_:GlobalGrouping",
    "none": f"{_HERE}.shuffle:NoneGrouping",
    "direct": f"{_HERE}.direct:DirectGrouping",
    "local_or_shuffle": f"{_HERE}.shuffle:LocalOrShuffleGrouping",
    "partial_key": f"{_HERE}.partial_key:PartialKeyGrouping",
    "custom": f"{_HERE}.custom:ByCustomGrouping",
}


class Grouping:
    """The division of one subscription's tuples among the subscriber's tasks.

    ``Grouping("fields", ["word"])`` makes an instance of the class that KINDS names for the type.

    Args:
        type: One of KINDS; a class of its own knows its type, and needs none.
        fields: The fields of a fields or partial-key grouping.
        custom: The instance of a custom grouping.

    Attributes:
        type: The key in KINDS.
        wire_type: The type in the handshake's context and in Flux: the field of Thrift's ``Grouping``, in capitals.
        storm_method: The method of Storm's InputDeclarer that declares it; empty when Storm's workers don't know it.
        java_class: The Java class, a ``CustomStreamGrouping``, that chooses the same tasks in Storm's workers, for a grouping
            that Storm does not have. Its constructor takes the fields' names, a String each.
        is_trusted: The tasks that it chooses are not compared with those that there are, which would take time for each tuple.
        is_direct: The emitter names the task of each tuple, on a direct stream.
        is_to_all: Every task gets each tuple.
        is_to_one: Exactly one task, which the grouping chooses, gets each tuple.
        is_to_same: One and the same task gets all tuples, however many there are.
        is_arbitrary: Any task may get any tuple, so that an engine may leave a tuple where it was made.
        prefers_local: Tasks in the emitter's own worker are preferred; only engines know these.
        is_stable: Equal values always go to the same tasks.
        is_hashed: The task follows from Storm's hash of the fields' values, by which a task's state can be divided.

    Raises:
        TopologyError: There is no such type.
    """

    __slots__ = ("custom", "fields")

    type: ClassVar[str]
    wire_type: ClassVar[str] = "CUSTOM_SERIALIZED"
    storm_method: ClassVar[str] = ""
    java_class: ClassVar[str] = ""
    is_trusted: ClassVar[bool] = False
    is_direct: ClassVar[bool] = False
    is_to_all: ClassVar[bool] = False
    is_to_one: ClassVar[bool] = True
    is_to_same: ClassVar[bool] = False
    is_arbitrary: ClassVar[bool] = False
    prefers_local: ClassVar[bool] = False
    is_stable: ClassVar[bool] = False
    is_hashed: ClassVar[bool] = False

    def __new__(cls, type: str = "", *_: Any, **__: Any) -> Grouping:  # noqa: PYI034 (of the type's class)
        return object.__new__(kind_of(type) if cls is Grouping else cls)

    def __init__(self, type: str = "", fields: Sequence[str] = (), custom: CustomGrouping | None = None) -> None:
        self.fields = tuple(fields)
        self.custom = custom

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        """Return the function that chooses the task ids for each tuple's values.

        It is called once for each source task and subscription. Its result is called for each tuple, so it is a closure.
        It returns a tuple or list of task ids, best one that was built in advance: exactly one id if ``is_to_one``.

        Args:
            context: The emitting task and its stream.
            tasks: The task ids to choose from, at least one, in ascending order.

        Raises:
            TopologyError: The stream has no such field.
        """
        raise NotImplementedError

    def to_wire(self) -> dict[str, Any]:
        """Return the form in the handshake's context: ``{"type": "FIELDS", "fields": ["word"]}``."""
        return {"type": self.wire_type}

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration in JSON's types."""
        shown: dict[str, Any] = {"type": self.type}
        if self.fields:
            shown["fields"] = list(self.fields)
        return shown

    def to_flux(self, parts: str) -> str:
        """Return the inside of the ``grouping`` of a Flux stream, as YAML in one line.

        Args:
            parts: The id of the component that ``flux_parts`` declares.
        """
        if not self.java_class:
            return f"type: {self.wire_type}"
        import json

        arguments = f"constructorArgs: {json.dumps(self.fields)}"
        return f"type: CUSTOM, customClass: {{className: {json.dumps(self.java_class)}, {arguments}}}"

    def flux_parts(self, id: str) -> list[str]:
        """Return the lines of the Flux component that ``to_flux`` refers to, if there is one.

        Args:
            id: The component's id.
        """
        return []

    def to_thrift(self, types: Any) -> Any:
        """Return Storm's struct.

        Args:
            types: The module of Nimbus's Thrift types.
        """
        if not self.java_class:
            return types.Grouping(**{self.wire_type.lower(): types.NullStruct()})
        arguments = [types.JavaObjectArg(string_arg=field) for field in self.fields]
        return types.Grouping(custom_object=types.JavaObject(full_class_name=self.java_class, args_list=arguments))

    def to_java(self, source: str) -> str:
        """Return the call on Storm's InputDeclarer, in Java.

        Args:
            source: The component and the stream, as the call's first arguments.
        """
        if not self.java_class:
            return f"{self.storm_method}({source})"
        import json

        return f"customGrouping({source}, new {self.java_class}({', '.join(map(json.dumps, self.fields))}))"

    def refused_by_storm(self) -> str | None:
        """Return the reason why Storm's workers can't group so, to follow "bolt B subscribes to S"; None if they can."""
        if self.storm_method or self.java_class:
            return None
        what = self.type if self.custom is None else type(self.custom).__name__
        other = "" if self.custom is not None else f", or name its class in Java as {type(self).__name__}.java_class"
        return (
            f"by {what}, a custom grouping in Python: Storm's workers choose tasks in Java. Let the source choose: declare the "
            f"stream with Stream([...], direct=True), emit with direct_task=, and subscribe with direct_grouping{other}"
        )

    def refused_by_thrift(self, source_fields: Sequence[str]) -> str | None:
        """Return the reason why Thrift's struct can't express it, to follow "bolt B subscribes to S"; None if it can.

        Args:
            source_fields: The fields of the stream.
        """
        return None

    @property
    def is_known(self) -> bool:
        """True if its class is that of its type's name, so that a process can make it again from its name and fields."""
        return self.type in KINDS and kind_of(self.type) is type(self)

    @property
    def name(self) -> str:
        """The type in words."""
        return self.type.replace("_", " ")

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.fields)})" if self.fields else self.name

    def __repr__(self) -> str:
        return f"Grouping({self.type!r}, {self.fields!r}, {self.custom!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grouping):
            return NotImplemented
        return (self.type, self.fields, self.custom) == (other.type, other.fields, other.custom)

    def __hash__(self) -> int:
        return hash((self.type, self.fields))

    def positions(self, source_fields: Sequence[str]) -> list[int]:
        """Return the positions of the grouping's fields among the stream's.

        Raises:
            TopologyError: The stream has no such field, or the grouping has none.
        """
        positions = []
        for field in self.fields:
            if field not in source_fields:
                raise TopologyError(
                    f"{self} grouping: the stream has no field {field!r}; {did_you_mean(field, source_fields)}"
                )
            positions.append(list(source_fields).index(field))
        if not positions:
            raise TopologyError(f"{self.type} grouping without fields: name at least one of {list(source_fields)}")
        return positions


def kind_of(name: str) -> type[Grouping]:
    """Return the class of a type of grouping.

    Raises:
        TopologyError: There is no such type.
    """
    place = KINDS.get(name)
    if place is None:
        raise TopologyError(f"there is no grouping {name!r}: {did_you_mean(name, KINDS)}")
    module, _, attribute = place.partition(":")
    from importlib import import_module

    kind: type[Grouping] = getattr(import_module(module), attribute)
    return kind


def chooser(
    grouping: Grouping,
    source_fields: Sequence[str],
    target_tasks: Sequence[int],
    *,
    source_task: int,
    local_tasks: Collection[int],
    rng: Random,
    component: str = "",
    stream: str = "default",
) -> Chooser:
    """Return the function that chooses the task ids for each tuple's values.

    Args:
        grouping: The grouping.
        source_fields: The fields of the stream.
        target_tasks: The task ids to choose from.
        source_task: The emitting task.
        local_tasks: The tasks in its worker; as a frozenset they are not copied.
        rng: The source of all random choices.
        component: The source component, for custom groupings.
        stream: The source's stream, for custom groupings.

    Raises:
        TopologyError: There is no task to choose from, or the stream has no such field.
    """
    tasks = tuple(sorted(target_tasks))
    if not tasks:
        raise TopologyError(f"{grouping} grouping has no task to choose from")
    context = GroupingContext(component, stream, tuple(source_fields), source_task, frozenset(local_tasks), rng)
    choose = grouping.choose_by(context, tasks)
    return choose if grouping.is_trusted else _compared(choose, grouping, context, tasks)


def _compared(choose: Chooser, grouping: Grouping, context: GroupingContext, tasks: Tasks) -> Chooser:
    """Return the function with a check that it chooses existing tasks only."""
    known = frozenset(tasks)
    is_to_one = grouping.is_to_one
    who = (
        f"{type(grouping).__name__}.choose_by"
        if grouping.custom is None
        else f"{type(grouping.custom).__name__}.choose_tasks"
    )

    def compared(values: Sequence[Any]) -> Sequence[int]:
        chosen = choose(values)
        if not isinstance(chosen, list | tuple) or not known.issuperset(chosen) or (is_to_one and len(chosen) != 1):
            wanted = f"{'one' if is_to_one else 'some'} of {list(tasks)} in a list or tuple"
            raise TopologyError(
                f"{who} chose {chosen!r} for a tuple of {context.component!r} stream {context.stream!r}: choose {wanted}"
            )
        return chosen

    return compared


def always(tasks: Tasks) -> Chooser:
    """Return a function that chooses these tasks for each tuple."""
    return lambda _values: tasks
