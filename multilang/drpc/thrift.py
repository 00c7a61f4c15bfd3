"""The part of Thrift that DRPC needs: framed and binary, with strings, integers and structs. It does no I/O.

It is written out here, since a topology's tasks on a cluster have Python and nothing else. ``drpc.thrift`` beside this
file equals an interface definition; the tests compare the two.
"""

from __future__ import annotations

from struct import Struct, error

from multilang.drpc.errors import INTERNAL_ERROR, DRPCConnectionError, DRPCExecutionException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FRAME = 16384000  # Thrift's own bound, bytes
MAX_TEXT = MAX_FRAME - 4096  # bytes of one text, which leaves space for the rest of any message
CALL, REPLY, EXCEPTION = 1, 2, 3
STOP, I32, STRING, STRUCT = 0, 8, 11, 12
UNKNOWN_METHOD = 1
_VERSION = 0x80010000
_SIZES: dict[int, int] = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}  # of the other types, which are skipped
_LIST_TYPES, _MAP = (14, 15), 13
_DEEPEST = 20
_MOST_VALUES = 10_000  # of a message; ours have five, and each costs time in which nobody else is served

_INT, _HEAD, _FIELD, _FIELD_TEXT = Struct(">i"), Struct(">Ii"), Struct(">BH"), Struct(">BHi")
_LIST = Struct(">Bi")
_ANSWERS: dict[str, type] = {"execute": str, "fetchRequest": dict}  # the other methods answer nothing


class ThriftMessage:
    """A message. ``kind`` is CALL, REPLY or EXCEPTION; ``fields`` has texts, integers or such dicts, by number."""

    __slots__ = ("fields", "kind", "name", "serial")

    def __init__(self, kind: int, name: str, serial: int, fields: dict[int, Any]) -> None:
        self.kind = kind
        self.name = name
        self.serial = serial
        self.fields = fields


def encode(kind: int, name: str, serial: int, fields: dict[int, Any]) -> bytes:
    """Return a message as a frame. Fields that are None are left out."""
    called = name.encode()
    body = bytearray(_HEAD.pack(_VERSION | kind, len(called)))
    body += called
    body += _INT.pack(serial)
    _put_struct(body, fields)
    if len(body) > MAX_FRAME:
        raise DRPCConnectionError(
            f"{name}: {len(body)} bytes are more than the {MAX_FRAME} that Thrift takes; send less"
        )
    return _INT.pack(len(body)) + bytes(body)


def _put_struct(body: bytearray, fields: dict[int, Any]) -> None:
    for number, value in fields.items():
        if isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            body += _FIELD_TEXT.pack(STRING, number, len(data))
            body += data
        elif isinstance(value, int):
            body += _FIELD_TEXT.pack(I32, number, value)
        elif isinstance(value, dict):
            body += _FIELD.pack(STRUCT, number)
            _put_struct(body, value)
    body.append(STOP)


def frame_size(head: bytes) -> int:
    """Return the length of a frame from its first four bytes."""
    size: int = _INT.unpack(head)[0]
    if not 0 < size <= MAX_FRAME:
        raise DRPCConnectionError(f"a frame of {size} bytes: this is no framed Thrift")
    return size


def decode(frame: bytes) -> ThriftMessage:
    """Return the message of a frame, which comes without the four bytes of its length."""
    try:
        version, length = _HEAD.unpack_from(frame)
        if version & 0xFFFF0000 != _VERSION:
            raise DRPCConnectionError("a message that is not of Thrift's binary protocol")
        if not 0 <= length <= len(frame):
            raise DRPCConnectionError("a message without an end")
        at = _HEAD.size + length
        name = frame[_HEAD.size : at].decode()
        (serial,) = _INT.unpack_from(frame, at)
        fields, _ = _Fields(frame).struct(at + 4, _DEEPEST)
    except (error, IndexError, UnicodeDecodeError) as problem:
        raise DRPCConnectionError(f"a message that can't be read: {problem}") from None
    return ThriftMessage(version & 0xFF, name, serial, fields)


class _Fields:
    """The fields of a message, of which those that nobody needs are skipped."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _MOST_VALUES

    def struct(self, at: int, deep: int) -> tuple[dict[int, Any], int]:
        """Return the fields of a struct, and the place after it."""
        data = self._data
        fields: dict[int, Any] = {}
        while (kind := data[at]) != STOP:
            number = _FIELD.unpack_from(data, at)[1]
            value, at = self._value(at + 3, kind, deep)
            if value is not None:
                fields[number] = value
        return fields, at + 1

    def _value(self, at: int, kind: int, deep: int) -> tuple[Any, int]:
        data = self._data
        self._left -= 1
        if not deep or self._left < 0:
            raise DRPCConnectionError(
                "a message nested too deep" if not deep else f"a message of more than {_MOST_VALUES} values"
            )
        if kind == STRING:
            (length,) = _INT.unpack_from(data, at)
            end = at + 4 + length
            if length < 0 or end > len(data):
                raise DRPCConnectionError("a text without an end")
            return data[at + 4 : end].decode("utf-8", "replace"), end
        if kind == I32:
            return _INT.unpack_from(data, at)[0], at + 4
        if kind == STRUCT:
            return self.struct(at, deep - 1)
        if kind in _SIZES:
            return None, at + _SIZES[kind]
        if kind in _LIST_TYPES or kind == _MAP:
            return None, self._skip_all(at, kind, deep)
        raise DRPCConnectionError(f"a value of the unknown type {kind}")

    def _skip_all(self, at: int, kind: int, deep: int) -> int:
        data = self._data
        kinds = [data[at]] if kind != _MAP else [data[at], data[at + 1]]
        count: int = _INT.unpack_from(data, at + len(kinds))[0]
        at += len(kinds) + 4
        if not 0 <= count <= len(data):
            raise DRPCConnectionError("a list without an end")
        if all(each in _SIZES for each in kinds):
            return at + count * sum(_SIZES[each] for each in kinds)
        for _ in range(count):
            for each in kinds:
                _, at = self._value(at, each, deep - 1)
        return at


# ---- calls and answers, by what they mean ----


def request(function: str, arguments: str) -> dict[int, Any]:
    """Return the fields of a call of ``execute``.

    Raises:
        TypeError: The function or the arguments are no text.
        ValueError: A text has no UTF-8 form.
    """
    for what, text in (("function is named by", function), ("arguments are", arguments)):
        if not isinstance(text, str):
            raise TypeError(f"a DRPC request's {what} text, not {type(text).__name__}; write json.dumps(...)")
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            raise ValueError(
                f"a DRPC request's {what} text with a UTF-8 form, which {text[problem.start]!a} has not; replace or escape it"
            ) from None
    return {1: function, 2: arguments}


def check_size(what: str, text: str) -> None:
    """Raise DRPCExecutionException for a text that fits into no message."""
    if len(text) <= MAX_TEXT // 4:
        return  # no character has more bytes
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT:
        raise DRPCExecutionException(f"{what} of {size} bytes: at most {MAX_TEXT} can be sent", INTERNAL_ERROR)


def answer_of(message: ThriftMessage, name: str, serial: int) -> Any:
    """Return the answer to a call: text, a dict, or None. Raise the exception that the server sent, or DRPCConnectionError for another type."""
    if message.kind == EXCEPTION:
        reason = message.fields.get(1, "no reason given")
        raise DRPCConnectionError(f"the server refuses {name}: {reason}", is_refusal=True)
    if message.kind != REPLY or message.name != name or message.serial != serial:
        raise DRPCConnectionError(f"{message.name!r} ({message.serial}) is no answer to {name!r} ({serial})")
    fields = message.fields
    if name == "execute" and 1 in fields:
        raise exception_of(fields[1])
    refused = next((fields[number] for number in (1, 2) if number in fields), None)
    if refused is not None:
        raise DRPCConnectionError(
            f"the server refuses {name}: {refused.get(1, '') if isinstance(refused, dict) else refused}"
        )
    found = fields.get(0)
    if not isinstance(found, _ANSWERS.get(name, object)):
        raise DRPCConnectionError(f"the server's answer to {name} has no result")
    return found


def request_of(found: Any) -> tuple[str, str]:
    """Return the id and the arguments of a request that was fetched; the id is "" if none waits."""
    id, arguments = found.get(2), found.get(1)
    if not isinstance(id, str) or not isinstance(arguments, str):
        raise DRPCConnectionError("the server's answer to fetchRequest lacks the request's id or arguments")
    return id, arguments


def exception_of(struct: Any) -> DRPCExecutionException:
    """Return Storm's exception from its struct."""
    fields = struct if isinstance(struct, dict) else {}
    code = fields.get(2)
    return DRPCExecutionException(str(fields.get(1, "")), code if isinstance(code, int) else None)


def fields_of(problem: DRPCExecutionException) -> dict[int, Any]:
    """Return the struct of an exception."""
    return {1: problem.message, 2: problem.code}
