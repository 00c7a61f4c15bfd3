"""A grouping that is in this file alone: tuples with texts of equal length go to the same task."""

from __future__ import annotations

from multilang.topology import Grouping


class ByLength(Grouping):
    __slots__ = ()

    type = "by_length"
    java_class = "org.acme.ByLength"
    is_stable = True

    def choose_by(self, context, tasks):
        (position,) = self.positions(context.fields)
        return lambda values: (tasks[len(values[position]) % len(tasks)],)

    def refused_by_thrift(self, source_fields):
        return None if len(source_fields) == 1 else f"by length, and its stream has {len(source_fields)} fields"


class NotInStorm(ByLength):
    __slots__ = ()

    type = "not_in_storm"
    java_class = ""
