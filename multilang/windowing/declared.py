"""The declaration of windows: the settings of a windowed bolt's class."""

from __future__ import annotations

from multilang.component.bolt import AnchoredBolt
from multilang.windowing.specs import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from typing import ClassVar, Literal

    from multilang.protocol.messages import Tuple
    from multilang.windowing.aggregates import Aggregate
    from multilang.windowing.passed import Ways
    from multilang.windowing.specs import Session, Sliding
    from multilang.windowing.window import Window


class DeclaredWindows(AnchoredBolt):
    """The settings and methods that a subclass of WindowedBolt may define."""

    window: Sliding | Session | None = None
    """The windows: ``Tumbling(length)``, ``Sliding(length, slide)`` or ``Session(gap)``."""

    key_by: str | Sequence[str] | None = None
    """The field or fields of which each value has windows of its own; None: the windows are those of the task."""

    timestamp_field: str | None = None
    """The field with a tuple's time, in milliseconds since the epoch; None: the time of its arrival.

    Define a method ``timestamp(self, tup)`` instead to compute the time."""

    lag: timedelta = seconds(0)
    """The duration by which tuples may be out of order (Storm's ``withLag``)."""

    watermark_interval: timedelta = seconds(1)
    """The duration between two watermarks, at which windows by event time are evaluated."""

    late_stream: str | None = None
    """The stream for late tuples, with the field ``late_tuple``; None: they are counted, logged and acked."""

    allowed_lateness: timedelta = seconds(0)
    """The duration for which a window is retained after its end, so that late tuples evaluate it again."""

    idle_after: timedelta | None = None
    """The duration after which a silent source no longer holds up the watermark; None: it does for ever."""

    aggregate: Aggregate | None = None
    """The aggregate that makes ``window.result``; None: ``window.tuples`` has the tuples."""

    early: int | timedelta | None = None
    """Evaluates a window before its end, too: after so many tuples of it, or every so often if there are new ones."""

    accumulating: bool = True
    """False: each evaluation of a window has only the tuples since the one before."""

    anchor: Literal["all", "new", "none"] = "all"
    """The tuples that emits are anchored to: the window's, those that no window had before, or none."""

    id_field: str | None = None
    """The field with an id that is the same in a replay of the tuple, so that a window that still holds it counts it once."""

    keep_expired: bool | None = None
    """Keep ``window.expired``, or not; None: without ``key_by``. With keys, it costs a window's tuples per key."""

    memory_limit: int | None = None
    """The greatest number of tuples that the windows of a task have in memory, or of accumulators with an aggregate."""

    at_memory_limit: Literal["error", "spill"] | None = None
    """The reaction to the limit: the task ends with an error, or data that the last checkpoint has is evicted from memory and
    read again when its window is evaluated. None: "spill" with state, "error" without."""

    ways: Ways | None = None
    """The paths of the elements of a program to these windows, if watermarks are passed along them; None: each task that sends
    to the bolt is a source."""

    can_spill: ClassVar[bool] = False
    """True if there is a store that windows can be spilled to."""

    def process_window(self, window: Window) -> None:
        """Work on a window.

        Args:
            window: The window, whose tuples are in ``window.tuples``, or their aggregate in ``window.result``.
        """
        raise TypeError(f"{type(self).__name__} has no process_window method: define process_window(self, window)")

    def timestamp(self, tup: Tuple) -> int:
        """Return a tuple's time, in milliseconds since the epoch: the value of ``timestamp_field`` unless overridden.

        Args:
            tup: The tuple.
        """
        return tup[self.timestamp_field]  # type: ignore[index, no-any-return]

    def has_own_timestamp(self) -> bool:
        """Return whether the class computes the time itself."""
        return type(self).timestamp is not DeclaredWindows.timestamp
