"""Puts results and the places where they are awaited together (Storm's JoinResult)."""

from __future__ import annotations

from multilang.component.bolt import Bolt
from multilang.coordination.expiry import TICK_SECS, TICKS, Age
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


class JoinResult(Bolt):
    """``source``: the component whose tuples are (request, return-info); those of others are (request, result).

    Unlike Storm's, a half that waits for longer than the message timeout is failed and let go (see ``Age``).
    """

    output_fields = ["result", "return-info"]
    component_conf = {TICKS: TICK_SECS}

    def __init__(self, source: str) -> None:
        self.source = source

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._halves: dict[Any, tuple[Tuple, int]] = {}  # (is it the place, request) -> the half, at which tick it came
        self._age = Age(conf)

    def process(self, tup: Tuple) -> None:
        is_place = tup.component == self.source
        request = tup.values[0]
        other = self._take((not is_place, request))
        if other is None:
            earlier = self._take((is_place, request))
            if earlier is not None:
                self.ack(earlier)  # "later duplicates overwrite"
            self._halves[is_place, request] = tup, self._age.now
            return
        result, place = (other, tup) if is_place else (tup, other)
        self.emit([as_text(result.values[1]), place.values[1]], anchors=[result, place])
        self.ack(result)
        self.ack(place)

    def process_tick(self, tup: Tuple) -> None:
        before = self._age.tick()
        halves = self._halves
        while halves:
            key, (half, came) = next(iter(halves.items()))  # the oldest first
            if came >= before:
                return
            del halves[key]
            self.fail(half)

    def _take(self, key: tuple[bool, Any]) -> Tuple | None:
        half, _ = self._halves.pop(key, (None, 0))
        return half


def as_text(value: Any) -> str:
    """A result as the client gets it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else dumps(value)
