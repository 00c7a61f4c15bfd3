"""The wrapper around each step of a DRPC topology, which reports to the client why a request failed."""

from __future__ import annotations

import sys

from multilang.component.collector import one_by_one
from multilang.component.errors import FailedException
from multilang.component.filters import BoltFilter
from multilang.coordination import CoordinatedBolt
from multilang.drpc.places import ReturnPlaces
from multilang.drpc.prepare import server_of
from multilang.protocol.messages import DEFAULT_STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.component.bolt import Bolt
    from multilang.component.collector import Anchors, BoltCollector, Emit
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.coordination.tracking import Tracking
    from multilang.protocol.messages import Tuple, Values

_LONGEST = 2000  # characters of a cause
_REMEMBERED = 1000  # finished requests that are remembered


class DRPCStep(CoordinatedBolt):
    """A coordinated bolt for step ``number`` of ``function``. A request that fails here is first failed at its server.

    ``result_stream`` is the stream on which the last step emits (id, result); it may do so once for each request.
    ``alone`` is whether only one task of the step works on a request, so that this task knows if there was no result.
    """

    def __init__(
        self,
        wrapped: Bolt,
        sources: Mapping[str, str],
        id_stream: tuple[str, str] | None,
        factory: type[Bolt] | None,
        *,
        ticks: bool,
        function: str,
        number: int,
        result_stream: str | None = None,
        alone: bool = False,
    ) -> None:
        super().__init__(wrapped, sources, id_stream, factory, ticks=ticks)
        self.function = function
        self.number = number
        self.result_stream = result_stream
        self.alone = alone

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._places = ReturnPlaces(conf)
        self._over: dict[Any, None] = {}  # the last requests that were finished here
        self._alone = self.alone or len(context.tasks(context.component)) == 1
        execute = super().start(collector, conf, context)

        def guarded(tup: Tuple) -> None:
            try:
                execute(tup)
            except (Exception, SystemExit) as error:
                self._dies(tup, error)
                raise

        return guarded

    def close(self) -> None:
        super().close()
        self._places.close()

    # ---- failures ----

    def _given_up(self, id: Any, why: str) -> None:
        error = sys.exc_info()[1]
        self._tell(id, why if error is None else _cause(error))

    def _dies(self, tup: Tuple, error: BaseException) -> None:
        """Fail all requests in flight here: the task ends by an exception, and forgets them."""
        with self._lock:
            mine = None if tup.task < 0 else self.tracked.get(tup.values[0])
            if mine is not None:
                self._give_up(mine, "")
            for info in list(self.tracked.values()):
                if not info.failed:
                    self._tell(info.id, f"its task died, of another of its tuples: {_cause(error)}")
            if mine is not None and tup.unfinished:
                self._fail(tup)

    def _tell(self, id: Any, why: str) -> None:
        server = server_of(id)
        if server is not None:
            context = self.context
            where = f"step {self.number} (component {context.component!r}, task {context.task})"
            known_as, host, port = server
            self._places.fail(host, port, known_as, f"{self.function!r} failed in {where}: {why}", self.log)

    # ---- what is emitted ----

    def untracked(self, values: Sequence[Any]) -> bool:
        """Refuse a tuple that no task after this one would wait for.

        Return True if its request was finished here, which fails the request. Raise ValueError for any other id.
        """
        if isinstance(values, list | tuple) and values:
            if isinstance(values[0], str) and values[0] in self._over:
                why = (
                    f"it emits {ascii(values[1:])[:80]} behind the ack that finished the request here, so that this would be missing in "
                    "the result: ack comes last, after all that is emitted for the tuple"
                )
                self._tell(values[0], why)
                self.report_error(f"step {self.number} of {self.function!r}, request {values[0]}: {why}")
                return True
            raise ValueError(
                f"step {self.number} of {self.function!r} emits a tuple of id {values[0]!r}, which is no request that is "
                "under way at this task, so that it would be lost: the first value is the id of the request, self.id in a "
                "BatchBolt and tup[0] elsewhere, and it is emitted before the tuple is acked"
            )
        return False

    def _counting(self, collector: BoltCollector, context: Context) -> BoltCollector:
        counting = super()._counting(collector, context)
        if self.result_stream is None:
            return counting
        results, emit, emit_many = self.result_stream, self._once(counting.emit), counting.emit_many
        emit_each = one_by_one(emit)

        def many(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
            is_result = (DEFAULT_STREAM if stream is None else stream) == results
            (emit_each if is_result else emit_many)(rows, stream, anchors)

        return BoltFilter(counting, emit=emit, emit_anchored=self._once(counting.emit_anchored), emit_many=many)

    def _once(self, emit: Emit) -> Emit:
        results, get, lock = self.result_stream, self.tracked.get, self._lock

        def emitted(values: Values, stream: str | None = None, *more: Any, **named: Any) -> Any:
            if (DEFAULT_STREAM if stream is None else stream) != results:
                return emit(values, stream, *more, **named)
            try:
                info = get(values[0])
            except (LookupError, TypeError):
                return emit(values, stream, *more, **named)  # which raises the error
            if info is None:
                return [] if self.untracked(values) else emit(values, stream, *more, **named)
            if info.results:
                raise ValueError(
                    f"step {self.number} of {self.function!r} emits a second result of one request, {values[1:]!r}: it is the "
                    "last step, which emits once for each request"
                )
            answer = emit(values, stream, *more, **named)
            with lock:
                info.results += 1
            return answer

        return emitted

    def _report(self, info: Tracking) -> None:
        if self.result_stream is not None and self._alone and not info.results and not info.failed:
            with self._lock:
                self._give_up(info, "the last step has seen all of the request and emitted no result for it")
            return
        super()._report(info)
        over = self._over
        over[info.id] = None
        if len(over) > _REMEMBERED:
            del over[next(iter(over))]


def _cause(error: BaseException) -> str:
    """Return an exception in one line. For one that a runner raised from another, it is the other."""
    if isinstance(error, FailedException):
        if isinstance(error.__cause__, Exception):
            return _cause(error.__cause__)
        text = _text(error)
        if text:
            return text
    text = f"{type(error).__name__}: {_text(error)}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as another:  # noqa: BLE001 - user code: the request fails all the same
        return f"(its text can't be shown: {type(another).__name__})"
