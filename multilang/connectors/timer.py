"""Tuples at intervals.

Guarantee: none for what was due while the task was down, which is left out; each tuple that was emitted **at least once**
while the task runs. On Storm and the embedded cluster; in a Spark job only with ``count``.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.reliable import ReliableSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context


class TimerSpout(ReliableSpout):
    """A spout that emits a tuple every so many seconds: its number from 0 on, and the time in milliseconds since the epoch.

    If it was held up, the times that it missed are left out. The first task does it, others rest.

    Args:
        every_secs: Seconds from one tuple to the next.
        count: The number of tuples, after which it is done; None: without end.
    """

    output_fields = ["number", "time"]

    def __init__(self, every_secs: float, count: int | None = None) -> None:
        given: Any = every_secs
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < every_secs < float("inf"):
            raise ConfigError(f"every_secs is {every_secs!r}; use seconds above 0")
        if count is not None and (type(count) is not int or count < 0):
            raise ConfigError(f"count is {count!r}; use a number of tuples, or None")
        self.every_secs = every_secs
        self.count = count

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._number = 0
        self._rests = context.task_index > 0
        if not self._rests:
            self.set_timer(0, self._tick, every=self.every_secs)

    def next_tuple(self) -> None:
        """Do nothing: the timer emits."""

    def _tick(self) -> None:
        if not self.exhausted():
            self.emit([self._number, int(self.clock.time() * 1000)], self._number)
            self._number += 1

    def exhausted(self) -> bool:
        return self._rests or (self.count is not None and self._number >= self.count)
