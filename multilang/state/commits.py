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


class CommitNote:
    """The line of one commit in the file beside an SQLite file, to be written after the commit. Close it.

    Args:
        path: The SQLite file, without symbolic links.
        number: The commit's number.

    Attributes:
        found: The number in the line before. If it is not lower, commits are missing from the SQLite file.

    Raises:
        OSError: The file beside it can't be opened, or is a link.
    """

    __slots__ = ("_handle", "_number", "found")

    def __init__(self, path: str, number: int) -> None:
        self._number = number
        self._handle = private.open_file(f"{path}{SUFFIX}", os.O_RDWR | os.O_CREAT)
        try:
            self.found = _number(os.pread(self._handle, _LINE, number % LINES * _LINE))
        except BaseException:
            os.close(self._handle)
            raise

    def write(self) -> None:
        """Write the number. Raises OSError."""
        os.pwrite(self._handle, _line(self._number), self._number % LINES * _LINE)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _line(number: int) -> bytes:
    digits = b"%020d" % number
    return b"%s %08x\n" % (digits, crc32(digits))


def _number(line: bytes) -> int:
    digits = line[:20]
    return int(digits) if digits.isdigit() and line == _line(int(digits)) else 0
