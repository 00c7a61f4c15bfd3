"""Each field of each message is checked when it comes in; the error names message and field and shows the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from multilang.protocol import ChildConnection, Emit, ParentConnection, Setup, Tuple
from multilang.protocol.errors import shortened
from tests.protocol.wire import END, context, handshake, outcome, received, shaken_child, shaken_parent, whole

TUPLE = {"id": "1", "comp": "lines", "stream": "default", "task": 1, "tuple": ["a line", 1]}


def error_of(connection: Any, message: Any) -> str:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    _, error = outcome(connection, whole(data + END))
    assert error is not None
    return error


# ---- the child ----


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"id": 1}, "a tuple has 'id' 1, where a string is due"),
        ({"id": None}, "a tuple has 'id' None, where a string is due"),
        ({"comp": 5}, "a tuple has 'comp' 5, where a string or null is due"),
        ({"stream": None}, "a tuple has 'stream' None, where a string is due"),
        ({"task": "1"}, "a tuple has 'task' '1', where an integer is due"),
        ({"task": 1.0}, "a tuple has 'task' 1.0, where an integer is due"),
        ({"task": True}, "a tuple has 'task' True, where an integer is due"),
        ({"tuple": "ab"}, "a tuple has 'tuple' 'ab', where an array is due"),
        ({"tuple": None}, "a tuple has 'tuple' None, where an array is due"),
        ({"id": "\ud800", "task": []}, "a tuple has 'task' [], where an integer is due"),
    ],
)
def test_a_field_of_a_tuple(change: dict[str, Any], error: str) -> None:
    assert error_of(shaken_child(), TUPLE | change).startswith(error)


@pytest.mark.parametrize("field", ["id", "comp", "stream", "task"])
def test_a_missing_field_of_a_tuple(field: str) -> None:
    message = {key: value for key, value in TUPLE.items() if key != field}
    assert error_of(shaken_child(), message).startswith(f"a tuple lacks '{field}': '{{")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({}, "a message lacks 'command' and 'tuple': '{}'"),
        ({"command": 5}, "a message has command 5, not a string"),
        ({"command": "emit"}, "a command 'emit' is unknown; Storm has next, ack, fail, activate and deactivate"),
        ({"command": "ack"}, "the command 'ack' lacks 'id'"),
        ({"command": "fail"}, "the command 'fail' lacks 'id'"),
        (5, "a message is int, neither an object nor an array: '5'"),
        ("x", "a message is str, neither an object nor an array"),
        (None, "a message is NoneType, neither an object nor an array"),
        ([True], "a list of task ids holds True, not an integer"),
        ([[1]], "a list of task ids holds [1], not an integer"),
        (b"garbage", "a message is not JSON ("),
        (b"", "a message is not JSON ("),
    ],
)
def test_a_message_that_is_none(message: Any, error: str) -> None:
    assert error_of(shaken_child(), message).startswith(error)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"conf": None}, "the handshake 'conf' is of type NoneType, where an object is due"),
        ({"conf": []}, "the handshake 'conf' is of type list, where an object is due"),
        ({"pidDir": 5}, "the handshake 'pidDir' is of type int, where a string is due"),
        ({"context": "x"}, "the handshake 'context' is of type str, where an object is due"),
        ({"context": {}}, "the handshake lacks context['taskid'], an integer"),
        ({"context": context(taskid="4")}, "the handshake lacks context['taskid'], an integer"),
        ({"context": context(**{"task->component": None})}, "the handshake lacks context['task->component'], an object"),
        ({"context": context(**{"task->component": {"x": "a"}})}, "the handshake lacks context['task->component']"),
        ({"context": context(**{"task->component": {"--1": "a"}})}, "the handshake lacks context['task->component']"),
        ({"context": context(**{"task->component": {"²": "a"}})}, "the handshake lacks context['task->component']"),
        ({"context": context(**{"task->component": {"9" * 5000: "a"}})}, "the handshake lacks context['task->compon"),
        ({"context": context(**{"task->component": {"1": 5}})}, "the handshake lacks context['task->component']"),
        ({"context": context(componentid=5)}, "the handshake has context['componentid'] that is not a string"),
        ({"context": context(streams=["a", 5])}, "the handshake has context['streams'] that holds something else than st"),
        ({"context": context(streams={})}, "the handshake has context['streams'] that is not an array"),
        ({"context": context(**{"stream->outputfields": []})}, "the handshake has context['stream->outputfields'] in anot"),
        ({"context": context(**{"stream->outputfields": {"default": [5]}})}, "the handshake has context['stream->outp"),
        ({"context": context(**{"source->stream->fields": {"a": {"b": [[1]]}}})}, "the handshake has context['source->st"),
        ({"context": context(**{"source->stream->fields": {"a": ["b"]}})}, "the handshake has context['source->stream"),
        ({"context": context(**{"stream->target->grouping": {"a": {"b": "FIELDS"}}})}, "the handshake has context['stream"),
    ],
)  # fmt: skip
def test_a_field_of_the_handshake(change: dict[str, Any], error: str) -> None:
    message = {"pidDir": "/pids", "conf": {}, "context": context()} | change
    child = ChildConnection()
    assert error_of(child, message).startswith(error)


@pytest.mark.parametrize("field", ["conf", "pidDir", "context"])
def test_a_missing_field_of_the_handshake(field: str) -> None:
    message = {key: value for key, value in json.loads(handshake()[: -len(END)]).items() if key != field}
    assert error_of(ChildConnection(), message).startswith(f"the handshake '{field}' is missing, where")


@pytest.mark.parametrize("message", [5, [], "x", None, b"garbage"])
def test_a_handshake_that_is_none(message: Any) -> None:
    assert error_of(ChildConnection(), message).startswith("the handshake is ")


@pytest.mark.parametrize(
    "missing",
    [
        "streams",
        "stream->outputfields",
        "stream->target->grouping",
        "source->stream->grouping",
        "source->stream->fields",
    ],
)
def test_a_context_may_lack_what_older_storms_do_not_send(missing: str) -> None:
    child = ChildConnection()
    (setup,) = child.receive_data(handshake(**{missing: None}))
    assert isinstance(setup, Setup)
    assert missing not in setup.context
    tup = received(child)
    if missing == "source->stream->fields":
        with pytest.raises(KeyError):
            tup["line"]
    else:
        assert tup["line"] == "a line"
    child.emit(["a", 1], anchors=[tup])


def test_fields_that_we_do_not_know_are_passed_over() -> None:
    child = shaken_child()
    (tup,) = child.receive_data(json.dumps(TUPLE | {"later": {"storm": 3}}).encode() + END)
    assert tup == Tuple("1", "lines", "default", 1, ["a line", 1])
    parent = shaken_parent("bolt", ["1"])
    assert parent.receive_data(b'{"command":"emit","tuple":[1],"later":true}' + END) == [Emit([1])]


# ---- the parent ----

EMIT = {"command": "emit", "tuple": ["a", 1]}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (EMIT | {"tuple": {}}, "an emit has 'tuple' {}, where an array is due"),
        (EMIT | {"stream": 5}, "an emit has 'stream' 5, where a string is due"),
        (EMIT | {"task": "3"}, "an emit has 'task' '3', where a task id is due"),
        (EMIT | {"task": 3.0}, "an emit has 'task' 3.0, where a task id is due"),
        (EMIT | {"task": True}, "an emit has 'task' True, where a task id is due"),
        (EMIT | {"task": -1}, "an emit has 'task' -1, where a task id is due"),
        (EMIT | {"need_task_ids": "no"}, "an emit has 'need_task_ids' 'no', where true or false is due"),
        (EMIT | {"need_task_ids": 0}, "an emit has 'need_task_ids' 0, where true or false is due"),
        (EMIT | {"anchors": {}}, "an emit has 'anchors' {}, where an array is due"),
        (EMIT | {"anchors": [11]}, "an emit has the anchor 11, where a string is due"),
        (EMIT | {"anchors": ["99"]}, "an emit is anchored to '99', which is finished or was never sent"),
        (EMIT | {"anchors": "99"}, "an emit is anchored to '99', which is finished or was never sent"),
        ({"command": "ack"}, "the command 'ack' lacks 'id', where the tuple's id, a string, is due"),
        ({"command": "fail", "id": None}, "the command 'fail' has 'id' None, where the tuple's id"),
        ({"command": "fail", "id": ["11"]}, "the command 'fail' has 'id' ['11'], where the tuple's id"),
        (
            {"command": "ack", "id": "99"},
            "the command 'ack' names '99', which was acked or failed before or never sent",
        ),
        ({"command": "log", "msg": 5}, "a log has 'msg' 5, where a string is due"),
        ({"command": "metrics", "params": 5}, "a metrics message has 'name' None, where a string is due"),
        ({"command": "metrics", "name": "", "params": 5}, "a metrics message has 'name' '', where a string is due"),
        ({"command": None}, "a message lacks 'command'"),
        ({"command": ["emit"]}, "a message has command ['emit'], not a string"),
        (
            {"command": "next"},
            "a message has command 'next'; a bolt may send ack, emit, error, fail, log, metrics, sync",
        ),
        (None, "a message is NoneType, not an object: 'null'"),
        (b"\xff\xfe", r"a message is not JSON ("),
    ],
)
def test_a_field_of_a_command(message: Any, error: str) -> None:
    assert error_of(shaken_parent("bolt", ["11"]), message).startswith(error)


@pytest.mark.parametrize("pid", ["12", 1.5, None, True, -1, []])
def test_the_pid_is_an_integer(pid: Any) -> None:
    parent = ParentConnection("spout")
    parent.setup({}, "/pids", {})
    assert error_of(parent, {"pid": pid}).startswith(f"the answer to the handshake has 'pid' {pid!r}, where an integer")


@pytest.mark.parametrize("stream", [None, ""])
def test_no_stream_is_the_default_stream(stream: Any) -> None:
    """ "The id of the stream this tuple was emitted to. Leave this empty to emit to default stream." """
    data = json.dumps(EMIT | {"stream": stream}).encode() + END
    assert shaken_parent().receive_data(data) == [Emit(["a", 1])]


@pytest.mark.parametrize(("nothing"), ["anchors", "task", "need_task_ids"])
def test_null_is_as_good_as_nothing(nothing: str) -> None:
    assert shaken_parent().receive_data(json.dumps(EMIT | {nothing: None}).encode() + END) == [Emit(["a", 1])]


def test_the_error_shows_the_bytes_shortened() -> None:
    error = error_of(shaken_parent(), EMIT | {"tuple": "x" * 1_000_000})
    assert len(error) < 500
    assert '{"command": "emit", "tuple": "xxx' in error
    assert 'xxx"}' in error
    assert "bytes)" in error


@pytest.mark.parametrize("data", [b"\xff" * 500, "é".encode() * 500, b"\x00" * 300, b"x" * 200, b""])
def test_any_bytes_can_be_shown(data: bytes) -> None:
    text = shortened(data)
    assert text.isprintable()
    assert len(text) < 1300


@pytest.mark.parametrize(
    "value",
    [b"1" * 4200, b"[" + b"1" * 4200 + b"]", rb'["\ud800"]', b"[1e400]", b"[" * 1000 + b"]" * 1000],
    ids=["long integer", "list", "surrogate", "infinity", "deep"],
)
def test_a_value_that_is_hard_to_show_is_still_an_error(value: bytes) -> None:
    for message in (b'{"command":"ack","id":%s}', b'{"command":"emit","tuple":[1],"stream":%s}', b'{"command":%s}'):
        error_of(shaken_parent("bolt", ["11"]), message % value)
    for message in (b'{"command":%s}', b'{"id":%s,"comp":"a","stream":"b","task":1,"tuple":[]}', b'["x",%s]'):
        error_of(shaken_child(), message % value)
    for message in (b'{"conf":%s}', b'{"conf":{},"pidDir":%s}', b'{"conf":{},"pidDir":"","context":{"taskid":%s}}'):
        error_of(ChildConnection(), message % value)


# ---- tuples as users see them ----


def test_a_tuple_by_position_and_by_name() -> None:
    tup = received(shaken_child())
    assert (tup[0], tup[1], tup[-1]) == ("a line", 1, 1)
    assert (tup["line"], tup["number"]) == ("a line", 1)
    assert (len(tup), list(tup), "a line" in tup, 5 in tup) == (2, ["a line", 1], True, False)
    assert (tup.get("line"), tup.get("nothing"), tup.get("nothing", 7)) == ("a line", None, 7)
    assert tup.fields == ["line", "number"]
    assert tup.asdict() == {"line": "a line", "number": 1}
    assert repr(tup) == "Tuple(id='11', component='lines', stream='default', task=1, values=['a line', 1])"
    assert {tup: "hashable"}[tup] == "hashable"


def test_a_field_that_is_not_there_is_said_with_those_that_are() -> None:
    child = shaken_child()
    with pytest.raises(KeyError, match="stream 'default' of 'lines' has no field 'word'; it has 'line', 'number'"):
        received(child, "11")["word"]
    with pytest.raises(KeyError, match="sent 1 values, too few to hold field 'number'"):
        received(child, "12", ["a line"])["number"]
    with pytest.raises(IndexError):
        received(child, "13")[2]
