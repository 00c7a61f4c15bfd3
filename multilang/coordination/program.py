"""A bolt in another language inside a Python task, which counts its tuples.

On Storm a shell bolt is a process of its own that talks only to Storm, so that nothing between it and its collector
could count tuples, as a coordinated bolt does. (In Java this works, since the shell bolt is an object there.) So a task
in Python acts as Storm for the program, and the program's emits, acks and fails are the task's own.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from time import monotonic

from multilang.component.bolt import Bolt
from multilang.errors import MultilangError
from multilang.protocol.errors import RemoteProtocolError
from multilang.protocol.messages import HEARTBEAT_STREAM, SYSTEM_TASK, Ack, Emit, Error, Fail, Log, Metrics, Sync
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from subprocess import Popen
    from typing import Any

    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.protocol.messages import Message, Tuple
    from multilang.protocol.parent import ParentConnection
    from multilang.topology.home import Home
    from multilang.topology.shell import ShellBolt

TIMEOUT = "topology.subprocess.timeout.secs"
_READ = 65536
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
_SIGKILL = 9
_END_SECS = 2.0  # for a program to end when its input has ended


class ProgramBolt(Bolt):
    """Gives each tuple to the program of a ShellBolt, and waits until the program has acked or failed it.

    It does not suit a program that keeps tuples to ack them later. Ticks do not reach the program. Before an id is
    finished, the program is asked for a sign of life: tuples that it emitted after an ack come before its answer, and
    belong to the id.
    """

    settles_each = False
    """True if it asks after each tuple, since ``finished_id`` may be called while another tuple is processed."""

    home: Home | None = None
    """The folder with the program's files, set by the topology's builder."""

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
        from tempfile import mkdtemp

        self._limit = conf.get(TIMEOUT) or 300
        self._pids = mkdtemp(prefix="multilang-pids-")
        self._program: Popen[bytes] | None = None
        self._id = 0
        self._given = ""  # the tuple that it got last
        self._is_settled = True  # nothing more can come of that tuple
        # The other thread gets the task ids, while this one waits for the program.
        self._elsewhere = self.settles_each and self._collector.takes_threads
        self._wakes, self._wake = os.pipe() if self._elsewhere else (-1, -1)
        self._tasks: deque[list[int]] = deque()
        self._start(conf, context)

    def process(self, tup: Tuple) -> None:
        self._id += 1
        id = str(self._id)
        try:
            self._conn.late = (self._given, id)
            self._given = id
            self._is_settled = False
            self._conn.tuple(id, tup.component, tup.stream, tup.task, tup.values)
            self._talk(lambda: id not in self._conn.unfinished, tup, f"finished the tuple {tup.values!r}")
            if self.settles_each:
                self._settle(tup)
        except BaseException:
            self._end(kill=True)  # its successor in this process starts a program of its own
            raise

    def finished_id(self, id: Hashable) -> None:
        """Wait for the tuples that the program emitted after its acks, before ``id`` is finished."""
        if self.settles_each or self._is_settled:
            return
        try:
            self._settle(None)
        except BaseException:
            self._end(kill=True)
            raise

    def close(self) -> None:
        self._end(kill=False)

    def _start(self, conf: dict[str, Any], context: Context) -> None:
        import subprocess

        from multilang.protocol.parent import ParentConnection
        from multilang.topology.commands import local_start
        from multilang.topology.model import ComponentSpec

        spec = ComponentSpec(context.component, "bolt", self.shell, streams={}, home=self.home)
        words, folder = local_start(spec, conf)
        self._conn: ParentConnection = ParentConnection("bolt")
        try:
            self._program = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                # It waits for no lock that another thread could hold.
                preexec_fn=_ends_with_parent() if self._collector.takes_threads else None,  # noqa: PLW1509
            )
        except OSError as problem:
            self._end(kill=True)
            raise MultilangError(f"the program {self.shell.command!r} can't be started: {problem}") from None
        assert self._program.stdin is not None
        os.set_blocking(self._program.stdin.fileno(), False)
        try:
            self._conn.setup(dict(conf), self._pids, dict(context))
            self._talk(lambda: self._conn.pid is not None, None, "answered the handshake")
            self._ask()  # its first ack shows whether it answers heartbeats at all
        except BaseException:
            self._end(kill=True)
            raise

    def _ask(self) -> None:
        self._id += 1
        self._beat = str(self._id)
        self._conn.tuple(self._beat, None, HEARTBEAT_STREAM, SYSTEM_TASK, [])

    def _settle(self, tup: Tuple | None) -> None:
        """Read the rest of what the program says about the tuples that it has finished."""
        if self._beat not in self._conn.unfinished:
            self._ask()
            self._talk(lambda: self._beat not in self._conn.unfinished, tup, "answered a heartbeat")
        elif self._program is not None and self._program.stdout is not None:
            from select import select

            # It ignores heartbeats, which Storm would not allow: only what it has written by now can be read.
            reading = self._program.stdout.fileno()
            while select([reading], [], [], 0)[0]:
                self._hear(os.read(reading, _READ), tup)
        self._is_settled = True

    def _talk(self, is_done: Any, tup: Tuple | None, what: str) -> None:
        """Write all messages, and do what the program says, until ``is_done`` returns true."""
        from select import select

        program = self._program
        if program is None:
            raise MultilangError(f"the program {self.shell.command!r} has ended")
        assert program.stdin is not None
        assert program.stdout is not None
        reading, writing = program.stdout.fileno(), program.stdin.fileno()
        unwritten = b""
        deadline = monotonic() + self._limit
        while True:
            unwritten += self._conn.data_to_send()
            if not unwritten and is_done():
                return
            left = deadline - monotonic()
            if left <= 0:
                raise MultilangError(
                    f"the program {self.shell.command!r} has not {what} within {self._limit:g} s ({TIMEOUT}); in this step it acks or "
                    "fails each tuple before it is given the next one"
                )
            readable, writable, _ = select(
                [reading, self._wakes] if self._elsewhere else [reading], [writing] if unwritten else [], [], left
            )
            try:
                if writable:
                    unwritten = unwritten[os.write(writing, unwritten) :]
            except OSError:
                unwritten = b""  # its last words say why
            if self._wakes in readable:
                os.read(self._wakes, _READ)
                while self._tasks:
                    self._conn.task_ids(self._tasks.popleft())
            if reading in readable:
                self._hear(os.read(reading, _READ), tup)

    def _went_to(self, tasks: list[int]) -> None:
        """Keep the task ids of an emit, which came in the other thread."""
        self._tasks.append(tasks)
        with suppress(OSError):  # the program has ended
            os.write(self._wake, b"x")

    def _hear(self, data: bytes, tup: Tuple | None) -> None:
        failure: RemoteProtocolError | None = None
        try:
            messages: Any = self._conn.receive_data(data)
        except RemoteProtocolError as problem:
            messages, failure = problem.events, problem
        for message in messages:
            self._do(message, tup)
        if failure is not None:
            raise MultilangError(f"the program {self.shell.command!r} broke the protocol: {failure}") from None
        if not data:
            status = None if self._program is None else self._program.wait()
            raise MultilangError(f"the program {self.shell.command!r} ended with status {status}")

    def _do(self, message: Message, tup: Tuple | None) -> None:
        if isinstance(message, Emit):
            anchors = [tup] if tup is not None and tup.unfinished and self._given in message.anchors else []
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

    def _end(self, kill: bool) -> None:
        from shutil import rmtree

        rmtree(self._pids, ignore_errors=True)
        program, self._program = self._program, None
        if program is None:
            return
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.close()
        if not kill:
            from subprocess import TimeoutExpired

            try:
                program.wait(_END_SECS)
            except TimeoutExpired:
                pass
        program.kill()
        program.wait()
        program.stdout.close()
        if self._elsewhere:
            self._elsewhere = False
            os.close(self._wakes)
            os.close(self._wake)


def _ends_with_parent() -> Callable[[], object] | None:
    """Return a function that the program calls first, so that it ends with a killed task; None if impossible."""
    try:
        from ctypes import CDLL

        prctl = CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # no Linux: the program lives until it reads again
        return None
    parent = os.getpid()

    def tied() -> None:
        prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != parent:  # the parent was killed before that
            os._exit(1)

    return tied
