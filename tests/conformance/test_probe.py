"""The probe decides whether a program keeps the contract, or the report names that it could not, and what was left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from multilang.conformance.probe import contract_of
from multilang.conformance.target import Programs
from tests.cli.command import multilang
from tests.patience import patient

HERE = Path(__file__).parent
LEGAL = HERE / "legal.py"
ORDINARY = HERE / "ordinary" / "programs.py"
PLAIN = HERE.parents[1] / "examples" / "conformance" / "plain.py"


def conformance(*arguments: object) -> subprocess.CompletedProcess[str]:
    return multilang("conformance", *arguments, limit=patient(240))


@pytest.mark.parametrize("name", ["AnswersBehindTheAckBolt", "AnswersLateBolt"])
def test_an_answer_behind_the_ack_or_long_behind_a_heartbeat_counts(name: str) -> None:
    notes: list[str] = []
    with Programs(Target([sys.executable, str(LEGAL), name], "bolt", timeout=60.0)) as programs:
        assert "keep" in (contract_of(programs, notes=notes) or ())
    assert notes == []


def test_a_program_whose_numbers_are_texts_keeps_the_contract_and_is_judged() -> None:
    program = [sys.executable, str(HERE / "legal.py"), "NumbersAreTextsBolt"]
    result = Run(Target(program, "bolt", timeout=60.0)).run(selected(all_cases("bolt"), ("common/numbers/1",)))
    assert [case.status for case in result.cases] == ["failed"]


def test_an_answer_in_a_notation_of_its_own_is_one_and_fails_the_framing() -> None:
    program = [sys.executable, str(HERE / "faulty" / "component.py"), "contract-bolt", "python_literals"]
    cases = selected(all_cases("bolt"), ("common/framing", "common/json/1"))
    result = Run(Target(program, "bolt", timeout=60.0)).run(cases)
    assert {case.path.rpartition("/")[0] for case in result.cases if case.status == "failed"} == {"common/framing"}


def test_what_could_not_be_found_out_is_reported() -> None:
    target = Target([sys.executable, str(ORDINARY), "HangsOnItsTuple"], "bolt", timeout=2.0)
    result = Run(target).run(selected(all_cases("bolt"), ("bolt/heartbeat/1",)))
    [note] = result.notes
    assert "it could not be found out whether the program keeps the conformance contract" in note


def test_the_closing_line_says_what_was_skipped_and_why_and_require_makes_it_a_failure() -> None:
    some = ("--case", "bolt/ordinary", "--case", "bolt/fail/1", "--exclude", "bolt/ordinary/6", "--timeout", "60")
    program = ["--", sys.executable, ORDINARY, "SplitBolt"]
    ran = conformance("bolt", "--no-contract", *some, *program)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "16 passed, 0 failed, 0 warnings, 0 blocked, 1 skipped" in ran.stdout
    assert "1 skipped: needs a program that keeps the conformance contract" in " ".join(ran.stdout.split())
    for required in ("all", "17"):
        ran = conformance("bolt", "--no-contract", "--require", required, *some, *program)
        assert ran.returncode == 1, ran.stdout + ran.stderr
        assert "16 of the 17 cases that are required have a verdict" in ran.stdout
    ran = conformance("bolt", "--require", "all", *some, "--", sys.executable, PLAIN, "bolt")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_number_of_required_cases_is_one() -> None:
    ran = conformance("bolt", "--require", "most", "--", "true")
    assert ran.returncode == 2
    assert "'most' is neither a number of cases nor all" in ran.stderr
