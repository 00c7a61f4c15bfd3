"""A bolt in another language inside a Spark task."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, Any

from multilang.protocol import Ack, Emit, Fail, Sync
from multilang.protocol.errors import RemoteProtocolError
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.runtime.counters import TaskStats
from spark_bridge.job.collector import note
from spark_bridge.job.program import Program
from spark_bridge.job.tuples import joined

if TYPE_CHECKING:
    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from spark_bridge.job.routes import SparkRoute
    from spark_bridge.job.tuples import FailedRoots

_LOOK_SECS = 0.05  # pause between two heartbeats to a child that still works on tuples


class ShellTask(Program):
    """The task of a bolt in another language.

    It gives the child one tuple after the other, and handles messages at once.
    """

    kind = "bolt"

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots) -> None:
        super().__init__(plan, links)
        self.stats = TaskStats()
        self.countdown = self.every = 1  # its time is not measured, since its process works beside this one
        self.left = ["what its process knows"]
        self._failed = failed
        self._unfinished: dict[str, Any] = {}  # the id that the child was given -> its tuple
        self._ids = count(1)
        self._synced = 0

    # ---- what StageBolt does, too ----

    def start(self, _state: bytes | None) -> None:
        """Start the child. What a child knew at the end of the last round ended with it."""
        self.launch(self.plan.conf)

    def process(self, tup: Any) -> None:
        """Give the child a tuple."""
        self.stats.received += 1
        id = str(next(self._ids))
        self._unfinished[id] = tup
        self._guarded(lambda: self._say(id, tup.component, tup.stream, tup.task, tup.values))

    def tick(self) -> None:
        """Give the child one tick, if the bolt is configured to get ticks."""
        secs = self.plan.settings.tick_secs
        if secs:
            self.stats.received += 1
            id = str(next(self._ids))
            self._unfinished[id] = None
            self._guarded(lambda: self._say(id, SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, [secs]))

    @property
    def holds(self) -> bool:
        """True if the child, after reading everything, has tuples that it has neither acked nor failed."""
        self._guarded(self._wait)
        return bool(self._unfinished)

    def finish(self) -> None:
        """Wait until the child has finished all tuples, at most for the message timeout."""
        end = time.monotonic() + self.plan.settings.message_timeout_secs
        while self.holds and time.monotonic() < end:
            time.sleep(_LOOK_SECS)

    def settle(self) -> None:
        """Count the tuples that the child still holds as failed."""
        stats = self.stats
        stats.lost = len(self._unfinished)
        for tup in self._unfinished.values():
            self._lose(tup, self._failed.timed_out)
        self._unfinished.clear()
        stats.executed = stats.received
        stats.acked = stats.received - stats.failed - stats.lost

    def state(self) -> None:
        """Return None: what the bolt knows is in the memory of its process."""

    # ---- the conversation ----

    def _say(self, id: str, component: str, stream: str, task: int, values: list[Any]) -> None:
        self.conn.tuple(id, component, stream, task, values)
        self.pump(0)

    def _wait(self) -> None:
        """Wait until the child has read all that it was given: it answers a heartbeat after everything before it."""
        self.conn.heartbeat(str(next(self._ids)))
        before = self._synced
        while self._synced == before:
            self.pump(None)

    def _guarded(self, call: Any) -> None:
        """Make ``call``. If the child dies in it, fail the child's tuples and start another child."""
        try:
            call()
        except RemoteProtocolError as death:
            self.links.report(self.plan, str(death))
            self.end()
            for tup in self._unfinished.values():
                self.stats.failed += 1
                self._lose(tup, self._failed)
            self._unfinished.clear()
            self.stats.restarts += 1
            self.start(None)

    def _lose(self, tup: Any, among: set[int]) -> None:
        if tup is not None:
            tup.unfinished = False
            note(among, tup.root)

    def handle(self, message: Any) -> None:
        if isinstance(message, Emit):
            self._emitted(message)
        elif isinstance(message, Ack | Fail):
            tup = self._unfinished.pop(message.id)
            if tup is not None:
                tup.unfinished = False
                if isinstance(message, Fail):
                    note(self._failed, tup.root)
            self.stats.failed += isinstance(message, Fail)
        else:
            assert isinstance(message, Sync)
            self._synced += 1

    def _emitted(self, emit: Emit) -> None:
        route: SparkRoute = self.plan.route(emit)  # type: ignore[assignment]
        values = emit.values
        targets: Any = route.targets(values, emit.task)
        self.stats.emitted += 1
        self.stats.transferred += len(targets)
        if targets or route.output is not None:
            anchors = [self._unfinished[id] for id in emit.anchors]
            route.give(values, targets, joined(tup for tup in anchors if tup is not None))
        if emit.need_task_ids:
            self.answer(targets)
