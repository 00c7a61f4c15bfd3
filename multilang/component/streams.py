"""Output streams as components declare them."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.protocol.messages import DEFAULT_STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Stream:
    """An output stream (Storm's OutputFieldsDeclarer.declareStream(id, direct, fields)).

    Args:
        fields: The names of its fields.
        direct: Whether its tuples are emitted to a task directly.

    Raises:
        ConfigError: The fields are no list of different names.
    """

    __slots__ = ("direct", "fields")

    def __init__(self, fields: Sequence[str], direct: bool = False) -> None:
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


def declared_streams(
    output_fields: Sequence[str] | None, output_streams: Mapping[str, Sequence[str] | Stream] | None
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
