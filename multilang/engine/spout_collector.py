"""The collector of a spout in this process; its functions are closures, as those of a bolt's (``bolt_collector``)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from multilang.component.collector import SpoutCollector
from multilang.engine.counters import SAMPLE_EVERY
from multilang.engine.emitter import TupleEmitter
from multilang.engine.links import LinkedCollector
from multilang.engine.tuples import LocalTuple
from multilang.protocol import UnserializableValue
from multilang.protocol.codec import MAX_INT, MIN_INT, id_as_received, normalize
from multilang.protocol.messages import DEFAULT_STREAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias

    from multilang.component.collector import OnTaskIds, SpoutEmit
    from multilang.engine.counters import TaskStats
    from multilang.engine.links import DirectAcker, Links
    from multilang.engine.plan import Route, TaskPlan
    from multilang.engine.rotating import RotatingMap
    from multilang.protocol.messages import Values

    Pending: TypeAlias = RotatingMap[tuple[Any, float]]


class LocalSpoutCollector(LinkedCollector, SpoutCollector):
    """The collector of a spout in this process; without ackers, ``acked`` is called with the message id."""

    _emit_many: Callable[[Iterable[Values], Iterable[Any], Route], None] | None = None

    def __init__(
        self,
        plan: TaskPlan,
        links: Links,
        stats: TaskStats,
        pending: Pending,
        acked: Callable[[Any], None],
        reported: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__(plan, links, reported)
        emitter = TupleEmitter(plan, links, stats)
        self.emit = _spout_emit(emitter, pending, acked)
        if links.acker is not None:
            self._emit_many = _spout_emit_many(emitter, links.acker, pending)

    def emit_many(
        self, rows: Iterable[Values], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        route = self._plan.routes.get(DEFAULT_STREAM if stream is None else stream)
        several = self._emit_many
        if several is None or tup_ids is None or route is None or route.choose is None or route.captured is not None:
            super().emit_many(rows, tup_ids, stream)
        else:
            several(rows, tup_ids, route)


def _spout_emit(  # one body, as for a bolt
    emitter: TupleEmitter, pending: Pending, acked: Callable[[Any], None]
) -> SpoutEmit:
    """Make a spout's emit. ``pending``: root id -> (message id, time of the emit if it is sampled, otherwise 0)."""
    links = emitter.links
    stats = emitter.stats
    getrandbits = links.getrandbits
    init = links.init
    routes = emitter.routes
    default = routes.get(DEFAULT_STREAM)
    append = links.out.append
    receivers = links.receivers
    new = LocalTuple.__new__
    spout_task = emitter.plan.id
    until_sample = 1

    def emit(
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        nonlocal until_sample
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
        if tup_id is not None:
            tup_id = id_as_received(tup_id)
        targets: Sequence[int]
        if direct_task is not None:
            targets = route.targets(row, direct_task)
        elif route.choose is None:
            targets = ()
        else:
            targets = route.choose(row)
        if tup_id is None or init is None:
            emitter.deliver(route, row, targets, None)
            if tup_id is not None:
                stats.acked += 1
                acked(tup_id)  # "spout.ack(message id) is called inside emit, synchronously, before emit returns"
        else:
            root = getrandbits(64)
            until_sample -= 1
            if until_sample:
                pending.newest[root] = (tup_id, 0.0)
            else:
                until_sample = SAMPLE_EVERY
                pending.newest[root] = (tup_id, links.now())
            if len(targets) == 1 and route.captured is None:
                stats.emitted += 1
                stats.transferred += 1
                edge = getrandbits(64)
                init(root, edge, spout_task)
                tup = new(LocalTuple)
                tup.values = row
                tup.stream = route.stream
                tup.origin = route.origin
                tup.root = root
                tup.edge = edge
                tup.unfinished = True
                append((receivers[targets[0]], tup))
            else:
                emitter.deliver_root(route, row, targets, root)
        if need_task_ids or on_task_ids is not None:
            return emitter.answer(targets if direct_task is None else (direct_task,), need_task_ids, on_task_ids)
        return None

    return emit


def _spout_emit_many(
    emitter: TupleEmitter, acker: DirectAcker, pending: Pending
) -> Callable[[Iterable[Values], Iterable[Any], Route], None]:
    """Make a spout's emit of many tuples with message ids, which does what its emit does with each, in one loop."""
    links = emitter.links
    stats = emitter.stats
    getrandbits = links.getrandbits
    append = links.out.append
    receivers = links.receivers
    new = LocalTuple.__new__
    begun = acker.begun(emitter.plan.id)
    # Roots in a row are next to one another in the acker's dict, where random ones cost a miss of the processor's cache each.
    next_root = count(getrandbits(62) + 1).__next__

    def emit_many(rows: Iterable[Values], tup_ids: Iterable[Any], route: Route) -> None:
        choose: Any = route.choose
        width, stream, origin = route.width, route.stream, route.origin
        sent = 0  # the tuples with one target
        waiting, entries = pending.newest, acker.newest
        until_sample = 1
        try:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                row: Any = None
                try:
                    if len(values) == width:
                        row = normalize(values)
                except (TypeError, UnserializableValue):
                    pass  # the wire's end raises the error
                if row is None:
                    row, _ = emitter.checked(values, stream, None)
                kind = type(tup_id)  # what most ids are is not looked at by a call
                is_plain = (kind is int and MIN_INT <= tup_id <= MAX_INT) or (kind is str and tup_id.isascii())
                id = tup_id if is_plain else id_as_received(tup_id)
                targets = choose(row)
                root = next_root()
                until_sample -= 1
                if until_sample:
                    waiting[root] = (id, 0.0)
                else:
                    until_sample = SAMPLE_EVERY
                    waiting[root] = (id, links.now())
                if len(targets) != 1:
                    emitter.deliver_root(route, row, targets, root)
                    continue
                edge = getrandbits(64)
                entries[root] = edge | begun
                sent += 1
                tup = new(LocalTuple)
                tup.values = row
                tup.stream = stream
                tup.origin = origin
                tup.root = root
                tup.edge = edge
                tup.unfinished = True
                append((receivers[targets[0]], tup))
        finally:
            stats.emitted += sent
            stats.transferred += sent
            acker.received += sent

    return emit_many
