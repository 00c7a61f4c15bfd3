"""Fields grouping: tuples with equal values of some fields go to the same task, the one that Storm's hash names."""

from __future__ import annotations

from operator import itemgetter

from multilang.topology.groupings.base import Grouping, always
from multilang.topology.javahash import task_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from typing import Any

    from multilang.topology.groupings.base import Chooser, Tasks
    from multilang.topology.groupings.own import GroupingContext

# The size of one fields grouping's cache of keys, which is cleared when it is full: there may be endlessly many keys.
CACHED_KEYS = 65536


class FieldsGrouping(Grouping):
    """Sends tuples with equal values of its fields to the same task."""

    __slots__ = ()

    type = "fields"
    wire_type = "FIELDS"
    storm_method = "fieldsGrouping"
    is_trusted = True
    is_stable = True
    is_hashed = True

    def choose_by(self, context: GroupingContext, tasks: Tasks) -> Chooser:
        return always(tasks) if len(tasks) == 1 else _by_hash(self.positions(context.fields), tasks)

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.wire_type, "fields": list(self.fields)}

    def to_flux(self, parts: str) -> str:
        import json

        return f"type: FIELDS, args: {json.dumps(self.fields)}"

    def to_thrift(self, types: Any) -> Any:
        return types.Grouping(fields=list(self.fields))

    def to_java(self, source: str) -> str:
        return f"{self.storm_method}({source}, {java_fields(self.fields)})"


def java_fields(names: Sequence[str]) -> str:
    """Return the expression of Java for these fields; Java has JSON's escapes in strings."""
    import json

    return f"new Fields({', '.join(map(json.dumps, names))})"


def _by_hash(indexes: Sequence[int], tasks: Tasks) -> Chooser:
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
    """The task of each key; only keys that consist of ``str`` are cached.

    1, 1.0 and True are the same key in a dict but three different values in Java, so they are hashed each time.
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
