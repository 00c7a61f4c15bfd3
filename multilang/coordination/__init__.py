"""Knowing that a task has seen every tuple of an id: what linear DRPC, and transactions, are built on.

Storm's CoordinatedBolt and batch bolts, for components in Python. Users meet ``BatchBolt`` and ``KeyedFairBolt``; the rest
is for whoever builds a higher system (as linear DRPC does).
"""

from __future__ import annotations

from multilang.coordination.batch import BatchBolt, BatchBoltExecutor, BatchCollector
from multilang.coordination.coordinated import CoordinatedBolt
from multilang.coordination.fair import KeyedFairBolt
from multilang.coordination.names import ALL, COORD, COORD_STREAM, SINGLE
from multilang.coordination.program import ProgramBolt, ProgramError

__all__ = [
    "ALL",
    "COORD",
    "COORD_STREAM",
    "SINGLE",
    "BatchBolt",
    "BatchBoltExecutor",
    "BatchCollector",
    "CoordinatedBolt",
    "KeyedFairBolt",
    "ProgramBolt",
    "ProgramError",
]
