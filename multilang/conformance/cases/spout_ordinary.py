"""Ordinary work that every spout lives through, whatever it emits; it needs nothing of the contract."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import PAGE, Section
from multilang.conformance.cases.bolt_ordinary import blamed, patient
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable

if TYPE_CHECKING:
    from multilang.conformance.talk import Out, Talk

section = Section("spout/ordinary", "Ordinary work of a spout", f"{PAGE}, Spouts")
IDS, ACK, FAIL = (f"spout/ordinary/{number}" for number in (1, 2, 3))
_NEXTS = 30  # asked at most for one tuple with an id


def begin(t: Talk) -> None:
    """Send the handshake and activate; a program that keeps the contract is told to emit, first without an id."""
    script = [[["emit", [n], {"id": f"n{n}"}]] for n in range(200)]
    t.handshake(str(script).replace("'", '"'))
    t.command("activate")


def own(t: Talk, used: list[Any]) -> Any:
    """Return the id of a tuple that the spout emitted and that was neither acked nor failed."""
    start = monotonic()
    for count in range(_NEXTS + 1):
        for message in t.received.emits:
            id = message.value.get("id")
            if id is not None and id not in used:
                used.append(id)
                return id
        if count > 3 and monotonic() - start > t.timeout / 3:
            break
        t.next()
    raise NotApplicable(f"in {count} nexts it emitted nothing with an id that was not finished yet")


def told(t: Talk, command: str, used: list[Any]) -> Out:
    """Send the ack or fail of one of its own tuples."""
    return t.command(command, own(t, used))


def careful_next(t: Talk) -> None:
    """Send a next, and keep its task ids back, unless the spout waits for them."""
    t.holds_ids = True
    before = t.syncs
    t.begin("next")

    def synced() -> bool | None:
        return t.syncs > before or None

    t.wait(lambda: synced() or t.owed or None, "the sync that ends the next")
    if synced() is None:
        patient(t, synced)
    t.holds_ids = False
    if synced() is None:
        t.answer()
        try:
            t.wait(synced, "the sync that ends the next, behind the task ids")
        except CaseFailed as failure:
            raise blamed(failure, IDS) from None


@section.must(
    "task ids that it did not ask for",
    "Each emit is answered by an array of task ids, unless it says need_task_ids: false. It is no command, and has no answer.",
    watch=("sync.twice", "emit.late"),
)
def _(t: Talk) -> None:
    begin(t)
    for _ in range(_NEXTS):
        try:
            careful_next(t)
        except Halted as halted:
            raise CaseFailed(halted.finding.detail, "the sync that ends the next") from None
        if t.answers or t.owed:
            break
    if not t.received.emits:
        raise NotApplicable(f"in {_NEXTS} nexts it emitted nothing")
    t.answer()
    before = t.syncs
    t.next()
    t.next()
    t.same(t.syncs, before + 2, "the task ids were answered, too: there are more syncs than commands")


@section.must("the ack of its own emit", "An ack of a tuple that it emitted is answered by a sync.", after=(IDS,))
def _(t: Talk) -> None:
    begin(t)
    used: list[Any] = []
    told(t, "ack", used)
    t.next()


@section.must("the fail of its own emit", "A fail of a tuple that it emitted is answered by a sync.", after=(IDS,))
def _(t: Talk) -> None:
    begin(t)
    used: list[Any] = []
    told(t, "fail", used)
    t.next()


@section.must(
    "20 tuples, acked and failed as they come",
    "Each command is answered, however many there are; what failed is the spout's to send again.",
    after=(IDS, ACK, FAIL, "spout/commands/5"),
)
def _(t: Talk) -> None:
    begin(t)
    used: list[Any] = []
    own(t, used)
    used.clear()
    for number in range(20):
        try:
            told(t, ["ack", "fail", "ack"][number % 3], used)
        except NotApplicable:
            break  # it has no more
        t.next()


@section.must(
    "an ack while it is inactive",
    "Tuples that were under way are acked and failed after a deactivate, too: each is answered by a sync.",
    after=(IDS, ACK, FAIL),
)
def _(t: Talk) -> None:
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
