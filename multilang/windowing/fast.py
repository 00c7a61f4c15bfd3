"""The most frequent cases in one function per tuple: a call costs more than all that is done with a tuple here.

The other cases take a tuple through ``WindowTask.process``, with the same result.
"""

from __future__ import annotations

from operator import itemgetter

from multilang.windowing.aggregates import Count
from multilang.windowing.counted import CountWindows
from multilang.windowing.timed import TimeWindows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from multilang.protocol.messages import Tuple
    from multilang.windowing.aggregates import Aggregate
    from multilang.windowing.declared import DeclaredWindows
    from multilang.windowing.panes import Windows
    from multilang.windowing.settings import Settings
    from multilang.windowing.watermarks import Source, Watermarks

    class Task(Protocol):
        """The windows of a task, as far as they are needed here."""

        accept_from: int
        aggregate: Aggregate
        bolt: DeclaredWindows
        process: Callable[[Tuple], None]
        settings: Settings
        watermarks: Watermarks
        windows: Windows

        def now(self) -> float: ...
        def moment(self) -> int: ...
        def refuse(self, tup: Tuple, ts: int) -> None: ...
        def unassigned(self, tup: Tuple) -> None: ...


def fast_function(task: Task, otherwise: Callable[[Tuple], None]) -> Callable[[Any], None] | None:
    """Return a function that takes a tuple of this process into its windows; None if the settings ask for more.

    Args:
        task: The windows of a bolt without state.
        otherwise: Takes any tuple, such as one that came over a wire.
    """
    settings, windows = task.settings, task.windows
    if settings.id_field is not None or settings.early_count or settings.early_ms or settings.lateness_ms:
        return None
    if settings.has_event_time:
        if isinstance(windows, TimeWindows) and not task.bolt.has_own_timestamp():
            return _timed(task, windows, otherwise)
        return None
    return _counted(task, windows, otherwise) if isinstance(windows, CountWindows) else None


def _timed(task: Task, windows: TimeWindows, otherwise: Callable[[Tuple], None]) -> Callable[[Any], None]:
    field, keys = task.settings.timestamp_field, task.settings.key_by
    lines, step, opened, unassigned = windows.lines, windows.step, windows.opened, task.unassigned
    add, counts = task.aggregate.add, type(task.aggregate) is Count
    sources: dict[Any, tuple[Source, int, Callable[[Any], Any]]] = {}
    sender: Any = None  # of the last tuple: a task with one of its streams
    source: Any = None
    at = 0
    key_of: Callable[[Any], Any] = _none

    def process(tup: Any) -> None:
        nonlocal sender, source, at, key_of
        try:
            origin = tup.origin
        except AttributeError:  # it came over a wire, and so will the others
            task.process = otherwise
            otherwise(tup)
            return
        if origin is not sender:
            found = sources.get(origin)
            if found is None:
                if any(name not in origin.index for name in (field, *(keys or ()))):
                    otherwise(tup)  # which says what is missing
                    return
                met = task.watermarks.source(origin.component, origin.stream, origin.task, task.now())
                found = sources[origin] = met, origin.index[field], _key_of(origin.index, keys)
            sender = origin
            source, at, key_of = found
        values = tup.values
        ts = values[at]
        if type(ts) is not int:
            otherwise(tup)
            return
        key = key_of(values)
        slot = -(-ts // step) * step
        try:
            line = lines.get(key)
        except TypeError:
            otherwise(tup)  # the key is a list or an object
            return
        source.heard = True
        if source.greatest is None or ts > source.greatest:
            source.greatest = ts
        if ts < task.accept_from:
            task.refuse(tup, ts)
            return
        pane = None if line is None else line.get(slot)
        if pane is None:
            pane = opened(key, slot)
            if pane is None:
                unassigned(tup)
                return
        if counts:
            pane.accumulator += 1
        else:
            pane.accumulator = add(pane.accumulator, tup)
        pane.count += 1
        pane.held.append(tup)

    return process


def _counted(task: Task, windows: CountWindows, otherwise: Callable[[Tuple], None]) -> Callable[[Any], None]:
    keys = task.settings.key_by
    lines, sums, slide, step, opened = windows.lines, windows.counts(), windows.slide, windows.step, windows.opened
    add, counts = task.aggregate.add, type(task.aggregate) is Count
    senders: dict[Any, Callable[[Any], Any]] = {}
    sender: Any = None
    key_of: Callable[[Any], Any] = _none

    def process(tup: Any) -> None:
        nonlocal sender, key_of
        try:
            origin = tup.origin
        except AttributeError:  # it came over a wire, and so will the others
            task.process = otherwise
            otherwise(tup)
            return
        if origin is not sender:
            found = senders.get(origin)
            if found is None:
                if any(name not in origin.index for name in keys or ()):
                    otherwise(tup)
                    return
                found = senders[origin] = _key_of(origin.index, keys)
            sender, key_of = origin, found
        key = key_of(tup.values)
        try:
            count = sums.get(key, 0) + 1
        except TypeError:
            otherwise(tup)
            return
        sums[key] = count
        slot = -(-count // step) * step
        line = lines.get(key)
        pane = None if line is None else line.get(slot)
        if pane is None:
            pane = opened(key, slot)
            if pane is None:
                task.unassigned(tup)
                return
        if counts:
            pane.accumulator += 1
        else:
            pane.accumulator = add(pane.accumulator, tup)
        pane.count += 1
        pane.held.append(tup)
        if not count % slide:
            windows.fire(key, count, task.moment())

    return process


def _none(_: Any) -> None:
    """Return the key of all tuples of a bolt whose windows are those of the task."""


def _key_of(index: dict[str, int], keys: tuple[str, ...] | None) -> Callable[[Any], Any]:
    return _none if keys is None else itemgetter(*[index[name] for name in keys])
