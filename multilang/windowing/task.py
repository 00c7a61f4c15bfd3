"""The windows of one task at work: tuples are added, and windows are evaluated and acked."""

from __future__ import annotations

from multilang.component.errors import FailedException, ReportedFailedException
from multilang.component.report import report_exception
from multilang.helpers.copies import copied
from multilang.windowing.aggregates import Aggregate
from multilang.windowing.counted import CountWindows
from multilang.windowing.fields import key_function
from multilang.windowing.keys import PLAIN, outer
from multilang.windowing.kinds import windows_of
from multilang.windowing.panes import ON_TIME, RETRACTED, Pane
from multilang.windowing.passed import BARREN_MS, PREFIX, PassedWatermarks, channel_of
from multilang.windowing.replays import Replays
from multilang.windowing.settings import NO_DATA, TIMEOUT, MemoryLimitError
from multilang.windowing.specs import Session
from multilang.windowing.watermarks import AFTER_ALL, BEFORE_ALL, MOST_MS, Source, Watermarks
from multilang.windowing.window import Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple
    from multilang.windowing.batches import Batch
    from multilang.windowing.declared import DeclaredWindows
    from multilang.windowing.panes import DroppedPane, Due, Holder, Key, Waiting, Windows
    from multilang.windowing.settings import Settings

_OURS = "multilang.windowing."  # the modules of aggregates that change nothing before they refuse a value
_ROUNDING = 1e-4  # milliseconds: a timer's instant is a sum of fractions
_FIRST = 1 + _ROUNDING  # the millisecond in which the task begins
_WAITS_LONG_MS = 30_000  # after which a source that never sent anything is named in the log


class AllTuples(Aggregate):
    """The tuples themselves."""

    def init(self) -> list[Tuple]:
        return []

    def add(self, accumulator: list[Tuple], tup: Tuple) -> list[Tuple]:
        accumulator.append(tup)
        return accumulator

    def merge(self, first: list[Tuple], second: list[Tuple]) -> list[Tuple]:
        return first + second


class WindowTask:
    """The windows of a started bolt.

    Args:
        bolt: The bolt.
        settings: Its settings.
        collector: Its collector.
        context: Its task's context.
        batch: The batch that is its input; None: there are no batches.
    """

    _acks_at_once = False

    def __init__(
        self,
        bolt: DeclaredWindows,
        settings: Settings,
        collector: BoltCollector,
        context: Context,
        batch: Batch | None = None,
    ) -> None:
        self.bolt = bolt
        self.settings = settings
        self.aggregate = settings.aggregate or AllTuples()
        self.late = 0
        self._collector = collector
        self._context = context
        self._batch = batch
        self._clock = bolt.clock if batch is None else batch.clock
        self._monotonic = self._clock.monotonic
        self._init = self.aggregate.init
        may_change = not type(self.aggregate).__module__.startswith(_OURS)
        self._restores = may_change and not self._acks_at_once
        self._add = _to_copies(self.aggregate.add) if may_change and self._acks_at_once else self.aggregate.add
        self._key = key_function(settings)
        self._touched: dict[tuple[Key, int], Pane] = {}  # since the last early evaluation by time
        self._armed: float | None = None  # the instant of the timer that is set
        self._began = self._monotonic()
        self._origin = round(self._clock.time() * 1000)  # the time of day then; windows by processing time begin there
        self._has_warned = False
        self._barren: set[tuple[str, int]] = set()
        self._holders: set[Holder] = set()  # at the last look at their age
        self._aged = 0
        self._keeps_tuples = settings.aggregate is None
        self.needs_panes = settings.anchor == "all" and not self._acks_at_once
        self.most_dropped = 1 if settings.memory_limit is not None else 1000
        self.in_memory = 0  # tuples, or accumulators, where there is a limit
        self.put = self._put_function()
        self.start_anew()
        self.process = self.process_function()
        if batch is not None:
            return  # which advances the time at its end
        if settings.has_event_time:
            bolt.set_timer(settings.interval_ms / 1000, self.tick, every=settings.interval_ms / 1000)
        if settings.early_ms:
            bolt.set_timer(settings.early_ms / 1000, self._fire_early, every=settings.early_ms / 1000)
        if settings.is_replayed and settings.id_field is None and not self._acks_at_once:
            bolt.set_timer(settings.timeout_secs, self._look_at_age, every=settings.timeout_secs)

    def start_anew(self) -> None:
        """Begin without any windows."""
        settings = self.settings
        self.windows: Windows = windows_of(settings, self)
        self._expired: dict[Key, list[Tuple]] = {}
        self._last_panes: dict[Key, tuple[int, Pane]] = {}  # by key, with its place, where panes are merged
        self._replays = None if settings.id_field is None else Replays(settings.id_field, settings)
        self._early: list[tuple[Key, int, Pane]] = []  # due at once
        self._touched.clear()
        self.in_memory = 0
        self._armed = None
        self.watermarks = self._new_watermarks()
        self._accept_from = BEFORE_ALL

    def _new_watermarks(self) -> Watermarks:
        settings, ways = self.settings, self.bolt.ways
        if self._batch is None and ways is not None:
            return PassedWatermarks(ways, self._context, settings.lag_ms, settings.idle_ms, self.now())
        merged = None if self._batch is None else self._batch.merged
        return Watermarks(_senders(self._context), settings.lag_ms, settings.idle_ms, self.now(), merged)

    # ---- tuples ----

    def process_function(self) -> Callable[[Tuple], None]:
        """Return the function that adds a tuple to the present windows."""
        process = self._unlimited_function()
        limit = self.settings.memory_limit
        return process if limit is None else self._limited(process, limit)

    def _limited(self, process: Callable[[Tuple], None], limit: int) -> Callable[[Tuple], None]:
        def process_within(tup: Tuple) -> None:
            if self.in_memory >= limit:
                self.free_memory(limit)
            process(tup)

        return process_within

    def free_memory(self, limit: int) -> None:
        """Handle that the windows have reached the memory limit.

        Args:
            limit: The number of tuples, or of accumulators.

        Raises:
            MemoryLimitError: No memory can be freed.
        """
        what = "tuples" if self._keeps_tuples else "accumulators"
        ways = "set a greater memory_limit, or make it a StatefulWindowedBolt, whose windows are spilled to its store"
        if self.bolt.can_spill:
            ways = "set a greater memory_limit, or at_memory_limit = 'spill'"
        raise MemoryLimitError(
            f"{self.settings.who}: its windows have {self.in_memory} {what} in memory, and memory_limit is {limit}; {ways}"
        )

    def _size(self, pane: Pane) -> int:
        """Return a pane's size in memory: the number of its tuples, or 1 for an accumulator."""
        if not self._keeps_tuples:
            return 0 if pane.spilled else 1
        return len(pane.accumulator) + (len(pane.shown.accumulator) if pane.shown is not None else 0)

    def _unlimited_function(self) -> Callable[[Tuple], None]:
        if not self.settings.has_event_time:
            return self._by_count if isinstance(self.windows, CountWindows) else self._by_arrival
        bolt, key_of, add = self.bolt, self._key, self.windows.add
        is_known = None if self._replays is None else self._is_known
        taken = self.taken if self._acks_at_once else None
        field = None if bolt.has_own_timestamp() else bolt.timestamp_field
        may_be_idle, now = self.settings.idle_ms is not None, self.now
        component, stream, task, source = "", "", -1, Source(0.0)  # those of the last tuple

        def by_event_time(tup: Tuple) -> None:
            nonlocal component, stream, task, source
            if tup.stream.startswith(PREFIX):
                self._pass(tup)
                return
            ts = bolt.timestamp(tup) if field is None else tup[field]
            if type(ts) is not int or not -MOST_MS < ts < MOST_MS:
                raise self._not_a_time(ts)
            key = key_of(tup)
            if tup.task != task or tup.stream != stream or tup.component != component:
                component, stream, task = tup.component, tup.stream, tup.task
                source = self.watermarks.source(component, stream, task, now())
            if may_be_idle:
                source.since = now()
            if source.greatest is None or ts > source.greatest:
                source.greatest = ts
            if is_known is not None and is_known(tup):
                return
            if ts < self._accept_from:
                self._refuse(tup, ts)
                return
            add(key, ts, tup)
            if taken is not None:
                taken(tup)
            if self._early:
                self._fire_early_counts()

        return by_event_time

    def _pass(self, tup: Tuple) -> None:
        """Take the rounds of upstream tasks."""
        if isinstance(self.watermarks, PassedWatermarks):
            self.watermarks.take(tup.values[0], channel_of(tup), self.now())
        self._collector.ack(tup)

    def _not_a_time(self, ts: object) -> ReportedFailedException:
        return ReportedFailedException(
            f"{self.settings.who}: the timestamp is {ts!r} ({type(ts).__name__}); it is a whole number of milliseconds since "
            "the epoch, of less than 2**62. Convert it in a method timestamp(self, tup), or leave such tuples out before"
        )

    def _by_count(self, tup: Tuple) -> None:
        """Process a tuple by its arrival, for windows that do not depend on the time."""
        key = self._key(tup)
        if self._replays is not None and self._is_known(tup):
            return
        self.windows.add(key, int((self._monotonic() - self._began) * 1000 + _FIRST), tup)
        if self._acks_at_once:
            self.taken(tup)
        if self._early:
            self._fire_early_counts()

    def _by_arrival(self, tup: Tuple) -> None:
        key = self._key(tup)
        if self._replays is not None and self._is_known(tup):
            return
        ts = int(self.now() + _ROUNDING)
        windows = self.windows
        due = windows.next_due()
        if windows.in_order or (due is not None and due < ts):
            windows.advance(ts)
        windows.add(key, ts, tup)
        if self._acks_at_once:
            self.taken(tup)
        if self._early:
            self._fire_early_counts()
        self._arm()

    def taken(self, tup: Tuple) -> None:
        """Note that a tuple is in its windows."""

    def now(self) -> float:
        """Return the time of the clock, in milliseconds.

        Windows by processing time begin after 0, and end with their last millisecond. The task begins in millisecond 1,
        so that tuples that arrive at once are in the first window.
        """
        return (self._monotonic() - self._began) * 1000 + 1

    def _look_at_age(self) -> None:
        """Warn of tuples that are held for longer than the message timeout, and so are replayed; called once each timeout."""
        before, self._holders = self._holders, {each for each in self.windows.holders() if each.held}
        if not before & self._holders:
            return
        self._aged += 1
        if self._aged & (self._aged - 1) == 0:  # at each doubling
            self._collector.report_error(
                f"{self.settings.who}: windows hold tuples for longer than the {self.settings.timeout_secs:g} s of {TIMEOUT}: they are replayed, "
                "and count twice. Make it a StatefulWindowedBolt (streams: StreamBuilder(state=True)), name an id_field, or set a greater timeout"
            )

    def _refuse(self, tup: Tuple, ts: int) -> None:
        """Handle a tuple that is too late."""
        self.late += 1
        stream = self.settings.late_stream
        if stream is not None:
            late = {
                "component": tup.component,
                "task": tup.task,
                "stream": tup.stream,
                "fields": tup.fields,
                "values": list(tup.values),
            }
            self._collector.emit([late], stream, [tup])
        elif self.late & (self.late - 1) == 0:  # at each doubling
            self.bolt.log(
                f"{self.late} late tuples so far; the last one is of {ts}, and the watermark is {self.watermarks.current}. Set late_stream to get "
                "them, or more lag or allowed_lateness to take them",
                "warn",
            )
        self._collector.ack(tup)

    def _is_known(self, tup: Tuple) -> bool:
        """Return whether a tuple is a replay of one that is still in a window, with which it is then acked."""
        if self._replays is None or not self._replays.has_taken(tup):
            return False
        self.taken(tup)
        return True

    def held(self) -> Iterator[tuple[Any, int]]:
        """Yield root and edge of each tuple that is neither acked nor failed."""
        for holder in self.windows.holders():
            each: Any
            for each in holder.held:
                if each.unfinished and hasattr(each, "root"):  # otherwise user code made it
                    yield each.root, each.edge

    # ---- time ----

    def tick(self) -> None:
        """Advance the watermark."""
        before, now = self.watermarks.current, self.now()
        watermark = self.watermarks.advance(now)
        barren, self._barren = self._barren, self.watermarks.barren(now)
        if barren != self._barren:
            self._log_barren(barren, self._barren)
        if watermark > before:
            self._advance(watermark)
        elif watermark == BEFORE_ALL and now >= _WAITS_LONG_MS and self.watermarks.has_started and not self._has_warned:
            self._has_warned = True
            silent = ", ".join(f"stream {stream!r} of {component!r}" for component, stream in self.watermarks.silent())
            self.bolt.log(
                f"no window can end yet: some tasks that send on {silent} have sent nothing so far. Set idle_after to continue without them",
                "warn",
            )

    def _log_barren(self, before: set[tuple[str, int]], barren: set[tuple[str, int]]) -> None:
        """Log the sources that windows leave out from now on, and those that they wait for again."""
        who = self.settings.who
        for component, task in sorted(barren - before):
            self.bolt.log(
                f"{who}: nothing that task {task} of {component!r} sends has reached the windows for {BARREN_MS // 1000} s, since it is "
                "dropped before, or has no later time; they continue without it, and its later elements may be late",
                "warn",
            )
        for component, task in sorted(before - barren):
            self.bolt.log(f"{who}: windows wait for task {task} of {component!r} again")

    def end_batch(self, *, is_last: bool) -> None:
        """Advance the time at the end of a batch.

        Args:
            is_last: No batch will follow, so that all windows end.
        """
        if is_last:
            self.watermarks.current = AFTER_ALL
            self._advance(AFTER_ALL)
            return
        if self.settings.has_event_time:
            self.tick()
        else:
            self.windows.advance(int(self.now() + _ROUNDING))
        self._fire_early()

    def _advance(self, watermark: int) -> None:
        self._accept_from = watermark - self.settings.lateness_ms
        self.windows.advance(watermark)

    def _arm(self) -> None:
        """Set a timer for the next end of a window by processing time."""
        due = self.windows.next_due()
        if due is None or (self._armed is not None and self._armed <= due) or self._batch is not None:
            return
        self._armed = due
        self.bolt.set_timer(max(due + 1 - self.now(), 0) / 1000, self._timer)

    def _timer(self) -> None:
        self._armed = None
        self.windows.advance(int(self.now() + _ROUNDING))
        self._arm()

    def _fire_early_counts(self) -> None:
        early, self._early = self._early, []
        for key, slot, pane in early:
            self.windows.fire_early(key, slot, pane)

    def _fire_early(self) -> None:
        touched, self._touched = self._touched, {}
        for (key, slot), pane in touched.items():
            self.windows.fire_early(key, slot, pane)

    def save(self) -> None:
        """Save nothing: the tuples are replayed."""

    # ---- for the windows: see panes.Keeper ----

    def begin(self, key: Key, slot: int, tup: Tuple) -> Pane:
        """Return a new pane that has a tuple; there is none if the tuple fails."""
        pane = Pane(self._init())
        self.put(key, slot, pane, tup)
        if not self._keeps_tuples:
            self.in_memory += 1
        return pane

    def _put_function(self) -> Callable[[Key, int, Pane, Tuple], None]:
        """Return ``put``, with no more work in it than the settings need."""
        add, holds = self._add, not self._acks_at_once
        settings, joins = self.settings, self.settings.joins_panes

        def put_unchecked(_key: Key, _slot: int, pane: Pane, tup: Tuple) -> None:
            try:
                pane.accumulator = add(pane.accumulator, tup)
            except Exception as error:
                raise self._refusal(error, pane) from error
            pane.count += 1
            if holds:
                pane.held.append(tup)

        def put_checked(key: Key, slot: int, pane: Pane, tup: Tuple) -> None:
            before = pane.accumulator
            try:
                after = add(before, tup)
                if not pane.count or type(after) is not type(before):
                    self._check_kind(key, slot, pane, after)
            except Exception as error:
                raise self._refusal(error, pane) from error
            pane.accumulator = after
            pane.count += 1
            if holds:
                pane.held.append(tup)

        put = put_checked if joins else put_unchecked
        every, touched = settings.early_count, self._touched if settings.early_ms else None
        counted = settings.memory_limit is not None and self._keeps_tuples
        if settings.id_field is None and not every and touched is None and not counted:
            return put

        def put_more(key: Key, slot: int, pane: Pane, tup: Tuple) -> None:
            put(key, slot, pane, tup)
            if counted:
                self.in_memory += 1
            if self._replays is not None:
                self._replays.put(tup, pane)
            if every and pane.count % every == 0:
                self._early.append((key, slot, pane))
            if touched is not None:
                self._touched[key, slot] = pane

        return put_more

    def _refusal(self, error: Exception, pane: Pane | None = None) -> FailedException:
        """Return the error for a tuple that the aggregate does not take, and undo what it may have changed.

        Args:
            error: The aggregate's error.
            pane: The pane to which the tuple was added.
        """
        if pane is not None and self._restores:
            tuples = pane.held if self._replays is None else self._replays.first_ones(pane.held)
            pane.accumulator = self._init()
            for tup in tuples[len(tuples) - pane.count :]:
                pane.accumulator = self._add(pane.accumulator, tup)
        if isinstance(error, FailedException):
            return error
        return ReportedFailedException(
            f"{self.settings.who}: its aggregate does not take a tuple, which fails: {type(error).__name__}: {error}"
        )

    def _check_kind(self, key: Key, slot: int, pane: Pane, accumulator: Any) -> None:
        """Merge what a pane would have with another pane of its key, in vain, since windows do so when no tuple can fail any more.

        That is done for the first tuple of a pane, and when the accumulator is of another type than before. The other pane is
        the last one, which lives as long as any.
        """
        last = self._last_panes.get(key)
        if last is not None and last[1] is not pane:
            self.aggregate.merge(last[1].accumulator, accumulator)
        if accumulator is not None and (last is None or slot >= last[0]):
            self._last_panes[key] = slot, pane

    def check_merge(self, key: Key, panes: Sequence[Pane], tup: Tuple) -> None:
        """Merge panes and a tuple in vain.

        Raises:
            FailedException: They can't be merged.
        """
        if self._keeps_tuples:
            return
        try:
            joined = self._add(self._init(), tup)
            for pane in panes:
                joined = self.aggregate.merge(pane.accumulator, joined)
        except Exception as error:
            raise self._refusal(error) from error

    def merge(self, key: Key, first: Pane, second: Pane) -> None:
        """Add all of the second pane of a key to the first."""
        first.accumulator = self.aggregate.merge(first.accumulator, second.accumulator)
        first.count += second.count
        if second.shown is not None:
            self._join(second.shown, first.shown)
            first.shown, second.shown = second.shown, None
        if self._keeps_tuples:
            second.accumulator = []  # they are now the first one's
        first.held += second.held
        if second.ids and self._replays is not None:
            self._replays.hold(second.ids, first)

    def fire(
        self,
        key: Key,
        bounds: tuple[int | None, int],
        panes: Sequence[Pane],
        new: Sequence[Pane],
        timing: str,
        number: int,
        at: int,
    ) -> None:
        """Evaluate a window."""
        self.fire_all(bounds, timing, at, ((key, panes, new, panes, number),))

    def fire_all(self, bounds: tuple[int | None, int], timing: str, at: int, due: Iterable[Due]) -> None:
        """Evaluate windows with the same bounds, each before the next one is taken."""
        settings = self.settings
        start, end = bounds
        if not settings.has_event_time:
            start, end = None if start is None else start + self._origin, end + self._origin
        bounds = start, end
        window, aggregate, accumulating = settings.window, settings.aggregate, settings.accumulating
        is_session = isinstance(window, Session)
        last = end
        if is_session:
            last = at if settings.has_event_time else at + self._origin
        elif settings.slide_count:
            last = at
        place: list[Any] = [None if settings.key_by is not None else self._context.task_index, last]
        if not self._acks_at_once and settings.slide_count:
            place.append(self._origin)  # a restarted task counts from 0 again
        keeps_expired = settings.keep_expired
        expired: Sequence[Tuple] | str = () if keeps_expired else self.no_expired()
        anchored = settings.anchor != "none"
        process_window, scope = self.bolt.process_window, self._collector.scope
        before = scope.anchors
        scope.anchors = ()
        try:
            for key, panes, new, parts, number in due:
                count = parts[0].count if len(parts) == 1 else sum([pane.count for pane in parts])
                if not count:
                    continue  # its tuples failed, or there are no new ones since it was evaluated
                if keeps_expired:
                    expired = self._expired.pop(key, ()) if timing == ON_TIME else ()
                shown = key if type(key) in PLAIN else outer(key)
                evaluated = Window(shown, bounds, parts, count, new, expired, aggregate, timing, number, place)
                if anchored:
                    scope.anchors = self.anchors(panes, new)
                try:
                    process_window(evaluated)
                except FailedException as error:
                    raise RuntimeError(
                        f"{settings.who}: process_window raised {type(error).__name__}: a window can't fail by itself; the task ends, "
                        "so that its tuples are replayed"
                    ) from error
                if not accumulating and timing != RETRACTED:
                    self._empty(panes, is_session)
        finally:
            scope.anchors = before

    def _empty(self, panes: Iterable[Pane], may_be_retracted: bool) -> None:
        """Empty panes, since windows that are not accumulating have their tuples once."""
        for pane in panes:
            if may_be_retracted:
                shown = Pane(pane.accumulator)
                shown.count = pane.count
                self._join(shown, pane.shown)
                pane.shown = shown
            elif self._keeps_tuples:
                self.in_memory -= len(pane.accumulator)
            pane.accumulator = self._init()
            pane.count = 0

    def _join(self, first: Pane, second: Pane | None) -> None:
        """Add the second pane, if there is one, to the first."""
        if second is not None:
            first.accumulator = self.aggregate.merge(second.accumulator, first.accumulator)
            first.count += second.count

    def show_again(self, key: Key, pane: Pane) -> None:
        """Restore all tuples of a pane of a key, since the window that had them is retracted."""
        self._join(pane, pane.shown)
        pane.shown = None

    def no_expired(self) -> str:
        """Return the reason why ``window.expired`` is not kept."""
        return "window.expired is not kept for windows with key_by; set keep_expired = True in the bolt's class"

    def anchors(self, panes: Sequence[Pane], new: Sequence[Pane]) -> Sequence[Tuple]:
        """Return the tuples that emits are anchored to."""
        policy = self.settings.anchor
        if policy == "none":
            return ()
        return [tup for pane in (panes if policy == "all" else new) for tup in pane.held]

    def drop(self, key: Key, slot: int, pane: Pane, seen: bool = True) -> None:
        """Ack the tuples of a pane that is in no later window."""
        self.drop_all(((key, slot, pane),), seen)

    def drop_all(self, dropped: Sequence[DroppedPane], seen: bool = True) -> None:
        """Ack the tuples of panes that are in no later window."""
        keeps_expired, touched, last_panes = seen and self.settings.keep_expired, self._touched, self._last_panes
        held: list[Tuple] = []
        for key, slot, pane in dropped:
            self.in_memory -= self._size(pane)
            held += pane.held
            if pane.ids and self._replays is not None:
                self._replays.forget(pane.ids)
            if keeps_expired:
                self._expired.setdefault(key, []).extend(pane.accumulator)
            if touched:
                touched.pop((key, slot), None)
            if last_panes and key in last_panes and last_panes[key][1] is pane:
                del last_panes[key]
        if held:
            self._collector.settle_many(held, True)

    def unassigned(self, tup: Tuple) -> None:
        """Ack a tuple that is in no window."""
        for each in (tup, *(self._replays.unassigned() if self._replays is not None else ())):
            if each.unfinished:
                self._collector.ack(each)

    def waits(self, waiting: Waiting) -> None:
        """Note a tuple that waits for earlier ones."""
        self.in_memory += 1
        if self._replays is not None:
            self._replays.wait(waiting)

    def added(self) -> None:
        """Evaluate early windows that are due, since a tuple that had waited is in its windows."""
        if self._early:
            self._fire_early_counts()

    def refused(self, tup: Tuple, error: FailedException) -> None:
        """Fail a tuple that had waited, and its replays, since its windows refuse it."""
        if isinstance(error, ReportedFailedException) or not tup.unfinished:  # a finished one can't show it by failing
            report_exception(self.bolt, error, tup)
        again = self._replays.unassigned() if self._replays is not None else ()
        self._collector.settle_many([tup, *again], False)

    def released(self, waiting: Waiting) -> None:
        """Note that a tuple's wait is over: it is added next."""
        self.in_memory -= 1
        if self._replays is not None:
            self._replays.release(waiting)


def _to_copies(add: Callable[[Any, Tuple], Any]) -> Callable[[Any, Tuple], Any]:
    """Return a function that adds a tuple to a copy: where no tuples are held, it can't be undone otherwise."""
    return lambda accumulator, tup: add(copied(accumulator), tup)


def _senders(context: Context) -> dict[tuple[str, str], int]:
    """Return the number of tasks that send data to this one, by (component, stream)."""
    return {
        (component, stream): len(context.tasks(component))
        for component, streams in context.sources.items()
        for stream in streams
        if not stream.startswith(NO_DATA)
    }
