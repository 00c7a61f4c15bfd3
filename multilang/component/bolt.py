"""Bolts: where tuples are processed."""

from __future__ import annotations

from multilang.component.base import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


class Bolt(Component):
    """Full control: ``process`` emits with the anchors it chooses, and acks or fails each tuple itself (Storm's IBolt).

    FailedException out of ``process`` fails the tuple; any other exception is reported and ends the process, so that
    Storm starts it again and the tuples in it are replayed.
    """

    _collector: BoltCollector

    if TYPE_CHECKING:

        def initialize(self, conf: dict[str, Any], context: Context) -> None: ...

    def process(self, tup: Tuple) -> None:
        """Work on one tuple. Every tuple must be acked or failed in the end, now or later."""
        raise TypeError(f"{type(self).__name__} has no process method: define process(self, tup)")

    def process_tick(self, tup: Tuple) -> None:
        """Called each ``topology.tick.tuple.freq.secs``; the tick is acked for you afterwards."""

    def emit(
        self,
        values: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple.

        ``anchors`` are the tuples it came from: when it fails downstream, theirs are replayed; none makes it
        unanchored. ``stream`` is the default stream unless given. ``direct_task`` sends it to that task alone. With
        ``need_task_ids`` the call waits for the ids of the tasks it went to and returns them (a round trip: it costs
        ten times and more); ``on_task_ids`` is called with them when they arrive, without waiting. Raises
        UnserializableValue or LocalProtocolError, and then nothing was sent.
        """
        return self._collector.emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self,
        rows: Iterable[Sequence[Any]],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream with the same anchors."""
        self._collector.emit_many(rows, stream, anchors)

    def ack(self, tup: Tuple | str) -> None:
        """This tuple is done: once, and after everything that is anchored to it was emitted."""
        self._collector.ack(tup)

    def fail(self, tup: Tuple | str) -> None:
        """This tuple failed: the spout's tuple behind it is replayed at once."""
        self._collector.fail(tup)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        mine = {"emit": collector.emit, "emit_many": collector.emit_many, "ack": collector.ack, "fail": collector.fail}
        self._shadow(Bolt, mine)


class AnchoredBolt(Bolt):
    """A bolt whose emits are anchored to what is in process, unless ``anchors`` says otherwise (``[]``: to nothing)."""

    def emit(
        self,
        values: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple, anchored to what is in process; otherwise as Bolt.emit."""
        return self._collector.emit_anchored(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def emit_many(
        self,
        rows: Iterable[Sequence[Any]],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream, anchored to what is in process."""
        self._collector.emit_many_anchored(rows, stream, anchors)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._shadow(AnchoredBolt, {"emit": collector.emit_anchored, "emit_many": collector.emit_many_anchored})


class BasicBolt(AnchoredBolt):
    """The common pattern: what ``process`` emits is anchored to the tuple, which is acked when ``process`` returns.

    Any exception out of ``process`` is reported and fails the tuple; the process lives on. (Storm's IBasicBolt, with
    the failure handling of Storm's storm.py.) FailedException fails the tuple without a report.
    """
