"""64 ways to misbehave: what Storm 2.8.3 made of each (fixtures/wire/misbehaviour.txt), and what our two ends make of it.

The bolt has the tuples 11, 12 and 13, has acked the first two, and misbehaves on 13; the spout is busy with a next.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from multilang.protocol import Ack, ChildConnection, Emit, Error, LocalProtocolError, Log, ParentConnection, Pid, Sync
from tests.protocol.wire import CAPTURES, END, one_at_a_time, outcome, received, shaken_child, shaken_parent, whole

STORM = dict(re.findall(r"^== (\w+): worker (lives|died)", (CAPTURES / "misbehaviour.txt").read_text("utf-8"), re.M))

_ACK = b'{"command": "ack", "id": "13"}'
_ANCHORED = b'{"command": "emit", "anchors": ["13"], "tuple": %s}' + END

# What halts a worker: refused, strict or not; the error names what is wrong.
HALTS: dict[str, tuple[bytes, str]] = {
    "pre_print": (b'a library prints hello\n{"pid": 12}' + END, "nothing but the protocol may be written to stdout"),
    "pid_string": (b'{"pid": "12"}' + END, "the answer to the handshake has 'pid' '12', where an integer is due"),
    "garbage": (b"this is not json" + END, "is not JSON"),
    "print": (
        b"a print of a library\n" + _ACK + END,
        "nothing but the protocol may be written to stdout.*a print of a library",
    ),
    "print_json": (b"17" + END, "a message is int, not an object"),
    "empty": (b"end\n", "a message is empty"),
    "partial_exit": (b'{"command": "ack", "id": "', "the stream ended inside a message, 26 bytes"),
    "ack_twice": (_ACK + END + _ACK + END, "the command 'ack' names '13', which was acked or failed before"),
    "ack_then_fail": (_ACK + END + b'{"command":"fail","id":"13"}' + END, "the command 'fail' names '13'"),
    "ack_int": (b'{"command":"ack","id":13}' + END, "the command 'ack' has 'id' 13, where the tuple's id, a string"),
    "anchor_acked": (_ACK + END + _ANCHORED % b'["x", 1]', "an emit is anchored to '13', which is finished"),
    "null_tuple": (b'{"command":"emit","anchors":["13"]}' + END, "an emit lacks 'tuple', where an array is due"),
    "tuple_not_list": (_ANCHORED % b'"xy"', "an emit has 'tuple' 'xy', where an array is due"),
    "no_command": (b'{"id":"13"}' + END, "a message lacks 'command'"),
    "not_object": (b"[1, 2]" + END, "a message is list, not an object"),
    "spout_garbage": (b"this is not json" + END, "is not JSON"),
    "spout_print": (b'a print of a library\n{"command":"sync"}' + END, "nothing but the protocol"),
    "spout_unknown_command": (b'{"command":"frobnicate"}' + END, "has command 'frobnicate'; a spout may send emit,"),
    "spout_ack": (b'{"command":"ack","id":"1"}' + END, "has command 'ack'; a spout may send emit,"),
}

# What Storm takes in silence although something is lost: refused when strict, otherwise read as Storm reads it.
SILENT: dict[str, tuple[bytes, str, list[Any]]] = {
    "pid_missing": (b"{}" + END, "the answer to the handshake lacks 'pid'", [Pid(0)]),
    "infinity": (
        _ANCHORED % b'["x", -Infinity]',
        "value 1 is or holds -inf",
        [Emit(["x", -float("inf")], anchors=["13"])],
    ),
    "surrogate": (_ANCHORED % rb'["a\ud800b", 1]', "value 0 .*lone surrogate", [Emit(["a\ud800b", 1], anchors=["13"])]),
    "unknown_command": (b'{"command":"frobnicate"}' + END + _ACK + END, "has command 'frobnicate'", [Ack("13")]),
    "trailing_space": (
        _ACK + b"\nend \n" + b'{"command":"sync"}' + END,
        "a message is followed by 'end ': only a line 'end' alone ends it",
        [Ack("13")],  # and the sync is lost
    ),
    "spout_two_syncs": (
        b'{"command":"sync"}' + END + b'{"command":"sync"}' + END,
        "a sync came with no command to answer",
        [Sync(), Sync()],
    ),
    "spout_late_emit": (
        b'{"command":"sync"}' + END + b'{"command":"emit","tuple":["late",1],"need_task_ids":false}' + END,
        "an emit came after the spout's sync",
        [Sync(), Emit(["late", 1], need_task_ids=False)],
    ),
    # NaN is not equal to itself: see test_nan_is_refused_when_strict
    "nan": (_ANCHORED % b'["x", NaN]', "value 1 is or holds nan", []),
    "spout_nan_id": (b'{"command":"emit","tuple":["x",1],"id":NaN}' + END, "an 'id' that is or holds nan", []),
}

_LEVELS = (0, 1, 2, 3, 4, 9, "null", '"x"')
# What is the protocol, or does no harm: read.
READ: dict[str, tuple[bytes, list[Any]]] = {
    "bigint": (_ANCHORED % (b"[%d]" % 2**200), [Emit([2**200], anchors=["13"])]),
    "anchor_string": (b'{"command":"emit","anchors":"13","tuple":["x",1]}' + END, [Emit(["x", 1], anchors=["13"])]),
    "error": (b'{"command":"error","msg":"a reported error"}' + END, [Error("a reported error")]),
    "error_null": (b'{"command":"error"}' + END, [Error("null")]),
    "log_levels": (
        b"".join(f'{{"command":"log","msg":"m","level":{level}}}'.encode() + END for level in _LEVELS)
        + b'{"command":"log","msg":"no level"}'
        + END,
        [Log("m", n) for n in (0, 1, 2, 3, 4, 2, 2, 2)] + [Log("no level", 2)],
    ),
    "ids_unread": (
        b'{"command":"emit","anchors":["13"],"tuple":["x",0],"need_task_ids":false}' + END,
        [Emit(["x", 0], anchors=["13"], need_task_ids=False)],
    ),
    "crlf": (_ACK + b"\r\nend\r\n", [Ack("13")]),
    "pretty": (b'{\n "command": "ack",\n "id": "13"\n}' + END, [Ack("13")]),
    "big": (_ANCHORED % (b'["%s", 1]' % (b"x" * 5_000_000)), [Emit(["x" * 5_000_000, 1], anchors=["13"])]),
    "spout_error": (b'{"command":"error","msg":"a spout\'s error"}' + END, [Error("a spout's error")]),
    # This Storm dies of a task that fits into 32 bits, older and later ones don't.
    "task_int": (_ANCHORED % b'["x", 1], "task": 3', [Emit(["x", 1], anchors=["13"], task=3, need_task_ids=False)]),
    "spout_task_int": (
        b'{"command":"emit","tuple":["x",1],"task":3}' + END,
        [Emit(["x", 1], task=3, need_task_ids=False)],
    ),
    "spout_task_long": (
        b'{"command":"emit","tuple":["x",1],"task":%d}' % (2**32 + 3) + END,
        [Emit(["x", 1], task=3, need_task_ids=False)],
    ),
}

# What only the topology can judge; a component that runs on our child gets the error when it asks for it.
CHILD_REFUSES: dict[str, tuple[dict[str, Any], str]] = {
    "stream": (
        {"stream": "nosuch"},
        "emits on stream 'nosuch', which it does not declare .declared: 'default', 'routed'",
    ),
    "arity": ({"values": ["x"]}, "emits 1 values on stream 'default', which declares 2: word, n"),
    "arity_more": ({"values": ["x", 1, 2]}, "emits 3 values on stream 'default', which declares 2"),
    "task0": ({"direct_task": 0}, "emits to task 0, which the topology does not have"),
    "task_nobody": ({"stream": "routed", "values": ["x"], "direct_task": 999}, "emits to task 999, which the topology"),
    "task_not_direct": (
        {"direct_task": 2},
        "emits directly to task 2 of 'count', which takes stream 'default' by FIELDS",
    ),
    "direct_without_task": (
        {"stream": "routed", "values": ["x"]},
        "'routed' is subscribed by direct grouping; emit with",
    ),
    "spout_stream": ({"stream": "nosuch"}, "emits on stream 'nosuch', which it does not declare"),
    "spout_arity": ({"values": ["x"]}, "emits 1 values on stream 'default', which declares 2"),
}

# What is no matter of bytes: files, processes, time; and metrics, which only the worker knows.
BESIDE_THE_WIRE = {
    "pre_stderr", "pre_exit", "pre_hang", "no_pid_file", "partial", "exit0", "exit1", "stderr", "metrics_unknown",
    "heartbeat", "sleep", "spout_exit", "spout_stderr", "spout_hang",
}  # fmt: skip


def test_every_case_is_judged_once() -> None:
    judged = [*HALTS, *SILENT, *READ, *CHILD_REFUSES, *BESIDE_THE_WIRE]
    assert sorted(judged) == sorted(STORM)
    assert len(judged) == 64


def test_we_are_as_strict_as_storm() -> None:
    assert {STORM[name] for name in HALTS} == {"died"}
    assert {STORM[name] for name in SILENT} == {"lives"}
    assert {name for name in READ if STORM[name] == "died"} == {"task_int", "spout_task_int"}


def parent_for(name: str, *, strict: bool) -> ParentConnection:
    if name.startswith(("pre_", "pid_")):
        parent = ParentConnection("bolt", strict=strict)
        parent.setup({}, "/pids", {})
        return parent
    if name.startswith("spout_"):
        return shaken_parent("spout", strict=strict)
    parent = shaken_parent("bolt", ["11", "12", "13"], strict=strict)
    parent.receive_data(b'{"command":"ack","id":"11"}' + END + b'{"command":"ack","id":"12"}' + END)
    return parent


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", HALTS)
def test_what_halts_a_worker_is_refused(name: str, strict: bool) -> None:
    data, message = HALTS[name]
    _, error = outcome(parent_for(name, strict=strict), whole(data))
    assert error is not None
    assert re.search(message, error)


@pytest.mark.parametrize("name", SILENT)
def test_what_passes_in_silence_is_refused_when_strict(name: str) -> None:
    data, message, _ = SILENT[name]
    _, error = outcome(parent_for(name, strict=True), whole(data))
    assert error is not None
    assert re.search(message, error)


@pytest.mark.parametrize("name", [name for name in SILENT if SILENT[name][2]])
def test_what_passes_in_silence_is_read_when_not_strict(name: str) -> None:
    data, _, events = SILENT[name]
    assert outcome(parent_for(name, strict=False), whole(data)) == (events, None)


def test_nan_is_read_when_not_strict() -> None:
    events, error = outcome(parent_for("nan", strict=False), whole(SILENT["nan"][0]))
    assert error is None
    assert repr(events[0].values) == "['x', nan]"
    events, error = outcome(parent_for("spout_nan_id", strict=False), whole(SILENT["spout_nan_id"][0]))
    assert error is None
    assert repr(events[0].id) == "nan"


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", READ)
def test_what_does_no_harm_is_read(name: str, strict: bool) -> None:
    data, events = READ[name]
    assert outcome(parent_for(name, strict=strict), whole(data)) == (events, None)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", [name for name in (HALTS | SILENT | READ) if name != "big"])
def test_one_byte_at_a_time_means_the_same(name: str, strict: bool) -> None:
    data = (HALTS | SILENT | READ)[name][0]
    together = outcome(parent_for(name, strict=strict), whole(data))
    assert repr(outcome(parent_for(name, strict=strict), one_at_a_time(data))) == repr(together)


@pytest.mark.parametrize("name", CHILD_REFUSES)
def test_what_only_the_topology_can_judge_is_refused_by_the_child(name: str) -> None:
    changes, message = CHILD_REFUSES[name]
    child = shaken_child()
    asked: dict[str, Any] = {"values": ["x", 1], **changes}
    if not name.startswith("spout_"):
        asked["anchors"] = [received(child)]
    emit = child.emit_from_spout if name.startswith("spout_") else child.emit
    with pytest.raises(LocalProtocolError, match=f"component 'split'.*{message}"):
        emit(**asked)
    assert child.data_to_send() == b""


@pytest.mark.parametrize(
    ("send", "message"),
    [
        (
            lambda child, tup: (child.ack(tup), child.ack(tup)),
            "tuple '11' can't be acked: it was acked or failed before",
        ),
        (lambda child, tup: (child.ack(tup), child.fail(tup)), "tuple '11' can't be failed"),
        (lambda child, tup: (child.fail("11"), child.ack("11")), "tuple '11' can't be acked"),
        (
            lambda child, tup: (child.ack(tup), child.emit(["x", 1], anchors=[tup])),
            "tuple '11' can't be used as an anchor",
        ),
        (
            lambda child, tup: child.emit(["x", 1], anchors=["12"]),
            "tuple '12' can't be used as an anchor.* never received",
        ),
        (lambda child, tup: child.ack(11), "ack takes a tuple that was received, not int"),
        (lambda child, tup: child.emit("xy"), "a tuple's values are a list, not a str: 'xy'"),
        (lambda child, tup: child.emit(None), "a tuple's values are a list, not a NoneType"),
        (lambda child, tup: child.emit(["x", 1], stream=3), "stream is a name, not int"),
        (lambda child, tup: child.emit(["x", 1], anchors=tup), "anchors is a list of tuples, not Tuple"),
        (lambda child, tup: child.emit(["x", 1], anchors="11"), "anchors is a list of tuples, not str"),
        (lambda child, tup: child.emit(["x", 1], anchors={tup}), "anchors is a list of tuples, not set"),
        (lambda child, tup: child.emit(["x"], "routed", direct_task=True), "direct_task is a task id, not True"),
        (lambda child, tup: child.emit(["x"], "routed", direct_task="6"), "direct_task is a task id, not '6'"),
        (lambda child, tup: child.send_pid(78), "the handshake has been answered"),
        (lambda child, tup: child.metrics("m", {1}), "the metric 'm': .* is a set"),
    ],
)
def test_the_child_refuses_to_send_what_would_halt_the_worker(send: Any, message: str) -> None:
    child = shaken_child()
    tup = received(child)
    with pytest.raises(LocalProtocolError, match=message):
        send(child, tup)
    commands = outcome(shaken_parent("bolt", ["11"]), whole(child.data_to_send()))
    assert commands[1] is None  # what it sent before is fine


def test_nothing_is_said_before_the_handshake() -> None:
    child = ChildConnection()
    for send in (
        lambda: child.emit(["x", 1]),
        lambda: child.emit_from_spout(["x", 1]),
        lambda: child.log("hello"),
        lambda: child.error("hello"),
        lambda: child.metrics("m", 1),
        lambda: child.send_pid(1),
    ):
        with pytest.raises(LocalProtocolError, match="handshake"):
            send()
    assert child.data_to_send() == b""
