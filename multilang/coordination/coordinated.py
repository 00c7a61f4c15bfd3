"""A bolt around a bolt that finds out when it has seen every tuple of an id (Storm's CoordinatedBolt).

Every tuple that goes in or out has its id (a request, a batch) as the first value. Per id a task counts the tuples that it
received, and what it sent to which task. An id is finished when every task upstream has reported how many tuples it sent
here and as many have been acked; then the bolt's ``finished_id(id)`` is called, if it has one, and each task downstream
is told, over the direct coordination stream, how many tuples it was sent. So "finished" runs down the topology. The first
bolt is finished by its one tuple; the last may also need the tuple of an id stream.

Different from Storm's, where that loses a request or leaves it to a timeout:

- tuples may be acked late, and in any order: an ack may finish an id;
- an ack counts when ``process`` has returned: what is emitted behind it, and an exception, still belong to the id;
- a failed id stays known as failed, so that whatever comes of it later is failed at once, not held until it times out;
- more reports or tuples than there can be fail the id, instead of never finishing it;
- what is held when an id expires is failed; an id lives at least the message timeout, and for ever where
  ``topology.enable.message.timeouts`` is false;
- no emit waits for its task ids. They are counted as they arrive, and the reports wait for the last of them.
"""

from __future__ import annotations

from _thread import RLock, get_ident

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.report import report_exception
from multilang.component.runner import start_bolt
from multilang.component.wrapper import Wrapper, innermost
from multilang.coordination.counting import Counting
from multilang.coordination.expiry import TICK_SECS, TICKS, Age
from multilang.coordination.fair import KeyedFairBolt
from multilang.coordination.names import ALL, COORD, COORD_STREAM, SINGLE
from multilang.coordination.program import ProgramBolt
from multilang.coordination.tracking import Tracked, Tracking
from multilang.protocol.messages import SYSTEM_COMPONENT, TICK_STREAM
from multilang.topology.shell import ShellBolt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple


class CoordinatedBolt(Wrapper):
    """See the module.

    ``sources``: for each upstream component SINGLE (of all its tasks one works on an id) or ALL; none for the first bolt.
    ``id_stream``: component and stream of the tuples without which an id is not finished here. ``ticks``: False where the
    topology sets ticks for all its components. A ShellBolt's program runs in each task, see ProgramBolt. The bolt may have ``finished_id(id)`` (Storm's FinishedCallback), which may
    emit, and raises FailedException to fail the id; and ``timeout_id(id)`` (TimeoutCallback), called when an id has failed
    or expired, so that what was kept of it is let go.
    """

    own_streams = {COORD_STREAM: COORD}

    as_id: Callable[[Any], Hashable] | None = None
    """What the bolt sees as an id, made of what came; equal to that, and with the same hash."""

    untracked: Callable[[Sequence[Any]], object] | None = None
    """Told what is about to be emitted to a coordinated bolt with an id that is not at work here; it may raise. True: it is dropped."""

    early: frozenset[str] = frozenset()
    """Sources whose reports are acked as they come. Those of all others are held until the id is finished."""

    def __init__(
        self,
        wrapped: Bolt | ShellBolt,
        sources: Mapping[str, str] | None = None,
        id_stream: tuple[str, str] | None = None,
        factory: type[Bolt] | None = None,
        *,
        ticks: bool = True,
    ) -> None:
        if isinstance(wrapped, ShellBolt):
            wrapped = ProgramBolt(wrapped)
        super().__init__(wrapped, factory)
        self.sources = dict(sources or {})
        self.id_stream = id_stream
        for source, tasks in self.sources.items():
            if tasks not in (SINGLE, ALL):
                raise ConfigError(f"CoordinatedBolt: the tasks of source {source!r} are SINGLE or ALL, not {tasks!r}")
        self.component_conf = {**({TICKS: TICK_SECS} if ticks else {}), **wrapped.component_conf}  # type: ignore[misc]

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._attach(collector, conf, context)
        self.tracked = Tracked()
        self._lock = RLock()
        self._tasks = [task for target in context.targets.get(COORD_STREAM, {}) for task in context.tasks(target)]
        self._due_reports = sum(1 if n == SINGLE else len(context.tasks(source)) for source, n in self.sources.items())
        self._emit, self._ack, self._fail = collector.emit, collector.ack, collector.fail
        self._received = collector.received
        self._late: list[tuple[Tuple, Tracking]] = []  # acked while ``process`` goes on
        # A fair bolt works in a thread of its own, and the last report may come to this one meanwhile.
        self._fair = self.wrapped if collector.takes_threads and isinstance(self.wrapped, KeyedFairBolt) else None
        if self._fair is not None:
            self._fair.worked = self._settle_late
        self._thread = get_ident()
        self._age = Age(conf)
        self._watch_emits(collector, context)
        collector.ack = self._acker()  # type: ignore[assignment,method-assign]
        collector.fail = self._failed  # type: ignore[method-assign]
        collector.fail_acked = self._fail_acked  # type: ignore[method-assign]
        self._inner = start_bolt(self.wrapped, collector, conf, context)
        self._finished_id: Callable[[Hashable], object] | None = getattr(self.wrapped, "finished_id", None)
        self._timeout_id: Callable[[Hashable], object] | None = getattr(self.wrapped, "timeout_id", None)
        process_tick = getattr(type(innermost(self.wrapped)), "process_tick", Bolt.process_tick)
        return self._executor(wants_ticks=process_tick is not Bolt.process_tick)

    def _watch_emits(self, collector: BoltCollector, context: Context) -> None:
        """Put counting functions in the place of the collector's, before the bolt sees them."""
        Counting(collector, self.tracked, self._lock, context, self.untracked).install()

    def _executor(self, wants_ticks: bool) -> Execute:
        get, inner, fail, new = self.tracked.get, self._inner, self._fail, self._new
        others = self._others(wants_ticks)
        converts = self.as_id is not None
        late = self._late if self._fair is None else ()

        def execute(tup: Tuple) -> None:
            other = others.get(tup.stream)
            if other is not None and other(tup):
                return
            id = tup.values[0]
            info = get(id)
            if info is None:
                info = new(id)
            if info.failed:
                fail(tup)
            else:
                if converts:
                    tup.values[0] = info.id
                inner(tup)
                if late:
                    self._settle_late()

        return execute

    def _others(self, wants_ticks: bool) -> dict[str, Callable[[Tuple], bool]]:
        """By stream, what takes tuples that are not the bolt's own, and says whether this was one."""
        id_component, id_stream = self.id_stream or ("", "")

        def ticked(tup: Tuple) -> bool:
            if tup.component != SYSTEM_COMPONENT:
                return False
            self._tick()
            (self._inner if wants_ticks else self._ack)(tup)
            if self._fair is None and self._late:
                self._settle_late()
            return True

        def identified(tup: Tuple) -> bool:
            if tup.component != id_component:
                return False
            self._identified(tup)
            return True

        def reported(tup: Tuple) -> bool:
            self._reported(tup)
            return True

        others: dict[str, Callable[[Tuple], bool]] = {TICK_STREAM: ticked}
        if id_stream:
            others[id_stream] = identified
        if self.sources:
            others[COORD_STREAM] = reported
        return others

    def _new(self, id: Hashable) -> Tracking:
        with self._lock:
            info = self.tracked.get(id)
            if info is None:
                if self.as_id is not None:
                    id = self.as_id(id)
                info = Tracking(id, self.id_stream is None, self._age.now, self._report, self._lock)
                self.tracked[id] = info
            return info

    # ---- what comes in ----

    def _reported(self, tup: Tuple) -> None:
        """A task upstream says how many tuples of an id it sent here."""
        id, count = tup.values
        with self._lock:
            info = self._new(id)
            if not info.failed:
                info.reports += 1
                info.expected += count
                if self.id_stream is None and tup.component not in self.early:
                    info.held.append(tup)
                    tup = None  # type: ignore[assignment]
                self._check(info)
            if tup is not None:
                self._settle(tup, info)

    def _identified(self, tup: Tuple) -> None:
        """The tuple of the id stream came."""
        with self._lock:
            info = self._new(tup.values[0])
            if info.failed:
                self._fail(tup)
                return
            info.identified = True
            info.held.append(tup)
            self._check(info)

    # ---- what the bolt says ----

    def _acker(self) -> Callable[[Tuple | str], None]:
        """``ack`` for the bolt: it is done with a tuple."""
        get, ack, lock = self.tracked.get, self._ack, self._lock
        due = self._due_reports if self._fair is None else 0

        def acked(tup: Any) -> None:
            if type(tup) is str or not tup.unfinished:
                tup = self._received(tup)
            info = get(tup.values[0])
            if info is None or tup.stream == TICK_STREAM:
                ack(tup)
            elif info.reports < due and not info.failed:  # by far the most frequent case
                info.received += 1
                ack(tup)
            else:
                self._acked(tup, info)

        def locked(tup: Any) -> None:
            with lock:
                acked(tup)

        return locked if self._collector.takes_threads else acked

    def _acked(self, tup: Tuple, info: Tracking) -> None:
        if self._is_working() and not info.failed:
            tup.unfinished = False
            self._late.append((tup, info))
        else:
            self._count(tup, info)

    def _is_working(self) -> bool:
        """Whether the thread that speaks is inside of the bolt's ``process``."""
        if self._collector.current is None:
            return False
        return not self._collector.takes_threads or get_ident() == (self._fair or self)._thread

    def _settle_late(self) -> None:
        """``process`` has returned: what was acked in it counts now."""
        with self._lock:
            while self._late:
                tup, info = self._late.pop(0)
                tup.unfinished = True
                self._count(tup, info)

    def _count(self, tup: Tuple, info: Tracking) -> None:
        if not info.failed:
            info.received += 1
            if not self.sources and self.id_stream is None:
                # The reports are anchored to it, maybe later than the bolt may still think that it has it.
                tup.unfinished = False
                info.held.append(tup)
                self._check(info)
                return
            self._check(info)
        self._settle(tup, info)

    def _failed(self, tup: Tuple | str) -> None:
        """The bolt fails a tuple, and with it the id."""
        given = self._input(tup)
        with self._lock:
            info = None if given.task < 0 else self.tracked.get(given.values[0])
            if info is not None:
                self._give_up(info, "a tuple of it was failed")
            self._fail(given)

    def _fail_acked(self, tup: Tuple) -> None:
        """The bolt raised an exception behind its ack."""
        with self._lock:
            info = None if tup.task < 0 else self.tracked.get(tup.values[0])
            if info is not None:
                self._give_up(info, "a tuple of it was acked, and failed then: ack comes last")

    def _input(self, tup: Tuple | str) -> Tuple:
        """The tuple itself, of its id or of a copy; raises for one that was acked or failed before."""
        return self._received(tup) if isinstance(tup, str) or not tup.unfinished else tup

    def _settle(self, tup: Tuple, info: Tracking) -> None:
        if info.failed:
            self._fail(tup)
        else:
            self._ack(tup)

    # ---- the end of an id ----

    def _check(self, info: Tracking) -> None:
        """Finish the id if all of it is here."""
        if info.finishing:
            self._too_much(info)
        elif not self.sources:
            if info.identified and info.received:
                self._finish(info)
        elif info.reports >= self._due_reports:
            if info.reports > self._due_reports or info.received > info.expected:
                self._too_much(info)
            elif info.received == info.expected and info.identified:
                self._finish(info)

    def _too_much(self, info: Tracking) -> None:
        why = (
            f"{info.received} tuples came of {info.expected} that were reported, {info.reports} reports of "
            f"{self._due_reports}; is an id used twice?"
        )
        self.log(f"id {info.id!r} fails: {why}", "warn")
        self._give_up(info, why)

    def _finish(self, info: Tracking) -> None:
        info.finishing = True
        if self._finished_id is not None:
            self._collector.anchors = ()
            try:
                self._finished_id(info.id)
            except FailedException as error:
                if isinstance(error, ReportedFailedException):
                    report_exception(self.wrapped, error, None, f"in finished_id of {info.id!r}")
                self._give_up(info, "its end failed")
                return
            except UnrecoverableError:
                raise
            except Exception as error:
                if not isinstance(innermost(self.wrapped), BasicBolt):
                    raise
                report_exception(self.wrapped, error, None, f"in finished_id of {info.id!r}")
                self._give_up(info, "its end failed")
                return
        if not info.asked:
            self._report(info)

    def _report(self, info: Tracking) -> None:
        """Tell every task downstream how many tuples of the id it was sent: after all of them, on the same way."""
        with self._lock:
            if info.failed or self.tracked.get(info.id) is not info:
                return  # it failed or expired while task ids were awaited
            id, counts, held = info.id, info.counts, info.held
            for tup in held:
                tup.unfinished = True
            anchors = held[:1]
            for task in self._tasks:
                self._emit([id, counts.get(task, 0)], COORD_STREAM, anchors, task)
            del self.tracked[id]
            for tup in held:
                self._ack(tup)

    def _given_up(self, id: Any, why: str) -> None:
        """Called once for each id that fails here, before any tuple of it is failed; ``why`` in words.

        Where an exception is behind it, it is the one that is handled at the moment (``sys.exc_info()``).
        """

    def _give_up(self, info: Tracking, why: str) -> None:
        """Fail what is held of the id, and from now on whatever comes of it."""
        if info.failed:
            return
        info.failed = True
        self._given_up(info.id, why)
        late = [tup for tup, its in self._late if its is info]
        self._late[:] = [each for each in self._late if each[1] is not info]
        for tup in [*info.held, *late]:
            tup.unfinished = True
            self._fail(tup)
        info.held = []
        info.counts = {}
        if self._timeout_id is not None:
            self._timeout_id(info.id)

    def _tick(self) -> None:
        with self._lock:
            for info in self.tracked.let_go(self._age.tick()):
                self._give_up(info, "it was not finished in time")
