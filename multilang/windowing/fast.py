"""The most frequent cases in one function per tuple: a call costs more than all that is done with a tuple here.

The other cases take a tuple through ``WindowTask.process``, with the same result.
"""

from __future__ import annotations

from operator import itemgetter

from multilang.windowing.aggregates import Count
from multilang.windowing.counted import CountWindows
from multilang.windowing.keys import PLAIN, inner
from multilang.windowing.settings import NO_DATA
from multilang.windowing.timed import Slice, TimeWindows
from multilang.windowing.watermarks import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from multilang.component.collector import BoltCollector
    from multilang.protocol.messages import Tuple
    from multilang.windowing.aggregates import Aggregate
    from multilang.windowing.declared import DeclaredWindows
    from multilang.windowing.panes import Windows
    from multilang.windowing.settings import Settings
    from multilang.windowing.watermarks import Watermarks

    class Task(Protocol):
        """The windows of a task, as far as they are needed here."""

        accept_from: int
        aggregate: Aggregate
        bolt: DeclaredWindows
        settings: Settings
        watermarks: Watermarks
        windows: Windows

        def now(self) -> float: ...
        def moment(self) -> int: ...
        def unassigned(self, tup: Tuple) -> None: ...


def fast_functions(
    task: Task, otherwise: Callable[[Tuple], None], collector: BoltCollector
) -> tuple[Callable[[Any], None], Callable[[Iterator[Any]], None]] | None:
    """Return the functions that take a tuple, and tuples in a row, into the windows; None if the settings ask for more.

    Of tuples in a row, which nobody else sees, only the numbers may be kept that their acks need: plain numbers are no
    work for the garbage collector.

    Args:
        task: The windows of a bolt without state.
        otherwise: Takes any tuple.
        collector: The task's collector.
    """
    settings, windows, kind = task.settings, task.windows, collector.numbered
    if kind is None:
        return None
    if settings.id_field is not None or settings.early_count or settings.early_ms or settings.lateness_ms:
        return None
    if settings.memory_limit is not None:
        return None
    take: Callable[[Iterable[Any], bool], None]
    if settings.has_event_time:
        if not isinstance(windows, TimeWindows) or task.bolt.has_own_timestamp():
            return None
        take = _timed(task, windows, otherwise)
    elif isinstance(windows, CountWindows):
        take = _counted(task, windows, otherwise)
    else:
        return None

    numbers = _only_numbers(task)

    def process(tup: Any) -> None:
        if type(tup) is kind:
            take((tup,), False)
        else:  # somebody made it
            otherwise(tup)

    def take_run(tups: Iterator[Any]) -> None:
        take(tups, numbers)

    return process, take_run


def _timed(  # noqa: C901  # one body, since each call from here costs a share of the rate
    task: Task, windows: TimeWindows, otherwise: Callable[[Tuple], None]
) -> Callable[[Iterable[Any], bool], None]:
    field, keys = task.settings.timestamp_field, task.settings.key_by
    step, find, slice_of, unassigned = windows.step, windows.find, windows.slice_of, task.unassigned
    add, counts, plain = task.aggregate.add, type(task.aggregate) is Count, PLAIN
    sources: dict[Any, tuple[Source, int, Callable[[Any], Any]]] = {}
    sender: Any = None  # of the last tuple: a task with one of its streams
    source: Any = Source(0.0)
    at = 0
    key_of: Callable[[Any], Any] = _none
    part = Slice()  # that of the last tuple, of the times after ``low`` until ``high``
    panes: dict[Any, Any] = part.panes
    low = high = 0
    # With this policy nobody asks which tuples a window has, so that those of all keys are kept in one list.
    together = task.settings.anchor == "none"

    def take(tups: Iterable[Any], numbers: bool) -> None:  # noqa: C901
        nonlocal sender, source, at, key_of, part, panes, low, high
        accept_from = task.accept_from
        keep, own = part.kept.append, part.owners.append
        pane: Any
        source.heard = True
        for tup in tups:
            origin = tup.origin
            if origin is not sender:
                found = sources.get(origin)
                if found is None:
                    if origin.stream.startswith(NO_DATA) or any(
                        name not in origin.index for name in (field, *(keys or ()))
                    ):
                        otherwise(tup)  # which says what is missing
                        continue
                    met = task.watermarks.source(origin.component, origin.stream, origin.task, task.now())
                    found = sources[origin] = met, origin.index[field], _key_of(origin.index, keys)
                sender = origin
                source, at, key_of = found
                source.heard = True
            values = tup.values
            ts = values[at]
            if type(ts) is not int or ts < accept_from:
                otherwise(tup)  # which refuses it
                continue
            if not low < ts <= high:
                high = -(-ts // step) * step
                low = high - step
                part = slice_of(high)
                panes, keep, own = part.panes, part.kept.append, part.owners.append
            key = key_of(values)
            if type(key) is not str and type(key) not in plain:
                key = inner(key)
            try:
                pane = panes.get(key)
            except TypeError:
                otherwise(tup)  # the key is a list or an object
                continue
            greatest = source.greatest
            if greatest is None or ts > greatest:
                source.greatest = ts
            if pane is None:
                pane = find(key, high)
                if pane is None:
                    unassigned(tup)
                    continue
                panes[key] = pane
                if not together and pane.kept is None:
                    pane.kept = []
            if counts:
                pane.accumulator += 1
            else:
                pane.accumulator = add(pane.accumulator, tup)
            pane.count += 1
            root = tup.root
            if not (numbers and root):
                pane.held.append(tup)
            elif together:
                keep(root)
                keep(tup.edge)
                own(pane)
            else:
                keep_one = pane.kept.append
                keep_one(root)
                keep_one(tup.edge)

    return take


def _counted(
    task: Task, windows: CountWindows, otherwise: Callable[[Tuple], None]
) -> Callable[[Iterable[Any], bool], None]:
    keys = task.settings.key_by
    lines, sums, slide, step, opened = windows.lines, windows.counts(), windows.slide, windows.step, windows.opened
    add, counts = task.aggregate.add, type(task.aggregate) is Count
    senders: dict[Any, Callable[[Any], Any]] = {}
    sender: Any = None
    key_of: Callable[[Any], Any] = _none

    def take(tups: Iterable[Any], numbers: bool) -> None:
        nonlocal sender, key_of
        for tup in tups:
            origin = tup.origin
            if origin is not sender:
                found = senders.get(origin)
                if found is None:
                    if any(name not in origin.index for name in keys or ()):
                        otherwise(tup)
                        continue
                    found = senders[origin] = _key_of(origin.index, keys)
                sender, key_of = origin, found
            key = key_of(tup.values)
            if type(key) not in PLAIN:
                key = inner(key)
            try:
                count = sums.get(key, 0) + 1
            except TypeError:
                otherwise(tup)
                continue
            slot = count if step == 1 else -(-count // step) * step
            line = lines.get(key)
            pane = None if line is None else line.get(slot)
            if pane is None:
                pane = opened(key, slot)
                if pane is None:
                    sums[key] = count
                    task.unassigned(tup)
                    continue
            if counts:
                pane.accumulator += 1
            else:
                pane.accumulator = add(pane.accumulator, tup)
            sums[key] = count  # not earlier: one that failed is no tuple of a window
            pane.count += 1
            root = tup.root
            if numbers and root:
                kept = pane.kept
                if kept is None:
                    kept = pane.kept = []
                kept.append(root)
                kept.append(tup.edge)
            else:
                pane.held.append(tup)
            if not count % slide:
                windows.fire(key, count, task.moment())

    return take


def _only_numbers(task: Task) -> bool:
    """Return whether nobody sees a tuple again. An aggregate of somebody's own may keep it, or ask it for its id."""
    return type(task.aggregate).__module__ == Count.__module__


def _none(_: Any) -> None:
    """Return the key of all tuples of a bolt whose windows are those of the task."""


def _key_of(index: dict[str, int], keys: tuple[str, ...] | None) -> Callable[[Any], Any]:
    return _none if keys is None else itemgetter(*[index[name] for name in keys])
