"""Running checksums of rows, which show that a source is the same as before.

A checksum is computed row by row, so that it is the same however the rows are divided into pieces.
"""

from __future__ import annotations

import marshal
from zlib import crc32

from multilang.helpers.plain import plain_rows
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FORM = 2  # the version of the checksum and of the values in it; different versions can't be compared
_MARSHAL = 2  # marshal's oldest version with binary floats: it has no references, so equal rows have equal text
_HEAD = 5  # bytes of marshal's text before the first item of a list


def extended(total: int, rows: Sequence[Sequence[Any]]) -> int:
    """Return the checksum of rows with the checksum ``total`` followed by ``rows``. The checksum of no rows is 0."""
    try:
        text = marshal.dumps(list(map(tuple, rows)), _MARSHAL)
    except ValueError:  # marshal refuses some values, such as objects of a subclass of str
        for row in plain_rows([tuple(row) for row in rows]):
            total = crc32(_text(row), total)
        return total
    return crc32(memoryview(text)[_HEAD:], total)


def _text(row: Sequence[Any]) -> bytes:
    """Return the text of one row, which does not depend on the rows beside it."""
    try:
        return marshal.dumps([tuple(row)], _MARSHAL)[_HEAD:]
    except ValueError:
        return dumps(list(row)).encode("utf-8", "surrogatepass")
