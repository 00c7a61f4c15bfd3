"""A file whose whole lines are read while it grows, and the place up to which they are."""

from __future__ import annotations

import errno
import os
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from multilang.component.spout import Spout

LOOK_SECS = 0.2  # between two looks at a file, when all of it is read
KNOWN_BY = 1024  # bytes before the position, by which a file is known again
_PIECE = 1 << 20  # bytes of one read


class Followed:
    """A file that is read from its beginning, or from a position.

    Args:
        file: The file.
        spout: The spout that reads it; it has the clock and the log.

    Attributes:
        file: The file.
        at: The number of bytes of the lines that were read.
        number: The number of these lines; None: it is not known, since it was not read from its beginning.
        partial: What is behind the last whole line.
    """

    def __init__(self, file: BinaryIO, spout: Spout) -> None:
        self.file = file
        self.at = 0
        self.number: int | None = 0
        self.partial = b""
        self._spout = spout
        self._inode = self.found().st_ino
        self._last = b""  # the end of what was read
        self._before: tuple[int, int | None, bytes] = (0, 0, b"")  # what these were before the last line
        self._nuls_at = 0.0  # when to look behind NULs next
        self._grew_at = spout.clock()

    def found(self) -> os.stat_result:
        """Return the file's stat."""
        return os.fstat(self.file.fileno())

    def position(self) -> dict[str, Any]:
        """Return the place, and by what it is known again."""
        known_by = {"length": len(self._last), "crc": crc32(self._last)}
        return {"inode": self._inode, "byte": self.at, "line": self.number, **known_by}

    def go_to(self, position: dict[str, Any]) -> bool:
        """Go to a position; return whether the file has what was read up to there."""
        byte, length = position["byte"], position["length"]
        if self.found().st_size < byte:
            return False
        self.file.seek(byte - length)
        last = self.file.read(length)
        if crc32(last) != position["crc"]:
            return False
        self.at, self.number, self._last = byte, position.get("line"), last
        return True

    def go_to_end(self) -> None:
        """Go behind what is there."""
        self.at, self.number = self.file.seek(0, os.SEEK_END), None
        self.file.seek(max(0, self.at - KNOWN_BY))
        self._last = self.file.read(min(self.at, KNOWN_BY))

    def begin_again(self) -> None:
        """Go to the beginning."""
        self._read_anew(0)
        self.at, self.number, self.partial, self._last = 0, 0, b"", b""

    def is_another(self) -> bool:
        """Return whether the bytes before the place are others than those that were read."""
        known = self._last + self.partial
        place = self.at + len(self.partial) - len(known)
        return os.pread(self.file.fileno(), len(known), place) != known

    def line(self) -> bytes | None:
        """Return the next line, with its end; None if there is none yet."""
        if self._spout.clock() < self._nuls_at:
            return None
        while True:
            piece = self.file.readline(_PIECE)
            if piece.startswith(b"\0") and not self.partial:
                if not self._is_over_nuls():
                    return None
                continue
            if piece:
                self._grew_at = self._spout.clock()
            self.partial += piece
            if piece.endswith(b"\n"):
                return self.rest()
            if len(piece) < _PIECE:
                return None

    def rest(self) -> bytes:
        """Return what is behind the last line, as a line of its own."""
        line, self.partial = self.partial, b""
        self._before = self.at, self.number, self._last
        self.at += len(line)
        self.number = None if self.number is None else self.number + 1
        self._last = (self._last + line)[-KNOWN_BY:]
        return line

    def step_back(self) -> None:
        """Make the position that before the last line. Nothing is read after that."""
        self.at, self.number, self._last = self._before

    def is_quiet(self, secs: float) -> bool:
        """Return whether nothing was read of it for so many seconds."""
        return self._spout.clock() >= self._grew_at + secs

    # ---- inside ----

    def _read_anew(self, place: int) -> None:
        self.file.seek(0, os.SEEK_END)  # drops the buffer, within which a seek would stay
        self.file.seek(place)

    def _is_over_nuls(self) -> bool:
        """Go to what is behind the NULs at the beginning of a line; return whether there is something yet."""
        place = self.at
        while True:
            try:
                place = self.file.seek(place, os.SEEK_DATA)  # over a hole without reading it
            except OSError as problem:
                if problem.errno != errno.ENXIO:
                    raise
                piece = b""
            else:
                piece = self.file.read(_PIECE)
            rest = piece.lstrip(b"\0")
            place += len(piece) - len(rest)
            if rest:
                break
            if not piece:
                self._nuls_at = self._spout.clock() + LOOK_SECS
                self._read_anew(self.at)  # a program may have reserved the place, and write there
                return False
        self._spout.log(
            f"bytes {self.at} to {place} of {getattr(self._spout, 'path', self.file.name)} are NULs, and are left out: a program that does "
            "not append leaves them when the file is truncated",
            "warn",
        )
        self._last = (self._last + bytes(min(place - self.at, KNOWN_BY)))[-KNOWN_BY:]
        self.at = self.file.seek(place)
        return True
