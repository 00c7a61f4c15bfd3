"""A mistake in the use of maps is one clear error that says what to do."""

from __future__ import annotations

import copy
import pickle

import pytest

from multilang import BatchBolt
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.local import LocalCluster, LocalClusterError
from multilang.state import StateError
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from multilang.transactional.maps import MemoryBacking, OpaqueMap, RedisBacking, SqliteBacking, TransactionalMap
from tests.patience import patient
from tests.servers import free_port, wait_for


@pytest.fixture(params=[TransactionalMap, OpaqueMap])
def found(request):
    return request.param(MemoryBacking())


def test_a_key_that_is_updated_twice_in_one_attempt_is_refused(found):
    attempt = TransactionAttempt(1, 5)
    found.update(attempt, {"moon": 1})
    found.update(attempt, {"sun": 1})
    with pytest.raises(StateError, match=r"'moon' was updated in this attempt of transaction 1 already.*finish_batch"):
        found.update(attempt, {"moon": 1})
    assert found.get("moon") == 1


def test_a_transaction_that_is_older_than_what_is_stored_is_refused(found):
    found.update(TransactionAttempt(1, 4), {"moon": 1})
    found.update(TransactionAttempt(2, 5), {"moon": 1})
    with pytest.raises(StateError, match=r"transaction 1 comes after .* transaction 2.*committer"):
        found.update(TransactionAttempt(1, 6), {"moon": 1})
    assert found.get("moon") == 2


class Sum(BatchBolt, Committer):
    map: TransactionalMap | OpaqueMap

    def __init__(self, found):
        self.map = found

    def process(self, tup):
        pass

    def finish_batch(self):
        self.map.update(self.id, {"moon": 1})


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_topology_whose_transactions_are_older_than_its_map_ends(kind, tmp_path):
    found = kind(MemoryBacking())
    for txid in range(1, 4):
        found.update(TransactionAttempt(txid, txid), {"moon": 1})
    builder = TransactionalTopologyBuilder("anew", "spout", MemoryTransactionalSpout({0: [["moon"]]}, ["word"], 1))
    builder.set_bolt("sum", Sum(found)).global_grouping("spout")
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    with LocalCluster(mode="simulated", conf=conf) as cluster:
        run = cluster.submit(builder.build())
        with pytest.raises(LocalClusterError, match=r"transaction 1 comes after .* transaction 3.*began anew"):
            run.wait(timeout=patient(60))
    assert found.get("moon") == 3


class Both(Sum):
    def finish_batch(self):
        super().finish_batch()
        super().finish_batch()


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_key_that_is_updated_twice_ends_the_topology(kind, tmp_path):
    """The replay of the batch would find the key done, or fail for ever."""
    found = kind(MemoryBacking())
    builder = TransactionalTopologyBuilder("twice", "spout", MemoryTransactionalSpout({0: [["moon"]]}, ["word"], 1))
    builder.set_bolt("sum", Both(found)).global_grouping("spout")
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    with LocalCluster(mode="simulated", conf=conf) as cluster:
        run = cluster.submit(builder.build())
        with pytest.raises(LocalClusterError, match=r"'moon' was updated in this attempt of transaction 1 already"):
            run.wait(timeout=patient(60))


def test_a_check_of_a_redis_that_answers_with_an_error_keeps_no_connection(redis):
    import redis as module

    with module.Redis(port=redis.port) as client:
        before = {
            each["id"] for each in client.client_list()
        }  # some of which may end meanwhile: they were other tests'
        client.execute_command("ACL", "SETUSER", "default", "-ping")
        try:
            with pytest.raises(StateError, match="ping") as kept:
                RedisBacking("map", "127.0.0.1", redis.port).check()
        finally:
            client.execute_command("ACL", "SETUSER", "default", "+ping")
        wait_for(
            lambda: {each["id"] for each in client.client_list()} <= before,
            f"the end of the connection of {kept.value}",
        )


@pytest.mark.parametrize(("before", "after"), [(TransactionalMap, OpaqueMap), (OpaqueMap, TransactionalMap)])
def test_a_map_of_the_other_kind_is_reported(before, after):
    backing = MemoryBacking()
    before(backing).update(TransactionAttempt(1, 5), {"moon": 1})
    kinds = rf"was stored by a map of the kind {before.__name__}, and this one is {after.__name__}.*a name of its own"
    for use in (
        lambda found: found.get("moon"),
        lambda found: found.update(TransactionAttempt(2, 6), {"sun": 1}),
        lambda found: found.check_owner(None),
    ):
        with pytest.raises(StateError, match=kinds):
            use(after(backing))


def test_an_opaque_map_that_was_not_told_of_a_transaction_says_so():
    found = OpaqueMap(MemoryBacking())
    found.update(TransactionAttempt(4, 5), {"moon": 1})
    found.update(TransactionAttempt(5, 6), {})
    with pytest.raises(
        UnrecoverableError, match=r"transaction 7 follows transaction 5.*call update in every finish_batch"
    ):
        found.update(TransactionAttempt(7, 7), {"moon": 1})


def test_an_opaque_map_refuses_an_attempt_that_was_replaced():
    found = OpaqueMap(MemoryBacking())
    found.update(TransactionAttempt(1, 5), {"moon": 1})
    found.update(TransactionAttempt(1, 6), {"moon": 2})
    with pytest.raises(StateError, match="this attempt at transaction 1 was replaced"):
        found.update(TransactionAttempt(1, 5), {"sun": 1})


def test_an_opaque_map_refuses_an_attempt_that_comes_after_the_one_that_replaced_it():
    """It had not written before: a task that was taken for dead wakes up."""
    found = OpaqueMap(MemoryBacking())
    found.update(TransactionAttempt(1, 6), {"moon": 2})
    with pytest.raises(StateError, match="this attempt at transaction 1 was replaced"):
        found.update(TransactionAttempt(1, 5), {"moon": 1})
    assert found.get("moon") == 2


@pytest.mark.parametrize("attempt", ["1:5", 7, None])
def test_what_is_no_attempt_is_refused(found, attempt):
    with pytest.raises(TypeError, match="TransactionAttempt"):
        found.update(attempt, {"moon": 1})


@pytest.mark.parametrize("change", ["one", True, None, [1]])
def test_a_change_is_a_number_or_a_function(found, change):
    with pytest.raises(TypeError, match="the change of 'moon'"):
        found.update(TransactionAttempt(1, 5), {"moon": change})


def test_a_value_that_json_does_not_have_is_refused_and_nothing_is_stored(found):
    for value in (float("nan"), 2**64, object(), {1: 2}):
        with pytest.raises(ValueError, match="the new value of 'moon' can't be stored"):
            found.put(TransactionAttempt(1, 5), {"sun": 1, "moon": value})
    assert found.get("sun") is None


def test_a_key_is_a_string_an_integer_or_a_tuple_of_these(found):
    with pytest.raises(TypeError, match="a key of a state"):
        found.update(TransactionAttempt(1, 5), {1.5: 1})


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other"
    path.write_text("no database at all, but long enough to be one")
    with pytest.raises(StateError, match="other is damaged"):
        TransactionalMap(SqliteBacking(path)).get("moon")


def test_a_redis_that_is_not_there_is_named_after_a_while(monkeypatch):
    monkeypatch.setattr("multilang.store.redis_client.PATIENCE_SECS", 0.5)
    port = free_port()
    with pytest.raises(StateError, match=f"map/words.* in Redis 127.0.0.1:{port}, database 0 can't be used"):
        TransactionalMap(RedisBacking("words", "127.0.0.1", port, timeout=100)).get("moon")


def test_a_map_is_copied_with_its_bolt_and_goes_to_other_processes_closed(tmp_path):
    found = TransactionalMap(SqliteBacking(tmp_path / "counts"))
    found.update(TransactionAttempt(1, 5), {"moon": 1})
    assert copy.deepcopy(found) is found
    sent = pickle.loads(pickle.dumps(found))
    assert sent.get("moon") == 1
    sent.close()
    found.close()
    assert found.get("moon") == 1
    found.close()


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
@pytest.mark.parametrize("wrong", [MemoryBacking, None, 7])
def test_a_map_of_something_that_is_no_backing_is_refused(kind, wrong):
    with pytest.raises(TypeError, match=rf'{kind.__name__}\(SqliteBacking\("counts.sqlite"\)\)'):
        kind(wrong)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
@pytest.mark.parametrize("wrong", ["counts.sqlite", "", "mysql://here"])
def test_a_map_of_no_url_is_refused(kind, wrong):
    with pytest.raises(ConfigError, match=r"the place of a map is .*use sqlite:///FOLDER/FILE.sqlite"):
        kind(wrong)


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_map_may_be_made_of_a_url(kind, tmp_path):
    found = kind(f"sqlite://{tmp_path}/counts.sqlite", "words")
    found.update(TransactionAttempt(1, 5), {"moon": 1})
    same = kind(SqliteBacking(tmp_path / "counts.sqlite", "words"))
    assert same.get("moon") == 1
    assert kind(f"sqlite://{tmp_path}/counts.sqlite").get("moon") is None
    found.close()
    same.close()


class SumLater(BatchBolt, Committer):
    """Makes its map when it runs, so that nobody can look at it before."""

    def process(self, tup):
        pass

    def finish_batch(self):
        TransactionalMap(MemoryBacking()).update(self.id, {"moon": 1})


def started_behind_an_opaque_spout(bolt, cluster):
    builder = TransactionalTopologyBuilder(
        "loses", "spout", OpaqueMemoryTransactionalSpout({0: [["moon"]]}, ["word"], 1)
    )
    builder.set_bolt("sum", bolt).global_grouping("spout")
    return cluster.submit(builder.build())


def test_a_map_that_leaves_out_what_an_opaque_spout_repeats_is_refused(tmp_path):
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    expected = r"the topology's spout is opaque.*Use an OpaqueMap"
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        with pytest.raises(LocalClusterError, match=expected):
            started_behind_an_opaque_spout(Sum(TransactionalMap(MemoryBacking())), cluster)
        run = started_behind_an_opaque_spout(SumLater(), cluster)
        with pytest.raises(LocalClusterError, match=expected):
            run.wait(timeout=patient(60))
