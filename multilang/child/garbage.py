"""The garbage collector while tuples are processed."""

from __future__ import annotations

import gc

# Many tuples are in memory at once, in blocks, windows and unfinished trees. With Python's default of 700 new objects
# the collector would search them again and again, and find nothing: tuples are in no cycle.
_COLLECT_AT = 20_000


def collect_rarely() -> tuple[int, int, int]:
    """Let the garbage collector run less often; return the thresholds that ``gc.set_threshold`` takes to undo it.

    A first threshold that is higher already, or 0 for never, is not changed.
    """
    usual = gc.get_threshold()
    if 0 < usual[0] < _COLLECT_AT:
        gc.set_threshold(_COLLECT_AT, *usual[1:])
    return usual
