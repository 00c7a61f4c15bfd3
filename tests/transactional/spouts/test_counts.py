"""Every source through a whole topology, in this process and in processes of its own: the counts are those of the input."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import product

import pytest

from multilang.local import LocalCluster
from multilang.transactional import OpaqueMap, SqliteBacking, TransactionalMap
from tests.servers import LIMIT, wait_for
from tests.soak import chosen
from tests.transactional.spouts.sources import PARTITIONS
from tests.transactional.spouts.topologies import word_count

WORDS = ["moon", "sun", "star", "comet", "é"]


def add(source, chance, rows):
    """Rows for each partition; the words by how often they are there."""
    counts = Counter()
    for partition in range(PARTITIONS):
        words = chance.choices(WORDS, k=rows)
        source.add(partition, words)
        counts.update(words)
    return counts


def holds(found, counts):
    return found.multi_get(WORDS) == counts


def conf(tmp_path):
    return {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}


# Each source in processes is below.
@pytest.mark.parametrize(
    ("mode", "kind"),
    chosen(
        product(["inprocess", "process"], ["idempotent", "opaque"]),
        ("inprocess", "idempotent"),
        ("inprocess", "opaque"),
    ),
)
def test_what_is_replayed_is_counted_once(source, mode, kind, tmp_path):
    counts = add(source, random.Random(5), 120)
    if kind == "opaque":
        spout, found = source.opaque(take=20), OpaqueMap(SqliteBacking(tmp_path / "counts.sqlite"))
    else:
        spout, found = source.spout(take=20), TransactionalMap(SqliteBacking(tmp_path / "counts.sqlite"))
    with LocalCluster(mode=mode, conf=conf(tmp_path), seed=3) as cluster:
        cluster.submit(word_count(spout, found)).wait(timeout=LIMIT)
        assert found.multi_get(WORDS) == counts
    counts += add(source, random.Random(6), 30)
    with LocalCluster(mode=mode, conf=conf(tmp_path), seed=4) as cluster:
        cluster.submit(word_count(spout, found)).wait(timeout=LIMIT)
    assert found.multi_get(WORDS) == counts
    found.close()


def test_what_comes_while_the_topology_runs_is_counted(source, tmp_path):
    found = TransactionalMap(SqliteBacking(tmp_path / "counts.sqlite"))
    counts = Counter()
    with LocalCluster(conf=conf(tmp_path)) as cluster:
        run = cluster.submit(word_count(source.spout(take=20), found))
        for seed in range(3):
            counts += add(source, random.Random(seed), 50)
            wait_for(partial(holds, found, +counts), "what was added is counted")
        run.wait(timeout=LIMIT)
    assert found.multi_get(WORDS) == counts
    found.close()
