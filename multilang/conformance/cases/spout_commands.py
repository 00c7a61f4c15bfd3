"""The commands of a spout: next, ack, fail, activate, deactivate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.spout_ordinary import ACK, FAIL, begin, careful_next, own
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("spout/commands", "Spout commands", f"{PAGE}, Spouts")
REPORT = [["heard"]]


def under_way(t: Conversation, *ids: Any, **on: Any) -> None:
    """Have the spout emit a tuple with each id, before what it does on other commands is asked for."""
    steps = [["emit", ["under way"], {"id": id}] for id in ids]
    t.handshake(storm_text([steps]), on=on)
    t.command("activate")
    t.next()


def check_called(t: Conversation, command: str, id: Any) -> None:
    """Check that user code was called for this command, and with this id."""
    out = t.command(command, id)
    t.emitted(out, [[[command, id]]], "user code was called otherwise")


@section.must("next", "A next is answered by emits and logs, if any, and a sync.")
def _(t: Conversation) -> None:
    t.handshake()
    careful_next(t)


@section.must(
    "next without an id",
    'The page\'s next is {"command": "next"}.',
)
def _(t: Conversation) -> None:
    t.handshake()
    t.command("next", text='{"command":"next"}')


@section.must(
    "ack and fail as the page shows them",
    'The page\'s ack is {"command": "ack", "id": "1231231"}, its fail the same with another word; Storm\'s have the id first.',
    after=(ACK, FAIL),
)
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    for command in ("ack", "fail"):
        id = own(t, used)
        t.command(command, text=f'{{"command":"{command}","id":{storm_text(id)}}}')
    t.next()


@section.must(
    "activate and deactivate",
    "Each is answered by a sync. A topology is deactivated and activated any number of times; next works after each.",
    after=("spout/commands/5",),
)
def _(t: Conversation) -> None:
    t.handshake()
    for _ in range(5):
        t.command("activate")
        t.next()
        t.command("deactivate")


@section.must("100 nexts", "A spout is asked for ever, whether it has something or not.")
def _(t: Conversation) -> None:
    t.handshake()
    t.command("activate")
    for _ in range(100):
        t.next()


@section.must("100 acks in a row", "Acks come in a crowd, with no next between.", steps="emit", after=(ACK, FAIL))
def _(t: Conversation) -> None:
    ids = [str(number) for number in range(100)]
    under_way(t, *ids)
    for id in ids:
        t.command("ack", id)


@section.must(
    "the id of an ack reaches the component",
    "The id is the one that was emitted.",
    steps="heard emit",
    after=(ACK, FAIL),
)
def _(t: Conversation) -> None:
    under_way(t, "1231231", ack=REPORT)
    check_called(t, "ack", "1231231")


@section.must(
    "the id of a fail reaches the component",
    "The id is the one that was emitted.",
    steps="heard emit",
    after=(ACK, FAIL, "common/unicode/1"),
)
def _(t: Conversation) -> None:
    under_way(t, "é-1231231 🐍", fail=REPORT)
    check_called(t, "fail", "é-1231231 🐍")


@section.must(
    "an id that is a number",
    'The id can be a string or a number, and returns with its JSON type: 7 is not "7".',
    steps="heard emit",
    source=f"{PAGE}, Spouts: id; {MEASURED}",
    after=(ACK, FAIL),
)
def _(t: Conversation) -> None:
    acked, failed = (7, "8", 2147483648), ("7", 8, 2147483649)
    under_way(t, *acked, *failed, ack=REPORT, fail=REPORT)
    for ack, fail in zip(acked, failed, strict=True):
        check_called(t, "ack", ack)
        check_called(t, "fail", fail)


@section.must(
    "ack and fail are not mixed up", "User code learns which of the two it was.", steps="heard emit", after=(ACK, FAIL)
)
def _(t: Conversation) -> None:
    under_way(t, *map(str, range(6)), ack=REPORT, fail=REPORT)
    for number in range(6):
        check_called(t, ["ack", "fail", "fail"][number % 3], str(number))


@section.must(
    "activate and deactivate reach the component",
    "User code is called for both.",
    steps="heard emit",
    after=("spout/commands/4",),
)
def _(t: Conversation) -> None:
    t.handshake(on={"activate": [["emit", ["on"]]], "deactivate": [["emit", ["off"]]]})
    came = [t.command(command).values for command in ("activate", "deactivate", "activate")]
    t.same(came, [[["on"]], [["off"]], [["on"]]], "user code was not called, or called otherwise")


@section.should("deactivate twice, activate twice", "The same state twice is no fault.", after=("spout/commands/4",))
def _(t: Conversation) -> None:
    t.handshake()
    for command in ("activate", "activate", "deactivate", "deactivate"):
        t.command(command)


section.watch(
    "MUST",
    "command.unknown",
    "a spout sends emit, log, error, metrics and sync",
    "ack, fail and every other command from a spout halt the worker.",
    f"{MEASURED} (spout_unknown_command, spout_ack)",
)


@section.must(
    "activate resumes",
    "A spout that was deactivated and is activated again resumes where it was: what it emitted already is not emitted again.",
    steps="emit",
    source="the conformance contract: the n-th next has the n-th list; Storm's ISpout: activate",
    after=("spout/commands/4",),
)
def _(t: Conversation) -> None:
    t.handshake(storm_text([[["emit", [n]]] for n in range(6)]))
    t.command("activate")
    came = []
    for _ in range(3):
        came += [t.next().values, t.next().values]
        t.command("deactivate")
        t.command("activate")
    t.same(came, [[[n]] for n in range(6)], "it restarted, or left something out")


@section.must(
    "a next whose user code fails is answered, too",
    "Until the sync, all spouts of the worker are locked up: a spout whose user code raised an exception sends its sync, or ends, "
    "so that Storm restarts it.",
    steps="throw",
)
def _(t: Conversation) -> None:
    t.handshake('[[["throw","the exception"]]]')
    t.command("activate")
    try:
        t.next()
        t.settle()  # it may send its sync, and end then
    except CaseFailed:
        if not t.child.output_ended:
            raise
    t.monitor.leaving = True


@section.must(
    "acks and fails while it is inactive reach the component",
    "Tuples are under way when a topology is deactivated: their acks and fails come, and user code is called for them.",
    steps="heard emit",
    source=f"{PAGE}, Spouts",
    after=("spout/commands/7", "spout/commands/8", "spout/commands/11"),
)
def _(t: Conversation) -> None:
    script = [[["emit", [n], {"id": f"m{n}"}] for n in range(2)]]
    t.handshake(storm_text(script), on={"ack": [["heard"]], "fail": [["heard"]]})
    t.command("activate")
    t.next()
    t.command("deactivate")
    calls = [t.command("ack", "m0").values, t.command("fail", "m1").values]
    t.same(calls, [[[["ack", "m0"]]], [[["fail", "m1"]]]], "user code was not called")


@section.must(
    "an ack is no next",
    "A command is answered by what user code does on it: what is due at the next next does not come with an ack or a fail.",
    steps="emit",
    source="the conformance contract: the n-th next has the n-th list",
    after=(ACK, FAIL),
)
def _(t: Conversation) -> None:
    t.handshake(storm_text([[["emit", [n], {"id": f"m{n}"}]] for n in range(4)]))
    t.command("activate")
    came = []
    for command in ("ack", "fail"):
        out = t.next()
        came += [out.values, t.command(command, out.emits[0].value["id"]).values, t.next().values]
    t.same(came, [[[0]], [], [[1]], [[2]], [], [[3]]], "emits of a next came at another command, or none at the next")


def fails_at(t: Conversation, command: str) -> None:
    """Let user code fail at a command, and check that it is answered all the same, and that a next after it works."""
    script = [[["emit", [n], {"id": f"m{n}"}]] for n in range(2)]
    t.handshake(storm_text(script), on={command: [["throw", "the exception"]]})
    emitted = command in ("ack", "fail")
    if command != "activate":
        t.command("activate")
    if emitted:
        t.next()
    try:
        t.command(command, "m0" if emitted else "")
        if command == "deactivate":
            t.command("activate")
        behind = t.next().values
    except CaseFailed:
        if not t.child.output_ended:
            raise
        t.monitor.leaving = True  # with its sync or without, it ended, and Storm restarts it
        return
    t.same(behind, [[int(emitted)]], "the next after it was not worked on")


for _command, _after in (
    ("ack", ACK),
    ("fail", FAIL),
    ("activate", "spout/commands/11"),
    ("deactivate", "spout/commands/11"),
):
    section.must(
        f"{_command} whose user code fails",
        f"{_command} is answered by a sync, or by the end of the process, also if user code raised an exception.",
        steps="throw emit",
        after=(_after,),
    )(partial(fails_at, command=_command))


@section.must(
    "all that is done on a next is done on the other commands",
    "A spout emits, with and without an id, and logs on an ack, a fail, an activate and a deactivate as on a next.",
    steps="emit log",
    after=(ACK, FAIL, "spout/commands/11", "spout/emit/7", "spout/emit/8", "common/log/1"),
)
def _(t: Conversation) -> None:
    commands = ("activate", "ack", "fail", "deactivate")
    on = {
        each: [["emit", [each], {"id": f"of {each}"}], ["log", f"log of {each}"], ["emit", [1], {"stream": "other"}]]
        for each in commands
    }
    t.handshake(storm_text([[["emit", [n], {"id": n}] for n in range(2)]]), on=on)
    outs = {"activate": t.command("activate")}
    t.next()
    outs |= {"ack": t.command("ack", 0), "fail": t.command("fail", 1), "deactivate": t.command("deactivate")}
    for each in commands:
        came = [[message.stream, message.values, message.value.get("id")] for message in outs[each].emits]
        t.same(came, [["default", [each], f"of {each}"], ["other", [1], None]], f"the emits of {each} are others")
        t.check(
            any(message.value.get("msg") == f"log of {each}" for message in outs[each].of("log")),
            f"what user code logs on {each} did not come before its sync",
            f"a log 'log of {each}'",
            outs[each].of("log"),
        )


@section.must(
    "acks and fails behind a deactivate and an activate reach the component",
    "What was under way before a topology was deactivated is still: user code learns how it ended.",
    steps="heard emit",
    source=f"{PAGE}, Spouts",
    after=("spout/commands/7", "spout/commands/8", "spout/commands/11"),
)
def _(t: Conversation) -> None:
    under_way(t, "m0", "m1", ack=REPORT, fail=REPORT)
    t.command("deactivate")
    t.command("activate")
    check_called(t, "ack", "m0")
    check_called(t, "fail", "m1")
