"""A child process and its three pipes, none of which ever blocks this side."""

from __future__ import annotations

import os
import signal
import site
import subprocess
import sys
import sysconfig
from collections import deque
from typing import TYPE_CHECKING

from multilang.topology.search_path import FOLDERS, last_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READ = 65536  # bytes
_STAND_INS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compat", "standins")
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
_TAIL = 2000  # bytes of stderr for the report of a death


class Child:
    """A started process.

    Args:
        command: The program and its arguments.
        env: Its environment.
        folder: The folder in which it starts; None for the current one.
        inside: Whether it shares this process's standard error and its process group.
        tied: Whether it is killed when the thread that starts it ends, where the system can do this.

    Attributes:
        process: The process.
        input: The descriptor of our end of its standard input, -1 once it is closed.
        output: The same of its standard output.
        error: The same of its standard error; -1 if it is shared, too.

    Raises:
        OSError: The program can't be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: str | None = None,
        *,
        inside: bool = False,
        tied: bool = False,
    ) -> None:
        self._inside = inside
        self.process = process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if inside else subprocess.PIPE,
            env=dict(env),
            bufsize=0,
            start_new_session=not inside,  # a terminal's Ctrl-C is for the cluster, which then ends its tasks in order
            preexec_fn=_ends_with_parent() if tied else None,  # noqa: PLW1509  # it waits for no lock
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._files = [process.stdin, process.stdout]
        self.input = process.stdin.fileno()
        self.output = process.stdout.fileno()
        self.error = -1
        if process.stderr is not None:
            self._files.append(process.stderr)
            self.error = process.stderr.fileno()
        for file in self._files:
            os.set_blocking(file.fileno(), False)
        self._unwritten: deque[memoryview] = deque()
        self._error_line = b""
        self._error_tail = b""

    # ---- its input ----

    def has_more(self) -> bool:
        """Return whether its input pipe has not taken everything yet."""
        return bool(self._unwritten)

    def write(self, data: bytes) -> bool:
        """Write what is left from before, and then ``data``; return whether everything is written.

        Raises:
            OSError: The process does not read any more.
        """
        waiting = self._unwritten
        if data:
            waiting.append(memoryview(data))  # a view, so that the rest of a large message is not copied at each write
        try:
            while waiting:
                written = os.write(self.input, waiting[0])
                if written < len(waiting[0]):
                    waiting[0] = waiting[0][written:]
                else:
                    waiting.popleft()
        except BlockingIOError:
            pass  # the pipe is full
        return not waiting

    def close_input(self) -> None:
        """Close its input."""
        if self.input >= 0:
            self.input = -1
            self._unwritten.clear()
            self._files[0].close()

    # ---- its output ----

    def read(self) -> bytes | None:
        """Return the output that is there: b"" at the end, None when there is nothing now."""
        if self.output < 0:
            return b""
        try:
            return os.read(self.output, READ)
        except BlockingIOError:
            return None

    def read_error(self) -> list[str] | None:
        """Return the lines that it wrote to stderr; None at the end.

        A partial line waits for its rest, up to a bound.
        """
        try:
            data = os.read(self.error, READ)
        except BlockingIOError:
            return []
        if not data:
            last, self._error_line = self._error_line, b""
            self._files.pop().close()
            self.error = -1
            return [last.decode("utf-8", "replace")] if last else None
        self._error_tail = (self._error_tail + data)[-_TAIL:]
        *lines, rest = (self._error_line + data).split(b"\n")
        if len(rest) > READ:
            lines.append(rest)
            rest = b""
        self._error_line = rest
        return [line.decode("utf-8", "replace") for line in lines]

    @property
    def error_tail(self) -> str:
        """The last text that it wrote to stderr."""
        return self._error_tail.decode("utf-8", "replace").strip()

    # ---- its end ----

    def kill(self) -> None:
        """Send SIGKILL to the child, and to the processes that it started unless it shares this process's group."""
        if self._inside:
            self.process.kill()
        elif self.process.poll() is None:  # until it is reaped, no other process can have its number
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close our ends of its pipes."""
        self.input = self.output = self.error = -1
        for file in self._files:
            file.close()


def _ends_with_parent() -> Callable[[], object] | None:
    """Return a function that the program calls first, so that it ends with a killed task; None if impossible."""
    try:
        from ctypes import CDLL

        prctl = CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # no Linux: the program runs until it reads again
        return None
    parent = os.getpid()

    def tied() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent was killed before that
            os._exit(1)

    return tied


def how_it_ended(status: int) -> str:
    """Return in words how a process with this exit status ended."""
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def module_command(module: str) -> list[str]:
    """Return the command that runs a module as ``python -m`` does, without the current folder on the path.

    Python looks there first: a file named ``json.py`` in a folder that others may write to, or in a downloaded project,
    would run as the user.

    Args:
        module: The module's name.
    """
    if sys.version_info >= (3, 11):
        return [sys.executable, "-P", "-m", module]
    run = f"import sys; del sys.path[0]; from runpy import run_module; run_module({module!r}, None, '__main__', True)"
    return [sys.executable, "-c", run]


def environment(programs: bool = False) -> dict[str, str]:
    """Return a child's environment: this process's own, with a path on which it finds the same modules.

    Args:
        programs: Whether the child is a program, which may import the libraries that ``multilang.compat`` replaces.
    """
    python = sysconfig.get_paths()
    usual = {python["purelib"], python["platlib"], *site.getsitepackages(), site.getusersitepackages()}
    own = [
        path
        for path in (each or os.getcwd() for each in sys.path)
        if os.path.isabs(path) and os.path.isdir(path) and path not in usual and not path.startswith(python["stdlib"])
    ]
    last = last_folders()  # not on PYTHONPATH, which Python searches before what is installed
    own = [path for path in own if path not in last]
    known = os.environ.get("PYTHONPATH", "")
    own += [path for path in known.split(os.pathsep) if path and path not in own]
    made = {**os.environ, FOLDERS: os.pathsep.join(last)}
    if programs:
        own.append(_STAND_INS)
        if sys.prefix != sys.base_prefix:  # a program's python is this one, as if the environment was activated
            made["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    if own:
        made["PYTHONPATH"] = os.pathsep.join(own)
    return made
