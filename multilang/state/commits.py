"""The number of the last commit to an SQLite file, in a small file beside it (``FILE.commits``).

The SQLite file counts its commits itself. The number beside it is written after each commit, and never before, so it is
the file's own count or a lower one, whoever is killed at whatever moment. If it is higher, commits are missing from the
SQLite file: its log (``-wal``) was left behind, or an older copy was put back.

The file has a ring of lines. Each commit writes the line that its number names, with a checksum. So a line that was
written half spoils one number at most, and a process that was stopped before its write replaces no newer number when it
wakes up. It is not synchronized to the disk: after a power loss it may tell a lower number, which is harmless.
"""

from __future__ import annotations

import os
from zlib import crc32

from multilang import private

SUFFIX = ".commits"
LINES = 64  # more than processes that commit to one file at once

_LINE = len(b"01234567890123456789 01234567\n")


def last_commit(path: str) -> int:
    """Return the highest number that the file beside ``path`` tells; 0 if it tells of none.

    Args:
        path: The SQLite file, without symbolic links.

    Raises:
        OSError: The file beside it is there and can't be read, or is a link.
    """
    try:
        handle = private.open_file(f"{path}{SUFFIX}", os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        content = os.read(handle, LINES * _LINE)
    finally:
        os.close(handle)
    lines = (content[at : at + _LINE] for at in range(0, len(content), _LINE))
    return max(map(_number, lines), default=0)


class CommitNotes:
    """The file beside an SQLite file, kept open by one that commits to it. Close it.

    Args:
        path: The SQLite file, without symbolic links.
    """

    __slots__ = ("_file", "_handle", "_path")

    def __init__(self, path: str) -> None:
        self._path = f"{path}{SUFFIX}"
        self._handle = -1
        self._file: tuple[int, int] | None = None  # its device and inode

    def found(self, number: int) -> int:
        """Return the number in the line of ``number``, before it is written. If it is not lower, commits are missing.

        Raises:
            OSError: The file beside it can't be opened, or is a link.
        """
        try:
            there = os.lstat(self._path)
        except FileNotFoundError:
            self._open()
        else:
            if (there.st_dev, there.st_ino) != self._file:  # it was removed meanwhile, so that it counts from now on
                self._open()
        return _number(os.pread(self._handle, _LINE, number % LINES * _LINE))

    def write(self, number: int) -> None:
        """Write the number of a commit that was made, behind ``found(number)``. Raises OSError."""
        os.pwrite(self._handle, _line(number), number % LINES * _LINE)

    def close(self) -> None:
        """Close the file."""
        handle, self._handle, self._file = self._handle, -1, None
        if handle >= 0:
            os.close(handle)

    __del__ = close

    def _open(self) -> None:
        self.close()
        self._handle = private.open_file(self._path, os.O_RDWR | os.O_CREAT)
        opened = os.fstat(self._handle)
        self._file = opened.st_dev, opened.st_ino


def _line(number: int) -> bytes:
    digits = b"%020d" % number
    return b"%s %08x\n" % (digits, crc32(digits))


def _number(line: bytes) -> int:
    digits = line[:20]
    return int(digits) if digits.isdigit() and line == _line(int(digits)) else 0
