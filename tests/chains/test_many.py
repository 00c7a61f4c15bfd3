"""Members of a chain that take many tuples at once: acks, failures and order are those of tuples that come one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, Bolt, FailedException, Tuple, Tuples
from multilang.chains import running
from multilang.protocol import LocalProtocolError
from multilang.protocol.messages import Ack, Emit, Fail
from tests.chains.harness import FIELDS, DrivenChain
from tests.exchange.harness import tuples_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@pytest.fixture(autouse=True, scope="module")
def unhurried() -> Iterator[None]:
    """Have all that comes of a block come together, however slow the machine is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "_MOST_SECS", 1e9)
        yield


# What is done with a tuple, and then with what comes of it, as long as there are letters: it goes on once (p) or twice (t),
# unanchored (u), by another thread that has done so before the ack (h), or acked only later (k, or x: three times, the last of them
# by another thread); or it fails (f).
EMITS = {"": 0, "f": 0, "t": 2, "x": 3}
VALUES = st.text("ppphttukxf", min_size=1, max_size=5)
KINDS = ["single", "basic", "each", "together", "all"]


class _Member:
    """Notes what it gets; see VALUES. A tuple is [its emitter, the number of the emit, the letters left, its input]."""

    at: int
    taken: list[tuple[Any, ...]]
    sizes: list[int]

    def begin(self, at: int) -> Any:
        self.at, self.taken, self.sizes, self.kept, self.number = at, [], [], [], 0
        return self

    def take(self, tup: Tuple) -> tuple[str, list[list[Any]]]:
        """Note a tuple, and return its letter and what is to be emitted."""
        source, number, letters, root, *_ = tup["value"]
        assert tup.component == f"m{source}" if source is not None else tup.component == "source"
        self.taken.append((source, number, tup.stream))
        letter, rest = letters[:1], letters[1:]
        made = []
        for _ in range(EMITS.get(letter, 1)):
            self.number += 1
            made.append([[self.at, self.number, rest, None if letter == "u" else root]])
        return letter, made

    def one(self: Any, tup: Tuple) -> None:
        letter, made = self.take(tup)
        for index, values in enumerate(made):
            emit = partial(self.emit, values, anchors=[] if letter == "u" else [tup])
            if letter == "h" or (letter == "x" and index == 2):
                thread = Thread(target=emit)
                thread.start()
                thread.join()
            else:
                emit()
        if letter == "f":
            self.fail(tup)
        elif letter in ("k", "x"):
            self.kept.append(tup)
        else:
            self.ack(tup)

    def give(self: Any) -> None:
        """Emit in a timer, and ack what was kept."""
        for tup in self.kept:
            self.number += 1
            self.emit([[self.at, self.number, "p", tup["value"][3]]], anchors=[tup])
            self.ack(tup)
        self.kept.clear()


class Single(_Member, Bolt):
    output_fields = FIELDS

    def process(self, tup: Tuple) -> None:
        self.one(tup)


class Each(_Member, Bolt):
    """Takes many, and settles them one by one."""

    output_fields = FIELDS

    def process_many(self, tups: Tuples) -> None:
        self.sizes.append(len(tups))
        assert [tup.values for tup in tups] == tups.rows
        assert tups.column("value") == tups.column(0) == [tup["value"] for tup in tups]
        for tup in tups:
            assert (tup.component, tup.stream, tup.task) == (tups.component, tups.stream, tups.task)
            self.one(tup)


class Together(_Member, Bolt):
    """Anchors to all, and settles the rest together."""

    output_fields = FIELDS

    def process_many(self, tups: Tuples) -> None:
        self.sizes.append(len(tups))
        for tup in tups:
            letter, made = self.take(tup)
            for values in made:
                self.emit(values, anchors=[] if letter == "u" else tups)
            if letter == "f":
                self.fail(tup.id)
            elif letter in ("k", "x"):
                self.kept.append(tup)
        if not any(tup.unfinished and tup not in self.kept for tup in tups):
            return
        for tup in tups:
            if tup.unfinished and tup not in self.kept:
                self.ack(tup)


class All(_Member, BasicBolt):
    """Makes no tuples but for what it notes; all are acked or failed together when it returns or raises."""

    output_fields = FIELDS

    def process_many(self, tups: Tuples) -> None:
        self.sizes.append(len(tups))
        failed = False
        for tup in tups:
            letter, made = self.take(tup)
            failed = failed or letter == "f"
            for values in made:
                self.emit(values, anchors=[] if letter == "u" else None)
        if failed:
            raise FailedException("wished")


class Basic(_Member, BasicBolt):
    output_fields = FIELDS

    def process(self, tup: Tuple) -> None:
        letter, made = self.take(tup)
        for values in made:
            self.emit(values, anchors=[] if letter == "u" else None)
        if letter == "f":
            raise FailedException("wished")


CLASSES: dict[str, Any] = {"single": Single, "basic": Basic, "each": Each, "together": Together, "all": All}
SOURCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=2), min_size=1, max_size=3)


def model(
    at: int, letters: str, tied: bool, chain: Sequence[Sequence[int]], got: Counter[int]
) -> tuple[bool, int, int]:
    """Count in ``got`` what each member gets; return whether it fails, and the tuples that leave, with an anchor and without."""
    got[at] += 1
    letter, rest = letters[:1], letters[1:]
    fails, bound, loose = letter == "f" and tied, 0, 0
    tied = tied and letter != "u"
    for _ in range(EMITS.get(letter, 1)):
        bound, loose = bound + tied, loose + (not tied)
        for target, sources in enumerate(chain):
            if at in sources:
                failed, more, others = model(target, rest, tied, chain, got)
                fails, bound, loose = fails or failed, bound + more, loose + others
    return fails, bound, loose


@settings(max_examples=120, deadline=None, database=None)
@given(
    st.lists(st.sampled_from(KINDS), min_size=4, max_size=4),
    SOURCES,
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["default", "alone"]), st.lists(VALUES, min_size=2, max_size=8)),
            min_size=1,
            max_size=2,
        )
        | VALUES,
        min_size=2,
        max_size=5,
    ),
    st.sampled_from(["root", "block", "tuple"]),
    st.sampled_from([1000, 1000, 2, 1]),
    st.booleans(),
    st.sampled_from([1e9, -1.0]),
)
def test_all_come_in_order_and_each_input_is_settled_once(
    kinds: list[str], sources: list[list[int]], steps: list[Any], how: str, most: int, timers: bool, secs: float
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "_MOST_SECS", secs)  # after which what was done of a block goes on
        check_all(kinds, sources, steps, how, most, timers)


def check_all(kinds: list[str], sources: list[list[int]], steps: list[Any], how: str, most: int, timers: bool) -> None:
    chain = [(), *({each % place for each in some} for place, some in enumerate(sources, 1))]
    members = [CLASSES[kind]().begin(at) for at, kind in zip(range(len(chain)), kinds, strict=False)]
    driven = DrivenChain(members, [sorted(each) for each in chain], how, most)
    got: Counter[int] = Counter()
    expected: dict[str, list[Any]] = {}
    numbers = defaultdict[str, int](int)
    late = 0  # that left, of what timers emitted

    def value(stream: str, letters: str, root: str) -> list[Any]:
        fails, bound, loose = model(0, letters, True, chain, got)
        known = expected.setdefault(root, [False, 0, 0])
        expected[root] = [known[0] or fails, known[1] + bound, known[2] + loose]
        numbers[stream] += 1
        return [[None, numbers[stream], letters, root]]

    def give() -> None:
        """Run the timers of all members, before anything that they emit is run."""
        nonlocal late
        for member in members:
            for _ in member.kept:
                late += 1
                for target, some in enumerate(chain):
                    if member.at in some:
                        _, bound, loose = model(target, "p", True, chain, got)
                        late += bound + loose
            member.give()

    root = 99
    for step in steps:
        runs = step if isinstance(step, list) else [("default", [step])]
        if isinstance(step, str) or how == "tuple":
            for stream, texts in runs:
                for letters in texts:
                    root += 1
                    assert driven.give(stream, value(stream, letters, str(root))) == str(root)
        else:
            root += 1
            rows = [(stream, [value(stream, letters, str(root)) for letters in texts]) for stream, texts in runs]
            assert driven.give_block(rows) == str(root)
        if timers:
            give()
        elif root % 2:
            driven.flush()
    driven.flush()
    while any(member.kept for member in members):
        held = {tup["value"][3] for member in members for tup in member.kept}
        assert not held & {id for id, ok in driven.settled if ok}
        give()
        driven.flush()
    check_what_came(members, got)
    assert sorted(driven.settled) == sorted((id, not fails) for id, (fails, _, _) in expected.items())
    check_what_left(driven, expected, late)
    assert driven.running._held == 0
    driven.close()


def check_what_came(members: Sequence[Any], got: Counter[int]) -> None:
    assert [len(member.taken) for member in members] == [got[member.at] for member in members]
    for member in members:
        orders = defaultdict[Any, list[int]](list)
        for source, number, stream in member.taken:
            orders[source, stream].append(number)
        assert all(numbers == sorted(numbers) for numbers in orders.values())


def check_what_left(driven: DrivenChain, expected: dict[str, list[Any]], late: int) -> None:
    """Compare what left the chain: how much, in which order, anchored to what, and before its ack."""
    done: dict[str, bool] = {}
    bound, loose, orders = Counter[str](), 0, defaultdict[int, list[int]](list)
    for event in driven.sent:
        if isinstance(event, Ack | Fail):
            done[event.id] = isinstance(event, Ack)
        elif isinstance(event, Emit):
            for _, ((source, number, _, root),) in tuples_of(event):
                orders[source].append(number)
                anchors = set(event.anchors)
                assert not any(done.get(each) for each in anchors)
                if root is None:
                    assert not anchors
                    loose += 1
                else:
                    assert root in anchors or expected[root][0]
                    bound[root] += 1
    assert all(numbers == sorted(numbers) for numbers in orders.values())
    assert loose + sum(bound.values()) == late + sum(each[1] + each[2] for each in expected.values())


def test_a_member_gets_what_comes_of_a_block_together() -> None:
    members = [Single().begin(0), All().begin(1), Each().begin(2)]
    driven = DrivenChain(members, [[], [0], [1]], "root")
    driven.give_block([("default", [[[None, n, "tpp", "100"]] for n in range(50)])])
    driven.flush()
    assert (members[1].sizes, members[2].sizes) == ([100], [100])
    assert driven.settled == [("100", True)]
    driven.close()


@pytest.mark.parametrize("ok", [True, False])
def test_they_may_be_kept_and_settled_together_later(ok: bool) -> None:
    class Keeps(Bolt):
        output_fields = FIELDS

        def process_many(self, tups: Tuples) -> None:
            self.tups = tups

    keeps = Keeps()
    driven = DrivenChain([Single().begin(0), keeps], [[], [0]], "root")
    driven.give_block([("default", [[[None, n, "p", "100"]] for n in range(5)])])
    driven.flush()
    assert driven.settled == []
    id = keeps.tups[1].id
    keeps.ack(id)
    with pytest.raises(LocalProtocolError, match="acked or failed before"):
        keeps.ack(id)
    (keeps.ack_many if ok else keeps.fail_many)(keeps.tups)
    keeps.ack_many(keeps.tups)  # there is none left
    with pytest.raises(LocalProtocolError, match="acked or failed before"):
        keeps.emit(["late"], anchors=keeps.tups)
    driven.flush()
    assert driven.settled == [("100", ok)]
    driven.close()


def test_what_is_anchored_to_tuples_that_are_all_settled_is_anchored_to_nothing() -> None:
    class Settles(Bolt):
        output_fields = FIELDS

        def process_many(self, tups: Tuples) -> None:
            for tup in tups:
                self.ack(tup)
            self.emit([[1, 1, "", None]], anchors=tups)

    driven = DrivenChain([Single().begin(0), Settles(), Each().begin(2)], [[], [0], [1]], "root")
    driven.give_block([("default", [[[None, n, "p", "100"]] for n in range(3)])])
    driven.flush()
    assert driven.settled == [("100", True)]
    assert Counter(tuple(each.anchors or ()) for each in driven.emits) == {("100",): 1, (): 1}
    driven.close()


def test_an_exception_says_how_many_there_were() -> None:
    class Raises(Bolt):
        output_fields = FIELDS

        def process_many(self, tups: Tuples) -> None:
            raise ValueError(f"{len(tups)} of {tups.component}")

    driven = DrivenChain([Single().begin(0), Raises()], [[], [0]], "root")
    with pytest.raises(ValueError, match="3 of m0"):
        driven.give_block([("default", [[[None, n, "p", "100"]] for n in range(3)])])
    driven.flush()
    assert driven.settled == []
    driven.close()
