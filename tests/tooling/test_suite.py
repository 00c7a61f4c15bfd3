"""A run of the tests ends soon whatever a test does, with a line that says how, and with no process left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.patience import patient
from tests.servers import wait_for

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from tests.family import Family
from tests.suite import tests

status, summary = tests(Family(), sys.argv[1:])
print(summary)
sys.exit(status)
"""


def run(folder: Path, program: str, limit_mins: float = 3.0, workers: int = 2) -> tuple[int, list[str]]:
    """Run a file of tests, each of which has a second, and return the exit status and the lines that were printed."""
    (folder / "conftest.py").write_text(GROUPING)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 1\n")
    (folder / "test_it.py").write_text("import os, pytest, subprocess, sys, time\n" + dedent(program))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "MULTILANG_"))}
    env |= {"MULTILANG_TEST_LIMIT": str(limit_mins), "MULTILANG_TEST_WORKERS": str(workers), "MULTILANG_TEST_PACE": "1"}
    command = [sys.executable, "-c", RUN, "-c", folder / "pytest.ini", f"--rootdir={folder}", folder]
    ended = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ended.returncode, ended.stdout.splitlines()


# As in our own folders, whose tests share a server.
GROUPING = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group("of one server"))
"""
FINE = """
def test_fine():
    pass
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_what_passes_alone_is_named_as_flaky_with_its_first_failure(tmp_path: Path, workers: int) -> None:
    program = """
    @pytest.mark.parametrize("id", ["a@b::c"])
    def test_flaky(id):
        open("ran", "a").write("x")
        assert len(open("ran").read()) == 2
    """
    status, lines = run(tmp_path, FINE + dedent(program).replace('"ran"', repr(str(tmp_path / "ran"))), workers=workers)
    assert status == 0, lines
    assert "flaky: test_it.py::test_flaky[a@b::c] (first failure: AssertionError: assert 1 == 2)" in "\n".join(lines)
    assert lines[-1] == "2 passed, 1 rerun"
    assert re.fullmatch(r"=+ 2 passed, 1 rerun in \S+s \(0:\d\d\) =+", lines[-2])


def test_what_fails_twice_is_shown_twice_and_the_run_is_red(tmp_path: Path) -> None:
    program = """
    @pytest.fixture
    def broken():
        yield
        raise ValueError("at its end")

    def test_broken():
        assert os.getpid() < 0

    def test_with_a_broken_fixture(broken):
        pass
    """
    status, lines = run(tmp_path, FINE + dedent(program))
    assert status == 1
    assert sum("E       assert" in line for line in lines) == 2
    assert sum("ValueError: at its end" in line for line in lines if line.startswith("E ")) == 2
    assert any(line.startswith("failed: test_it.py::test_broken (") for line in lines)
    assert lines[-1] == "1 failed, 1 error, 1 passed"


HOLDING = """
import ctypes

def test_that_holds_the_lock_of_the_interpreter():
    mutex = ctypes.create_string_buffer(256)
    while True:
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)  # at the second time it waits for itself
"""
HANGING_AT_ITS_END = """
@pytest.fixture(scope="session")
def server():
    yield
    time.sleep(1000)

def test_with_a_server(server):
    pass
"""
ENDLESS = """
@pytest.fixture(scope="session")
def server():
    yield
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass

def test_with_a_server(server):
    pass
"""


@pytest.mark.parametrize(
    ("program", "place"),
    [
        pytest.param(HOLDING, "in test_that_holds_the_lock_of_the_interpreter", id="in C code"),
        pytest.param(HANGING_AT_ITS_END, "test_it.py:6: Failed", id="in a fixture's end"),
        pytest.param(ENDLESS, "in server", id="in a fixture's end that catches everything"),
    ],
)
def test_a_test_that_hangs_is_ended_and_the_others_run_on_and_the_run_is_red(
    tmp_path: Path, program: str, place: str
) -> None:
    status, lines = run(tmp_path, program + FINE.replace("():", "(n):").replace("def", FEW + "def"))
    assert status == 1
    assert any(line.startswith("failed: test_it.py::") for line in lines), lines
    assert any("test_it.py" in line and place in line for line in lines), lines
    assert re.fullmatch("1 (failed|error), 20 passed", lines[-1])


FEW = "@pytest.mark.parametrize('n', range(20))\n"


def test_a_run_that_does_not_end_says_where_it_is_and_leaves_no_process(tmp_path: Path) -> None:
    program = """
    @pytest.mark.timeout(0)
    def test_without_an_end():
        started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1234)"], start_new_session=True)
        open("pid", "w").write(str(started.pid))
        started.wait()
    """
    pid = tmp_path / "pid"
    status, lines = run(tmp_path, FINE + dedent(program).replace('"pid"', repr(str(pid))), limit_mins=patient(20) / 60)
    assert status == 1
    assert any(
        line.startswith("failed: test_it.py::test_without_an_end (it was under way when the run was") for line in lines
    )
    assert any("test_it.py" in line and "in test_without_an_end" in line for line in lines), lines
    assert any("time.sleep(1234)" in line for line in lines if line.startswith("    ")), lines
    assert lines[-1].startswith("1 failed, 1 passed; the run was ended after 0:")
    wait_for(lambda: not Path(f"/proc/{pid.read_text()}").exists(), "the end of what the test started")


def test_what_a_test_leaves_behind_is_named_and_ended(tmp_path: Path) -> None:
    program = """
    def test_forgetful():
        program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(4321)'])"
        subprocess.run([sys.executable, "-c", program], start_new_session=True, check=True)
    """
    status, lines = run(tmp_path, dedent(program))
    assert status == 0
    assert any(line.startswith("left behind, and ended: ") and "time.sleep(4321)" in line for line in lines), lines
