"""Output streams as components declare them."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.protocol.messages import DEFAULT_STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


_TYPES = (str, int, float, bool, list, dict)


class Stream:
    """An output stream (Storm's OutputFieldsDeclarer.declareStream(id, direct, fields)).

    Args:
        fields: The names of its fields, or the fields with their types, ``{"word": str, "count": int}``: str, int, float,
            bool, list, dict, list[int], dict[str, float], or a text with a type of Spark SQL, ``"decimal(10,2)"``. They are
            the types of the columns on Spark; elsewhere they have no effect.
        direct: Whether its tuples are emitted to a task directly.

    Attributes:
        types: The fields' types in the fields' order; None if they were not declared.

    Raises:
        ConfigError: The fields are no list of different names, or a type is not one of these.
    """

    __slots__ = ("direct", "fields", "types")

    def __init__(self, fields: Sequence[str] | Mapping[str, Any], direct: bool = False) -> None:
        self.types: tuple[Any, ...] | None = None
        if isinstance(fields, dict):
            for name, kind in fields.items():
                _check_type(name, kind)
            self.types = tuple(fields.values())
            fields = list(fields)
        if not isinstance(fields, list | tuple) or not all(type(f) is str and f for f in fields):
            instead = f"; write [{fields!r}]" if isinstance(fields, str) else ""
            raise ConfigError(f"the fields of a stream are a list of names, not {fields!r}{instead}")
        self.fields = tuple(fields)
        twice = sorted({f for f in self.fields if self.fields.count(f) > 1})
        if twice:
            raise ConfigError(f"a stream has the field {twice[0]!r} twice: {list(self.fields)!r}")
        self.direct = bool(direct)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.fields == other.fields and self.direct == other.direct

    def __hash__(self) -> int:
        return hash((self.fields, self.direct))

    def __repr__(self) -> str:
        return f"Stream({list(self.fields)!r}{', direct=True' if self.direct else ''})"


def _check_type(field: object, kind: Any) -> None:
    """Raise ConfigError for a type that no field can have."""
    if kind in _TYPES or (isinstance(kind, str) and kind):
        return
    of = getattr(kind, "__origin__", None)
    if of is list or (of is dict and kind.__args__[0] is str):
        _check_type(field, kind.__args__[-1])
        return
    raise ConfigError(
        f"field {field!r} declares the type {kind!r}; a type is str, int, float, bool, list, dict, list[int], "
        "dict[str, float] or the like, or a text with a type of Spark SQL, 'decimal(10,2)'"
    )


def declared_streams(
    output_fields: Sequence[str] | Mapping[str, Any] | None,
    output_streams: Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None,
) -> dict[str, Stream]:
    """Return all streams by name: ``output_fields`` is the default stream, ``output_streams`` has the others."""
    streams: dict[str, Stream] = {}
    if output_fields is not None:
        streams[DEFAULT_STREAM] = output_fields if isinstance(output_fields, Stream) else Stream(output_fields)
    if output_streams is not None and not hasattr(output_streams, "items"):
        raise ConfigError(
            f"output_streams maps stream names to fields, {{'errors': ['message']}}; not {output_streams!r}"
        )
    for name, fields in (output_streams or {}).items():
        if type(name) is not str or not name:
            raise ConfigError(f"output_streams maps stream names to fields; {name!r} is no name")
        if name in streams:
            raise ConfigError("the default stream is declared twice: in output_fields and in output_streams")
        streams[name] = fields if isinstance(fields, Stream) else Stream(fields)
    return streams
