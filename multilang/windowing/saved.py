"""The windows of a stateful bolt's task: they are part of its checkpoints, so that tuples are acked early."""

from __future__ import annotations

from itertools import takewhile

from multilang.protocol.messages import Tuple
from multilang.store.errors import UnusableStateError
from multilang.windowing.keys import from_json, from_text, outer, to_text
from multilang.windowing.ordered import Ordered
from multilang.windowing.panes import ON_TIME, Pane, Waiting
from multilang.windowing.specs import Sliding, Tumbling
from multilang.windowing.task import WindowTask
from multilang.windowing.watermarks import BEFORE_ALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Schema
    from multilang.state.api import KeyValueState
    from multilang.windowing.batches import Batch
    from multilang.windowing.declared import DeclaredWindows
    from multilang.windowing.panes import DroppedPane, Due, Key, Windows
    from multilang.windowing.replays import Id
    from multilang.windowing.settings import Settings

# The first parts of the keys in the state: of panes, of counts, of tuples that wait for earlier ones, of message ids of tuples that
# expired, and of the rest.
PANE = "$window"
COUNT = "$window.count"
WAITING = "$window.waiting"
EXPIRED = "$window.expired.ids"
TASK = ("$window.task",)

_REMEMBERED = 3  # message timeouts for which the ids of tuples are known after their windows
_SET_BACK_MS = 1000  # a clock that differs by less causes no warning


class SavedTask(WindowTask):
    """The windows of a started bolt with state.

    A checkpoint writes the panes that changed since the one before. Whole tuples are written in chunks: those that
    arrived since the last checkpoint.
    """

    _acks_at_once = True

    def __init__(
        self,
        bolt: DeclaredWindows,
        settings: Settings,
        collector: BoltCollector,
        context: Context,
        batch: Batch | None = None,
    ) -> None:
        self._dirty: dict[tuple[Key, int], Pane] = {}
        self._clean: dict[tuple[Key, int], Pane] = {}  # those in memory that the state has, if they may be spilled
        self._counted: dict[Key, None] = {}
        self._new_waiting: dict[int, Waiting] = {}
        self._new_expired: list[Id] = []
        self._saved_expired: dict[int, int] = {}  # the numbers of those that the state has, and their times
        self._state: KeyValueState[Any, Any] | None = None
        self._is_stale = False
        self._failed: Exception | None = None
        self._saved_task: dict[str, Any] | None = None
        super().__init__(bolt, settings, collector, context, batch)
        self._tuples = _SavedTuples(context)
        self._form = _form_of(settings, self.windows)
        self._declared = _declaration_of(settings)
        self.windows.follow_counts(self._counted)
        self.process = self._first

    def _first(self, tup: Tuple) -> None:
        """Process a tuple after a rollback, or the first one."""
        self._refresh()
        self.process = self.process_function()
        self.process(tup)

    def _refresh(self) -> None:
        if self._state is None:
            raise TypeError(
                f"{self.settings.who}: init_state of {type(self.bolt).__name__} does not call super().init_state(state), so that its windows "
                "have no state"
            )
        if self._is_stale:
            self.load(self._state)

    # ---- overrides ----

    def _put_function(self) -> Callable[[Key, int, Pane, Tuple], None]:
        put, dirty, clean = super()._put_function(), self._dirty, self._clean
        needs_all = not self._keeps_tuples

        def put_and_mark(key: Key, slot: int, pane: Pane, tup: Tuple) -> None:
            if pane.spilled and needs_all:
                self._fetch(key, pane)
            put(key, slot, pane, tup)
            if not pane.dirty:
                pane.dirty = True
                pane.slot = slot
                dirty[key, slot] = pane
                if clean:
                    clean.pop((key, slot), None)

        return put_and_mark

    def _check_kind(self, key: Key, slot: int, pane: Pane, accumulator: Any) -> None:
        last = self._last_panes.get(key)
        if last is not None and last[1].spilled:
            self._fetch(key, last[1])
        super()._check_kind(key, slot, pane, accumulator)

    # ---- spilled panes ----

    def free_memory(self, limit: int) -> None:
        if not self.settings.spills:
            super().free_memory(limit)
        for pane in self._clean.values():
            if self._keeps_tuples:
                self.in_memory -= len(pane.accumulator)
                pane.spilled += len(pane.accumulator)
                pane.accumulator = []
            elif not pane.spilled:
                self.in_memory -= 1
                pane.spilled = 1
                pane.accumulator = None
        self._clean.clear()

    def _fetch(self, key: Key, pane: Pane) -> None:
        """Read the spilled part of a pane from the state."""
        state: Any = self._state
        text = to_text(key)
        if self._keeps_tuples:
            chunks = [state.get((PANE, text, pane.slot, begin)) for begin in sorted(pane.chunks or ())]
            before = [tup for chunk in chunks for tup in self._tuples.load(chunk[0])][: pane.spilled]
            pane.accumulator = before + pane.accumulator
            self.in_memory += len(before)
        else:
            pane.accumulator = self.aggregate.load(state.get((PANE, text, pane.slot, 0))[0])
            self.in_memory += 1
        pane.spilled = 0
        if not pane.dirty and self.settings.spills:
            self._clean[key, pane.slot] = pane

    def check_merge(self, key: Key, panes: Sequence[Pane], tup: Tuple) -> None:
        for pane in panes:
            if pane.spilled:
                self._fetch(key, pane)
        super().check_merge(key, panes, tup)

    def merge(self, key: Key, first: Pane, second: Pane) -> None:
        for pane in (first, second):
            if pane.spilled:
                self._fetch(key, pane)
        super().merge(key, first, second)

    def show_again(self, key: Key, pane: Pane) -> None:
        if pane.spilled:
            self._fetch(key, pane)
        super().show_again(key, pane)

    def taken(self, tup: Tuple) -> None:
        if tup.unfinished:
            self._collector.ack(tup)

    def anchors(self, panes: Sequence[Pane], new: Sequence[Pane]) -> Sequence[Tuple]:
        return ()

    def no_expired(self) -> str:
        return "window.expired is not kept by a StatefulWindowedBolt; use window.tuples, or an aggregate"

    def fire_all(self, bounds: tuple[int | None, int], timing: str, at: int, due: Iterable[Due]) -> None:
        try:
            super().fire_all(bounds, timing, at, self._in_memory(due, timing))
        except Exception as error:
            self._failed = error
            raise

    def _in_memory(self, due: Iterable[Due], timing: str) -> Iterator[Due]:
        """Yield windows with all of their panes in memory, and note the changes by the evaluation."""
        settings = self.settings
        changes = timing != ON_TIME or not settings.accumulating or settings.lateness_ms
        for each in due:
            key, panes, *_ = each
            for pane in panes:
                if pane.spilled:
                    self._fetch(key, pane)
            yield each
            if changes:
                for pane in panes if not settings.accumulating else panes[:1]:  # the first one has the window's number
                    pane.dirty = True
                    self._dirty[key, pane.slot] = pane
                    self._clean.pop((key, pane.slot), None)
                    if not settings.accumulating:  # it was emptied
                        self._forget(key, pane.slot, pane)
                        pane.fresh_from = 0

    def drop_all(self, dropped: Sequence[DroppedPane], seen: bool = True) -> None:
        for _, _, pane in dropped:
            pane.held.clear()
        super().drop_all(dropped, seen)
        for key, slot, pane in dropped:
            self._dirty.pop((key, slot), None)
            self._clean.pop((key, slot), None)
            self._forget(key, slot, pane)
            if pane.ids:
                self._expire(pane.ids)

    def unassigned(self, tup: Tuple) -> None:
        super().unassigned(tup)
        if self._replays is not None:
            self._expire([self._replays.id_of(tup)])

    def _expire(self, ids: Iterable[Id]) -> None:
        """Store the ids of tuples that are in the state and in no window, so that replays are not counted again."""
        if self._replays is not None:
            self._replays.expired.update(dict.fromkeys(ids, self._time_of_day()))
            self._new_expired += ids

    def _time_of_day(self) -> int:
        return round(self._clock.time() * 1000)

    def waits(self, waiting: Waiting) -> None:
        super().waits(waiting)
        if not waiting.is_stored:
            self._new_waiting[waiting.slot] = waiting

    def released(self, waiting: Waiting) -> None:
        waiting.again.clear()
        super().released(waiting)
        self._new_waiting.pop(waiting.slot, None)
        if waiting.is_stored and self._state is not None:
            self._state.delete((WAITING, waiting.slot))

    def tick(self) -> None:
        self._refresh()
        super().tick()

    def end_batch(self, *, is_last: bool) -> None:
        self._refresh()
        super().end_batch(is_last=is_last)

    def _timer(self) -> None:
        self._refresh()
        super()._timer()

    def _fire_early(self) -> None:
        self._refresh()
        super()._fire_early()

    # ---- checkpoints ----

    def save(self) -> None:
        """Write the changes since the last checkpoint to the state."""
        self._refresh()
        state = self._state
        assert state is not None
        if self._failed is not None:
            raise RuntimeError(
                f"{self.settings.who}: its windows can't be saved, since process_window raised {self._failed!r}"
            ) from self._failed
        for (key, slot), pane in self._dirty.items():
            self._save_pane(state, key, slot, pane)
            pane.dirty = False
        if self.settings.memory_limit is not None and self.settings.spills:
            self._clean.update(self._dirty)
        self._dirty.clear()
        counts = self.windows.counts()
        for key in self._counted:
            state.put((COUNT, to_text(key)), counts[key])
        self._counted.clear()
        for slot, waiting in self._new_waiting.items():
            state.put((WAITING, slot), [outer(waiting.key), waiting.ts, self._tuples.save_one(waiting.tup)])
            waiting.is_stored = True
        self._new_waiting.clear()
        self._save_expired(state)
        task = {
            **self.watermarks.saved(),
            "origin": self._origin,
            "reached": self.windows.watermark,
            "form": self._form,
            "declared": self._declared,
        }
        if task != self._saved_task:
            state.put(TASK, task)
            self._saved_task = task

    def _save_expired(self, state: KeyValueState[Any, Any]) -> None:
        saved, now = self._saved_expired, self._time_of_day()
        if self._new_expired:
            number = max(saved, default=0) + 1
            saved[number] = now
            state.put((EXPIRED, number), [now, [(*place, outer(id)) for *place, id in self._new_expired]])
            self._new_expired = []
        before = now - _REMEMBERED * self.settings.timeout_secs * 1000
        for number in [number for number, at in saved.items() if at < before]:
            state.delete((EXPIRED, number))
            del saved[number]
        if self._replays is not None:
            expired = self._replays.expired
            for id in [id for id, at in takewhile(lambda item: item[1] < before, expired.items())]:
                del expired[id]

    def _save_pane(self, state: KeyValueState[Any, Any], key: Key, slot: int, pane: Pane) -> None:
        begin = 0
        if self._keeps_tuples:
            begin = pane.fresh_from
            saved = self._tuples.save(pane.accumulator[begin - pane.spilled :])
            pane.fresh_from = pane.spilled + len(pane.accumulator)
        else:
            saved = self.aggregate.save(pane.accumulator)
        ids = None
        if pane.ids is not None:
            # Tuples that were stored without id_field have none, so that those of the new ones are counted from the end.
            known = max(0, len(pane.ids) - len(saved)) if self._keeps_tuples else 0
            ids = [(*place, outer(id)) for *place, id in pane.ids[known:]]
        numbers = list((pane.numbers or {}).items())
        is_touched = (key, slot) in self._touched  # it has tuples that were in no early evaluation yet
        parts = [saved, pane.count, pane.first, pane.last, pane.fired, ids, numbers, is_touched]
        if pane.shown is not None:
            whole = pane.shown.accumulator
            parts += [self._tuples.save(whole) if self._keeps_tuples else self.aggregate.save(whole), pane.shown.count]
        try:
            state.put((PANE, to_text(key), slot, begin), parts)
        except ValueError as error:
            if self._keeps_tuples:
                raise
            name = type(self.aggregate).__name__
            raise ValueError(
                f"the aggregate {name} has an accumulator that no state can store: {error}. Define {name}.save(accumulator), which "
                "returns it as a value that JSON has, and load(saved), which returns the accumulator"
            ) from None
        if pane.chunks is None:
            pane.chunks = [begin]
        elif begin not in pane.chunks:
            pane.chunks.append(begin)

    def _forget(self, key: Key, slot: int, pane: Pane) -> None:
        state = self._state
        if pane.chunks and state is not None:
            text = to_text(key)
            for begin in pane.chunks:
                state.delete((PANE, text, slot, begin))
            pane.chunks = None

    def roll_back(self) -> None:
        """Discard uncommitted changes: the state is read again before anything else happens."""
        self._is_stale = True
        self.process = self._first

    def load(self, state: KeyValueState[Any, Any]) -> None:
        """Restore the windows from the state."""
        self._state = state
        self._is_stale = False
        self.process = self._first  # which asks for the function anew, since the windows are others
        self.start_anew()
        self._dirty.clear()
        self._clean.clear()
        self._counted.clear()
        self._new_waiting.clear()
        self._new_expired = []
        self._saved_expired = {}
        self.windows.follow_counts(self._counted)
        task = self._saved_task = state.get(TASK)
        now_of_day = self._time_of_day()
        if task is not None:
            self._origin = task["origin"]
            self._check_form(task["form"], task["declared"])
            since = now_of_day - self._origin
            if not self.settings.has_event_time and since < task["reached"]:
                if task["reached"] - since > _SET_BACK_MS:
                    self.bolt.log(
                        f"the clock was set back since the last checkpoint, by {task['reached'] - since} ms or more: windows resume "
                        "from where they were, so that none is evaluated twice",
                        "warn",
                    )
                since = task["reached"]
            self._began = self._monotonic() - since / 1000
            self.watermarks.restore(task, self.now(), self._context.task_component)
            self.windows.resume(task["reached"])
            if self.watermarks.current > BEFORE_ALL:
                self._accept_from = self.watermarks.current - self.settings.lateness_ms
        found: dict[Any, list[tuple[Any, Any]]] = {}
        for key, value in state:
            if type(key) is tuple and key:
                found.setdefault(key[0], []).append((key[1:], value))
        for (text,), count in found.get(COUNT, ()):
            self.windows.load_count(from_text(text), count)
        parts: dict[tuple[int, str], list[tuple[int, Any]]] = {}
        for (text, slot, begin), chunk in found.get(PANE, ()):
            parts.setdefault((slot, text), []).append((begin, chunk))
        for (slot, text), chunks in sorted(parts.items(), key=_begin):
            self._load_pane(from_text(text), slot, sorted(chunks, key=_begin))
        for (slot,), (key, ts, tup) in sorted(found.get(WAITING, ()), key=_begin):
            assert isinstance(self.windows, Ordered)
            each = Waiting(from_json(key), slot, ts, self._tuples.load_one(tup))
            each.is_stored = True
            self.windows.take(each)
        for (number,), (at, ids) in sorted(found.get(EXPIRED, ()), key=_begin):
            self._saved_expired[number] = at
            if self._replays is not None:
                known = [(component, stream, from_json(id)) for component, stream, id in ids]
                self._replays.expired.update(dict.fromkeys(known, at))
        if not self.settings.has_event_time:
            self._arm()

    def _check_form(self, form: str, declared: str) -> None:
        was, now = (form, self._form) if form != self._form else (declared, self._declared)
        if was != now:
            component = self._context.component
            raise UnusableStateError(
                f"{self.settings.who}: the stored state has {was}, and this bolt has {now} now, which can't use them: declare "
                f"it as it was, give the component another name, or remove what is stored: multilang state rm TOPOLOGY {component}"
            )

    def _load_pane(self, key: Key, slot: int, chunks: list[tuple[int, Any]]) -> None:
        parts = chunks[-1][1]
        saved, count, first, last, fired, _, numbers, is_touched = parts[:8]
        if self._keeps_tuples:
            accumulator: Any = [tup for _, chunk in chunks for tup in self._tuples.load(chunk[0])]
        else:
            accumulator = self.aggregate.load(saved)
        pane = Pane(accumulator)
        pane.count, pane.first, pane.last, pane.fired, pane.slot = count, first, last, fired, slot
        if len(parts) > 8:
            pane.shown = Pane(self._tuples.load(parts[8]) if self._keeps_tuples else self.aggregate.load(parts[8]))
            pane.shown.count = parts[9]
        pane.numbers = dict(numbers) if numbers else None
        pane.chunks = [begin for begin, _ in chunks]
        pane.fresh_from = len(accumulator) if self._keeps_tuples else 0
        self.in_memory += self._size(pane)
        if self.settings.memory_limit is not None and self.settings.spills:
            self._clean[key, slot] = pane
            if self.in_memory >= self.settings.memory_limit:
                self.free_memory(self.settings.memory_limit)
        for _, chunk in chunks:
            if chunk[5] is not None and self._replays is not None:
                self._replays.hold([(component, stream, from_json(id)) for component, stream, id in chunk[5]], pane)
        self.windows.load(key, slot, pane)
        if self.settings.joins_panes and pane.accumulator is not None:
            self._last_panes[key] = slot, pane  # they come in order
        if is_touched:
            self._touched[key, slot] = pane


class _SavedTuples:
    """Whole tuples as JSON has them."""

    def __init__(self, context: Context) -> None:
        self._schema: Schema = {
            (component, stream): {name: index for index, name in enumerate(fields)}
            for component, streams in context.source_fields.items()
            for stream, fields in streams.items()
        }

    def save_one(self, tup: Tuple) -> list[Any]:
        return [tup.component, tup.stream, tup.task, list(tup.values)]

    def load_one(self, saved: Sequence[Any]) -> Tuple:
        component, stream, task, values = saved
        return Tuple("", component, stream, task, values, self._schema)

    def save(self, tuples: list[Tuple]) -> list[list[Any]]:
        return [self.save_one(tup) for tup in tuples]

    def load(self, saved: Sequence[Any]) -> list[Tuple]:
        return [self.load_one(each) for each in saved]


def _form_of(settings: Settings, windows: Windows) -> str:
    """Return the kind of stored windows, in words: another kind can't use them."""
    time = "event" if settings.has_event_time else "processing"
    aggregate = settings.aggregate
    if aggregate is None:
        what = "whole tuples"
    else:
        field = getattr(aggregate, "field", None)
        what = f"{type(aggregate).__name__} of {field}" if isinstance(field, str) else type(aggregate).__name__
    return f"{windows.words} on {time} time, of {what}"


def _declaration_of(settings: Settings) -> str:
    """Return the division of stored windows, in words: other lengths or keys can't use them."""
    by = "" if settings.key_by is None else f" by {', '.join(settings.key_by)}"
    window = settings.window
    if isinstance(window, Sliding) and window.length == window.slide:
        window = Tumbling(window.length)
    return f"{window!r}{by}"


def _begin(part: tuple[Any, Any]) -> Any:
    return part[0]
