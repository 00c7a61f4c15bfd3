"""The commands of a spout: next, ack, fail, activate, deactivate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section

if TYPE_CHECKING:
    from multilang.conformance.talk import Talk

section = Section("spout/commands", "Spout commands", f"{PAGE}, Spouts")
HEARD = [["heard"]]


def heard(t: Talk, command: str, id: Any) -> None:
    """Check that user code was called for this command, and with this id."""
    out = t.command(command, id)
    t.emitted(out, [[[command, id]]], "user code heard something else")


@section.must("next", "A next is answered by emits and logs, if any, and a sync.")
def _(t: Talk) -> None:
    t.handshake()
    t.next()


@section.must("next without an id", 'The page\'s next is {"command": "next"}.')
def _(t: Talk) -> None:
    t.handshake()
    t.command("next", text='{"command": "next"}')


@section.must(
    "ack and fail as the page shows them",
    'The page\'s ack is {"command": "ack", "id": "1231231"}, its fail the same with another word; Storm\'s have the id first.',
)
def _(t: Talk) -> None:
    t.handshake()
    t.command("ack", text='{"command": "ack", "id": "1231231"}')
    t.command("fail", text='{"command": "fail", "id": "1231231"}')
    t.next()


@section.must("activate", "An activate is answered by a sync.")
def _(t: Talk) -> None:
    t.handshake()
    t.command("activate")


@section.must("deactivate", "A deactivate is answered by a sync.")
def _(t: Talk) -> None:
    t.handshake()
    t.command("activate")
    t.command("deactivate")


@section.must("activate again", "A topology is deactivated and activated any number of times; next works after each.")
def _(t: Talk) -> None:
    t.handshake()
    for _ in range(5):
        t.command("activate")
        t.next()
        t.command("deactivate")


@section.must("an ack", "An ack is answered by a sync.")
def _(t: Talk) -> None:
    t.handshake()
    t.command("ack", "1231231")


@section.must("a fail", "A fail is answered by a sync.")
def _(t: Talk) -> None:
    t.handshake()
    t.command("fail", "1231231")


@section.must("next after a fail", "A failed tuple is the spout's to send again: the next works as before.")
def _(t: Talk) -> None:
    t.handshake()
    for number in range(10):
        t.next()
        t.command("fail", str(number))


@section.must("100 nexts", "A spout is asked for ever, whether it has something or not.")
def _(t: Talk) -> None:
    t.handshake()
    t.command("activate")
    for _ in range(100):
        t.next()


@section.must("100 acks in a row", "Acks come in a crowd, with no next between.")
def _(t: Talk) -> None:
    t.handshake()
    for number in range(100):
        t.command("ack", str(number))


@section.must("the id of an ack reaches the component", "The id is the one that was emitted.", steps="heard emit")
def _(t: Talk) -> None:
    t.handshake(on={"ack": HEARD})
    heard(t, "ack", "1231231")


@section.must("the id of a fail reaches the component", "The id is the one that was emitted.", steps="heard emit")
def _(t: Talk) -> None:
    t.handshake(on={"fail": HEARD})
    heard(t, "fail", "é-1231231 🐍")


@section.must(
    "an id that is a number",
    'The id can be a string or a number, and returns with its JSON type: 7 is not "7".',
    steps="heard emit",
    source=f"{PAGE}, Spouts: id; {MEASURED}",
)
def _(t: Talk) -> None:
    t.handshake(on={"ack": HEARD, "fail": HEARD})
    for id in (7, "7", 2147483648):
        heard(t, "ack", id)
        heard(t, "fail", id)


@section.must("ack and fail are not mixed up", "User code is told which of the two it was.", steps="heard emit")
def _(t: Talk) -> None:
    t.handshake(on={"ack": HEARD, "fail": HEARD})
    for number in range(6):
        heard(t, ["ack", "fail", "fail"][number % 3], str(number))


@section.must("activate and deactivate reach the component", "User code is told of both.", steps="heard emit")
def _(t: Talk) -> None:
    t.handshake(on={"activate": [["emit", ["on"]]], "deactivate": [["emit", ["off"]]]})
    came = [t.command(command).values for command in ("activate", "deactivate", "activate")]
    t.same(came, [[["on"]], [["off"]], [["on"]]], "user code was not told, or told otherwise")


@section.should("next before activate", "Storms before 1.0 say next without an activate: it works.")
def _(t: Talk) -> None:
    t.handshake()
    t.next()
    t.command("activate")


@section.should("an ack of an id that it never emitted", "After a restart, acks of the process before may come.")
def _(t: Talk) -> None:
    t.handshake()
    for id in ("unknown", 10**15, ""):
        t.command("ack", id)
        t.command("fail", id)


@section.should("deactivate twice, activate twice", "The same state twice is no fault.")
def _(t: Talk) -> None:
    t.handshake()
    for command in ("activate", "activate", "deactivate", "deactivate"):
        t.command(command)


section.watch(
    "MUST",
    "command.unknown",
    "a spout says emit, log, error, metrics and sync",
    "ack, fail and every other command from a spout halt the worker.",
    f"{MEASURED} (spout_unknown_command, spout_ack)",
)
