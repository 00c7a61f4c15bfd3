"""A map belongs to one owner of transactions: who else updates it is refused by name, on every backing, and nothing is written."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from multilang import BatchBolt
from multilang.local import LocalCluster, LocalClusterError
from multilang.protocol.codec import dumps, loads
from multilang.store.errors import StateError, StoreGoneError, UnusableStateError
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from multilang.transactional.maps import MemoryBacking, OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap

_names = itertools.count()
KINDS = pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])


@pytest.fixture(params=["memory", "sqlite", "redis"])
def new_backing(request, tmp_path):
    """Returns another backing each time, of the same file or server."""
    made = []

    def new():
        name = f"map {next(_names)} {tmp_path}"
        if request.param == "memory":
            made.append(MemoryBacking())
        elif request.param == "sqlite":
            made.append(SqliteBacking(tmp_path / "maps.sqlite", name))
        else:
            made.append(RedisBacking(name, "127.0.0.1", request.getfixturevalue("redis_server").port))
        return made[-1]

    yield new
    for each in made:
        each.close()


def attempt(owner, epoch, txid, number=0):
    return TransactionAttempt(txid, TransactionAttempt.first_of(epoch) + 100 * txid + number, owner)


class Model:
    """The claim as it must be: the first owner has the map, and the highest epoch that has written."""

    def __init__(self):
        self.owner = None
        self.epoch = self.txid = 0
        self.counts = Counter()

    def refuses(self, owner, epoch):
        return self.owner not in (None, owner) or epoch < self.epoch

    def update(self, owner, epoch):
        self.owner, self.epoch, self.txid = owner, epoch, self.txid + 1
        self.counts["moon"] += 1


@KINDS
def test_only_the_newest_epoch_of_the_first_owner_writes_to_a_map(kind, new_backing):
    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.tuples(st.sampled_from(["one/a", "one/b", "two/a"]), st.integers(1, 3)), max_size=12))
    def check(steps):
        backings = new_backing(), new_backing()  # two maps of one file or server, whose owners are their own
        models = Model(), Model()
        for number, (owner, epoch) in enumerate(steps):
            for backing, model, who in zip(backings, models, (owner, f"other {owner}"), strict=True):
                found = kind(backing)  # as another task, or after a crash
                update = attempt(who, epoch, model.txid + 1, number)
                if model.refuses(who, epoch):
                    with pytest.raises(UnusableStateError if model.owner != who else StateError):
                        found.update(update, {"moon": 1})
                else:
                    found.update(update, {"moon": 1})
                    model.update(who, epoch)
                assert found.get("moon", 0) == model.counts["moon"]

    check()


@KINDS
@pytest.mark.parametrize("step", ["read", "put"])
def test_who_is_stopped_within_an_update_while_the_map_is_claimed_writes_nothing(kind, step, new_backing):
    backing = new_backing()
    old, new = kind(backing), kind(backing)
    old.update(attempt("one/a", 1, 1), {"moon": 1})

    def asleep(at):
        if at == step:
            old.trace = lambda _: None
            new.update(attempt("one/a", 2, 2), {"sun": 1})  # another key, so that the row of the owner alone tells

    old.trace = asleep
    with pytest.raises(StateError, match=r"claimed again \(epoch 2\).*earlier one \(epoch 1\)"):
        old.update(attempt("one/a", 1, 2), {"moon": 1})
    assert new.multi_get(["moon", "sun"]) == {"moon": 1, "sun": 1}


@KINDS
def test_a_map_that_was_updated_by_hand_belongs_to_who_updates_it_first(kind, new_backing):
    backing = new_backing()
    found = kind(backing)
    found.update(TransactionAttempt(1, 5), {"moon": 1})  # which names no owner
    found.check_owner("one")
    found.update(attempt("one/a", 1, 2), {"moon": 1})
    found.check_owner("one")
    with pytest.raises(
        UnusableStateError, match=r"belongs to the transactional id .one., and this topology.s is .two..*two maps"
    ):
        found.check_owner("two")
    with pytest.raises(UnusableStateError, match="belongs to the transactional id 'one', and this topology's is 'two'"):
        found.update(attempt("two/a", 2, 3), {"moon": 1})
    with pytest.raises(UnusableStateError, match="earlier transactions of 'one', which were removed"):
        found.update(attempt("one/b", 2, 3), {"moon": 1})
    assert found.get("moon") == 2


@KINDS
def test_a_crash_between_claim_and_write_leaves_neither(kind, new_backing):
    backing = new_backing()
    found = kind(backing)

    def crash(at):
        if at == "put":
            raise KeyboardInterrupt

    found.trace = crash
    with pytest.raises(KeyboardInterrupt):
        found.update(attempt("one/a", 1, 1), {"moon": 1})
    kind(backing).update(attempt("two/a", 1, 1), {"moon": 1})
    assert kind(backing).get("moon") == 1


@KINDS
def test_a_map_that_loses_its_own_rows_while_it_is_used_is_missed(kind):
    backing = MemoryBacking()
    found = kind(backing)
    found.update(attempt("one/a", 1, 1), {"moon": 1})
    owner = loads(backing.multi_get([b"$owner"])[0])
    assert owner == {"id": "one", "incarnation": "a", "epoch": 1, "kind": kind.__name__}
    backing.store.compare_and_write("map/map", {}, {"values": {b"$owner": None}})
    with pytest.raises(StoreGoneError, match=r"lost its own rows \(\$owner\)"):
        found.update(attempt("one/a", 1, 2), {"moon": 1})
    found.update(attempt("one/a", 2, 2), {"moon": 1})  # started again
    assert found.get("moon") == 2


class Count(BatchBolt, Committer):
    def __init__(self, found, is_told):
        self.found = (found,)  # no attribute that is a map: it is not checked at the start
        if is_told:
            self.map = found

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def finish_batch(self):
        self.found[0].update(self.id, self.counts)


def run(kind, id, found, words, conf, is_told=True):
    spout = {TransactionalMap: MemoryTransactionalSpout, OpaqueMap: OpaqueMemoryTransactionalSpout}[kind]
    builder = TransactionalTopologyBuilder(id, "words", spout({0: [[word] for word in words]}, ["word"], 100))
    builder.set_bolt("count", Count(found, is_told)).global_grouping("words")
    with LocalCluster("simulated", conf=conf) as cluster:
        cluster.submit(builder.build()).wait(timeout=60)


@KINDS
@pytest.mark.parametrize("is_told", [True, False])
def test_two_topologies_on_one_map_count_right_or_the_second_is_refused_by_name(kind, is_told, tmp_path):
    found = kind(SqliteBacking(tmp_path / "maps.sqlite", "counts"))
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    run(kind, "one", found, "a" * 10, conf)
    run(kind, "two", kind(SqliteBacking(tmp_path / "maps.sqlite", "other")), "", conf)  # so that its epoch is higher
    with pytest.raises(
        LocalClusterError,
        match=r"map 'counts' in .* belongs to the transactional id 'one', and this topology's is 'two'",
    ):
        run(kind, "two", found, "a" * 7, conf, is_told)
    assert found.get("a") == 10
    run(kind, "one", found, "a" * 10 + "b", conf)  # submitted again, with one more
    assert found.multi_get("ab") == {"a": 10, "b": 1}
    found.close()


@KINDS
def test_transactions_that_were_removed_and_begin_anew_are_refused_by_their_old_map(kind, tmp_path):
    found = kind(SqliteBacking(tmp_path / "maps.sqlite", "counts"))
    run(kind, "one", found, "a" * 10, {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"})
    with pytest.raises(LocalClusterError, match="belongs to earlier transactions of 'one', which were removed"):
        run(kind, "one", found, "a" * 5, {"multilang.transactional.store": f"sqlite://{tmp_path}/others.sqlite"})
    assert found.get("a") == 10
    found.close()


def test_the_row_of_the_owner_is_no_keys_row():
    found = TransactionalMap(MemoryBacking())
    found.update(attempt("one/a", 1, 1), {"$owner": 7})
    assert found.get("$owner") == 7
    assert found.backing.multi_get([dumps("$owner").encode()])[0] is not None
