"""A component in another language on Spark: its process and the wire to it, as Storm's shell components have them."""

from __future__ import annotations

import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from select import select
from typing import TYPE_CHECKING

from multilang.errors import TaskStartError
from multilang.protocol import Error, Log, Metrics, Pid, RemoteProtocolError
from multilang.protocol.parent import ParentConnection
from multilang.runtime.child import Child, environment, how_it_ended
from multilang.runtime.task import START_ATTEMPTS
from multilang.topology import TopologyError
from multilang.topology.commands import local_start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan

_END_SECS = 5.0  # time for a child to end by itself when its input has ended


class Program(ABC):
    """A component's program and its child process, of which there may be several, one after the other.

    Subclasses send with the methods of ``conn``, and call ``pump`` to write and to read.
    """

    kind: Literal["bolt", "spout"]

    def __init__(self, plan: TaskPlan, links: Links) -> None:
        self.plan = plan
        self.links = links
        self.child: Child
        self.conn: ParentConnection
        self._command_line: list[str] = []
        self._start_folder = ""
        self._deaths = 0
        self._heard_at = 0.0
        self._folder = tempfile.mkdtemp(prefix="multilang-pids-")

    @abstractmethod
    def handle(self, message: Any) -> None:
        """Handle a message that not every component sends. Raise RemoteProtocolError for one that ends the child."""

    def launch(self, conf: Mapping[str, Any]) -> None:
        """Start a child and do the handshake. Raises TaskStartError when that fails several times in a row."""
        try:
            self._launch(conf)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _launch(self, conf: Mapping[str, Any]) -> None:
        while True:
            try:
                self._command_line, self._start_folder = local_start(self.plan.spec, self.plan.conf)
                self.child = Child(self._command_line, environment(programs=True), self._start_folder)
                self.conn = ParentConnection(self.kind)
                self.conn.setup(dict(conf), self._folder, self.plan.context)
                self._heard_at = time.monotonic()
                while self.conn.pid is None:
                    self.pump(None)
                self._deaths = 0
                return
            except TopologyError as error:
                raise TaskStartError(str(error)) from None
            except OSError as error:
                raise TaskStartError(
                    f"{self.plan}: the command {self._command_line!r} can't be started in {self._start_folder}: {error}"
                ) from None
            except RemoteProtocolError as death:
                self._deaths += 1
                self.end()
                if self._deaths >= START_ATTEMPTS:
                    raise TaskStartError(f"{self.plan} can't be started: {death}") from None

    def pump(self, wait: float | None) -> None:
        """Write everything that is to be sent, and read what has come.

        ``wait``: None to wait for at least one message, 0 not to wait. Raises RemoteProtocolError.
        """
        child = self.child
        limit = self.plan.settings.subprocess_timeout_secs
        data = self.conn.data_to_send()
        if data:
            self._heard_at = time.monotonic()  # the child was asked nothing before, so its silence counts from here
        try:
            written = child.write(data)
            while True:
                readable, writable, _ = select(
                    [fd for fd in (child.output, child.error) if fd >= 0],
                    [] if written else [child.input],
                    [],
                    wait if written and wait is not None else 0.2,
                )
                if child.error in readable:
                    for line in child.read_error() or ():
                        self.links.log(self.plan, f"stderr: {line}", 3)
                heard = child.output in readable and self._read()
                if writable or not written:
                    written = child.write(self.conn.data_to_send())
                if written and (heard or wait is not None):
                    return
                if not heard and time.monotonic() - self._heard_at > limit:
                    child.kill()
                    raise RemoteProtocolError(
                        f"{self.plan}: it said nothing for {limit:g} s (topology.subprocess.timeout.secs)"
                    )
        except OSError as error:
            raise RemoteProtocolError(f"{self.plan}: {self._how(error)}") from None

    def end(self) -> None:
        """Close the child's input, and wait until the child has ended."""
        child = self.child
        child.close_input()
        deadline = time.monotonic() + _END_SECS
        while child.poll() is None and time.monotonic() < deadline:
            if select([child.output], [], [], 0.05)[0] and not child.read():
                time.sleep(0.01)
        child.kill()
        child.wait()
        child.close()

    def close(self) -> None:
        """End the child, and remove its folder."""
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def answer(self, targets: Sequence[int]) -> None:
        """Send the task ids of an emit."""
        self.conn.task_ids(targets)
        self.child.write(self.conn.data_to_send())

    def _read(self) -> bool:
        data = self.child.read()
        if data is None:
            return False
        self._heard_at = time.monotonic()
        try:
            for message in self.conn.receive_data(data):
                self._handle(message)
            if not data:
                raise RemoteProtocolError(f"{self.plan}: {self._how(None)}")
        except RemoteProtocolError as error:
            for before in error.events:
                self._handle(before)
            raise RemoteProtocolError(f"{self.plan}: {error}") from None
        return True

    def _handle(self, message: Any) -> None:
        if isinstance(message, Log):
            self.links.log(self.plan, message.message, message.level)
        elif isinstance(message, Error):
            self.links.report(self.plan, message.message)
        elif isinstance(message, Metrics):
            self.links.metric(self.plan, message.name, message.params)
        elif not isinstance(message, Pid):
            self.handle(message)

    def _how(self, error: OSError | None) -> str:
        child = self.child
        deadline = time.monotonic() + 1
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        status = child.poll()
        if child.error >= 0:
            child.read_error()
        said = f"; the end of its stderr:\n{child.error_tail}" if child.error_tail else ""
        how = "closed its input" if status is None and error is not None else how_it_ended(status)
        return f"the process {' '.join(self._command_line)!r} {how}{said}"
