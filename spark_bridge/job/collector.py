"""The collector of a bolt that runs in a Spark task.

``emit``, ``ack`` and ``fail`` are closures over everything that they need, one set for each task, since they are called
several times per tuple, and a component's own ``emit`` *is* such a closure. What looks wrong is given to the child's end
of the wire, which raises the same error as in a process of its own.
"""

from __future__ import annotations

import logging
from random import Random
from time import monotonic
from typing import TYPE_CHECKING

from multilang.component.collector import BoltCollector, many_anchored
from multilang.engine.emitter import TupleEmitter
from multilang.engine.links import LinkedCollector, Links
from multilang.engine.task import Later
from multilang.protocol.codec import normalize
from multilang.protocol.errors import UnserializableValue
from multilang.protocol.messages import DEFAULT_STREAM
from spark_bridge.job.routes import SparkTuple, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.component.collector import Anchors, Emit, EmitMany, OnTaskIds, Settle
    from multilang.component.timers import Scope
    from multilang.engine.counters import TaskStats
    from multilang.engine.plan import TaskPlan
    from multilang.engine.tuples import LocalTuple
    from multilang.protocol.messages import Tuple, Values
    from spark_bridge.job.routes import SparkRoute

_LEVELS = (5, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)  # by Storm's number, 0 is trace


class SparkBoltCollector(LinkedCollector, BoltCollector):
    """The collector of a bolt in a Spark task. ``failed`` gets the roots of the tuples that the bolt fails."""

    def __init__(self, plan: TaskPlan, links: Links, stats: TaskStats, failed: set[int]) -> None:
        super().__init__(plan, links)
        self._emitter = emitter = TupleEmitter(plan, links, stats)
        self.emit = _emit(self.scope, emitter, automatic=False)
        self.emit_anchored = _emit(self.scope, emitter, automatic=True)
        self.emit_many = _emit_many(emitter, self.emit)
        self.emit_many_anchored = many_anchored(self.emit_many, self.scope)
        self.ack = _ack(emitter)
        self.fail = _fail(emitter, failed)

    def received(self, tup: Tuple | str) -> Tuple:
        return self._emitter.received(tup, "ack")


def _emit(  # noqa: C901  # one function, as each further call would cost a share of the rate
    scope: Scope, emitter: TupleEmitter, automatic: bool
) -> Emit:
    """Return a bolt's emit. ``automatic``: anchor to the scope's anchors unless anchors are given."""
    stats = emitter.stats
    routes: dict[str, SparkRoute] = emitter.routes  # type: ignore[assignment]
    default = routes.get(DEFAULT_STREAM)
    find = None if default is None or default.places is None else default.places.get
    otherwise = _any_emit(emitter)

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
        kind: type = type(anchors)
        if kind is list or kind is tuple:
            if anchors:
                anchor: Any = anchors[0]
                root = anchor.root if len(anchors) == 1 and type(anchor) is SparkTuple and anchor.unfinished else None
        elif anchors is not None:
            root = None
        if root is not None and direct_task is None and not need_task_ids and on_task_ids is None:
            row = None
            try:
                if stream is None:
                    if find is not None and ((kind := type(values)) is list or kind is tuple) and len(values) == 1:
                        place = find(values[0])
                        if place is not None:
                            place[1](place[0])
                            place[2](root)
                            return None
                    route = default
                else:
                    route = routes.get(stream)
                if route is not None and len(values) == route.width:
                    row = normalize(values)
            except (TypeError, UnserializableValue):
                pass  # checked() raises the error
            if row is not None:
                choose = route.choose  # type: ignore[union-attr]
                if choose is None:
                    stats.emitted += 1
                    if route.output is not None:  # type: ignore[union-attr]
                        route.output.keep(row)  # type: ignore[union-attr]
                    return None
                targets = choose(row)
                stats.emitted += 1
                stats.transferred += len(targets)
                if targets or route.output is not None:  # type: ignore[union-attr]
                    route.give(row, targets, root)  # type: ignore[union-attr]
                return None
        return otherwise(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    return emit


def _any_emit(emitter: TupleEmitter) -> Emit:
    """Return an emit that takes everything: direct emits, several anchors, wishes for task ids, and what is wrong."""
    stats = emitter.stats

    def emit(
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: OnTaskIds | None = None,
    ) -> list[int] | None:
        row, checked = emitter.checked(values, stream, direct_task)
        route: SparkRoute = checked  # type: ignore[assignment]
        root: Any = 0
        if anchors or not isinstance(anchors, list | tuple | None):
            root = joined(emitter.live(anchors, row, stream, direct_task))
        targets = route.targets(row, direct_task)
        stats.emitted += 1
        stats.transferred += len(targets)
        if targets or route.output is not None:
            route.give(row, targets, root)
        return emitter.answer(targets if direct_task is None else (direct_task,), need_task_ids, on_task_ids)

    return emit


def _emit_many(emitter: TupleEmitter, emit: Emit) -> EmitMany:
    """Return a bolt's emit_many: its emit for each row, without the call for the most frequent kind."""
    default: SparkRoute | None = emitter.routes.get(DEFAULT_STREAM)  # type: ignore[assignment]
    places = None if default is None else default.places

    def emit_many(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        root: Any = 0
        kind: type = type(anchors)
        if (kind is list or kind is tuple) and anchors:
            anchor: Any = anchors[0]
            root = anchor.root if len(anchors) == 1 and type(anchor) is SparkTuple and anchor.unfinished else None
        elif anchors is not None and kind is not list and kind is not tuple:
            root = None
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


def links_of(
    report: Callable[[TaskPlan, str], None], out: list[tuple[Any, Any]], named: dict[str, LocalTuple]
) -> Links:
    """Return the links of tasks on Spark. There are no ackers: a stage has read all of its input when it ends."""

    def nothing(*_: object) -> None:
        pass

    def log(plan: TaskPlan, message: str, level: int) -> None:
        logging.getLogger(plan.component).log(_LEVELS[level], "%s", message, extra={"task": plan.id})

    def metric(plan: TaskPlan, name: str, params: Any) -> None:
        logging.getLogger(plan.component).debug("metric %s: %r", name, params, extra={"task": plan.id})

    return Links(
        out=out,
        receivers={},
        init=None,
        ack=nothing,
        fail=nothing,
        later=Later,
        named=named,
        getrandbits=Random(0).getrandbits,
        now=monotonic,
        log=log,
        report=report,
        metric=metric,
    )
