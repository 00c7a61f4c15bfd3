"""A collector that counts, for each id, the tuples that go to each task."""

from __future__ import annotations

from multilang.component.collector import one_by_one
from multilang.component.filters import BoltFilter
from multilang.coordination.names import COORD_STREAM
from multilang.protocol.messages import DEFAULT_STREAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.collector import Anchors, BoltCollector, Emit, EmitMany
    from multilang.component.context import Context
    from multilang.coordination.tracking import Tracked
    from multilang.protocol.messages import Values

_ASK: tuple[int, ...] = (-1,)  # the tasks that a tuple goes to, when only the parent knows them


class Counting:
    """Makes a counting collector of a collector.

    If task ids have to be awaited, an emit asks for them only when they are not known beforehand: they are for a single
    task, or for all tasks. A stream that leads to no coordinated bolt is not counted at all.
    """

    def __init__(
        self,
        tracked: Tracked,
        lock: Any,
        context: Context,
        untracked: Callable[[Sequence[Any]], object] | None = None,
    ) -> None:
        self._untracked = untracked  # called for an emit with an id that is unknown here, which would be lost
        self._tracked = tracked
        self._lock = lock
        self._targets = frozenset(
            task for target in context.targets.get(COORD_STREAM, {}) for task in context.tasks(target)
        )
        self._ways = _ways(context)

    def around(self, collector: BoltCollector) -> BoltCollector:
        """Return a collector that counts what is emitted, and emits it by ``collector``."""
        counting = self._at_once if collector.knows_tasks else self._emit
        emit = counting(collector.emit)
        return BoltFilter(
            collector,
            emit=emit,
            emit_anchored=counting(collector.emit_anchored),
            emit_many=self._emit_many(emit, collector.emit_many),
        )

    def _emit(self, emit: Emit) -> Emit:
        get, ways, lock, targets = self._tracked.get, self._ways, self._lock, self._targets
        untracked = self._untracked

        def counted(
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: Callable[[list[int]], None] | None = None,
        ) -> list[int] | None:
            way = ways.get(stream)
            if way is None:
                return emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)
            try:
                info = get(values[0])
            except (IndexError, KeyError, TypeError):
                info = None  # it can't be an id; ``emit`` raises the reason
            if info is None:
                if untracked is not None and untracked(values):
                    return []
                return emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)
            if way is not _ASK or direct_task is not None:
                tasks = emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)
                with lock:
                    if direct_task is None:
                        info.sent(way)
                    elif direct_task in targets:
                        info.sent((direct_task,))
                return tasks
            with lock:
                info.asked += 1
            answered = info.answered if on_task_ids is None else _both(info.answered, on_task_ids)
            try:
                return emit(values, stream, anchors, None, need_task_ids, answered)
            except BaseException:
                with lock:
                    info.asked -= 1
                raise

        return counted

    def _at_once(self, emit: Emit) -> Emit:
        """Return a counting emit for a collector that waits for nothing and is called by one thread only."""
        get, ways, untracked = self._tracked.get, self._ways, self._untracked

        def counted(
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: Callable[[list[int]], None] | None = None,
        ) -> list[int] | None:
            info = None
            if stream in ways:
                try:
                    info = get(values[0])
                except (LookupError, TypeError):
                    pass  # it can't be an id
                if info is None and untracked is not None and untracked(values):
                    return []
            tasks: Any = emit(values, stream, anchors, direct_task, True, on_task_ids)
            if info is not None:
                counts = info.counts
                for task in tasks:
                    try:
                        counts[task] += 1
                    except KeyError:
                        counts[task] = 1
            return tasks if need_task_ids else None

        return counted

    def _emit_many(self, counted: Emit, emit_many: EmitMany) -> EmitMany:
        ways, count_each = self._ways, one_by_one(counted)

        def many(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
            (emit_many if ways.get(stream) is None else count_each)(rows, stream, anchors)

        return many


def _both(first: Callable[[list[int]], None], second: Callable[[list[int]], None]) -> Callable[[list[int]], None]:
    def both(tasks: list[int]) -> None:
        first(tasks)
        second(tasks)

    return both


def _ways(context: Context) -> dict[str | None, tuple[int, ...]]:
    """Return the streams that lead to coordinated bolts, with the tasks of each tuple as far as they are known."""
    targets = context.targets
    coordinated = targets.get(COORD_STREAM, {})
    ways: dict[str | None, tuple[int, ...]] = {}
    for stream, subscribers in targets.items():
        known = [
            _known(grouping, context.tasks(component))
            for component, grouping in subscribers.items()
            if component in coordinated
        ]
        if stream != COORD_STREAM and known:
            ways[stream] = _ASK if _ASK in known else tuple(task for tasks in known for task in tasks)
    if DEFAULT_STREAM in ways:
        ways[None] = ways[DEFAULT_STREAM]
    return ways


def _known(grouping: dict[str, Any], tasks: list[int]) -> tuple[int, ...]:
    kind = grouping.get("type")
    if kind == "ALL" or len(tasks) == 1:
        return tuple(tasks)
    if kind == "DIRECT":
        return ()  # each emit names the task
    return _ASK
