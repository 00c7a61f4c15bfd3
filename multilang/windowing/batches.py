"""Batches: input that arrives in parts, as on Spark, so that time advances between two parts, and not within one."""

from __future__ import annotations

from multilang.component.clock import TaskClock
from multilang.settings import BATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


class Batch:
    """A part of the input, of which all tuples arrive at one instant.

    Args:
        time_ms: This instant, in milliseconds since the epoch.
        merged: The components whose tasks count as one source: their input from the batch is complete, and each batch
            divides it anew. Those of a windowed bolt don't: one may be behind another.

    Attributes:
        clock: The clock, which stands still, so that a repeated task gives the same results.
    """

    def __init__(self, time_ms: int, merged: Collection[str]) -> None:
        secs = time_ms / 1000
        self.clock = TaskClock(lambda: secs, lambda: secs)
        self.merged = frozenset(merged)


def batch_of(conf: Mapping[str, Any]) -> Batch | None:
    """Return the batch in a conf; None if there are no batches."""
    found = conf.get(BATCH)
    return None if found is None else Batch(found["time_ms"], found["merged"])
