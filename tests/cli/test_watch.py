"""``multilang run --watch``: saved files are run, errors are shown and wait, state survives, nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from tests.cli.command import COMMAND, LIMIT, multilang

COUNT = """
from multilang import ReliableSpout, StatefulBasicBolt, TopologyBuilder
import words

class Ticks(ReliableSpout):
    output_fields = ["n"]

    def next_tuple(self):
        self.emit(["x"])

class Count(StatefulBasicBolt):
    output_fields = ["n"]

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        n = self.state.get("n", 0) + 1
        self.state.put("n", n)
        self.log(f"{words.WORD} {n}")

builder = TopologyBuilder()
builder.set_spout("ticks", Ticks)
builder.set_bolt("count", Count).shuffle_grouping("ticks")
topology = builder.build("watched", conf={"topology.max.spout.pending": 5, "topology.state.checkpoint.interval.ms": 100})
"""


class Watching:
    """A started ``multilang run --watch`` and the lines that it prints."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "run", "--watch", *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "MULTILANG_STATE_HOME": str(folder / "state")},
        )
        self._lines: Queue[str] = Queue()
        self.lines: list[str] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self._lines.put(line)

    def end(self) -> None:
        """End it, and read its output until then."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(LIMIT)
        assert not self._reader.is_alive(), "one of its processes is left, and holds its output open"

    def until(self, pattern: str) -> re.Match[str]:
        """Return the first match in a line that was not looked at yet."""
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            except Empty:
                pytest.fail(f"{pattern!r} did not come; it printed:\n{''.join(self.lines[-40:])}")
            self.lines.append(line)
            found = re.search(pattern, line)
            if found is not None:
                return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "multilang.toml").write_text('topology = "top.py"\n')
    (tmp_path / "top.py").write_text(COUNT)
    (tmp_path / "words.py").write_text('WORD = "first"\n')
    return tmp_path


@pytest.fixture
def watching(folder: Path):
    started: list[Watching] = []

    def start(*options: str) -> Watching:
        started.append(Watching(folder, *options))
        return started[-1]

    yield start
    for each in started:
        each.end()


def children(pid: int) -> list[int]:
    """The processes below one."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found += [int(each.name), *children(int(each.name))]
    return found


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_saved_file_restarts_with_its_state(folder: Path, watching, mode: str) -> None:
    watch = watching("-v", "--mode", mode)
    watch.until(r"first 30$")
    (folder / "words.py").write_text('WORD = "second"\n')
    watch.until(r"words\.py saved: restarting")
    # What was committed a checkpoint before the end is there again; a first count would be 1.
    assert int(watch.until(r"second (\d+)$")[1]) > 10
    watch.process.send_signal(signal.SIGINT)
    assert watch.process.wait(LIMIT) == 130


def test_an_error_is_shown_and_the_next_save_runs(folder: Path, watching) -> None:
    watch = watching("-v", "--mode", "inprocess")
    watch.until("first 1$")
    (folder / "words.py").write_text("WORD = = 3\n")
    watch.until("invalid syntax")
    watch.until("ended with status 2; it runs again when a file is saved")
    (folder / "words.py").write_text('WORD = "mended"\n')
    watch.until("mended")
    (folder / "multilang.toml").write_text("topolgy = 3\n")
    watch.until("did you mean 'topology'")
    (folder / "multilang.toml").write_text('topology = "top.py"\n')
    watch.until("mended")
    (folder / "words.py").write_text("raise SystemExit(3)\n")
    watch.until("ended the program")
    (folder / "words.py").write_text('WORD = "again"\n')
    watch.until("again")


def test_a_file_that_is_not_the_topologys_changes_nothing(folder: Path, watching) -> None:
    watch = watching("-v", "--mode", "inprocess")
    watch.until("first 1$")
    for name in ("README.md", "other.py", "test_words.py"):
        (folder / name).write_text("x = 1\n")
    (folder / "words.py").write_text('WORD = "second"\n')
    assert "words.py saved" in watch.until("saved: restarting")[0] + watch.lines[-1]
    assert not any(name in line for line in watch.lines for name in ("README", "other.py", "test_words"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind_however_it_ends(watching, number: int) -> None:
    watch = watching("-v")
    watch.until("first 1$")
    below = children(watch.process.pid)
    assert len(below) >= 4  # the launcher, the run, and a process for each task
    watch.process.send_signal(number)
    assert watch.process.wait(LIMIT) in (130, 143, -9)
    deadline = time.monotonic() + LIMIT
    while left := [pid for pid in below if Path(f"/proc/{pid}/exe").exists() and _runs(pid)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run_that_is_done_waits_for_the_next_save(folder: Path, watching) -> None:
    (folder / "top.py").write_text(
        "from multilang import TopologyBuilder\nfrom multilang.testing import FixedTupleSpout\nimport words\n"
        "builder = TopologyBuilder()\nbuilder.set_spout(words.WORD, FixedTupleSpout(['n'], [[1], [2]]))\n"
        "topology = builder.build('short')\n"
    )
    watch = watching("--mode", "inprocess")
    watch.until("^first +spout +1 +2")
    watch.until("it ended; it runs again when a file is saved")
    (folder / "words.py").write_text('WORD = "second"\n')
    watch.until("^second +spout +1 +2")


def test_it_has_no_end_for_json(folder: Path) -> None:
    shown = multilang("run", "--watch", "--json", cwd=folder)
    assert shown.returncode == 2
    assert "--watch has no end" in shown.stderr
