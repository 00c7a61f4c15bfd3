"""A bolt's task in a child process; this side does what Storm's ShellBolt does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.engine.edges import edges
from multilang.engine.readable import counted
from multilang.engine.tuples import IDLE, Origin
from multilang.local.process.task import ProcessTask
from multilang.protocol import Ack, Emit, Fail, Sync
from multilang.protocol.codec import dumps
from multilang.protocol.messages import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_STREAM
from multilang.topology.shell import ShellComponent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.engine.plan import TaskPlan
    from multilang.local.process.host import TaskHost
    from multilang.local.process.spout import ProcessSpoutTask

_LOOKS = 2  # one each second, until a program that answers no heartbeat gets tuples all the same
_SYSTEM = Origin(SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, ("rate_secs",))


class Delivery:
    """A tuple that the child works on.

    Attributes:
        root: The same as LocalTuple's.
        edge: The same as LocalTuple's.
        at: The time when the child got it.
        tuples: The number of tuples: more than one if it is a block of them.
    """

    __slots__ = ("at", "edge", "root", "tuples")

    def __init__(self, root: int | dict[int, int], edge: int, at: float, tuples: int) -> None:
        self.root = root
        self.edge = edge
        self.at = at
        self.tuples = tuples


class Question(Delivery):
    """A tuple whose failure is an answer; see ``questions`` of Spout."""

    __slots__ = ()


class ProcessBoltTask(ProcessTask):
    """A bolt's task in a child process.

    Attributes:
        queue: The tuples that the pipe has not taken yet. Their number is bounded by
            ``topology.shellbolt.max.pending``, as far as the tasks that fill it can be made to wait.
        unfinished: The tuples that the child has, by id.
        idle: The number of IDLE ones among them.
        holds_tuples: Whether windows hold them; see Bolt.
        upstream: The tasks that are not read while the queue is full.
        spouts_upstream: The spouts that get no next while the queue is full.
    """

    kind = "bolt"

    def __init__(self, host: TaskHost, plan: TaskPlan) -> None:
        super().__init__(host, plan)
        self.queue: deque[tuple[Origin, str, int | dict[int, int], int, int]] = deque()
        self.unfinished: dict[str, Delivery] = {}
        self.idle = 0
        self._looks = 0  # at a program that is ready, and has not answered any heartbeat
        self._asked_at: float | None = None  # the time of the oldest heartbeat that it has not answered
        self._worked_at = 0.0  # when it last finished one that is not IDLE
        self._timers_at: float | None = None  # when it reported timers to be waited for; None for none
        self._timers_count = False  # they were set for a tuple that is not IDLE, or at the start
        component: Any = plan.spec.component
        self._commits = getattr(component, "commits", False)
        self._own_streams = component.own_streams if self._commits else ()
        self._got_at = float("-inf")  # when it last got something that may have changed its state, if that is committed
        self.holds_tuples = getattr(innermost(component), "holds_tuples", False)
        self.full = False
        self.limit = plan.settings.max_shellbolt_pending
        self.upstream: list[ProcessTask] = []
        self.spouts_upstream: list[ProcessSpoutTask] = []

    # ---- its input ----

    def put(self, origin: Origin, text: str, root: int | dict[int, int], edge: int, tuples: int) -> None:
        """Queue a tuple, or a block of so many, whose values are JSON text."""
        self.queue.append((origin, text, root, edge, tuples))
        self.host.dirty.add(self)
        if not self.full and len(self.queue) >= self.limit:
            self._set_full(True)

    def flush(self) -> None:
        """Write the messages to the child (task ids overtake tuples), then as many queued tuples as the pipe takes."""
        super().flush()
        queue = self.queue
        program = self.program
        if not queue or program is None or not program.takes_more():
            return
        if not self.answered:
            return  # it may die while it starts: no tuple may be lost with it, nor be the cause
        new_id = self.host.new_id
        unfinished = self.unfinished
        say = self.conn.tuple_text
        now = self.host.now
        while queue and program.takes_more():
            for _ in range(min(len(queue), self.limit)):
                origin, text, root, edge, tuples = queue.popleft()
                id = str(next(new_id))
                unfinished[id] = (Question if origin.is_question else Delivery)(root, edge, now, tuples)
                if edge and not root:
                    self.idle += 1
                elif self._commits and origin.stream not in self._own_streams:
                    self._got_at = now
                say(id, origin.component, origin.stream, origin.task, text)
                self.stats.received += tuples
            program.write()
        if self.full and len(queue) <= self.limit // 2:
            self._set_full(False)

    def _set_full(self, full: bool) -> None:
        self.full = full
        by = 1 if full else -1
        for task in self.upstream:
            task.block(by)
        for spout in self.spouts_upstream:
            spout.halted_by += by
            self.host.dirty.add(spout)

    def tick(self) -> None:
        """Queue a tick when ``topology.tick.tuple.freq.secs`` have passed."""
        if self.ready and len(self.queue) < self.limit:  # a bolt that is behind needs no more ticks
            self.put(_SYSTEM, dumps([self.plan.settings.tick_secs]), 0, IDLE, 1)
            self.flush()

    def started(self) -> None:
        self._looks = 0
        self._asked_at = None
        self._beat()
        self.host.dirty.add(self)

    def _beat(self) -> None:
        self.conn.heartbeat(str(next(self.host.new_id)))
        if self._asked_at is None:
            self._asked_at = self.host.now

    @property
    def asked_at(self) -> float | None:
        return self._asked_at

    def check(self) -> None:
        """Send a heartbeat each second, and end a child that has been silent for too long."""
        super().check()
        if self.ready and not self.answered and isinstance(self.plan.spec.component, ShellComponent):
            self._looks += 1
            if self._looks >= _LOOKS:  # it ignores heartbeats; Storm would not even wait
                self.answered = True
                self.host.dirty.add(self)
        if self.program is not None and self.program.ready and self.program.reading:
            self._beat()
            self.flush()

    # ---- its output ----

    def handle(self, message: Any) -> None:
        kind = type(message)
        if kind is Emit:
            self._emitted(message)
        elif kind is Ack:
            self._finished(message.id, True)
        elif kind is Fail:
            self._finished(message.id, False)
        elif kind is Sync:
            if message.timers is not None:
                self._has_timers(message.timers)
                return
            if message.unread:
                self.stats.emitted += message.unread
                return
            self._asked_at = None
            if message.busy is not None:
                self.busy_reported = message.busy
            if not self.answered:
                self.answered = True
                self.host.dirty.add(self)  # it may get its tuples now
        else:
            self.handle_any(message)

    def _emitted(self, emit: Emit) -> None:
        self.worked = True
        route, targets = self.route(emit)
        anchors = emit.anchors
        unfinished = self.unfinished
        if not anchors:
            self.deliver(emit, route, targets, None, self._rootless())
            return
        if len(anchors) == 1 and len(targets) == 1 and route.captured is None:
            anchor = unfinished[anchors[0]]
            root = anchor.root
            if type(root) is int:  # by far the most frequent case: one anchor, of one spout tuple, to one task
                if root:
                    edge = self.host.getrandbits(64)
                    anchor.edge ^= edge
                else:
                    edge = self._rootless(anchored=True)
                stats = self.stats
                tuples = emit.values[0] if route.carries_blocks else 1
                stats.emitted += tuples
                stats.transferred += tuples
                self.host.bolts[targets[0]].put(route.origin, dumps(emit.values), root, edge, tuples)
                if emit.need_task_ids:
                    self.answer(targets)
                return
        roots = edges([unfinished[id] for id in anchors], self.host.getrandbits, self._rootless(anchored=True))
        self.deliver(emit, route, targets, roots)

    def _rootless(self, anchored: bool = False) -> int:
        """Return the edge of an emit that comes of no spout tuple with an id."""
        if not self.idle:
            return 0
        if len(self.unfinished) > self.idle and any(self._fresh(self.host.stale_before)):
            return 0
        if anchored:
            return IDLE
        oldest = next(each.at for each in self.unfinished.values() if each.edge == IDLE and not each.root)
        return 0 if self._worked_at >= oldest else IDLE  # it may come of the tuple that was just acked

    def _fresh(self, stale_before: float) -> Iterator[int]:
        """Yield for each tuple or block of the child the number of its tuples that are waited for."""
        for delivery in list(self.unfinished.values()):
            waited = delivery.at >= stale_before and (delivery.root != 0 or delivery.edge != IDLE)
            yield delivery.tuples if waited else 0

    def _finished(self, id: str, ok: bool) -> None:
        self.worked = True
        delivery = self.unfinished.pop(id)
        stats = self.stats
        tuples = delivery.tuples
        stats.executed += tuples
        stats.process.add(self.host.now - delivery.at, tuples)
        root = delivery.root
        if not root and delivery.edge:
            self.idle -= 1
        else:
            self._worked_at = self.host.now
        if ok:
            stats.acked += tuples
            if root:
                if isinstance(root, dict):
                    for each, edge in root.items():
                        self.host.ack_root(each, edge ^ delivery.edge)
                else:
                    self.host.ack_root(root, delivery.edge)
        else:
            if type(delivery) is Question:
                stats.acked += 1
            else:
                stats.failed += tuples
            if root:
                for each in root if isinstance(root, dict) else (root,):
                    self.host.fail_root(each)

    def _has_timers(self, awaited: bool) -> None:
        """Note whether the child has timers that are called once, and that no other timer has set."""
        self._timers_at = self.host.now if awaited else None
        if not awaited and self._commits:
            self._got_at = self.host.now  # of the last one
        self._timers_count = not self.unfinished or any(self._fresh(self.host.stale_before))

    def lose(self) -> None:
        """Fail the tuples that the child got and did not finish, since a timeout may be far away."""
        self.stats.lost += sum(delivery.tuples for delivery in self.unfinished.values())
        roots: dict[int, None] = {}  # each once, in the order in which the child got them
        for delivery in self.unfinished.values():
            root = delivery.root
            roots.update(dict.fromkeys(root if isinstance(root, dict) else (root,)))
        self.unfinished.clear()
        self.idle = 0
        self._timers_at = None
        roots.pop(0, None)  # tuples without a spout's tuple behind them
        for each in roots:
            self.host.fail_root(each)

    def waiting_for(self, stale_before: float) -> str:
        """Return in words what it has still to do, except for tuples older than ``stale_before``; empty for nothing."""
        queued = 0
        for _, _, root, edge, tuples in list(self.queue):
            if root != 0 or edge != IDLE:
                queued += tuples
        if queued:
            where = "" if self.answered else ", its process is being started"
            return f"{self.plan}: {counted(queued)} queued{where}"
        if not self.ready:
            return f"{self.plan}: its process is being started"
        held = len(self.unfinished) - self.idle
        if held and self.program is not None and not self.program.takes_more():
            return f"{self.plan}: its process does not read its input"
        fresh = sum(self._fresh(stale_before)) if held else 0
        if fresh:
            return f"{self.plan}: {counted(fresh)} neither acked nor failed"
        timers_at = self._timers_at
        if timers_at is not None and (self._timers_count or self._worked_at >= timers_at):
            return f"{self.plan}: a timer is pending"
        if self._got_at >= self.host.committed_before:
            return f"{self.plan}: its state is not committed yet"
        return ""
