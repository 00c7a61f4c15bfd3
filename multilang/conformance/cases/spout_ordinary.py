"""Ordinary work that every spout survives, whatever it emits; it needs nothing of the contract."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, PAGE, Section
from multilang.conformance.cases.bolt_ordinary import FOLLOWS, blamed, patient, says_so
from multilang.conformance.conversation import ON, SCRIPT
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable
from multilang.conformance.reading import Finding
from multilang.conformance.world import storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation, Out

section = Section("spout/ordinary", "Ordinary work of a spout", f"{PAGE}, Spouts")
IDS, ACK, FAIL = (f"spout/ordinary/{number}" for number in (1, 2, 3))
DIRECT = "spout/direct/1"
NEXT, STATES, MANY = (f"spout/commands/{number}" for number in (1, 4, 5))
NOT_AGAIN = "what fails it does not send again"
_NEXTS = 30  # asked at most for one tuple with an id
_MORE = 8  # nexts in which what failed may come again
_UNDER_WAY = 250  # topology.max.spout.pending is not set
_FAILS = 5  # of one tuple
_HELD = 3  # arrays of task ids that are held back, to see what the spout sends without them


def script(count: int = 200) -> str:
    """Return the steps of a program that keeps the contract."""
    return storm_text([[["emit", [n], {"id": f"n{n}"}]] for n in range(count)])


def begin(t: Conversation, count: int = 200) -> None:
    """Send the handshake and activate; a program that keeps the contract emits so many tuples with ids."""
    t.handshake(script(count))
    t.command("activate")


def own(t: Conversation, used: list[Any]) -> Any:
    """Return the id of a tuple that the spout emitted and that was neither acked nor failed."""
    start = monotonic()
    for count in range(_NEXTS + 1):
        for message in t.received.emits:
            id = message.value.get("id")
            if id is not None and id not in used:
                odd = next((finding for finding in t.findings if finding.code == "emit.id-type"), None)
                if odd is not None:
                    raise Halted(odd)  # what it does when such an id is returned is not at fault
                used.append(id)
                return id
        if count > 3 and monotonic() - start > t.timeout / 3:
            break
        t.next()
    raise NotApplicable(f"in {count} nexts it emitted nothing with an id that was not finished yet")


def finish(t: Conversation, command: str, used: list[Any]) -> Out:
    """Send the ack or fail of one of its own tuples."""
    return t.command(command, own(t, used))


def careful_next(t: Conversation) -> None:
    """Send a next, and hold its task ids back, unless the spout waits for them."""
    t.holds_ids = True
    before = t.syncs
    t.begin("next")

    def synced() -> bool | None:
        return t.syncs > before or None

    owed = len(t.owed)
    t.wait(lambda: synced() or len(t.owed) > owed or None, "the sync that ends the next")
    if synced() is None:
        patient(t, synced)
    t.holds_ids = False
    if synced() is None:
        t.answer()
        try:
            t.wait(synced, "the sync that ends the next, behind the task ids")
        except CaseFailed as failure:
            path = IDS
            if failure.timed_out and works_on(t):
                path = NEXT
            elif owed:
                path = MANY  # it went on before without task ids
            raise blamed(failure, path) from None


def next_without_ids(t: Conversation) -> None:
    """Send a next, and hold its task ids back. A spout that falls silent before it has got any does so by itself."""
    try:
        careful_next(t)
    except CaseFailed as failure:
        raise failure if t.answers else blamed(failure, MANY) from None


def more_nexts(t: Conversation) -> None:
    """Send some more nexts, behind whose answers a spout that reads task ids for some of its emits alone has others left."""
    start = monotonic()
    for _ in range(_NEXTS):
        if monotonic() - start > t.timeout / 4:
            break
        if t.answers:
            t.next()
        else:
            next_without_ids(t)


def works_on(t: Conversation) -> bool:
    """Return whether a spout that did not end a next emits at another one: then it lacks the sync alone."""
    before = len(t.received)
    t.begin("next")
    patient(t, lambda: len(t.received) > before or None)
    return len(t.received) > before


def unasked(t: Conversation) -> Finding | None:
    """Return the finding of a message without a command to answer."""
    return next((finding for finding in t.findings if finding.code in ("sync.twice", "emit.late")), None)


@section.must(
    "task ids that it did not ask for",
    "Each emit is answered by an array of task ids, unless it has need_task_ids: false. It is no command, and has no answer.",
)
def _(t: Conversation) -> None:
    try:
        begin(t)
    except CaseFailed as failure:
        raise (blamed(failure, STATES) if t.is_set_up and t.received else failure) from None
    try:
        for _ in range(_NEXTS):
            next_without_ids(t)
            if t.answers or len(t.owed) >= _HELD:
                break
        more_nexts(t)
    except CaseFailed as failure:
        if t.received and t.received[-1].task is not None:
            raise blamed(failure, DIRECT) from None  # it waits for task ids, of which a direct emit gets none
        raise
    t.linger()
    before = unasked(t)
    if before is not None and not t.answers:
        raise Halted(before)  # no task ids have been sent yet
    if not t.received.emits:
        raise NotApplicable(f"in {_NEXTS} nexts it emitted nothing")
    t.answer()
    sent = len(t.answers)
    t.linger()
    t.next()
    t.next()
    t.flush()
    t.leave(1 + 3 * (monotonic() - t.start))
    # Those that came too late to be seen before the next command are counted at the end of the output.
    more = t.syncs - t.commands
    found = unasked(t)
    if more >= sent > 0 and more != t.commands:
        answered = f"task ids were answered by a sync: {t.syncs} syncs came for {t.commands} commands and {sent} arrays of task ids"
        raise Halted(Finding("", f"{answered}; read an array, and write nothing"), IDS)
    if found is not None:
        raise Halted(found)


@section.must("the ack of its own emit", "An ack of a tuple that it emitted is answered by a sync.", after=(IDS,))
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    finish(t, "ack", used)
    t.next()


@section.must("the fail of its own emit", "A fail of a tuple that it emitted is answered by a sync.", after=(IDS,))
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    finish(t, "fail", used)
    t.next()


@section.must(
    "20 tuples, acked and failed as they come",
    "Each command is answered, however many there are; what failed is the spout's to send again.",
    after=(IDS, ACK, FAIL, MANY),
)
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    own(t, used)
    used.clear()
    for number in range(20):
        try:
            finish(t, ["ack", "fail", "ack"][number % 3], used)
        except NotApplicable:
            break  # it has no more
        t.next()


@section.must(
    "an ack while it is inactive",
    "Tuples that were under way are acked and failed after a deactivate, too: each is answered by a sync.",
    after=(IDS, ACK, FAIL, STATES),
)
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    first = own(t, used)
    try:
        second = own(t, used)
    except NotApplicable:
        second = None
    t.command("deactivate")
    t.command("ack", first)
    if second is not None:
        t.command("fail", second)
    t.command("activate")
    t.next()


@section.must(
    "250 tuples under way, acked in another order",
    "Tuples are acked in any order, and as many are under way as topology.max.spout.pending allows.",
    after=(IDS, ACK, FAIL, MANY, "spout/ordinary/4"),
)
def _(t: Conversation) -> None:
    begin(t)
    used: list[Any] = []
    try:
        while len(used) < _UNDER_WAY and monotonic() - t.start < t.timeout:
            own(t, used)
    except NotApplicable:
        pass  # it has no more, or waits for its acks
    if len(used) < 2:
        raise NotApplicable("it never had two tuples under way")
    for id in reversed(used):
        t.command("ack", id)
    t.next()


@section.must(
    "what is sent again fails again",
    "A tuple that failed and was sent again may fail once more, any number of times, and be acked in the end.",
    after=(IDS, ACK, FAIL, MANY),
)
def _(t: Conversation) -> None:
    begin_again(t)
    used: list[Any] = []
    most = 0
    for last in ("ack", "fail"):
        try:
            id = own(t, used)
        except NotApplicable:
            if used:
                break  # it has no more
            raise
        for number in range(_FAILS):
            again = comes_again(t, id)
            if again is None:
                once = f"fail {number + 1} of a tuple did not reach user code, which emits it again each time"
                t.check(not t.world.contract, once, f"an emit with the id {id!r}", "none")
                break
            id = again
            most = max(most, number + 1)
        else:
            t.command(last, id)
    t.next()
    if not most:
        raise NotApplicable(NOT_AGAIN)


def begin_again(t: Conversation) -> None:
    """Do what ``begin`` does; a program that keeps the contract emits one tuple, and sends it again when it fails."""
    if t.world.contract:
        again = ["emit", [0], {"id": "n0"}]
        t.handshake(storm_text([[again]]), on={"fail": [again]})
        t.command("activate")
    else:
        begin(t)


def comes_again(t: Conversation, id: Any) -> Any:
    """Send the fail of a tuple, and return the id with which it comes then, or with one of the next nexts, else None.

    A spout may give it another id; then it is known by its values.
    """
    start = monotonic()
    values = next(message.values for message in reversed(t.received.emits) if message.value.get("id") == id)
    out = t.command("fail", id)
    for _ in range(_MORE):
        for message in out.emits:
            new = message.value.get("id")
            if new == id or (new is not None and message.values == values):
                return new
        if monotonic() - start > t.timeout / 4:
            break
        out = t.next()
    return None


@section.should(
    "an ack before the task ids",
    "Without ackers Storm acks a tuple inside of its emit: a spout that waits for task ids gets the ack first, and sends its sync.",
    source=f"{MEASURED}; the page promises the task ids immediately",
    after=(IDS, ACK),
)
def _(t: Conversation) -> None:
    t.world.conf |= {"topology.acker.executors": 0}
    begin(t)
    t.holds_ids = True
    for _ in range(_NEXTS):
        before = t.syncs
        t.begin("next")
        t.wait(lambda count=before: t.syncs > count or t.owed or None, "the sync that ends the next")  # type: ignore[misc]
        if t.owed:
            break
    else:
        if not t.received.emits:
            raise NotApplicable(f"in {_NEXTS} nexts it emitted nothing")
        return  # it asks for no task ids, and so waits for none
    id = t.owed[0].value.get("id")
    if id is None:
        raise NotApplicable("what it emits has no id")
    t.command("ack", id)
    t.holds_ids = False
    t.answer()
    t.wait(lambda: t.syncs >= t.commands or None, "the sync that ends the next, behind the task ids")


@section.must(
    "a conf that asks for the contract",
    "A conf has entries that are not meant for this spout, empty lists and maps among them: it answers its commands all the same. This "
    "one asks whether it follows the conformance contract; one that carries out a step of it does, and says so.",
    after=(IDS, STATES),
)
def _(t: Conversation) -> None:
    t.handshake(conf=t.world.full_conf(**{SCRIPT: [[["log", FOLLOWS]], [["contract"]]], ON: {}}))
    t.command("activate")
    for _ in range(3):
        t.next()
    says_so(t)


@section.should(
    "what fails twice is sent again twice",
    "A spout may give a tuple up that fails again and again. One that sends it again once alone has most likely lost sight of it.",
    after=(IDS, ACK, FAIL, MANY, "spout/ordinary/7"),
)
def _(t: Conversation) -> None:
    begin_again(t)
    id = own(t, [])
    again = comes_again(t, id)
    if again is None:
        raise NotApplicable(NOT_AGAIN)
    t.check(comes_again(t, again) is not None, "a second fail of a tuple was ignored", "another emit of it", "none")
