"""Steps that ack a tuple before they emit for it, or fail it: no answer is wrong, and no other request pays for it."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

from multilang import ShellBolt
from multilang.coordination import KeyedFairBolt
from multilang.drpc import LocalDRPC
from tests.drpc.early import (
    AcksAndFails,
    Basic,
    Groups,
    GroupsAckedFirst,
    LaterThanThat,
    Plain,
    PlainAcksAndFails,
    counting,
)
from tests.patience import patient
from tests.soak import SOAK, combined

LIMIT = patient(100.0)
NEVER = {"topology.message.timeout.secs": 3600}
TEXTS = ["a b c", "", "d", "e f", "a b c d"]
PROGRAM = str(Path("tests/drpc/steps_elsewhere/ack_first.py").absolute())


def answers(drpc, texts=TEXTS):
    futures = [drpc.start("words", text) for text in texts]
    drpc.wait(futures)
    return [str(future.exception()) if future.exception() else future.result() for future in futures]


RIGHT = [str(len(text.split())) for text in TEXTS]


@pytest.mark.parametrize(
    ("where", "step", "mode"),
    combined(["first", "middle"], [Plain, Basic, lambda: KeyedFairBolt(Plain)], ["simulated", "inprocess", "process"]),
)
def test_what_a_bolt_emits_behind_its_ack_is_counted(mode, step, where):
    with LocalDRPC(mode, timeout_secs=LIMIT, seed=3) as drpc:
        drpc.submit(counting(step if isinstance(step, type) else step(), where), conf=NEVER)
        assert answers(drpc) == RIGHT


@pytest.mark.parametrize("fair", [False, True], ids=["alone", "fair"])
@pytest.mark.parametrize("heartbeats", ["answers", "acks"])
@pytest.mark.parametrize("anchors", ["anchored", "unanchored"])
@pytest.mark.parametrize("writes", ["one", "two", "slow"])
def test_what_a_program_emits_behind_its_ack_is_counted(writes, anchors, heartbeats, fair):
    program = ShellBolt([sys.executable, PROGRAM, writes, anchors, heartbeats], output_fields=["id", "word"])
    step = KeyedFairBolt(program) if fair else program
    with LocalDRPC("inprocess", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(counting(step, "middle" if writes == "two" else "first"), conf=NEVER)
        assert answers(drpc) == RIGHT
        assert run.errors == []


@pytest.mark.parametrize(("heartbeats", "step"), combined(["answers", "ignores"], [False, True]))
def test_a_program_is_asked_in_a_process_of_its_own_too(heartbeats, step):
    program = ShellBolt([sys.executable, PROGRAM, "one", "anchored", heartbeats], output_fields=["id", "word"])
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        drpc.submit(counting(KeyedFairBolt(program) if step else program, "middle"), conf=NEVER)
        assert answers(drpc) == RIGHT


def test_a_program_that_passes_heartbeats_over_and_emits_late_harms_no_other_request():
    program = ShellBolt([sys.executable, PROGRAM, "slow", "anchored", "ignores"], output_fields=["id", "word"])
    with LocalDRPC("inprocess", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(counting(program), conf=NEVER)
        said = answers(drpc, ["a b c", ""])
        assert said[1] == "0"
        run.wait(lambda _: run.errors or said[0] == "3", LIMIT)
        assert said[0] == "3" or "'words', request" in run.errors[0].message
        assert said[0] == "3" or "ack comes last" in run.errors[0].message


@pytest.mark.parametrize(
    ("mode", "step", "where", "fair"),
    list(product(["inprocess", "process"], [AcksAndFails, PlainAcksAndFails], ["first", "middle"], [False, True]))
    if SOAK
    else [
        *(
            ("inprocess", *case)
            for case in product([AcksAndFails, PlainAcksAndFails], ["first", "middle"], [False, True])
        ),
        ("process", AcksAndFails, "middle", True),
    ],
)
def test_an_exception_behind_the_ack_fails_the_request_and_names_the_step(mode, step, where, fair):
    causes = {"refuse": "refused", "raise": "ZeroDivisionError: nothing by naught", "anchor": "LocalProtocolError: "}
    number = 0 if where == "first" else 1
    for text, cause in causes.items():
        with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
            run = drpc.submit(counting(KeyedFairBolt(step) if fair else step, where), conf=NEVER)
            assert answers(drpc, ["well"]) == ["1"]
            (said,) = answers(drpc, [text])
            assert f"'words' failed in step {number} (component 'bolt{number}'" in said, said
            assert cause in said, said
            if step is PlainAcksAndFails and text != "refuse":
                run.wait(lambda it: sum(t.restarts for t in it.tasks) and all(t.alive for t in it.tasks), LIMIT)
            assert answers(drpc, ["well"]) == ["1"]


@pytest.mark.parametrize("mode", ["inprocess", "process"])
@pytest.mark.parametrize(
    ("step", "right"), [(Groups, 2), (GroupsAckedFirst, 0)], ids=["acked one by one", "all acked first"]
)
def test_an_exception_in_a_group_fails_the_requests_that_it_can_be_of(mode, step, right):
    texts = ["a b", "c", "d e!", "f"]  # "d" is acked too, but its request has more
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        drpc.submit(counting(step, "middle"), conf=NEVER)
        said = answers(drpc, texts)
        assert said[:right] == ["2", "1"][:right]
        for each in said[right:]:
            assert "'words' failed in step 1 (component 'bolt1'" in each, said
            assert "ZeroDivisionError: nothing by naught" in each, said


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_what_is_emitted_for_a_request_that_is_over_here_fails_no_other(mode):
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        run = drpc.submit(counting(LaterThanThat), conf=NEVER)
        assert answers(drpc, ["a"]) == ["0"]  # nobody could know
        assert answers(drpc, ["b"]) == ["0"]
        run.wait(lambda _: run.errors, LIMIT)
        assert "step 0 of 'words', request " in run.errors[0].message
        assert "it emits ['late'] behind the ack that finished the request here" in run.errors[0].message
        assert all(task.restarts == 0 for task in run.tasks)
