"""``multilang_conformance("python3 mybolt.py")``: each case a test of pytest's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from multilang.testing import multilang_conformance
from tests.soak import soak_only

ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "examples" / "conformance" / "plain.py"
MUTANT = Path(__file__).parent / "mutant.py"
LIMIT = 300

test_the_plain_bolt = multilang_conformance(
    [sys.executable, str(PLAIN), "bolt"], "bolt", cases=["bolt/ack", "common/framing/1", "common/log/1"], timeout=60
)


def session(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_mine.py").write_text(f"from multilang.testing import multilang_conformance\n{text}", "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments, "test_mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def test_a_fault_fails_its_test_with_requirement_and_both_sides(tmp_path: Path) -> None:
    command = f"{sys.executable} {MUTANT} AcksFailures"
    ran = session(tmp_path, f'test_bolt = multilang_conformance("{command}", cases="bolt/fail", timeout=60)\n')
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "FAILED test_mine.py::test_bolt[bolt/fail/1]" in ran.stdout
    assert "An ack" not in ran.stdout
    assert "expected: " in ran.stdout
    assert "test_bolt[bolt/fail/4]" not in ran.stdout


@pytest.mark.parametrize(("strict", "word"), [(False, "1 xfailed"), (True, "1 failed")])
def test_a_should_fails_only_when_it_is_strict(tmp_path: Path, strict: bool, word: str) -> None:
    command = f"{sys.executable} {MUTANT} PlainTask"
    text = f'test_b = multilang_conformance("{command}", "bolt", cases="bolt/direct/9", strict={strict}, timeout=60)\n'
    assert word in session(tmp_path, text).stdout


def test_what_needs_the_contract_is_skipped_for_others(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from multilang import BasicBolt\n"
        "class Mine(BasicBolt):\n"
        "    output_fields = ['word']\n"
        "    def process(self, tup):\n"
        "        for word in tup[0].split(): self.emit([word])\n"
        "Mine().run()\n"
    )
    text = (
        f'test_mine = multilang_conformance("{sys.executable} mine.py", output={{"default": ["word"]}}, timeout=60, '
        'cases=["bolt/heartbeat", "bolt/emit", "common/end"])\n'
    )
    ran = session(tmp_path, text, "-rs")
    assert ran.returncode == 0, ran.stdout
    assert "needs a program that keeps the conformance contract" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'no-such-program x'", "no-such-program: No such file or directory"),
        pytest.param(
            "'no-such-program x', 'bolt', cases='bolt/ack'",
            "the program can't be started: no-such-program",
            marks=soak_only,
        ),
        pytest.param("'true'", "it is unknown whether the program is a bolt or a spout", marks=soak_only),
        ("'true', 'bolt', cases='spout/sync'", "no case 'spout/sync' for a bolt"),
    ],
)
def test_wrong_uses_are_reported_without_a_traceback(tmp_path: Path, arguments: str, message: str) -> None:
    ran = session(tmp_path, f"test_it = multilang_conformance({arguments})\n")
    assert ran.returncode != 0
    assert message in " ".join(ran.stdout.split())
    assert "another exception" not in ran.stdout
    assert "Error:" not in ran.stdout


def test_the_plugin_of_all_projects_does_not_load_the_cases() -> None:
    code = "import sys, multilang.testing.plugin as p; print([m for m in sys.modules if 'conformance.c' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT)
    assert ran.stdout.strip() == "[]"
