"""Messages out of bytes: JSON text that may span lines, ended by a line ``end`` alone.

"All JSON inputs and outputs are terminated by a single line containing "end". Note that this delimiter is not itself
JSON encoded." Storm reads lines with Java's ``readLine`` and compares with ``end``: a CR before the line feed is part of
the line's end, while ``end`` with a blank behind it ends nothing.
"""

from __future__ import annotations

from multilang.protocol.errors import RemoteProtocolError, shortened

DEFAULT_MAX_BUFFER = 256 * 1024 * 1024  # bytes; the bound keeps a peer that never says "end" from filling the memory

_END = b"\nend\n"
_END_CRLF = b"\nend\r\n"
_START_OF_END = b"\nend"
_ALMOST_ENDED = (b"\nend\r", b"\nend", b"\nen", b"\ne", b"\n")


class FrameReader:
    """Cuts a byte stream into messages. Bytes may come in any pieces; the cut depends on their content alone."""

    def __init__(self, max_buffer: int = DEFAULT_MAX_BUFFER) -> None:
        self.max_buffer = max_buffer
        self._held: list[bytes] = []  # pieces of the message that has not ended yet
        self._size = 0
        self._tail = b"\n"  # the last bytes before the next piece: an end may lie across two of them

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that ``data`` completes, without their ``end`` line.

        Raises RemoteProtocolError when a message is larger than ``max_buffer`` bytes; what was completed before it
        is in the error's ``events``.
        """
        if self._held:
            seam = self._tail + data
            if _END not in seam and _END_CRLF not in seam:
                self._hold(data)
                return []
            data = b"".join(self._held) + data
            self._reset()
        # Where every line that begins with "end" is an exact one, a split is all there is to do.
        frames = data.split(_END)
        rest = frames.pop()
        if data.count(_START_OF_END) != len(frames) or data[:3] == b"end":
            frames, rest = _split_lines(data)
        if len(data) > self.max_buffer:
            for i, frame in enumerate(frames):
                if len(frame) > self.max_buffer:
                    raise self._too_large(frame, frames[:i])
        if rest:
            try:
                self._hold(rest)
            except RemoteProtocolError as error:
                error.events = list(frames)
                raise
        return frames

    def take_back(self, frames: list[bytes]) -> bytes:
        """The bytes of ``frames``, which were the last that ``feed`` returned, and of what is held: to feed them again."""
        data = b"".join([frame + _END for frame in frames] + self._held)
        self._reset()
        return data

    def close(self) -> None:
        """The stream ended. Raises RemoteProtocolError when it ended inside a message."""
        text = b"".join(self._held)
        self._reset()
        if text.strip():
            raise RemoteProtocolError(
                f"the stream ended inside a message, {len(text)} bytes without a closing line 'end': {shortened(text)}"
            )

    def _hold(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-len(_START_OF_END) - 1 :]
        self._held.append(data)
        self._size += len(data)
        if self._size > self.max_buffer:
            text = b"".join(self._held)
            for ending in _ALMOST_ENDED:  # bytes that may turn out to be the closing line, and do not count
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

    def _too_large(self, text: bytes, frames: list[bytes]) -> RemoteProtocolError:
        start = text[: min(self.max_buffer, 200)]  # the same text, however much of the message was there already
        error = RemoteProtocolError(
            f"a message is larger than the limit of {self.max_buffer} bytes (multilang.buffer.max.bytes), or its closing "
            f"line 'end' is missing; it begins {shortened(start)}"
        )
        error.events = list(frames)
        return error


class BrokenReader(FrameReader):
    """Takes the reader's place once the peer has broken the protocol: the conversation can't go on."""

    def __init__(self, error: RemoteProtocolError) -> None:
        super().__init__()
        self._text = str(error)

    def feed(self, data: bytes) -> list[bytes]:
        """Raises the same error again."""
        raise RemoteProtocolError(self._text)

    def close(self) -> None:
        """Nothing is waited for any more."""


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """The same cut line by line, for CRLF and for empty messages."""
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
