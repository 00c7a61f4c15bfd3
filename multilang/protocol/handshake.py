"""The initial handshake: conf, PID folder and context, with every field checked before it is used."""

from __future__ import annotations

from multilang.protocol.codec import loads
from multilang.protocol.errors import RemoteProtocolError
from multilang.protocol.messages import Setup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = {dict: "an object", str: "a string", list: "an array", int: "an integer"}

# The depth of the objects in each of the 0.10+ keys, and the type of the innermost values.
_NESTED: dict[str, tuple[int, type]] = {
    "stream->outputfields": (1, list),
    "stream->target->grouping": (2, dict),
    "source->stream->grouping": (2, dict),
    "source->stream->fields": (2, list),
}


def read_setup(frame: bytes) -> Setup:
    """Read the first message to a component.

    Raises:
        RemoteProtocolError: A field is missing or wrong; the error names it.
    """
    try:
        message = loads(frame)
    except ValueError as error:
        raise _broken(f"is not JSON ({error})", frame) from None
    if type(message) is not dict:
        raise _broken(f"is {type(message).__name__}, not an object", frame)
    for key, kind in (("conf", dict), ("pidDir", str), ("context", dict)):
        if type(message.get(key)) is not kind:
            found = f"is of type {type(message[key]).__name__}" if key in message else "is missing"
            raise _broken(f"{key!r} {found}, where {KINDS[kind]} is due", frame)
    _check_context(message["context"], frame)
    return Setup(message["conf"], message["pidDir"], message["context"])


def _broken(how: str, frame: bytes) -> RemoteProtocolError:
    # Never the text itself, of which no part is safe when it is broken: the conf in it may have passwords.
    return RemoteProtocolError(f"the handshake {how} ({len(frame)} bytes, not shown: a conf may hold passwords)")


def _check_context(context: dict[str, Any], frame: bytes) -> None:
    if type(context.get("taskid")) is not int:
        raise _broken("lacks context['taskid'], an integer", frame)
    tasks = context.get("task->component")
    if type(tasks) is not dict or not all(_is_task(k) and type(v) is str for k, v in tasks.items()):
        raise _broken("lacks context['task->component'], an object of task ids and component ids", frame)
    for key, kind in (("componentid", str), ("streams", list)):
        if key in context and type(context[key]) is not kind:
            raise _broken(f"has context[{key!r}] that is not {KINDS[kind]}", frame)
    if not all(type(name) is str for name in context.get("streams", ())):
        raise _broken("has context['streams'] that holds something else than strings", frame)
    for key, levels in _NESTED.items():
        if key in context and not _nested(context[key], levels):
            raise _broken(f"has context[{key!r}] in another shape than Storm's", frame)


def _nested(value: object, levels: tuple[int, type]) -> bool:
    depth, kind = levels
    if depth == 0:
        return type(value) is kind and (kind is dict or all(type(name) is str for name in value))  # type: ignore[attr-defined]
    return type(value) is dict and all(_nested(v, (depth - 1, kind)) for v in value.values())


def _is_task(key: str) -> bool:
    digits = key[1:] if key[:1] == "-" else key
    return digits.isascii() and digits.isdigit() and len(digits) < 20
