"""Calls of Nimbus whose answers are bounded: in bytes, values, levels and time, before anything is made of them.

thriftpy2 makes every value of an answer, however deep or long, also if the peer only pretends to be a Nimbus.
"""

from __future__ import annotations

from struct import Struct, error
from time import monotonic
from typing import TYPE_CHECKING, Any

from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.thrift import TClient, TPayload
from thriftpy2.transport import TMemoryBuffer

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

MAX_BYTES = 16384000  # of an answer; Thrift's bound, and that of Storm's own clients
MAX_WEIGHT = 2_000_000  # of the values of an answer; an empty struct is one byte, and becomes an object of a kilobyte
MAX_LEVELS = 32  # Storm's types have less than ten
_STRUCT_WEIGHT = 10
_STOP, _STRING, _STRUCT, _MAP, _SET, _LIST = 0, 11, 12, 13, 14, 15
_SIZES = {1: 1, 2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
_PIECE = 1 << 16
_INT, _ENTRIES, _PAIRS = Struct(">i"), Struct(">Bi"), Struct(">BBi")


class BoundedClient(TClient):  # type: ignore[misc]
    """A client of a Thrift service that reads a whole answer, within its bounds, before it is parsed.

    Calls raise ShippingError, TimeoutError, OSError, EOFError, and what thriftpy2 raises.

    Args:
        service: The service, of thriftpy2.
        wire: The connected socket.
        framed: Whether each message has its length before it.
        timeout: Seconds that an answer may take, in all.

    Attributes:
        closed: Whether the connection was closed.
    """

    def __init__(self, service: Any, wire: socket.socket, framed: bool, timeout: float) -> None:
        super().__init__(service, None)
        self._wire = wire
        self._framed = framed
        self._timeout = timeout
        self.closed = False

    def _send(self, _api: str, **kwargs: Any) -> None:
        buffer = TMemoryBuffer()
        self._oprot = TBinaryProtocolFactory().get_protocol(buffer)
        super()._send(_api, **kwargs)
        call = buffer.getvalue()
        self._wire.settimeout(self._timeout)
        self._wire.sendall(_INT.pack(len(call)) + call if self._framed else call)

    def _recv(self, _api: str) -> Any:
        answer = read_answer(self._wire, self._framed, self._timeout)
        self._iprot = TBinaryProtocolFactory().get_protocol(TMemoryBuffer(answer))
        found = super()._recv(_api)
        check_complete(found)
        return found

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        self._wire.close()


def check_complete(value: Any) -> None:
    """Raise ShippingError if a struct of an answer lacks a field that Storm's types require, or a text is no UTF-8.

    thriftpy2 takes such a struct, and whoever uses the field would find None, or bytes.

    Args:
        value: An answer, as thriftpy2 made it.
    """
    if isinstance(value, TPayload):
        _check_struct(value)


def _check_struct(value: Any) -> None:
    for kind, name, *parts, required in value.thrift_spec.values():
        part = getattr(value, name)
        if part is not None:
            _check_value(part, kind, parts[0] if parts else None, f"{type(value).__name__}.{name}")
        elif required:
            raise ShippingError(f"an answer without {type(value).__name__}.{name}")


def _check_value(value: Any, kind: int, parts: Any, where: str) -> None:
    """Check a value by its type in thriftpy2's notation: a number, and for what has parts the types of these."""
    if kind == _STRUCT:
        _check_struct(value)
    elif kind == _MAP:
        for each, of in zip((value.keys(), value.values()), parts, strict=True):
            _check_all(each, of, where)
    elif kind in (_LIST, _SET):
        _check_all(value, parts, where)
    elif kind == _STRING and not isinstance(value, str):
        raise ShippingError(f"an answer whose {where} is no text")


def _check_all(values: Iterable[Any], of: Any, where: str) -> None:
    kind, parts = of if isinstance(of, tuple) else (of, None)
    if kind in (_STRUCT, _MAP, _LIST, _SET, _STRING):
        for value in values:
            _check_value(value, kind, parts, where)


def read_answer(wire: socket.socket, framed: bool, timeout: float) -> bytes:
    """Return the bytes of a message, without the length before it.

    Args:
        wire: The connected socket.
        framed: Whether the message has its length before it.
        timeout: Seconds until its last byte.

    Raises:
        ShippingError: It is too large, too deep, or no Thrift.
        TimeoutError: It takes longer.
        EOFError: The connection ended.
        OSError: The connection broke.
    """
    end = monotonic() + timeout
    source = _Source(wire, end)
    if framed:
        head = _Source(wire, end, _INT.size)
        head.fill()
        (size,) = _INT.unpack(head.take(_INT.size))
        if not 0 < size <= MAX_BYTES:
            raise ShippingError(f"an answer of {size} bytes, where {MAX_BYTES} are the most")
        source = _Source(wire, end, size)
        source.fill()
    try:
        _Look(source).message()
    except (error, IndexError, KeyError):
        raise ShippingError("an answer that is no Thrift") from None
    return bytes(source.data[: source.at])


def check_struct(data: bytes) -> None:
    """Raise ShippingError if a stored struct of Thrift's is none, or larger or deeper than an answer may be.

    Args:
        data: The struct.
    """
    source = _Source(None, 0.0, len(data))
    source.data += data
    try:
        _Look(source).struct()
    except (error, IndexError, KeyError):
        raise ShippingError("what is stored is no Thrift") from None


class _Source:
    """The bytes of a message, as they come. Nothing follows an answer before the next call, so that all that is there is read."""

    def __init__(self, wire: socket.socket | None, end: float, size: int | None = None) -> None:
        self._wire = wire
        self._size = size
        self._end = end
        self.data = bytearray()
        self.at = 0

    def fill(self) -> None:
        """Read the whole frame."""
        assert self._size is not None
        self._read(self._size)

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        self.skip(count)
        return bytes(self.data[self.at - count : self.at])

    def skip(self, count: int) -> None:
        """Skip the next bytes."""
        after = self.at + count
        if count < 0 or after > (MAX_BYTES if self._size is None else self._size):
            raise ShippingError(f"an answer with a part of {count} bytes, where {MAX_BYTES} are the most in all")
        if self._size is None:
            self._read(after)
        self.at = after

    def _read(self, until: int) -> None:
        while len(self.data) < until:
            assert self._wire is not None
            self._wire.settimeout(max(self._end - monotonic(), 0.001))
            part = self._wire.recv(_PIECE if self._size is None else min(until - len(self.data), _PIECE))
            if not part:
                raise EOFError("it hung up")
            if monotonic() > self._end:
                raise TimeoutError
            self.data += part


class _Look:
    """A look over a message that makes nothing of it, and ends at the first bound."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._weight = 0

    def message(self) -> None:
        """Look over a whole message."""
        take = self._source.take
        (version,) = _INT.unpack(take(4))
        if version >= 0:
            raise ShippingError("an answer that is no Thrift")
        self._source.skip(_INT.unpack(take(4))[0])
        self._source.skip(4)
        self.struct()

    def struct(self) -> None:
        """Look over a struct."""
        self._struct(MAX_LEVELS)

    def _struct(self, levels: int) -> None:
        take = self._source.take
        self._count(_STRUCT_WEIGHT)
        while (kind := take(1)[0]) != _STOP:
            self._source.skip(2)
            self._value(kind, levels)

    def _value(self, kind: int, levels: int) -> None:
        take = self._source.take
        self._count(1)
        if kind == _STRING:
            self._source.skip(_INT.unpack(take(4))[0])
        elif kind == _STRUCT:
            self._struct(self._deeper(levels))
        elif kind == _MAP:
            first, second, count = _PAIRS.unpack(take(6))
            self._values((first, second), count, self._deeper(levels))
        elif kind in (_LIST, _SET):
            element, count = _ENTRIES.unpack(take(5))
            self._values((element,), count, self._deeper(levels))
        else:
            self._source.skip(_SIZES[kind])

    def _values(self, kinds: tuple[int, ...], count: int, levels: int) -> None:
        if count < 0:
            raise ShippingError("an answer that is no Thrift")
        if count and all(kind in _SIZES for kind in kinds):
            self._count(count * len(kinds))
            self._source.skip(count * sum(_SIZES[kind] for kind in kinds))
            return
        for _ in range(count):
            for kind in kinds:
                self._value(kind, levels)

    def _deeper(self, levels: int) -> int:
        if not levels:
            raise ShippingError(f"an answer that is nested deeper than {MAX_LEVELS} levels")
        return levels - 1

    def _count(self, weight: int) -> None:
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            raise ShippingError("an answer of more values than any of a Nimbus")
