"""The part of a topology with processes that its tasks use."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections import deque
from itertools import count
from typing import TYPE_CHECKING

from multilang.engine.child import environment
from multilang.engine.clock import Timers
from multilang.engine.pipes import Pipes
from multilang.engine.tuples import LocalTuple
from multilang.local.acker import Acker
from multilang.local.process.command import TaskCommands
from multilang.local.topology import LocalTopology
from multilang.protocol.codec import dumps
from multilang.settings import MAX_BUFFER, value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random
    from typing import Any

    from multilang.engine.clock import Clock
    from multilang.engine.plan import Plan, Route
    from multilang.errors import LocalClusterError
    from multilang.local.topology import Capture


class TaskHost(LocalTopology):
    """The topology of a task. All of it is used in the topology's thread alone.

    Attributes:
        now: The time at which the current turn began.
        active: Whether spouts are to emit.
        ending: Whether the topology ends, so that nothing is started any more.
        commands: The commands that start processes.
        env: The environment of the processes.
        program_env: The environment of those that are programs of their own.
        pid_dir: The folder of their pid files.
        max_buffer: The largest message in bytes.
        pipes: The pipes of the processes.
        timers: The timers of the topology's thread.
        dirty: The tasks to which something is to be written.
        done: The messages of the ackers for spouts' tasks: the task, a root, and whether it was acked.
        bolts: The bolts' tasks by id.
        spouts: The spouts' tasks by id.
    """

    bolts: Mapping[int, Any]
    spouts: Mapping[int, Any]

    def __init__(self, plan: Plan, clock: Clock, capture: Capture, rng: Random) -> None:
        super().__init__(plan, clock, capture)
        self.getrandbits = rng.getrandbits
        self.dumps = dumps
        self.new_id = count(1)
        self.max_buffer = value(plan.conf, MAX_BUFFER)
        self.active = False
        self.ending = False
        self.now = clock.now()
        self.timers = Timers(clock)
        self.dirty: set[Any] = set()
        self.done: deque[tuple[int, int, bool]] = deque()
        self.ackers = [Acker(self.done.append) for _ in plan.ackers]
        self.log = self._log
        self.report = self._error
        self.metric = self._metric
        self.expired = self._expired
        self.pipes = Pipes()
        folder = tempfile.mkdtemp(prefix="multilang-")  # mode 0700
        # This also runs at the end of a program that never closed its cluster.
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.pid_dir = os.path.join(folder, "pids")
        os.mkdir(self.pid_dir)
        self.env = environment()
        self.program_env = environment(programs=True)
        try:
            self.commands = TaskCommands(plan.declared, folder)
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        self.pipes.close()
        self._remove_folder()

    @property
    def stale_before(self) -> float:
        """The time before which a bolt's tuples are stale, since their spout's tuples have timed out.

        If nothing times out, no tuple is ever stale.
        """
        settings = self.plan.settings
        return self.now - 2 * settings.message_timeout_secs if settings.message_timeouts else 0.0

    @property
    def committed_before(self) -> float:
        """The time at which the last committed checkpoint began."""
        lasts = (spout.last_checkpoint for spout in self.spouts.values())
        return max((at - secs for _, at, secs in filter(None, lasts)), default=0.0)

    def init_root(self, root: int, value: int, task: int) -> None:
        """Send the init message of a new spout tuple to the root's acker."""
        self.ackers[root % len(self.ackers)].init(root, value, task)

    def ack_root(self, root: int, value: int) -> None:
        """Send an ack to the root's acker."""
        self.ackers[root % len(self.ackers)].ack(root, value)

    def fail_root(self, root: int) -> None:
        """Send a fail to the root's acker."""
        self.ackers[root % len(self.ackers)].fail(root)

    def capture(self, route: Route, values: list[Any]) -> None:
        """Store a copy of an emitted tuple."""
        if route.captured is not None:
            route.captured(LocalTuple(values, route.stream, route.origin))

    @abstractmethod
    def fail(self, error: LocalClusterError) -> None:
        """End everything with this error."""
