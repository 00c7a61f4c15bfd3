"""The collectors of components on the multi-lang wire."""

from __future__ import annotations

from _thread import get_ident

from multilang.child.wire import TaskIdsWait
from multilang.component.collector import BoltCollector, Collector, SpoutCollector, many_anchored
from multilang.protocol.codec import id_as_received
from multilang.protocol.errors import LocalProtocolError
from multilang.protocol.fast import fast_ack, fast_emit
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.child.wire import Wire
    from multilang.component.collector import Anchors, Settle
    from multilang.protocol.messages import Values

_MAX_NESTED = 50  # reliable emits of a spout, without ackers, between two waits for their acks


class WireCollector(Collector):
    """The calls that both collectors share.

    Args:
        wire: The wire.
        report: Takes the component's errors; None sends each to the parent. For Storm, repeated ones are counted; an
            embedded cluster counts them itself.
    """

    to_parent = True

    def __init__(self, wire: Wire, report: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self._wire = wire
        self._connection = wire.connection
        self._report = wire.connection.error if report is None else report

    def log(self, message: str, level: int = 2) -> None:
        """See Collector."""
        self._connection.log(message, level)

    def report_error(self, message: str) -> None:
        """See Collector."""
        self._report(message)

    def report_metric(self, name: str, params: Any) -> None:
        """See Collector."""
        self._connection.metrics(name, params)

    def await_task_ids(self, wait: TaskIdsWait) -> None:
        """Wait until ``wait.tasks`` is set; ``wait`` was the ``on_task_ids`` of an emit."""
        if wait.tasks is None:
            self._wire.check_wait()
            self._wire.wait_for(wait)

    def _asked(
        self, send: Callable[[Any], None], task: int | None, need: bool, callback: Callable[[list[int]], None] | None
    ) -> list[int] | None:
        """Send an emit whose task ids are wanted; those of a direct emit are known."""
        if task is not None:
            send(None)
            if callback is not None:
                callback([task])
            return [task] if need else None
        if not need:
            send(callback)
            return None
        self._wire.check_wait()
        wait = TaskIdsWait()
        send(wait)
        tasks = self._wire.wait_for(wait)
        if callback is not None:
            callback(tasks)
        return tasks


class WireBoltCollector(WireCollector, BoltCollector):
    """The collector of a bolt on the wire."""

    takes_threads = True

    def __init__(self, wire: Wire, report: Callable[[str], None] | None = None) -> None:
        super().__init__(wire, report)
        connection = wire.connection
        # The three functions that are called for every tuple have no call in between.
        self.ack = fast_ack(connection)
        self.emit = fast_emit(connection, self._emit)
        self.emit_anchored = fast_emit(connection, self._emit, self.scope)
        self.emit_many = connection.emit_many
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.fail = connection.fail

    def _emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send any emit; the fast functions call it for what they leave out."""
        emit = self._connection.emit
        if need_task_ids or on_task_ids is not None:
            return self._asked(
                lambda token: emit(values, stream, anchors, direct_task, token),
                direct_task,
                need_task_ids,
                on_task_ids,
            )
        emit(values, stream, anchors, direct_task)
        return None

    def received(self, tup: Tuple | str) -> Tuple:
        """See BoltCollector."""
        return self._connection.received(tup)

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        """Return an ``ack`` that adds the ids of tuples to ``deferred``; see BoltCollector."""
        unfinished, received, now, append = self._connection.unfinished, self.received, self.ack, deferred.append

        def ack(tup: Tuple | str) -> None:
            if type(tup) is not Tuple or not tup.unfinished:
                tup = received(tup)
            if tup.task < 0 and tup.is_tick:
                now(tup)
                return
            tup.unfinished = False
            if unfinished:
                unfinished.pop(tup.id, None)
            append(tup.id)

        return ack

    def finish(self, deferred: list[Any], ok: bool) -> None:
        """See BoltCollector."""
        self._connection.finish(deferred, ok)
        deferred.clear()


class WireSpoutCollector(WireCollector, SpoutCollector):
    """The collector of a spout on the wire."""

    def __init__(self, wire: Wire, report: Callable[[str], None] | None = None) -> None:
        super().__init__(wire, report)
        self._emit = wire.connection.emit_from_spout
        self.emitted = 0

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """See SpoutCollector."""
        if not self._connection.commands_owed:
            raise LocalProtocolError(
                f"component {self._connection.component!r} emits while Storm does not listen to its spout; emit in "
                "next_tuple, ack, fail, activate or deactivate (other threads put what they find into a queue for these methods)"
            )
        self.emitted += 1
        if need_task_ids or on_task_ids is not None:
            return self._asked(
                lambda token: self._emit(values, tup_id, stream, direct_task, token),
                direct_task,
                need_task_ids,
                on_task_ids,
            )
        self._emit(values, tup_id, stream, direct_task)
        return None


class UnackedSpoutCollector(WireSpoutCollector):
    """The collector of a spout when there are no ackers.

    Storm then acks a reliable emit at once, inside of it, and reads the next emit inside of that ack. So each emit of
    one command nests deeper, until Java's stack overflows and the worker dies. To prevent that, an emit waits for its
    task ids now and then: they come when all acks before them are done.

    A spout in Java gets this ack before its emit returns. Here Storm's command is read later, usually after
    ``next_tuple``. So the emit itself calls ``acked``, and the command is only answered.
    """

    acks_at_once = True

    def __init__(self, wire: Wire, acked: Callable[[Any], None], report: Callable[[str], None] | None = None) -> None:
        super().__init__(wire, report)
        self.acked = acked
        self._nested = 0
        self._main = get_ident()

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """See SpoutCollector."""
        wait = need_task_ids
        if tup_id is not None:
            self._nested += 1
            if self._nested >= _MAX_NESTED and direct_task is None and get_ident() == self._main:
                wait = True  # a direct emit has no answer to wait for
        if wait and direct_task is None:
            self._nested = 0
        tasks = super().emit(values, tup_id, stream, direct_task, wait, on_task_ids)
        if tup_id is not None:
            self.acked(id_as_received(tup_id))
        return tasks if need_task_ids else None
