"""A bolt in another language inside a Python task, which counts its tuples.

On Storm a shell bolt is a process of its own with a wire only to Storm, so that nothing between it and its collector
could count tuples, as a coordinated bolt does. (In Java this works, since the shell bolt is an object there.) So a task
in Python acts as Storm for the program, and the program's emits, acks and fails are the task's own.
"""

from __future__ import annotations

import os

from multilang.component.bolt import Bolt
from multilang.protocol.messages import HEARTBEAT_STREAM, SYSTEM_TASK, Ack, Emit, Error, Fail, Log, Metrics, Sync
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.engine.program import WaitingProgram
    from multilang.protocol.messages import Message, Tuple
    from multilang.topology.home import Home
    from multilang.topology.shell import ShellBolt

_LIMIT_SECS = 300  # as in Storm's defaults
_END_SECS = 2.0  # for a program to end when its input has ended


class ProgramBolt(Bolt):
    """Gives each tuple to the program of a ShellBolt, and waits until the program has acked or failed it.

    It does not suit a program that keeps tuples to ack them later. Ticks do not reach the program. Before an id is
    finished, the program gets a heartbeat: tuples that it emitted after an ack come before its answer, and
    belong to the id.
    """

    settles_each = False
    """True if it asks after each tuple, since ``finished_id`` may be called while another tuple is processed."""

    home: Home | None = None
    """The folder with the program's files, set by the topology's builder."""

    _program: WaitingProgram

    def __init__(self, shell: ShellBolt) -> None:
        if not shell.change_child_cwd:
            raise TopologyError(
                f"{shell!r} has change_child_cwd=False, but a Python task starts its program in the folder of the program's files, "
                "resources/ on a worker: leave it out, and write ../NAME for a file in the worker's directory"
            )
        self.shell = shell
        self.component_conf = shell.component_conf  # type: ignore[misc]

    def declared_streams(self) -> dict[str, Stream]:
        return self.shell.declared_streams()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        from multilang.engine.program import WaitingProgram
        from multilang.topology.commands import local_start
        from multilang.topology.model import ComponentSpec

        self._id = 0
        self._beat = ""  # the heartbeat that it got last
        self._given: Tuple | None = None  # the tuple that it works on
        self._given_id = ""  # the tuple that it got last
        self._is_settled = True  # nothing more can come of that tuple
        # The other thread gets the task ids, while this one waits for the program.
        self._elsewhere = self.settles_each and self._collector.takes_threads
        spec = ComponentSpec(context.component, "bolt", self.shell, streams={}, home=self.home)
        command, folder = local_start(spec, conf)
        self._program = WaitingProgram(
            "bolt",
            conf,
            context,
            command=command,
            env=os.environ,
            folder=folder,
            limit_secs=conf.get("topology.subprocess.timeout.secs") or _LIMIT_SECS,
            handle=self._do,
            on_stderr=str,  # nothing comes here: it writes to the stderr of this process
            inside=True,
            tied=self._collector.takes_threads,
        )
        self._conn = self._program.conn
        self._program.run_until(lambda: self._conn.pid is not None)
        self._ask()  # its first ack shows whether it answers heartbeats at all

    def process(self, tup: Tuple) -> None:
        self._id += 1
        id = str(self._id)
        self._conn.late = (self._given_id, id)
        self._given = tup
        self._given_id = id
        self._is_settled = False
        try:
            self._conn.tuple(id, tup.component, tup.stream, tup.task, tup.values)
            self._program.run_until(
                lambda: id not in self._conn.unfinished,
                f"ack or fail the tuple {tup.values!r}, as it does in this step before it is given the next one,",
            )
            if self.settles_each:
                self._settle()
        except BaseException:
            self._program.end()  # its successor in this process starts a program of its own
            raise
        self._given = None

    def finished_id(self, id: Hashable) -> None:
        """Wait for the tuples that the program emitted after its acks, before ``id`` is finished."""
        if not self.settles_each and not self._is_settled:
            self._settle()

    def close(self) -> None:
        self._program.end(_END_SECS)

    def _ask(self) -> None:
        self._id += 1
        self._beat = str(self._id)
        self._conn.tuple(self._beat, None, HEARTBEAT_STREAM, SYSTEM_TASK, [])

    def _settle(self) -> None:
        """Read the rest of the program's messages about the tuples that it has finished."""
        if self._beat not in self._conn.unfinished:
            self._ask()
            self._program.run_until(lambda: self._beat not in self._conn.unfinished, "answer a heartbeat")
        else:
            # It ignores heartbeats, which Storm would not allow: only what it has written by now can be read.
            self._program.run_until(lambda: True)
        self._is_settled = True

    def _do(self, message: Message) -> None:
        tup = self._given
        if isinstance(message, Emit):
            anchors = [tup] if tup is not None and tup.unfinished and self._given_id in message.anchors else []
            if self._elsewhere and message.need_task_ids:
                self.emit(message.values, message.stream, anchors, message.task, on_task_ids=self._went_to)
                return
            tasks = self.emit(message.values, message.stream, anchors, message.task, message.need_task_ids)
            if message.need_task_ids:
                self._conn.task_ids(tasks or [])
        elif isinstance(message, Sync):
            self._conn.unfinished.discard(self._beat)
        elif isinstance(message, Ack | Fail) and message.id == self._beat:
            pass  # this answers a heartbeat, too
        elif isinstance(message, Ack) and tup is not None:
            self.ack(tup)
        elif isinstance(message, Fail) and tup is not None:
            self.fail(tup)
        elif isinstance(message, Log):
            self.log(message.message, message.level)
        elif isinstance(message, Error):
            self.report_error(message.message)
        elif isinstance(message, Metrics):
            self._collector.report_metric(message.name, message.params)

    def _went_to(self, tasks: list[int]) -> None:
        """Answer an emit with its task ids, which came in the other thread."""
        self._program.pipes.order(lambda: self._conn.task_ids(tasks))
