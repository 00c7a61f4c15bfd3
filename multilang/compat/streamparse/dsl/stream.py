"""Streams and groupings."""

from __future__ import annotations

from multilang.compat.streamparse import thrift
from multilang.compat.streamparse.dsl.util import to_java_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Stream:
    """An output stream.

    Args:
        fields: The names of its fields.
        name: Its name.
        direct: Whether its tuples are emitted to a task directly.

    Raises:
        TypeError: An argument has the wrong type.
    """

    def __init__(self, fields: Any = None, name: str = "default", direct: bool = False) -> None:
        given: Any = fields if fields is not None else []
        if not isinstance(given, list | tuple):
            raise TypeError(f"the fields of a stream are a list of names, not {fields!r}")
        for field in given:
            if not isinstance(field, str):
                raise TypeError(f"the name of a field is a string, not {field!r}")
        for what, value, kind in (("name", name, str), ("direct", direct, bool)):
            if not isinstance(value, kind):
                raise TypeError(f"{what} of a stream is a {kind.__name__}, not {value!r}")
        self.fields = list(given)
        self.name = name
        self.direct = direct

    def __repr__(self) -> str:
        return f"Stream(fields={self.fields!r}, name={self.name!r}, direct={self.direct!r})"


class Grouping:
    """The groupings: ``Grouping.SHUFFLE``, ``Grouping.fields("word")``."""

    __slots__ = ()

    SHUFFLE = thrift.Grouping(shuffle=thrift.NullStruct())
    GLOBAL = thrift.Grouping(fields=[])
    DIRECT = thrift.Grouping(direct=thrift.NullStruct())
    ALL = thrift.Grouping(all=thrift.NullStruct())
    NONE = thrift.Grouping(none=thrift.NullStruct())
    LOCAL_OR_SHUFFLE = thrift.Grouping(local_or_shuffle=thrift.NullStruct())

    @classmethod
    def fields(cls, *fields: Any) -> thrift.Grouping:
        """Return the grouping by these fields, given one by one or as a list.

        Raises:
            ValueError: There is none.
        """
        names = fields[0] if len(fields) == 1 and isinstance(fields[0], list) else list(fields)
        if not names:
            raise ValueError(
                "a fields grouping names at least one field; write Grouping.GLOBAL to send all tuples to one task"
            )
        return thrift.Grouping(fields=names)

    @classmethod
    def custom_object(cls, java_class_name: str, arg_list: Any) -> thrift.Grouping:
        """Return the grouping of a Java class."""
        arguments = [to_java_arg(arg) for arg in arg_list]
        return thrift.Grouping(custom_object=thrift.JavaObject(full_class_name=java_class_name, args_list=arguments))

    @classmethod
    def custom_serialized(cls, java_serialized: bytes) -> thrift.Grouping:
        """Return the grouping of a serialized Java object.

        Raises:
            TypeError: It is not given as bytes.
        """
        if not isinstance(java_serialized, bytes):
            raise TypeError(f"a serialized Java object is given as bytes, not {java_serialized!r}")
        return thrift.Grouping(custom_serialized=java_serialized)
