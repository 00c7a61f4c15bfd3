"""The memory and the file descriptors of a program while it works, and whether they grow without end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

_RESIDENT = re.compile(rb"VmRSS:\s+(\d+) kB")
_LEAST = 8  # samples, without which nothing is said
_MORE_DESCRIPTORS = 8
_NOTICEABLE = 2 << 20  # bytes
_MORE_MEMORY = 32 << 20  # bytes; runtimes with a garbage collector let their memory grow and shrink by as much


@dataclass
class Footprint:
    """Samples of one process and those that it started.

    Attributes:
        memory: Resident bytes.
        descriptors: Open files, pipes and sockets.
    """

    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def sample(self, pids: Iterable[int]) -> None:
        """Add a sample; nothing where the system has no /proc.

        Args:
            pids: The processes.
        """
        memory = descriptors = 0
        for pid in pids:
            try:
                with open(f"/proc/{pid}/status", "rb") as file:
                    found = _RESIDENT.search(file.read())
                descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            except OSError:
                continue  # it has ended meanwhile
            memory += int(found[1]) << 10 if found else 0
        if memory:
            self.memory.append(memory)
            self.descriptors.append(descriptors)

    @property
    def leaked_descriptors(self) -> str | None:
        """A sentence, if the number of descriptors grows from quarter to quarter."""
        grown = _growth(self.descriptors)
        if grown is None or grown[1] - grown[0] < _MORE_DESCRIPTORS:
            return None
        return f"its open file descriptors grow: {grown[0]:.0f}, later {grown[1]:.0f}"

    @property
    def may_grow_on(self) -> bool:
        """True if the memory grows from quarter to quarter by enough that a leak may be behind it."""
        grown = _growth(self.memory)
        return grown is not None and grown[1] - grown[0] > max(_NOTICEABLE, grown[0] / 8)

    @property
    def leaked_memory(self) -> str | None:
        """A sentence, if the memory grows from quarter to quarter, and is twice as much in the end."""
        grown = _growth(self.memory)
        if grown is None or grown[1] - grown[0] < max(_MORE_MEMORY, grown[0]):
            return None
        return f"its memory grows: {grown[0] / 2**20:.0f} MB, later {grown[1] / 2**20:.0f} MB"


def _growth(samples: list[int]) -> tuple[float, float] | None:
    """Return the values of the second and the last quarter, if each quarter is above the one before it."""
    if len(samples) < _LEAST:
        return None
    size = len(samples) // 4
    quarters = [median(samples[-size * number : len(samples) - size * (number - 1)]) for number in (3, 2, 1)]
    return (quarters[0], quarters[-1]) if quarters[0] < quarters[1] < quarters[2] else None
