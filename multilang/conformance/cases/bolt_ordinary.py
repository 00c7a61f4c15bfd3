"""Ordinary work that every bolt survives, whatever it does with its tuples; it needs nothing of the contract."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from multilang.conformance.case import C_LOCALE, PAGE, Section
from multilang.conformance.errors import CaseFailed, Halted, NotApplicable
from multilang.conformance.probe import steps_in
from multilang.conformance.reading import Finding
from multilang.conformance.values import WAITING, cut_texts
from multilang.conformance.world import SENTENCE, SOURCE_TASKS, storm_text

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section("bolt/ordinary", "Ordinary work of a bolt", f"{PAGE}, Bolts")
SURVIVES, ACKS, IDS, TICK, MANY = (f"bolt/ordinary/{number}" for number in (1, 2, 3, 4, 5))
LETTERS = "bolt/ordinary/7"
LOST = "bolt/ordinary/8"
BEAT = "bolt/heartbeat/7"
TOGETHER = "common/io/8"  # two messages in one read
# A bolt may finish its tuples in another thread than its heartbeats: so many seconds are given to it, plus the seconds
# since the conversation began but for those waited so in vain, because on a busy machine both are slow. No verdict depends on it.
_LATER = 0.3
HOLDS = "it does not finish each tuple before the next message"
FOLLOWS = "a step of the conformance contract"
_LARGE = 1_100_000  # more than 1 MiB, where buffers may end, too
_CUT = 70_000  # bytes; more than a buffer of 64 KiB
_OTHER = " naïve 漢字 𠮷野家 🐍"
_BROKEN = re.compile("[\ufffd\ud800-\udfff]|æ¼¢")  # the last is 漢, when its bytes are taken for other letters
_DATA = ' "id":"1","stream":"default","task":-1,"command":"ack" \\\\ \\" \nend\n\n{"id":"2"}'
_LIKE_BEATS = 20
_FIRST_OF_SEVERAL = 0xC0  # the least byte with which a letter of several bytes begins
_HALF = re.compile("[\ufffd\ud800-\udfff]|[xé漢🐍]\\?")
_NAIVE = re.compile("na(.{0,6}?)ve")
_WAITING = 8  # tuples that come before task ids
_OTHERS: list[list[Any]] = [[7], [None], [""], ["a"], ["99999999999999999999"], [{"a": "b"}], []]
_AHEAD = 250  # tuples that were sent later and are finished, when one is still waiting, mean that it was lost


def patient(t: Conversation, look: Callable[[], Any]) -> None:
    """Wait for what need not happen. Raises CaseFailed if the program ends."""
    limit, start = t.timeout, monotonic()
    t.timeout = min(limit, _LATER + start - t.start - t.in_vain)
    try:
        t.wait(look, "the end of its work")
    except CaseFailed as failure:
        if not failure.timed_out:
            raise
        t.in_vain += monotonic() - start
    finally:
        t.timeout = limit


def blamed(failure: CaseFailed, path: str) -> Halted:
    """Return what ends a case by the fault of another one."""
    return Halted(Finding("", f"{failure.why}: {failure.received}"), path)


def turn(t: Conversation, *tuples: Sequence[Any], **how: Any) -> bool:
    """Give the bolt tuples, and wait for the answer to a heartbeat behind them, and a moment for their acks.

    Task ids are held back until the bolt has answered or can only be waiting for them. Return whether there were any.
    """
    t.holds_ids = True
    for values in tuples:
        t.tuple(values, **how)
    before = t.syncs
    t.heartbeat(pieces=lambda data: [data])  # when the tuples were read

    def there() -> bool | None:
        return t.syncs > before or None

    try:
        t.wait(lambda: there() or t.owed or None, "the answer to a heartbeat after it")
    except CaseFailed as failure:
        raise silent(t, failure, asked=False) from None
    patient(t, lambda: (there() and not t.monitor.pending) or None)
    asked = bool(t.owed)
    t.holds_ids = False
    t.answer()
    try:
        t.wait(there, "the answer to a heartbeat behind the task ids")
        if asked:
            patient(t, lambda: not t.monitor.pending or None)
        t.beat()
    except CaseFailed as failure:
        raise silent(t, failure, asked) from None
    return asked


def finishes_each(t: Conversation, tuples: Sequence[Sequence[Any]]) -> bool:
    """Give the bolt tuples one by one, and return whether it finishes each before the next one."""
    for values in tuples:
        turn(t, values)
        if t.monitor.pending:
            return False
    return True


def survives(t: Conversation, values: Sequence[Any]) -> None:
    """Give the bolt a tuple between usual ones.

    A bolt that finishes the usual one at once finishes them all: its heartbeats may be answered by a thread that still runs
    when the one that works on tuples has ended. One that holds its tuples may hold them for ever.
    """
    finishes = True
    for _ in range(2):  # a bolt that keeps its first tuple, or the next one, waits for others
        turn(t, t.world.tuples[0])
        finishes = finishes and not t.monitor.pending
    turn(t, values)
    turn(t, t.world.tuples[0])
    if finishes:
        t.wait(lambda: not t.monitor.pending or None, "the ack or fail of that tuple and of the next one")


def works_on(t: Conversation) -> bool:
    """Return whether a bolt that answered no heartbeat works on another tuple: then it lacks the sync alone."""
    before = worked(t)
    try:
        t.tuple(t.world.tuples[0])
        patient(t, lambda: worked(t) > before or None)
    except CaseFailed:
        return False
    return worked(t) > before


def loses_tuples(t: Conversation) -> bool:
    """Return whether a bolt that works on loses the tuples, too, that come while it waits for task ids."""
    try:
        t.holds_ids = True
        first = t.tuple(t.world.tuples[0])
        patient(t, lambda: t.owed or None)
        if not t.owed:
            return False
        second = t.tuple(t.world.tuples[0])
        patient(t, lambda: not t.child.unsent or None)
        t.holds_ids = False
        t.answer()
        third = t.tuple(t.world.tuples[0])
        patient(t, lambda: t.monitor.finished.get(third))
    except CaseFailed:
        return False
    finally:
        t.holds_ids = False
    finished = t.monitor.finished
    return first in finished and third in finished and second not in finished


def worked(t: Conversation) -> int:
    """Return the number of messages that are no signs of life."""
    return len(t.received) - t.syncs


def silent(t: Conversation, failure: CaseFailed, asked: bool) -> Exception:
    """Return what a bolt has failed by that fell silent on a tuple: it may wait for task ids that never come."""
    last = t.received[-1] if t.received else None
    if failure.timed_out and not t.monitor.pending and works_on(t):
        return blamed(failure, LOST if loses_tuples(t) else BEAT)
    if asked:
        return blamed(failure, IDS)
    if not failure.timed_out or last is None:
        return failure
    if last.command == "emit" and last.task is not None:
        return blamed(failure, "bolt/direct/2")
    if last.command == "emit" and last.value.get("need_task_ids") is False:
        return blamed(failure, IDS)
    return failure


def sentence(t: Conversation, change: Callable[[str], str]) -> list[Any]:
    """Return a tuple of the program's, one text of which is changed. Only texts of several words are."""
    if t.world.contract:
        return [[["emit", [change(SENTENCE)]]]]
    for values in t.world.tuples:
        for place, value in enumerate(values):
            if isinstance(value, str) and " " in value.strip() and value.lstrip()[:1].isalpha():
                return [*values[:place], change(value), *values[place + 1 :]]
    raise NotApplicable("no tuple that it is given holds a text of several words: --tuple gives another")


def various(t: Conversation, number: int) -> list[Any]:
    """Return a tuple of the program's, whose text is another for each number, if it has one of several words."""
    try:
        return sentence(t, lambda text: f"{text} {number}")
    except NotApplicable:
        return list(t.world.tuples[number % len(t.world.tuples)])


@section.must(
    "it survives its tuple",
    "A tuple is worked on, and the heartbeat after it is answered: a bolt that ends takes its worker along. --tuple gives what "
    "the bolt is given.",
    after=(TOGETHER,),
)
def _(t: Conversation) -> None:
    t.handshake()
    try:
        turn(t, *t.world.tuples)
    except Halted as halted:
        if halted.path != IDS:
            raise
        t.monitor.leaving = True  # the task ids ended it, which another case reports


@section.should(
    "it acks or fails its tuples in time",
    "Storm replays what is neither acked nor failed within topology.message.timeout.secs; a bolt that keeps tuples finishes them "
    "later, with a tick for instance.",
    after=(SURVIVES, TOGETHER),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.varies_ids = False  # which the next case is about
    tuples = [t.world.tuples[number % len(t.world.tuples)] for number in range(4)]
    try:
        turn(t, *tuples)
    except CaseFailed as failure:
        raise blamed(failure, MANY) from None
    if t.monitor.pending:
        try:
            for _ in range(2):
                t.tuple([5], comp="__system", stream="__tick", task=-1)
                t.beat()
        except CaseFailed as failure:
            raise blamed(failure, TICK) from None
    t.wait(lambda: not t.monitor.pending or None, "the ack or fail of each tuple")


@section.must(
    "task ids that it did not ask for",
    "Each emit is answered by an array of task ids, of one, of several or of none, unless it has need_task_ids: false. It is neither a "
    "tuple nor a command.",
    after=(SURVIVES, TOGETHER),
)
def _(t: Conversation) -> None:
    t.handshake()
    tuples = [t.world.tuples[number % len(t.world.tuples)] for number in range(4)]
    t.varies_ids = False
    finishes = finishes_each(t, tuples)
    t.varies_ids = not t.world.contract
    if not turn(t, *tuples) and not t.received.emits:
        raise NotApplicable("it emitted nothing")
    if finishes:
        t.wait(
            lambda: not t.monitor.pending or None,
            "the ack or fail of tuples whose emits got one task id, several, or none",
        )


@section.must(
    "a tick",
    "A tuple of the component __system with one number comes to every bolt of a topology that has ticks.",
    source="Storm's TOPOLOGY_TICK_TUPLE_FREQ_SECS",
    after=(SURVIVES,),
)
def _(t: Conversation) -> None:
    t.handshake()
    turn(t, [5], comp="__system", stream="__tick", task=-1)


@section.must(
    "60 tuples in one write",
    "Tuples come as fast as the pipe takes them, with a heartbeat between; none of them is lost in the reading.",
    after=(SURVIVES, IDS, "bolt/heartbeat/5"),
)
def _(t: Conversation) -> None:
    t.handshake()
    before = t.syncs
    with t.at_once():
        for number in range(60):
            t.tuple(various(t, number), task=SOURCE_TASKS[number % 2])
            if number % 20 == 10:
                t.heartbeat()
    try:
        t.wait(lambda: t.syncs >= before + 3 or None, "the answers to the heartbeats between the tuples")
    except CaseFailed as failure:
        # With all tuples done, only the answers are missing.
        raise blamed(failure, BEAT) if failure.timed_out and not t.monitor.pending else failure from None
    patient(t, lambda: not t.monitor.pending or None)
    t.beat()


@section.must(
    "a text of 1 MB",
    "A tuple may be longer than a pipe or a buffer. It is a text of its tuples with a long word after it.",
    after=(SURVIVES, TOGETHER, "common/io/2", "common/sizes/1", "bolt/heartbeat/14"),
)
def _(t: Conversation) -> None:
    values = sentence(t, lambda text: f"{text} {'x' * _LARGE}")
    t.handshake()
    survives(t, values)


@section.must(
    "a text beyond ASCII",
    "Texts are UTF-8, as raw letters, and stay what they are, also when a read ends inside of a letter. It is a text of its tuples "
    "with other letters after it.",
    after=(SURVIVES, TOGETHER, "common/io/2", "common/unicode/1", "common/unicode/2"),
)
def _(t: Conversation) -> None:
    keeps_letters(t)


def keeps_letters(t: Conversation) -> None:
    """Give the bolt a tuple of other letters, and check that they come out as they are, if they do."""
    values = sentence(t, lambda text: text + _OTHER)
    t.handshake()
    survives(t, values)
    if not t.world.contract:  # others are asked for it in common/io
        turn(t, values, pieces=inside_letters)
    for message in t.received.emits:
        t.check(
            not is_broken(storm_text(message.values)),
            "letters came out changed: read and write UTF-8, whatever the locale is",
            f"{_OTHER.strip()!r}, or parts of it",
            message.values,
        )


def inside_letters(data: bytes) -> list[bytes]:
    """Return a message in pieces, each of which ends behind the first byte of a letter beyond ASCII."""
    places = [place + 1 for place, byte in enumerate(data) if byte >= _FIRST_OF_SEVERAL]
    return [data[start:stop] for start, stop in zip([0, *places], [*places, len(data)], strict=True)]


def is_broken(text: str) -> bool:
    """Return whether letters were replaced, taken for others, or lost in the middle of a word."""
    if _BROKEN.search(text) or "野家" in text.replace("𠮷野家", ""):
        return True
    for letter in _NAIVE.findall(text.casefold()):
        base = "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each))
        if base != "i":
            return True
    return False


@section.must(
    "1,100 tuples, none of which is lost",
    "When a bolt reads after an emit, tuples may come before the task ids, any number of them: each is stored, and worked on.",
    after=(SURVIVES, ACKS, IDS, MANY),
)
def _(t: Conversation) -> None:
    t.handshake()
    t.holds_ids = True
    ids = [t.tuple(t.world.tuples[0])]
    patient(t, lambda: t.owed or t.monitor.finished or None)
    ids += [t.tuple(t.world.tuples[number % len(t.world.tuples)]) for number in range(WAITING)]
    patient(t, lambda: not t.child.unsent or None)
    t.holds_ids = False
    t.answer()
    at_work(t)
    while lost := missing(t, ids):
        before = len(t.monitor.finished)
        try:
            t.wait(lambda count=before: len(t.monitor.finished) > count or None, "the ack or fail of each tuple")  # type: ignore[misc]
        except CaseFailed as failure:
            raise CaseFailed(
                f"{len(lost)} tuples were neither acked nor failed, though later ones were: keep each tuple that comes while "
                "you wait for task ids",
                f"an ack or fail of each of {len(ids)} tuples",
                f"none of tuple {lost[0] + 1}",
                failure.timed_out,
            ) from None


def at_work(t: Conversation) -> None:
    """Wait for the answer to a heartbeat, and then as long as the bolt sends more than syncs."""
    before, done = t.syncs, -1

    def moved() -> bool | None:
        return worked(t) > done or None

    t.heartbeat()
    while t.syncs == before:
        done = worked(t)
        t.wait(lambda: moved() or t.syncs > before or None, "the answer to a heartbeat behind 1,100 tuples")
    while done < worked(t):
        done = worked(t)
        patient(t, moved)


def missing(t: Conversation, ids: Sequence[str]) -> list[int]:
    """Return the places of tuples that wait though many later ones are finished. The last may wait for more to come."""
    finished = t.monitor.finished
    last = max((place for place, id in enumerate(ids) if id in finished), default=0)
    return [place for place, id in enumerate(ids) if id not in finished and place < last - _AHEAD]


@section.must(
    "a text that looks like the protocol",
    "What is inside of a text is data: keys of a message, ids, backslashes, empty lines, and a line 'end'. It is a text of its tuples with these "
    "after it.",
    after=(SURVIVES, MANY, TOGETHER, "common/json/8"),
)
def _(t: Conversation) -> None:
    values = sentence(t, lambda text: text + _DATA)
    t.handshake()
    survives(t, values)


@section.must(
    "a text that holds the name of the stream of heartbeats",
    "A heartbeat is known by its stream and its task. What finds the word anywhere in a message takes a tuple for one whose text has "
    "it: such a tuple is neither worked on nor acked or failed.",
    after=(SURVIVES, MANY, TOGETHER, BEAT, "bolt/ordinary/9"),
)
def _(t: Conversation) -> None:
    values = sentence(t, lambda text: f"{text} __heartbeat")
    t.handshake()
    turn(t, t.world.tuples[0])
    before, start = t.syncs, monotonic()
    with t.at_once():
        for _ in range(_LIKE_BEATS):
            t.tuple(values)
        t.heartbeat()
    t.wait(lambda: t.syncs > before or None, "the answer to a heartbeat after it")
    patient(t, lambda: not t.monitor.pending or None)
    # A bolt may send syncs of its own, with a timer.
    t.check(
        not t.monitor.pending or t.syncs - before < _LIKE_BEATS - 5 * (monotonic() - start),
        "a tuple was taken for a heartbeat, because its text holds the word: look at its stream and its task",
        f"the ack or fail of {_LIKE_BEATS} tuples",
        f"{t.syncs - before} syncs",
    )


@section.must(
    "a text that is cut is cut between letters",
    "A bolt may cut a text, but not inside of a letter: the bytes that are left of it are no UTF-8, and half of a surrogate pair is "
    "no letter. Its tuples have many letters of several bytes before their texts.",
    after=(SURVIVES, LETTERS, "bolt/ordinary/6"),
    watch=("framing.utf8",),
)
def _(t: Conversation) -> None:
    texts = cut_texts(_CUT)
    tuples = [sentence(t, lambda text, letters=letters: f"{letters} {text}") for letters in texts]  # type: ignore[misc]
    t.handshake()
    turn(t, *tuples)
    for message in t.received.emits:
        text = storm_text(message.values)
        is_cut = not any(letters in text for letters in texts)
        t.check(
            not (is_cut and _HALF.search(text)),
            "a text was cut inside of a letter",
            "whole letters",
            message.values,
        )


@section.must(
    "a text beyond ASCII in a plain C locale",
    "A supervisor that was started by init has no locale: letters stay what they are without one. It is the tuple of "
    f"{LETTERS} again.",
    env=C_LOCALE,
    after=(LETTERS,),
)
def _(t: Conversation) -> None:
    keeps_letters(t)


@section.must(
    "what it writes is flushed",
    "What a bolt has for a tuple comes when it has it: it does not wait in a buffer for the next message, a heartbeat for instance. A bolt "
    "that finishes each tuple before the next message is asked this.",
    after=(SURVIVES, ACKS, IDS),
)
def _(t: Conversation) -> None:
    t.handshake()
    if not finishes_each(t, [t.world.tuples[0]] * 3):
        raise NotApplicable(HOLDS)
    t.tuple(t.world.tuples[0])
    t.wait(lambda: not t.monitor.pending or None, "the ack or fail of a tuple with no message behind it")


@section.must(
    "a tuple that asks for the contract",
    "A bolt may do with a tuple of another kind what it likes. This one asks whether it follows the conformance contract; one that "
    "carries out a step of it does, and says so.",
    after=(SURVIVES,),
)
def _(t: Conversation) -> None:
    t.handshake()
    try:
        turn(t, [[["log", FOLLOWS]]])
    except (CaseFailed, Halted):
        t.monitor.leaving = True  # which it may do
        return
    if not carries_out(t):
        return
    t.finished(t.steps(["contract"]))
    says_so(t)


@section.must(
    "a tuple's emits to a stream are all anchored, or none is",
    "What a bolt emits for a tuple fails with it if it is anchored. A stream that gets some of it without the anchor loses these when they "
    "fail, and gets the others twice.",
    source=f"{PAGE}, Bolts: anchors",
    after=(SURVIVES, ACKS, IDS),
)
def _(t: Conversation) -> None:
    t.handshake()
    both: list[set[str]] = []
    for number in range(3):  # one that does so each time does not by chance, as a timer may
        before = len(t.received)
        if not finishes_each(t, [various(t, number)]):
            raise NotApplicable(HOLDS)
        emits = [message for message in t.received[before:] if message.command == "emit"]
        anchored, loose = (
            {each.stream for each in emits if bool(each.anchors) == is_anchored} for is_anchored in (True, False)
        )
        both.append(anchored & loose)
    if not t.received.emits:
        raise NotApplicable("it emitted nothing")
    streams = set.intersection(*both)
    t.check(
        not streams,
        f"of each tuple's emits to the stream {', '.join(map(repr, streams))} some are anchored to it, and some to nothing",
        "the tuple's id in the anchors of each",
        " | ".join(each.raw.decode("utf-8", "backslashreplace")[:200] for each in emits[:4]),
    )


@section.should(
    "tuples that came before task ids, in their order",
    "A bolt that waits for the task ids of an emit works on the tuples that came meanwhile in the order in which they came.",
    after=(SURVIVES, ACKS, IDS, MANY, LOST),
)
def _(t: Conversation) -> None:
    t.handshake()
    if not finishes_each(t, [various(t, number) for number in range(2)]):
        raise NotApplicable(HOLDS)
    t.holds_ids = True
    t.tuple(t.world.tuples[0])
    patient(t, lambda: t.owed or None)
    waiting = [t.tuple(various(t, number)) for number in range(_WAITING)]
    patient(t, lambda: not t.child.unsent or None)
    patient(t, lambda: len(t.owed) > 1 or not waits(t, waiting) or None)
    if len(t.owed) != 1 or not waits(t, waiting):
        return  # it does not wait for task ids
    t.holds_ids = False
    t.answer()
    t.wait(lambda: not t.monitor.pending or None, "the ack or fail of each tuple")
    order = [waiting.index(id) + 1 for id in t.monitor.finished if id in waiting]
    t.check(
        order == sorted(order), "they were worked on in another order", storm_text(sorted(order)), storm_text(order)
    )


def waits(t: Conversation, ids: Sequence[str]) -> bool:
    """Return whether none of these tuples is finished."""
    return not t.monitor.finished.keys() & set(ids)


@section.should(
    "a tuple of other values is acked or failed",
    "A bolt may skip a tuple of values that it does not expect, fail it, or end. What it neither acks nor fails comes again each time that "
    "it is overdue.",
    after=(SURVIVES, ACKS, TOGETHER),
)
def _(t: Conversation) -> None:
    t.handshake()
    if not finishes_each(t, [t.world.tuples[0]] * 2):
        raise NotApplicable(HOLDS)
    for values in _OTHERS:
        try:
            if not finishes_each(t, [values]):
                before = len(t.monitor.finished)
                finishes_each(t, [t.world.tuples[0]])
                if len(t.monitor.finished) == before:
                    return  # it has ended its work
        except (CaseFailed, Halted):
            t.monitor.leaving = True  # which it may do
            return
        t.wait(lambda: not t.monitor.pending or None, f"the ack or fail of a tuple of {storm_text(values)}")


def carries_out(t: Conversation) -> bool:
    """Return whether the program has carried out the contract's step that logs a text."""
    return any(message.value.get("msg") == FOLLOWS for message in t.received.of("log"))


def says_so(t: Conversation) -> None:
    """Check that a program that carries out a step of the contract has said that it follows the contract."""
    t.check(
        steps_in(t) is not None or not carries_out(t),
        'it carries out the step "log" of the conformance contract, and does not answer ["contract"]',
        'an emit of one value, ["conformance", 1, [the names of the steps that it knows]]',
        " | ".join(each.raw.decode("utf-8", "backslashreplace")[:200] for each in t.received[-4:]),
    )
