"""Unusual but correct programs pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases, runner
from multilang.conformance.case import selected
from multilang.conformance.monitor import Monitor
from multilang.conformance.probe import contract_of, kind_of
from multilang.conformance.reading import OutputReader
from multilang.conformance.target import Programs
from multilang.conformance.world import World
from tests.soak import soak_only

LEGAL = Path(__file__).parent / "legal.py"
MUTANT = Path(__file__).parent / "mutant.py"
ORDINARY = Path(__file__).parent / "ordinary" / "correct.py"
LIMIT = 60.0
linux = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")


def command(name: str) -> list[str]:
    return [sys.executable, str(LEGAL), name]


@pytest.mark.parametrize(
    ("name", "kind", "cases"),
    [
        ("NullsBolt", "bolt", ("bolt/emit", "bolt/anchors")),
        ("NullsSpout", "spout", ("spout/emit",)),
        ("KnowsWhatItEmittedSpout", "spout", ("spout", "common/json", "common/error")),
        ("LogsAllItSaysSpout", "spout", ("spout/sync", "common/log", "common/error")),
        ("EndsBehindAnExceptionSpout", "spout", ("spout/commands/15", "common/error/6")),
        pytest.param("SignsOfLifeBolt", "bolt", ("bolt/tick/2", "bolt/heartbeat/11"), marks=soak_only),
        ("ItsFileComesLaterBolt", "bolt", ("common/pid/1", "common/pid/4", "common/pid/6", "common/pid/7")),
        pytest.param("InASessionOfItsOwnBolt", "bolt", ("common/pid",), marks=linux),
    ],
)
def test_no_case_fails(name: str, kind: str, cases: tuple[str, ...]) -> None:
    result = Run(Target(command(name), kind, timeout=LIMIT, contract=True)).run(selected(all_cases(kind), cases))
    assert [f"{case.path}: {case.why}" for case in result.cases if case.status != "passed"] == []


@pytest.mark.parametrize(
    ("name", "kind", "cases"),
    [
        ("PassesOverWhatItCantReadBolt", "bolt", ("bolt/task_ids/14", "bolt/task_ids/15")),
        ("CantReadHalfLettersSpout", "spout", ("spout/task_ids/9", "spout/task_ids/10")),
    ],
)
def test_what_json_has_not_is_left_to_the_should_that_asks_for_it(name: str, kind: str, cases: tuple[str, ...]) -> None:
    result = Run(Target(command(name), kind, timeout=LIMIT, contract=True)).run(selected(all_cases(kind), cases))
    assert {case.status for case in result.cases} <= {"passed", "skipped"}, [case.why for case in result.cases]
    assert "passed" in {case.status for case in result.cases}


def test_a_stray_line_at_the_end_fails_the_framing_and_leaves_all_else_to_be_judged() -> None:
    target = Target(command("ComplainsAtItsEndSpout"), "spout", timeout=LIMIT, contract=True)
    cases = selected(all_cases("spout"), ("spout/ordinary", "common/framing/1", "common/framing/4"))
    result = Run(target).run(cases)
    failed = {case.path for case in result.cases if case.status != "passed"}
    assert len(failed) == 1
    assert failed < {case.path for case in cases if case.path.startswith("common/framing")}


@soak_only  # it waits for several limits
def test_a_long_script_that_is_never_read_is_no_slow_start() -> None:
    target = Target(command("NeedsLongForALongScriptSpout"), "spout", timeout=5.0, contract=True)
    chosen = selected(all_cases("spout"), ("common/handshake/1", "common/sizes/7"))
    result = Run(target, again=False).run(chosen)
    assert [(case.path, case.status) for case in result.cases] == [
        ("common/handshake/1", "passed"),
        ("common/sizes/7", "failed"),
    ]
    assert not result.bad()


def test_a_case_is_never_repeated_with_a_shorter_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_PATIENCE", 0)  # the limit is one second from the beginning
    monkeypatch.setattr(runner, "_AGAIN", 0)  # as behind many that were late again
    chosen = selected(all_cases("bolt"), ("bolt/heartbeat/2", "bolt/heartbeat/3"))
    monkeypatch.setattr(runner, "_GATES", {"bolt": ("common/handshake/1",)})
    result = Run(Target(command("LateOnceBolt"), "bolt", timeout=4.0, contract=False)).run(chosen)
    assert [(case.path, case.status) for case in result.cases] == [(case.path, "passed") for case in chosen]


def test_what_is_watched_is_looked_at_again_if_the_ordinary_work_ran_out_of_time(tmp_path: Path) -> None:
    target = Target([*command("HangsOnceBolt"), str(tmp_path)], "bolt", timeout=2.0, contract=False)
    watched = next(case for case in all_cases("bolt") if case.watch == ("emit.tuple",))
    [result] = Run(target).run([watched]).cases
    assert (result.status, result.why.partition(" ")[0]) == ("passed", "watched")


@pytest.mark.parametrize(
    ("program", "should"),
    [
        ([LEGAL, "AllElseIsATupleBolt"], "common/unknown/3"),
        ([MUTANT, "IdsAreNumbers"], "bolt/tuple/5"),
    ],
)
def test_what_only_a_should_brings_about_breaks_no_must(program: list[object], should: str) -> None:
    target = Target([sys.executable, *map(str, program)], "bolt", timeout=LIMIT)
    watched = ("bolt/ack", "bolt/anchors", "common/framing")
    result = Run(target).run(selected(all_cases("bolt"), (should, *watched)))
    assert [case.path for case in result.cases if case.status != "passed"] == [should]
    assert not result.bad()
    assert result.bad(strict=True)


@pytest.mark.parametrize(("name", "status"), [("ThreadsBolt", "passed"), ("ThreadsThatAckTwiceBolt", "failed")])
def test_what_a_bolt_does_later_is_seen(name: str, status: str) -> None:
    target = Target(command(name), "bolt", timeout=LIMIT, contract=False)
    [case] = Run(target).run(selected(all_cases("bolt"), ("bolt/ack/6",))).cases
    assert (case.status, case.why.partition(" ")[0]) in ((status, "watched"), (status, "ack"))


def test_a_bolt_that_acks_with_its_tick_alone_is_judged_by_its_acks() -> None:
    target = Target([sys.executable, str(ORDINARY), "TickBatchBolt"], "bolt", timeout=LIMIT, contract=False)
    [case] = Run(target).run(selected(all_cases("bolt"), ("bolt/ack/6",))).cases
    assert (case.status, case.why.partition(" ")[0]) == ("passed", "watched")


def test_a_start_may_take_the_whole_limit_when_answers_may_not_any_more() -> None:
    target = Target(command("SlowBehindAHeartbeatBolt"), "bolt", timeout=LIMIT, contract=True)
    with Programs(target, ahead=False) as programs, programs.conversation(0.5) as conversation:
        conversation.handshake()  # which takes longer than half a second
        assert conversation.timeout == 0.5


@pytest.mark.parametrize(("step", "found"), [("forgets", ["pid.vanished"]), ("ends", [])])
def test_the_file_of_a_program_that_ends_may_go(step: str, found: list[str]) -> None:
    target = Target(command("RemovesItsFileBolt"), "bolt", contract=True, knows=("conf",))
    with Programs(target) as programs, programs.conversation(LIMIT) as conversation:
        conversation.handshake()
        conversation.steps([step])
        conversation.wait(lambda: not conversation.pid_files() or None, "the end of the file", often=True)
        conversation.timeout = LIMIT if found else 1.0  # it does not answer, in any time
        conversation.look_at_pid_file()
    assert [finding.code for finding in conversation.findings] == found


def test_a_slow_program_that_answers_a_heartbeat_first_still_keeps_the_contract() -> None:
    with Programs(Target(command("SlowBehindAHeartbeatBolt"), "bolt", timeout=LIMIT)) as programs:
        steps = contract_of(programs)
    assert steps is not None
    assert "keep" in steps


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SignsOfLifeBolt", "bolt"),
        ("SignsOfLifeAloneBolt", "bolt"),
        ("ThreadsBolt", "bolt"),
        ("SyncsToAnythingSpout", "spout"),
        ("NullsSpout", "spout"),
    ],
)
def test_it_is_found_out_what_a_program_is(name: str, kind: str) -> None:
    with Programs(Target(command(name), timeout=LIMIT)) as programs:
        assert kind_of(programs) == kind


def test_an_end_that_does_not_come_in_time_is_waited_for_again() -> None:
    target = Target(
        [sys.executable, str(MUTANT), "IgnoresSigterm"], "spout", timeout=LIMIT, contract=True, knows=("log",)
    )
    run = Run(target)
    run.target.timeout = 1.0
    limits = []
    play = run._play

    def played(programs, case, limit=None, settle=True):
        if limit is not None:
            limits.append((case.path, limit))
        return play(programs, case, limit, settle)

    run._play = played
    run._is_open = True
    [case] = run.run(selected(all_cases("spout"), ("common/end/4",))).cases
    assert case.status == "failed"
    assert limits == [("common/end/4", 3.0)]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_messages_end_at_the_same_lines_in_whatever_pieces_they_come(size: int) -> None:
    bodies = [
        b'{"x": "end"}',
        b'{\n"end"\n:\n1}',
        b'{"a":\n"the end"\n}\nendless\nend.\n-end',
        b"",
        b"x" * 99 + b"end",
        b" " * 70 + b"end",
    ]
    ends = [b"end", b" end", b"end\t", b"end\r", b"  end  ", b"end"]
    text = b"".join(body + b"\n" + end + b"\n" for body, end in zip(bodies, ends, strict=True)) + b"\nen"
    reader, unread, found = OutputReader(), bytearray(), []
    for start in range(0, len(text), size):
        unread += text[start : start + size]
        while (message := reader.take(unread)) is not None:
            found.append(message.raw)
    assert found == [body + b"\n" + end + b"\n" for body, end in zip(bodies, ends, strict=True)]
    assert unread == b"\nen"


@pytest.mark.parametrize("depth", [390, 600, 990, 100_000])
def test_a_message_of_any_depth_is_read(depth: int) -> None:
    text = b'{"command":"log","msg":"\\u0041","x":' + b"[" * depth + b'"\\ud800"' + b"]" * depth + b"}\nend\n"
    message = OutputReader().take(bytearray(text))
    assert message is not None
    codes = {finding.code for finding in message.findings}
    assert codes == {"unicode.surrogate"} if depth < 400 else "framing.depth" in codes


def test_an_integer_of_any_length_is_read() -> None:
    message = OutputReader().take(bytearray(b'{"command":"emit","tuple":[-%s]}\nend\n' % (b"7" * 5000)))
    assert message is not None
    assert message.findings == []
    assert str(message.values[0]) == "-" + "7" * 5000


def test_what_is_found_in_a_long_message_is_told_in_short() -> None:
    monitor = Monitor(World())
    monitor.pid = 1
    message = OutputReader().take(bytearray(b'{"command":"emit","tuple":"%s"}\nend\n' % (b"x" * 1_000_000)))
    assert message is not None
    [finding] = monitor.check(message)
    assert finding.code == "emit.tuple"
    assert len(finding.detail) < 1000
