"""A bolt around a bolt that finds out when the latter has seen every tuple of an id (Storm's CoordinatedBolt).

Every input and every emitted tuple has its id (a request, a batch) as the first value. For each id a task counts the
tuples that it received, and those that it sent to each task. An id is finished when every task upstream has reported
how many tuples it sent here, and as many have been acked. Then the bolt's ``finished_id(id)`` is called, if it has one,
and a report goes to each task downstream, over the direct coordination stream, with the number of tuples that it was
sent. So "finished" runs down the topology. The first bolt is finished by its one tuple; the last may also need the
tuple of an id stream.

It differs from Storm's where Storm's loses a request or leaves it to a timeout:

- tuples may be acked late, and in any order: an ack may finish an id;
- an ack counts when ``process`` has returned: tuples emitted after the ack, and an exception, still belong to the id;
- a failed id is remembered as failed, so that its later tuples fail at once, instead of being held until they time out;
- more reports or tuples than possible fail the id, instead of never finishing it, and so does a second report of one task,
  which would stand for that of another if the id came again, in part;
- if an id is used again after it expired, and the bolt acks a tuple of the time before, the id fails;
- tuples that are held when an id expires are failed; an id is held at least as long as the message timeout, and forever
if ``topology.enable.message.timeouts`` is false;
- no emit waits for its task ids. They are counted as they arrive, and the reports wait for the last of them.
"""

from __future__ import annotations

from _thread import RLock, get_ident
from builtins import id as builtin_id

from multilang.component.bolt import BasicBolt, Bolt
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.filters import BoltFilter
from multilang.component.report import report_exception
from multilang.component.runner import start_bolt
from multilang.component.wrapper import Wrapper, innermost
from multilang.coordination.counting import Counting
from multilang.coordination.expiry import TICK_SECS, TICKS, Age
from multilang.coordination.fair import KeyedFairBolt
from multilang.coordination.names import ALL, COORD, COORD_STREAM, SINGLE
from multilang.coordination.program import ProgramBolt
from multilang.coordination.tracking import Tracked, Tracking
from multilang.coordination.unfit import STATEFUL, check_fit
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


_MOST_EXPIRED = 10_000  # ids


class CoordinatedBolt(Wrapper):
    """A bolt around a bolt that counts the tuples of each id; see the module.

    The wrapped bolt may have ``finished_id(id)`` (Storm's FinishedCallback), which may emit, and raises FailedException
    to fail the id. It may have ``timeout_id(id)`` (TimeoutCallback), which is called when an id has failed or expired,
    to drop the bolt's data about it.

    Args:
        wrapped: The bolt. A ShellBolt's program runs in each task, see ProgramBolt.
        sources: For each upstream component SINGLE (one of its tasks works on an id) or ALL; empty for the first bolt.
        id_stream: The component and stream of a tuple without which an id is not finished here.
        factory: The bolt's class, if the builder was given a class.
        ticks: False if the topology sets ticks for all its components.
    """

    own_streams = {COORD_STREAM: COORD}

    as_id: Callable[[Any], Hashable] | None = None
    """A function from an id that came to the id that the bolt sees; the two must be equal, with the same hash."""

    untracked: Callable[[Sequence[Any]], object] | None = None
    """A function that gets the values of an emit with an unknown id to a coordinated bolt; True drops the tuple."""

    early: frozenset[str] = frozenset()
    """The sources whose reports are acked at once; reports of all others are held until the id is finished."""

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
        check_fit(wrapped, type(self).__name__, "id", "write a BasicBolt or a BatchBolt", {STATEFUL})
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
        self._expired: dict[Hashable, None] = {}  # the newest ones; the bolt may still hold tuples of them
        self._again: dict[Hashable, dict[int, Tuple]] = {}  # ids that came again after that -> the tuples of this time
        self._tasks = [task for target in context.targets.get(COORD_STREAM, {}) for task in context.tasks(target)]
        self._due_reports = sum(1 if n == SINGLE else len(context.tasks(source)) for source, n in self.sources.items())
        self._emit, self._ack, self._fail = collector.emit, collector.ack, collector.fail
        self._received = collector.received
        self._late: list[tuple[Tuple, Tracking]] = []  # tuples that were acked while ``process`` runs
        # A fair bolt works in a thread of its own, and meanwhile the last report may come to this thread.
        self._fair = self.wrapped if collector.takes_threads and isinstance(self.wrapped, KeyedFairBolt) else None
        if self._fair is not None:
            self._fair.worked = self._settle_late
        self._thread = get_ident()
        self._age = Age(conf)
        inner = BoltFilter(
            self._counting(collector, context), ack=self._acker(), fail=self._failed, fail_acked=self._fail_acked
        )
        self._inner = start_bolt(self.wrapped, inner, conf, context)
        self._finished_id: Callable[[Hashable], object] | None = getattr(self.wrapped, "finished_id", None)
        self._timeout_id: Callable[[Hashable], object] | None = getattr(self.wrapped, "timeout_id", None)
        process_tick = getattr(type(innermost(self.wrapped)), "process_tick", Bolt.process_tick)
        return self._executor(wants_ticks=process_tick is not Bolt.process_tick)

    def _counting(self, collector: BoltCollector, context: Context) -> BoltCollector:
        """Return a collector around ``collector`` that counts what is emitted."""
        return Counting(self.tracked, self._lock, context, self.untracked).around(collector)

    def _executor(self, wants_ticks: bool) -> Execute:
        get, inner, fail, new = self.tracked.get, self._inner, self._fail, self._new
        others = self._others(wants_ticks)
        converts = self.as_id is not None
        late = self._late if self._fair is None else ()
        again = self._again

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
                if again and id in again:
                    again[id][builtin_id(tup)] = tup
                inner(tup)
                if late:
                    self._settle_late()

        return execute

    def _others(self, wants_ticks: bool) -> dict[str, Callable[[Tuple], bool]]:
        """Return by stream the functions for tuples that are not the bolt's own; they return whether it was one."""
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
                if id in self._expired:
                    self._again[id] = {}
                info = Tracking(id, self.id_stream is None, self._age.now, self._report, self._lock)
                self.tracked[id] = info
            return info

    # ---- incoming tuples ----

    def _reported(self, tup: Tuple) -> None:
        """Count the report of a task upstream: how many tuples of an id it sent here."""
        id, count = tup.values
        with self._lock:
            info = self._new(id)
            reporter = tup.component if self.sources.get(tup.component) == SINGLE else tup.task
            if reporter in info.reporters and not info.failed:
                # Or else it would stand for another one, whose tuples would be missing.
                self._too_much(info)
            if not info.failed:
                info.reporters.add(reporter)
                info.reports += 1
                info.expected += count
                if self.id_stream is None and tup.component not in self.early:
                    info.held.append(tup)
                    tup = None  # type: ignore[assignment]
                self._check(info)
            if tup is not None:
                self._settle(tup, info)

    def _identified(self, tup: Tuple) -> None:
        """Handle the tuple of the id stream."""
        with self._lock:
            info = self._new(tup.values[0])
            if info.failed:
                self._fail(tup)
                return
            info.identified = True
            info.held.append(tup)
            self._check(info)

    # ---- acks and fails of the bolt ----

    def _acker(self) -> Callable[[Tuple | str], None]:
        """Return the ``ack`` that the bolt calls."""
        get, ack, lock, again = self.tracked.get, self._ack, self._lock, self._again
        due = self._due_reports if self._fair is None else 0

        def acked(tup: Any) -> None:
            if type(tup) is str or not tup.unfinished:
                tup = self._received(tup)
            info = get(tup.values[0])
            if info is None or tup.stream == TICK_STREAM or (again and self._is_earlier(tup, info)):
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
        """Return whether the calling thread is inside the bolt's ``process``."""
        if self._collector.scope.current is None:
            return False
        return not self._collector.takes_threads or get_ident() == (self._fair or self)._thread

    def _settle_late(self) -> None:
        """Count what was acked in ``process``, which has now returned."""
        with self._lock:
            while self._late:
                tup, info = self._late.pop(0)
                tup.unfinished = True
                self._count(tup, info)

    def _count(self, tup: Tuple, info: Tracking) -> None:
        if not info.failed:
            info.received += 1
            if not self.sources and self.id_stream is None:
                # The reports are anchored to this tuple, maybe after the bolt has forgotten it.
                tup.unfinished = False
                info.held.append(tup)
                self._check(info)
                return
            self._check(info)
        self._settle(tup, info)

    def _failed(self, tup: Tuple | str) -> None:
        """Fail a tuple for the bolt, and with it the id."""
        given = self._input(tup)
        with self._lock:
            info = None if given.task < 0 else self.tracked.get(given.values[0])
            if info is not None:
                self._give_up(info, "a tuple of it was failed")
            self._fail(given)

    def _is_earlier(self, tup: Tuple, info: Tracking) -> bool:
        """Return whether the bolt got the tuple when its id came before, and expired; then the id fails.

        It would be counted in the place of another one, which is still to come.
        """
        own = self._again.get(info.id)
        if own is None or builtin_id(tup) in own:
            return False
        if not info.failed:
            why = "the bolt still held a tuple of the time before, when the id expired; use each id once"
            self.log(f"id {info.id!r} fails: {why}", "warn")
            self._give_up(info, why)
        return True

    def _fail_acked(self, tup: Tuple) -> None:
        """Fail the id of a tuple after which the bolt raised an exception although it had acked it."""
        with self._lock:
            info = None if tup.task < 0 else self.tracked.get(tup.values[0])
            if info is not None:
                self._give_up(info, "a tuple of it was acked, and failed then: ack comes last")

    def _input(self, tup: Tuple | str) -> Tuple:
        """Return the tuple itself, from its id or a copy; raise an error if it was acked or failed before."""
        return self._received(tup) if isinstance(tup, str) or not tup.unfinished else tup

    def _settle(self, tup: Tuple, info: Tracking) -> None:
        if info.failed:
            self._fail(tup)
        else:
            self._ack(tup)

    # ---- the end of an id ----

    def _check(self, info: Tracking) -> None:
        """Finish the id if all of it has come."""
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
            f"{self._due_reports}; is an id used twice, or did a task report twice?"
        )
        self.log(f"id {info.id!r} fails: {why}", "warn")
        self._give_up(info, why)

    def _finish(self, info: Tracking) -> None:
        info.finishing = True
        if self._finished_id is not None:
            self._collector.scope.anchors = ()
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
        """Send every task downstream the number of its tuples of the id, after all of them, on the same way."""
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
            self._again.pop(id, None)
            for tup in held:
                self._ack(tup)

    def _given_up(self, id: Any, why: str) -> None:
        """Note that an id fails here; called once, before any of its tuples fails, with the reason in words.

        If an exception is the cause, it is the one that is being handled (``sys.exc_info()``).
        """

    def _give_up(self, info: Tracking, why: str) -> None:
        """Fail the tuples of the id that are held, and all later ones."""
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
                self._again.pop(info.id, None)
                self._expired[info.id] = None
                if len(self._expired) > _MOST_EXPIRED:
                    del self._expired[next(iter(self._expired))]
                self._give_up(info, "it was not finished in time")
