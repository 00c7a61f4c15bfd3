"""Serializers of keys and values: JSON, or a class of the user's own."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.protocol.codec import dumps, loads, reason_against
from multilang.store.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Serializer(ABC):
    """A pair of functions between values and bytes.

    ``keySerializerClass`` and ``valueSerializerClass`` in the provider's config name a subclass by its dotted name.
    """

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Return ``value`` as bytes, at least one.

        Args:
            value: A key or a value of a state.

        Raises:
            TypeError: The value has a type that can't be encoded.
            ValueError: The value can't be encoded.
        """

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """Return the value that ``encode`` turned into ``data``.

        Args:
            data: The stored bytes.
        """


class JsonSerializer(Serializer):
    """Values as JSON, as they travel between components."""

    def encode(self, value: Any) -> bytes:
        if type(value) is not str:
            reason = reason_against(value)
            if reason is not None:
                raise ValueError(f"{shown(value)} can't be saved as JSON: {reason}")
        try:
            return dumps(value).encode()
        except UnicodeEncodeError:
            raise ValueError(f"{shown(value)} can't be saved as JSON: {reason_against(value)}") from None

    def decode(self, data: bytes) -> Any:
        return loads(data)


class JsonKeySerializer(JsonSerializer):
    """Keys as JSON: strings, integers and tuples of these. Equal keys have equal bytes, and other keys other bytes."""

    def encode(self, value: Any) -> bytes:
        check_key(value)
        return super().encode(value)

    def decode(self, data: bytes) -> Any:
        return as_key(super().decode(data))


def check_key(key: Any) -> None:
    """Raise TypeError unless ``key`` is a string, an integer, or a tuple of these."""
    kind = type(key)
    if kind is tuple:
        for part in key:
            check_key(part)
    elif kind is not str and kind is not int:
        raise TypeError(f"a key of a state is a string, an integer or a tuple of these, not {shown(key)}")


def serializer(config: Mapping[str, Any], member: str, default: type[Serializer]) -> Serializer:
    """Return the serializer that ``config`` names in ``member``; without a name, a ``default``."""
    name = config.get(member)
    if name is None:
        return default()
    try:
        found = by_dotted_name(str(name))
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{member} {name!r} can't be imported: {problem}; write 'package.module.Class'") from problem
    if not isinstance(found, type) or not issubclass(found, Serializer):
        raise ConfigError(f"{member} {name!r} is not a subclass of multilang.state.Serializer")
    return found()


def as_key(value: Any) -> Any:
    """Return a key that was read from JSON, with tuples in place of lists."""
    return tuple(as_key(part) for part in value) if isinstance(value, list) else value
