"""The order of a conversation: task ids and what overtakes them, tuples and their acks, commands and their syncs."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from multilang.protocol import (
    Ack,
    ChildConnection,
    Emit,
    Fail,
    Heartbeat,
    LocalProtocolError,
    Next,
    ParentConnection,
    RemoteProtocolError,
    Sync,
    TaskIds,
    Tuple,
)
from tests.protocol.wire import (
    END,
    OLD_CONTEXT,
    handshake,
    outcome,
    received,
    sent_by,
    shaken_child,
    shaken_parent,
    tuple_bytes,
    whole,
)


def ids(*tasks: int) -> bytes:
    return json.dumps(tasks).encode() + END


def old_child() -> ChildConnection:
    """A child whose handshake is of a Storm before 0.10: its task and the components of the tasks, nothing else."""
    child = ChildConnection()
    child.receive_data(json.dumps({"pidDir": "/pids", "conf": {}, "context": OLD_CONTEXT}).encode() + END)
    child.send_pid(1)
    child.data_to_send()
    return child


# ---- task ids ----


def test_task_ids_come_in_the_order_of_their_emits_with_tuples_in_between() -> None:
    child = shaken_child()
    first = received(child, "11")
    child.emit(["a", 1], anchors=[first], token="first")
    child.emit(["b", 1], anchors=[first], token="second")
    events = child.receive_data(tuple_bytes("12") + ids(2) + tuple_bytes("13") + ids(3, 2) + tuple_bytes("14"))
    assert [event.id if isinstance(event, Tuple) else event for event in events] == [
        "12",
        TaskIds([2], "first"),
        "13",
        TaskIds([3, 2], "second"),
        "14",
    ]


def test_an_emit_that_wants_no_ids_says_so_and_gets_none() -> None:
    child = shaken_child()
    child.emit(["a", 1])
    child.emit(["b", 1], token="b")
    child.emit(["c", 1])
    assert ["need_task_ids" in command for command in sent_by(child)] == [True, False, True]
    assert child.receive_data(ids(3)) == [TaskIds([3], "b")]


def test_a_direct_emit_has_no_ids() -> None:
    child = shaken_child()
    parent = shaken_parent("bolt")
    child.emit(["a"], "routed", direct_task=6)
    child.emit(["b", 1], token="b")
    direct, _ = parent.receive_data(child.data_to_send())
    assert direct == Emit(["a"], "routed", task=6, need_task_ids=False)
    parent.task_ids([2])
    assert child.receive_data(parent.data_to_send()) == [TaskIds([2], "b")]
    with pytest.raises(LocalProtocolError, match="no emit waits for task ids"):
        parent.task_ids([2])


def test_an_empty_list_is_an_answer() -> None:
    child = shaken_child()
    child.emit(["a", 1], token="a")
    assert child.receive_data(ids()) == [TaskIds([], "a")]


def test_task_ids_that_answer_nothing_are_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match=r"a list of task ids answers no emit: '\[2\]'"):
        shaken_child().receive_data(ids(2))


def test_task_ids_are_integers() -> None:
    child = shaken_child()
    child.emit(["a", 1], token="a")
    with pytest.raises(RemoteProtocolError, match="a list of task ids holds 'two', not an integer"):
        child.receive_data(b'[1,"two"]' + END)


def test_a_parent_that_does_not_know_need_task_ids_is_noticed() -> None:
    """It sends a list for each emit; they are matched in order and dropped, and from then on all are asked for."""
    child = shaken_child()
    for word in "abc":
        child.emit([word, 1])
    assert ["need_task_ids" in command for command in sent_by(child)] == [True, True, True]
    assert child.receive_data(ids(2)) == []
    child.emit(["d", 1], token="d")
    child.emit(["e", 1])
    assert child.receive_data(ids(3) + ids(2) + ids(3) + ids(2)) == [TaskIds([3], "d")]
    assert ["need_task_ids" in command for command in sent_by(child)] == [False, False]
    with pytest.raises(RemoteProtocolError, match="answers no emit"):
        child.receive_data(ids(2))


def test_ids_that_may_have_been_of_an_earlier_emit_are_warned_of() -> None:
    child = shaken_child()
    child.emit(["a", 1])
    child.emit(["b", 1], token="b")
    sent_by(child)
    assert child.receive_data(ids(2)) == [TaskIds([2], "b")]  # nothing shows yet that it was of the first emit
    assert child.receive_data(ids(3)) == []
    (warning,) = sent_by(child)
    assert (warning["command"], warning["level"]) == ("log", 3)
    assert "may have been of an earlier emit" in warning["msg"]


def test_before_storm_0_10_every_emit_has_its_ids() -> None:
    child = old_child()
    child.emit(["a"])
    child.emit(["b", "any number", "of values"], token="b")
    child.emit_from_spout(["c"], 1, "any stream")
    child.emit_many([["d"], ["e"]])
    child.emit(["f"], token="f")
    assert not any("need_task_ids" in command for command in sent_by(child))
    lists = b"".join(ids(n) for n in (1, 2, 3, 4, 5, 6))
    assert child.receive_data(lists) == [TaskIds([2], "b"), TaskIds([6], "f")]


def test_before_storm_0_10_the_component_is_that_of_the_task() -> None:
    child = old_child()
    assert (child.component, child.task) == ("split", 4)
    tup = received(child)
    assert tup[0] == "a line"
    assert tup.fields == []
    with pytest.raises(KeyError, match="fields of stream 'default' of 'lines' are not known here"):
        tup["line"]


@pytest.mark.parametrize("how", ["emit", "emit_from_spout"])
def test_tokens_stand_in_the_order_in_which_threads_write(how: str) -> None:
    child = shaken_child()
    emit = getattr(child, how)
    written: list[str] = []
    second_wrote = threading.Event()
    second = threading.Thread(target=lambda: emit(["second", 1], token="second"))

    def write(text: str) -> None:
        if threading.current_thread() is second:
            second_wrote.set()
        else:
            # While the first is about to write, the second comes; it must not get in between.
            second.start()
            second_wrote.wait(0.3)
        written.append(text)

    child.write = write
    emit(["first", 1], token="first")
    second.join(60)
    words = [json.loads(text[: -len(END)])["tuple"][0] for text in written]
    assert sorted(words) == ["first", "second"]
    assert child.receive_data(ids(1) + ids(1)) == [TaskIds([1], word) for word in words]


# ---- tuples ----


def test_a_tuple_is_unfinished_until_it_is_acked_or_failed() -> None:
    child = shaken_child()
    first, second = received(child, "11"), received(child, "12")
    assert list(child.unfinished) == ["11", "12"]
    child.ack(first)
    child.fail(second)
    assert (first.unfinished, second.unfinished) == (False, False)
    assert child.unfinished == {}


def test_tuples_may_be_named_by_their_ids() -> None:
    child = shaken_child()
    parent = shaken_parent("bolt", ["11", "12"])
    received(child, "11")
    received(child, "12")
    child.emit(["a", 1], anchors=["11", "12"])
    child.ack("11")
    child.fail("12")
    assert parent.receive_data(child.data_to_send()) == [
        Emit(["a", 1], anchors=["11", "12"], need_task_ids=False),
        Ack("11"),
        Fail("12"),
    ]


def test_many_anchors_of_which_one_is_finished_are_refused() -> None:
    child = shaken_child()
    first, second = received(child, "11"), received(child, "12")
    child.ack(first)
    child.data_to_send()
    with pytest.raises(LocalProtocolError, match="tuple '11' can't be used as an anchor"):
        child.emit(["a", 1], anchors=[second, first])
    assert child.data_to_send() == b""


def test_an_anchor_is_remembered_no_longer_than_it_is_unfinished() -> None:
    child = shaken_child()
    tup = received(child)
    child.emit(["a", 1], anchors=[tup])
    child.emit(["b", 1], anchors=[tup])
    child.ack(tup)
    with pytest.raises(LocalProtocolError, match="can't be used as an anchor"):
        child.emit(["c", 1], anchors=[tup])
    again = received(child, "11")  # the same id once more is another delivery
    child.emit(["d", 1], anchors=[again])
    assert [command.get("anchors") for command in sent_by(child) if command["command"] == "emit"] == [["11"]] * 3


def test_a_refused_emit_leaves_no_trace() -> None:
    child = shaken_child()
    tup = received(child)
    for refused in ([object(), 1], ["a", float("nan")], ["a"], ["\ud800", 1]):
        with pytest.raises(LocalProtocolError):
            child.emit(refused, anchors=[tup], token="never")
        with pytest.raises(LocalProtocolError):
            child.emit_from_spout(refused, 1, token="never")
    assert child.data_to_send() == b""
    child.emit(["b", 1], token="b")
    assert child.receive_data(ids(2)) == [TaskIds([2], "b")]
    child.ack(tup)
    assert [command["command"] for command in sent_by(child)] == ["emit", "ack"]


def test_many_rows_are_many_emits() -> None:
    child = shaken_child()
    parent = shaken_parent("bolt", ["11"])
    tup = received(child)
    child.emit_many(([word, n] for n, word in enumerate("abc")), anchors=[tup])
    assert parent.receive_data(child.data_to_send()) == [
        Emit([word, n], anchors=["11"], need_task_ids=False) for n, word in enumerate("abc")
    ]


def test_the_parent_sends_an_id_once() -> None:
    parent = shaken_parent("bolt", ["11"])
    with pytest.raises(LocalProtocolError, match="has a tuple with the id '11' already"):
        parent.tuple("11", "lines", "default", 1, ["again", 2])
    parent.receive_data(b'{"command":"ack","id":"11"}' + END)
    parent.tuple("11", "lines", "default", 1, ["again", 2])
    assert len(sent_by(parent)) == 1


def test_heartbeats_are_no_tuples() -> None:
    child = shaken_child()
    parent = shaken_parent("bolt")
    parent.heartbeat("99")
    assert child.receive_data(parent.data_to_send()) == [Heartbeat("99")]
    assert child.unfinished == {}
    child.sync()
    assert parent.receive_data(child.data_to_send()) == [Sync()]


@pytest.mark.parametrize("message", [{"task": 3}, {"stream": "default"}])
def test_a_heartbeat_comes_from_the_system_on_its_own_stream(message: dict[str, Any]) -> None:
    heartbeat = {"id": "5", "comp": None, "stream": "__heartbeat", "task": -1, "tuple": []}
    child = shaken_child()
    assert child.receive_data(json.dumps(heartbeat).encode() + END) == [Heartbeat("5")]
    (tup,) = child.receive_data(json.dumps(heartbeat | message).encode() + END)
    assert isinstance(tup, Tuple)


def test_a_tick_is_a_tuple_to_be_acked() -> None:
    child = shaken_child()
    tick = {"id": "5", "comp": "__system", "stream": "__tick", "task": -1, "tuple": [3]}
    (tup,) = child.receive_data(json.dumps(tick).encode() + END)
    assert isinstance(tup, Tuple)
    assert tup.is_tick
    child.ack(tup)


# ---- commands ----


def test_the_parent_waits_for_a_sync_before_the_next_command() -> None:
    parent = shaken_parent("spout")
    for send in (parent.next, parent.activate, parent.deactivate, lambda: parent.ack(1), lambda: parent.fail(1)):
        with pytest.raises(LocalProtocolError, match="the spout is still busy with 'next'"):
            send()
    parent.receive_data(b'{"command":"sync"}' + END)
    parent.ack(1)
    assert sent_by(parent) == [{"command": "ack", "id": 1}]


def test_an_ack_that_comes_before_the_task_ids_is_handled() -> None:
    """With no ackers, Storm sends the ack of a reliable emit before its task ids, and waits for the sync."""
    child = shaken_child()
    assert child.receive_data(b'{"command":"next","id":""}' + END) == [Next()]
    child.emit_from_spout(["a", 1], "m1", token="a")
    assert child.receive_data(b'{"command":"ack","id":"m1"}' + END) == [Ack("m1")]
    assert child.commands_owed == 2
    child.sync()  # of the ack
    assert child.receive_data(ids(2)) == [TaskIds([2], "a")]
    child.sync()  # of the next
    assert child.commands_owed == 0
    assert [command["command"] for command in sent_by(child)] == ["emit", "sync", "sync"]


def test_a_spout_says_one_sync_a_command() -> None:
    child = shaken_child()
    child.receive_data(b'{"command":"next"}' + END)
    child.sync()
    with pytest.raises(LocalProtocolError, match="no command waits for a sync"):
        child.sync()
    assert len(sent_by(child)) == 1


def test_a_bolt_may_give_a_sign_of_life_at_any_time() -> None:
    child = shaken_child()
    parent = shaken_parent("bolt")
    child.sync()
    child.sync()
    assert parent.receive_data(child.data_to_send()) == [Sync(), Sync()]


@pytest.mark.parametrize("exhausted", [True, False, None])
def test_a_spout_can_tell_our_parent_that_it_is_exhausted(exhausted: bool | None) -> None:
    child = shaken_child()
    parent = shaken_parent("spout")
    child.receive_data(b'{"command":"next"}' + END)
    child.sync(exhausted)
    assert parent.receive_data(child.data_to_send()) == [Sync(exhausted)]


@pytest.mark.parametrize("id", ["m1", "", "né\n", 7, -(2**63), 2**63 - 1, 1.5, {"k": [1, "x"]}, [1, None], True])
def test_a_message_id_comes_back_as_it_went(id: Any) -> None:
    child = shaken_child()
    parent = shaken_parent("spout")
    child.receive_data(b'{"command":"next"}' + END)
    child.emit_from_spout(["a", 1], id)
    child.sync()
    emit, _ = parent.receive_data(child.data_to_send())
    assert isinstance(emit, Emit)
    parent.ack(emit.id)
    (ack,) = child.receive_data(parent.data_to_send())
    assert isinstance(ack, Ack)
    assert ack.id == id
    assert type(ack.id) is type(id)


@pytest.mark.parametrize("id", [2**64, float("nan"), b"x", {1: 2}, object()])
def test_a_message_id_that_would_not_come_back_is_refused(id: Any) -> None:
    child = shaken_child()
    with pytest.raises(LocalProtocolError, match="the message id"):
        child.emit_from_spout(["a", 1], id)
    assert child.data_to_send() == b""


def test_each_kind_hears_its_own() -> None:
    bolt, spout = shaken_parent("bolt"), shaken_parent("spout")
    for send in (bolt.next, bolt.activate, bolt.deactivate, lambda: bolt.ack(1), lambda: bolt.fail(1)):
        with pytest.raises(LocalProtocolError, match="is for a spout, not for a bolt"):
            send()
    for send in (lambda: spout.heartbeat("1"), lambda: spout.tuple("1", "a", "default", 1, [])):
        with pytest.raises(LocalProtocolError, match="is for a bolt, not for a spout"):
            send()


def test_the_handshake_comes_first_and_once() -> None:
    parent = ParentConnection("bolt")
    with pytest.raises(LocalProtocolError, match="a tuple comes after the handshake"):
        parent.tuple("1", "a", "default", 1, [])
    parent.setup({}, "/pids", {})
    with pytest.raises(LocalProtocolError, match="sent before"):
        parent.setup({}, "/pids", {})
    assert len(sent_by(parent)) == 1
    _, error = outcome(ParentConnection("bolt"), whole(b'{"pid":1}' + END))
    assert error == """a message came before the handshake: '{"pid":1}'"""
    _, error = outcome(shaken_child(), whole(handshake()))
    assert error is not None
    assert "lacks 'command' and 'tuple'" in error


# ---- direct emits ----


@pytest.mark.parametrize(
    ("conf", "task"),
    [
        ({}, 2**32 + 6),
        ({"multilang.parent": "spark"}, 2**32 + 6),
        ({"multilang.parent": "local"}, 6),
    ],
)
def test_a_direct_emit_says_the_task_as_the_parent_understands_it(conf: dict[str, Any], task: int) -> None:
    child = shaken_child(conf)
    child.emit(["a"], "routed", direct_task=6)
    child.emit_from_spout(["a"], None, "routed", 6)
    assert [command["task"] for command in sent_by(child)] == [task, task]


def test_a_stream_that_nobody_subscribes_to_takes_both_kinds_of_emit() -> None:
    child = shaken_child()
    child.emit([1, 2, 3], "idle")
    child.emit([1, 2, 3], "idle", direct_task=2)
    assert len(sent_by(child)) == 2
