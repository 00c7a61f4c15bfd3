"""Groupings as functions that choose which tasks of a subscriber get a tuple. Every engine routes with these.

``chooser`` is called once for each source task and subscription. Its result is called for each tuple, so it is a
closure that has everything at hand, and it returns tuples of task ids that were built in advance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import cycle
from operator import itemgetter

from multilang.topology.errors import GroupingError, did_you_mean
from multilang.topology.javahash import task_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence
    from random import Random
    from typing import Any

    Chooser = Callable[[Sequence[Any]], Sequence[int]]
    Tasks = tuple[int, ...]

# The type of each on the wire (Thrift's field names in capitals, as in ShellBolt's context). Storm has no type for
# global, which is a fields grouping without fields, nor for partial key, which is a custom grouping.
WIRE_TYPES = {
    "shuffle": "SHUFFLE",
    "fields": "FIELDS",
    "all": "ALL",
    "global": "FIELDS",
    "none": "NONE",
    "direct": "DIRECT",
    "local_or_shuffle": "LOCAL_OR_SHUFFLE",
    "partial_key": "CUSTOM_SERIALIZED",
    "custom": "CUSTOM_SERIALIZED",
}

# The number of keys that one fields grouping remembers. When it is full, it is emptied: there may be endlessly many
# keys.
CACHED_KEYS = 65536


class GroupingContext:
    """The surroundings of a custom grouping: one for each source task and subscription.

    Attributes:
        component: The component whose tuples are divided.
        stream: Its stream.
        fields: The fields of that stream.
        source_task: The emitting task.
        local_tasks: The tasks in its worker.
        random: The run's source of random numbers; with it, a run with a seed can be repeated.
    """

    __slots__ = ("component", "fields", "local_tasks", "random", "source_task", "stream")

    def __init__(
        self,
        component: str,
        stream: str,
        fields: tuple[str, ...],
        source_task: int,
        local_tasks: frozenset[int],
        random: Random,
    ) -> None:
        self.component = component
        self.stream = stream
        self.fields = fields
        self.source_task = source_task
        self.local_tasks = local_tasks
        self.random = random


class CustomGrouping(ABC):
    """A grouping of your own (Storm's ``CustomStreamGrouping``).

    Each source task gets its own copy of the instance that was given to the builder.
    """

    def prepare(self, context: GroupingContext, stream: str, target_tasks: tuple[int, ...]) -> None:  # noqa: B027
        """Prepare the grouping: called once, before the first tuple.

        Args:
            context: The source task and its worker.
            stream: The stream.
            target_tasks: The subscriber's task ids in ascending order.
        """

    @abstractmethod
    def choose_tasks(self, source_task: int, values: Sequence[Any]) -> Sequence[int]:
        """Return the tasks that get a tuple.

        Args:
            source_task: The emitting task.
            values: The tuple's values.

        Returns:
            Some of ``target_tasks``; an empty list drops the tuple for this subscriber.
        """


class Grouping:
    """The division of one subscription's tuples among the subscriber's tasks.

    Args:
        type: One of WIRE_TYPES.
        fields: The fields of a fields or partial-key grouping.
        custom: The instance of a custom grouping.

    Raises:
        GroupingError: There is no such type.
    """

    __slots__ = ("custom", "fields", "type")

    def __init__(self, type: str, fields: Sequence[str] = (), custom: CustomGrouping | None = None) -> None:
        if type not in WIRE_TYPES:
            raise GroupingError(f"there is no grouping {type!r}: {did_you_mean(type, WIRE_TYPES)}")
        self.type = type
        self.fields = tuple(fields)
        self.custom = custom

    def to_wire(self) -> dict[str, Any]:
        """Return the form in the handshake's context: ``{"type": "FIELDS", "fields": ["word"]}``."""
        wire_type = WIRE_TYPES[self.type]
        return {"type": wire_type, "fields": list(self.fields)} if wire_type == "FIELDS" else {"type": wire_type}

    def __str__(self) -> str:
        name = self.type.replace("_", " ")
        if self.custom is not None:
            return f"{name} {type(self.custom).__name__}"
        return f"{name} ({', '.join(self.fields)})" if self.fields else name

    def __repr__(self) -> str:
        return f"Grouping({self.type!r}, {self.fields!r}, {self.custom!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grouping):
            return NotImplemented
        return (self.type, self.fields, self.custom) == (other.type, other.fields, other.custom)

    def __hash__(self) -> int:
        return hash((self.type, self.fields))


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
        local_tasks: The tasks in its worker.
        rng: The source of all random choices.
        component: The source component, for custom groupings.
        stream: The source's stream, for custom groupings.

    Raises:
        GroupingError: There is no task to choose from, or the stream has no such field.
    """
    tasks = tuple(sorted(target_tasks))
    if not tasks:
        raise GroupingError(f"{grouping} grouping has no task to choose from")
    kind = grouping.type
    if kind == "custom":
        context = GroupingContext(component, stream, tuple(source_fields), source_task, frozenset(local_tasks), rng)
        return _custom(grouping, context, tasks)
    if kind == "direct":
        return _direct
    if kind == "all":
        return _always(tasks)
    if kind == "global":
        return _always(tasks[:1])
    if kind == "local_or_shuffle":
        tasks = tuple(task for task in tasks if task in local_tasks) or tasks
    if len(tasks) == 1:
        return _always(tasks)
    if kind == "fields":
        return _fields(_selected(grouping, source_fields), tasks)
    if kind == "partial_key":
        from multilang.topology.partial_key import partial_key

        return partial_key(_selected(grouping, source_fields), tasks)
    return _shuffle(tasks, rng)


def _always(tasks: Tasks) -> Chooser:
    return lambda _values: tasks


def _shuffle(tasks: Tasks, rng: Random) -> Chooser:
    """Choose the tasks in random order, again and again, as Storm's ShuffleGrouping does; "none" is the same."""
    turns = [(task,) for task in tasks]
    rng.shuffle(turns)
    turn = cycle(turns).__next__
    return lambda _values: turn()


def _fields(indexes: Sequence[int], tasks: Tasks) -> Chooser:
    places = _Places(tasks, single=len(indexes) == 1)
    key_of = itemgetter(*indexes)
    place_of = places.__getitem__
    index = indexes[0]

    def choose_by_one(values: Sequence[Any]) -> Sequence[int]:
        try:
            return places[values[index]]
        except TypeError:  # a list or dict has no hash in Python, but it has one in Java
            return places.find(values[index])

    def choose_by_many(values: Sequence[Any]) -> Sequence[int]:
        try:
            return place_of(key_of(values))
        except TypeError:
            return places.find(key_of(values))

    return choose_by_one if len(indexes) == 1 else choose_by_many


class _Places(dict["Hashable", "Tasks"]):
    """The task of each key; only keys that consist of ``str`` are remembered.

    1, 1.0 and True are the same key in a dict but three different values in Java, so they are worked out each time.
    """

    __slots__ = ("single", "tasks")

    def __init__(self, tasks: Tasks, single: bool) -> None:
        super().__init__()
        self.tasks = [(task,) for task in tasks]
        self.single = single

    def __missing__(self, key: Any) -> Tasks:
        place = self.find(key)
        if type(key) is str if self.single else all(type(part) is str for part in key):
            if len(self) >= CACHED_KEYS:
                self.clear()
            self[key] = place
        return place

    def find(self, key: Any) -> Tasks:
        return self.tasks[task_index((key,) if self.single else key, len(self.tasks))]


def _direct(_values: Sequence[Any]) -> Sequence[int]:
    raise GroupingError(
        "a regular emit on a stream that a subscriber reads by direct grouping: "
        "name the task in the emit, direct_task=..., or subscribe by another grouping"
    )


def _custom(grouping: Grouping, context: GroupingContext, tasks: Tasks) -> Chooser:
    from copy import deepcopy

    custom = deepcopy(grouping.custom)
    if custom is None:
        raise GroupingError("a custom grouping needs an instance of CustomGrouping: Grouping('custom', custom=...)")
    custom.prepare(context, context.stream, tasks)
    choose_tasks = custom.choose_tasks
    source_task = context.source_task
    known = frozenset(tasks)

    def choose(values: Sequence[Any]) -> Sequence[int]:
        chosen = choose_tasks(source_task, values)
        if not isinstance(chosen, list | tuple) or not known.issuperset(chosen):
            raise GroupingError(
                f"{type(custom).__name__}.choose_tasks returned {chosen!r} "
                f"for {context.component!r} stream {context.stream!r}: return a list out of target_tasks, {list(tasks)}"
            )
        return chosen

    return choose


def _selected(grouping: Grouping, source_fields: Sequence[str]) -> list[int]:
    """Return the positions of the grouping's fields among the stream's."""
    positions = []
    for field in grouping.fields:
        if field not in source_fields:
            raise GroupingError(
                f"{grouping} grouping: the stream has no field {field!r}; {did_you_mean(field, source_fields)}"
            )
        positions.append(list(source_fields).index(field))
    if not positions:
        raise GroupingError(f"{grouping.type} grouping without fields: name at least one of {list(source_fields)}")
    return positions
