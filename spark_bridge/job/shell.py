"""A bolt in another language inside a Spark task: a process, and the wire to it, as Storm's ShellBolt has them."""

from __future__ import annotations

import shutil
import tempfile
import time
from itertools import count
from select import select
from typing import TYPE_CHECKING, Any

from multilang.local.actors import START_ATTEMPTS
from multilang.local.counters import TaskStats
from multilang.local.process.child import Child, how_it_ended
from multilang.local.process.command import environment
from multilang.protocol import Ack, Emit, Error, Fail, Log, Metrics, Pid, RemoteProtocolError, Sync
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.protocol.parent import ParentConnection
from spark_bridge.job.collector import note
from spark_bridge.job.errors import ComponentStartError
from spark_bridge.job.tuples import joined

if TYPE_CHECKING:
    from multilang.local.links import Links
    from multilang.local.plan import TaskPlan
    from spark_bridge.job.routes import SparkRoute

_LOOK_SECS = 0.05  # between two heartbeats to a child that still works on tuples
_END_SECS = 5.0  # for a child to end by itself when its input has ended


class _DiedError(Exception):
    """The child ended, or broke the protocol, or is silent for too long."""


class ShellTask:
    """``process`` gives the child one tuple; what it says meanwhile is dealt with at once."""

    def __init__(self, plan: TaskPlan, links: Links, failed: set[int]) -> None:
        self.plan = plan
        self.stats = TaskStats()
        self.left = ["what its process knows"]
        self._links = links
        self._failed = failed
        self._command: list[str] = plan.spec.command or []
        self._unfinished: dict[str, Any] = {}  # by the id that the child knows them by
        self._ids = count(1)
        self._deaths = 0
        self._synced = 0
        self._heard_at = 0.0
        self._folder = tempfile.mkdtemp(prefix="multilang-pids-")

    # ---- what BoltTask does, too ----

    def start(self, _state: bytes | None) -> None:
        """Start the child and shake hands. What a child knew at the end of the last round ended with it."""
        while True:
            try:
                self._child = Child(self._command, environment())
                self._conn = ParentConnection("bolt")
                self._conn.setup(self.plan.conf, self._folder, self.plan.context)
                self._heard_at = time.monotonic()
                while self._conn.pid is None:
                    self._pump(None)
                return
            except OSError as error:
                raise ComponentStartError(
                    f"{self.plan}: the command {self._command!r} can't be started: {error}"
                ) from None
            except _DiedError as death:
                self._deaths += 1
                self._end()
                if self._deaths >= START_ATTEMPTS:
                    raise ComponentStartError(f"{self.plan} can't be started: {death}") from None

    def process(self, tup: Any) -> None:
        """Give it a tuple."""
        self.stats.received += 1
        id = str(next(self._ids))
        self._unfinished[id] = tup
        self._guarded(lambda: self._say(id, tup.component, tup.stream, tup.task, tup.values))

    def tick(self) -> None:
        """One tick, for a bolt that is to get ticks at all."""
        secs = self.plan.settings.tick_secs
        if secs:
            self.stats.received += 1
            id = str(next(self._ids))
            self._unfinished[id] = None
            self._guarded(lambda: self._say(id, SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, [secs]))

    @property
    def holds(self) -> bool:
        """Whether it has tuples that it has neither acked nor failed, after all it was given."""
        self._guarded(self._wait)
        return bool(self._unfinished)

    def finish(self) -> None:
        """Give it the time that a tuple may take."""
        end = time.monotonic() + self.plan.settings.message_timeout_secs
        while self.holds and time.monotonic() < end:
            time.sleep(_LOOK_SECS)

    def settle(self) -> None:
        """All is over: what it still holds has failed."""
        stats = self.stats
        stats.lost = len(self._unfinished)
        for tup in self._unfinished.values():
            self._lose(tup)
        self._unfinished.clear()
        stats.executed = stats.received
        stats.acked = stats.received - stats.failed - stats.lost

    def state(self) -> None:
        """What it knows is in a process of another language."""

    def close(self) -> None:
        """Let it see the end of its input, and wait for its end."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- the conversation ----

    def _say(self, id: str, component: str, stream: str, task: int, values: list[Any]) -> None:
        self._conn.tuple(id, component, stream, task, values)
        self._pump(0)

    def _wait(self) -> None:
        """Until it has read all that it was given: it answers a heartbeat in its turn."""
        self._conn.heartbeat(str(next(self._ids)))
        before = self._synced
        while self._synced == before:
            self._pump(None)

    def _guarded(self, call: Any) -> None:
        """``call``; when the child dies of it, its tuples have failed, and there is another child."""
        try:
            call()
        except _DiedError as death:
            self._links.report(self.plan, str(death))
            self._end()
            for tup in self._unfinished.values():
                self.stats.failed += 1
                self._lose(tup)
            self._unfinished.clear()
            self._deaths = 0
            self.stats.restarts += 1
            self.start(None)

    def _lose(self, tup: Any) -> None:
        if tup is not None:
            tup.unfinished = False
            note(self._failed, tup.root)

    def _pump(self, wait: float | None) -> None:
        """Write all that was said, and read what is there; ``wait``: for at least one message (None), or not (0)."""
        child = self._child
        limit = self.plan.settings.subprocess_timeout_secs
        try:
            written = child.write(self._conn.data_to_send())
            while True:
                readable, writable, _ = select(
                    [fd for fd in (child.output, child.error) if fd >= 0],
                    [] if written else [child.input],
                    [],
                    wait if written and wait is not None else 0.2,
                )
                if child.error in readable:
                    for line in child.read_error() or ():
                        self._links.log(self.plan, f"stderr: {line}", 3)
                heard = child.output in readable and self._read()
                if writable or not written:
                    written = child.write(self._conn.data_to_send())
                if written and (heard or wait is not None):
                    return
                if not heard and time.monotonic() - self._heard_at > limit:
                    child.kill()
                    raise _DiedError(f"{self.plan}: it said nothing for {limit:g} s (topology.subprocess.timeout.secs)")
        except OSError as error:
            raise _DiedError(f"{self.plan}: {self._how(error)}") from None

    def _read(self) -> bool:
        data = self._child.read()
        if data is None:
            return False
        self._heard_at = time.monotonic()
        try:
            messages = self._conn.receive_data(data)
            for message in messages:
                self._handle(message)
            if not data:
                raise _DiedError(f"{self.plan}: {self._how(None)}")
        except RemoteProtocolError as error:
            for before in error.events:
                self._handle(before)
            raise _DiedError(f"{self.plan}: {error}") from None
        return True

    def _how(self, error: OSError | None) -> str:
        child = self._child
        deadline = time.monotonic() + 1
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        status = child.poll()
        if child.error >= 0:
            child.read_error()
        said = f"; the end of its stderr:\n{child.error_tail}" if child.error_tail else ""
        how = "closed its input" if status is None and error is not None else how_it_ended(status)
        return f"the process {' '.join(self._command)!r} {how}{said}"

    def _handle(self, message: Any) -> None:
        if isinstance(message, Emit):
            self._emitted(message)
        elif isinstance(message, Ack | Fail):
            tup = self._unfinished.pop(message.id)
            if tup is not None:
                tup.unfinished = False
                if isinstance(message, Fail):
                    note(self._failed, tup.root)
            self.stats.failed += isinstance(message, Fail)
        elif isinstance(message, Sync):
            self._synced += 1
        elif isinstance(message, Log):
            self._links.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self._links.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self._links.metric(self.plan, message.name, message.params)
        else:
            assert isinstance(message, Pid)

    def _emitted(self, emit: Emit) -> None:
        route: SparkRoute | None = self.plan.routes.get(emit.stream)  # type: ignore[assignment]
        values = emit.values
        if route is None or len(values) != len(route.fields):
            known = ", ".join(f"{name!r} of {len(each.fields)} fields" for name, each in self.plan.routes.items())
            raise RemoteProtocolError(
                f"an emit of {len(values)} values on stream {emit.stream!r}; {self.plan} declares {known or 'no stream'}"
            )
        if emit.task is not None:
            targets: Any = (emit.task,) if route.direct is not None and emit.task in route.direct else ()
        elif route.direct is not None:
            raise RemoteProtocolError(
                f"an emit without a task on stream {emit.stream!r}, which is subscribed by direct grouping"
            )
        else:
            targets = () if route.choose is None else route.choose(values)
        self.stats.emitted += 1
        self.stats.transferred += len(targets)
        if targets or route.output is not None:
            anchors = [self._unfinished[id] for id in emit.anchors]
            route.give(values, targets, joined(tup for tup in anchors if tup is not None))
        if emit.need_task_ids:
            self._conn.task_ids(targets)
            self._child.write(self._conn.data_to_send())

    def _end(self) -> None:
        child = self._child
        child.close_input()
        deadline = time.monotonic() + _END_SECS
        while child.poll() is None and time.monotonic() < deadline:
            if select([child.output], [], [], 0.05)[0] and not child.read():
                time.sleep(0.01)
        child.kill()
        child.wait()
        child.close()
