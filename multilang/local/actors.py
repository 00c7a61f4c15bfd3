"""Tasks in this process, with their component, counts and busy time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.engine.counters import SAMPLE_EVERY, SLOW_SECS
from multilang.engine.rotating import RotatingMap
from multilang.engine.task import IDLE_ROUNDS
from multilang.engine.tuples import IDLE, LocalTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.component.base import Component
    from multilang.component.runner import SpoutRunner
    from multilang.component.timers import Scope, TaskTimers
    from multilang.engine.counters import TaskStats
    from multilang.engine.plan import TaskPlan


class BoltActor:
    """A bolt's task.

    Attributes:
        execute: Runs one tuple.
        scope: The scope of its collector; None: it is not started.
        countdown: Counts down to the next tuple whose time is measured.
        counted: The number of tuples that it had got when ``countdown`` was set last.
        every: The number that ``countdown`` was set to.
        measured: The number of tuples, without the IDLE ones, that ``busy_secs`` stands for.
        commits: Whether it has a state that is committed at checkpoints.
        busy_secs: The time in which they were executed: each measured time stands for all since the one before.
        last_secs: The last measured time.
        works_before: The number of tuples, without the IDLE ones, that it had got at each of the last message timeouts.
    """

    __slots__ = (
        "busy_secs",
        "commits",
        "component",
        "countdown",
        "counted",
        "every",
        "execute",
        "has_timers",
        "idle_executed",
        "last_secs",
        "measured",
        "plan",
        "scope",
        "stats",
        "timers",
        "works_before",
    )

    def __init__(self, plan: TaskPlan, stats: TaskStats) -> None:
        self.plan = plan
        self.stats = stats
        self.component: Any = None
        self.scope: Scope | None = None
        self.commits = getattr(plan.spec.component, "commits", False)
        self.execute: Callable[[Any], object]
        self.countdown = self.every = 1
        self.counted = 0
        self.idle_executed = 0
        self.measured = 0
        self.busy_secs = 0.0
        self.last_secs = 0.0
        self.timers: TaskTimers | None = None
        self.has_timers = False  # it has set a timer at least once
        self.works_before: deque[int] = deque(maxlen=3)

    @property
    def executed(self) -> int:
        """The number of tuples that it got."""
        return self.counted + self.every - self.countdown

    def count_down(self) -> None:
        """Begin the next countdown."""
        self.counted += self.every
        self.countdown = self.every = SAMPLE_EVERY

    def took(self, secs: float) -> None:
        """Note the measured time of a tuple, which stands for all since the last one that was measured."""
        works = self.executed - self.idle_executed
        self.stats.execute.add(secs, works - self.measured)
        self.busy_secs += secs * (works - self.measured)
        self.measured = works
        self.last_secs = secs
        if secs > SLOW_SECS:
            self.countdown = self.every = 1

    @property
    def busy(self) -> float | None:
        """The seconds in which it was busy, as far as its sample tells; None: nothing was measured."""
        if not self.measured and not self.busy_secs:
            return None
        return self.busy_secs + self.last_secs * (self.executed - self.idle_executed - self.measured)

    def settle(self) -> None:
        """Update the counts."""
        self.stats.executed = self.stats.received = self.executed

    # ---- tuples that are not waited for, see IDLE ----

    @property
    def held(self) -> int:
        """The number of tuples to wait for: neither acked nor failed; one whose spout's tuple timed out counts for 2 or 3 timeouts."""
        self.settle()
        held = self.stats.unfinished - self.stats.idle
        if held and len(self.works_before) == self.works_before.maxlen:
            return min(held, self.executed - self.idle_executed - self.works_before[0])
        return held

    def rotate(self) -> None:
        """Note that ``topology.message.timeout.secs`` have passed."""
        self.works_before.append(self.executed - self.idle_executed)

    def takes_idle(self) -> bool:
        """Count an IDLE tuple; return whether its emits may also come of other tuples."""
        works = bool(self.held)
        self.idle_executed += 1
        self.stats.idle += 1
        if works:
            self.works()
        return works

    # ---- a state ----

    def works(self) -> None:
        """Note that its present work is waited for, and may change its state."""
        if self.commits:
            self.component.worked()

    @property
    def uncommitted(self) -> bool:
        """True if its state has changes that came of work and are not committed yet."""
        return self.commits and self.component is not None and self.component.uncommitted


class SpoutActor:
    """A spout's task.

    Attributes:
        always: Whether it is asked while the topology is inactive, too: the checkpoint spout, without which tuples in
            flight would never be acked.
        pending: Root id -> (message id, time of the emit if it is sampled, otherwise 0).
        idle: Empty nexts in a row since the last ack, fail or the like.
        next_at: The time from which it may be asked again.
        deaths: Deaths in a row.
        started_at: When its component was started last.
        countdown: Counts down to the next call of next_tuple() whose time is measured.
        every: The number that ``countdown`` was set to.
        busy_secs: The time of all its calls until the last measured one, of which a sample is measured.
        last_secs: The last measured time of next_tuple(); None: none was measured.
    """

    __slots__ = (
        "always",
        "busy_secs",
        "component",
        "countdown",
        "deaths",
        "every",
        "idle",
        "last_secs",
        "max_pending",
        "next_at",
        "pending",
        "plan",
        "runner",
        "started_at",
        "stats",
        "timers",
    )

    def __init__(self, plan: TaskPlan, stats: TaskStats) -> None:
        self.plan = plan
        self.stats = stats
        self.component: Component | None = None
        self.runner: SpoutRunner
        self.always = hasattr(plan.spec.component, "last_checkpoint")
        self.pending: RotatingMap[tuple[Any, float]] = RotatingMap(2)
        self.max_pending = plan.settings.max_spout_pending or float("inf")
        self.idle = 0
        self.next_at = 0.0
        self.deaths = 0
        self.started_at = 0.0
        self.countdown = self.every = 1
        self.busy_secs = 0.0
        self.last_secs: float | None = None
        self.timers: TaskTimers | None = None

    def took(self, secs: float) -> None:
        """Note the measured time of a call of next_tuple()."""
        self.busy_secs += secs * self.every
        self.last_secs = secs
        self.countdown = self.every = 1 if secs > SLOW_SECS else SAMPLE_EVERY

    @property
    def busy(self) -> float | None:
        """The seconds in which it was busy, as far as its sample tells; None: nothing was measured."""
        return None if self.last_secs is None else self.busy_secs + self.last_secs * (self.every - self.countdown)

    @property
    def spout(self) -> Any:
        """The component's spout, without its wrappers."""
        return innermost(self.component)

    def emitted(self) -> None:
        """Ask it again at once, since it emitted something."""
        self.idle = 0
        self.next_at = 0.0
        if self.deaths and self.spout.must_come_to is None:
            self.deaths = 0

    def emitted_nothing(self, now: float, virtual: bool = False) -> None:
        """Do not ask it for a while, since it emitted nothing."""
        self.idle += 1
        waits = self.plan.settings.spout_wait_secs(self.idle, self.runner.exhausted(), virtual)
        self.next_at = max(self.next_at, now + waits)  # longer after a death

    @property
    def exhausted(self) -> bool:
        """True if it has no more tuples, as far as is known."""
        answer = self.runner.exhausted()
        return self.idle >= IDLE_ROUNDS if answer is None else answer


def is_idle(tup: LocalTuple) -> bool:
    """Return whether a tuple came of ticks alone."""
    return not tup.root and tup.edge == IDLE


def make_idle(items: Iterable[tuple[Any, Any]]) -> None:
    """Mark deliveries as coming of ticks alone, except those that are anchored to a spout's tuple."""
    for _, content in items:
        if isinstance(content, LocalTuple) and not content.root:
            content.edge = IDLE
