"""The message ids of the tuples that a spout's blocks carry, which are counted one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.blocks.names import BLOCK_ID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def is_block(id: Any) -> bool:
    """Return whether a message id is that of a block, followed by those of its tuples."""
    return type(id) is list and len(id) == 2 and isinstance(id[0], str) and id[0].startswith(BLOCK_ID)


class Carried:
    """The tuples in flight that blocks carry.

    A tuple that several blocks carry, one for each of its tasks, is acked when all are, and fails when one fails.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}  # the spout's number of a tuple -> its message id, and the blocks left

    def sent(self, carried: list[list[Any]]) -> None:
        """Take note of the tuples of a block: each its message id, its number, and the number of its blocks."""
        for id, number, blocks in carried:
            self._open.setdefault(number, [id, blocks])

    def settled(self, carried: list[list[Any]], ok: bool) -> Iterator[Any]:
        """Yield the message ids that are done now that their block was acked, or failed."""
        for id, number, _ in carried:
            entry = self._open.get(number)
            if entry is None:
                continue  # another of its blocks failed
            entry[1] -= 1
            if not ok or not entry[1]:
                del self._open[number]
                yield id

    def lost(self) -> list[Any]:
        """Return the message ids of all tuples in flight, and forget them, since their task died."""
        ids = [id for id, _ in self._open.values()]
        self._open.clear()
        return ids

    def __len__(self) -> int:
        return len(self._open)
