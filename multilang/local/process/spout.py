"""A spout's task in a child process; this side does what Storm's ShellSpout does: a command, then its sync."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from multilang.engine.counters import SAMPLE_EVERY
from multilang.engine.readable import counted
from multilang.engine.rotating import RotatingMap
from multilang.engine.task import IDLE_ROUNDS
from multilang.exchange.names import BLOCK_ID
from multilang.local.process.task import ProcessTask
from multilang.protocol import Emit, Sync
from multilang.settings import EDGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from multilang.engine.plan import TaskPlan
    from multilang.engine.program import Program
    from multilang.local.process.host import TaskHost


def _is_block(id: Any) -> bool:
    """Return whether a message id is that of a block, followed by those of its tuples."""
    return type(id) is list and len(id) == 2 and isinstance(id[0], str) and id[0].startswith(BLOCK_ID)


class _Carried:
    """The tuples in flight in blocks.

    A tuple in several blocks, one for each of its tasks, is acked when all blocks are, and fails when one fails.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}  # the spout's number of a tuple -> its message id, and the blocks left

    def sent(self, carried: list[list[Any]]) -> None:
        """Note the tuples of a block: of each its message id, its number, and the number of its blocks."""
        for id, number, blocks in carried:
            self._open.setdefault(number, [id, blocks])

    def settled(self, carried: list[list[Any]], ok: bool) -> Iterator[Any]:
        """Yield the message ids that are done now that their block was acked, or failed."""
        for id, number, _ in carried:
            entry = self._open.get(number)
            if entry is None:
                continue  # another of its blocks failed
            entry[1] -= 1
            if not ok or not entry[1]:
                del self._open[number]
                yield id

    def lost(self) -> list[Any]:
        """Return the message ids of all tuples in flight, and clear them, since their task died."""
        ids = [id for id, _ in self._open.values()]
        self._open.clear()
        return ids

    def __len__(self) -> int:
        return len(self._open)


class ProcessSpoutTask(ProcessTask):
    """A spout's task in a child process.

    Attributes:
        pending: Root id -> (message id, time of the emit if it is sampled, otherwise 0).
        commands: The commands that it gets when it is free.
        last_checkpoint: The last committed transaction, when it was committed, and the seconds that it took; None for
            none, or for a spout that makes none.
        halted_by: The number of full queues downstream; while there are any, it gets no next.
        exhausted: The answer in the last sync of a next.
        idle: Empty nexts in a row since its last other command.
    """

    kind = "spout"
    always = False  # asked while the topology is inactive, too
    last_checkpoint: tuple[int, float, float] | None = None

    def __init__(self, host: TaskHost, plan: TaskPlan) -> None:
        super().__init__(host, plan)
        self.pending: RotatingMap[tuple[Any, float]] = RotatingMap(2)
        self.max_pending = plan.settings.max_spout_pending or float("inf")
        self.commands: deque[tuple[str, Any]] = deque()
        self.halted_by = 0
        self.exhausted: bool | None = None
        self.idle = 0
        self._doubted = False  # the current command may have been answered before the wait began
        self._next_at = 0.0
        self._sent_at = 0.0  # the time of its last command
        self._emitted_before = 0
        self._until_sample = 1
        self._blocks = _Carried() if EDGES in plan.conf else None
        self._must_come_to = "emitting a tuple"

    # ---- its input ----

    def order(self, command: str, id: Any = None) -> None:
        """Queue ack, fail, activate or deactivate."""
        self.commands.append((command, id))
        self.host.dirty.add(self)

    def doubt(self) -> None:
        """Ask it again whether it is exhausted."""
        self.idle = 0
        self.exhausted = None
        self._next_at = 0.0
        self._doubted = self.conn.command is not None
        self.host.dirty.add(self)

    def flush(self) -> None:
        """Send it its next command when it is free, or ask it for a tuple."""
        program = self.program
        if program is not None and program.ready and self.conn.command is None:
            self._command(program)
        super().flush()

    @property
    def _is_active(self) -> bool:
        return (self.host.active or self.always) and not self.host.ending

    def _command(self, program: Program) -> None:
        conn = self.conn
        if self.commands:
            command, id = self.commands.popleft()
            self.idle = 0
            self.exhausted = None  # the command may change it
            self._next_at = 0.0
            if command == "ack":
                conn.ack(id)
            elif command == "fail":
                conn.fail(id)
            elif command == "activate":
                conn.activate()
            else:
                conn.deactivate()
        elif self._is_active and not self.halted_by and len(self.pending) < self.max_pending:
            if self.host.now >= self._next_at:
                self._emitted_before = self.stats.emitted
                conn.next()
            else:
                return
        else:
            return
        program.received_at = self._sent_at = self.host.now

    @property
    def wakes_at(self) -> float:
        """The time to ask it again after an empty next; infinity when it waits for something else."""
        if not self.ready or self.conn.command is not None or not self._is_active or self.halted_by:
            return float("inf")
        return self._next_at if len(self.pending) < self.max_pending else float("inf")

    def started(self) -> None:
        self.commands.clear()
        self.idle = 0
        self.exhausted = None
        self._doubted = False
        if self.host.active:
            self.order("activate")

    @property
    def asked_at(self) -> float | None:
        return None if self.conn.command is None else self._sent_at

    # ---- its output ----

    def handle(self, message: Any) -> None:
        kind = type(message)
        if kind is Emit:
            self._emit(message)
        elif kind is Sync:
            self._synced(message)
        else:
            self.handle_any(message)

    def _emit(self, emit: Emit) -> None:
        self.worked = True
        route, targets = self.route(emit)
        id = emit.id
        if id is None:
            self.deliver(emit, route, targets, None)
            return
        host = self.host
        if self._blocks is not None and _is_block(id):
            self._blocks.sent(id[1])
        if not host.ackers:
            self.deliver(emit, route, targets, None)
            # Storm sends this ack before the emit's task ids. Here it comes right after the sync, since a child that
            # waits for the task ids of its emit may be unable to take a command meanwhile.
            self._count_all(id, True)
            return
        getrandbits = host.getrandbits
        root = getrandbits(64)
        total = 0

        def roots() -> tuple[int, int]:
            nonlocal total
            edge = getrandbits(64)
            total ^= edge
            return root, edge

        self._until_sample -= 1
        if not self._until_sample:
            self._until_sample = SAMPLE_EVERY
        self.pending.newest[root] = (id, host.now if self._until_sample == SAMPLE_EVERY else 0.0)
        self.deliver(emit, route, targets, roots)
        host.init_root(root, total, self.plan.id)

    def _synced(self, sync: Sync) -> None:
        self.vain = f"without {self._must_come_to}"
        if sync.busy is not None:
            self.busy_reported = sync.busy
        if self._doubted:
            self._doubted = False
            self.host.dirty.add(self)
            return
        self.exhausted = sync.exhausted  # None after False: it can't tell any more
        if self.stats.emitted != self._emitted_before:
            self.idle = 0
            self._next_at = 0.0
        else:
            self.idle += 1
            now = self.host.clock.now()  # the turn may have taken long
            self._next_at = now + self.plan.settings.spout_wait_secs(self.idle, self.exhausted)
            if sync.timer_secs is not None:  # its timers run at its commands
                self._next_at = min(self._next_at, now + sync.timer_secs)
        self.host.dirty.add(self)

    # ---- acks and fails of its tuples ----

    def settled(self, root: int, ok: bool) -> None:
        """Handle an acker's message; a root that is no longer pending timed out before, or its child died."""
        entry = self.pending.remove(root)
        if entry is not None:
            self._report(entry, ok)

    def expire(self) -> None:
        """Fail the tuples that are older than ``topology.message.timeout.secs``."""
        for entry in self.host.expired(self.plan.id, self.pending):
            self._report(entry, False, timed_out=True)

    def _report(self, entry: tuple[Any, float], ok: bool, timed_out: bool = False) -> None:
        id, emitted_at = entry
        if ok and emitted_at:
            self.stats.complete.add(self.host.now - emitted_at)
        self._count_all(id, ok, timed_out)

    def _count_all(self, id: Any, ok: bool, timed_out: bool = False) -> None:
        """Count the tuples of a message, and send the ack or fail to the child."""
        if self._blocks is not None and _is_block(id):
            id, carried = id
            for each in self._blocks.settled(carried, ok):
                self._count(each, ok, timed_out)
        else:
            self._count(id, ok, timed_out)
        self.order("ack" if ok else "fail", id)

    def _count(self, id: Any, ok: bool, timed_out: bool) -> None:
        if ok:
            self.stats.acked += 1
            self.stats.lost_ids.discard(id)
        else:
            self.stats.fail(id, timed_out)

    @property
    def in_flight(self) -> int:
        """The number of its tuples that are neither acked nor failed."""
        if self._blocks is None:
            return len(self.pending)
        alone = sum(not _is_block(id) for id, _ in list(self.pending.values()))
        return alone + len(self._blocks)

    def lose(self) -> None:
        for id, _ in self.pending.values():
            if self._blocks is None or not _is_block(id):
                self.stats.lost_ids.add(id)
        if self._blocks is not None:
            for id in self._blocks.lost():
                self.stats.lost_ids.add(id)
        self.pending.clear()  # "Spout task dies: source must replay"
        self.commands.clear()

    def waiting_for(self) -> str:
        """Return in words what it has still to do, or an empty text."""
        if self.pending:
            return self.stats.with_failures(f"{self.plan}: {counted(self.in_flight)} neither acked nor failed")
        if not self.ready:
            return f"{self.plan}: its process is being started"
        if self.commands or (self.conn.command not in (None, "next")):
            return f"{self.plan}: {len(self.commands) + 1} acks and fails are still to be sent to it"
        if not self._is_active or self.exhausted:
            return ""
        if self.exhausted is False:
            return self.stats.with_failures(f"{self.plan}: not exhausted, its exhausted() returns False")
        return "" if self.idle >= IDLE_ROUNDS else f"{self.plan}: not exhausted, it still emits"


class ProcessCheckpointSpoutTask(ProcessSpoutTask):
    """The task of the checkpoint spout, which is never inactive; checkpoints are measured on this side."""

    always = True

    def __init__(self, host: TaskHost, plan: TaskPlan) -> None:
        super().__init__(host, plan)
        self._steps: dict[Any, str] = {}  # message id -> the step that was asked for last
        self._began = 0.0
        self._must_come_to = plan.spec.component.must_come_to  # type: ignore[union-attr]

    def _emit(self, emit: Emit) -> None:
        if emit.id is not None:
            step = self.plan.spec.component.step_of(emit.stream, emit.values)  # type: ignore[union-attr]
            if step == "begin":
                self._began = self.host.now
            if step is not None:
                self._steps[emit.id] = step
        worked = self.worked
        super()._emit(emit)
        self.worked = worked

    def _report(self, entry: tuple[Any, float], ok: bool, timed_out: bool = False) -> None:
        id = entry[0]
        if self._steps.pop(id, None) == "commit" and ok:
            now = self.host.now
            self.last_checkpoint = (id, now, now - self._began)
            self.worked = True
        super()._report(entry, ok, timed_out)
