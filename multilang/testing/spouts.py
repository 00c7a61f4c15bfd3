"""Run one spout alone; the test asks it for tuples, and acks or fails them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from multilang.component.clock import MovableClock, virtual_clock
from multilang.component.runner import close, start_spout
from multilang.component.timers import TaskTimers
from multilang.engine.counters import TaskStats
from multilang.engine.rotating import RotatingMap
from multilang.engine.spout_collector import LocalSpoutCollector
from multilang.testing.harness import Emitted, Harness, Raised, check_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.component.clock import TaskClock
    from multilang.component.spout import Spout
    from multilang.engine.clock import VirtualClock


class SpoutRun:
    """A started spout, and everything it did.

    Attributes:
        emitted: The tuples that it emitted, in order.
        pending: The message ids that are neither acked nor failed.
        errors: The errors that it reported.
        logged: Its log lines, as (level, message).
        metrics: Its metrics, as (name, params).
        spout: The spout itself.
    """

    def __init__(
        self,
        spout: Spout | type[Spout],
        conf: Mapping[str, Any] | None,
        component: str,
        sink_tasks: int,
        seed: int,
        clock: VirtualClock | Callable[[], float] | None = None,
        expect: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        harness = Harness(spout, {}, conf, component, sink_tasks, seed)
        self._harness = harness
        self.spout = cast("Any", harness.plan.spec.component)
        self.emitted: list[Emitted] = []
        self.pending: list[Any] = []
        self.errors = harness.errors
        self.logged = harness.logged
        self.metrics = harness.metrics
        self._roots: RotatingMap[tuple[Any, float]] = RotatingMap()
        given: Any = clock
        own: TaskClock = MovableClock() if given is None else virtual_clock(getattr(given, "now", given))
        self._moves: Any = getattr(own if given is None else given, "move_to", None)
        now = own.monotonic
        self._raised = Raised(expect)
        links = harness.links(lambda *_: None, lambda *_: None, lambda *_: None, now)
        collector = LocalSpoutCollector(harness.plan, links, TaskStats(), self._roots, self.ack, self._raised.add)
        self._timers = TaskTimers(collector.scope, own)
        self._runner = start_spout(self.spout, collector, harness.plan.conf, harness.plan.context)
        self._runner.activate()
        self._collect()

    @property
    def values(self) -> list[list[Any]]:
        """The values of the tuples that it emitted."""
        return [emitted.values for emitted in self.emitted]

    @property
    def exhausted(self) -> bool | None:
        """True if the spout reports that no more tuples will come; None when it is unknown."""
        return self._runner.exhausted()

    def next(self, times: int = 1) -> list[Emitted]:
        """Ask ``times`` times for the next tuple; return the tuples that it emitted."""
        before = len(self.emitted)
        for _ in range(times):
            self._runner.next()
            self._collect()
        return self.emitted[before:]

    def advance(self, secs: float) -> list[Emitted]:
        """Let ``secs`` seconds pass on the spout's clock, and run its timers that become due, each at its instant.

        Returns:
            The tuples that it emitted.

        Raises:
            TypeError: Its clock is a function that the test gave, which only the test can move on.
        """
        if self._moves is None:
            raise TypeError("SpoutRun.advance: the clock that run_spout got is a function; give it a VirtualClock")
        before = len(self.emitted)
        now = self._timers.clock.monotonic
        end = now() + secs
        while (due := self._timers.next_due) <= end:
            self._moves(due)
            self._timers.run_due()
            self._collect()
        self._moves(end)
        return self.emitted[before:]

    def ack(self, tup_id: Any) -> None:
        """Ack the tuple with this message id."""
        self.pending.remove(tup_id)
        self._runner.ack(tup_id)
        self._collect()

    def fail(self, tup_id: Any) -> None:
        """Fail the tuple with this message id."""
        self.pending.remove(tup_id)
        self._runner.fail(tup_id)
        self._collect()

    def activate(self) -> None:
        """Activate the topology."""
        self._runner.activate()
        self._collect()

    def deactivate(self) -> None:
        """Deactivate the topology."""
        self._runner.deactivate()
        self._collect()

    def close(self) -> None:
        """Close the spout; raise AssertionError if an expected exception never came."""
        close(self.spout)
        self._collect()
        self._raised.check_came(self.spout)

    def _collect(self) -> None:
        for tup, direct_task in self._harness.taken():
            entry = self._roots.remove(tup.root) if isinstance(tup.root, int) else None
            tup_id = None if entry is None else entry[0]
            if entry is not None:
                self.pending.append(tup_id)
            self.emitted.append(Emitted(tup, (), tup_id, direct_task))
        self._raised.check()


def run_spout(
    spout: Spout | type[Spout],
    nexts: int = 0,
    conf: Mapping[str, Any] | None = None,
    *,
    component: str = "spout",
    sink_tasks: int = 1,
    seed: int = 0,
    clock: VirtualClock | Callable[[], float] | None = None,
    expect: type[Exception] | tuple[type[Exception], ...] = (),
) -> SpoutRun:
    """Initialize and activate ``spout`` and ask it ``nexts`` times for its next tuple, in this thread.

    The test calls ``ack`` and ``fail`` of the result. Every output stream has a subscriber, the component "sink". Emits
    are checked as on the wire. An exception is raised here, even if it would only be reported.

    Args:
        spout: The spout, or its class.
        nexts: How often it is asked.
        conf: The spout's conf.
        component: Its component id.
        sink_tasks: The number of the sink's tasks.
        seed: Makes random choices repeatable.
        clock: The spout's clock: a VirtualClock, or a function that returns seconds. None: the machine's, which
            ``advance`` of the result can move on.
        expect: Classes of exceptions that the test expects to be reported. If none comes, ``close`` raises
            AssertionError.

    Returns:
        The spout, and what it did.

    Raises:
        TypeError: It is no spout, or one in another language.
    """
    check_kind(spout, "spout")
    run = SpoutRun(spout, conf, component, sink_tasks, seed, clock, expect)
    run.next(nexts)
    return run
