"""A bolt's inputs: blocks are taken apart, and acked when each of their tuples is."""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from time import monotonic

from multilang.component.many import Tuples
from multilang.exchange.block import APART, mark_of, read_block
from multilang.exchange.names import STREAM
from multilang.protocol.errors import LocalProtocolError
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.component.collector import BoltCollector, Settle
    from multilang.exchange.outgoing import OpenBlocks
    from multilang.exchange.threads import MainThread
    from multilang.exchange.wire import Wire
    from multilang.protocol.messages import Schema

_MOST_SECS = 0.005  # between two times that blocks are sent, while the bolt works


class Received:
    """A received block.

    Attributes:
        wire: The tuple on the wire, which is acked when all of the block's tuples are.
        left: The number of its tuples that are neither acked nor failed.
        failed: Whether it was failed, since one of its tuples was.
        mark: The mark of its text.
    """

    __slots__ = ("failed", "left", "mark", "wire")

    def __init__(self, wire: Tuple, left: int, mark: str) -> None:
        self.wire = wire
        self.left = left
        self.mark = mark
        self.failed = False


class Run:
    """The properties shared by all tuples of one stream in a block: the block, and the positions of the fields."""

    __slots__ = ("block", "positions", "schema")

    def __init__(self, block: Received, stream: str, schema: Schema) -> None:
        self.block = block
        self.schema = schema
        self.positions = schema.get((block.wire.component, stream), {})


class BlockTuple(Tuple):
    """A tuple that arrived in a block; its rarely used properties are made on demand."""

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
            return super().__getitem__(key)  # which takes slices, and raises errors


class BlockTuples(Tuples):
    """The tuples of one stream in a block, each made on demand.

    Attributes:
        run: The properties that they share.
        rows: The values of each.
        settled: Whether all were acked or failed together.
    """

    __slots__ = ("_first", "_made", "_stream", "rows", "run", "settled")

    def __init__(self, run: Run, rows: list[list[Any]], stream: str, first: int) -> None:
        self.run = run
        self.rows = rows  # type: ignore[misc]
        self._first = first
        self._made: dict[int, BlockTuple] = {}
        self._stream = stream
        self.settled = False

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._at(each) for each in range(*index.indices(len(self.rows)))]
        return self._at(range(len(self.rows))[index])

    def __iter__(self) -> Iterator[Tuple]:
        return map(self._at, range(len(self.rows)))

    def _at(self, index: int) -> BlockTuple:
        tup = self._made.get(index)
        if tup is None:
            tup = self._made[index] = BlockTuple.__new__(BlockTuple)
            tup.run = self.run
            tup.index = self._first + index
            tup.stream = self._stream
            tup.values = self.rows[index]
            tup.unfinished = not self.settled
        return tup

    @property
    def component(self) -> str:
        return self.run.block.wire.component

    @property
    def stream(self) -> str:
        return self._stream

    @property
    def task(self) -> int:
        return self.run.block.wire.task

    def column(self, field: int | str) -> list[Any]:
        try:
            at: Any = field if isinstance(field, int) else self.run.positions[field]
            return [row[at] for row in self.rows]
        except LookupError:
            return super().column(field)  # which raises the error

    def unfinished(self, id: str) -> BlockTuple | None:
        """Return the unfinished tuple with this id; None if there is none."""
        block, _, place = id.rpartition(":")
        if block != self.run.block.wire.id or not place.isdigit() or not 0 <= int(place) - self._first < len(self.rows):
            return None
        tup = self._at(int(place) - self._first)
        return tup if tup.unfinished else None

    def settle(self) -> int:
        """Finish all of them, and return how many were unfinished."""
        if self.settled:
            return 0
        self.settled = True
        left = len(self.rows)
        for tup in self._made.values():
            left -= not tup.unfinished
            tup.unfinished = False
        return left


class Inputs:
    """A bolt's inputs: the tuples of blocks, and those that arrived alone.

    Args:
        inner: The wire's collector.
        wire: The wire.
        component: The component's id.
        blocks: The open blocks, which are sent before anything is acked.
        thread: The main thread.
        apart: Whether a block has only tuples that come of one tuple on the wire.

    Attributes:
        done: The blocks on the wire all of whose tuples were acked.
        ack: Acks an input.
    """

    def __init__(
        self,
        inner: BoltCollector,
        wire: Wire,
        component: str,
        blocks: OpenBlocks,
        thread: MainThread,
        apart: bool,
    ) -> None:
        self._inner = inner
        self._scope = inner.scope
        self._wire = wire
        self._component = component
        self._blocks = blocks
        self._thread = thread
        self._apart = apart
        self._unfinished: dict[str, BlockTuple] = {}
        self._many: BlockTuples | None = None  # those that the component works on
        self._acked: list[Any] = []  # single tuples that were acked, as the inner collector defers them
        self.done: deque[Tuple] = deque()
        self._sent_at = monotonic()
        self.ack = self._fast_ack()

    def receiver(
        self,
        execute: Callable[[Tuple], None],
        between: Callable[[], None],
        send: Callable[[], None],
        execute_many: Callable[[Tuples], None] | None = None,
    ) -> Callable[[Tuple], None]:
        """Return the function that takes a tuple off the wire.

        Args:
            execute: Runs one tuple through the component.
            between: Runs timers that are due; called between two tuples if there are timers.
            send: Sends all open blocks and waiting acks.
            execute_many: Runs many tuples through the component; None: it takes them one by one.
        """
        new, kind, connection = BlockTuple.__new__, BlockTuple, self._wire.connection
        unfinished, done, apart = self._unfinished, self.done, self._apart
        timers, send_if_due = self._scope.timers.heap, self._sender(send)

        def receive(wire: Tuple) -> None:
            if wire.stream != STREAM:
                execute(wire)
                return
            runs = read_block(wire.values)
            block = Received(wire, sum(len(rows) for _, rows in runs), APART if apart else mark_of(wire.values))
            wire.values = []  # the tuples have them
            if not block.left:
                done.append(wire)
            index = 0
            for stream, rows in runs:
                run = Run(block, stream, connection.schema)
                if execute_many is not None:
                    if rows:
                        tups = BlockTuples(run, rows, stream, index)
                        self._many = tups
                        execute_many(tups)
                        self._many = None
                        self._index(tups)
                        index += len(rows)
                    if timers:
                        between()
                    send_if_due()
                    continue
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
                    if not index & 7:
                        send_if_due()

        return self._between_tuples(receive, send_if_due)

    def _sender(self, send: Callable[[], None]) -> Callable[[], None]:
        """Return a function that calls ``send`` if it was not called for a while."""

        def send_if_due() -> None:
            if monotonic() - self._sent_at > _MOST_SECS:
                send()
                self._sent_at = monotonic()

        return send_if_due

    def _between_tuples(
        self, receive: Callable[[Tuple], None], send_if_due: Callable[[], None]
    ) -> Callable[[Tuple], None]:
        """Return ``receive`` with the work after each tuple on the wire, since hundreds may have been read at once."""
        close_all = self._blocks.close_all

        def receive_by_root(wire: Tuple) -> None:
            receive(wire)
            close_all()
            send_if_due()

        def receive_many(wire: Tuple) -> None:
            receive(wire)
            send_if_due()

        return receive_by_root if self._apart else receive_many

    def begin(self) -> None:
        """Note that work begins, after a wait for input."""
        self._sent_at = monotonic()

    def _index(self, tups: BlockTuples) -> None:
        """Add the unfinished ones to those that are found by their ids."""
        if not tups.settled:
            for tup in tups:
                if tup.unfinished:
                    self._unfinished[tup.id] = tup  # type: ignore[assignment]

    def _fast_ack(self) -> Settle:
        done, unfinished, kind, main = self.done, self._unfinished, BlockTuple, self._thread.id
        calls = self._thread.calls

        def ack(tup: Tuple | str) -> None:
            if type(tup) is kind and tup.unfinished and not calls and get_ident() == main:
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
        if get_ident() == self._thread.id:
            self._thread.make_calls()
        if type(tup) is BlockTuple:
            self._thread.call(lambda: self._settle(tup.run.block, 1, True))
        elif tup.task < 0 and tup.is_tick and get_ident() == self._thread.id:
            self._blocks.close_all()  # emits after the tick's ack count as waited for: they come of no tick
            self._inner.ack(tup)
        elif self._blocks.dirty or self._thread.calls or get_ident() != self._thread.id:
            acked: list[Any] = []  # behind the block with what is anchored to it
            self._inner.deferred_ack(acked)(tup)
            self._thread.call(lambda: self._acked.extend(acked))
        else:
            self._inner.ack(tup)

    def fail(self, given: Tuple | str) -> None:
        """Fail an input."""
        tup = self._finish(given, "fail")
        if type(tup) is BlockTuple:
            self._thread.call(lambda: self._settle(tup.run.block, 1, False))
            return
        failed: list[Any] = []
        self._inner.deferred_ack(failed)(tup)
        self._thread.call(lambda: self.finish(failed, False))

    def _finish(self, given: Tuple | str, what: str) -> Tuple:
        """Return the unfinished input; one of a block is now finished for the component."""
        tup = self.find(given, what)
        if type(tup) is BlockTuple:
            tup.unfinished = False
            self._unfinished.pop(tup.id, None)
        return tup

    def settle_many(self, tups: Any, ok: bool) -> None:
        """See BoltCollector."""
        if type(tups) is not BlockTuples:
            settle = self.ack if ok else self.fail
            for tup in tups:
                if tup.unfinished:
                    settle(tup)
            return
        if self._unfinished:
            for tup in tups:
                self._unfinished.pop(tup.id, None)
        left, block = tups.settle(), tups.run.block
        if left:
            self._thread.call(lambda: self._settle(block, left, ok))

    def _settle(self, block: Received, tuples: int, ok: bool) -> None:
        """Ack or fail so many tuples of a block, in the main thread."""
        block.left -= tuples
        if block.failed:
            return
        if not ok:
            self._blocks.close_all()  # nothing may be anchored to it later
            block.failed = True
            self._inner.fail(block.wire)
        elif not block.left:
            self.done.append(block.wire)

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        """Return an ``ack`` that defers the tuples of blocks, and the others as the inner collector does."""
        inner, append, kind = self._inner.deferred_ack(deferred), deferred.append, BlockTuple

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

    def finish(self, deferred: list[Any], ok: bool) -> None:
        """See BoltCollector."""
        others = []
        for each in deferred:
            if type(each) is BlockTuple:
                self._settle(each.run.block, 1, ok)
            else:
                others.append(each)
        deferred.clear()
        if others:
            if ok and self._blocks.dirty:
                self._acked.extend(others)
            else:
                self._blocks.close_all()
                self._inner.finish(others, ok)

    def find(self, tup: Tuple | str, what: str) -> Tuple:
        """Return the unfinished input that ``tup`` (or a copy, or its id) stands for, to "ack", "fail" or "anchor" it.

        Raises:
            LocalProtocolError: It was acked or failed before, or was never received.
        """
        if isinstance(tup, Tuple) and tup.unfinished:  # as on the wire: a coordinated bolt holds tuples itself
            return tup
        if isinstance(tup, str | Tuple):
            id = tup if isinstance(tup, str) else tup.id
            current = self._scope.current
            found = self._unfinished.get(id)
            if found is None and type(current) is BlockTuple and current.id == id and current.unfinished:
                found = current
            if found is None and self._many is not None:
                found = self._many.unfinished(id)
            if found is not None:
                return found
            if type(tup) is BlockTuple:
                past = {"ack": "acked", "fail": "failed", "anchor": "used as an anchor"}[what]
                raise LocalProtocolError(
                    f"component {self._component!r}: tuple {id!r} can't be {past}: it was acked or failed before. "
                    "Each tuple is acked or failed once, after all that is anchored to it was emitted"
                    + ("; give a later emit anchors=[]" if what == "anchor" else "")
                )
        return self._inner.received(tup)

    @property
    def current(self) -> Tuple | None:
        """The input that the component works on, or the first of many."""
        return self._scope.current

    def waiting(self) -> tuple[int, int]:
        """Return the numbers of acks that wait for the open blocks: of blocks, and of tuples that arrived alone."""
        return len(self.done), len(self._acked)

    def send_acks(self, waiting: tuple[int, int]) -> None:
        """Send the first of the acks that waited for the open blocks, which have been sent; see ``waiting``.

        The main thread may add others meanwhile.
        """
        blocks, alone = waiting
        for _ in range(blocks):
            self._inner.ack(self.done.popleft())
        if alone:
            acked = self._acked[:alone]
            del self._acked[:alone]
            self._inner.finish(acked, True)
