"""Coordination: finding out that a task has seen every tuple of an id. Linear DRPC and transactions are built on it.

These are Storm's CoordinatedBolt and batch bolts, for components in Python. Users need ``BatchBolt`` and
``KeyedFairBolt``; the rest is for authors of higher systems, such as linear DRPC.
"""

from __future__ import annotations

from multilang.coordination.batch import BatchBolt, BatchBoltExecutor, BatchCollector
from multilang.coordination.coordinated import CoordinatedBolt
from multilang.coordination.fair import KeyedFairBolt
from multilang.coordination.names import ALL, COORD, COORD_STREAM, SINGLE
from multilang.coordination.program import ProgramBolt

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
]
