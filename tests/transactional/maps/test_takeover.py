"""A committer that is stopped within an update, while its topology is taken over, and then wakes up: each batch counts once.

hypothesis draws what is in the batches, which of two tasks is stopped at which step, and how far the successor is by then.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang.store.errors import StateError
from multilang.transactional import TransactionAttempt
from multilang.transactional.maps import MemoryBacking, OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap

BEFORE, TOTAL = 2, 4  # transactions: those before the takeover, and all of them
_names = itertools.count()

batches = st.fixed_dictionaries({}, optional=dict.fromkeys("abcd", st.integers(1, 3)))
part = {0: "ab", 1: "cd"}  # the keys of each of the two tasks


@pytest.fixture(params=["memory", "sqlite", "redis"])
def backing(request, tmp_path):
    """Makes two backings of one new place each time."""
    if request.param == "memory":
        return lambda: (MemoryBacking(),) * 2
    if request.param == "sqlite":
        return lambda: tuple(SqliteBacking(tmp_path / "maps.sqlite", name) for name in [f"map {next(_names)}"] * 2)
    server = request.getfixturevalue("redis_server")
    return lambda: tuple(
        RedisBacking(name, "127.0.0.1", server.port) for name in [f"takeover {next(_names)} {tmp_path}"] * 2
    )


def update(found, txid, epoch, batch, task):
    own = {key: number for key, number in batch.items() if key in part[task]}
    found.update(TransactionAttempt(txid, TransactionAttempt.first_of(epoch) + txid), own)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_committer_that_wakes_up_after_a_takeover_counts_nothing_twice(kind, backing):
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        contents=st.lists(batches, min_size=TOTAL, max_size=TOTAL),
        old_batch=batches,
        stopped=st.integers(0, 1),
        sibling_was_first=st.booleans(),
        step=st.sampled_from(["read", "put", "done"]),
        progress=st.integers(0, 2 * (TOTAL - BEFORE)),
    )
    def check(contents, old_batch, stopped, sibling_was_first, step, progress):
        places = backing()
        old, new = (kind(place) for place in places)
        for txid in range(1, BEFORE + 1):
            for task in (0, 1):
                update(old, txid, 1, contents[txid - 1], task)
        if kind is TransactionalMap:
            old_batch = contents[BEFORE]  # its spouts replay the very same batch
        successor = iter([(txid, task) for txid in range(BEFORE + 1, TOTAL + 1) for task in (0, 1)])

        def go_on(steps):
            for txid, task in itertools.islice(successor, steps):
                update(new, txid, 2, contents[txid - 1], task)

        def asleep(at):
            if at == step:
                old.trace = lambda _: None
                go_on(progress)

        if sibling_was_first:
            update(old, BEFORE + 1, 1, old_batch, 1 - stopped)
        old.trace = asleep
        try:
            update(old, BEFORE + 1, 1, old_batch, stopped)
        except StateError as problem:
            assert "replaced by another" in str(problem) or "comes after" in str(problem)  # noqa: PT017
        go_on(None)
        expected = sum((Counter(each) for each in contents), Counter())
        assert new.multi_get("abcd") == expected
        for place in places:
            place.close()

    check()
