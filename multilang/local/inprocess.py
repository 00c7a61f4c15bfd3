"""A topology that runs in this process, in the thread that waits for it: for tests and debugging.

Tuples are run one after the other, depth first: everything that a call into a component emitted is processed before
anything else. So a spout is asked for its next tuple only when nothing is queued, and the queue never holds more than
the emits of one call of each component on the path. Tuples from one task to another stay in order.
"""

from __future__ import annotations

import gc
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from multilang.child.garbage import collect_rarely
from multilang.engine.clock import Timers
from multilang.engine.links import Links
from multilang.engine.task import Later
from multilang.local.acker import Acker
from multilang.local.actor_topology import ActorTopology
from multilang.local.actors import BoltActor, is_idle, make_idle
from multilang.topology.graph import cyclic, subscribers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random
    from typing import Any

    from multilang.component.timers import TaskTimers, TimerHandle
    from multilang.engine.clock import Clock
    from multilang.engine.plan import Plan
    from multilang.engine.tuples import LocalTuple
    from multilang.local.actors import SpoutActor
    from multilang.local.topology import Capture, Until

_LOOK_SECS = 1.0  # between two reports of repeated errors
_SHORTEST_SLEEP_SECS = 0.001  # between two checks of what other threads did, or of what is waited for:
_LONGEST_SLEEP_SECS = 0.05  # they become rarer the longer nothing happens


class InProcessTopology(ActorTopology):
    """A topology that runs while ``wait`` or ``run_for`` is called, in the caller's thread."""

    engine = "inprocess"

    def __init__(self, plan: Plan, clock: Clock, capture: Capture, rng: Random, fail_fast: bool) -> None:
        self._done: list[tuple[int, int, bool]] = []  # (spout task, root id, ok), from the ackers
        self._ackers = [Acker(self._done.append) for _ in plan.ackers]
        super().__init__(plan, clock, capture, rng, fail_fast)
        self._timers = Timers(clock)
        self._run = _depth_first(self.out, self._bolt_died)
        self._cycle = _Cycle(self._run_one)
        back = cyclic(subscribers(plan.topology.components.values()))
        for actor in self.bolts.values():
            if actor.plan.component in back:
                self.receivers[actor.plan.id] = _CycleEntry(self._cycle, actor)

    def _open(self) -> None:
        for each in self.actors:
            with self.starting(each):
                self.start(each)
        self._drain()
        self._start_timers()

    def _activate(self, spout: SpoutActor) -> None:
        self._call(spout, spout.runner.activate, "activate")

    def _links(self) -> Links:
        ackers = self._ackers
        n = len(ackers)
        init: Callable[[int, int, int], None] | None = None
        ack: Callable[[int, int], None] = _nothing
        fail: Callable[[int], None] = _nothing
        if n == 1:
            init, ack, fail = ackers[0].init, ackers[0].ack, ackers[0].fail
        elif n:

            def init(root: int, value: int, task: int) -> None:
                ackers[root % n].init(root, value, task)

            def ack(root: int, value: int) -> None:
                ackers[root % n].ack(root, value)

            def fail(root: int) -> None:
                ackers[root % n].fail(root)

        return Links(
            out=self.out,
            receivers=self.receivers,
            init=init,
            ack=ack,
            fail=fail,
            later=Later,
            named=self.named,
            acker=ackers[0] if n == 1 else None,
            at_once=True,
            getrandbits=self._rng.getrandbits,
            now=self.clock.now,
            log=self._log,
            report=self._error,
            metric=self._metric,
        )

    # ---- control ----

    def wait(self, until: Until = "drained", timeout: float | None = None) -> None:
        if until == "drained":
            self._check_running()
            self._check_opened()
            met = self._loop(None, True, timeout)
        elif callable(until):
            met = self._loop(lambda: until(self), False, timeout)
        else:
            raise ValueError(f'wait(until={until!r}): use "drained" or a function of the topology')
        if not met:
            raise self._not_met(until, f"{timeout} s", self.waiting_for)

    def run_for(self, secs: float) -> None:
        self._loop(None, False, secs)

    def deactivate(self) -> None:
        self._check_running()
        if self.active:
            self.active = False
            for spout in self.spouts.values():
                self._call(spout, spout.runner.deactivate, "deactivate")

    def kill(self, wait_secs: float = 0) -> None:
        if self.killed:
            return
        try:
            self.deactivate()
            if wait_secs and self.opened:
                self._loop(None, True, wait_secs)
        finally:
            self.killed = True
            self.close()
            self._ended()

    @property
    def waiting_for(self) -> list[str]:
        self._check_running()
        return self._waited_for()

    # ---- the loop ----

    def _loop(self, stop: Callable[[], object] | None, drained: bool, timeout: float | None) -> bool:
        usual = collect_rarely()
        self.observer.here()
        try:
            return self._loop_until(stop, drained, timeout)
        finally:
            gc.set_threshold(*usual)

    def _loop_until(self, stop: Callable[[], object] | None, drained: bool, timeout: float | None) -> bool:
        self._check_running()
        now = self.clock.now
        end = float("inf") if timeout is None else now() + timeout
        spouts = list(self.spouts.values())
        timers = self._timers
        out, done = self.out, self._done
        sleep = _SHORTEST_SLEEP_SECS
        while stop is None or not stop():
            if self.failure is not None:
                raise self.failure
            if out or done:  # from other threads, or from between two calls of this method
                self._drain()
                sleep = _SHORTEST_SLEEP_SECS
            instant = now()
            if instant >= timers.next_due:
                timers.run_due(instant)
                self._drain()
            if instant >= end:
                return drained and not self.waiting_for
            if self.opened and self._ask(spouts, instant):
                sleep = _SHORTEST_SLEEP_SECS
            else:
                if drained and not self.waiting_for and self.failure is None:
                    return True
                wake = min([end, timers.next_due, *(spout.next_at for spout in spouts if self._may_ask(spout))])
                self.clock.sleep(max(min(wake - now(), sleep), 0))
                sleep = min(2 * sleep, _LONGEST_SLEEP_SECS)
        return True

    def _may_ask(self, spout: SpoutActor) -> bool:
        return (self.active or (spout.always and self.opened)) and len(spout.pending) < spout.max_pending

    def _ask(self, spouts: Iterable[SpoutActor], now: float) -> bool:
        """Ask each spout that is due for its next tuple, once; return whether any emitted."""
        out = self.out
        done = self._done
        work = self.observer.work
        busy, active = False, self.active
        for spout in spouts:
            if spout.next_at > now or len(spout.pending) >= spout.max_pending or not (active or spout.always):
                continue
            stats = spout.stats
            emitted = stats.emitted
            left = spout.countdown - 1
            work.doing = (spout, "next_tuple")
            try:
                if left:
                    spout.countdown = left
                    spout.runner.next()
                else:
                    start = perf_counter()
                    spout.runner.next()
                    spout.took(perf_counter() - start)
                work.doing = None
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
                self.died(spout, error, None, "in next_tuple")
            if out or done:
                self._drain()
            if stats.emitted == emitted:
                spout.emitted_nothing(self.clock.now())
            else:
                spout.emitted()
                busy = True
        return busy

    def _drain(self) -> None:
        """Make all deliveries, and call the spouts' ``ack`` and ``fail``."""
        out = self.out
        done = self._done
        while out or done:
            if out:
                items = out[:]
                del out[: len(items)]  # not all of it: another thread may have added to it
                self._run(items)
            if done:
                settled = done[:]
                del done[: len(settled)]
                self._report(settled)

    def _report(self, settled: Iterable[tuple[int, int, bool]]) -> None:
        """Call the spouts' ``ack`` or ``fail``: (task, root id, whether acked) of each tuple."""
        task_before = -1
        work = self.observer.work
        spout: Any = None
        for task, root, ok in settled:
            if task != task_before:
                task_before, spout = task, self.spouts[task]
            entry = spout.pending.newest.pop(root, None) or spout.pending.remove(root)
            if entry is None:
                continue  # it timed out before, or its task died
            if not ok or entry[1] or spout.stats.lost_ids.ids:
                self.settled(spout, entry, ok)
                continue
            spout.idle = 0  # this is what ``settled`` does with most tuples, without a call
            spout.next_at = 0.0
            spout.stats.acked += 1
            work.doing = (spout, "ack")
            try:
                spout.runner.ack(entry[0])
                work.doing = None
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
                self.died(spout, error, None, f"in ack of {entry[0]!r}")

    def _call(self, spout: SpoutActor, call: Callable[[], object], method: str) -> None:
        try:
            with self.calling(spout, method):
                call()
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.died(spout, error, None, f"in {method}")
        self._drain()

    def _bolt_died(self, actor: BoltActor | Later, error: BaseException, tup: LocalTuple) -> None:
        if isinstance(actor, Later):
            owner: Any = self.bolts.get(actor.plan.id) or self.spouts[actor.plan.id]
            self.died(owner, error, None, "in on_task_ids")
        else:
            self.died(actor, error, tup)

    @property
    def _ackers_now(self) -> list[Acker]:
        return self._ackers

    # ---- timers ----

    def _start_timers(self) -> None:
        settings = self.plan.settings
        self._timers.every(_LOOK_SECS, self._repeats.report_due)
        self._timers.every(_LOOK_SECS, self._sample)
        for actor in self.actors:
            self._report_metrics_each(actor)
        if settings.message_timeouts:
            for acker in self._ackers:
                self._timers.every(settings.message_timeout_secs, acker.rotate)
            for spout in self.spouts.values():
                self._timers.every(spout.plan.settings.message_timeout_secs, _bound(self._expire, spout))
        for bolt in self.bolts.values():
            if bolt.plan.settings.tick_secs:
                if settings.message_timeouts:
                    self._timers.every(settings.message_timeout_secs, bolt.rotate)
                self._timers.every(bolt.plan.settings.tick_secs, _bound(self._tick, bolt))

    def _expire(self, spout: SpoutActor) -> None:
        for entry in self._expired(spout.plan.id, spout.pending):
            self.settled(spout, entry, False, timed_out=True)
        self._drain()

    def _tick(self, bolt: BoltActor) -> None:
        self._run_idle(((self.receivers[bolt.plan.id], self.tick_tuple(bolt)),))
        self._drain()

    def _call_at(self, due: float, call: Callable[[], None]) -> None:
        self._timers.at(due, call)

    def _call_each(self, secs: float, call: Callable[[], None]) -> None:
        self._timers.every(secs, call)

    def _fire(self, actor: BoltActor | SpoutActor, timers: TaskTimers, handle: TimerHandle) -> None:
        works = self.works(actor, handle)
        try:
            with self.calling(actor, f"timer {handle.name}"):
                timers.fire(handle)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            self.died(actor, error, None, "in a timer")
        if not works:
            mine = self.out[:]
            del self.out[: len(mine)]
            make_idle(mine)
            self._run_idle(mine)
        self._drain()

    def _run_one(self, actor: BoltActor, tup: LocalTuple) -> None:
        (self._run_idle if is_idle(tup) else self._run)(((actor, tup),))

    def _run_idle(self, items: Iterable[tuple[Any, Any]]) -> None:
        """Deliver IDLE tuples: tuples that they lead to are IDLE, too, unless they may come of others."""
        out = self.out
        for actor, tup in items:
            if type(actor) is not BoltActor:
                self._run(((actor, tup),))
                continue
            works = actor.takes_idle()
            actor.countdown -= 1
            if not actor.countdown:
                actor.count_down()
            start = perf_counter()
            try:
                actor.execute(tup)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
                self._bolt_died(actor, error, tup)
            actor.busy_secs += perf_counter() - start
            if out:
                mine = out[:]
                del out[: len(mine)]
                if works:
                    self._run(mine)
                else:
                    make_idle(mine)
                    self._run_idle(mine)


def _depth_first(
    out: list[tuple[Any, Any]], died: Callable[[Any, BaseException, Any], None]
) -> Callable[[Iterable[tuple[Any, Any]]], None]:
    """Return the function that makes deliveries, each followed by all those that it leads to."""

    def run(items: Iterable[tuple[Any, Any]]) -> None:
        for actor, tup in items:
            left = actor.countdown - 1
            try:
                if left:
                    actor.countdown = left
                    actor.execute(tup)
                else:
                    actor.count_down()
                    start = perf_counter()
                    actor.execute(tup)
                    actor.took(perf_counter() - start)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
                died(actor, error, tup)
            if out:
                mine = out[:]
                del out[: len(mine)]
                run(mine)

    return run


class _Cycle:
    """The queue of all tasks whose tuples may come back to them.

    With depth first, a task could be called while one of its tuples is being processed, and a later tuple could
    overtake an earlier one. With one queue, neither happens.
    """

    __slots__ = ("_running", "queue", "run")

    def __init__(self, run: Callable[[BoltActor, LocalTuple], None]) -> None:
        self.run = run
        self.queue: deque[tuple[BoltActor, LocalTuple]] = deque()
        self._running = False

    def put(self, actor: BoltActor, tup: LocalTuple) -> None:
        self.queue.append((actor, tup))
        if self._running:
            return
        self._running = True
        try:
            while self.queue:
                self.run(*self.queue.popleft())
        finally:
            self._running = False


class _CycleEntry:
    """The receiver in front of a task in a cycle."""

    __slots__ = ("countdown", "execute")

    def __init__(self, cycle: _Cycle, actor: BoltActor) -> None:
        self.countdown = -1
        self.execute = lambda tup: cycle.put(actor, tup)


def _nothing(*_: int) -> None:
    """Ignore messages to ackers, since there are none."""


def _bound(call: Callable[[Any], None], argument: Any) -> Callable[[], None]:
    return lambda: call(argument)
