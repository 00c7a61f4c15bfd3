"""Redis is killed again and again while maps are updated: what it holds then is the input's."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from multilang.transactional import TransactionAttempt
from multilang.transactional.maps import OpaqueMap, RedisBacking, TransactionalMap
from tests.servers import wait_for
from tests.soak import SOAK

KILLS = 20 if SOAK else 3


@pytest.mark.soak
@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_a_redis_that_is_killed_in_the_midst_of_updates_counts_exactly(kind, tmp_path, redis_server):
    server = type(redis_server)(tmp_path)
    server.start()
    backing = RedisBacking("words", "127.0.0.1", server.port)
    found = kind(backing)
    done = 0

    def killer():
        for kill in range(KILLS):
            wait_for(lambda enough=100 * (kill + 1): done > enough, "updates go on")
            server.kill()
            server.start()

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        expected = Counter()
        while thread.is_alive():
            done += 1
            batch = Counter(f"word {(done * number) % 11}" for number in range(20))
            found.update(TransactionAttempt(done, done), batch)
            expected += batch
        assert found.multi_get(expected) == expected
        assert done > 100 * KILLS
    finally:
        thread.join()
        backing.close()
        server.kill()
