"""Puts results and the places where they are awaited together (Storm's JoinResult)."""

from __future__ import annotations

from multilang.component.bolt import Bolt
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

_BUCKETS = 3
TICKS = "topology.tick.tuple.freq.secs"
TIMEOUT = "topology.message.timeout.secs"


class JoinResult(Bolt):
    """``source``: the component whose tuples are (request, return-info); those of others are (request, result).

    Unlike Storm's, a half that waits for longer than the message timeout is failed and let go.
    """

    output_fields = ["result", "return-info"]
    component_conf = {TICKS: 15}

    def __init__(self, source: str) -> None:
        self.source = source

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._halves: list[dict[Any, Tuple]] = [{} for _ in range(_BUCKETS)]  # (is it the place, request), newest first
        self._ticks = 0
        self._per_bucket = max(1, round((conf.get(TIMEOUT) or 30) / 2 / (conf.get(TICKS) or 15)))

    def process(self, tup: Tuple) -> None:
        is_place = tup.component == self.source
        request = tup.values[0]
        other = self._take((not is_place, request))
        if other is None:
            earlier = self._take((is_place, request))
            if earlier is not None:
                self.ack(earlier)  # "later duplicates overwrite"
            self._halves[0][is_place, request] = tup
            return
        result, place = (other, tup) if is_place else (tup, other)
        self.emit([as_text(result.values[1]), place.values[1]], anchors=[result, place])
        self.ack(result)
        self.ack(place)

    def process_tick(self, tup: Tuple) -> None:
        self._ticks += 1
        if self._ticks % self._per_bucket == 0:
            for half in self._halves.pop().values():
                self.fail(half)
            self._halves.insert(0, {})

    def _take(self, key: tuple[bool, Any]) -> Tuple | None:
        for halves in self._halves:
            if key in halves:
                return halves.pop(key)
        return None


def as_text(value: Any) -> str:
    """A result as the client gets it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else dumps(value)
