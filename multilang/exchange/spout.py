"""A spout's side of the exchange: the collector that fills blocks, and the runner that asks for several tuples at once."""

from __future__ import annotations

import resource
from _thread import get_ident
from itertools import count
from time import monotonic

from multilang.component.collector import SpoutCollector
from multilang.exchange.block import APART, MAX_BYTES, TOGETHER
from multilang.exchange.names import BLOCK_ID, MAX_PENDING, STREAM
from multilang.exchange.outgoing import ALONE, OpenBlocks
from multilang.protocol.codec import id_as_received
from multilang.protocol.errors import LocalProtocolError
from multilang.settings import EXCHANGE_TUPLES, PARENT, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import OnTaskIds
    from multilang.component.runner import SpoutRunner
    from multilang.exchange.block import OpenBlock
    from multilang.exchange.routes import Route, Routes
    from multilang.exchange.wire import Wire
    from multilang.protocol.messages import Values

_MOST_CALLS = 256  # of next_tuple, at one next
_MINE = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # a thread's own are not known everywhere
_SLOW_SECS = 0.001  # for a call of next_tuple; the tuples before it would wait for the next as long
_LONG_SECS = 0.02  # for a call that waits by itself, as for the next item of a queue, while tuples before it wait, too
_MOST_SECS = 0.003  # for all calls at one next
_WARY_CALLS = 1000  # one by one, after a slow call that emitted nothing, or that waited for long
_MOST_WARY_CALLS = 64_000  # it is doubled each time, until a spout has not waited for long
_MANY_PENDING = 10_000  # tuples in flight, without a limit; from there on they are asked for one by one
_MOST_SUSPECTS = 10_000  # that are stored; a spout may never replay what failed
PENALTY = 10_000  # tuples that travel apart after a failure, where the library chose to put many together
_MOST_PENALTY = 1_000_000  # it is doubled each time, until as many as the last time travelled together


class _Emitted:
    """A reliable tuple, while some of the messages that carry it are neither acked nor failed.

    Attributes:
        id: Its message id.
        number: A number that is unique among tuples with the same id.
        messages: The number of messages that carry it.
        left: The number of those that are neither acked nor failed.
        failed: Whether one was failed.
        mark: The mark of its blocks.
    """

    __slots__ = ("failed", "id", "left", "mark", "messages", "number")

    def __init__(self, id: Any, number: int, messages: int, apart: bool = False) -> None:
        self.mark = APART if apart else TOGETHER
        self.id = id
        self.number = number
        self.messages = self.left = messages
        self.failed = False


class _Suspects:
    """The tuples that failed, one of which may be the cause for all: when they are replayed, each travels apart.

    They are known by their message ids. A replay may have another id, so as many tuples as failed together travel apart
    in any case. Where the library chose larger blocks, thousands travel apart: failures may be frequent, or the bolts
    slow, and then each block would fail all its tuples.

    Args:
        careful: Whether the library chose larger blocks.
    """

    def __init__(self, careful: bool) -> None:
        self._ids: dict[Any, None] = {}
        self._next = 0  # how many of the next tuples travel apart
        self._careful = careful
        self._penalty = PENALTY  # for the next time
        self._together = 0  # those that did not travel apart since the last time

    def add(self, ids: list[Any], apart: bool) -> None:
        """Note the tuples of a message that failed, which may have travelled apart."""
        if self._careful and not apart and not self._next:
            if self._together > self._penalty // 2:
                self._penalty = PENALTY
            self._together = 0
            self._next = self._penalty
            self._penalty = min(2 * self._penalty, _MOST_PENALTY)
        elif len(ids) > 1 and not self._careful:
            self._next += len(ids)
        self._ids.update(dict.fromkeys(ids))
        while len(self._ids) > _MOST_SUSPECTS:
            del self._ids[next(iter(self._ids))]

    def take(self, id: Any) -> bool:
        """Return whether the tuple that is emitted with this id travels apart."""
        if not self._next and not self._ids:
            self._together += 1
            return False  # as nearly always
        known = id in self._ids
        if known:
            del self._ids[id]
        apart = known or self._next > 0
        self._together += not apart
        if self._next:
            self._next -= 1
        return apart


class BlockSpoutCollector(SpoutCollector):
    """The collector of a spout whose tuples travel in blocks, around the wire's.

    Args:
        inner: The wire's collector.
        wire: The wire.
        routes: The task's streams.
        conf: The task's conf.

    Attributes:
        emitted: The number of emits.
        pending: The number of reliable tuples in flight.
        acks_at_once: True if an emit acks its tuple at once, as there are no ackers.
        careful: Whether the library chose larger blocks.
    """

    to_parent = True

    def __init__(self, inner: SpoutCollector, wire: Wire, routes: Routes, conf: dict[str, Any]) -> None:
        super().__init__(inner.scope, inner.reported)
        self._inner = inner
        self._wire = wire
        self._routes = routes
        self._main = get_ident()
        self._most = 1 if routes.apart else value(conf, EXCHANGE_TUPLES)
        self._blocks = OpenBlocks(routes.tasks, self._write)
        self._local = conf.get(PARENT) == "local"
        self._numbers = count(1)
        self._sent: dict[str, list[_Emitted]] = {}  # by the message id of a block, or of a tuple that was sent alone
        self._suspects = _Suspects(routes.careful)
        self.acks_at_once = inner.acks_at_once
        self.emitted = 0
        self.pending = 0
        self.careful = routes.careful

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        """See SpoutCollector."""
        route = self._routes.by_stream.get(stream)
        if route is None or direct_task is not None:
            return self._emit_alone(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)
        outputs = self._routes.outputs
        text = outputs.encode(outputs.streams[stream], values)
        if tup_id is not None:
            tup_id = id_as_received(tup_id)
        if get_ident() != self._main or not self._wire.connection.commands_owed:
            raise LocalProtocolError(
                f"component {outputs.component!r} emits while Storm does not listen to its spout, or in another thread; emit "
                "in next_tuple, ack, fail, activate or deactivate (other threads put what they find into a queue for "
                "these methods)"
            )
        self.emitted += 1
        tasks = list(route.choose(values))
        tracked = None
        if tup_id is not None and (self._local or not self.acks_at_once):  # a local parent counts acks in any case
            messages = len(tasks) + (route.on_wire and not self.acks_at_once)
            tracked = _Emitted(
                tup_id,
                next(self._numbers),
                messages,
                self._suspects.take(tup_id) or self._routes.apart or self._most == 1,
            )
        for task in tasks:
            self._put(task, route, text, tracked)
        others: list[int] | None = None
        if route.on_wire:
            if route.overtakes:
                self._blocks.close_all()
            others = self._emit_rest(values, stream, tracked, tasks, need_task_ids, on_task_ids)
        elif on_task_ids is not None:
            self._wire.deliver_later(on_task_ids, tasks)
        if tup_id is not None:
            if self.acks_at_once:
                self._inner.acked(tup_id)
            else:
                self.pending += 1
        return [*tasks, *(others or ())] if need_task_ids else None

    def _emit_alone(
        self,
        values: Values,
        tup_id: Any,
        stream: str | None,
        direct_task: int | None,
        *asked: Any,
    ) -> list[int] | None:
        """Send a tuple of a stream without blocks; its message id is its own."""
        self._routes.outputs.check("default" if stream is None else stream, values, direct_task)
        if isinstance(tup_id, str) and tup_id.startswith(BLOCK_ID):
            raise LocalProtocolError(f"the message id {tup_id!r} begins as those of blocks do; use another")
        if stream in self._routes.overtaking:
            self._blocks.close_all()
        tasks = self._inner.emit(values, tup_id, stream, direct_task, *asked)
        self.emitted += 1
        if tup_id is not None and not self.acks_at_once:
            self.pending += 1
        return tasks

    def _emit_rest(
        self,
        values: Values,
        stream: str | None,
        tracked: _Emitted | None,
        tasks: list[int],
        need_task_ids: bool,
        on_task_ids: OnTaskIds | None,
    ) -> list[int] | None:
        """Send a tuple to the subscribers that take no blocks; ``tasks`` have it in a block."""
        all_ids = None if on_task_ids is None else lambda others: on_task_ids([*tasks, *others])
        id = None if tracked is None or self.acks_at_once else self._message([tracked])
        return self._inner.emit(values, id, stream, None, need_task_ids, all_ids)

    def _put(self, task: int, route: Route, text: str, tracked: _Emitted | None) -> None:
        block = self._blocks.by_task[task]
        self._blocks.turn(block, route, ALONE if tracked is None else tracked)
        block.append(text)
        block.size += len(text)
        loose = tracked is None and self._routes.careful  # no limit keeps such blocks few
        if self._most == 1 or loose or len(block.holders) >= self._most or block.size > MAX_BYTES:
            self._blocks.close(block)  # now, so that its message id is that of its own tuples alone

    def _write(self, block: OpenBlock) -> None:
        carried = list(block.holders)
        for tuples, text in block.take(None if carried else self._most):
            id = self._message(carried) if carried else None
            self._wire.connection.emit_from_spout([tuples, text], id, STREAM, block.task)

    def _message(self, carried: list[_Emitted]) -> Any:
        """Return the message id for these tuples; for a local parent's counters it includes theirs."""
        id = f"{BLOCK_ID}{next(self._numbers)}"
        if not self.acks_at_once:
            self._sent[id] = carried
        return [id, [[each.id, each.number, each.messages] for each in carried]] if self._local else id

    # ---- for the wire ----

    def close_blocks(self) -> None:
        """Send all open blocks."""
        if not self._blocks.writing:
            self._blocks.close_all()

    def park(self) -> None:
        """Do nothing: a spout's other threads emit nothing."""

    def unpark(self) -> None:
        """Do nothing; see park."""

    def settled(self, id: Any, ok: bool) -> list[_Emitted]:
        """Return the spout's tuples that are done with the ack or fail of this message."""
        if isinstance(id, list):
            id = id[0]
        carried = (
            self._sent.pop(id, None) if isinstance(id, str) and id.startswith(BLOCK_ID) else [_Emitted(id, 0, 1, True)]
        )
        found = []
        if not ok and carried:
            self._suspects.add([each.id for each in carried], carried[0].mark == APART)
        for each in carried or ():  # None: of a process before this one
            each.left -= 1
            if not each.failed and (not ok or not each.left):
                each.failed = not ok
                self.pending -= 1
                found.append(each)
        return found

    # ---- the rest ----

    def log(self, message: str, level: int = 2) -> None:
        self._inner.log(message, level)

    def report_error(self, message: str) -> None:
        self._inner.report_error(message)

    def report_metric(self, name: str, params: Any) -> None:
        self._inner.report_metric(name, params)


def _was_its_own(before: resource.struct_rusage) -> bool:
    """Return whether the time since then was this process's work or wait, and not that of other busy processes."""
    now = resource.getrusage(_MINE)
    worked = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
    return now.ru_nvcsw != before.ru_nvcsw or worked > _SLOW_SECS


class BlockSpoutRunner:
    """A started spout's runner that asks it for several tuples at one ``next``, and closes the blocks after each command.

    Attributes:
        full: Whether the spout was not called at the last ``next``, since as many tuples as allowed are in flight.
    """

    def __init__(self, runner: SpoutRunner, collector: BlockSpoutCollector, conf: dict[str, Any]) -> None:
        self._runner = runner
        self._collector = collector
        # Where the library chose larger blocks, nothing waits for tuples that a limit would hold back.
        self._most_pending = conf.get(MAX_PENDING) or (_MANY_PENDING if collector.careful else float("inf"))
        # A quarter: while some blocks are in flight, others are filled.
        self._most = max(1, int(min(value(conf, EXCHANGE_TUPLES), _MOST_CALLS, self._most_pending / 4)))
        self._enough = _MANY_PENDING if self._most_pending == float("inf") else self._most_pending
        self._calls = 1  # at the next next
        self._wary = 0  # calls that are still made one by one
        self._wary_calls = _WARY_CALLS  # for the next time
        self.timers = runner.timers
        self.full = False

    def next(self) -> None:
        """Ask the spout for as many tuples as it is likely to have at hand."""
        collector, ask = self._collector, self._runner.next
        alone = self._wary or collector.pending >= self._enough
        calls = 1 if alone else self._calls
        began = now = monotonic()
        until = began + _MOST_SECS
        usage = resource.getrusage(_MINE)
        for _ in range(calls):
            self.full = collector.pending >= self._most_pending
            if self.full:
                break
            before, asked = collector.emitted, now
            ask()
            now = monotonic()
            gave = collector.emitted != before
            if self._wary:
                self._wary -= 1
            slow = now - asked > _SLOW_SECS and _was_its_own(usage)
            if not gave:
                self._calls = 1
                if slow:
                    self._be_wary()
                break
            if slow:
                if asked != began and now - asked > _LONG_SECS:
                    self._be_wary()
                self._calls = max(1, self._calls // 2)
                break
            if now > until:
                break
        else:
            if not alone:
                self._calls = min(2 * self._calls, self._most)
                if calls == self._most:
                    self._wary_calls = _WARY_CALLS
        collector.close_blocks()

    def _be_wary(self) -> None:
        """Ask for single tuples for the next calls."""
        self._wary = self._wary_calls
        self._wary_calls = min(2 * self._wary_calls, _MOST_WARY_CALLS)

    def ack(self, id: Any) -> None:
        """Ack the tuples of a message, one by one."""
        for each in self._collector.settled(id, True):
            self._runner.ack(each.id)
        self._collector.close_blocks()

    def fail(self, id: Any) -> None:
        """Fail the tuples of a message, one by one."""
        runner = self._runner
        for each in self._collector.settled(id, False):
            (runner.fail if each.mark == APART else runner.fail_together)(each.id)
        self._collector.close_blocks()

    def activate(self) -> None:
        """See SpoutRunner."""
        self._runner.activate()
        self._collector.close_blocks()

    def deactivate(self) -> None:
        """See SpoutRunner."""
        self._runner.deactivate()
        self._collector.close_blocks()

    def exhausted(self) -> bool | None:
        """See SpoutRunner."""
        return self._runner.exhausted()
