"""A topology whose tasks are child processes, all served by one thread."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from multilang.engine.status import CheckpointStatus
from multilang.errors import LocalClusterError
from multilang.local.process.bolt import ProcessBoltTask
from multilang.local.process.host import TaskHost
from multilang.local.process.spout import ProcessCheckpointSpoutTask, ProcessSpoutTask
from multilang.local.topology import INACTIVE, TaskInfo
from multilang.topology.graph import behind, subscribers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from random import Random

    from multilang.engine.clock import Clock
    from multilang.engine.plan import Plan
    from multilang.local.acker import Acker
    from multilang.local.process.task import ProcessTask
    from multilang.local.topology import Capture, Until

GRACE_SECS = 5.0  # seconds between SIGTERM and SIGKILL: the time that a component's close() may take
_DEACTIVATE_SECS = 1.0  # for a spout to answer its last command and deactivate
_LOOK_SECS = 1.0  # "at most one a second": heartbeats
_POLL_SECS = 0.02  # between two checks of a caller's condition


class ProcessTopology(TaskHost):
    """A topology that runs from its activation on, in a thread of its own; only that thread uses the tasks."""

    engine = "process"

    def __init__(self, plan: Plan, clock: Clock, capture: Capture, rng: Random) -> None:
        super().__init__(plan, clock, capture, rng)
        self.opened = False  # it has been activated at least once
        self._started = False  # the thread has started the tasks
        self._failure: LocalClusterError | None = None
        self._drained = False
        self._changed = threading.Condition()
        self.bolts: dict[int, ProcessBoltTask] = {}
        self.spouts: dict[int, ProcessSpoutTask] = {}
        for id, task in plan.tasks.items():
            if task.spec.kind == "bolt":
                self.bolts[id] = ProcessBoltTask(self, task)
            else:
                checkpoints = hasattr(task.spec.component, "last_checkpoint")
                self.spouts[id] = (ProcessCheckpointSpoutTask if checkpoints else ProcessSpoutTask)(self, task)
        self._all: list[ProcessTask] = [*self.bolts.values(), *self.spouts.values()]
        _connect_queues(plan, self.bolts.values(), self.spouts.values())
        self._start_timers()
        self._thread = threading.Thread(target=self._serve, name=f"multilang {plan.name}", daemon=True)
        self._thread.start()

    def _start_timers(self) -> None:
        settings = self.plan.settings
        if settings.message_timeouts:
            for acker in self.ackers:
                self.timers.every(settings.message_timeout_secs, acker.rotate)
            for spout in self.spouts.values():
                self.timers.every(spout.plan.settings.message_timeout_secs, spout.expire)
        self.timers.every(_LOOK_SECS, self._repeats.report_due)
        self.timers.every(_LOOK_SECS, self._sample)
        for task in self._all:
            self.timers.every(_LOOK_SECS, task.check)
        for bolt in self.bolts.values():
            if bolt.plan.settings.tick_secs:
                self.timers.every(bolt.plan.settings.tick_secs, bolt.tick)

    # ---- control, from any thread ----

    def wait(self, until: Until = "drained", timeout: float | None = None) -> None:
        self._check_running()
        end = None if timeout is None else time.monotonic() + timeout
        if until == "drained":
            asked: list[bool] = []
            self._order(lambda: self._ask_anew(asked))
            met = self._wait_for(lambda: bool(asked) and self._drained, end)
        elif callable(until):
            while not (met := bool(until(self))):
                left = _POLL_SECS if end is None else min(_POLL_SECS, end - time.monotonic())
                if left <= 0:
                    break
                self._wait_for(lambda: False, time.monotonic() + left)
        else:
            raise ValueError(f'wait(until={until!r}): use "drained" or a function of the topology')
        if met:
            return
        lines = self.waiting_for
        if until == "drained" and not lines and self._wait_for(lambda: self._drained, time.monotonic() + _LOOK_SECS):
            return  # the thread was about to announce it
        raise self._not_met(until, f"{timeout} s", lines or self.waiting_for)

    def run_for(self, secs: float) -> None:
        self._wait_for(lambda: False, time.monotonic() + secs)

    def activate(self) -> None:
        self._check_running()
        self.opened = True
        self._order(lambda: self._set_active(True))

    def deactivate(self) -> None:
        self._check_running()
        self._order(lambda: self._set_active(False))

    def kill(self, wait_secs: float = 0) -> None:
        if self.killed:
            return
        try:
            if self._failure is None and self._thread.is_alive():
                self.deactivate()
                if wait_secs and self.opened:
                    asked: list[bool] = []
                    self._order(lambda: self._ask_anew(asked))
                    self._wait_for(lambda: bool(asked) and self._drained, time.monotonic() + wait_secs)
        finally:
            self._order(self._end)
            self._thread.join()
            self.killed = True
            self._ended()

    def _wait_for(self, condition: Callable[[], bool], end: float | None) -> bool:
        """Wait until ``end`` for ``condition``, which the thread announces; raise the error that ended the thread."""
        self._check_running()
        with self._changed:
            while not condition():
                if self._failure is not None:
                    raise self._failure
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _order(self, call: Callable[[], object]) -> None:
        """Let the thread call ``call``, after which it looks again whether all is drained."""

        def ordered() -> None:
            self._drained = False
            call()

        self.pipes.order(ordered)

    def _held(self) -> list[tuple[int | dict[int, int], int]]:
        return [
            (delivery.root, delivery.edge)
            for bolt in self.bolts.values()
            if bolt.holds_tuples
            for delivery in bolt.unfinished.values()
        ]

    # ---- observation ----

    @property
    def tasks(self) -> list[TaskInfo]:
        infos = []
        for id, plan in self.plan.tasks.items():
            task: ProcessTask = self.bolts[id] if id in self.bolts else self.spouts[id]
            program = task.program
            alive = task.ready and not self.killed
            infos.append(
                TaskInfo(
                    id,
                    plan.component,
                    plan.spec.kind,
                    alive,
                    self.stats[id].restarts,
                    None if program is None else program.child.process.pid,
                    uptime_secs=None if program is None else time.monotonic() - program.started_at,
                )
            )
        return infos

    @property
    def waiting_for(self) -> list[str]:
        self._check_running()
        if not self.opened:
            return [INACTIVE]
        lines = [spout.waiting_for() for spout in list(self.spouts.values())]
        lines += [bolt.waiting_for(self.stale_before) for bolt in list(self.bolts.values())]
        return [line for line in lines if line]

    def _count(self) -> None:
        for spout in self.spouts.values():
            spout.stats.pending = spout.in_flight
        for task in self._all:
            task.count_busy()

    @property
    def checkpoint(self) -> CheckpointStatus | None:
        for spout in self.spouts.values():
            if spout.last_checkpoint is not None:
                number, at, seconds = spout.last_checkpoint
                return CheckpointStatus(number=number, age_secs=self.clock.now() - at, seconds=seconds)
        return None

    @property
    def state(self) -> str:
        return self._state(self._failure, self.active)

    @property
    def _ackers_now(self) -> list[Acker]:
        return self.ackers

    # ---- the thread ----

    def fail(self, error: LocalClusterError) -> None:
        """End everything; ``wait`` raises this error."""
        with self._changed:
            if self._failure is None:
                self._failure = error
            self._changed.notify_all()
        self._end()

    def _serve(self) -> None:
        try:
            while not (self.ending and all(task.program is None for task in self._all)):
                self._turn()
        except Exception as error:  # a fault of ours: a waiting thread must get it
            logging.getLogger("multilang.local").exception("topology %r can't continue", self.name)
            with self._changed:
                self._failure = LocalClusterError(f"topology {self.name!r} can't continue: {error!r}")
                self._failure.__cause__ = error
        finally:
            for task in self._all:
                if task.program is not None:
                    task.program.end()
            self._release()
            self._repeats.report_rest()
            with self._changed:
                self._changed.notify_all()

    def _turn(self) -> None:
        """Serve every pipe that is ready, once."""
        self.pipes.serve(self._idle_secs())
        self.now = now = self.clock.now()
        if now >= self.timers.next_due:
            self.timers.run_due(now)
        self.pipes.run_orders()
        done = self.done
        while done:
            task, root, ok = done.popleft()
            self.spouts[task].settled(root, ok)
        dirty = self.dirty
        while dirty:
            dirty.pop().flush()
        for spout in self.spouts.values():
            if spout.wakes_at <= now:
                spout.flush()

    def _idle_secs(self) -> float:
        due = min([self.timers.next_due, *(spout.wakes_at for spout in self.spouts.values())])
        if self.done or self.dirty:
            return 0.0
        if not self._drained and not self.ending and self._is_drained():
            with self._changed:
                self._drained = True
                self._changed.notify_all()
        return max(due - self.clock.now(), 0.0)

    def _is_drained(self) -> bool:
        if self.opened and any(spout.waiting_for() for spout in self.spouts.values()):
            return False
        return not self.waiting_for

    def _ask_anew(self, asked: list[bool]) -> None:
        """Ask the spouts again whether they are exhausted: they may have more since their last answer."""
        self._drained = False
        for spout in self.spouts.values():
            spout.doubt()
        asked.append(True)

    def _set_active(self, active: bool) -> None:
        if self.active != active and not self.ending:
            self.active = active
            if not self._started:
                self._started = True
                for task in self._all:
                    task.start()
            for spout in self.spouts.values():
                if spout.ready:
                    spout.order("activate" if active else "deactivate")

    def _end(self) -> None:
        """Deactivate the spouts, then send SIGTERM, and SIGKILL to processes that do not end."""
        if self.ending:
            return
        self.ending = True
        self._end_when_deactivated(self.clock.now() + _DEACTIVATE_SECS)

    def _end_when_deactivated(self, deadline: float) -> None:
        busy = [spout for spout in self.spouts.values() if spout.ready and (spout.commands or spout.conn.command)]
        if busy and self.clock.now() < deadline and self._failure is None:
            self.timers.after(0.005, lambda: self._end_when_deactivated(deadline))
            return
        for task in self._all:
            if task.program is not None:
                task.program.stop()
        self.timers.after(GRACE_SECS, self._kill_all)

    def _kill_all(self) -> None:
        for task in self._all:
            if task.program is not None:
                task.program.child.kill()


def _connect_queues(
    plan: Plan,
    bolts: Collection[ProcessBoltTask],
    spouts: Collection[ProcessSpoutTask],
) -> None:
    """Connect each bolt to the tasks that its full queue makes wait.

    These are the tasks that write to it, except those that its own tuples may reach, since each would wait for the
    other; and every spout upstream, which gets no next.
    """
    after = subscribers(plan.topology.components.values())
    get = {id: behind(after, id) for id in after}
    tasks: list[ProcessTask] = [*bolts, *spouts]
    for bolt in bolts:
        sources = {input_.component for input_ in bolt.plan.spec.inputs}
        for task in tasks:
            component = task.plan.component
            if component in sources and not (component in get[component] and component in get[bolt.plan.component]):
                bolt.upstream.append(task)
        bolt.spouts_upstream = [spout for spout in spouts if bolt.plan.component in get[spout.plan.component]]
