"""A bolt's task inside a Spark task."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from multilang.component.base import collector_of
from multilang.component.clock import MovableClock
from multilang.component.report import describe
from multilang.component.runner import close, start_bolt
from multilang.component.timers import NEVER, TaskTimers
from multilang.errors import SparkJobError, TaskStartError
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.runtime.counters import TaskStats
from multilang.runtime.task import START_ATTEMPTS
from multilang.runtime.tuples import Origin
from multilang.state.checkpointed import anchored_only
from multilang.windowing.bolt import WindowedBolt
from spark_bridge.job.collector import SparkBoltCollector, note
from spark_bridge.job.keep import kept, restore
from spark_bridge.job.tuples import SparkTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.timers import TimerHandle
    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from multilang.state import State
    from spark_bridge.job.tuples import FailedRoots

_due = attrgetter("due")
_SYSTEM = Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",))
_PRUNE_FROM = 10_000  # number of kept tuples from which on finished ones are looked for and dropped


class StageBolt:
    """One task of a bolt.

    ``failed``: gets the roots of what failed; ``held``: the tuples that it has neither acked nor failed.

    ``countdown``: counts down to the next tuple from inside its worker whose time is measured, and which
    stands for ``every`` of them.

    ``anchored``: refuse tuples that are anchored to nothing; ``saved``: the state of a stateful bolt. ``timed``: the
    worker's tasks with timers, to which it adds itself.
    """

    saved: State | None = None

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots, *, anchored: bool = False) -> None:
        self.plan = plan
        self._anchored = anchored
        self.stats = TaskStats()
        self.countdown = self.every = 1
        self.held: list[SparkTuple] = []
        self.left: list[str] = []
        self._links = links
        self._failed = failed
        self._prune_at = _PRUNE_FROM
        self._component: Any = None
        self._timers: TaskTimers
        self._clock = MovableClock()
        self._instant = self._clock()  # the one at which all rows come; then that of the timer at the end
        self.timed: dict[StageBolt, None] = {}
        self.execute: Callable[[Any], object]

    def start(self, state: bytes | None) -> None:
        """Give the task a component of its own, initialized, with what it knew at the end of the last round."""
        for attempt in range(1, START_ATTEMPTS + 1):
            self._component = component = self.plan.spec.new()
            collector: BoltCollector = SparkBoltCollector(self.plan, self._links, self.stats, self._failed)
            self._timers = TaskTimers(
                collector.scope, self._clock, lambda _: self.timed.setdefault(self), now=lambda: self._instant
            )
            if self._anchored:
                collector = anchored_only(collector, self.plan.context)
            try:
                self.execute = self.started(component, collector)
                break
            except (Exception, SystemExit) as error:
                if attempt == START_ATTEMPTS:
                    said = describe(error, component, None, "in initialize")  # type: ignore[arg-type]
                    raise TaskStartError(f"{self.plan} can't be started: {said}") from error
        if state is not None:
            restore(component, state, self.saved)

    def started(self, component: Any, collector: Any) -> Callable[[Any], object]:
        """Initialize the component, and return the function that runs one tuple."""
        return start_bolt(component, collector, self.plan.conf, self.plan.context)

    def process(self, tup: Any) -> None:
        """Run one tuple. An exception fails it, whatever kind of bolt this is, and the component lives on."""
        self.stats.received += 1
        try:
            self.execute(tup)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.died(error, tup)
        if tup.unfinished:
            self.hold(tup)

    def died(self, error: BaseException, tup: Any) -> None:
        """Report an exception of the component, and fail the tuple."""
        component = self._component
        scope = collector_of(component).scope
        scope.current = None
        scope.anchors = ()
        self._links.report(self.plan, describe(error, component, tup))
        if tup.unfinished:
            collector_of(component).fail(tup)

    # ---- timers ----

    def run_timers(self) -> Iterator[None]:
        """Run the timers at the end of the input, as if their time had come; yield after each.

        What a task does must not depend on how fast Spark runs it, since it may run it again. So all rows come at one
        instant as far as timers are concerned, and no timer runs between two rows, nor does a tick. At the end each
        timer runs once, in order. While the bolt still holds tuples after that, repeated timers go on, and those that
        timers have set, until the tuples have timed out. What tuples set meanwhile runs in any case.
        """
        timers = self._timers
        took = self._clock() - self._instant
        end = self._instant + self.plan.settings.message_timeout_secs
        for due, _, handle in sorted(timers.heap):
            if handle.pending and handle.due == due:
                self._move_to(due, took)
                timers.take_early(handle)
                self._fire(handle)
                yield
        while timers.next_due < NEVER:
            if timers.next_due <= end and self.holds:
                self._move_to(timers.next_due, took)
                found = timers.take(self._instant)
            else:
                found = min((handle for _, _, handle in timers.heap if handle.awaited), key=_due, default=None)
                if found is None:
                    break
                self._move_to(found.due, took)
                timers.take_early(found)
            if found is not None:
                self._fire(found)
                yield
        timers.cancel_all()

    def _move_to(self, due: float, took: float) -> None:
        """Move on to the time of a timer; for the component it is later by what the input ``took``."""
        self._instant = max(self._instant, due)
        self._clock.move_to(due + took)

    def _fire(self, handle: TimerHandle) -> None:
        try:
            self._timers.fire(handle)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.timer_died(error)

    def timer_died(self, error: BaseException) -> None:
        """Report an exception of a timer; the component lives on."""
        self._links.report(self.plan, describe(error, self._component, None, "in a timer"))

    def hold(self, tup: SparkTuple) -> None:
        """Keep a tuple that the bolt has neither acked nor failed."""
        self.held.append(tup)
        if len(self.held) >= self._prune_at:
            self.held = [each for each in self.held if each.unfinished]
            self._prune_at = max(_PRUNE_FROM, 2 * len(self.held))

    def took(self, secs: float) -> None:
        """Note a time in which the component was busy."""
        self.stats.busy = (self.stats.busy or 0.0) + max(secs, 0.0)

    def tick(self) -> None:
        """Run one tick, if the bolt is configured to get ticks."""
        secs = self.plan.settings.tick_secs
        if secs:
            self.process(SparkTuple([secs], TICK_STREAM, _SYSTEM, 0))

    @property
    def holds(self) -> bool:
        """True if the bolt keeps tuples that it has neither acked nor failed."""
        self.held = [tup for tup in self.held if tup.unfinished]
        return bool(self.held)

    def move_windows(self, *, is_last: bool) -> None:
        """Let a bolt's windows move on; all of them end if the input ends."""
        if isinstance(self._component, WindowedBolt):
            self.must(lambda: self._component.move_windows(is_last=is_last), "at the end of its input")

    def finish(self) -> None:
        """Let a bolt put its windows where the next round finds them."""
        if isinstance(self._component, WindowedBolt):
            self.must(self._component.save_windows, "while its windows were saved")

    def must(self, call: Callable[[], object], when: str) -> None:
        """Make a call into the bolt that belongs to no tuple, so that its failure is that of the job."""
        component = self._component
        scope = collector_of(component).scope
        scope.current = None
        scope.anchors = ()
        try:
            call()
        except (Exception, SystemExit) as error:
            raise SparkJobError(f"{self.plan}: {describe(error, component, None, when)}") from error

    def settle(self) -> None:
        """Count what the bolt still holds as failed by timing out."""
        left = [tup for tup in self.held if tup.unfinished]
        for tup in left:
            note(self._failed.timed_out, tup.root)
        stats = self.stats
        stats.lost = len(left)
        stats.executed = stats.received
        stats.acked = stats.received - stats.failed - len(left)

    def state(self) -> bytes | None:
        """Return what the bolt knows, for the next round.

        ``left`` gets the names of attributes that can't be carried.
        """
        payload, self.left = kept(self._component, self.saved)
        return payload

    def close(self) -> None:
        """Close the component."""
        try:
            close(self._component)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self._links.report(self.plan, describe(error, self._component, None, "in close"))
