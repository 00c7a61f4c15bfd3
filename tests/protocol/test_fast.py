"""The short way of a bolt's common emit: the same bytes as the long way, and the same refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from multilang.protocol import ChildConnection, LocalProtocolError, UnserializableValue, fast_emit
from tests.protocol.wire import END, OLD_CONTEXT, received, sent_by, shaken_child, tuple_bytes


def fast(child: ChildConnection, slow: list[Any] | None = None, default: Any = None) -> Any:
    """The short way, which notes in ``slow`` what it hands over."""

    def otherwise(values: Any, stream: Any, anchors: Any, task: Any, need: bool, callback: Any) -> None:
        if slow is not None:
            slow.append(values)
        child.emit(values, stream, anchors, task, callback)

    return fast_emit(child, otherwise) if default is None else fast_emit(child, otherwise, default)


@pytest.mark.parametrize(
    "values",
    [
        ["a", 1],
        ["", -(2**63)],
        ["é\u2028\x00\n🐍", 2**63 - 1],
        [None, True],
        [0.1, -0.0],
        ["a", [1, {"b": (2,)}]],
        ("a", 1),
    ],
)
@pytest.mark.parametrize("stream", [None, "default"])
@pytest.mark.parametrize("token", [None, "asked"])
def test_it_says_the_same(values: Any, stream: str | None, token: Any) -> None:
    quick, long = shaken_child(), shaken_child()
    for _ in range(2):
        fast(quick)(values, stream, [quick.unfinished.get("11") or received(quick)], on_task_ids=token)
        long.emit(values, stream, [long.unfinished.get("11") or received(long)], None, token)
    assert sent_by(quick) == sent_by(long)
    assert quick.receive_data(b"[1]" + END) == long.receive_data(b"[1]" + END)


def test_the_common_emit_is_not_handed_over() -> None:
    child = shaken_child()
    slow: list[Any] = []
    tup = received(child)
    for anchors in ([tup], (tup,)):
        fast(child, slow)(["a", 1], None, anchors)
        fast(child, slow)(["a", 1], None, anchors, on_task_ids=print)
    assert slow == []
    assert len(sent_by(child)) == 4


def test_without_anchors_it_takes_those_of_its_owner() -> None:
    class Owner:
        anchors: Any = ()

    child, owner = shaken_child(), Owner()
    emit = fast(child, default=owner)
    emit(["a", 1])
    owner.anchors = (received(child),)
    emit(["b", 1])
    emit(["c", 1], None, [])
    assert [command.get("anchors") for command in sent_by(child)] == [None, ["11"], None]


@pytest.mark.parametrize(
    "bad",
    [float("nan"), float("-inf"), 2**63, -(2**63) - 1, b"x", {1}, {1: 2}, "\ud800", "é\udfff", ["\ud800"], object()],
)
def test_it_refuses_the_same(bad: Any) -> None:
    child = shaken_child()
    tup = received(child)
    with pytest.raises(UnserializableValue, match=r"component 'split', stream 'default', value 1 \(field 'n'\)"):
        fast(child)(["a", bad], None, [tup])
    assert child.data_to_send() == b""
    assert tup.unfinished


@pytest.mark.parametrize(
    ("values", "stream", "message"),
    [
        (["a"], None, "emits 1 values on stream 'default'"),
        (["a", 1, 2], "default", "emits 3 values on stream 'default'"),
        (["a"], "routed", "stream 'routed' is subscribed by direct grouping"),
        (["a", 1], "nosuch", "emits on stream 'nosuch'"),
        (["a", 1], 5, "stream is a name"),
        ("ab", None, "a tuple's values are a list"),
    ],
)
def test_it_checks_the_same(values: Any, stream: Any, message: str) -> None:
    child = shaken_child()
    with pytest.raises(LocalProtocolError, match=message):
        fast(child)(values, stream, [received(child)])
    assert child.data_to_send() == b""


def test_a_finished_anchor_is_refused() -> None:
    child = shaken_child()
    tup = received(child)
    emit = fast(child)
    emit(["a", 1], None, [tup])
    child.ack(tup)
    with pytest.raises(LocalProtocolError, match="tuple '11' can't be used as an anchor"):
        emit(["b", 1], None, [tup])
    assert [command["command"] for command in sent_by(child)] == ["emit", "ack"]


def test_anchors_are_a_list_of_tuples() -> None:
    child = shaken_child()
    tup = received(child, "12", ["one value"])
    for anchors in (tup, {tup}, "1", {tup: 1}):
        with pytest.raises(LocalProtocolError, match="anchors is a list of tuples"):
            fast(child)(["a", 1], None, anchors)
    for anchor in (None, 5, "99"):
        with pytest.raises(LocalProtocolError, match=r"anchor takes a tuple|can't be used as an anchor"):
            fast(child)(["a", 1], None, [anchor])
    assert child.data_to_send() == b""


@pytest.mark.parametrize("id", ['a "quoted" id', "back\\slash", "new\nline", "é\ud800", "", "-12"])
def test_any_id_is_said_as_json(id: str) -> None:
    child = shaken_child()
    plain = received(child, "11")
    tup = received(child, id)
    for anchor in (plain, tup, plain, tup):
        fast(child)(["a", 1], None, [anchor])
        child.emit(["a", 1], None, [anchor])
    child.ack(tup)
    child.fail(plain)
    commands = sent_by(child)
    assert [command["anchors"][0] for command in commands[:-2]] == ["11", "11", id, id] * 2
    assert [command["id"] for command in commands[-2:]] == [id, "11"]


def test_a_parent_that_sends_task_ids_always_is_asked_for_them() -> None:
    child = ChildConnection()
    child.receive_data(json.dumps({"pidDir": "/pids", "conf": {}, "context": OLD_CONTEXT}).encode() + END)
    tup = received(child)
    fast(child)(["a"], None, [tup])
    assert "need_task_ids" not in sent_by(child)[0]
    assert child.receive_data(b"[2]" + END) == []

    child = shaken_child()
    (tup,) = child.receive_data(tuple_bytes())  # type: ignore[assignment]
    emit = fast(child)
    emit(["a", 1], None, [tup])
    assert "need_task_ids" in sent_by(child)[0]
    assert child.receive_data(b"[2]" + END) == []  # this one does not know it
    emit(["a", 1], None, [tup])
    assert "need_task_ids" not in sent_by(child)[0]
    assert child.receive_data(b"[2]" + END) == []
