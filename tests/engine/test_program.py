"""Programs whose owner waits for them: the reports of their deaths, and the release of their resources."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from multilang.engine.program import ProgramDiedError, WaitingProgram
from multilang.engine.task import START_ATTEMPTS, Restarts
from multilang.errors import TaskStartError
from multilang.protocol import Log

SHAKES = """
import sys
def say(text): print(text + "\\nend", flush=True)
while (line := sys.stdin.readline()) != "end\\n":
    if not line: sys.exit()  # its owner has ended
say('{"pid": 1}')
"""


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = len(os.listdir("/proc/self/fd"))
    yield
    assert not list(tmp_path.glob("multilang-pids-*"))
    assert len(os.listdir("/proc/self/fd")) == files


def started(code, heard, limit_secs=30.0, **others):
    program = WaitingProgram(
        "bolt",
        {},
        {},
        command=[sys.executable, "-c", SHAKES + code],
        env=os.environ,
        folder=None,
        limit_secs=limit_secs,
        handle=heard.append,
        on_stderr=heard.append,
        **others,
    )
    program.run_until(lambda: program.ready)
    return program


@pytest.mark.parametrize("inside", [False, True])
def test_a_program_that_is_ended_has_some_time_and_says_no_more(inside, tmp_path):
    program = started(f"sys.stdin.read()\nopen({str(tmp_path / 'end')!r}, 'w')\nsay('no JSON')", [], inside=inside)
    program.end(30)
    assert (tmp_path / "end").exists()
    program.end()
    with pytest.raises(ProgramDiedError, match="exited with status 0"):
        program.run_until(lambda: True)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit('no such row')", "the process exited with status 1; the end of its stderr:\nno such row"),
        ("print('hello\\nend', flush=True)", "a message is not JSON .*: 'hello'"),
        ("print('{', flush=True)", "the stream ended inside a message"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the process was ended by SIGKILL"),
        ("import os, time; os.close(1); time.sleep(60)", "it closed its pipes .the process was ended by SIGKILL"),
    ],
)
def test_a_death_has_its_reason_and_what_was_said_before_counts(code, reason):
    heard = []
    with pytest.raises(ProgramDiedError, match=f"the program .* died: {reason}") as caught:
        started(f'say(\'{{"command": "log", "msg": "last words"}}\')\n{code}', heard).run_until(lambda: False)
    assert [message.message for message in heard if isinstance(message, Log)] == ["last words"]
    assert caught.value.killed == (reason == "the process was ended by SIGKILL")


def test_silence_is_a_timeout_and_so_is_the_want_of_what_is_due_however_much_is_said():
    chatters = 'import time\nwhile True: say(\'{"command": "log", "msg": ""}\'); time.sleep(0.05)'
    with pytest.raises(ProgramDiedError, match=r"heartbeat timeout: it did not answer any heartbeat for \d s"):
        started("sys.stdin.read()", [], 2.0).run_until(lambda: False)
    program = started(chatters, [], 2.0)
    end = time.monotonic() + 2.5
    program.run_until(lambda: time.monotonic() > end)
    with pytest.raises(ProgramDiedError, match=r"it did not sing for \d s"):
        program.run_until(lambda: False, "sing")


def test_one_that_can_not_be_started_is_named():
    with pytest.raises(
        TaskStartError, match=r"the command \['no-such-program'\] can't be started in .*: .*no-such-program"
    ):
        WaitingProgram(
            "bolt",
            {},
            {},
            command=["no-such-program"],
            env={},
            folder=str(Path.cwd()),
            limit_secs=1,
            handle=print,
            on_stderr=print,
        )


def test_a_task_is_given_up_that_never_comes_to_anything():
    starts, works, answers = Restarts(), Restarts(), Restarts()
    delays = [starts.delay_after(0.1, worked=False) for _ in range(START_ATTEMPTS)]
    assert delays == [0.1, 0.2, 0.4, 0.8, None]
    assert [works.delay_after(0.1, worked=True) for _ in range(9)] == [0.0] * 9
    assert [answers.delay_after(0.1, worked=False, answered=True) for _ in range(9)][-1] == 1.0
    assert [starts.delay_after(60.0, worked=False), starts.delay_after(0.1, worked=False, killed=True)] == [0.0, 0.1]
    assert starts.delay_after(0.1, worked=False, hopeless=True) is None
