"""Checkpoints at a task, tuple by tuple: which are acked, failed and passed on."""

from __future__ import annotations

import pytest

from multilang.protocol.messages import Ack, Emit, Fail
from tests.component.harness import Starter

NEAR, FAR = 6, 7
PART = """
from multilang.state.checkpointed import CheckpointTupleForwarder

class Passing(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        self.emit([tup[0]])

Part = CheckpointTupleForwarder(Passing())
"""
ALL = {"type": "ALL"}
FIELDS = ["txid", "action", "epoch"]
CONTEXT = {
    "taskid": 4,
    "componentid": "part",
    "task->component": {"4": "part", "5": "next", str(NEAR): "near", str(FAR): "far"},
    "streams": ["default", "$checkpoint"],
    "stream->outputfields": {"default": ["value"], "$checkpoint": FIELDS},
    "stream->target->grouping": {"default": {}, "$checkpoint": {"next": ALL}},
    "source->stream->grouping": {name: {"$checkpoint": ALL, "default": ALL} for name in ("near", "far")},
    "source->stream->fields": {name: {"$checkpoint": FIELDS, "default": ["value"]} for name in ("near", "far")},
}


def anchors_of(message):
    return message.anchors if isinstance(message, Emit) else ()


@pytest.fixture
def say(tmp_path):
    """A function that brings a checkpoint tuple to the task, and tells what that did."""
    starter = Starter(tmp_path)
    child = starter.raw(PART).set_up(ctx=CONTEXT).started()

    def say(id, task, txid, action, epoch=1):
        before = len(child.messages)
        child.say(
            lambda parent: parent.tuple(
                id, CONTEXT["task->component"][str(task)], "$checkpoint", task, [txid, action, epoch]
            )
        )
        # A heartbeat may be answered while a tuple is at work; a tuple that came after it may not.
        after = f"after {id}"
        child.say(lambda parent: parent.tuple(after, "near", "default", NEAR, ["after"]))
        child.until(lambda: any(isinstance(each, Ack) and each.id == after for each in child.messages[before:]))
        said = [each for each in child.messages[before:] if after not in (getattr(each, "id", None), *anchors_of(each))]
        passed_on = [f"{each.values[1]} by {each.anchors[0]}" for each in said if isinstance(each, Emit)]
        ended = sorted(f"{type(each).__name__} {each.id}".lower() for each in said if isinstance(each, Ack | Fail))
        return passed_on + ended

    yield say
    starter.clean_up()


def test_a_checkpoint_is_acked_and_passed_on_when_it_has_come_from_all_inputs(say):
    for round in range(3):
        assert say(f"near{round}", NEAR, round, "COMMIT") == []
        assert say(f"far{round}", FAR, round, "COMMIT") == [
            f"COMMIT by far{round}", f"ack far{round}", f"ack near{round}"
        ]  # fmt: skip


def test_a_tuple_of_a_repeated_checkpoint_takes_the_place_of_the_one_before(say):
    assert say("far1", FAR, 0, "COMMIT") == []
    assert say("far2", FAR, 0, "COMMIT") == ["fail far1"]
    assert say("near2", NEAR, 0, "COMMIT") == ["COMMIT by near2", "ack far2", "ack near2"]


def test_what_is_left_of_a_checkpoint_that_failed_holds_none_of_its_repetitions_up(say):
    assert say("far1", FAR, 0, "COMMIT") == []  # and the near one is lost
    assert say("near2", NEAR, 0, "COMMIT") == ["COMMIT by near2", "ack far1", "ack near2"]
    assert say("far2", FAR, 0, "COMMIT") == ["ack far2"]
    # It failed elsewhere, and comes once more: passed on once, whatever is left of the last time.
    assert say("near3", NEAR, 0, "COMMIT") == ["COMMIT by near3", "ack near3"]
    assert say("far3", FAR, 0, "COMMIT") == ["ack far3"]
    assert say("far", FAR, 0, "INITSTATE") == []
    assert say("near", NEAR, 0, "INITSTATE") == ["INITSTATE by near", "ack far", "ack near"]


def test_a_checkpoint_of_a_spout_that_was_replaced_fails(say):
    assert say("far1", FAR, 5, "COMMIT", epoch=2) == []
    assert say("near1", NEAR, 5, "COMMIT", epoch=2) == ["COMMIT by near1", "ack far1", "ack near1"]
    assert say("far2", FAR, 6, "COMMIT", epoch=1) == []
    assert say("near2", NEAR, 6, "COMMIT", epoch=1) == ["fail far2", "fail near2"]
    # A new one may begin its transactions anew, where nothing is stored.
    assert say("far3", FAR, 0, "COMMIT", epoch=3) == []
    assert say("near3", NEAR, 0, "COMMIT", epoch=3) == ["COMMIT by near3", "ack far3", "ack near3"]
