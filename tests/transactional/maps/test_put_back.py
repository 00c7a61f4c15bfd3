"""A map in Redis that loses single values, or that is put back to an older copy while it is in use, counts on nowhere."""

from __future__ import annotations

import pytest
import redis as client_package

from multilang.component.errors import UnrecoverableError
from multilang.state.errors import StoreGoneError
from multilang.transactional import TransactionAttempt
from multilang.transactional.maps import OpaqueMap, RedisBacking, TransactionalMap

KINDS = [TransactionalMap, OpaqueMap]
WORDS = {"moon": 1, "sun": 1}


@pytest.fixture
def client(redis):
    with client_package.Redis(port=redis.port) as found:
        yield found


@pytest.fixture(params=KINDS)
def map_of(request, redis, tmp_path):
    """Make maps in one place, as the tasks of one bolt have them."""
    made = []

    def make():
        made.append(request.param(RedisBacking(str(tmp_path), "127.0.0.1", redis.port)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("who", ["in use", "started again"])
@pytest.mark.parametrize("how", ["removed", "added"])
def test_a_map_that_somebody_else_changed_is_refused(how, who, map_of, client, tmp_path):
    used = map_of()
    for txid in (1, 2):
        used.update(TransactionAttempt(txid, txid), WORDS)
    if how == "removed":
        client.hdel(str(tmp_path), '"moon"')
    else:
        client.hset(str(tmp_path), '"mars"', '{"value": 1}')
    now = used if who == "in use" else map_of()
    with pytest.raises(StoreGoneError, match=r"was changed by somebody else: it has \d fields, and \d were written"):
        now.update(TransactionAttempt(3, 3), WORDS)
    assert now.get("sun") == 2


def test_an_older_copy_under_a_map_in_use_is_refused(map_of, client, tmp_path):
    used, other = map_of(), map_of()
    used.update(TransactionAttempt(1, 1), WORDS)
    copy = client.dump(str(tmp_path))
    used.update(TransactionAttempt(2, 2), WORDS)
    other.update(TransactionAttempt(2, 2), {"mars": 1})
    client.restore(str(tmp_path), 0, copy, replace=True)
    for each in (used, other):
        with pytest.raises(StoreGoneError, match="was put back to an older copy while it was in use"):
            each.update(TransactionAttempt(2, 3), WORDS)
    assert map_of().multi_get(WORDS) == WORDS


def test_a_map_that_an_earlier_version_wrote_goes_on_and_is_counted_from_then_on(map_of, client, tmp_path):
    used = map_of()
    used.update(TransactionAttempt(1, 1), WORDS)
    client.hdel(str(tmp_path), "$size", "$step")
    again = map_of()
    again.update(TransactionAttempt(2, 2), WORDS)
    assert again.multi_get(WORDS) == {"moon": 2, "sun": 2}
    client.hdel(str(tmp_path), '"moon"')
    with pytest.raises(StoreGoneError):
        again.update(TransactionAttempt(3, 3), WORDS)


@pytest.mark.parametrize("who", ["in use", "started again"])
def test_an_opaque_map_that_lacks_transactions_ends_the_topology(who, redis, client, tmp_path):
    """No replay brings them back, so that the bolt must not try it again for ever."""
    used, again = (OpaqueMap(RedisBacking(str(tmp_path), "127.0.0.1", redis.port)) for _ in range(2))
    used.update(TransactionAttempt(1, 1), WORDS)
    copy = client.dump(str(tmp_path))
    used.update(TransactionAttempt(2, 2), WORDS)
    client.restore(str(tmp_path), 0, copy, replace=True)
    with pytest.raises(UnrecoverableError, match="the map is an older copy"):
        (used if who == "in use" else again).update(TransactionAttempt(3, 3), WORDS)
    used.close()
    again.close()


def test_a_map_that_was_removed_begins_anew(map_of, client, tmp_path):
    """By someone who begins anew with other transactions, in the same process."""
    used = map_of()
    for txid in range(1, 5):
        used.update(TransactionAttempt(txid, txid), WORDS)
    client.delete(str(tmp_path))
    for txid in (1, 2):
        used.update(TransactionAttempt(txid, txid), WORDS)
    assert used.multi_get(WORDS) == {"moon": 2, "sun": 2}
