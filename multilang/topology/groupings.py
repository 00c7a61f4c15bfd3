"""Groupings as functions: which tasks of a subscriber get this tuple. Every runner routes with these.

``chooser`` is called once per source task and subscription; what it returns is called per tuple, so it is a closure
with everything looked up beforehand, and returns tuples of task ids that are never built anew.
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

# The wire's name of each (Thrift's field names in capitals, as ShellBolt's context shows them). Storm has no type for
# global, which is a fields grouping without fields, nor for partial key, which is a custom one.
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

# Keys remembered by one fields grouping. A full memory is emptied, not grown: keys may be all different for ever.
CACHED_KEYS = 65536


class GroupingContext:
    """Where a custom grouping finds itself: one per source task and subscription.

    ``component``, ``stream``: whose tuples they are; ``fields``: of that stream; ``source_task``: the emitting task;
    ``local_tasks``: those in its worker; ``random``: the run's randomness, so that a seeded run repeats.
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
    """A grouping of your own, Storm's ``CustomStreamGrouping``.

    Each source task gets its own copy of the instance that the builder was given.
    """

    def prepare(self, context: GroupingContext, stream: str, target_tasks: tuple[int, ...]) -> None:  # noqa: B027
        """Called once, before the first tuple. ``target_tasks``: the subscriber's task ids, ascending."""

    @abstractmethod
    def choose_tasks(self, source_task: int, values: Sequence[Any]) -> Sequence[int]:
        """The tasks, out of ``target_tasks``, that get this tuple; none drops it for this subscriber."""


class Grouping:
    """How one subscription is divided among the subscriber's tasks.

    ``type``: one of WIRE_TYPES; ``fields``: the fields of a fields or partial-key grouping; ``custom``: of a custom one.
    """

    __slots__ = ("custom", "fields", "type")

    def __init__(self, type: str, fields: Sequence[str] = (), custom: CustomGrouping | None = None) -> None:
        if type not in WIRE_TYPES:
            raise GroupingError(f"there is no grouping {type!r}: {did_you_mean(type, WIRE_TYPES)}")
        self.type = type
        self.fields = tuple(fields)
        self.custom = custom

    def to_wire(self) -> dict[str, Any]:
        """As the handshake's context shows it: ``{"type": "FIELDS", "fields": ["word"]}``."""
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
    """The function that chooses, for each tuple's values, the task ids of ``target_tasks`` that get it.

    ``source_fields``: of the stream; ``local_tasks``: the tasks in the source task's own worker; ``rng``: where every
    random choice comes from; ``component``, ``stream``: the source, which custom groupings are told.
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
    """Storm's ShuffleGrouping: the tasks in random order, round and round. Its "none" is treated the same."""
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
        except TypeError:  # a list or dict has no hash in Python, but one in Java
            return places.find(values[index])

    def choose_by_many(values: Sequence[Any]) -> Sequence[int]:
        try:
            return place_of(key_of(values))
        except TypeError:
            return places.find(key_of(values))

    return choose_by_one if len(indexes) == 1 else choose_by_many


class _Places(dict["Hashable", "Tasks"]):
    """Key -> its one task, remembered for keys of nothing but ``str``.

    1, 1.0 and True are one key to a dict but three different values to Java, so they are worked out each time.
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
    """Positions of the grouping's fields in the stream's."""
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
