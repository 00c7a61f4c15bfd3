"""Whatever is replayed, the maps hold what the input has: any schedule of attempts, whole and cut short, on any backing."""

from __future__ import annotations

import pickle
import random
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.state import StateError
from multilang.transactional import TransactionAttempt
from multilang.transactional.maps import MemoryBacking, OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap

TASKS = 3
KEYS = ["moon", "sun", "star", ("a", 1), 7]

# One attempt: how many items it takes of what is left, where that may differ, and which tasks write before it is cut short.
ATTEMPT = st.tuples(st.integers(0, 6), st.sets(st.integers(0, TASKS - 1)))
TRANSACTION = st.tuples(st.lists(ATTEMPT, max_size=3), st.integers(0, 6))


def attempts():
    """Numbers that grow."""
    chance = random.Random(7)
    number = 0
    while True:
        number += chance.randrange(1, 2**40)
        yield number


def run(kind, backing, items, transactions):
    """Each task has a map of its own, as processes have. All items are done at the end."""
    maps = [kind(backing) for _ in range(TASKS)]
    numbers = attempts()
    done = txid = 0
    transactions = [*transactions, *[([], 6)] * len(items)]
    while done < len(items) or txid < len(transactions):
        cut_short, size = transactions[txid] if txid < len(transactions) else ([], 6)
        txid += 1
        for each, tasks in [*cut_short, (size, range(TASKS))]:
            batch = items[done : done + (each if kind is OpaqueMap else size)]
            attempt = TransactionAttempt(txid, next(numbers))
            for task in tasks:
                own = Counter(key for key in batch if KEYS.index(key) % TASKS == task)
                maps[task].update(attempt, own)
        done += len(batch)
        counted = Counter(items[:done])
        assert maps[0].multi_get(KEYS) == counted
    return maps[0].multi_get(KEYS)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
@given(st.lists(st.sampled_from(KEYS), max_size=30), st.lists(TRANSACTION, max_size=8))
def test_any_schedule_of_replays_gives_the_counts_of_the_input(kind, items, transactions):
    assert run(kind, MemoryBacking(), items, transactions) == Counter(items)


def test_the_pages_rule_alone_would_count_what_a_replay_no_longer_has_twice():
    """The first attempt has a key that the second has not; it comes with the next transaction."""
    found = OpaqueMap(MemoryBacking())
    found.update(TransactionAttempt(1, 11), {"moon": 1, "sun": 1})
    found.update(TransactionAttempt(1, 12), {"sun": 1})
    assert found.multi_get(["moon", "sun"]) == {"sun": 1}
    found.update(TransactionAttempt(2, 13), {"moon": 1})
    assert found.multi_get(["moon", "sun"]) == {"moon": 1, "sun": 1}


@pytest.fixture(params=["memory", "sqlite", "redis"])
def backing(request, tmp_path):
    if request.param == "memory":
        found = MemoryBacking()
    elif request.param == "sqlite":
        found = SqliteBacking(tmp_path / "deep" / "counts.sqlite", "words")
    else:
        found = RedisBacking("words", "127.0.0.1", request.getfixturevalue("redis").port)
    yield found
    found.close()


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_each_backing_holds_what_the_rules_ask_of_it(kind, backing):
    chance = random.Random(3)
    items = chance.choices(KEYS, k=60)
    transactions = [
        (
            [(chance.randint(0, 6), set(chance.sample(range(TASKS), chance.randint(0, TASKS)))) for _ in range(2)],
            chance.randint(0, 6),
        )
        for _ in range(20)
    ]
    assert run(kind, backing, items, transactions) == Counter(items)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_batch_of_thousands_of_keys_is_one_read_and_one_write(kind, backing):
    calls = []

    class Counted(type(backing)):
        def multi_get(self, keys):
            calls.append("get")
            return super().multi_get(keys)

        def multi_put(self, rows):
            calls.append("put")
            return super().multi_put(rows)

    backing.__class__ = Counted
    found = kind(backing)
    wanted = {f"key {number} é": number for number in range(5000)}
    assert found.update(TransactionAttempt(1, 5), wanted) == wanted
    assert calls == ["get", "put"]
    assert found.multi_get(wanted) == wanted


def test_numbers_are_added_functions_get_what_there_was_and_the_new_values_come_back(backing):
    found = TransactionalMap(backing)
    first, second = TransactionAttempt(1, 5), TransactionAttempt(2, 6)
    assert found.update(first, {"n": 2, "x": 0.5, "list": lambda before: [before, 1]}) == {
        "n": 2,
        "x": 0.5,
        "list": [None, 1],
    }
    assert found.update(second, {"n": -5, "list": lambda before: [*before, 2]}) == {"n": -3, "list": [None, 1, 2]}
    assert found.update(TransactionAttempt(2, 7), {"n": -5, "list": lambda before: 1 / 0}) == {
        "n": -3,
        "list": [None, 1, 2],
    }
    found.put(TransactionAttempt(3, 8), {"list": None, "x": {"deep": [1]}})
    assert found.get("list") is None
    assert found.get("list", "none") == "none"
    assert found.get("x") == {"deep": [1]}
    assert found.multi_get([]) == {}


def test_maps_of_one_place_are_apart_by_their_names(redis, tmp_path):
    for first, second in (
        (SqliteBacking(tmp_path / "x", "a"), SqliteBacking(tmp_path / "x", "b")),
        (RedisBacking("a", port=redis.port), RedisBacking("b", port=redis.port)),
    ):
        TransactionalMap(first).update(TransactionAttempt(1, 5), {"n": 1})
        assert TransactionalMap(second).get("n") is None
        first.close()
        second.close()


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_tasks_that_write_at_once_lose_nothing(kind, backing):
    """Each with a connection of its own, as processes have; they meet at the opaque map's record."""
    tasks, transactions = 4, 12
    together = threading.Barrier(tasks)
    backings = [
        backing if type(backing) is MemoryBacking else pickle.loads(pickle.dumps(backing)) for _ in range(tasks)
    ]
    problems = []

    def task(number):
        found = kind(backings[number])
        try:
            for txid in range(1, transactions + 1):
                together.wait(60)
                found.update(TransactionAttempt(txid, txid * 100), {(number, key): 1 for key in range(5)})
        except Exception as problem:  # noqa: BLE001 - shown by the test
            problems.append(problem)
            together.abort()

    threads = [threading.Thread(target=task, args=(number,)) for number in range(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    keys = [(number, key) for number in range(tasks) for key in range(5)]
    assert kind(backing).multi_get(keys) == dict.fromkeys(keys, transactions)
    for each in backings:
        each.close()


class Late(MemoryBacking):
    """``meanwhile`` happens between its first read and what it does then."""

    def __init__(self, backing, meanwhile):
        super().__init__()
        self.backing = backing
        self.meanwhile = meanwhile

    def multi_get(self, keys):
        values = self.backing.multi_get(keys)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return values

    def multi_put(self, rows):
        return self.backing.multi_put(rows)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_task_that_was_replaced_and_wakes_up_changes_nothing(kind):
    backing = MemoryBacking()
    found = kind(backing)
    found.update(TransactionAttempt(1, 1), {"moon": 1})

    def others():
        for txid in (2, 3, 4):
            found.update(TransactionAttempt(txid, txid), {"moon": 1})

    with pytest.raises(StateError, match="transaction 2 comes after"):
        kind(Late(backing, others)).update(TransactionAttempt(2, 99), {"moon": 1})
    assert found.get("moon") == 4


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_two_attempts_that_write_at_once_count_once(kind):
    backing = MemoryBacking()
    found = kind(backing)
    found.update(TransactionAttempt(1, 1), {"moon": 1})
    late = Late(backing, lambda: found.update(TransactionAttempt(2, 2), {"moon": 1}))
    kind(late).update(TransactionAttempt(2, 99), {"moon": 1})
    found.update(TransactionAttempt(3, 3), {"moon": 1})
    assert found.get("moon") == 3
