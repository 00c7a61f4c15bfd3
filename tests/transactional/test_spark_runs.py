"""Runs on Spark number their transactions in ZooKeeper as well, and no two of them at once."""

from __future__ import annotations

import pytest

from multilang.store.errors import StateError
from tests.transactional.topologies import topology


def test_what_a_run_began_and_committed_is_known_to_the_next(zookeeper):
    pytest.importorskip("pyspark")
    from spark_bridge.job.transactions import Transactions

    declared = topology.with_conf(zookeeper.conf)
    run = Transactions(declared)
    assert run.begin("query", 0) == 1
    first = run.attempt()
    with pytest.raises(StateError, match="is in use by topology 'words'"):
        Transactions(declared)
    assert run.begin("query", 0) == 1
    run.commit()
    run.close()
    again = Transactions(declared)
    assert again.begin("query", 0) is None
    assert again.begin("query", 1) == 2
    assert again.attempt().attempt > first.attempt
    again.close()
