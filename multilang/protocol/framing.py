"""Cut a stream of bytes into messages: JSON text that may span lines, ended by a line that is just ``end``.

"All JSON inputs and outputs are terminated by a single line containing "end". Note that this delimiter is not itself
JSON encoded." Storm reads lines with Java's ``readLine`` and compares them with ``end``: a CR before the line feed
belongs to the end of the line, while ``end`` followed by a blank ends nothing.
"""

from __future__ import annotations

from multilang.protocol.bounds import SMALLEST_RATIO, memory_of
from multilang.protocol.errors import RemoteProtocolError, shortened
from multilang.settings import MAX_BUFFER, SETTINGS

# Without a bound, a peer that never sends "end" would fill the memory.
DEFAULT_MAX_BUFFER: int = SETTINGS[MAX_BUFFER].default

_SMALL = 1024 * 1024  # bytes of memory that any message may take

_END = b"\nend\n"
_END_CRLF = b"\nend\r\n"
_START_OF_END = b"\nend"
_ALMOST_ENDED = (b"\nend\r", b"\nend", b"\nen", b"\ne", b"\n")


class FrameReader:
    """Cuts a byte stream into messages: bytes may come in any pieces, only their content decides.

    Args:
        max_buffer: Bytes that a message may have, and that it may take when it is parsed.
        hides_first: Whether errors don't quote the first message: the conf in a handshake may hold passwords.
    """

    def __init__(self, max_buffer: int = DEFAULT_MAX_BUFFER, hides_first: bool = False) -> None:
        self.max_buffer = max_buffer
        self._hides = hides_first
        self._held: list[bytes] = []  # pieces of the message that has not ended yet
        self._size = 0
        self._tail = b"\n"  # the last bytes before the next piece, since an end line may be split between two pieces

    @property
    def max_buffer(self) -> int:
        """Bytes that a message may have, and that it may take when it is parsed."""
        return self._max_buffer

    @max_buffer.setter
    def max_buffer(self, limit: int) -> None:
        self._max_buffer = limit
        self._most_memory = max(limit, _SMALL)
        # The size up to which a message needs not be looked at.
        self._sure = min(limit, self._most_memory // SMALLEST_RATIO)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that ``data`` completes, without their ``end`` line.

        Raises:
            RemoteProtocolError: A message is larger than ``max_buffer`` bytes. The error's ``events`` are the messages
                that were complete before it.
        """
        if self._held:
            seam = self._tail + data
            if _END not in seam and _END_CRLF not in seam:
                self._hold(data)
                return []
            data = b"".join(self._held) + data
            self._reset()
        # When every line that begins with "end" is exactly "end", splitting is all that is needed.
        frames = data.split(_END)
        rest = frames.pop()
        if data.count(_START_OF_END) != len(frames) or data[:3] == b"end":
            frames, rest = _split_lines(data)
        if len(data) > self._sure:
            for i, frame in enumerate(frames):
                if len(frame) > self._sure:
                    self._check(frame, frames[:i])
        if frames:
            self._hides = False
        if rest:
            try:
                self._hold(rest)
            except RemoteProtocolError as error:
                error.events = list(frames)
                raise
        return frames

    def take_back(self, frames: list[bytes]) -> bytes:
        """Return the bytes of ``frames``, which ``feed`` returned last, and of what is held, to feed them again."""
        data = b"".join([frame + _END for frame in frames] + self._held)
        self._reset()
        return data

    def close(self) -> None:
        """Note the end of the stream.

        Raises:
            RemoteProtocolError: The stream ended inside a message.
        """
        text = b"".join(self._held)
        self._reset()
        if text.strip():
            raise RemoteProtocolError(
                f"the stream ended inside a message, {len(text)} bytes without a closing line 'end'"
                f"{'' if self._hides else f': {shortened(text)}'}"
            )

    def _hold(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-len(_START_OF_END) - 1 :]
        self._held.append(data)
        self._size += len(data)
        if self._size > self.max_buffer:
            text = b"".join(self._held)
            for ending in _ALMOST_ENDED:  # bytes that may turn out to be the end line do not count
                if text.endswith(ending):
                    text = text[: -len(ending)]
                    break
            if len(text) > self.max_buffer:
                self._reset()
                raise self._too_large(text, [])

    def _reset(self) -> None:
        self._held = []
        self._size = 0
        self._tail = b"\n"

    def _check(self, frame: bytes, before: list[bytes]) -> None:
        """Refuse a message that is too large, or would be when it is parsed."""
        if len(frame) > self.max_buffer:
            raise self._too_large(frame, before)
        needed = memory_of(frame)
        if needed > self._most_memory:
            quoted = "" if self._hides and not before else f"; it begins {shortened(frame[:200])}"
            error = RemoteProtocolError(
                f"a message of {len(frame)} bytes has so many values that it would take up to {needed} bytes of memory, more than "
                f"the limit of {self._most_memory} (multilang.buffer.max.bytes): send fewer in one tuple, or raise the limit{quoted}"
            )
            error.events = list(before)
            raise error

    def _too_large(self, text: bytes, frames: list[bytes]) -> RemoteProtocolError:
        start = shortened(text[: min(self.max_buffer, 200)])  # the same text, however much of the message has been read
        error = RemoteProtocolError(
            f"a message is larger than the limit of {self.max_buffer} bytes (multilang.buffer.max.bytes), or its closing "
            f"line 'end' is missing{'' if self._hides and not frames else f'; it begins {start}'}"
        )
        error.events = list(frames)
        return error


class BrokenReader(FrameReader):
    """Replaces the reader once the peer has broken the protocol, since the conversation can't continue."""

    def __init__(self, error: RemoteProtocolError) -> None:
        super().__init__()
        self._text = str(error)

    @property
    def max_buffer(self) -> int:
        """Bytes that a message may have, and that it may take when it is parsed."""
        return self._max_buffer

    @max_buffer.setter
    def max_buffer(self, limit: int) -> None:
        self._max_buffer = limit
        self._most_memory = max(limit, _SMALL)
        # The size up to which a message needs not be looked at.
        self._sure = min(limit, self._most_memory // SMALLEST_RATIO)

    def feed(self, data: bytes) -> list[bytes]:
        """Raise the same error again."""
        raise RemoteProtocolError(self._text)

    def close(self) -> None:
        """Do nothing: the error was reported already."""


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Cut line by line, which handles CRLF and empty messages, too."""
    frames: list[bytes] = []
    start = at = 0
    while True:
        stop = data.find(b"\n", at)
        if stop < 0:
            return frames, data[start:]
        if data.startswith(b"end", at) and data[at:stop] in (b"end", b"end\r"):
            frames.append(data[start : max(start, at - 1)])
            start = stop + 1
        at = stop + 1
