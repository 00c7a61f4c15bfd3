"""Whatever a program does, the run ends, reports what is wrong, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multilang.conformance import CannotStart, Run, Target, Undecided
from multilang.conformance.errors import CaseFailed
from multilang.conformance.target import Programs
from tests.soak import SOAK, combined

PROGRAM = Path(__file__).parent / "hostile.py"
LIMIT = 2.0  # seconds: these programs never answer, and only that limit ends the wait
NAMES = [
    *("never_reads", "ignores_sigterm", "floods", "floods_with_messages", "a_hundred_megabytes_without_a_line"),
    *("floods_stderr", "closes_stdout", "closes_stdin", "exits_at_once", "kills_itself", "leaves_children"),
    "leaves_daemons",
    *("speaks_binary", "strange_shapes", "nests_deep", "takes_the_folder_away"),
]
# Every wait for those takes the whole limit, as it does for "leaves_daemons", which leaves more behind.
SLOW = ("never_reads", "ignores_sigterm", "floods_stderr", "closes_stdin", "leaves_children", "takes_the_folder_away")


def processes(mark: str) -> list[int]:
    """The running processes whose command line holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    mark.encode() in (entry / "cmdline").read_bytes()
                    and "Z" not in (entry / "stat").read_text().split()[2]
                ):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def left(mark: str) -> list[int]:
    """The survivors; a killed one that is nobody's child any more may take a moment to disappear."""
    until = time.monotonic() + 10
    while (found := processes(mark)) and time.monotonic() < until:
        time.sleep(0.02)
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("name", "kind"), combined([name for name in NAMES if SOAK or name not in SLOW], ["bolt", "spout"])
)
def test_a_run_against_it_ends_with_a_failure_and_without_a_process(name: str, kind: str) -> None:
    mark = f"{os.getpid()}-{name}-{kind}"
    start = time.monotonic()
    result = Run(Target([sys.executable, str(PROGRAM), name, mark], kind, timeout=LIMIT)).run()
    assert result.bad()
    assert time.monotonic() - start < 120
    assert all(case.status in ("failed", "blocked", "skipped", "passed") for case in result.cases)
    failed = [case.path for case in result.cases if case.status == "failed"]
    assert failed
    assert left(mark) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_that_is_broken_off_leaves_nothing(number: signal.Signals, status: int, tmp_path: Path) -> None:
    mark = f"{os.getpid()}-broken-off-{number}"
    command = [Path(sys.executable).parent / "multilang", "conformance", "bolt", "--timeout", "600", "--"]
    before = signal.signal(number, signal.SIG_DFL)  # what is ignored here, as by nohup, would be ignored there
    run = subprocess.Popen(
        [*command, sys.executable, PROGRAM, "answers_nothing_more", mark],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    signal.signal(number, before)
    until = time.monotonic() + 60
    while (
        len(processes(f"answers_nothing_more\0{mark}")) < 2 and time.monotonic() < until
    ):  # the command's own, and one it tests
        time.sleep(0.02)
    run.send_signal(number)
    assert run.wait(60) == status
    assert left(mark) == []
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_neither_bolt_nor_spout_is_said_to_be_so() -> None:
    with pytest.raises(Undecided, match="multilang conformance bolt"):
        Run(Target([sys.executable, str(PROGRAM), "closes_stdin", "x"], timeout=LIMIT)).run()


def test_a_program_that_does_not_exist_is_said_to() -> None:
    with pytest.raises(CannotStart, match="no-such-program"):
        Run(Target(["no-such-program", "x"])).run()


def test_a_program_that_reads_no_second_piece_is_not_waited_for_without_end() -> None:
    target = Target([sys.executable, str(PROGRAM), "never_reads"], "bolt")
    with (
        Programs(target) as programs,
        programs.conversation(LIMIT) as conversation,
        pytest.raises(CaseFailed) as failed,
    ):
        conversation.handshake(pieces=lambda data: [data[:1], data[1:]])
    assert failed.value.timed_out
