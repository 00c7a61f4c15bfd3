"""The two kinds of protocol errors. As in h11, each names the side that broke the rule."""

from __future__ import annotations

from multilang.errors import MultilangError


class LocalProtocolError(MultilangError):
    """This side was asked to send something that the protocol forbids; nothing was sent."""


class UnserializableValue(LocalProtocolError):
    """A value of a tuple does not survive the trip through JSON and Storm.

    Attributes:
        index: Its position in the tuple; None when the tuple itself is at fault.
        reason: A description of the fault.
    """

    def __init__(self, reason: str, index: int | None = None, where: str | None = None) -> None:
        self.index = index
        self.reason = reason
        if where is None and index is not None:
            where = f"value {index}"
        super().__init__(reason if where is None else f"{where}: {reason}")


class RemoteProtocolError(MultilangError):
    """The other side broke the protocol; the conversation can't continue.

    Attributes:
        events: The messages that were understood before the broken one, in order. With them, bytes that are fed all at
            once have the same result as bytes that are fed one at a time.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.events: list[object] = []


def shortened(data: bytes | str, limit: int = 200) -> str:
    """Return the bytes of a message for an error text: about ``limit`` characters at most, with both ends."""
    half = limit // 2
    if isinstance(data, bytes):
        if len(data) > 4 * limit:  # the ends are enough: don't decode megabytes
            head = data[:limit].decode("utf-8", "backslashreplace")
            tail = data[-limit:].decode("utf-8", "backslashreplace")
            return repr(f"{head[:half]}…{tail[-half:]} ({len(data)} bytes)")
        data = data.decode("utf-8", "backslashreplace")
    if len(data) > limit:
        data = f"{data[:half]}…{data[-half:]} ({len(data)} characters)"
    return repr(data)


def shown(value: object, limit: int = 60) -> str:
    """Return a received value for an error text, or just its type when Python itself can't show it."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply; an integer of more than 4300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[-limit // 2 :]}"
