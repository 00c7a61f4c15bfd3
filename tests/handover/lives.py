"""Lives of a topology: each is one command, whose processes are stopped, woken and killed."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.command import ROOT
from tests.patience import patient
from tests.servers import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Signal = tuple[str, str, int, str]  # who, step, occurrence, the signal's name
LIMIT = patient(300)  # seconds for a life that goes well, on a busy machine


class Life:
    """A run that has begun. ``signals``: what its tasks do to themselves, ``(who, step, occurrence, signal)``, in this order.

    ``said``: what it printed, once it has ended; ``known``: the numbers of its processes, as far as they were seen.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        folder: Path,
        signals: Sequence[Signal] = (),
        env: dict[str, str] | None = None,
    ) -> None:
        folder.mkdir()
        self.folder = folder
        self.said = ""
        self._markers = [folder / f"marker-{number}" for number in range(len(signals))]
        at_steps = ["|".join([*map(str, each), str(self._markers[n])]) for n, each in enumerate(signals)]
        with open(folder / "said", "wb") as said:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=ROOT,
                env={
                    **os.environ,
                    "AT_STEPS": ";".join(at_steps),
                    "STEPS": str(folder / "steps"),
                    "TMPDIR": str(folder),
                    **(env or {}),
                },
                start_new_session=True,
            )
        self.known: set[int] = {self.process.pid}

    # ---- its end ----

    def end(self, limit: float = LIMIT) -> int:
        """Its exit status, when it has ended by itself."""
        wait_for(lambda: self.process.poll() is not None, "the topology ends", limit)
        self.said = (self.folder / "said").read_text()
        return self.process.returncode

    def ends_well(self) -> None:
        """It comes to its end, and everything was processed."""
        assert self.end() == 0, self.said

    def kill(self) -> None:
        """SIGKILL for the process that runs the topology: its tasks see the end of their input, the stopped ones later."""
        self.look()
        self.process.kill()
        self.process.wait()
        wait_for(lambda: all(state_of(pid) == "T" for pid in self._living()), "the tasks end that are not stopped")

    def clean_up(self) -> None:
        """Nothing of it is left."""
        self.look()
        for pid in self._living():
            _signal(pid, signal.SIGKILL)
        self.process.wait()

    # ---- stopped and woken ----

    def is_stopped(self) -> None:
        """Wait until a task has stopped itself; the last of the signals was its."""
        marker = self._markers[-1]
        wait_for(lambda: marker.exists() or self.process.poll() is not None, "a task is at the step", LIMIT)
        assert marker.exists(), f"it was never at that step:\n{(self.folder / 'said').read_text()}"
        pid = int(marker.read_text())
        wait_for(lambda: state_of(pid) in ("T", None), "it has stopped")
        assert state_of(pid) == "T"
        self.look()
        self.known.add(pid)

    def has_begun(self) -> None:
        """Wait until it has its tasks' processes, of which the last that is started claims what is stored."""
        wait_for(lambda: len(self.look()) > 5 or self.process.poll() is not None, "its tasks are there")

    def is_stopped_or_ended(self) -> None:
        """The same, or until the life has ended without coming there."""
        self.until(self._markers[-1].exists)
        if self._markers[-1].exists():
            self.is_stopped()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something, or for its end."""
        wait_for(lambda: condition() or self.process.poll() is not None, "it comes there, or ends", LIMIT)

    def stop(self) -> None:
        """SIGSTOP for all its processes."""
        while running := {pid for pid in self.look() if state_of(pid) != "T"}:
            for pid in running:
                _signal(pid, signal.SIGSTOP)

    def wake(self) -> None:
        """SIGCONT for all its processes."""
        for pid in self.look():
            _signal(pid, signal.SIGCONT)

    def is_gone(self) -> None:
        """Wait until none of its processes is there any more."""
        wait_for(lambda: not self._living(), "all its processes end", LIMIT)

    def look(self) -> set[int]:
        """All its processes so far that are still there."""
        found = set(_family(self.process.pid))
        self.known |= found
        return self._living()

    def _living(self) -> set[int]:
        return {pid for pid in self.known if state_of(pid) not in (None, "Z")}


def _family(root: int) -> Iterator[int]:
    """A process and all that are below it."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has ended
    below = [root]
    while below:
        pid = below.pop()
        yield pid
        below += [child for child, parent in parents.items() if parent == pid]


def state_of(pid: int) -> str | None:
    """A process's state as ps shows it; None: there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
