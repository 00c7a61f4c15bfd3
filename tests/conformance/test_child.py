"""The started program's surroundings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import monotonic

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from multilang.conformance.child import StartedProgram

# It flushes its pid, and nothing else.
HOLDS_BACK = """
import json, os, sys

def read():
    lines = []
    for line in sys.stdin:
        if line == "end\\n":
            return json.loads("".join(lines))
        lines.append(line)
    sys.exit()

setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
print(json.dumps({"pid": os.getpid()}), "end", sep="\\n", flush=True)
while True:
    read()
    print(json.dumps({"command": "sync"}), "end", sep="\\n")
"""


def test_output_that_is_not_flushed_is_found_where_python_is_told_to_flush(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    program = tmp_path / "program.py"
    program.write_text(HOLDS_BACK)
    target = Target([sys.executable, str(program)], "bolt", timeout=3, contract=False)
    result = Run(target, again=False).run(selected(all_cases("bolt"), ("common/io/9",)))
    [case] = result.cases
    assert case.status == "failed"
    assert "flush each message" in case.why


def test_a_helper_whose_environment_is_empty_ends_with_the_program() -> None:
    start = "exec env -i setsid sleep 600 </dev/null >/dev/null 2>&1"
    program = StartedProgram(["/bin/sh", "-c", f"({start} &) ; read line"])
    until = monotonic() + 60
    while len(helpers := (program.processes() or set()) - {program.pid}) != 1 or b"sleep" not in name(*helpers):
        assert monotonic() < until
        program.wait(monotonic() + 0.01)
    program.kill()
    assert not program.processes()
    assert b"sleep" not in name(*helpers)


def name(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_program_that_another_thread_has_ended_meanwhile_is_no_error() -> None:
    program = StartedProgram(["/bin/sh", "-c", "read line"])
    program.close_input()
    os.waitpid(program.pid, 0)
    program.status()
    program.kill()
    program.kill()
