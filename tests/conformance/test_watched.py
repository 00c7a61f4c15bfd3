"""Each fault that is watched for is found in a message that has it, and in no other."""

from __future__ import annotations

import pytest

from multilang.conformance import all_cases
from multilang.conformance.advice import ADVICE
from multilang.conformance.monitor import Monitor
from multilang.conformance.reading import OutputReader, leftover
from multilang.conformance.world import World

# What a program writes after its pid, when "1" is a tuple in work, "2" one that was acked and "3" a heartbeat.
FAULTS = {
    "pid.again": b'{"pid": 7}',
    "framing.json": b"{'command': 'sync'}",
    "framing.stray": b'hello\n{"command": "sync"}',
    "framing.object": b'["sync"]',
    "framing.empty": b"",
    "framing.bom": b'\xef\xbb\xbf{"command": "sync"}',
    "framing.utf8": b'{"command": "log", "msg": "\xe9"}',
    "framing.depth": b'{"command": "sync", "x": ' + b"[" * 401 + b"]" * 401 + b"}",
    "framing.second": b'{"command": "sync"} "and more"',
    "framing.lost": b'{"command": "sync"}\n{"command": "sync"}',
    "framing.crlf": b'{"command": "sync"}\r',
    "framing.blank": b'\n{"command": "sync"}',
    "framing.control": b'{"command": "log", "msg": "a\tb"}',
    "framing.duplicate": b'{"command": "sync", "command": "sync"}',
    "unicode.surrogate": b'{"command": "log", "msg": "\\ud800"}',
    "unicode.delete": b'{"command": "log", "msg": "a\x7f\\n"}',
    "numbers.constant": b'{"command": "emit", "tuple": [NaN]}',
    "log.type": b'{"command": "log", "msg": {}}',
    "log.empty": b'{"command": "log"}',
    "log.level": b'{"command": "log", "msg": "", "level": 5}',
    "error.type": b'{"command": "error", "msg": 1}',
    "error.empty": b'{"command": "error", "msg": null}',
    "metrics.name": b'{"command": "metrics", "name": "other", "params": 1}',
    "command.missing": b'{"done": true}',
    "command.type": b'{"command": 1}',
    "command.unknown": b'{"command": "flush"}',
    "tuple.id": b'{"command": "ack", "id": "1.0"}',
    "heartbeat.finished": b'{"command": "ack", "id": "3"}',
    "heartbeat.anchored": b'{"command": "emit", "tuple": [1], "anchors": ["3"]}',
    "emit.tuple": b'{"command": "emit", "tuple": "x"}',
    "emit.stream-type": b'{"command": "emit", "tuple": [1], "stream": 1}',
    "emit.stream": b'{"command": "emit", "tuple": [1], "stream": "nosuch"}',
    "emit.stream-empty": b'{"command": "emit", "tuple": [1], "stream": ""}',
    "emit.need": b'{"command": "emit", "tuple": [1], "need_task_ids": "false"}',
    "emit.arity": b'{"command": "emit", "tuple": []}',
    "anchors.finished": b'{"command": "emit", "tuple": [1], "anchors": ["2"]}',
    "anchors.unknown": b'{"command": "emit", "tuple": [1], "anchors": ["4"]}',
    "anchors.type": b'{"command": "emit", "tuple": [1], "anchors": [1]}',
    "anchors.single": b'{"command": "emit", "tuple": [1], "anchors": "1"}',
    "anchors.twice": b'{"command": "emit", "tuple": [1], "anchors": ["1", "1"]}',
    "ack.again": b'{"command": "ack", "id": "2"}',
    "ack.unknown": b'{"command": "ack", "id": "4"}',
    "ack.id-type": b'{"command": "ack", "id": 1}',
    "fail.again": b'{"command": "fail", "id": "2"}',
    "fail.unknown": b'{"command": "fail", "id": "4"}',
    "fail.id-type": b'{"command": "fail"}',
    "direct.type": b'{"command": "emit", "tuple": [1], "stream": "direct", "task": "8"}',
    "direct.grouping": b'{"command": "emit", "tuple": [1], "task": 4294967304}',
    "direct.regular": b'{"command": "emit", "tuple": [1], "stream": "direct"}',
    "direct.nobody": b'{"command": "emit", "tuple": [1], "stream": "direct", "task": 4294967395}',
    "direct.plain": b'{"command": "emit", "tuple": [1], "stream": "direct", "task": 8}',
}
SPOUTS = {
    "sync.twice": b'{"command": "sync"}',
    "emit.id-type": b'{"command": "emit", "tuple": [1], "id": {"a": 1}}',
    "emit.late": b'{"command": "emit", "tuple": [1]}',
    "command.unknown": b'{"command": "ack", "id": "1"}',
}
UNASKED = {"sync.twice", "emit.late"}
FIRST = {"pid.missing": b'{"command": "sync"}', "pid.type": b'{"pid": "7"}'}
OF_TWO = {"emit.id-again"}
NO_MESSAGES = {
    "framing.end",
    "framing.partial",
    "framing.flood",
    "pid.vanished",
}  # found in bytes; see below, and the floods of hostile.py; the last in pidDir


def found(data: bytes, kind: str = "bolt", pid: int | None = 7, commands: int = 0) -> set[str]:
    monitor = Monitor(World(kind))
    monitor.pid, monitor.commands = pid, commands
    monitor.pending, monitor.finished, monitor.heartbeats = ["1"], {"2": "ack"}, {"3"}
    message = OutputReader().take(bytearray(data))
    assert message is not None
    findings = message.findings
    if not any(finding.halts for finding in findings):
        findings = findings + monitor.check(message)
    return {finding.code for finding in findings}


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_of_a_bolt_is_found(code: str) -> None:
    assert found(FAULTS[code] + b"\nend\n") == {code}


@pytest.mark.parametrize("code", SPOUTS)
def test_a_fault_of_a_spout_is_found(code: str) -> None:
    assert found(SPOUTS[code] + b"\nend\n", "spout", commands=0 if code in UNASKED else 1) == {code}


@pytest.mark.parametrize("code", FIRST)
def test_a_fault_of_the_first_message_is_found(code: str) -> None:
    assert found(FIRST[code] + b"\nend\n", pid=None) == {code}


@pytest.mark.parametrize(
    "values",
    [b'"\\n\x7f"', b'{"\x7f\\"": 1}', b'[[{"a": ["\\\\\x7f"]}]]', b'"a", "\\"", "\\u0041\x7f"', b'"\x7f\\u007f"'],
)
def test_a_raw_delete_that_storm_would_drop_is_found_wherever_it_is(values: bytes) -> None:
    assert "unicode.delete" in found(b'{"command": "emit", "tuple": [%s]}\nend\n' % values)


@pytest.mark.parametrize(
    ("kind", "given", "emits", "finds"),
    [
        ("bolt", {1}, [b"[1]", b"[1, 2]"], True),
        ("bolt", {1, 2}, [b"[1]", b"[1, 2]"], False),
        ("spout", set(), [b"[]"], True),
        ("bolt", {1}, [b"[1, 2]", b"[3, 4]"], False),
        ("bolt", {1}, [b'[1], "stream": "a"', b'[1, 2], "stream": "b"', b'[3], "stream": "a"'], False),
    ],
)
def test_a_stream_that_is_not_declared_has_one_number_of_values(
    kind: str, given: set[int], emits: list[bytes], finds: bool
) -> None:
    monitor = Monitor(World(kind, streams=None, contract=False))
    monitor.pid, monitor.commands, monitor.given = 7, 1, given
    codes = set()
    for values in emits:
        message = OutputReader().take(bytearray(b'{"command": "emit", "tuple": %s}\nend\n' % values))
        assert message is not None
        codes |= {finding.code for finding in monitor.check(message)}
    assert ("emit.arity" in codes) == finds


@pytest.mark.parametrize(
    ("second", "finds"),
    [
        (b'[2], "id": 7', True),
        (b'[1], "id": 7', False),  # sent again
        (b'[2], "id": "7"', False),
        (b'[2], "id": 7, "stream": "other"', False),
    ],
)
def test_two_tuples_under_way_with_one_id_are_found(second: bytes, finds: bool) -> None:
    monitor = Monitor(World("spout", contract=False))
    monitor.pid, monitor.commands = 7, 1
    codes = set()
    for emit in (b'[1], "id": 7', second):
        message = OutputReader().take(bytearray(b'{"command": "emit", "tuple": %s}\nend\n' % emit))
        assert message is not None
        codes |= {finding.code for finding in monitor.check(message)}
    assert codes == ({"emit.id-again"} if finds else set())


def test_a_fault_of_the_last_bytes_is_found() -> None:
    assert found(b'{"command": "sync"}\nend \n') == {"framing.end"}
    rest = leftover(bytearray(b'{"command": "sy'))
    assert rest is not None
    assert rest.code == "framing.partial"
    assert leftover(bytearray(b"\n")) is None


@pytest.mark.parametrize(
    "message",
    [
        b'{"command": "sync"}',
        b'{"command": "log", "msg": "a\\tb \xc3\xa9 \\ud83d\\udc0d", "level": null}',
        b'{"command": "emit", "tuple": [1e5], "anchors": ["1"], "need_task_ids": false, "stream": null, "more": [[]]}',
        b'{\n"command":\n"emit", "tuple": [1], "stream": "direct", "task": 4294967304}',
        b'{"command": "fail", "id": "1"}',
        b'{"command": "emit", "tuple": [["\x7f", "\\n", "a\\u007f\\n", {"\x7f": "\\\\"}]]}',
        b'{"command": "metrics", "name": "conformance", "params": {}}',
    ],
)
def test_nothing_is_found_in_a_message_without_fault(message: bytes) -> None:
    assert found(message + b"\nend\n") == set()


def test_nothing_is_watched_for_that_is_not_tried_here() -> None:
    watched = {code for case in all_cases() for code in case.watch}
    assert watched == {*FAULTS, *SPOUTS, *FIRST, *NO_MESSAGES, *OF_TWO}


def test_there_is_advice_for_each_of_them() -> None:
    assert {code for case in all_cases() for code in case.watch} == set(ADVICE)
