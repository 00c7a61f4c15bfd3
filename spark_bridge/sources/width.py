"""The number of partitions whose first blocks one Spark job brings.

A job costs some 20 ms, however little it brings. A DataFrame behind a shuffle has 200 partitions, which may hold a few rows
each.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_bridge.sources.blocks import Block

_MOST_PARTITIONS = 64
_SECONDS = 2.0  # a job that takes longer is too wide, as the reader of its first partition waits for all


class Width:
    """The number for the next job: it grows while partitions turn out to have one block each, and come quickly.

    Args:
        most_bytes: What all first blocks of a job are expected to have at most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.partitions = 1

    def learn(self, first: Sequence[Block], seconds: float) -> None:
        """Take into account what a job brought.

        Args:
            first: The first block of each partition.
            seconds: How long the job took.
        """
        if not all(block.last for block in first):
            self.partitions = 1
        elif seconds > _SECONDS:
            self.partitions = max(1, len(first) // 4)
        else:
            mean = sum(len(block.data) for block in first) // len(first) + 1
            self.partitions = max(1, min(len(first) * 4, _MOST_PARTITIONS, self._most_bytes // mean))
