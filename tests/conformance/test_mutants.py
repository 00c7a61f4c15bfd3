"""A correct component passes; with one fault it fails the case that is meant for that fault."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected

HERE = Path(__file__).parent
MUTANT = HERE / "mutant.py"
spec = importlib.util.spec_from_file_location("conformance_mutant", MUTANT)
assert spec is not None
assert spec.loader is not None
mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutants)
# Where the fault is silence, only the limit of time tells; a correct component is given much more of it.
LIMIT = 3.0


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_the_case_that_is_meant_for_a_fault_fails(name: str) -> None:
    kind, path, _ = mutants.MUTANTS[name]
    target = Target([sys.executable, str(MUTANT), name], kind, timeout=LIMIT, contract=True, knows=_knows(kind))
    result = Run(target, again=False).run(selected(all_cases(kind), (path,)))
    [case] = result.cases
    assert case.status == "failed", (case.status, case.why)


def _knows(kind: str) -> tuple[str, ...]:
    return tuple({"bolt": mutants.Bolt, "spout": mutants.Spout}[kind].knows)


def test_there_are_mutants_of_each_section() -> None:
    sections = {path.rpartition("/")[0] for _, path, _ in mutants.MUTANTS.values()}
    assert sections == {case.path.rpartition("/")[0] for case in all_cases()}
    assert len(mutants.MUTANTS) >= 40
    assert os.path.exists(MUTANT)
