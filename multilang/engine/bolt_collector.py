"""The collector of a bolt in this process.

``emit``, ``ack`` and ``fail`` are closures over everything that they need, one set for each task, since they are called
several times per tuple, and a component's own ``emit`` *is* such a closure. Any suspicious call is passed to the
child's end of the wire, which raises the same error as in a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.collector import BoltCollector, many_anchored, one_by_one
from multilang.engine.edges import edges
from multilang.engine.emitter import TupleEmitter
from multilang.engine.links import LinkedCollector
from multilang.engine.tuples import LocalTuple
from multilang.protocol import UnserializableValue
from multilang.protocol.codec import normalize
from multilang.protocol.messages import DEFAULT_STREAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.component.collector import Anchors, Emit, OnTaskIds, Settle
    from multilang.component.timers import Scope
    from multilang.engine.counters import TaskStats
    from multilang.engine.links import Links
    from multilang.engine.plan import TaskPlan
    from multilang.protocol.messages import Tuple, Values


class LocalBoltCollector(LinkedCollector, BoltCollector):
    """The collector of a bolt in this process."""

    def __init__(
        self,
        plan: TaskPlan,
        links: Links,
        stats: TaskStats,
        reported: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__(plan, links, reported)
        self._emitter = emitter = TupleEmitter(plan, links, stats)
        self.knows_tasks = links.at_once
        self.emit = _bolt_emit(self.scope, emitter, automatic=False)
        self.emit_anchored = _bolt_emit(self.scope, emitter, automatic=True)
        self.emit_many = one_by_one(self.emit)
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.ack = _bolt_ack(emitter)
        self.fail = _bolt_fail(emitter)

    def received(self, tup: Tuple | str) -> Tuple:
        return self._emitter.received(tup, "ack")

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        """Return an ack for later, which adds the root and the edge of each tuple to ``deferred``.

        Plain numbers, unlike tuples, cost the garbage collector nothing.
        """
        emitter, now, append = self._emitter, self.ack, deferred.append

        def ack(tup: Any) -> None:
            if type(tup) is not LocalTuple or not tup.unfinished:
                tup = emitter.received(tup, "ack")
            root = tup.root
            if not root:  # a tick, or anchored to nothing: it belongs to no spout's tuple
                now(tup)
                return
            tup.unfinished = False
            append(root)
            append(tup.edge)
            if emitter.links.named:
                emitter.links.named.pop(tup.id, None)

        return ack

    def finish(self, deferred: list[Any], ok: bool) -> None:
        stats, ack, fail = self._emitter.stats, self._links.ack, self._links.fail
        if ok:
            stats.acked += len(deferred) // 2
        else:
            stats.failed += len(deferred) // 2
        pairs = iter(deferred)
        for root, edge in zip(pairs, pairs, strict=True):
            several = type(root) is dict
            if not ok:
                for each in root if several else (root,):
                    fail(each)
            elif several:
                for each, own in root.items():
                    ack(each, own ^ edge)
            else:
                ack(root, edge)
        deferred.clear()


def _bolt_emit(  # noqa: C901  # one body, since each call from here costs a share of the rate
    scope: Scope, emitter: TupleEmitter, automatic: bool
) -> Emit:
    """Make a bolt's emit; with ``automatic``, it is anchored to the scope's anchors unless anchors are given."""
    links = emitter.links
    stats = emitter.stats
    routes = emitter.routes
    default = routes.get(DEFAULT_STREAM)
    getrandbits = links.getrandbits
    append = links.out.append
    receivers = links.receivers
    new = LocalTuple.__new__

    def emit(  # noqa: C901
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        route: Any = default if stream is None else routes.get(stream)
        row: Any = None
        if route is not None and direct_task is None:
            try:
                if len(values) == route.width:
                    row = normalize(values)
            except (TypeError, UnserializableValue):
                pass  # the wire's end raises the error
        if row is None:
            row, route = emitter.checked(values, stream, direct_task)
        if automatic and anchors is None:
            anchors = scope.anchors
        targets: Sequence[int]
        if direct_task is not None:
            targets = route.targets(row, direct_task)
        elif route.choose is None:
            targets = ()
        else:
            targets = route.choose(row)
        kind: type = type(anchors)
        if (kind is list or kind is tuple) and anchors:
            anchor = anchors[0]
            if len(anchors) == 1 and type(anchor) is LocalTuple and anchor.unfinished:
                root = anchor.root
                if type(root) is int and len(targets) < 2 and route.captured is None:
                    # This is by far the most frequent case, and takes the shortest path.
                    stats.emitted += 1
                    if targets:
                        stats.transferred += 1
                        edge = 0
                        if root:
                            edge = getrandbits(64)
                            anchor.edge ^= edge
                        tup = new(LocalTuple)  # its fields are set here, as the call of __init__ would cost more
                        tup.values = row
                        tup.stream = route.stream
                        tup.origin = route.origin
                        tup.root = root
                        tup.edge = edge
                        tup.unfinished = True
                        append((receivers[targets[0]], tup))
                else:
                    emitter.deliver(route, row, targets, edges((anchor,), getrandbits))
            else:
                live = emitter.live(anchors, row, stream, direct_task)
                emitter.deliver(route, row, targets, edges(live, getrandbits))
        elif anchors is None or kind is list or kind is tuple:
            if len(targets) == 1 and route.captured is None:
                stats.emitted += 1
                stats.transferred += 1
                append((receivers[targets[0]], LocalTuple(row, route.stream, route.origin)))
            else:
                emitter.deliver(route, row, targets, None)
        else:
            emitter.live(anchors, row, stream, direct_task)
        if need_task_ids or on_task_ids is not None:
            return emitter.answer(targets if direct_task is None else (direct_task,), need_task_ids, on_task_ids)
        return None

    return emit


def _bolt_ack(emitter: TupleEmitter) -> Settle:
    """Make a bolt's ack."""
    stats = emitter.stats
    named = emitter.links.named
    ack_root = emitter.links.ack

    def ack(tup: Any) -> None:
        if type(tup) is not LocalTuple or not tup.unfinished:
            tup = emitter.received(tup, "ack")
        tup.unfinished = False
        stats.acked += 1
        root = tup.root
        if root:
            if type(root) is not int:
                for each, edge in root.items():
                    ack_root(each, edge ^ tup.edge)
            else:
                ack_root(root, tup.edge)
        elif tup.edge:
            stats.idle -= 1
        if named:
            named.pop(tup.id, None)

    return ack


def _bolt_fail(emitter: TupleEmitter) -> Settle:
    """Make a bolt's fail."""
    stats = emitter.stats
    named = emitter.links.named
    fail_root = emitter.links.fail

    def fail(tup: Any) -> None:
        tup = emitter.received(tup, "fail")
        tup.unfinished = False
        if tup.origin.is_question:
            stats.acked += 1  # the question was answered
        else:
            stats.failed += 1
        root = tup.root
        if root:
            for each in root if isinstance(root, dict) else (root,):
                fail_root(each)
        elif tup.edge:
            stats.idle -= 1
        if named:
            named.pop(tup.id, None)

    return fail
