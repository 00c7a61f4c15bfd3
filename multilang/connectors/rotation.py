"""Names that rotation gives a file: those of one file, apart from those of others, and in which order they were written."""

from __future__ import annotations

import errno
import os
import re
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

PACKED = r"\.(gz|bz2|xz|zst|lz4|zip|Z|tgz|7z|br)"  # the pattern of what packing adds to a name
Order = tuple[float, float, float]  # of files by when they were written last

_DATE_DIGITS = 8  # of a date in a file's name at least; fewer are a number
_STAMP = r"[-\d_.:TZ+]*"
_WORD = re.compile(r"[0-9A-Za-z]+")
_CALENDAR = re.compile(
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*", re.IGNORECASE
)
_OLD = re.compile(
    r"[\d~]|(?<![a-z])(old|bak|backup|prev|previous|last|orig|saved?|archived?|rotated|copy)(?![a-z])", re.IGNORECASE
)


def usual(base: str) -> str:
    """Return a pattern of the names that rotation usually gives a file, and hardly anything else.

    Args:
        base: The file's name.
    """
    stem, end = map(re.escape, os.path.splitext(base))
    return rf"{stem}{end}[-._]{_STAMP}\d{_STAMP}|{stem}[-._]\d{{4}}-?\d\d-?\d\d{_STAMP}{end}"


def like(base: str, name: str) -> str:
    """Return a pattern of the names that are like one which rotation gave a file, with other numbers and dates.

    Args:
        base: The file's name.
        name: That of a rotated one.
    """
    start = _common(base, name)
    end = _common(base[start:][::-1], name[start:][::-1])
    middle = name[start : len(name) - end]
    parts, at = [re.escape(name[:start])], 0
    for word in _WORD.finditer(middle):
        parts += [re.escape(middle[at : word.start()]), _others(word[0])]
        at = word.end()
    return "".join([*parts, re.escape(middle[at:]), re.escape(name[len(name) - end :])])


def looks_rotated(base: str, name: str) -> bool:
    """Return whether a name has that of a file, and a number or a word such as ``old``.

    Args:
        base: The file's name.
        name: The name.
    """
    before, found, behind = name.partition(os.path.splitext(base)[0])
    apart = not (before[-1:].isalnum() or behind[:1].isalnum())
    return bool(found) and apart and bool(_OLD.search(before) or _OLD.search(behind))


def order_of(name: str, found: os.stat_result) -> Order:
    """Return the sort key of rotated files: the time of the last write, then of the rename, then the number in the name.

    Args:
        name: The file's name.
        found: Its stat.
    """
    digits = re.sub(r"\D", "", name) or "0"
    turn = int(digits) if len(digits) >= _DATE_DIGITS else -int(digits)  # app.log.1 is later than app.log.2
    return found.st_mtime_ns, found.st_ctime_ns, turn


def found_at(path: str) -> os.stat_result | None:
    """Return a file's stat; None if it is not there, or is none, such as a pipe.

    Args:
        path: The file.
    """
    try:
        found = os.stat(path)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
    return found if S_ISREG(found.st_mode) else None


def open_file(path: str) -> BinaryIO | None:
    """Open a file; None if it is not there, or is none. Never waits, as for the writer of a pipe.

    Args:
        path: The file.
    """
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except FileNotFoundError:
        return None
    if S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    return None


# ---- inside ----


def _others(word: str) -> str:
    """Return a pattern of the words that may stand in another name in the place of this one."""
    if word.isdigit():
        return r"\d+"
    if re.search(r"\d", word):
        return r"(?=[A-Za-z]*\d)[0-9A-Za-z]+"
    return "[A-Za-z]+" if _CALENDAR.fullmatch(word) else word


def _common(one: str, other: str) -> int:
    """Return how many characters two names have in common at their beginnings."""
    return next((n for n, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))  # noqa: B905
