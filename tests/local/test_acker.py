from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from multilang.local.acker import Acker

SPOUT = 7


def conversation(rng: random.Random, tuples: int) -> list[tuple[str, int]]:
    """The acker's messages about a random tree of so many tuples: the init, and an ack for each."""
    edges = [rng.getrandbits(64) for _ in range(tuples)]
    parents = [rng.randrange(-1, child) for child in range(tuples)]
    init = 0
    values = list(edges)
    for child, parent in enumerate(parents):
        if parent < 0:
            init ^= edges[child]
        else:
            values[parent] ^= edges[child]
    return [("init", init), *(("ack", value) for value in values)]


def tell(acker: Acker, root: int, message: tuple[str, int]) -> None:
    kind, value = message
    acker.init(root, value, SPOUT) if kind == "init" else acker.ack(root, value)


@given(st.integers(0, 2**32), st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_every_tree_completes_once_at_its_last_message_in_whatever_order_they_come(seed, sizes):
    rng = random.Random(seed)
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    left = {root: conversation(rng, size) for root, size in enumerate(sizes, 1)}
    messages = [(root, message) for root, all_ in left.items() for message in all_]
    rng.shuffle(messages)
    for root, message in messages:
        tell(acker, root, message)
        left[root].remove(message)
        assert ((SPOUT, root, True) in done) == (not left[root])
    assert sorted(done) == [(SPOUT, root, True) for root in left]
    assert len(acker) == 0


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(0, 19))
def test_a_tree_that_lacks_one_message_never_completes(seed, size, lost):
    rng = random.Random(seed)
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    messages = conversation(rng, size)
    del messages[lost % len(messages)]
    rng.shuffle(messages)
    for message in messages:
        tell(acker, 1, message)
    assert done == []


def test_a_spout_tuple_that_went_nowhere_is_acked_at_once():
    done: list[tuple[int, int, bool]] = []
    Acker(done.append).init(1, 0, SPOUT)
    assert done == [(SPOUT, 1, True)]


def test_one_failed_branch_fails_the_root_at_once_and_only_once():
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    acker.init(1, 5 ^ 6, SPOUT)
    acker.fail(1)
    acker.ack(1, 5)
    acker.fail(1)
    assert done == [(SPOUT, 1, False)]


def test_a_fail_that_overtakes_its_init_fails_the_root_when_the_init_comes():
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    acker.fail(1)
    assert done == []
    acker.init(1, 5, SPOUT)
    assert done == [(SPOUT, 1, False)]


def test_a_root_that_is_complete_is_acked_even_when_it_failed_before_its_init():
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    acker.fail(1)
    acker.ack(1, 5)
    acker.init(1, 5, SPOUT)
    assert done == [(SPOUT, 1, True)]


def test_entries_are_forgotten_after_three_ticks_and_late_messages_for_them_too():
    done: list[tuple[int, int, bool]] = []
    acker = Acker(done.append)
    acker.init(1, 5, SPOUT)
    for _ in range(3):
        assert len(acker) == 1
        acker.rotate()
    assert len(acker) == 0
    acker.ack(1, 5)
    assert len(acker) == 1
    for _ in range(3):
        acker.rotate()
    assert (len(acker), done) == (0, [])
