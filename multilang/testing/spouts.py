"""One spout by itself, asked for tuples and told what became of them by the test."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, cast

from multilang.component.runner import close, start_spout
from multilang.runtime.collectors import LocalSpoutCollector
from multilang.runtime.counters import TaskStats
from multilang.runtime.rotating import RotatingMap
from multilang.testing.harness import Emitted, Harness, Raised, check_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.component.spout import Spout
    from multilang.runtime.clock import VirtualClock


class SpoutRun:
    """A started spout, and everything it did.

    ``emitted``: what it emitted, in order; ``pending``: message ids neither acked nor failed; ``errors``: reported ones;
    ``logged``: (level, message); ``metrics``: (name, params); ``spout``: the spout itself.
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
        now: Any = monotonic
        if clock is not None:
            now = getattr(clock, "now", clock)
            if not callable(getattr(self.spout, "clock", None)):
                raise TypeError(
                    f"run_spout(clock=...): {type(self.spout).__name__} has no clock to be set; define clock(self), which "
                    "returns seconds, as ReliableSpout does, and ask that for the time"
                )
            self.spout.clock = now
        self._raised = Raised(expect)
        links = harness.links(lambda *_: None, lambda *_: None, lambda *_: None, now)
        collector = LocalSpoutCollector(harness.plan, links, TaskStats(), self._roots, self.ack)
        collector.reported = self._raised.add  # type: ignore[method-assign]
        self._runner = start_spout(self.spout, collector, harness.plan.conf, harness.plan.context)
        self._runner.activate()
        self._collect()

    @property
    def values(self) -> list[list[Any]]:
        """The values of what it emitted, without more."""
        return [emitted.values for emitted in self.emitted]

    @property
    def exhausted(self) -> bool | None:
        """What the spout says: whether no more will come, None when it can't tell."""
        return self._runner.exhausted()

    def next(self, times: int = 1) -> list[Emitted]:
        """Ask so many times for the next tuple; what it emitted."""
        before = len(self.emitted)
        for _ in range(times):
            self._runner.next()
            self._collect()
        return self.emitted[before:]

    def ack(self, tup_id: Any) -> None:
        """The tuple of this message id was fully processed."""
        self.pending.remove(tup_id)
        self._runner.ack(tup_id)
        self._collect()

    def fail(self, tup_id: Any) -> None:
        """The tuple of this message id failed."""
        self.pending.remove(tup_id)
        self._runner.fail(tup_id)
        self._collect()

    def activate(self) -> None:
        """The topology was activated."""
        self._runner.activate()
        self._collect()

    def deactivate(self) -> None:
        """The topology was deactivated."""
        self._runner.deactivate()
        self._collect()

    def close(self) -> None:
        """Tell it that it is over."""
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

    What became of its tuples is told with ``ack`` and ``fail``. Every output stream has a subscriber, the component
    "sink" of ``sink_tasks`` tasks. Emits are checked as on the wire. ``clock``: the time in seconds for a spout that asks its
    ``clock()``, as ReliableSpout does for its replays: a VirtualClock, or a function. An exception is raised here, one that
    is reported as well unless ``expect`` names its class; where none comes, ``close`` raises AssertionError.
    """
    check_kind(spout, "spout")
    run = SpoutRun(spout, conf, component, sink_tasks, seed, clock, expect)
    run.next(nexts)
    return run
