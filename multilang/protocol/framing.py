"""Messages out of bytes: JSON text that may span lines, ended by a line ``end`` alone.

"All JSON inputs and outputs are terminated by a single line containing "end". Note that this delimiter is not itself
JSON encoded." As Storm does, white space after ``end`` (a CR, say) is passed over.
"""

from __future__ import annotations

from multilang.protocol.errors import RemoteProtocolError, shortened

DEFAULT_MAX_BUFFER = 256 * 1024 * 1024  # bytes; the bound keeps a peer that never says "end" from filling the memory

_END = b"\nend\n"
_START_OF_END = b"\nend"


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
            if _START_OF_END not in self._tail + data:
                self._hold(data)
                return []
            data = b"".join(self._held) + data
            self._reset()
        # Where every line that begins with "end" is an exact one, a split is all there is to do.
        if data.count(_START_OF_END) == data.count(_END) and data[:3] != b"end":
            frames = data.split(_END)
            rest = frames.pop()
        else:
            frames, rest = _split_lines(data)
        if len(data) > self.max_buffer:
            for i, frame in enumerate(frames):
                if len(frame) > self.max_buffer:
                    raise self._too_large(len(frame), frame, frames[:i])
        if rest:
            try:
                self._hold(rest)
            except RemoteProtocolError as error:
                error.events = list(frames)
                raise
        return frames

    def close(self) -> None:
        """The stream ended. Raises RemoteProtocolError when it ended inside a message."""
        text = b"".join(self._held)
        self._reset()
        if text.strip():
            raise RemoteProtocolError(
                f"the stream ended inside a message, {len(text)} bytes without a closing line 'end': {shortened(text)}"
            )

    def _hold(self, data: bytes) -> None:
        last_line = data[data.rfind(b"\n") + 1 :] if _START_OF_END in b"\n" + data else b""
        if last_line[:3] == b"end" and not last_line[3:].strip():
            self._tail = _START_OF_END  # an end that lacks only its line feed: look again with whatever comes next
        else:
            self._tail = (self._tail + data)[-4:]
        self._held.append(data)
        self._size += len(data)
        if self._size > self.max_buffer:
            text = b"".join(self._held)
            self._reset()
            raise self._too_large(len(text), text, [])

    def _reset(self) -> None:
        self._held = []
        self._size = 0
        self._tail = b"\n"

    def _too_large(self, size: int, text: bytes, frames: list[bytes]) -> RemoteProtocolError:
        error = RemoteProtocolError(
            f"a message of {size} bytes and more is larger than the limit of {self.max_buffer} bytes "
            f"(multilang.buffer.max.bytes), or its closing line 'end' is missing: {shortened(text[:400])}"
        )
        error.events = list(frames)
        return error


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """The same cut line by line, for an ``end`` with white space behind it and for empty messages."""
    frames: list[bytes] = []
    start = at = 0
    while True:
        stop = data.find(b"\n", at)
        if stop < 0:
            return frames, data[start:]
        if data.startswith(b"end", at) and data[at:stop].rstrip() == b"end":
            frames.append(data[start : max(start, at - 1)])
            start = stop + 1
        at = stop + 1
