"""Unknown fields and commands, which another version of Storm may add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.json_text import ping, ping_text
from multilang.conformance.errors import CaseFailed
from multilang.conformance.world import framed, storm_text, tuple_message

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section(
    "common/unknown", "Unknown fields and commands", f"{PAGE}: messages are objects, whose other keys nobody forbids"
)


@section.must(
    "unknown keys of a message",
    "A key that is not known is ignored.",
    after=("bolt/ordinary/1", "bolt/ordinary/3", "bolt/heartbeat/7"),
)
def _(t: Conversation) -> None:
    more = ',"future":[{"command":"ack"}],"":null}'
    ping(t, ping_text(t)[:-1] + more)
    if t.kind == "bolt":
        id = t.new_id()
        message = tuple_message(id, t.world.tuples[0])
        t.will_finish(id)
        t.send(framed(storm_text(message)[:-1] + more))
        t.settle()


section.watch(
    "MUST",
    "command.missing command.type",
    "every message after the pid has a command, a string",
    "Without one, or with a number, the worker halts.",
    f"{MEASURED} (no_command); Storm's JsonSerializer",
)


@section.should(
    "a message of an unknown kind",
    "An object that is neither tuple nor command is ignored, or ends the process with a reported reason: it never hangs.",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.monitor.leaving = True
    before = t.syncs
    if t.kind == "spout":
        # Storm never sends it, so a sync and no answer are both allowed.
        t.monitor.commands += 1
        t.send(framed('{"command":"future","id":""}'))
        t.begin("next")
    else:
        t.send(framed('{"command":"future","id":"1"}'))
        t.heartbeat()
    try:
        t.wait(lambda: t.syncs > before or None, "the answer to the message after it, or the end of the process")
    except CaseFailed:
        reason = t.received.of("error", "log") or t.child.error_text.strip()
        if not (t.child.output_ended and reason):
            raise
