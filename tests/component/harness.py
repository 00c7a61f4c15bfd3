"""A component's process, and a parent that drives it over pipes as ShellBolt and ShellSpout do.

The parent has a thread that reads and one that writes, so that a test says what is to be sent and waits until
something is true of what came back. Reading can be paused and slowed down, writing too.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import termios
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from multilang.protocol import ParentConnection
from multilang.protocol.messages import Ack, Emit, Error, Fail, Log, Message, Metrics, Pid, Sync
from tests.component.forks import ForkedProcess
from tests.patience import patient
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Kind = TypeVar("Kind", bound=Message)

LIMIT = patient(60.0)  # seconds that a condition may take on a machine that is busy with other things
ROOT = Path(__file__).parents[2]
PREAMBLE = "from multilang import *\nfrom multilang.component import Middleware, Retry, Timing\nimport os, sys, time\n"
SIGN_OF_LIFE = Log("still at work", 0)  # of a spout whose code is slow, or whose machine is
TASKS = {1: "__acker", 2: "next", 3: "next", 4: "part", 5: "part", 6: "source", 7: "other"}


def context(
    *,
    outputs: Mapping[str, Sequence[str]] | None = None,
    direct: Sequence[str] = (),
    inputs: Mapping[str, Sequence[str]] | None = None,
    bolt: bool = True,
) -> dict[str, Any]:
    """The handshake's context of task 4 of component ``part``; ``direct`` streams go to task 7, the others to 2 and 3."""
    outputs = {"default": ["value"]} if outputs is None else outputs
    inputs = ({"default": ["value"]} if bolt else {}) if inputs is None else inputs
    return {
        "taskid": 4,
        "componentid": "part",
        "task->component": {str(task): name for task, name in TASKS.items()},
        "streams": list(outputs),
        "stream->outputfields": {name: list(fields) for name, fields in outputs.items()},
        "stream->target->grouping": {
            name: {"other": {"type": "DIRECT"}} if name in direct else {"next": {"type": "SHUFFLE"}} for name in outputs
        },
        "source->stream->grouping": {"source": {name: {"type": "SHUFFLE"} for name in inputs}} if inputs else {},
        "source->stream->fields": {"source": {name: list(fields) for name, fields in inputs.items()}} if inputs else {},
    }


class Stalls:
    """The times when this machine let nobody run, noted by a thread that sleeps for moments and sees when one took much
    longer.

    Nothing that a process does, or does not do, can be concluded from the time that passes in such a stall.
    """

    def __init__(self) -> None:
        self._stalls: list[tuple[float, float]] = []
        self._started = False

    def watch(self) -> None:
        """Begin, once."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._run, daemon=True).start()

    def between(self, begin: float, end: float) -> float:
        """Seconds of stalls from ``begin`` to ``end``."""
        return sum(max(0.0, min(b, end) - max(a, begin)) for a, b in list(self._stalls))

    def _run(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(0.05)
            now = time.monotonic()
            if now - last > 0.3:
                self._stalls.append((last, now))
            last = now


STALLS = Stalls()


class Child:
    """The process and its parent. ``messages``: everything it said, in order; ``heard``: when (monotonic seconds)."""

    def __init__(
        self,
        command: list[str],
        folder: Path,
        *,
        spout: bool = False,
        env: Mapping[str, str] | None = None,
        answer: Callable[[Emit], list[int] | None] | None = lambda _: [2],
        measured: bool = True,
        forked: bool = False,
    ) -> None:
        self.folder = folder
        self.parent = ParentConnection("spout" if spout else "bolt")
        self.messages: list[Message] = []
        self.heard: list[float] = []
        self.broken: Exception | None = None  # what the parent found wrong
        self.stderr = b""
        self.reading = threading.Event()
        self.reading.set()
        self.read_size = 65536  # bytes at a time
        self.write_size = 1 << 20
        self.pause = 0.0  # seconds between two reads, for a slow parent
        self.answer = answer  # the task ids for an emit that wants some; None: the test sends them
        self._serial = 0
        STALLS.watch()
        self._changed = threading.Condition()
        self._to_write = b""
        self._closing = False
        self._at_end = False
        # A parent's own interpreter settings must not decide how the child behaves; a test that wants some says so.
        hidden = ("PYTHON",) if measured else ("PYTHON", "COVERAGE_")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(hidden) or k == "PYTHONHASHSEED"}
        environment = {**inherited, "PYTHONPATH": str(ROOT), **(env or {})}
        self.process: subprocess.Popen[bytes] | ForkedProcess
        if forked:
            self.process = ForkedProcess(command[-1], folder, environment)
        else:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                bufsize=0,
                env=environment,
            )
        self._threads = [
            threading.Thread(target=run, daemon=True) for run in (self._read, self._write, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    # ---- what is said ----

    def set_up(self, conf: Mapping[str, Any] | None = None, ctx: dict[str, Any] | None = None) -> Child:
        """The handshake, with its pid folder."""
        (self.folder / "pids").mkdir(exist_ok=True)
        ctx = context(bolt=self.parent.kind == "bolt") if ctx is None else ctx
        self.say(lambda parent: parent.setup(dict(conf or {}), str(self.folder / "pids"), ctx))
        return self

    def say(self, what: Callable[[ParentConnection], object]) -> None:
        """Say something as the parent."""
        with self._changed:
            what(self.parent)
            self._to_write += self.parent.data_to_send()
            self._changed.notify_all()

    def raw(self, data: bytes) -> None:
        """Write bytes that the parent would not."""
        with self._changed:
            self._to_write += data
            self._changed.notify_all()

    def give(self, *values: Any, stream: str = "default", component: str | None = "source", id: str = "") -> str:
        """Send a tuple and return its id."""
        with self._changed:
            self._serial += 1
            id = id or f"t{self._serial}"
        self.say(lambda parent: parent.tuple(id, component, stream, 6, list(values)))
        return id

    def tick(self) -> str:
        with self._changed:
            self._serial += 1
            id = f"tick{self._serial}"
        self.say(lambda parent: parent.tuple(id, "__system", "__tick", -1, [1]))
        return id

    def ask(self, command: str = "next", *args: Any) -> list[Message]:
        """Send a command to a spout, wait for its sync, and return what came before that, but for signs of life."""
        start, syncs = len(self.messages), len(self.all(Sync))
        self.say(lambda parent: getattr(parent, command)(*args))
        self.until(lambda: len(self.all(Sync)) > syncs)
        return [
            message for message in self.messages[start:] if not isinstance(message, Sync) and message != SIGN_OF_LIFE
        ]

    def beat(self) -> None:
        """Ask a bolt for a sign of life, and wait until it has taken the question and given one.

        A bolt that starts slowly gives signs of life unasked; it takes no question before it has started.
        """
        start = len(self.messages)
        self.say(lambda parent: parent.heartbeat("beat"))
        self.until(lambda: not self._to_write and not self._untaken())
        self.until(lambda: any(isinstance(message, Sync) for message in self.messages[start:]))

    def close_input(self) -> None:
        """End of input, after everything said was written."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def written(self) -> None:
        """Wait until the child has taken (or its pipe holds) everything that was said."""
        self.until(lambda: not self._to_write)

    def _untaken(self) -> int:
        """Return the number of bytes in the pipe that the child has not read."""
        assert self.process.stdin is not None
        number = bytearray(4)
        fcntl.ioctl(self.process.stdin, termios.FIONREAD, number)
        return int.from_bytes(number, sys.byteorder)

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    # ---- what comes back ----

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in list(self.messages) if isinstance(message, kind)]

    @property
    def emitted(self) -> list[list[Any]]:
        return [emit.values for emit in self.all(Emit)]

    @property
    def acked(self) -> list[str]:
        return [ack.id for ack in self.all(Ack)]

    @property
    def failed(self) -> list[str]:
        return [fail.id for fail in self.all(Fail)]

    @property
    def errors(self) -> list[str]:
        return [error.message for error in self.all(Error)]

    @property
    def metrics(self) -> list[tuple[str, Any]]:
        return [(metric.name, metric.params) for metric in self.all(Metrics)]

    def logged(self, level: int | None = None) -> list[str]:
        return [log.message for log in self.all(Log) if log != SIGN_OF_LIFE and (level is None or log.level == level)]

    @property
    def log_text(self) -> str:
        return "\n".join(self.logged())

    def longest_silence(self, since: float) -> float:
        """Seconds between two messages at the most, from ``since`` until the last one, while the machine was not stalled."""
        times = [since, *(t for t in self.heard if t > since)]
        return max((b - a - STALLS.between(a, b) for a, b in itertools.pairwise(times)), default=0.0)

    def until(self, true: Callable[[], object], limit: float = LIMIT) -> None:
        """Wait until ``true()``. Fails when the child ends before, or what it says breaks the protocol."""
        deadline = time.monotonic() + limit
        with self._changed:
            while not true():
                left = deadline - time.monotonic()
                ended = self._at_end and self.process.poll() is not None
                if left <= 0 or ended or self.broken is not None:
                    if true():
                        return
                    why = self.broken or (f"it ended with {self.process.returncode}" if ended else f"not in {limit} s")
                    raise AssertionError(f"waited in vain: {why}\n{self.transcript()}")
                self._changed.wait(min(left, 0.2))

    def started(self) -> Child:
        """Wait for the pid, and for a bolt until it listens."""
        self.until(lambda: self.all(Pid))
        if self.parent.kind == "bolt":
            self.beat()
        return self

    def ended(self, status: int | None = None, limit: float = LIMIT) -> int:
        """Wait for the end of the process, and of its output, and return its status, which must be ``status``."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end in {limit} s\n{self.transcript()}") from None
        self.reading.set()
        self._threads[0].join(LIMIT)
        self._threads[2].join(5)  # a grandchild may hold the pipe
        if status is not None:
            assert self.process.returncode == status, self.transcript()
        assert self.broken is None, f"{self.broken!r}\n{self.transcript()}"
        return self.process.returncode

    def transcript(self) -> str:
        """Return what was said, for a failure's report."""
        said = "\n".join(repr(message)[:300] for message in self.messages[-20:])
        return (
            f"--- it said ({len(self.messages)} messages):\n{said}\n--- stderr:\n{self.stderr.decode(errors='replace')}"
        )

    def kill(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait()
        self.reading.set()
        self.close_input()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self.process.stdout, self.process.stderr, self.process.stdin):
            assert pipe is not None
            pipe.close()

    def close_output(self) -> None:
        """Stop reading for good: close the reading end of its output."""
        assert self.process.stdout is not None
        self.reading.clear()
        self.process.stdout.close()

    # ---- the threads ----

    def _read(self) -> None:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        os.set_blocking(fd, False)
        while True:
            self.reading.wait()
            try:
                data = os.read(fd, self.read_size)
            except BlockingIOError:
                import select

                try:
                    select.select([fd], [], [], 0.1)
                except (OSError, ValueError):
                    return  # close_output
                continue
            except OSError:
                return
            try:
                events = self.parent.receive_data(data)
            except Exception as error:  # noqa: BLE001 - shown by whoever waits
                with self._changed:
                    self._took(list(getattr(error, "events", ())))
                    self.broken = error
                    self._at_end = True
                    self._changed.notify_all()
                return
            with self._changed:
                self._took(events)
                self._at_end = not data
                self._changed.notify_all()
            if not data:
                return
            if self.pause:
                time.sleep(self.pause)

    def _took(self, events: list[Message]) -> None:
        now = time.monotonic()
        for event in events:
            self.messages.append(event)
            self.heard.append(now)
            if isinstance(event, Emit) and event.need_task_ids and self.answer is not None:
                tasks = self.answer(event)
                if tasks is not None:
                    self.parent.task_ids(tasks)
                    self._to_write += self.parent.data_to_send()

    def _write(self) -> None:
        assert self.process.stdin is not None
        while True:
            with self._changed:
                while not self._to_write:
                    if self._closing:
                        self.process.stdin.close()
                        return
                    self._changed.wait(0.2)
                data = self._to_write[: self.write_size]
            try:
                n = os.write(self.process.stdin.fileno(), data)
            except OSError:
                return
            with self._changed:
                self._to_write = self._to_write[n:]
                self._changed.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        try:
            while data := os.read(self.process.stderr.fileno(), 65536):
                self.stderr += data
        except OSError:
            pass


class Starter:
    """Starts components whose source a test gives; ends what is left of them.

    Args:
        folder: Where their files are.
        forks: Whether components are forked from a process that has loaded this library, where nothing of the test is about
            the start of Python; never in the soak, nor where processes are measured.
    """

    def __init__(self, folder: Path, forks: bool = False) -> None:
        self.folder = folder
        measured = any(name.startswith("COVERAGE_PROCESS") for name in os.environ)
        self.forks = forks and sys.platform == "linux" and not SOAK and not measured
        self.measured = True
        self._children: list[Child] = []

    def write(self, source: str, name: str = "") -> Path:
        """A module of ``source``, with the usual imports above it."""
        path = self.folder / (name or f"part{len(list(self.folder.glob('part*.py')))}.py")
        path.write_text(PREAMBLE + textwrap.dedent(source))
        return path

    def raw(self, source: str, *, python: str = sys.executable, script: bool = False, **how: Any) -> Child:
        """Start the process of the component ``Part`` in ``source`` (or of a script), with no handshake yet."""
        path = self.write(source)
        command = [python, str(path)] if script else [python, "-m", "multilang.component", f"{path}:Part"]
        forked = self.forks and not script and python == sys.executable and not how.get("env")
        return self.command(command, forked=forked, **how)

    def command(self, command: list[str], **how: Any) -> Child:
        """Start any command."""
        child = Child(command, self.folder, measured=self.measured, **how)
        self._children.append(child)
        return child

    def __call__(
        self,
        source: str,
        conf: Mapping[str, Any] | None = None,
        ctx: dict[str, Any] | None = None,
        **how: Any,
    ) -> Child:
        """Start the component ``Part`` of ``source`` and shake hands."""
        return self.raw(source, **how).set_up(conf, ctx)

    def clean_up(self) -> None:
        for child in self._children:
            child.kill()
