"""The expiry of ids that never finish: it counts ticks, which are a bolt's only clock on the wire."""

from __future__ import annotations

from math import ceil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TICKS = "topology.tick.tuple.freq.secs"
TIMEOUT = "topology.message.timeout.secs"
TIMEOUTS = "topology.enable.message.timeouts"
TICK_SECS = 15  # the ticks that ids expire by, in seconds
_TIMEOUT_SECS = 30  # Storm's default


class Age:
    """Counts ticks, and returns the age at which something expires.

    Something that came at ``now`` is dropped with the first tick at which the message timeout has surely passed: it
    is held at least as long as the timeout, and less than two ticks longer. If ``topology.enable.message.timeouts`` is
    false, it is held forever.
    """

    __slots__ = ("_life", "now")

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self.now = 0
        timeout = conf.get(TIMEOUT) or _TIMEOUT_SECS
        self._life = float("inf") if conf.get(TIMEOUTS) is False else ceil(timeout / (conf.get(TICKS) or TICK_SECS))

    def tick(self) -> float:
        """Count a tick; everything that came when ``now`` was less than the result is to be dropped."""
        self.now += 1
        return self.now - self._life
