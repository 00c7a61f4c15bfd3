"""A grouping that is in this file alone: tuples with texts of equal length go to the same task."""

from __future__ import annotations

import json

from multilang.topology import Grouping


class ByLength(Grouping):
    __slots__ = ()

    type = "by_length"
    storm_method = "customGrouping"
    is_stable = True

    def choose_by(self, context, tasks):
        (position,) = self.positions(context.fields)
        return lambda values: (tasks[len(values[position]) % len(tasks)],)

    def to_flux(self, parts):
        return 'type: CUSTOM, customClass: {className: "org.acme.ByLength"}'

    def to_thrift(self, types):
        return types.Grouping(custom_object=types.JavaObject(full_class_name="org.acme.ByLength", args_list=[]))

    def to_java(self, source):
        return f"{self.storm_method}({source}, new org.acme.ByLength({json.dumps(self.fields[0])}))"

    def refused_by_thrift(self, source_fields):
        return None if len(source_fields) == 1 else f"by length, and its stream has {len(source_fields)} fields"


class NotInStorm(ByLength):
    __slots__ = ()

    type = "not_in_storm"
    storm_method = ""
