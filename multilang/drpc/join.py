"""The bolt that joins each result with the place where it is awaited (Storm's JoinResult)."""

from __future__ import annotations

from multilang.component.bolt import Bolt
from multilang.coordination.expiry import TICK_SECS, TICKS, Age
from multilang.coordination.names import COORD_STREAM
from multilang.drpc.places import ReturnPlaces, target_of
from multilang.protocol.codec import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


class _Request:
    """The parts of a request that have come.

    ``place`` and ``result`` wait for each other. ``reports`` counts the tasks that have reported, ``sent`` the results
    that they sent.
    """

    __slots__ = ("answered", "came", "place", "reports", "result", "sent")

    def __init__(self, came: int) -> None:
        self.came = came  # the tick at which it came
        self.place: Tuple | None = None
        self.result: Tuple | None = None
        self.answered = False
        self.reports = self.sent = 0


class JoinResult(Bolt):
    """A bolt that joins results with the places where they are awaited.

    Several tasks of the last step may work on a request. Then they report on the coordination stream how many results
    they sent. No result at all fails the request, and a second one is reported as an error. Unlike Storm's, this bolt
    fails and drops a half that waits for longer than the message timeout (see ``Age``).

    Args:
        source: The component whose tuples are (request, return-info). The tuples of others are (request, result).
        function: The function's name, for messages.
    """

    output_fields = ["result", "return-info"]
    component_conf = {TICKS: TICK_SECS}

    def __init__(self, source: str, function: str = "") -> None:
        self.source = source
        self.function = function

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._requests: dict[Any, _Request] = {}  # the oldest first
        self._age = Age(conf)
        self._places = ReturnPlaces(conf)
        self._due_reports = sum(
            len(context.tasks(source)) for source, streams in context.sources.items() if COORD_STREAM in streams
        )

    def process(self, tup: Tuple) -> None:
        request = tup.values[0]
        known = self._of(request)
        if tup.stream == COORD_STREAM:
            known.reports += 1
            known.sent += tup.values[1]
            self.ack(tup)
        elif tup.component == self.source:
            if known.place is not None:
                self.ack(known.place)  # "later duplicates overwrite"
            known.place = tup
        elif known.answered or known.result is not None:
            self.report_error(
                f"a second result of one request of {self.function!r} is dropped, {tup.values[1]!r} of task {tup.task} of "
                f"{tup.component!r}: the last step emits once for each request, in one of its tasks"
            )
            self.ack(tup)
        else:
            known.result = tup
        self._go_on(request, known)

    def process_tick(self, tup: Tuple) -> None:
        before = self._age.tick()
        requests = self._requests
        while requests:
            request, known = next(iter(requests.items()))
            if known.came >= before:
                return
            del requests[request]
            if known.place is not None:
                self.fail(known.place)
            if known.result is not None:
                self.log(f"a result of {self.function!r} belongs to no request: {known.result.values!r}", "warn")
                self.fail(known.result)

    def close(self) -> None:
        self._places.close()

    def _go_on(self, request: Any, known: _Request) -> None:
        result, place = known.result, known.place
        if result is not None and place is not None:
            self.emit([as_text(result.values[1]), place.values[1]], anchors=[result, place])
            self.ack(result)
            self.ack(place)
            known.result = known.place = None
            known.answered = True
        if known.reports < self._due_reports:
            return
        if known.answered:
            del self._requests[request]
        elif self._due_reports and not known.sent and place is not None:
            del self._requests[request]
            self._tell(place.values[1])
            self.fail(place)

    def _tell(self, info: Any) -> None:
        try:
            id, host, port = target_of(info)
        except (KeyError, TypeError, ValueError):
            return
        why = f"{self.function!r} failed: all tasks of its last step have seen all of the request and emitted no result for it"
        self._places.fail(host, port, id, why, self.log)

    def _of(self, request: Any) -> _Request:
        known = self._requests.get(request)
        if known is None:
            known = self._requests[request] = _Request(self._age.now)
        return known


def as_text(value: Any) -> str:
    """Return a result as the client gets it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else dumps(value)
