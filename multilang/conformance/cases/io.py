"""Slow and split I/O: a pipe may be read in any pieces, and both ends may be slow."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.bolt_ordinary import blamed
from multilang.conformance.cases.json_text import ping, ping_text
from multilang.conformance.cases.spout_ordinary import ACK, FAIL, MANY, STATES, own, script
from multilang.conformance.errors import CaseFailed, NotApplicable, SlowStart
from multilang.conformance.world import framed, storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section(
    "common/io", "Slow and split input and output", f"{PAGE}, The Protocol: lines end with 'end', wherever a read does"
)

BEATS = "bolt/heartbeat/9"  # it loses heartbeats, however they come
_SINGLE = 8
_IDLE = 0.6  # seconds
_SILENCE = 3.0


def bytewise(data: bytes) -> Iterator[bytes]:
    """Return the data one byte at a time."""
    return (data[i : i + 1] for i in range(len(data)))


def at(*marks: bytes) -> object:
    """Return a function that cuts data inside of each mark, between its first byte and the rest."""

    def cut(data: bytes) -> list[bytes]:
        places = sorted(data.index(mark) + 1 for mark in marks)
        return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]

    return cut


def ends_bytewise(data: bytes) -> Iterator[bytes]:
    """Return the data's beginning and end one byte at a time, and what is between them in pieces of 97 bytes."""
    edge = 300
    yield from bytewise(data[:edge])
    yield from (data[i : min(i + 97, len(data) - edge)] for i in range(edge, len(data) - edge, 97))
    yield from bytewise(data[-edge:])


@section.must("the handshake byte by byte", "Reads may return a single byte.")
def _(t: Conversation) -> None:
    t.handshake(pieces=ends_bytewise)
    t.settle()


@section.must("a message byte by byte", "Reads may return a single byte: not every read holds a whole line.")
def _(t: Conversation) -> None:
    t.handshake()
    if t.kind == "spout":
        t.command("next", pieces=bytewise)
    else:
        t.heartbeat(pieces=bytewise)
        t.wait_sync(1)


@section.must("cut inside of the closing line", "The line 'end' may come in two reads, its line feed in a third.")
def _(t: Conversation) -> None:
    t.handshake()

    def cut(data: bytes) -> list[bytes]:
        return [data[:-3], data[-3:-1], data[-1:]]

    if t.kind == "spout":
        t.command("next", pieces=cut)
    else:
        t.heartbeat(pieces=cut)
        t.wait_sync(1)


@section.must("cut before the closing line", "A message whose line 'end' is late is waited for.")
def _(t: Conversation) -> None:
    t.handshake()
    if t.kind == "spout":
        t.command("next", pieces=lambda data: [data[:-4], data[-4:]])
    else:
        t.heartbeat(pieces=lambda data: [data[:-5], data[-5:-4], data[-4:]])
        t.wait_sync(1)


@section.must(
    "cut inside of a letter",
    "A read may end between the bytes of one letter.",
    steps="emit",
    after=("common/unicode/1", "common/unicode/2"),
)
def _(t: Conversation) -> None:
    text = "é|漢|🐍"
    cut = at("é".encode(), "漢".encode(), "🐍".encode())
    t.same(t.echo(storm_text(text), pieces=cut), text, "letters came out changed")  # type: ignore[arg-type]


@section.must(
    "cut inside of each letter's every byte",
    "Every byte of a text may come alone.",
    steps="emit",
    after=("common/unicode/1", "common/unicode/2"),
)
def _(t: Conversation) -> None:
    text = "naïve 漢字 🐍"
    t.same(t.echo(storm_text(text), pieces=bytewise), text, "letters came out changed")


@section.must(
    "cut inside of an escape",
    "A read may end within \\u00e9.",
    steps="emit",
    after=(
        "common/unicode/1",
        "common/json/8",
    ),
)
def _(t: Conversation) -> None:
    t.same(t.echo('"\\u00e9\\n"', pieces=at(b"\\u00e9", b"00e9", b"\\n")), "é\n", "escapes came out changed")  # type: ignore[arg-type]


@section.must(
    "the end of one message and the beginning of the next in one read",
    "A read may hold the end of one message and half of another, or several whole ones, behind which nothing comes.",
)
def _(t: Conversation) -> None:
    t.handshake()
    if t.kind == "spout":
        # Storm asks for one thing at a time, so only one message can be cut in two.
        t.command("next", pieces=lambda data: [data[: len(data) // 2], data[len(data) // 2 :]])
        t.next()
        return
    for _ in range(2):
        id = t.new_id()
        t.monitor.heartbeats.add(id)
    first, second = (framed(ping_text(t).replace("@id", id)) for id in sorted(t.monitor.heartbeats))
    t.send(first + second, pieces=lambda data: [data[: len(first) + 20], data[len(first) + 20 :]])
    t.wait_sync(2)
    with t.at_once():
        t.heartbeat()
        t.heartbeat()
    try:
        t.wait_sync(4)
    except CaseFailed as failure:
        if failure.timed_out and not is_behind(t):
            raise blamed(failure, BEATS) from None
        raise


def is_behind(t: Conversation) -> bool:
    """Return whether heartbeats that come one by one are all answered, each by the answer to the one before."""
    before = t.syncs
    for _ in range(_SINGLE):
        t.heartbeat(pieces=lambda data: [data])
    try:
        t.wait_sync(before + _SINGLE)
    except CaseFailed:
        return False
    return True


@section.must("what is written is flushed", "Output is not held back while the program waits for input.", steps="emit")
def _(t: Conversation) -> None:
    # Nothing is sent after this one input, so output that waits for more in a buffer never comes.
    [out] = t.perform([["emit", ["flushed"]]])
    t.emitted(out, [["flushed"]], "the emit did not come")


@section.must(
    "standard error that nobody reads",
    "Storm reads standard error when it has sent something: not before the pid, nor while a spout is at work. A program that "
    "writes more there than a pipe holds, 64 KB, waits for ever.",
    source=f"{MEASURED} (pre_stderr, spout_stderr)",
    after=(ACK, FAIL, STATES, MANY, "spout/ordinary/5"),
)
def _(t: Conversation) -> None:
    t.child.reading_error = False
    try:
        t.handshake(script())
    except SlowStart as slow:
        why = f"no pid came for {t.timeout:g} s while nobody read standard error"
        raise CaseFailed(why, slow.expected, slow.received, timed_out=True) from None
    if t.kind == "spout":
        used: list[object] = []
        for command in ("activate", "next", "next", "next", "ack", "next", "fail", "deactivate", "activate", "next"):
            t.child.reading_error = True
            try:
                id = own(t, used) if command in ("ack", "fail") else ""
            except NotApplicable:
                continue  # it emits nothing with an id
            t.linger()
            t.child.reading_error = False
            t.command(command, id)
    t.child.reading_error = True


@section.must(
    "a parent that reads late",
    "1 MB of output waits in a full pipe until the parent reads, and nothing is lost.",
    steps="emit",
    after=("bolt/heartbeat/14", "common/sizes/1"),
)
def _(t: Conversation) -> None:
    count, size = 100, 10_000
    steps = [["emit", [f"{n:04}" + "z" * size]] for n in range(count)]
    id = t.work(*steps)
    start = len(t.received)
    t.child.reading = False
    t.flush()  # the program has all of its input, and nobody reads its output
    until = monotonic() + 1  # a program that waits for task ids after each emit never fills the pipe
    while t.child.output_waiting() < 32768 and monotonic() < until:
        t.child.pump(monotonic() + 0.005)
    t.child.reading = True
    if id is None:
        t.wait(lambda: t.syncs > 1 or None, "the sync that ends the next")
    else:
        t.finished(id)
    came = [message.values[0] for message in t.received[start:] if message.command == "emit"]
    t.same([text[:4] for text in came], [f"{n:04}" for n in range(count)], "emits are missing, or out of order")
    t.same({len(text) for text in came} == {size + 4}, True, "emits were cut")


@section.must(
    "an idle pipe",
    "A component that has half of a message when its pipe is idle for a moment waits for the rest, also if that is the line 'end'.",
    after=("common/io/2",),
)
def _(t: Conversation) -> None:
    ping(t, ping_text(t))
    text = ping_text(t).replace("@id", id := t.new_id())
    before, half = t.syncs, len(text) // 2
    if t.kind == "spout":
        t.monitor.commands += 1
        t.commands += 1
    else:
        t.monitor.heartbeats.add(id)
    message = framed(text)
    for start, stop in ((0, half), (half, len(text) + 1)):
        t.send(message[start:stop])
        t.flush()
        idle(t)
    t.send(message[len(text) + 1 :])
    t.wait_sync(before + 1)


def idle(t: Conversation, seconds: float = _IDLE) -> None:
    """Let a moment pass."""
    until = monotonic() + seconds
    while monotonic() < until:
        t.child.pump(until)


@section.should(
    "what user code prints stays out of the protocol",
    "A print in user code does not reach standard output, or is sent as a log: one forgotten print halts a worker.",
    steps="print emit",
    watch=("framing.stray", "framing.json"),
)
def _(t: Conversation) -> None:
    [out] = t.perform([["print", "a line of its own"], ["emit", ["after it"]]])
    t.emitted(out, [["after it"]], "the emit did not come")


@section.must(
    "three seconds of silence",
    "No interval of heartbeats is promised, and a worker may pause, as Java's do while they collect garbage. A spout that is "
    "inactive gets nothing for as long as it is.",
    after=("common/io/12", STATES),
)
def _(t: Conversation) -> None:
    t.handshake()
    if t.kind == "spout":
        t.command("activate")
        t.next()
        t.command("deactivate")
        idle(t, _SILENCE)
        t.command("activate")
        t.next()
    else:
        t.beat()
        idle(t, _SILENCE)
        t.beat()
