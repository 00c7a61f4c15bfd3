"""The runs of ``multilang run --watch``: a process that has loaded this package forks one for each of them.

The process that waits for saved files has threads, and a process with threads must not be forked. So the launcher is
forked before there are any. It has imported all but the user's code, so that a run starts within milliseconds.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from multilang.topology import Topology

_GRACE = 10.0  # seconds for a run to end its tasks before it is killed


class WatchedRun:
    """The end of a pipe to which a run sends the names of its files.

    Args:
        out: The descriptor of a pipe to the process that watches.
    """

    def __init__(self, out: int) -> None:
        self._out = out

    def send_files(self, topology: Topology) -> None:
        """Send the files of a topology that was loaded: its modules, and the programs that its commands name."""
        files = {file for each in list(sys.modules.values()) if (file := getattr(each, "__file__", None)) is not None}
        for spec in topology.components.values():
            for word in spec.command or ():
                path = spec.home.find(word) if spec.home is not None else None
                if path is not None:
                    files.add(path)
        os.write(self._out, json.dumps(sorted(map(os.path.abspath, files))).encode() + b"\n")


class Launcher:
    """A process that starts runs.

    It must be made before this process has threads.

    Args:
        run: Runs the command line, and returns its exit status.
    """

    def __init__(self, run: Callable[[WatchedRun], int]) -> None:
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.close(self._answers)
            status = 1
            try:
                _serve(run, asked, answer)
                status = 0
            finally:
                os._exit(status)
        os.close(asked)
        os.close(answer)
        self._rest = b""
        self.run: int | None = None  # the process of the run
        self.files: frozenset[str] | None = None
        """The files of the present run, or of the last one; None: it could not be loaded."""
        self.status: int | None = None
        """The exit status of the last run; None while it runs."""

    def start(self) -> None:
        """Start a run."""
        self.files = self.status = None
        os.write(self._ask, b"r")
        while self.run is None:
            self.look(_GRACE)

    def look(self, timeout: float = 0.0) -> None:
        """Read the messages of the run, waiting at most ``timeout`` seconds for one."""
        if not select.select([self._answers], [], [], timeout)[0]:
            return
        data = os.read(self._answers, 1 << 16)
        if not data:
            raise RuntimeError("the process that starts the runs has ended")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message: Any = json.loads(line)
            if isinstance(message, list):
                self.files = frozenset(message)
            elif "run" in message:
                self.run = message["run"]
            else:
                self.run, self.status = None, message["status"]

    def end_run(self, number: int = signal.SIGTERM) -> None:
        """End the run, and wait for it.

        Args:
            number: The signal that asks it to.
        """
        if self.run is None:
            return
        pid = self.run
        _send(pid, number)
        deadline = time.monotonic() + _GRACE
        while self.run is not None:
            self.look(max(deadline - time.monotonic(), 0.0))
            if time.monotonic() > deadline:
                _send(pid, signal.SIGKILL)
                deadline = time.monotonic() + _GRACE

    def close(self) -> None:
        """End the launcher, and a run that is left."""
        os.close(self._ask)
        os.waitpid(self._pid, 0)
        os.close(self._answers)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended, which the launcher is about to report


def _serve(run: Callable[[WatchedRun], int], asked: int, answer: int) -> None:
    """Start a run for each byte that comes, and report its process id and exit status; end at the end of the bytes."""
    os.setpgid(0, 0)  # a terminal's Ctrl-C is for the process that watches, which passes it on
    _import(("multilang.cli.run", "multilang.local.process.topology", "multilang.project.file", "multilang.state"))
    while os.read(asked, 1):
        ended, held = os.pipe()  # at whose end the run has ended: nobody else has the other side
        pid = os.fork()
        if pid == 0:
            os.close(asked)
            os.close(ended)
            _run(run, answer)
        os.close(held)
        os.write(answer, json.dumps({"run": pid}).encode() + b"\n")
        if asked in select.select([ended, asked], [], [])[0] and not select.select([ended], [], [], 0)[0]:
            _send(pid, signal.SIGTERM)  # the process that watches has ended
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(ended)
        os.write(answer, json.dumps({"status": 128 - status if status < 0 else status}).encode() + b"\n")


def _run(run: Callable[[WatchedRun], int], answer: int) -> None:
    status = 1
    try:
        status = run(WatchedRun(answer))
    except BaseException:  # noqa: BLE001 - the process ends here, and its user sees why
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                pass  # the terminal was closed
        os._exit(status)


def _import(names: Iterable[str]) -> None:
    from importlib import import_module

    for name in names:
        import_module(name)
