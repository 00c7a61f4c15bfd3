"""Batches: input that comes in parts, as on Spark, so that time moves on from one part to the next, and not within one."""

from __future__ import annotations

from multilang.component.clock import TaskClock
from multilang.settings import BATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

"""The conf key by which an engine tells windowed bolts of the batch: an object with ``time_ms`` and ``merged``."""


class Batch:
    """A part of the input, of which all tuples come at one instant.

    Args:
        time_ms: This instant, in milliseconds since the epoch.
        merged: The components whose tasks count as one source: what they got of the batch is complete, and divided among
            them anew in each. Those of a windowed bolt don't: one may be behind another.

    Attributes:
        clock: The clock, which stands still, so that a task that is run again does the same.
    """

    def __init__(self, time_ms: int, merged: Collection[str]) -> None:
        secs = time_ms / 1000
        self.clock = TaskClock(lambda: secs, lambda: secs)
        self.merged = frozenset(merged)


def batch_of(conf: Mapping[str, Any]) -> Batch | None:
    """Return the batch that a conf tells of; None if input comes one by one."""
    found = conf.get(BATCH)
    return None if found is None else Batch(found["time_ms"], found["merged"])
