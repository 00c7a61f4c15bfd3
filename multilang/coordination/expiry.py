"""When what never finishes is let go: by ticks, which is all the time that a bolt over the wire is told of."""

from __future__ import annotations

from math import ceil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TICKS = "topology.tick.tuple.freq.secs"
TIMEOUT = "topology.message.timeout.secs"
TIMEOUTS = "topology.enable.message.timeouts"
TICK_SECS = 15  # by these ticks ids expire
_TIMEOUT_SECS = 30  # Storm's default


class Age:
    """Counts ticks, and says from which count on something is still young enough to be kept.

    What came ``now`` is let go with the first tick by which the message timeout has surely passed: it lives at least the
    timeout, and less than two ticks longer. Where ``topology.enable.message.timeouts`` is false it lives for ever.
    """

    __slots__ = ("_life", "now")

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self.now = 0
        timeout = conf.get(TIMEOUT) or _TIMEOUT_SECS
        self._life = float("inf") if conf.get(TIMEOUTS) is False else ceil(timeout / (conf.get(TICKS) or TICK_SECS))

    def tick(self) -> float:
        """Count a tick; what came when ``now`` was less than this is to be let go."""
        self.now += 1
        return self.now - self._life
