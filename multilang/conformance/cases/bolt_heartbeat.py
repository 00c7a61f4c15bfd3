"""Heartbeats to a bolt, which it answers with a sync."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.bolt_ordinary import LOST, blamed, loses_tuples, sentence, works_on
from multilang.conformance.cases.bolt_tuple import OTHER_IDS
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable
from multilang.conformance.world import framed

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/heartbeat", "Heartbeats", f"{PAGE}, Handling Heartbeats: Bolt")
_FULL = 60_000  # bytes in the pipe, or nearly as many as it holds
_BY_ITSELF = "a long message comes out broken by itself, which another case judges"
_STUCK = 1.3  # seconds in which the program waits for its reader; more than the second of a usual timer


@section.must(
    "a heartbeat before any tuple", 'A tuple of task -1 on stream __heartbeat is answered by {"command": "sync"}.'
)
def _(t: Conversation) -> None:
    t.handshake()
    t.beat()


@section.must("a heartbeat as the page shows it", 'The page\'s heartbeat has a component id, "1".')
def _(t: Conversation) -> None:
    t.handshake()
    t.heartbeat(comp="1")
    t.wait_sync(1)


@section.must(
    "a heartbeat as Storm sends it",
    "Storm 2 sends comp null, and the keys in this order.",
    source=MEASURED,
    after=("common/json/4",),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.monitor.heartbeats.add("-8297348918923871213")
    t.send(framed('{"comp":null,"tuple":[],"task":-1,"stream":"__heartbeat","id":"-8297348918923871213"}'))
    t.wait_sync(1)


section.watch(
    "MUST",
    "heartbeat.finished heartbeat.anchored",
    "a heartbeat is no tuple",
    "It is neither acked nor failed nor an anchor: Storm knows no tuple of that id, and the worker halts.",
    f"{PAGE}, Handling Heartbeats; {MEASURED} (ack_int: an unknown id)",
)


@section.must("100 heartbeats in one write", "Each is answered.", after=("common/io/8",))
def _(t: Conversation) -> None:
    t.handshake()
    for _ in range(100):
        t.heartbeat()
    t.wait_sync(100)


@section.must(
    "a heartbeat with a tuple in hand",
    "A bolt that keeps tuples without ack or fail answers all the same.",
    steps="keep",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.steps(["keep", "a"])
    t.beat()
    t.beat()


@section.must(
    "a heartbeat behind a tuple",
    "A heartbeat behind a tuple is answered when the tuple is done, or before.",
    after=("common/io/8",),
)
def _(t: Conversation) -> None:
    t.handshake()
    for number in range(3):
        t.tuple(t.world.tuples[0])
        t.heartbeat()
        try:
            t.wait_sync(number + 1)
        except CaseFailed as failure:
            if failure.timed_out and works_on(t):
                raise blamed(failure, LOST) if loses_tuples(t) else failure from None
            raise NotApplicable("it does not survive its tuples, which another case judges") from None


@section.must(
    "a heartbeat while task ids are due",
    "When a heartbeat comes between an emit and its task ids, both are taken for what they are.",
    steps="emit",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    id = t.steps(["emit", ["x"], {"ids": True}])
    t.wait(lambda: t.received.emits or None, "the emit")
    t.heartbeat()
    t.flush()
    t.holds_ids = False
    t.answer()
    t.finished(id)
    t.wait_sync(1)


@section.must(
    "100 heartbeats, one behind another's answer",
    "A bolt that is never given a tuple needs its heartbeats alone, for ever.",
)
def _(t: Conversation) -> None:
    t.handshake()
    for _ in range(100):
        t.beat()


@section.should(
    "a heartbeat whose id is no number",
    "An id is a string: nothing but its characters is promised.",
    source=OTHER_IDS,
)
def _(t: Conversation) -> None:
    t.handshake()
    t.heartbeat(id="héart-beat/0001")
    t.wait_sync(1)


@section.should("one sync for each", "A heartbeat has one answer; Storm ignores more, but each costs its reader time.")
def _(t: Conversation) -> None:
    t.handshake()
    start = monotonic()
    for number in range(20):
        t.heartbeat()
        t.wait_sync(number + 1)
    t.settle()
    beats = len(t.monitor.heartbeats)
    # A bolt may send syncs of its own, twice a second, so that it may miss one of Storm's intervals.
    allowed = beats + 2 + int(2 * (monotonic() - start))
    if t.syncs > allowed:
        raise CaseFailed("there are more syncs than heartbeats", f"{beats} syncs", f"{t.syncs} syncs")


@section.should("nothing but the sync", "The answer to a heartbeat is a sync, and no other message.")
def _(t: Conversation) -> None:
    t.handshake()
    t.beat()  # after all that a library sends at its start
    before = len(t.received)
    for _ in range(5):
        t.beat()
    others = [message.command for message in t.received[before:] if message.command != "sync"]
    t.same(others, [], "a heartbeat caused other messages")


@section.should(
    "a sign of life while user code is slow",
    "Storm halts a worker when a bolt sends nothing for 30 s: user code that takes longer needs an answer from beside it.",
    steps="sleep",
)
def _(t: Conversation) -> None:
    t.handshake()
    t.beat()  # after all that a library sends at its start
    start = len(t.received)
    id = t.steps(["sleep", 3])
    t.heartbeat()
    t.finished(id)
    place = next(i for i, message in enumerate(t.received) if message.value.get("id") == id)
    t.check(
        place > start,
        "nothing was sent until the tuple was done",
        "a message before the ack",
        "none",
    )


@section.must(
    "heartbeats within a large emit",
    "A message is written whole: the sync of another thread, which answers heartbeats or a timer, does not come within an emit "
    "that is longer than the pipe.",
    after=("bolt/ordinary/1", "bolt/ordinary/3"),
    watch=(
        "framing.json",
        "framing.stray",
        "framing.object",
        "framing.second",
        "framing.lost",
        "framing.end",
        "framing.empty",
    ),
)
def _(t: Conversation) -> None:
    values = sentence(t, lambda text: f"{text} {'x' * 300_000}")
    t.handshake()
    t.beat()
    before = t.syncs
    t.child.reading = False
    t.tuple(values)
    until = monotonic() + _STUCK
    while t.child.output_waiting() < _FULL and monotonic() < until:
        t.child.pump(monotonic() + 0.005)
    is_stuck = t.child.output_waiting() >= _FULL
    for _ in range(5 if is_stuck else 0):
        t.heartbeat()
    until = monotonic() + _STUCK  # in which another thread answers, or a timer sends a sign of life
    while is_stuck and monotonic() < until:
        t.child.pump(monotonic() + 0.05)
    t.child.reading = True
    try:
        t.wait(lambda: not is_stuck or t.syncs >= before + 5 or None, "the answers to the heartbeats")
        t.beat()
    except Halted as halted:
        *_, last = t.outputs
        if halted.finding.code.startswith("framing") and is_alone(last):
            raise NotApplicable(_BY_ITSELF) from None
        raise
    except CaseFailed as failure:
        if failure.timed_out and t.child.unread and is_stuck:
            if is_alone(t.child.unread):
                raise NotApplicable(_BY_ITSELF) from None
            text = bytes(t.child.unread[-120:])
            raise CaseFailed("a message was torn: no line 'end' closes it", "whole messages", repr(text)) from None
        raise NotApplicable("it does not get through a long text, which another case judges") from None
    if not is_stuck:
        raise NotApplicable("it emits nothing long, even if its tuple is: its output does not fill a pipe")


def is_alone(text: bytes | bytearray) -> bool:
    """Return whether no second message is in the text of a message."""
    return text.count(b'"command"') <= 1
