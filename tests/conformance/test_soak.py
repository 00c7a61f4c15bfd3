"""Random conversations: a correct program has them all, a broken one fails, and seed and number play that again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.conformance import Target
from multilang.conformance.random_values import pieces, spelled, value
from multilang.conformance.result import Result
from multilang.conformance.soak import Plan, RandomRun
from tests.soak import SOAK

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "conformance"
LIMIT = 60.0  # seconds for an answer: the machine may be busy with other things


def result_of(plan: Plan, kind: str, *program: object, contract: bool = True) -> Result:
    target = Target([sys.executable, *map(str, program)], kind, timeout=LIMIT, contract=contract)
    return RandomRun(target, plan).run()


def failed(result: Result) -> list[str]:
    return [f"{case.path}: {case.why}" for case in result.cases if case.status == "failed"]


@pytest.mark.parametrize("what", ["soak", "fuzz"])
@pytest.mark.parametrize("kind", ["bolt", "spout"])
@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_a_correct_component_passes(kind: str, what: str, seed: int) -> None:
    number = None if SOAK else 1
    plan = Plan(what, seed, seconds=10, messages=400 if SOAK else 80, number=number)
    result = result_of(plan, kind, EXAMPLES / "plain.py", kind)
    assert failed(result) == []
    assert result.cases


@pytest.mark.parametrize(("kind", "name"), [("bolt", "SplitBolt"), ("bolt", "BatchBolt"), ("spout", "CountSpout")])
def test_a_correct_ordinary_program_passes(kind: str, name: str) -> None:
    plan = Plan("soak", 3, seconds=10, number=0)
    assert failed(result_of(plan, kind, HERE / "ordinary" / "programs.py", name, contract=False)) == []


@pytest.mark.parametrize(
    ("name", "what", "number", "message"),
    [
        ("AcksTwiceLateBolt", "soak", 1, "which had its "),
        ("WritesAstralLettersWrongBolt", "fuzz", None, "what was emitted is not what was asked for"),
        ("ForgetsAnIdSpout", "soak", 0, "what was emitted is not what was asked for"),
    ],
)
def test_a_fault_is_found_and_its_seed_and_number_play_it_again(
    name: str, what: str, number: int | None, message: str
) -> None:
    kind = "spout" if name.endswith("Spout") else "bolt"
    plan = Plan(what, 11, seconds=LIMIT, messages=400, number=number)
    found = next(case for case in result_of(plan, kind, HERE / "soaked.py", name).cases if case.status == "failed")
    assert message in found.why
    assert found.transcript
    number = int(found.path.partition("/")[2])
    assert found.why.endswith(f"--seed 11 --number {number}")
    again = result_of(Plan(what, 11, seconds=1, messages=1, number=number), kind, HERE / "soaked.py", name)
    assert [case.path for case in again.cases] == [found.path]
    assert message in again.cases[0].why


@given(seed=st.integers())
def test_every_spelling_of_a_value_is_that_value(seed: int) -> None:
    expected = value(Random(seed))
    text = spelled(Random(seed), expected)
    assert json.loads(text) == expected
    assert "\nend\n" not in text


@given(seed=st.integers(), data=st.binary(max_size=200))
def test_cut_bytes_are_the_same_bytes(seed: int, data: bytes) -> None:
    cut = pieces(Random(seed), 1.0)
    assert cut is not None
    assert b"".join(cut(data)) == data
    assert list(cut(data)) == list(cut(data))
