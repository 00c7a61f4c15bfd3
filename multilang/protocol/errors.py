"""The two ways a conversation goes wrong, told apart as h11 does: who broke the rule."""

from __future__ import annotations


class ProtocolError(Exception):
    """The multi-lang protocol was broken; see the two subclasses for by whom."""


class LocalProtocolError(ProtocolError):
    """This side was asked to say something that the protocol forbids. Nothing was sent."""


class UnserializableValue(LocalProtocolError):
    """A value of a tuple does not survive the trip through JSON and Storm.

    ``index``: its position in the tuple (None: the tuple itself is at fault); ``reason``: what is wrong with it.
    """

    def __init__(self, reason: str, index: int | None = None, where: str | None = None) -> None:
        self.index = index
        self.reason = reason
        if where is None and index is not None:
            where = f"value {index}"
        super().__init__(reason if where is None else f"{where}: {reason}")


class RemoteProtocolError(ProtocolError):
    """The other side broke the protocol; the conversation can't go on.

    ``events``: what was understood of the same bytes before the broken message, in order, so that bytes fed whole
    and bytes fed one at a time mean the same.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.events: list[object] = []


def shortened(data: bytes | str, limit: int = 200) -> str:
    """The bytes of a message for an error text: at most about ``limit`` characters, both ends kept."""
    half = limit // 2
    if isinstance(data, bytes):
        if len(data) > 4 * limit:  # no need to decode megabytes for their ends
            head = data[:limit].decode("utf-8", "backslashreplace")
            tail = data[-limit:].decode("utf-8", "backslashreplace")
            return repr(f"{head[:half]}…{tail[-half:]} ({len(data)} bytes)")
        data = data.decode("utf-8", "backslashreplace")
    if len(data) > limit:
        data = f"{data[:half]}…{data[-half:]} ({len(data)} characters)"
    return repr(data)


def shown(value: object, limit: int = 60) -> str:
    """A value that came in, for an error text; of values that Python itself can't show, the type."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply; an integer of more than 4300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-limit // 2 :]}"
