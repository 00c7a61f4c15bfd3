"""The choice of windows by a bolt's settings."""

from __future__ import annotations

from multilang.windowing.aggregates import Count
from multilang.windowing.counted import CountWindows, Latest, Recent
from multilang.windowing.ordered import Ordered
from multilang.windowing.sessions import SessionWindows
from multilang.windowing.specs import Session
from multilang.windowing.timed import TimeWindows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multilang.windowing.panes import Keeper, Windows
    from multilang.windowing.settings import Settings


def windows_of(settings: Settings, keeper: Keeper) -> Windows:
    """Return the windows of a task.

    Args:
        settings: The settings of its bolt.
        keeper: The task.
    """
    window = settings.window
    if isinstance(window, Session):
        return SessionWindows(keeper, window.gap_ms, settings.lateness_ms)
    in_memory = settings.memory_limit is None
    merge = settings.aggregate.merge if settings.aggregate is not None and in_memory else None
    counts = type(settings.aggregate) is Count
    if window.length_ms and window.slide_ms:
        return TimeWindows(keeper, window.length_ms, window.slide_ms, settings.lateness_ms, merge, counts)
    made: Windows
    if window.length_count and window.slide_count:
        made = CountWindows(keeper, window.length_count, window.slide_count, merge, counts)
    elif window.length_count:
        made = Latest(keeper, window.length_count, window.slide_ms)
    else:
        made = Recent(keeper, window.length_ms, window.slide_count)
    return Ordered(made) if settings.has_event_time else made
