"""The started program's surroundings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected

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
