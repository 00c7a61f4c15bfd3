"""The collector of a bolt whose tuples travel in blocks."""

from __future__ import annotations

from _thread import RLock, get_ident

from multilang.component.collector import many_anchored, one_by_one
from multilang.component.filters import BoltFilter
from multilang.exchange.emitting import Emitter
from multilang.exchange.names import STREAM
from multilang.exchange.outgoing import OpenBlocks
from multilang.exchange.receiving import Inputs
from multilang.exchange.threads import MainThread
from multilang.protocol.fast import NoAnchors
from multilang.protocol.messages import WARN
from multilang.settings import EXCHANGE_TUPLES, PARENT, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.component.collector import BoltCollector, Settle
    from multilang.exchange.block import OpenBlock
    from multilang.exchange.routes import Routes
    from multilang.exchange.wire import Wire
    from multilang.protocol.messages import Tuple


_LONG_SECS = 10.0  # that calls of other threads wait for the component, before a warning


class BlockBoltCollector(BoltFilter):
    """The collector of a bolt whose tuples travel in blocks, around the wire's.

    Only the main thread works on blocks. A call in another thread is checked there and queued (see MainThread).

    Args:
        inner: The wire's collector.
        wire: The wire.
        routes: The task's streams.
        conf: The task's conf.
    """

    to_parent = True

    def __init__(self, inner: BoltCollector, wire: Wire, routes: Routes, conf: dict[str, Any]) -> None:
        super().__init__(inner)
        self.takes_threads = True
        self._wire = wire
        self._routes = routes
        self._most = value(conf, EXCHANGE_TUPLES)
        self._thread = MainThread(self._send_now)
        self._blocks = OpenBlocks(routes.tasks, self._write)
        inputs = Inputs(inner, wire, routes.outputs.component, self._blocks, self._thread, routes.apart)
        emitter = Emitter(inner, wire, routes, inputs, self._blocks, self._thread, self._most)
        self._inputs = inputs
        self._emitter = emitter
        self._local = conf.get(PARENT) == "local"
        self._warned = False  # that calls of other threads wait
        # Held by the thread that makes others' calls and sends acks. A callback of an emit may need it again.
        self._settling = RLock()
        self.knows_tasks = not any(
            name not in routes.by_stream or routes.by_stream[name].on_wire for name in routes.context.streams
        )
        self.ack = inputs.ack
        self.fail = inputs.fail
        self.emit = emitter.fast(NoAnchors())
        self.emit_anchored = emitter.fast(self.scope)
        self.emit_many = one_by_one(self.emit)
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)

    def receiver(self, execute: Callable[[Tuple], None], between: Callable[[], None]) -> Callable[[Tuple], None]:
        """Return the function that takes a tuple off the wire; see Inputs.receiver."""
        return self._inputs.receiver(execute, between, self._send_now, self.execute_many)

    def settle_many(self, tups: Iterable[Tuple], ok: bool) -> None:
        self._inputs.settle_many(tups, ok)

    def received(self, tup: Tuple | str) -> Tuple:
        return self._inputs.find(tup, "ack")

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        return self._inputs.deferred_ack(deferred)

    def finish(self, deferred: list[Any], ok: bool) -> None:
        if get_ident() == self._thread.id:
            self._thread.make_calls()
        self._inputs.finish(deferred, ok)

    def _write(self, block: OpenBlock) -> None:
        holders = list(block.holders)
        self._emit(block.take(self._most), holders, block.task)

    def _write_so_far(self, block: OpenBlock) -> None:
        taken = block.take_so_far(self._most)
        self._emit(taken, list(block.holders), block.task)  # those of all taken tuples, and perhaps of new ones

    def _emit(self, taken: list[tuple[int, str]], holders: list[Any], task: int) -> None:
        anchors = list({holder.wire.id: holder.wire for holder in holders}.values())
        for tuples, text in taken:
            self._wire.connection.emit([tuples, text], STREAM, anchors, task)

    def _send_now(self) -> None:
        self.close_blocks()
        self._wire.output.flush_some()

    # ---- for the wire ----

    def close_blocks(self) -> None:
        """Send all open blocks, and then the acks that waited for them."""
        if self._blocks.writing:
            return  # a signal interrupted it, and the process ends: what may be lost is not acked
        with self._settling:
            self._thread.make_calls()
            self._blocks.close_all()
            self._send_acks(self._inputs.waiting())

    def _send_acks(self, waiting: tuple[int, int]) -> None:
        if self._local and (unread := self._emitter.take_unread()):
            self._wire.connection.unread(unread)
        self._inputs.send_acks(waiting)

    def send_meanwhile(self) -> None:
        """Send what was emitted until now, and then the acks that waited for it; called in another thread meanwhile."""
        if not self._settling.acquire(False):
            return  # the main thread is doing it
        try:
            if not self._warned and self._thread.waiting_secs() > _LONG_SECS:
                self._warn()
            waiting = self._inputs.waiting()  # taken before the blocks, which then have all that these acks wait for
            ready = self._may_ack_meanwhile()
            self._blocks.send_so_far(self._write_so_far)
            # If a signal ends the process during this, what may be lost is not acked.
            if ready and not self._blocks.writing:
                self._send_acks(waiting)
        finally:
            self._settling.release()

    def _warn(self) -> None:
        self._warned = True
        self.log(
            f"component {self._routes.outputs.component!r}: what its threads emit, ack and fail has been waiting for {_LONG_SECS:g} s, "
            "until its main thread returns from the call that it works on (process, a timer). Let it return sooner, or "
            "set multilang.exchange to tuple in the component's conf",
            WARN,
        )

    def _may_ack_meanwhile(self) -> bool:
        """Return whether acks may be sent after the blocks by another thread than the main one.

        Calls that other threads left may belong to inputs that the main thread acked. A block that stays open keeps its
        holders, to which more is anchored if it may have several.
        """
        return not self._thread.calls and (self._routes.apart or not self._blocks.dirty)

    def park(self) -> None:
        self._thread.park()

    def unpark(self) -> None:
        self._thread.unpark()
        self._inputs.begin()
