"""Ordinary programs, which do not keep the contract: a broken one fails the case that names its fault and no other."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from multilang.conformance.result import Result
from tests.soak import SOAK, chosen, soak_only

HERE = Path(__file__).parent / "ordinary"
PYTHON = [sys.executable, str(HERE / "programs.py")]
SHELL = ["sh", str(HERE / "bolt.sh")]
# Each case is a process. One program of each kind is asked these, the others the ordinary cases; each all in the soak.
SECTIONS = {
    "bolt": ("bolt/ordinary", "bolt/heartbeat", "bolt/ack"),
    "spout": ("spout/ordinary", "spout/commands", "spout/sync"),
}
ASKED_MORE = ("SplitBolt", "CountSpout")
# A correct program is given much time, because the machine may be busy; where the fault is silence, only this limit shows it.
LIMIT, PATIENT = 7.0, 60.0

BROKEN = {
    "DiesOnItsTuple": ("bolt", 1),
    "DiesBehindItsEmit": ("bolt", 1),
    "HangsOnItsTuple": ("bolt", 1),
    "NeverAcks": ("bolt", 2),
    "AcksEverySecond": ("bolt", 2),
    "TakesTaskIdsForATuple": ("bolt", 3),
    "StopsReadingAtTaskIds": ("bolt", 3),
    "SplitsATick": ("bolt", 4),
    "HangsOnATick": ("bolt", 4),
    "DiesOnItsTenthTuple": ("bolt", 5),
    "ReadsPartOfALongLine": ("bolt", 6),
    "KnowsAsciiAlone": ("bolt", 7),
    "ItsThreadKnowsAsciiAlone": ("bolt", 7),
    "KnowsOneTaskOfItsSource": ("bolt", 5),
    "ReadsLatin1": ("bolt", 7),
    "WaitsByRecursion": ("bolt", 8),
    "FindsTheFirstIdOfTheLine": ("bolt", 9),
    "FindsHeartbeatsInTheText": ("bolt", 10),
    "CutsTextsAt100Bytes": ("bolt", 11),
    "RefusesToSayThatItFollowsTheContract": ("bolt", 14),
    "WaitsForATask": ("bolt", 3),
    "ReadsTheFirst64KB": ("bolt", 6),
    "AnchorsItsFirstEmit": ("bolt", 15),
    "NewestFirst": ("bolt", 16),
    "OverlooksNumbers": ("bolt", 17),
    "TakesTaskIdsForACommand": ("spout", 1),
    "DiesOnAnAck": ("spout", 2),
    "SilentAfterAnAck": ("spout", 2),
    "DiesOnAFail": ("spout", 3),
    "SilentAfterAFail": ("spout", 3),
    "DiesOnASecondAck": ("spout", 4),
    "SilentWhileInactive": ("spout", 5),
    "DiesOf200UnderWay": ("spout", 6),
    "DiesOnSeveralTaskIds": ("spout", 1),
    "ForgetsWhatItSentAgain": ("spout", 7),
    "TakesAnAckForTaskIds": ("spout", 8),
    "DiesOfAnEmptyMap": ("spout", 9),
    "IgnoresASecondFail": ("spout", 10),
}
# A fault for each of the cases that shows at once, and one silence of each kind of program.
AT_ONCE = (
    *("DiesOnItsTuple", "TakesTaskIdsForATuple", "SplitsATick", "DiesOnItsTenthTuple", "ReadsPartOfALongLine"),
    *("ReadsLatin1", "TakesTaskIdsForACommand", "DiesOnAnAck", "DiesOnAFail", "DiesOnASecondAck"),
    *("DiesOf200UnderWay", "DiesOnSeveralTaskIds", "FindsTheFirstIdOfTheLine", "ForgetsWhatItSentAgain"),
    *("NeverAcks", "SilentWhileInactive", "KnowsOneTaskOfItsSource", "WaitsByRecursion"),
    *("AnchorsItsFirstEmit", "NewestFirst", "IgnoresASecondFail"),
    *("CutsTextsAt100Bytes", "DiesOfAnEmptyMap", "RefusesToSayThatItFollowsTheContract"),
)
BROKEN_NODE = {
    "DiesOnItsTuple": ("bolt", 1),
    "NeverAcks": ("bolt", 2),
    "DiesOnTaskIds": ("bolt", 3),
    "DiesOnATick": ("bolt", 4),
    "RejectsOtherLetters": ("bolt", 7),
    "DecodesEachRead": ("bolt", 7),
    "DiesOnAnAck": ("spout", 2),
    "HangsOnAFail": ("spout", 3),
}
CORRECT = [
    *(
        ("bolt", name)
        for name in ("SplitBolt", "SilentBolt", "WaitingBolt", "BatchBolt", "ThreadedBolt", "ManyEmitsBolt")
    ),
    *(("spout", name) for name in ("CountSpout", "QuietSpout", "FewSpout")),
]


def node() -> list[str]:
    program = shutil.which("node")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("there is no node here, though scripts/test installs it in CI")
        pytest.skip("there is no node on the path")
    return [program, str(HERE / "programs.js")]


def result_of(command: list[str], kind: str, limit: float, whole: bool = SOAK) -> Result:
    run = Run(Target(command, kind, timeout=limit, contract=False), again=False)
    sections = SECTIONS[kind] if command[-1] in ASKED_MORE else (f"{kind}/ordinary",)
    return run.run(None if whole else selected(all_cases(kind), sections))


def failed(result: Result) -> list[str]:
    return [case.path for case in result.cases if case.status == "failed"]


@pytest.mark.parametrize("name", chosen(BROKEN, *AT_ONCE))
def test_a_broken_program_fails_the_case_of_its_fault_alone(name: str) -> None:
    kind, number = BROKEN[name]
    assert failed(result_of([*PYTHON, name], kind, LIMIT)) == [f"{kind}/ordinary/{number}"]


@pytest.mark.parametrize("name", chosen(BROKEN_NODE, "DecodesEachRead"))
def test_a_broken_program_of_node_does(name: str) -> None:
    kind, number = BROKEN_NODE[name]
    assert failed(result_of([*node(), name], kind, LIMIT)) == [f"{kind}/ordinary/{number}"]


@soak_only  # what fails in it is in other languages too; that sh is driven at all, the correct one shows
def test_a_broken_program_of_sh_does() -> None:
    assert failed(result_of([*SHELL, "broken"], "bolt", PATIENT, whole=False)) == ["bolt/ordinary/4"]


def test_faults_of_the_conversation_have_their_own_cases() -> None:
    assert failed(result_of([*PYTHON, "SyncsToTaskIds"], "spout", LIMIT)) == ["spout/ordinary/1"]
    for name, path in (
        ("SilentWhenItHasNothing", "spout/commands/5"),
        ("SilentAfterFourTuples", "spout/commands/5"),
        ("EmitsNothingWhenIdle", "spout/emit/12"),
        ("HasListsForIds", "spout/emit/15"),
        ("SameIdTwice", "spout/emit/20"),
    ):
        cases = selected(all_cases("spout"), ("spout/ordinary", path))
        run = Run(Target([*PYTHON, name], "spout", timeout=LIMIT, contract=False), again=False)
        assert failed(run.run(cases)) == [path]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("LeavesAHelperAtARefusal", "common/end/12"),
        ("FailsAndAcksARefusal", "bolt/ack/6"),
        ("TakesAnIdOfAValue", "bolt/anchors/9"),
    ],
)
def test_faults_that_show_with_values_that_a_program_refuses(name: str, path: str) -> None:
    cases = selected(all_cases("bolt"), (path, "common/end/12"))
    run = Run(Target([*PYTHON, name], "bolt", timeout=LIMIT, contract=False), again=False)
    assert failed(run.run(cases)) == [path]


@pytest.mark.parametrize(("kind", "name"), CORRECT)
def test_a_correct_program_passes(kind: str, name: str) -> None:
    assert failed(result_of([*PYTHON, name], kind, PATIENT)) == []


def test_a_correct_program_may_refuse_values() -> None:
    for name in ("SplitBolt", "ThreadedBolt"):
        run = Run(Target([*PYTHON, name], "bolt", timeout=PATIENT, contract=False), again=False)
        assert failed(run.run(selected(all_cases("bolt"), ("common/end/12", "bolt/ack", "common/framing")))) == []


@pytest.mark.parametrize(("kind", "name"), [("bolt", "UpperBolt"), ("spout", "NumberSpout")])
def test_a_correct_program_of_node_passes(kind: str, name: str) -> None:
    assert failed(result_of([*node(), name], kind, PATIENT)) == []


def test_a_correct_program_of_sh_passes() -> None:
    assert failed(result_of(SHELL, "bolt", PATIENT, whole=False)) == []  # it reads JSON as Storm spells it


@pytest.mark.parametrize(("name", "kind", "other"), [("SplitBolt", "spout", "bolt"), ("CountSpout", "bolt", "spout")])
def test_a_program_of_the_other_kind_is_reported(name: str, kind: str, other: str) -> None:
    result = result_of([*PYTHON, name], kind, PATIENT)
    assert result.bad()
    assert result.seconds < PATIENT  # no answer is waited for in vain
    assert any(f"it looks like a {other}" in note for note in result.notes), result.notes
