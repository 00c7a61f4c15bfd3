"""A topology on a virtual clock: the order of events and the faults are drawn from a seed.

Every message (a tuple, or a message to or from an acker) takes a random time, but messages from one task to another
stay in order. The same seed gives the same run, event by event; hours of timeouts pass in no time.
"""

from __future__ import annotations

import heapq
import random
from functools import partial
from typing import TYPE_CHECKING

from multilang.engine.clock import VirtualClock
from multilang.engine.links import Links
from multilang.engine.task import Later
from multilang.local.acker import Acker
from multilang.local.actor_topology import ActorTopology
from multilang.local.actors import BoltActor, SpoutActor, is_idle, make_idle
from multilang.local.faults import NO_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

    from multilang.component.timers import TaskTimers, TimerHandle
    from multilang.engine.plan import Plan
    from multilang.engine.tuples import LocalTuple
    from multilang.local.faults import Faults
    from multilang.local.topology import Capture, Until

LONGEST_SECS = 24 * 3600.0  # virtual ones, for a wait without timeout: a topology that does not drain in a day hangs
MAX_MESSAGES = 1000  # messages; while there are more, spouts are not asked
_METHODS = {"next": "next_tuple", "task ids for": "on_task_ids"}
_TRIP_SECS = 0.002  # the longest time that a message takes
_JITTER_SECS = 0.001  # the longest delay of a spout's next after the time when it could be asked


class Event:
    """One event: ``at`` (virtual seconds), ``what``, the ``task`` that it happened to, and its ``detail``."""

    __slots__ = ("at", "detail", "task", "what")

    def __init__(self, at: float, what: str, task: int, detail: object) -> None:
        self.at = at
        self.what = what
        self.task = task
        self.detail = detail

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((self.at, self.what, self.task))

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.what} task {self.task}: {self.detail}"

    __repr__ = __str__


class _AckerTask:
    """An acker, which may die."""

    __slots__ = ("acker", "down_until", "id")

    def __init__(self, id: int, acker: Acker) -> None:
        self.id = id
        self.acker = acker
        self.down_until = 0.0


class SimulatedTopology(ActorTopology):
    """A topology that runs while ``wait`` or ``run_for`` is called, in virtual seconds; ``log`` has every event."""

    engine = "simulated"

    def __init__(
        self, plan: Plan, capture: Capture, rng: Random, seed: int, faults: Faults | None, fail_fast: bool
    ) -> None:
        self.seed = seed
        self.log: list[Event] = []
        self.faults = faults or NO_FAULTS
        self.faults_so_far = 0
        self._calm_until = 0.0  # before it there is no fault
        self.virtual = VirtualClock()
        self._order = random.Random(rng.getrandbits(64))
        self._chance = random.Random(rng.getrandbits(64))
        # the state of the module ``random`` while components run
        self._users = random.Random(rng.getrandbits(64)).getstate()
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._in_flight = 0
        self._last_due: dict[tuple[int, int], float] = {}
        self._settled: list[tuple[int, int, bool]] = []
        self._ackers = [_AckerTask(id, Acker(self._settled.append)) for id in plan.ackers]
        self._down_until: dict[int, float] = {}
        self._asked: dict[int, float] = {}  # the time of a spout's next ``next`` in the heap
        super().__init__(plan, self.virtual, capture, rng, fail_fast)
        self.receivers.update({id: id for id in self.bolts})

    def _open(self) -> None:
        for actor in self.actors:
            with self.starting(actor):
                self.start(actor)
            self._send(actor.plan.id)
        self._start_timers()
        for spout in self.spouts.values():
            self._ask_soon(spout)

    def _activate(self, spout: SpoutActor) -> None:
        self._work(spout, spout.runner.activate, "activate", None)
        self._ask_soon(spout)

    def _links(self) -> Links:
        out = self.out
        with_ackers = bool(self._ackers)

        def init(root: int, value: int, task: int) -> None:
            out.append((None, ("init", root, value, task)))

        def ack(root: int, value: int) -> None:
            out.append((None, ("ack", root, value)))

        def fail(root: int) -> None:
            out.append((None, ("fail", root)))

        return Links(
            out=out,
            receivers=self.receivers,
            init=init if with_ackers else None,
            ack=ack,
            fail=fail,
            later=Later,
            named=self.named,
            getrandbits=self._rng.getrandbits,
            now=self.virtual.now,
            log=self._log,
            report=self._error,
            metric=self._metric,
        )

    # ---- control ----

    def wait(self, until: Until = "drained", timeout: float | None = None) -> None:
        secs = LONGEST_SECS if timeout is None else timeout
        if until == "drained":
            self._check_running()
            self._check_opened()
            met = self._loop(self._is_drained, secs)
        elif callable(until):
            met = self._loop(lambda: until(self), secs)
        else:
            raise ValueError(f'wait(until={until!r}): use "drained" or a function of the topology')
        if not met:
            raise self._not_met(until, f"{secs:.0f} virtual seconds", self.waiting_for, f" (seed {self.seed})")

    def run_for(self, secs: float) -> None:
        self._loop(lambda: False, secs)

    def deactivate(self) -> None:
        self._check_running()
        if self.active:
            self.active = False
            for spout in self.spouts.values():
                self._work(spout, spout.runner.deactivate, "deactivate", None)

    def kill(self, wait_secs: float = 0) -> None:
        if self.killed:
            return
        try:
            self.deactivate()
            if wait_secs and self.opened:
                self._loop(self._is_drained, wait_secs)
        finally:
            self.killed = True
            self.close()
            self._ended()

    @property
    def waiting_for(self) -> list[str]:
        self._check_running()
        lines = self._waited_for()
        return [*lines, f"{self._in_flight} messages in flight"] if self._in_flight else lines

    def _is_drained(self) -> bool:
        return not self._in_flight and not self.waiting_for

    # ---- the loop ----

    def _loop(self, stop: Callable[[], object], secs: float) -> bool:
        self._check_running()
        self.observer.here()
        if self.failure is not None:
            raise self.failure
        if self.out:  # emitted between two calls of this method
            self._send(next(iter(self.bolts), next(iter(self.spouts))))
        end = self.virtual.now() + secs
        heap = self._heap
        others = random.getstate()
        random.setstate(self._users)
        try:
            while not stop():
                if not heap or heap[0][0] > end:
                    self.virtual.move_to(end)
                    return False
                due, _, call = heapq.heappop(heap)
                self.virtual.move_to(due)
                call()
                if self.failure is not None:
                    raise self.failure
            return True
        finally:
            self._users = random.getstate()
            random.setstate(others)

    def _at(self, due: float, call: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (due, self._serial, call))

    def _note(self, what: str, task: int, detail: object) -> None:
        self.log.append(Event(self.virtual.now(), what, task, detail))

    # ---- messages ----

    def _message(self, source: int, target: int, call: Callable[[], None], idle: bool = False) -> None:
        """Schedule ``call`` after a random time, and after every earlier message from ``source`` to ``target``.

        ``idle``: it delivers a tuple that is not waited for.
        """
        trip = self._order.random() * _TRIP_SECS
        if self._happens(self.faults.late):
            longest = self.faults.late_secs
            trip = self._chance.random() * (3 * self.plan.settings.message_timeout_secs if longest is None else longest)
            self._note("late message to", target, f"from task {source}, {trip:.3f} s")
        due = max(self.virtual.now() + trip, self._last_due.get((source, target), 0.0))
        self._last_due[source, target] = due
        if idle:
            self._at(due, call)
            return
        self._in_flight += 1

        def arrive() -> None:
            self._in_flight -= 1
            call()

        self._at(due, arrive)

    def _send(self, source: int, through: int | None = None) -> None:
        """Send what a task emitted, or only the first ``through`` messages of it."""
        items = self.out[:]
        self.out.clear()
        restarts = self.stats[source].restarts
        for receiver, content in items[:through]:
            if receiver is None:
                acker = self._ackers[content[1] % len(self._ackers)] if self._ackers else None
                if acker is not None:
                    self._message(source, acker.id, self._acker_call(acker, content))
            elif isinstance(receiver, Later):
                if self.stats[source].restarts != restarts:
                    continue  # it died of an earlier message, and with it the receiver of these task ids
                self._work(self._actor(source), partial(receiver.execute, content), "task ids for", content)
            else:
                self._message(source, receiver, self._delivery(self.bolts[receiver], content), is_idle(content))

    def _delivery(self, bolt: BoltActor, tup: LocalTuple) -> Callable[[], None]:
        def deliver() -> None:
            if self._down_until.get(bolt.plan.id, 0.0) > self.virtual.now():
                self._note("lost on the way to", bolt.plan.id, tup.values)
                return
            self._process(bolt, tup)

        return deliver

    def _process(self, bolt: BoltActor, tup: LocalTuple) -> None:
        call: Callable[[], object] = partial(bolt.execute, tup)
        if is_idle(tup):
            call = partial(self._take_idle, bolt, tup, bolt.takes_idle())
        bolt.countdown -= 1
        if not bolt.countdown:
            bolt.count_down()
        self._work(bolt, call, "process", tup)

    def _take_idle(self, bolt: BoltActor, tup: LocalTuple, works: bool) -> None:
        try:
            bolt.execute(tup)
        finally:
            if not works:
                make_idle(self.out)

    @property
    def _ackers_now(self) -> list[Acker]:
        return [each.acker for each in self._ackers]

    def _acker_call(self, acker: _AckerTask, content: tuple[Any, ...]) -> Callable[[], None]:
        def deliver() -> None:
            kind, root, *rest = content
            if acker.down_until > self.virtual.now():
                self._note("lost on the way to acker", acker.id, kind)
                return
            if self._happens(self.faults.acker_crash):
                self._note("crash of acker", acker.id, kind)
                acker.acker = acker.acker.successor()
                acker.down_until = self.virtual.now() + self._chance.random() * self.faults.restart_secs
                return
            getattr(acker.acker, kind)(root, *rest)
            for task, root, ok in self._settled:
                self._message(acker.id, task, self._settling(task, root, ok))
            self._settled.clear()

        return deliver

    def _settling(self, task: int, root: int, ok: bool) -> Callable[[], None]:
        def settle() -> None:
            spout = self.spouts[task]
            entry = spout.pending.remove(root)
            if entry is not None:
                self._report(spout, entry, ok)

        return settle

    def _report(self, spout: SpoutActor, entry: tuple[Any, float], ok: bool, timed_out: bool = False) -> None:
        self._work(spout, lambda: self.settled(spout, entry, ok, timed_out), "ack" if ok else "fail", entry[0])
        self._ask_soon(spout)

    # ---- calls into components ----

    def _actor(self, task: int) -> BoltActor | SpoutActor:
        return self.bolts[task] if task in self.bolts else self.spouts[task]

    def _work(self, actor: BoltActor | SpoutActor, call: Callable[[], object], what: str, detail: Any) -> None:
        """Call into a component, which may die of it."""
        task = actor.plan.id
        shown = (detail.component, detail.stream, list(detail.values)) if hasattr(detail, "values") else detail
        if what != "next":
            self._note(what, task, shown)
        dies = (isinstance(actor, BoltActor) or self.faults.spouts) and self._happens(self.faults.crash)
        work = self.observer.work
        work.doing = (actor, _METHODS.get(what, what))
        try:
            call()
            work.doing = None
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            through = self._chance.randint(0, len(self.out))
            self._note("death of", task, repr(error))
            sent, self.out[:] = self.out[:through], []
            self.died(actor, error, detail if what == "process" else None, "" if what == "process" else f"in {what}")
            self.out[:0] = sent
        else:
            if dies:
                sent = self.out[: self._chance.randint(0, len(self.out))]
                sent = [item for item in sent if not isinstance(item[0], Later)]  # the receiver of task ids is dead
                self.out.clear()
                self._note("crash of", task, f"{len(sent)} messages got through")
                self._down_until[task] = self.virtual.now() + self._chance.random() * self.faults.restart_secs
                self.restart(actor)
                self.out[:0] = sent
        self._send(task)

    def _happens(self, probability: float) -> bool:
        if not probability or self.faults_so_far >= self.faults.limit or self.virtual.now() < self._calm_until:
            return False
        happens = self._chance.random() < probability
        if happens:
            self.faults_so_far += 1
            self._calm_until = self.virtual.now() + self.faults.pause_secs
        return happens

    # ---- spouts ----

    def _ask_soon(self, spout: SpoutActor) -> None:
        """Ask a spout for its next tuple, now or when its wait is over."""
        id = spout.plan.id
        due = max(self.virtual.now(), spout.next_at) + self._order.random() * _JITTER_SECS
        if due < self._asked.get(id, float("inf")):  # it got an ack or the like, which ends its wait
            self._asked[id] = due
            self._at(due, lambda: self._ask(spout, due))

    def _ask(self, spout: SpoutActor, due: float) -> None:
        id = spout.plan.id
        if self._asked.get(id) != due:
            return  # it was asked earlier
        del self._asked[id]
        if not (self.active or spout.always) or len(spout.pending) >= spout.max_pending:
            return  # it is asked again when that changes
        if self._in_flight < MAX_MESSAGES:
            before = spout.stats.emitted
            self._work(spout, spout.runner.next, "next", None)
            if spout.stats.emitted != before:
                spout.emitted()
                self._note("next", id, f"{spout.stats.emitted - before} emitted")
            else:
                spout.emitted_nothing(self.virtual.now(), virtual=True)
        self._ask_soon(spout)

    # ---- timers ----

    def _start_timers(self) -> None:
        settings = self.plan.settings
        for actor in self.actors:
            self._report_metrics_each(actor)
        if settings.message_timeouts:
            for acker in self._ackers:
                self._every(settings.message_timeout_secs, partial(_rotate, acker))
            for spout in self.spouts.values():
                self._every(spout.plan.settings.message_timeout_secs, partial(self._expire, spout))
        for bolt in self.bolts.values():
            if bolt.plan.settings.tick_secs:
                if settings.message_timeouts:
                    self._every(settings.message_timeout_secs, bolt.rotate)
                self._every(bolt.plan.settings.tick_secs, partial(self._tick, bolt))

    def _every(self, secs: float, call: Callable[[], None]) -> None:
        def ring() -> None:
            self._at(self.virtual.now() + secs, ring)
            call()

        # The tasks of a topology do not start at the same instant, and neither do their ticks.
        self._at(self.virtual.now() + secs * self._order.random(), ring)

    def _call_at(self, due: float, call: Callable[[], None]) -> None:
        self._at(due, call)

    def _call_each(self, secs: float, call: Callable[[], None]) -> None:
        self._every(secs, call)

    def _run_timers(self, actor: BoltActor | SpoutActor, timers: TaskTimers) -> None:
        down_until = self._down_until.get(actor.plan.id, 0.0)
        if down_until > self.virtual.now():
            self._at(down_until, lambda: self._run_timers(actor, timers))
        else:
            super()._run_timers(actor, timers)
            if isinstance(actor, SpoutActor):
                self._ask_soon(actor)

    def _fire(self, actor: BoltActor | SpoutActor, timers: TaskTimers, handle: TimerHandle) -> None:
        works, shown = self.works(actor, handle), repr(handle)

        def call() -> None:
            try:
                with self.calling(actor, f"timer {handle.name}"):
                    timers.fire(handle)
            finally:
                if not works:
                    make_idle(self.out)

        self._work(actor, call, "timer", shown)

    def _tick(self, bolt: BoltActor) -> None:
        self._process(bolt, self.tick_tuple(bolt))

    def _expire(self, spout: SpoutActor) -> None:
        for entry in self._expired(spout.plan.id, spout.pending):
            self._note("timeout of", spout.plan.id, entry[0])
            self._report(spout, entry, False, timed_out=True)


def _rotate(acker: _AckerTask) -> None:
    acker.acker.rotate()
