"""Bolts: the components that process tuples."""

from __future__ import annotations

from multilang.component.base import Component, overload, typed_as
from multilang.component.errors import FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.report import report_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, ClassVar, Literal

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.many import Tuples
    from multilang.protocol.messages import Tuple, Values

END, FAIL, FAIL_AND_END = "end", "fail", "fail and end"
_IN_TIMER = "in a timer"


class Bolt(Component):
    """A bolt that decides everything itself: anchors, and the ack or fail of each tuple (Storm's IBolt).

    A FailedException from ``process`` fails the tuple. Any other exception is reported and ends the process, so that
    Storm restarts it and its tuples are replayed, unless ``on_exception`` has another value.
    """

    acks_ticks: ClassVar[bool] = True
    """True if a tick is acked when ``process_tick`` returns; if not, ``process_tick`` acks it, now or later."""

    on_exception: ClassVar[str] = END
    """The effect of an exception from ``process``: ``"end"`` reports it and ends the process, so that Storm restarts it;
    ``"fail"`` reports it and fails the tuple, and the process continues; ``"fail and end"`` fails the tuple first."""

    acks_by_itself: ClassVar[bool] = False
    """True if each tuple is acked or failed in ``process``, or a moment later, whatever tuples come after it.

    What it gets may then travel in larger blocks (see multilang.exchange.choice). A subclass that overrides ``process``
    must set it again."""

    holds_tuples: ClassVar[bool] = False
    """True if it acks a tuple only when a window ends, however late that is; ``held_tuples`` returns these tuples.

    The embedded cluster then fails none of them at the message timeout for that reason alone."""

    _collector: BoltCollector

    if TYPE_CHECKING:

        def initialize(self, conf: dict[str, Any], context: Context) -> None: ...

    def process(self, tup: Tuple) -> None:
        """Work on one tuple, which must be acked or failed in the end, now or later."""
        raise UnrecoverableError(f"{type(self).__name__} has no process method: define process(self, tup)")

    def process_many(self, tups: Tuples) -> None:
        """Work on many tuples at once: optional, for bolts that gain by it.

        Tuples that travel in blocks come together, all others one at a time; those go to ``process`` if the bolt defines
        it, too. Emits with ``anchors=tups`` are anchored to all of them that are neither acked nor failed.

        Args:
            tups: The tuples, of one stream and one task, in order.
        """
        raise UnrecoverableError(f"{type(self).__name__} has no process_many method: define process_many(self, tups)")

    def process_tick(self, tup: Tuple) -> None:
        """Work at a tick, every ``topology.tick.tuple.freq.secs`` seconds; the tick is acked automatically."""

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int]: ...

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None: ...

    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple.

        Args:
            values: The values, one per field of the stream.
            stream: The stream's name; the default stream if it is None.
            anchors: The input tuples that it depends on: when it fails downstream, theirs are replayed. Without anchors
                its failure replays nothing.
            direct_task: The only task that it goes to, on a stream that is direct.
            need_task_ids: Wait for the ids of the tasks that the tuple goes to. This is a round trip, which makes the
                call at least ten times as expensive.
            on_task_ids: Is called with these ids when they arrive; ``emit`` does not wait for them.

        Returns:
            The task ids with ``need_task_ids``, otherwise None.

        Raises:
            UnserializableValue: JSON does not have one of the values; nothing is sent.
            LocalProtocolError: The stream, the number of values, an anchor or the task is wrong; nothing is sent.
        """
        return self._collector.emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream with the same anchors.

        Args:
            rows: The values of each tuple.
            stream: The stream's name; the default stream if it is None.
            anchors: The input tuples that all of them depend on.

        Raises:
            UnserializableValue: JSON does not have one of the values.
            LocalProtocolError: The stream, the number of values or an anchor is wrong.
        """
        self._collector.emit_many(rows, stream, anchors)

    def ack(self, tup: Tuple | str) -> None:
        """Ack a tuple: once, after everything that is anchored to it was emitted.

        Raises:
            LocalProtocolError: It was acked or failed before, or was never received.
        """
        self._collector.ack(tup)

    def fail(self, tup: Tuple | str) -> None:
        """Fail a tuple: the spout's tuple behind it is replayed at once.

        Raises:
            LocalProtocolError: It was acked or failed before, or was never received.
        """
        self._collector.fail(tup)

    def ack_many(self, tups: Iterable[Tuple]) -> None:
        """Ack those of the tuples that are neither acked nor failed.

        Args:
            tups: The tuples, such as all that ``process_many`` got.
        """
        self._collector.settle_many(tups, True)

    def fail_many(self, tups: Iterable[Tuple]) -> None:
        """Fail those of the tuples that are neither acked nor failed.

        Args:
            tups: The tuples, such as all that ``process_many`` got.
        """
        self._collector.settle_many(tups, False)

    def _run_timer(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except FailedException as error:  # as at a tick: there is no tuple that could fail
            if isinstance(error, ReportedFailedException):
                report_exception(self, error, None, _IN_TIMER)
        except Exception as error:
            if self.on_exception != FAIL:
                raise
            report_exception(self, error, None, _IN_TIMER)  # user code: as in process, the task continues

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        mine = {"emit": collector.emit, "emit_many": collector.emit_many, "ack": collector.ack, "fail": collector.fail}
        self._shadow(Bolt, mine)


class AnchoredBolt(Bolt):
    """A bolt whose emits are anchored to the tuple in process, unless ``anchors`` is given (``[]``: to nothing)."""

    @typed_as(Bolt.emit)
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple as Bolt.emit does, but anchored to the tuple in process unless ``anchors`` is given."""
        return self._collector.emit_anchored(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream, anchored to the tuple in process unless ``anchors`` is given."""
        self._collector.emit_many_anchored(rows, stream, anchors)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._shadow(AnchoredBolt, {"emit": collector.emit_anchored, "emit_many": collector.emit_many_anchored})


class BasicBolt(AnchoredBolt):
    """The common pattern: emits are anchored to the tuple, which is acked when ``process`` returns.

    Any exception from ``process`` is reported and fails the tuple; the process continues, unless ``on_exception`` has
    another value. FailedException fails the tuple without a report. (This is Storm's IBasicBolt, with the failure
    handling of Storm's storm.py.) The emits of ``process_many`` are anchored to all of its tuples, which are acked when
    it returns, unless it did so itself, and fail when it raises. An exception from a timer's callback is reported, too,
    and the process continues.
    """

    on_exception = FAIL
    acks_by_itself = True
