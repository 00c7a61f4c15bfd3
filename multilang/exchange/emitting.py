"""A bolt's emits: each goes to the open blocks of its tasks, or alone."""

from __future__ import annotations

from _thread import get_ident

from multilang.exchange.block import APART, LOOSE, TOGETHER
from multilang.exchange.outgoing import ALONE
from multilang.exchange.receiving import BlockTuple, BlockTuples
from multilang.protocol.codec import MAX_INT, MIN_INT, encode_values, loads
from multilang.protocol.errors import LocalProtocolError, UnserializableValue
from multilang.protocol.messages import Tuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import Anchors, BoltCollector, Emit, OnTaskIds
    from multilang.exchange.outgoing import OpenBlocks
    from multilang.exchange.receiving import Inputs
    from multilang.exchange.routes import Route, Routes
    from multilang.exchange.threads import MainThread
    from multilang.exchange.wire import Wire
    from multilang.protocol.messages import Values


class Emitter:
    """A bolt's emits.

    Args:
        inner: The wire's collector.
        wire: The wire.
        routes: The task's streams.
        inputs: The inputs, which are the anchors.
        blocks: The open blocks.
        thread: The main thread.
        most: The largest number of tuples in a block.
    """

    def __init__(
        self,
        inner: BoltCollector,
        wire: Wire,
        routes: Routes,
        inputs: Inputs,
        blocks: OpenBlocks,
        thread: MainThread,
        most: int,
    ) -> None:
        self._inner = inner
        self._wire = wire
        self._routes = routes
        self._inputs = inputs
        self._blocks = blocks
        self._thread = thread
        self._most = most
        self._single: _Single | None = None  # the last one
        self._loose: object = None  # the input for which the last tuple without anchors was emitted
        self._unread = [0]  # the emits without any subscriber
        self._unread_reported = 0  # of them, those reported to a local parent

    def fast(self, default: Any) -> Emit:  # noqa: C901 - a call for each part would cost as much as the part
        """Return an ``emit`` for the most frequent case: one anchor, which arrived in a block, and blocks alone."""
        encode, kind, many, main, opened = encode_values, BlockTuple, BlockTuples, self._thread.id, self._blocks.by_task
        routes = {name: route for name, route in self._routes.by_stream.items() if not route.on_wire}
        if self._most == 1:
            routes = {}  # the slow path closes each block at once
        otherwise, turn, unread, calls = self.emit, self._blocks.turn, self._unread, self._thread.calls

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
            holder: Any = None
            try:
                if type(anchors) is many:
                    holder = anchors.run.block
                    unfinished = not anchors.settled and holder.left
                else:
                    (anchor,) = anchors
                    unfinished = type(anchor) is kind and anchor.unfinished
                    if unfinished:
                        holder = anchor.run.block  # type: ignore[union-attr]
                if (
                    unfinished
                    and type(values) is list
                    and direct_task is None
                    and not need_task_ids
                    and on_task_ids is None
                    and not calls
                    and get_ident() == main
                ):
                    route = routes[stream]
                    if len(values) == route.arity and not holder.failed:
                        if route.unread:
                            for value in values:
                                sort = type(value)
                                if not (
                                    (sort is str and value.isascii()) or (sort is int and MIN_INT <= value <= MAX_INT)
                                ):
                                    encode(values)  # it is only checked
                                    break
                            unread[0] += 1
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
                pass  # the slow path sends it or raises the error
            return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

        return emit

    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        """Send any emit; see Bolt.emit."""
        outputs = self._routes.outputs
        name = "default" if stream is None else stream
        outputs.check(name, values, direct_task)
        route = self._routes.by_stream.get(stream)
        text = outputs.encode(outputs.streams[stream], values)
        inputs = self._anchors(anchors)
        if need_task_ids:
            self._wire.check_wait()
        if get_ident() != self._thread.id:
            copy = loads(text)  # as it is now
            self._thread.call(lambda: self._send(copy, text, stream, route, inputs, direct_task, False, on_task_ids))
            return None
        self._thread.make_calls()
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
        if route is None or direct_task is not None:  # of these streams none is direct: the task gets nothing
            if stream in self._routes.overtaking:
                self._blocks.close_all()
            anchors = self._on_wire(inputs)
            return self._inner.emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)
        alone = any(tup.task < 0 and tup.is_tick for tup in inputs)  # ticks are acked at once
        if alone:
            self._blocks.close_all()
        tasks = list(route.choose(values))
        holders = self._holders(inputs)
        apart = len(holders) > 1 and any(holder.mark == APART for holder in holders)
        for task in tasks:
            block = self._blocks.by_task[task]
            if apart:
                self._blocks.put_apart(block, route, holders, text)
                continue
            if not holders:
                self._part_loose()
                self._blocks.turn(block, route, ALONE)
            for holder in holders:
                self._blocks.turn(block, route, holder)
            block.append(text)
            if self._most == 1:
                self._blocks.close(block)
        if alone:
            self._blocks.close_all()
        if route.unread:
            self._unread[0] += 1
        if route.on_wire:
            if route.overtakes:
                self._blocks.close_all()
            return self._emit_rest(values, stream, self._on_wire(inputs), tasks, need_task_ids, on_task_ids)
        if on_task_ids is not None:
            self._wire.deliver_later(on_task_ids, tasks)
        return tasks if need_task_ids else None

    def _part_loose(self) -> None:
        """Send the tuples without anchors that were emitted for another input: no limit keeps their blocks few."""
        current = self._inputs.current
        if self._routes.careful and current is not self._loose:
            self._loose = current
            for block in self._blocks.dirty[:]:
                if block.last is ALONE:
                    self._blocks.close(block)

    def take_unread(self) -> int:
        """Return the number of emits without any subscriber since the last call."""
        (count,) = self._unread  # the main thread alone adds to it, and this may be another
        reported, self._unread_reported = self._unread_reported, count
        return count - reported

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
        all_ids = None if on_task_ids is None else lambda others: on_task_ids([*tasks, *others])
        others = self._inner.emit(values, stream, anchors, None, need_task_ids, all_ids)
        return None if others is None else [*tasks, *others]

    def _anchors(self, anchors: Anchors) -> list[Tuple]:
        """Return the inputs that ``anchors`` names."""
        if anchors is None:
            return []
        if isinstance(anchors, BlockTuples) and not anchors.settled:
            return [tup for tup in anchors if tup.unfinished]
        if not isinstance(anchors, list | tuple | BlockTuples):
            given: Any = anchors
            kind = Tuple if isinstance(given, Tuple) else type(given)
            raise LocalProtocolError(
                f"component {self._routes.outputs.component!r}: anchors is a list of tuples, not {kind.__name__}; "
                "write anchors=[tup]"
            )
        return [self._inputs.find(each, "anchor") for each in anchors]

    def _holders(self, inputs: list[Tuple]) -> list[Any]:
        """Return the unfailed inputs on the wire that a block is anchored to for tuples with these anchors.

        Inputs whose failure causes no replay are left out beside others.
        """
        found = [
            tup.run.block if type(tup) is BlockTuple else self._single_of(tup)
            for tup in inputs
            if type(tup) is not BlockTuple or (tup.run.block.wire.unfinished and not tup.run.block.failed)
        ]
        if len(found) == 1:
            return found
        return [holder for holder in found if holder.mark != LOOSE] or found

    def _single_of(self, tup: Tuple) -> _Single:
        """Return the holder for a tuple that arrived alone, the same one for all tuples anchored to it."""
        if self._single is None or self._single.wire.id != tup.id:
            self._single = _Single(tup, self._routes.apart)
        return self._single

    def _on_wire(self, inputs: list[Tuple]) -> list[Tuple]:
        """Return the anchors of a single tuple on the wire."""
        found: dict[str, Tuple] = {}
        for holder in self._holders(inputs):
            wire = holder.wire
            found[wire.id] = wire
        return list(found.values())


class _Single:
    """A tuple that arrived alone, as the holder of a block. The component may ack it before the block is sent."""

    __slots__ = ("mark", "wire")

    def __init__(self, tup: Tuple, apart: bool) -> None:
        self.mark = APART if apart else TOGETHER
        self.wire = Tuple(tup.id, tup.component, tup.stream, tup.task, [], None, True)
