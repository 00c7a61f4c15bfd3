"""A bolt's end of the exchange: the collector around its own that gathers blocks, and what takes blocks apart."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections import deque
from time import monotonic

from multilang.blocks.block import OpenBlock, read_block
from multilang.blocks.names import MAX_TUPLES, STREAM, TUPLES
from multilang.component.collector import many_anchored
from multilang.component.filters import BoltFilter
from multilang.component.wire import Blocks
from multilang.protocol.codec import MAX_INT, MIN_INT, encode_values
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.fast import NoAnchors
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.blocks.routes import Route, Routes
    from multilang.component.collector import Anchors, BoltCollector, Emit, OnTaskIds, Settle
    from multilang.component.wire import Wire
    from multilang.protocol.messages import Schema, Values

_MOST_SECS = 0.005  # between two times that blocks are sent, while the bolt works
_UNANCHORED = object()  # the last holder of a block of tuples without anchors


class Received:
    """A block that came in.

    Attributes:
        wire: The tuple on the wire, which is acked when all of the block's tuples are.
        left: The number of its tuples that are neither acked nor failed.
        failed: Whether it was failed, since one of its tuples was.
    """

    __slots__ = ("failed", "left", "wire")

    def __init__(self, wire: Tuple, left: int) -> None:
        self.wire = wire
        self.left = left
        self.failed = False


class Run:
    """The properties shared by all tuples of one stream in a block: the block, and the positions of the fields."""

    __slots__ = ("block", "positions", "schema")

    def __init__(self, block: Received, stream: str, schema: Schema) -> None:
        self.block = block
        self.schema = schema
        self.positions = schema.get((block.wire.component, stream), {})


class BlockTuple(Tuple):
    """A tuple that came in a block. What few ask for is made when it is asked for."""

    __slots__ = ("index", "run")

    run: Run
    index: int

    @property
    def id(self) -> str:  # type: ignore[override]
        """The block's id and the tuple's place in it."""
        return f"{self.run.block.wire.id}:{self.index}"

    @property
    def component(self) -> str:  # type: ignore[override]
        """The component that emitted it."""
        return self.run.block.wire.component

    @property
    def task(self) -> int:  # type: ignore[override]
        """The task that emitted it."""
        return self.run.block.wire.task

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """The positions of the fields, by component and stream."""
        return self.run.schema

    def __getitem__(self, key: int | str) -> Any:
        try:
            return self.values[key if type(key) is int else self.run.positions[key]]  # type: ignore[index]
        except (LookupError, TypeError):
            return super().__getitem__(key)  # which takes slices, and says what is wrong


class BlockBoltCollector(BoltFilter, Blocks):
    """The collector of a bolt whose tuples travel in blocks, around the wire's.

    Only the main thread works on blocks. A call in another thread is checked there and kept. It is made by the main thread
    before it next sends anything, or by that thread itself while the main thread waits for input.

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
        self._main = get_ident()
        self._most = conf.get(TUPLES, MAX_TUPLES)
        self._open = {task: OpenBlock(task) for task in routes.tasks}
        self._dirty: list[OpenBlock] = []  # the open blocks with tuples, in the order of their first
        self._done: deque[Tuple] = deque()  # blocks on the wire all of whose tuples were acked
        self._acked: list[Any] = []  # single tuples that were acked, as the inner collector keeps them
        self._unfinished: dict[str, BlockTuple] = {}
        self._foreign: deque[Callable[[], None]] = deque()  # calls of other threads
        self._working = allocate_lock()  # held by the main thread but while it waits for input
        self._working.acquire()
        self._sent_at = 0.0
        self._writing = False
        self.knows_tasks = not any(
            name not in routes.by_stream or routes.by_stream[name].on_wire for name in routes.context.streams
        )
        self.ack = self._fast_ack()
        self.fail = self._fail
        self.emit = self._fast_emit(NoAnchors())
        self.emit_anchored = self._fast_emit(self.scope)
        self.emit_many = self._emit_many
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)

    # ---- what comes in ----

    def receiver(self, execute: Callable[[Tuple], None], between: Callable[[], None]) -> Callable[[Tuple], None]:
        """Return the function that takes a tuple off the wire.

        Args:
            execute: Runs one tuple through the component.
            between: Runs timers that are due; called between two tuples if there are timers.
        """
        new, kind, connection = BlockTuple.__new__, BlockTuple, self._wire.connection
        unfinished = self._unfinished
        timers = self.scope.timers.heap

        def receive(wire: Tuple) -> None:
            if wire.stream != STREAM:
                execute(wire)
                return
            runs = read_block(wire.values)
            wire.values = []  # the tuples have them
            block = Received(wire, sum(len(rows) for _, rows in runs))
            if not block.left:
                self._done.append(wire)
            self._sent_at = monotonic()
            index = 0
            for stream, rows in runs:
                run = Run(block, stream, connection.schema)
                for values in rows:
                    tup = new(kind)
                    tup.run = run
                    tup.index = index
                    tup.stream = stream
                    tup.values = values
                    tup.unfinished = True
                    execute(tup)
                    if tup.unfinished:
                        unfinished[tup.id] = tup
                    if timers:
                        between()
                    index += 1
                    if not index & 7 and monotonic() - self._sent_at > _MOST_SECS:
                        self._send_now()

        return receive

    def _send_now(self) -> None:
        self.close_blocks()
        self._wire.output.flush_some()
        self._sent_at = monotonic()

    # ---- acks and fails ----

    def _fast_ack(self) -> Settle:
        done, unfinished, kind, main = self._done, self._unfinished, BlockTuple, self._main

        def ack(tup: Tuple | str) -> None:
            if type(tup) is kind and tup.unfinished and get_ident() == main:
                tup.unfinished = False
                if unfinished:
                    unfinished.pop(tup.id, None)
                block = tup.run.block
                block.left -= 1
                if not block.left and not block.failed:
                    done.append(block.wire)
            else:
                self._ack(tup)

        return ack

    def _ack(self, given: Tuple | str) -> None:
        tup = self._finish(given, "ack")
        if type(tup) is BlockTuple:
            self._in_main(lambda: self._settle(tup, True))
        elif tup.task < 0 and tup.is_tick and get_ident() == self._main:
            self._close_open()  # a local parent waits for what is emitted after the tick's ack, since it came of no tick
            self._inner.ack(tup)
        elif self._dirty or self._foreign or get_ident() != self._main:
            acked: list[Any] = []  # behind the block with what is anchored to it
            self._inner.deferred_ack(acked)(tup)
            self._in_main(lambda: self._acked.extend(acked))
        else:
            self._inner.ack(tup)

    def _fail(self, given: Tuple | str) -> None:
        tup = self._finish(given, "fail")
        if type(tup) is BlockTuple:
            self._in_main(lambda: self._settle(tup, False))
            return
        failed: list[Any] = []
        self._inner.deferred_ack(failed)(tup)
        self._in_main(lambda: self.finish(failed, False))

    def _finish(self, given: Tuple | str, what: str) -> Tuple:
        """Return the unfinished input; one of a block is finished now, as far as the component sees."""
        tup = self._find(given, what)
        if type(tup) is BlockTuple:
            tup.unfinished = False
            self._unfinished.pop(tup.id, None)
        return tup

    def _settle(self, tup: BlockTuple, ok: bool) -> None:
        """Ack or fail a tuple of a block, in the main thread."""
        block = tup.run.block
        block.left -= 1
        if block.failed:
            return
        if not ok:
            self._close_open()  # nothing may be anchored to it later
            block.failed = True
            self._inner.fail(block.wire)
        elif not block.left:
            self._done.append(block.wire)

    def received(self, tup: Tuple | str) -> Tuple:
        """See BoltCollector."""
        return self._find(tup, "ack")

    def deferred_ack(self, kept: list[Any]) -> Settle:
        """Return an ``ack`` that keeps the tuples of blocks, and the others as the inner collector does."""
        inner, append, kind = self._inner.deferred_ack(kept), kept.append, BlockTuple

        def ack(given: Tuple | str) -> None:
            if type(given) is kind and given.unfinished:
                given.unfinished = False
                if self._unfinished:
                    self._unfinished.pop(given.id, None)
                append(given)
                return
            tup = self._finish(given, "ack")
            if type(tup) is kind:
                append(tup)
            else:
                inner(tup)

        return ack

    def finish(self, kept: list[Any], ok: bool) -> None:
        """See BoltCollector."""
        others = []
        for each in kept:
            if type(each) is BlockTuple:
                self._settle(each, ok)
            else:
                others.append(each)
        kept.clear()
        if others:
            if ok and self._dirty:
                self._acked.extend(others)
            else:
                self._close_open()
                self._inner.finish(others, ok)

    def _find(self, tup: Tuple | str, what: str) -> Tuple:
        if type(tup) is BlockTuple and tup.unfinished:
            return tup
        if isinstance(tup, str | Tuple):
            id = tup if isinstance(tup, str) else tup.id
            current = self.scope.current
            found = self._unfinished.get(id)
            if found is None and type(current) is BlockTuple and current.id == id and current.unfinished:
                found = current
            if found is not None:
                return found
            if type(tup) is BlockTuple:
                past = {"ack": "acked", "fail": "failed", "anchor": "used as an anchor"}[what]
                raise LocalProtocolError(
                    f"component {self._routes.outputs.component!r}: tuple {id!r} can't be {past}: it was acked or failed before. "
                    "Each tuple is acked or failed once, after all that is anchored to it was emitted"
                    + ("; a later emit says anchors=[]" if what == "anchor" else "")
                )
        return self._inner.received(tup)

    # ---- what goes out ----

    def _fast_emit(self, default: Any) -> Emit:
        """Return an ``emit`` for the most frequent case: one anchor, which came in a block, and blocks alone."""
        encode, kind, main, opened = encode_values, BlockTuple, self._main, self._open
        routes = {name: route for name, route in self._routes.by_stream.items() if not route.on_wire}
        if self._most == 1:
            routes = {}  # the slow path closes each block at once
        otherwise, turn = self._emit, self._turn

        def emit(
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: OnTaskIds | None = None,
        ) -> list[int] | None:
            if anchors is None:
                anchors = default.anchors
            try:
                (anchor,) = anchors
                if (
                    type(anchor) is kind
                    and anchor.unfinished
                    and type(values) is list
                    and direct_task is None
                    and not need_task_ids
                    and on_task_ids is None
                    and get_ident() == main
                ):
                    route = routes[stream]
                    holder = anchor.run.block
                    if len(values) == route.arity and not holder.failed:
                        if route.unread:
                            for value in values:
                                sort = type(value)
                                if not (
                                    (sort is str and value.isascii()) or (sort is int and MIN_INT <= value <= MAX_INT)
                                ):
                                    encode(values)  # it is only checked
                                    break
                            return None
                        if type(value := values[0]) is str and route.arity == 1 and value.isalnum():
                            text = f'["{value}"]'  # as encode does it, without the call
                        else:
                            text = encode(values)
                        for task in route.choose(values):
                            block = opened[task]
                            if block.last is not holder or block.route is not route:
                                turn(block, route, holder)
                            block.append(text)
                        return None
            except (LookupError, TypeError, ValueError, UnserializableValue):
                pass  # the slow path sends it or says what is wrong
            return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

        return emit

    def _emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        """Send any emit."""
        outputs = self._routes.outputs
        name = "default" if stream is None else stream
        outputs.check(name, values, direct_task)
        route = self._routes.by_stream.get(stream)
        text = outputs.encode(outputs.streams[stream], values)
        inputs = self._inputs(anchors)
        if need_task_ids:
            self._wire.check_wait()
        if get_ident() != self._main:
            copy = [*values]
            self._in_main(lambda: self._send(copy, text, stream, route, inputs, direct_task, False, on_task_ids))
            return None
        return self._send(values, text, stream, route, inputs, direct_task, need_task_ids, on_task_ids)

    def _send(
        self,
        values: Values,
        text: str,
        stream: str | None,
        route: Route | None,
        inputs: list[Tuple],
        direct_task: int | None,
        need_task_ids: bool,
        on_task_ids: OnTaskIds | None,
    ) -> list[int] | None:
        """Send a checked emit, in the main thread."""
        if route is None:
            if stream in self._routes.overtaking:
                self._close_open()
            anchors = self._on_wire(inputs)
            return self._inner.emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)
        alone = any(tup.task < 0 and tup.is_tick for tup in inputs)  # ticks are acked at once
        if alone:
            self._close_open()
        tasks = list(route.choose(values))
        holders = self._holders(inputs)
        for task in tasks:
            block = self._open[task]
            if not holders:
                self._turn(block, route, _UNANCHORED)
            for holder in holders:
                self._turn(block, route, holder)
            block.append(text)
            if self._most == 1:
                self._close(block)
        if alone:
            self._close_open()
        if route.on_wire:
            if route.overtakes:
                self._close_open()
            return self._emit_rest(values, stream, self._on_wire(inputs), tasks, need_task_ids, on_task_ids)
        if on_task_ids is not None:
            on_task_ids(tasks)
        return tasks if need_task_ids else None

    def _emit_rest(
        self,
        values: Values,
        stream: str | None,
        anchors: list[Tuple],
        tasks: list[int],
        need_task_ids: bool,
        on_task_ids: OnTaskIds | None,
    ) -> list[int] | None:
        """Send a tuple to the subscribers that take no blocks; ``tasks`` have it in a block."""
        told = None if on_task_ids is None else lambda others: on_task_ids([*tasks, *others])
        others = self._inner.emit(values, stream, anchors, None, need_task_ids, told)
        return None if others is None else [*tasks, *others]

    def _emit_many(self, rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        emit = self.emit
        for values in rows:
            emit(values, stream, anchors)

    def _inputs(self, anchors: Anchors) -> list[Tuple]:
        """Return the inputs that ``anchors`` names."""
        if anchors is None:
            return []
        if not isinstance(anchors, list | tuple):
            given: Any = anchors
            kind = Tuple if isinstance(given, Tuple) else type(given)
            raise LocalProtocolError(
                f"component {self._routes.outputs.component!r}: anchors is a list of tuples, not {kind.__name__}; "
                "write anchors=[tup]"
            )
        return [self._find(each, "anchor") for each in anchors]

    def _holders(self, inputs: list[Tuple]) -> list[Any]:
        """Return what a block is anchored to for tuples with these anchors: what came over the wire, not failed."""
        return [
            tup.run.block if type(tup) is BlockTuple else _Single(tup)
            for tup in inputs
            if type(tup) is not BlockTuple or (tup.run.block.wire.unfinished and not tup.run.block.failed)
        ]

    def _on_wire(self, inputs: list[Tuple]) -> list[Tuple]:
        """Return the anchors of a single tuple on the wire."""
        found: dict[str, Tuple] = {}
        for holder in self._holders(inputs):
            wire = holder.wire
            found[wire.id] = wire
        return list(found.values())

    def _turn(self, block: OpenBlock, route: Route, holder: Any) -> None:
        """Have a block's next tuple be one of this stream, anchored to this."""
        last = block.last
        if last is None:
            self._dirty.append(block)
        elif last is not holder and _UNANCHORED in (last, holder):
            self._close(block)
            self._dirty.append(block)
        if block.route is not route:
            block.turn(route)
        if block.last is not holder:
            block.last = holder
            if holder is not _UNANCHORED:
                block.holders[holder] = None

    def _close(self, block: OpenBlock) -> None:
        """Send a block that has tuples."""
        self._dirty.remove(block)
        self._write(block)

    def _write(self, block: OpenBlock) -> None:
        anchors = list({holder.wire.id: holder.wire for holder in block.holders}.values())
        self._writing = True
        for tuples, text in block.take(self._most):
            self._wire.connection.emit([tuples, text], STREAM, anchors, block.task)
        self._writing = False

    def _close_open(self) -> None:
        dirty = self._dirty
        for block in dirty:
            self._write(block)
        dirty.clear()

    # ---- for the wire ----

    def close_blocks(self) -> None:
        """Send all open blocks, and then the acks that waited for them."""
        if self._writing:  # a signal came in the middle of it, and the process ends: what may be lost is not acked
            return
        foreign = self._foreign
        while foreign:
            foreign.popleft()()
        if self._dirty:
            self._close_open()
        done = self._done
        while done:
            self._inner.ack(done.popleft())
        if self._acked:
            acked = self._acked[:]
            self._acked.clear()
            self._inner.finish(acked, True)

    def park(self) -> None:
        """Let other threads make their own calls while the main thread waits for input."""
        self._working.release()
        self._run_foreign()

    def unpark(self) -> None:
        """Keep other threads from making their calls."""
        # With a limit: a signal may have ended the wait before the lock was free.
        self._working.acquire(timeout=1)

    def _in_main(self, call: Callable[[], None] | Callable[[], object]) -> None:
        if get_ident() == self._main:
            call()
            return
        self._foreign.append(call)  # type: ignore[arg-type]
        self._run_foreign()

    def _run_foreign(self) -> None:
        # Looked at again after the lock is free: what came meanwhile is nobody else's.
        while self._foreign and self._working.acquire(False):
            try:
                self.close_blocks()
                self._wire.output.flush_some()
            finally:
                self._working.release()


class _Single:
    """A tuple that came alone, as the holder of a block. It may be acked, as the component sees, before the block goes."""

    __slots__ = ("wire",)

    def __init__(self, tup: Tuple) -> None:
        self.wire = Tuple(tup.id, tup.component, tup.stream, tup.task, [], None, True)
