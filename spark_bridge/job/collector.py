"""The collector of a bolt that runs in a Spark task.

As in the embedded cluster, ``emit``, ``ack`` and ``fail`` are closures over everything they need. What looks wrong is
given to the child's end of the wire, which raises the same error as in a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.collector import many_anchored
from multilang.protocol.codec import MAX_INT, MIN_INT
from multilang.protocol.messages import DEFAULT_STREAM
from multilang.runtime.collectors import LocalBoltCollector, TupleEmitter
from spark_bridge.job.tuples import SparkTuple, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from multilang.component.collector import Anchors, Emit, EmitMany, OnTaskIds, Scope, Settle
    from multilang.protocol.messages import Values
    from multilang.runtime.counters import TaskStats
    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from spark_bridge.job.routes import SparkRoute


class SparkBoltCollector(LocalBoltCollector):
    """The collector of a bolt in a Spark task. ``failed`` gets the roots of the tuples that the bolt fails."""

    def __init__(self, plan: TaskPlan, links: Links, stats: TaskStats, failed: set[int]) -> None:
        super().__init__(plan, links, stats)
        self.emit = _emit(self.scope, self._emitter, automatic=False)
        self.emit_anchored = _emit(self.scope, self._emitter, automatic=True)
        self.emit_many = _emit_many(self._emitter, self.emit)
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.ack = _ack(self._emitter)
        self.fail = _fail(self._emitter, failed)


def _emit(  # noqa: C901  # one function, as each further call would cost a share of the rate
    scope: Scope, emitter: TupleEmitter, automatic: bool
) -> Emit:
    """Return a bolt's emit. ``automatic``: anchor to the scope's anchors unless anchors are given."""
    stats = emitter.stats
    routes: dict[str, SparkRoute] = emitter.routes  # type: ignore[assignment]
    default = routes.get(DEFAULT_STREAM)
    places = None if default is None else default.places
    # If nobody reads the default stream, its tuples are only checked, counted, and kept if the stream is an output.
    width = -1 if default is None or default.boxes or default.choose else default.width
    keep = None if default is None or default.output is None else default.output.keep

    def emit(  # noqa: C901
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        if automatic and anchors is None:
            anchors = scope.anchors
        root: Any = 0
        if anchors:
            anchor: Any = anchors[0]
            root = anchor.root if len(anchors) == 1 and type(anchor) is SparkTuple and anchor.unfinished else None
        kind = type(values)
        if (
            places is not None
            and stream is None
            and direct_task is None
            and root is not None
            and (kind is list or kind is tuple)
            and len(values) == 1
            and type(values[0]) is str
            and not need_task_ids
            and on_task_ids is None
        ):
            place = places.get(values[0])
            if place is not None:
                place[1](place[0])
                place[2](root)
                return None
        elif (
            stream is None
            and direct_task is None
            and root is not None
            and (kind is list or kind is tuple)
            and len(values) == width
            and not need_task_ids
            and on_task_ids is None
        ):
            for value in values:
                kind = type(value)
                if not ((kind is str and value.isascii()) or (kind is int and MIN_INT <= value <= MAX_INT)):
                    break
            else:
                stats.emitted += 1
                if keep is not None:
                    keep([*values])
                return None
            kind = type(values)
        route = default if stream is None else routes.get(stream)
        if (
            route is None
            or direct_task is not None
            or (kind is not list and kind is not tuple)
            or len(values) != route.width
        ):
            values, route = emitter.refuse(values, stream, direct_task)  # type: ignore[assignment]
        else:
            for value in values:
                kind = type(value)
                if kind is str:
                    if value.isascii():
                        continue
                elif kind is int and MIN_INT <= value <= MAX_INT:
                    continue
                values = emitter.checked(values, stream)
                break
            else:
                values = [*values]
        if root is None:
            root = joined(emitter.live(anchors, values, stream, direct_task))
        targets: Sequence[int]
        if direct_task is not None:
            targets = route.targets(values, direct_task)  # type: ignore[union-attr]
        elif route.choose is None:  # type: ignore[union-attr]
            targets = ()
        else:
            targets = route.choose(values)  # type: ignore[union-attr]
        stats.emitted += 1
        stats.transferred += len(targets)
        if targets or route.output is not None:  # type: ignore[union-attr]
            route.give(values, targets, root)  # type: ignore[union-attr]
        if need_task_ids or on_task_ids is not None:
            return emitter.answer(targets if direct_task is None else (direct_task,), need_task_ids, on_task_ids)
        return None

    return emit


def _emit_many(emitter: TupleEmitter, emit: Emit) -> EmitMany:
    """Return a bolt's emit_many: its emit for each row, without the call for the most frequent kind."""
    default: SparkRoute | None = emitter.routes.get(DEFAULT_STREAM)  # type: ignore[assignment]
    places = None if default is None else default.places

    def emit_many(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        root: Any = 0
        if anchors:
            anchor: Any = anchors[0]
            root = anchor.root if len(anchors) == 1 and type(anchor) is SparkTuple and anchor.unfinished else None
        if places is None or stream is not None or root is None:
            for values in rows:
                emit(values, stream, anchors)
            return
        find = places.get
        for values in rows:
            kind = type(values)
            if (kind is list or kind is tuple) and len(values) == 1 and type(values[0]) is str:
                place = find(values[0])
                if place is not None:
                    word, add_row, add_root = place
                    add_row(word)
                    add_root(root)
                    continue
            emit(values, None, anchors)

    return emit_many


def _ack(emitter: TupleEmitter) -> Settle:
    """Return a bolt's ack. Acks are counted at the end, as all tuples that neither failed nor are left."""
    named = emitter.links.named

    def ack(tup: Any) -> None:
        if type(tup) is not SparkTuple or not tup.unfinished:
            tup = emitter.received(tup, "ack")
        tup.unfinished = False
        if named:
            named.pop(tup.id, None)

    return ack


def _fail(emitter: TupleEmitter, failed: set[int]) -> Settle:
    """Return a bolt's fail."""
    stats = emitter.stats
    named = emitter.links.named

    def fail(tup: Any) -> None:
        tup = emitter.received(tup, "fail")
        tup.unfinished = False
        stats.failed += 1
        note(failed, tup.root)
        if named:
            named.pop(tup.id, None)

    return fail


def note(failed: set[int], root: Any) -> None:
    """Add the roots of a failed tuple to ``failed``."""
    if type(root) is not int:
        failed.update(root)
    elif root:
        failed.add(root)
