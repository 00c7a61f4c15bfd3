"""A topology whose tasks are in this process: it starts their components, and restarts them when they die."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from multilang.component.base import Component, close_metrics, give_up, used_metrics
from multilang.component.clock import SYSTEM_CLOCK, virtual_clock
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.component.report import describe
from multilang.component.runner import close, start_bolt, start_spout
from multilang.component.timers import TaskTimers
from multilang.component.wrapper import innermost
from multilang.engine.bolt_collector import LocalBoltCollector
from multilang.engine.clock import SystemClock
from multilang.engine.counters import SAMPLE_EVERY
from multilang.engine.readable import counted
from multilang.engine.spout_collector import LocalSpoutCollector
from multilang.engine.status import CheckpointStatus
from multilang.engine.task import FIRST_DELAY_SECS, LONG_ENOUGH_SECS, LONGEST_DELAY_SECS, START_ATTEMPTS
from multilang.engine.tuples import IDLE, LocalTuple, Origin
from multilang.errors import LocalClusterError, TaskStartError
from multilang.local.actors import BoltActor, SpoutActor, is_idle
from multilang.local.errors import NotDrainedError
from multilang.local.observed import Observer
from multilang.local.topology import INACTIVE, LocalTopology, TaskInfo
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.settings import METRICS_INTERVAL, value
from multilang.topology.shell import ShellComponent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random
    from typing import Any

    from multilang.component.clock import TaskClock
    from multilang.component.collector import Collector
    from multilang.component.timers import TimerHandle
    from multilang.engine.clock import Clock
    from multilang.engine.links import Links
    from multilang.engine.plan import Plan
    from multilang.local.topology import Capture


def _timed(bolt: BoltActor) -> bool:
    """Return whether it has timers."""
    return bolt.timers is not None and bolt.timers.next_due < float("inf")


class ActorTopology(LocalTopology):
    """The base of the in-process and the simulated topology; ``out`` holds the deliveries that are still to be made."""

    def __init__(self, plan: Plan, clock: Clock, capture: Capture, rng: Random, fail_fast: bool) -> None:
        super().__init__(plan, clock, capture)
        for task in plan.tasks.values():
            if isinstance(task.spec.component, ShellComponent):
                raise LocalClusterError(
                    f"{task} is the command {' '.join(task.spec.component.command)!r}, which needs a process: "
                    'run this topology with LocalCluster(mode="process")'
                )
        self.active = False
        self.opened = False
        self.failure: LocalClusterError | None = None
        self.fail_fast = fail_fast
        self.out: list[tuple[Any, Any]] = []
        self.bolts: dict[int, BoltActor] = {}
        self.spouts: dict[int, SpoutActor] = {}
        self.receivers: dict[int, Any] = {}
        self._rng = rng
        self._system = Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",), self.name_tuple)
        self.named: dict[str, LocalTuple] = {}
        self.links = self._links()
        self.observer = Observer(self.bolts, plan.conf, self._log)
        for id, task in plan.tasks.items():
            for route in task.routes.values():
                route.origin.name_tuple = self.name_tuple
            if task.spec.kind == "bolt":
                self.receivers[id] = self.bolts[id] = BoltActor(task, self.stats[id])
            else:
                self.spouts[id] = SpoutActor(task, self.stats[id])

    @abstractmethod
    def _links(self) -> Links:
        """Return the connections of the collectors."""

    # ---- starting and ending tasks ----

    def activate(self) -> None:
        self._check_running()
        if self.active:
            return
        self.active = True
        if self.opened:
            for spout in self.spouts.values():
                self._activate(spout)
            return
        self.observer.start()
        try:
            self._open()
        except LocalClusterError as error:
            self.active = False
            self.fail(error)
            raise
        self.opened = True

    def _check_opened(self) -> None:
        """Raise NotDrainedError if it was never activated: only the thread that waits could do that."""
        if self.failure is None and not self.opened:
            message = f"topology {self.name!r} would never be drained; activate() it before wait():"
            raise NotDrainedError(message, [INACTIVE])

    @abstractmethod
    def _open(self) -> None:
        """Start all tasks and timers."""

    @abstractmethod
    def _activate(self, spout: SpoutActor) -> None:
        """Activate a started spout."""

    @property
    def actors(self) -> list[BoltActor | SpoutActor]:
        """All tasks, bolts first, so that a spout's first tuples can be delivered."""
        return [*self.bolts.values(), *self.spouts.values()]

    @contextmanager
    def starting(self, actor: BoltActor | SpoutActor) -> Iterator[None]:
        """Close the started tasks if this one can't be started: they may hold what the next run needs."""
        try:
            yield
        except BaseException:
            actor.component = None
            self.close()
            raise

    @contextmanager
    def calling(self, actor: BoltActor | SpoutActor, method: str) -> Iterator[None]:
        """Let the observer know that a method of user code is called, which works on no tuple."""
        work = self.observer.work
        outer, work.doing = work.doing, (actor, method)
        try:
            yield
        finally:
            work.doing = outer

    def start(self, actor: BoltActor | SpoutActor) -> None:
        """Give a task a component of its own, and initialize it."""
        for attempt in range(1, START_ATTEMPTS + 1):
            component: Any = actor.plan.spec.new()
            actor.component = component
            try:
                with self.calling(actor, "initialize"):
                    if isinstance(actor, BoltActor):
                        collector = LocalBoltCollector(actor.plan, self.links, actor.stats)
                        self._give_timers(actor, collector)
                        actor.scope = collector.scope
                        actor.execute = start_bolt(component, collector, actor.plan.conf, actor.plan.context)
                    else:
                        self._start_spout(actor, component)
                return
            except (Exception, SystemExit) as error:
                self.out.clear()
                message = describe(error, component, None, "in initialize")
                self._error(actor.plan, message, fatal=True)
                self._give_up(actor)
                wrong = isinstance(error, ConfigError | UnrecoverableError)  # a retry would fail as well
                if attempt == START_ATTEMPTS or self.fail_fast or wrong:
                    raise TaskStartError(f"{actor.plan} can't be started: {message}") from error

    def _give_timers(self, actor: BoltActor | SpoutActor, collector: Collector) -> None:
        """Give a starting task new timers; those of its dead component never run."""
        if actor.timers is not None:
            actor.timers.cancel_all()
        actor.timers = timers = TaskTimers(
            collector.scope, self._task_clock, lambda due: self._wake_at(due, actor, timers), is_idle
        )

    def _wake_at(self, due: float, actor: BoltActor | SpoutActor, timers: TaskTimers) -> None:
        """Run a task's timers at ``due``."""
        settings = actor.plan.settings
        if isinstance(actor, BoltActor) and not actor.has_timers:
            actor.has_timers = True
            if self.plan.settings.message_timeouts and not settings.tick_secs:
                self._call_each(self.plan.settings.message_timeout_secs, actor.rotate)

        def wake() -> None:
            if timers.take_wakeup(due):
                self._run_timers(actor, timers)

        self._call_at(due, wake)

    @abstractmethod
    def _call_at(self, due: float, call: Callable[[], None]) -> None:
        """Call ``call`` at the instant ``due``."""

    @abstractmethod
    def _call_each(self, secs: float, call: Callable[[], None]) -> None:
        """Call ``call`` every ``secs`` seconds."""

    def _run_timers(self, actor: BoltActor | SpoutActor, timers: TaskTimers) -> None:
        """Run the timers of a task that are due, unless it dies of one."""
        now, last = timers.clock.monotonic(), timers.serial
        while actor.timers is timers and (handle := timers.take(now, last)) is not None:
            self._fire(actor, timers, handle)
        if isinstance(actor, SpoutActor):
            actor.next_at = 0.0  # it may have something to emit now

    def _report_metrics_each(self, actor: BoltActor | SpoutActor) -> None:
        """Report a task's metrics after each interval of its conf."""

        def report() -> None:
            metrics = used_metrics(actor.component)  # type: ignore[arg-type]
            if metrics is not None:
                metrics.report()
            self._report_metrics_each(actor)

        self._call_at(self.clock.now() + value(actor.plan.conf, METRICS_INTERVAL), report)

    @abstractmethod
    def _fire(self, actor: BoltActor | SpoutActor, timers: TaskTimers, handle: TimerHandle) -> None:
        """Run one timer, and make the deliveries that it leads to."""

    def works(self, actor: BoltActor | SpoutActor, handle: TimerHandle) -> bool:
        """Return whether a timer's emits are waited for, like those of tuples."""
        if isinstance(actor, SpoutActor):
            return True
        works = handle.awaited or bool(actor.held)
        if works:
            actor.works()
        return works

    def _start_spout(self, actor: SpoutActor, component: Any) -> None:
        for tup_id, _ in actor.pending.values():
            actor.stats.lost_ids.add(tup_id)
        actor.pending.clear()  # "Spout task dies: source must replay"
        actor.idle = 0
        actor.next_at = 0.0
        collector = LocalSpoutCollector(actor.plan, self.links, actor.stats, actor.pending, component.ack)
        self._give_timers(actor, collector)
        actor.started_at = self.clock.now()
        actor.runner = start_spout(component, collector, actor.plan.conf, actor.plan.context)
        if self.active:
            actor.runner.activate()

    def died(
        self, actor: BoltActor | SpoutActor, error: BaseException, tup: LocalTuple | None, where: str = ""
    ) -> None:
        """Report the exception of a task and restart the task; the tuples that it held time out."""
        self.observer.work.doing = None  # the call is over
        if isinstance(actor, BoltActor):
            actor.scope = None
        message = describe(error, actor.component, tup, where)  # type: ignore[arg-type]
        self._error(actor.plan, message, fatal=True)
        if isinstance(error, UnrecoverableError):
            raise LocalClusterError(f"topology {self.name!r} ends: {message}") from error
        if self.fail_fast:
            raise LocalClusterError(f"{actor.plan} died: {message}") from error
        now = self.clock.now()
        if isinstance(actor, SpoutActor):
            worked = actor.spout.came_to_it or now - actor.started_at > LONG_ENOUGH_SECS
            actor.deaths = 1 if worked else actor.deaths + 1
            if actor.deaths >= START_ATTEMPTS:
                raise TaskStartError(
                    f"{actor.plan} died {actor.deaths} times without {actor.spout.must_come_to or 'emitting a tuple'}: {message}"
                ) from error
        self.restart(actor)
        if isinstance(actor, SpoutActor):
            actor.next_at = now + min(FIRST_DELAY_SECS * 2**actor.deaths, LONGEST_DELAY_SECS)

    def restart(self, actor: BoltActor | SpoutActor) -> None:
        """Replace a dead component by a new one."""
        self._give_up(actor)
        actor.stats.restarts += 1
        if isinstance(actor, BoltActor):
            actor.settle()
            actor.stats.lost += actor.stats.unfinished
            actor.stats.idle = 0
        self.start(actor)

    def _give_up(self, actor: BoltActor | SpoutActor) -> None:
        """Let a dead component release what others wait for, such as its place in a group of consumers."""
        component = innermost(actor.component)
        if isinstance(component, Component):
            close_metrics(component)
            try:
                give_up(component)
            except Exception as error:  # noqa: BLE001  # the task is restarted all the same
                self._error(actor.plan, describe(error, component, None, "after its death"))

    def close(self) -> None:
        """Close all components."""
        for actor in self.actors:
            if actor.component is None or not hasattr(actor.component, "_collector"):
                continue  # it was not started
            try:
                with self.calling(actor, "close"):
                    close(actor.component)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code: the other components must be closed, too
                self._error(actor.plan, describe(error, actor.component, None, "in close"))
        self.observer.end()
        self._repeats.report_rest()

    # ---- events of tasks ----

    def fail(self, error: LocalClusterError) -> None:
        self.failure = self.failure or error

    def tick_tuple(self, actor: BoltActor) -> LocalTuple:
        """Return the tuple of a tick."""
        return LocalTuple([actor.plan.settings.tick_secs], TICK_STREAM, self._system, 0, IDLE)

    def settled(self, actor: SpoutActor, entry: tuple[Any, float], ok: bool, timed_out: bool = False) -> None:
        """Call a spout's ``ack`` or ``fail`` for one of its tuples."""
        tup_id, emitted_at = entry
        actor.idle = 0  # it may have more tuples now
        actor.next_at = 0.0
        work = self.observer.work
        work.doing = (actor, "ack" if ok else "fail")
        try:
            if ok:
                actor.stats.acked += 1
                actor.stats.lost_ids.discard(tup_id)
                if emitted_at:
                    actor.stats.complete.add(self.clock.now() - emitted_at)
                    start = perf_counter()
                    actor.runner.ack(tup_id)
                    actor.busy_secs += (perf_counter() - start) * (SAMPLE_EVERY if actor.stats.acked > 1 else 1)
                else:
                    actor.runner.ack(tup_id)
            else:
                actor.stats.fail(tup_id, timed_out)
                actor.runner.fail(tup_id)
            work.doing = None
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.died(actor, error, None, f"in {'ack' if ok else 'fail'} of {tup_id!r}")

    def name_tuple(self, tup: LocalTuple) -> str:
        """Return a new id for a tuple that is asked for its id; the tuple can be acked and anchored to by it."""
        id = str(self._rng.getrandbits(63))
        self.named[id] = tup
        return id

    def _held(self) -> list[tuple[int | dict[int, int], int]]:
        bolts = (innermost(bolt.component) for bolt in self.bolts.values())
        return [each for bolt in bolts if getattr(bolt, "holds_tuples", False) for each in bolt.held_tuples()]

    # ---- observation ----

    @property
    def tasks(self) -> list[TaskInfo]:
        actors: dict[int, Any] = {**self.spouts, **self.bolts}
        return [
            TaskInfo(
                id,
                task.component,
                task.spec.kind,
                self.opened and not self.killed,
                self.stats[id].restarts,
                None,
                None if actors[id].component is None else innermost(actors[id].component),
            )
            for id, task in self.plan.tasks.items()
        ]

    @property
    def _task_clock(self) -> TaskClock:
        """The clock that components read."""
        return SYSTEM_CLOCK if isinstance(self.clock, SystemClock) else virtual_clock(self.clock.now)

    def _count(self) -> None:
        for bolt in self.bolts.values():
            bolt.settle()
            bolt.stats.busy = bolt.busy
        for spout in self.spouts.values():
            spout.stats.pending = len(spout.pending)
            spout.stats.busy = spout.busy
        for actor in self.actors:
            metrics = None if actor.component is None else used_metrics(actor.component)
            actor.stats.metrics = () if metrics is None else metrics.totals()

    @property
    def state(self) -> str:
        return self._state(self.failure, self.active)

    @property
    def checkpoint(self) -> CheckpointStatus | None:
        for spout in self.spouts.values():
            last = None if spout.component is None else getattr(innermost(spout.component), "last_checkpoint", None)
            if last is not None:
                number, at, seconds = last
                return CheckpointStatus(number=number, age_secs=self.clock.now() - at, seconds=seconds)
        return None

    def _open_spouts(self) -> list[str]:
        lines = []
        for spout in self.spouts.values():
            if len(spout.pending):
                lines.append(
                    spout.stats.with_failures(f"{spout.plan}: {counted(len(spout.pending))} neither acked nor failed")
                )
            elif (self.active or spout.always) and not spout.exhausted:
                why = "its exhausted() returns False" if spout.runner.exhausted() is False else "it still emits"
                lines.append(spout.stats.with_failures(f"{spout.plan}: not exhausted, {why}"))
        return lines

    def _waited_for(self) -> list[str]:
        """Return what is waited for: spouts, and bolts that hold tuples and have ticks or timers.

        A timer that is called once is waited for in any case, unless it was set by another timer or for what came of
        ticks alone: such timers may follow one another forever. If nothing times out, any bolt that holds tuples counts,
        as with processes. If anything is waited for, bolts without ticks that hold tuples are named as well: these may
        be the spouts' tuples.
        """
        if not self.opened:
            return [INACTIVE]
        lines = self._open_spouts()
        timeouts = self.plan.settings.message_timeouts
        able = [bolt for bolt in self.bolts.values() if bolt.plan.settings.tick_secs or not timeouts or _timed(bolt)]
        for bolt in able:
            if bolt.timers is not None and bolt.timers.awaited:
                lines.append(f"{bolt.plan}: {bolt.timers.awaited} timers pending")
        lines += [f"{bolt.plan}: its state is not committed yet" for bolt in self.bolts.values() if bolt.uncommitted]
        if not lines and not any(bolt.held for bolt in able):
            return []
        held = ((bolt, bolt.held) for bolt in self.bolts.values())
        return [
            *lines,
            *(f"{bolt.plan}: {counted(number)} neither acked nor failed" for bolt, number in held if number),
        ]
