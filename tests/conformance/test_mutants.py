"""A correct component passes; with one fault it fails the case that is meant for that fault."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from tests.conformance.mutants import MUTANTS, Bolt, Spout

MUTANT = Path(__file__).parent / "mutant.py"
# Where the fault is silence, only the limit of time tells; a correct component is given much more of it.
LIMIT = 5.0


@pytest.mark.parametrize("name", MUTANTS)
def test_the_case_that_is_meant_for_a_fault_fails(name: str) -> None:
    kind, path, _ = MUTANTS[name]
    target = Target([sys.executable, str(MUTANT), name], kind, timeout=LIMIT, contract=True, knows=_knows(kind))
    result = Run(target, again=False).run(selected(all_cases(kind), (path,)))
    [case] = result.cases
    assert case.status == "failed", (case.status, case.why)


def _knows(kind: str) -> tuple[str, ...]:
    return tuple({"bolt": Bolt, "spout": Spout}[kind].knows)


def test_there_are_mutants_of_each_section() -> None:
    sections = {path.rpartition("/")[0] for _, path, _ in MUTANTS.values()}
    sections |= {"bolt/ordinary", "spout/ordinary"}  # test_ordinary.py has theirs
    assert sections == {case.path.rpartition("/")[0] for case in all_cases()}
    assert len(MUTANTS) >= 40
