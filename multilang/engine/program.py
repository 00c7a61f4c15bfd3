"""A component's program: its process, the connection to it, and its death.

This is what Storm's ShellSpout and ShellBolt do for a component in any language. A ``Program`` is one process, from its
start to its end. ``Pipes`` calls it when one of its pipes is ready, be it in the loop of a topology that serves many
programs, or in that of a ``WaitingProgram``, whose owner waits for one alone. ``multilang.engine.task.Restarts`` decides
when, and whether, the next program is started.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import TYPE_CHECKING

from multilang.engine.child import Child, how_it_ended
from multilang.engine.pipes import Pipes
from multilang.errors import MultilangError, TaskStartError
from multilang.protocol.errors import RemoteProtocolError
from multilang.protocol.parent import ParentConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

_REAP_SECS = 0.5  # for a process to exit after it has closed its pipes, or has broken the protocol
_LAST_READS = 64  # of what a process left in its pipe, which may still be open in a process that it started
_LOOK_SECS = 0.2  # between two looks at a process that sends nothing
_BRIEF_SECS = 0.01  # between two looks at a process that is about to exit


class ProgramDiedError(MultilangError):
    """A program ended, or had to be ended.

    Attributes:
        reason: Why, with the end of its stderr.
        status: Its exit status; negative for a signal.
        secs: The seconds that it ran.
        killed: Whether SIGKILL came from elsewhere, which is no fault of the program.
    """

    def __init__(self, command: Sequence[str], reason: str, status: int, secs: float, killed: bool) -> None:
        super().__init__(f"the program {command!r} died: {reason}")
        self.reason = reason
        self.status = status
        self.secs = secs
        self.killed = killed


class Program:
    """A started program.

    Args:
        conn: The connection to it, whose first message is the handshake.
        pipes: The pipes of its loop.
        command: The program and its arguments.
        env: Its environment.
        folder: The folder in which it starts; None for the current one.
        limit_secs: The longest time in which it may send nothing although something is due.
        handle: Gets each of its messages. If it raises RemoteProtocolError, the program is ended.
        on_stderr: Gets each line that it writes to stderr.
        on_writable: Called when its input, which was full, takes more; None to write what is to be sent, and no more.
        on_death: Called when it begins to die, perhaps in the middle of a call; ``bury`` is due then.
        child: Other arguments of ``Child``.

    Attributes:
        child: The process.
        ready: Whether it has answered the handshake, and is not dying.
        reading: Whether its output is read.
        received_at: The time of its last message, or at which something became due.

    Raises:
        TaskStartError: It can't be started.
    """

    def __init__(
        self,
        conn: ParentConnection,
        pipes: Pipes,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: str | None,
        limit_secs: float,
        handle: Callable[[Any], object],
        on_stderr: Callable[[str], object],
        on_writable: Callable[[], object] | None = None,
        on_death: Callable[[], object] | None = None,
        **child: bool,
    ) -> None:
        try:
            self.child = Child(command, env, folder, **child)
        except OSError as error:
            where = "" if folder is None else f" in {folder}"
            raise TaskStartError(f"the command {command!r} can't be started{where}: {error}") from None
        self.conn = conn
        self.pipes = pipes
        self.ready = self.reading = self._dying = False
        self._command = command
        self._limit_secs = limit_secs
        self._handle = handle
        self._on_stderr = on_stderr
        self._on_writable = on_writable or self.write
        self._on_death = on_death
        self.started_at = self.received_at = time.monotonic()
        self._died_at = 0.0
        self._reason = ""
        self._broken = ""  # how it broke the protocol: its further messages are ignored
        if self.child.error >= 0:
            pipes.watch(self.child.error, self._read_stderr)
        self.set_reading(True)

    # ---- its pipes ----

    def write(self) -> bool:
        """Write as much as its input takes; return whether this was all."""
        child = self.child
        if child.input < 0:
            return False
        try:
            if child.write(self.conn.data_to_send()):
                self.pipes.unwatch_writing(child.input)
                return True
            self.pipes.watch_writing(child.input, self._on_writable)
        except OSError:
            # It does not read any more; its last messages, with the reason, may still be in the other pipe.
            self._die("")
        return False

    def takes_more(self) -> bool:
        """Return whether it is ready, and its input has taken all that was written."""
        return self.ready and not self.child.has_more()

    def set_reading(self, reading: bool) -> None:
        """Read its output from now on, or leave it in the pipe."""
        if reading != self.reading and not self._dying:
            self.reading = reading
            if reading:
                self.pipes.watch(self.child.output, self._read)
            else:
                self.pipes.unwatch(self.child.output)

    def _read(self) -> None:
        if self._dying or (data := self.child.read()) is None:
            return
        self.received_at = time.monotonic()
        self._receive(data)
        if self._broken or not data:
            self._die(self._broken)

    def _receive(self, data: bytes) -> None:
        """Handle the messages that are complete with ``data``."""
        try:
            messages: Sequence[Any] = self.conn.receive_data(data)
        except RemoteProtocolError as error:
            messages = error.events
            self._broken = str(error)
        if not self.ready:
            self.ready = self.conn.pid is not None and not self._dying
        handle = self._handle
        try:
            for message in messages:
                handle(message)
        except RemoteProtocolError as error:
            self._broken = str(error)

    def _read_stderr(self) -> None:
        child = self.child
        if child.error >= 0:
            fd = child.error
            lines = child.read_error()
            if child.error < 0:
                self.pipes.unwatch(fd)
            for line in lines or ():
                self._on_stderr(line)

    # ---- its death ----

    def look(self, due: str = "", since: float = 0.0) -> None:
        """Check that it still runs; to be called now and then.

        Args:
            due: What it must do, whatever else it sends; empty: it must not be silent while it owes an answer.
            since: The time since which this is due.
        """
        child = self.child
        if self._dying:
            return
        if child.process.poll() is not None and not self._runs_detached():
            # There is no other sign while its output is not read, or is still open in a process that it started.
            self._die("")
            return
        how = "it did"
        if not due:
            how, since, due = "heartbeat timeout: it did", self.received_at, self.owes
        silence = time.monotonic() - since
        if self.reading and due and silence > self._limit_secs:
            child.kill()
            self._die(f"{how} not {due} for {silence:.0f} s (topology.subprocess.timeout.secs)")

    @property
    def owes(self) -> str:
        """The thing that it has not done yet, although it was asked to; empty for nothing."""
        conn = self.conn
        if conn.pid is None:
            return "answer the handshake"
        if conn.kind == "bolt":
            return "answer any heartbeat"
        return "" if conn.command is None else f"answer the command {conn.command!r}"

    def _runs_detached(self) -> bool:
        """Return whether the ended process was a wrapper that has left the program running, as ``setsid`` does."""
        child, pid = self.child, self.conn.pid
        if child.process.poll() != 0 or pid == child.process.pid:
            return False
        if pid is None:
            return True  # it is yet to answer the handshake
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # it is there, and another user's
        return True

    def _die(self, reason: str) -> None:
        """Take it for dead; without a reason, its exit status is the reason."""
        if not self._dying:
            self._reason = reason
            self._died_at = time.monotonic()
            self._let_go()
            if self._on_death is not None:
                self._on_death()

    def bury(self, listen: bool = True) -> ProgramDiedError | None:
        """Return how it died once its process has exited; None until then. A process that does not exit soon is killed.

        Args:
            listen: Whether its last messages are still handled: acks, or the reason of its end.
        """
        child = self.child
        status = child.process.poll()
        if status is None:
            if time.monotonic() >= self._died_at + _REAP_SECS:
                self._reason = self._reason or "it closed its pipes"
                child.kill()
            return None
        for _ in range(_LAST_READS if listen else 0):
            if self._broken or (data := child.read()) is None:
                break
            self._receive(data)
            if not data:
                break
        self._read_stderr()
        self._close()
        how = f"the process {how_it_ended(status)}"
        ours = self._reason or self._broken
        reason = how if not ours else f"{ours} ({how})" if status else ours
        if child.error_tail:
            reason = f"{reason}; the end of its stderr:\n{child.error_tail}"
        secs = self._died_at - self.started_at
        return ProgramDiedError(self._command, reason, status, secs, status == -9 and not ours)

    def stop(self) -> None:
        """Ask it to end by SIGTERM and by the end of its input. Its output is read until its end."""
        if not self._dying:
            self.set_reading(True)
            self.child.process.terminate()
            self._close_input()

    def end(self, secs: float = 0.0) -> None:
        """Close its input, and wait for its end, for so long; then kill it."""
        child = self.child
        self._let_go()
        deadline = time.monotonic() + secs
        while child.process.poll() is None and time.monotonic() < deadline:
            self._read_stderr()
            if not child.read():
                time.sleep(_BRIEF_SECS)
        child.kill()
        child.process.wait()
        self._close()

    def _let_go(self) -> None:
        self.set_reading(False)
        self._dying = True
        self.ready = False
        self._close_input()

    def _close_input(self) -> None:
        self.pipes.unwatch_writing(self.child.input)
        self.child.close_input()

    def _close(self) -> None:
        if self.child.error >= 0:
            self.pipes.unwatch(self.child.error)
        self.child.close()


class WaitingProgram(Program):
    """A program whose owner has no loop of its own, and waits for the program's answers.

    Args:
        kind: The kind of the component.
        conf: The conf in its handshake.
        context: The context in its handshake.
        others: The other arguments of ``Program``.
    """

    def __init__(
        self, kind: Literal["bolt", "spout"], conf: Mapping[str, Any], context: Mapping[str, Any], **others: Any
    ) -> None:
        self._is_open = True
        self._pids = tempfile.mkdtemp(prefix="multilang-pids-")
        self.pipes = Pipes()
        try:
            conn = ParentConnection(kind)
            conn.setup(dict(conf), self._pids, dict(context))
            super().__init__(conn, self.pipes, **others)
        except BaseException:
            self._release()
            raise

    def run_until(self, is_done: Callable[[], bool], due: str = "") -> None:
        """Write all that is to be sent, and handle its messages, until ``is_done``. After any error it has ended.

        Args:
            is_done: Asked when all is written and all received messages are handled.
            due: See ``look``.

        Raises:
            ProgramDiedError: It died, now or before.
        """
        began = self.received_at = time.monotonic()  # it was asked nothing before, so that its silence counts from here
        is_first = True
        try:
            while not self._dying:
                done = self.write() and is_done()
                if done and not is_first:
                    return
                is_first = False
                self.pipes.serve(0.0 if done else _LOOK_SECS)
                self.pipes.run_orders()
                if not done:
                    self.look(due, began)
            while (death := self.bury()) is None:
                time.sleep(_BRIEF_SECS)
            raise death
        except BaseException:
            self.end()
            raise

    def end(self, secs: float = 0.0) -> None:
        """End it, unless it has ended, and release its resources."""
        if self._is_open:
            super().end(secs)
            self._release()

    def _release(self) -> None:
        self._is_open = False
        self.pipes.close()
        shutil.rmtree(self._pids, ignore_errors=True)
