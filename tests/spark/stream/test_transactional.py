"""Transactional topologies as queries: each batch is a transaction, which counts once whatever is repeated, fails or dies.

A kill for each kind of map here; with MULTILANG_SOAK=full one at every step of both, and a hundred at random moments.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang import LocalCluster
from multilang.errors import TaskStartError
from multilang.state import StateError
from multilang.topology.errors import TopologyError
from multilang.transactional import MemoryTransactionalSpout, SqliteBacking, TransactionalMap
from spark_bridge.job import SparkJobError
from spark_bridge.stream import stream_topology
from tests.soak import SOAK, chosen
from tests.spark.stream import transactions
from tests.spark.stream.drivers import ROOT, driver, end, killed_at_random
from tests.spark.stream.test_killed import fill
from tests.state.topologies import words_of
from tests.transactional.spouts.topologies import word_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_bridge.stream import BatchProgress, TopologyQuery
    from tests.servers import RedisServer
    from tests.spark.stream.conftest import Lines

RANDOM_KILLS = 100


@pytest.fixture(params=chosen(["sqlite", "redis"], "redis"))
def conf(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return the places of transactions and maps: SQLite with a TransactionalMap, Redis with an OpaqueMap."""
    server: RedisServer | None = request.getfixturevalue("redis") if request.param == "redis" else None
    return {
        "multilang.transactional.store": f"tests.spark.stream.transactions.Store://{tmp_path}/transactions.sqlite",
        "test.maps": str(tmp_path / "maps.sqlite") if server is None else server.port,
    }


def start(spark: SparkSession, lines: Lines, conf: dict[str, Any], **more: Any) -> TopologyQuery:
    return stream_topology(
        transactions.topology,
        {"lines": lines.stream(spark)},
        **{"checkpoint": str(lines.folder.parent / "checkpoint"), "conf": conf, **more},
    )


def assert_counted(conf: dict[str, Any], sentences: int) -> None:
    words = words_of(sentences)
    for name, due in (("words", words), ("total", {"*": words.total()})):
        found = transactions.map_of(conf, name)
        assert found.multi_get(due) == due
        found.close()


def test_each_batch_is_a_transaction_over_restarts_and_repeated_batches(
    spark: SparkSession, lines: Lines, conf: dict[str, Any], tmp_path: Path
) -> None:
    told: list[BatchProgress] = []
    totals: list[list[Any]] = []

    def each(result: Any, batch: int) -> None:
        totals.extend(sorted(result.rdd("words").map(lambda row: [row[0].split(":")[0], row[1]]).collect()))

    fill(lines, 2)
    with start(spark, lines, conf, each_batch=each, outputs=["words"], progress=told.append) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 200)
    assert [txid for txid, _ in totals] == ["1", "1", "2", "2"]
    assert sum(count for _, count in totals) == words_of(200).total()
    # As after a crash between the commit and Spark's own note of it: the batch comes again, and is committed already.
    for name in ("1", ".1.crc"):
        os.remove(tmp_path / "checkpoint" / "commits" / name)
    fill(lines, 1)
    with start(spark, lines, conf, progress=told.append) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 200 + 100)
    assert [(each.batch, each.acked, each.failed, each.repeated) for each in told] == [
        (0, 100, 0, False), (1, 100, 0, False), (1, 0, 0, True), (2, 100, 0, False),
    ]  # fmt: skip
    # Another query, with a checkpoint of its own, goes on with the next transaction.
    with start(spark, lines, conf, checkpoint=str(tmp_path / "other")) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 600)


def test_a_failed_batch_is_replayed_whole_within_its_batch(spark: SparkSession, lines: Lines, tmp_path: Path) -> None:
    found = TransactionalMap(SqliteBacking(tmp_path / "map.sqlite"))
    topology = word_count(MemoryTransactionalSpout({0: []}, ["word"], 1), found)
    told: list[BatchProgress] = []
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    files = 0
    with stream_topology(
        topology,
        {"spout": lines.stream(spark, "word")},
        checkpoint=str(tmp_path / "checkpoint"),
        conf=conf,
        max_replays=60,
        progress=told.append,
    ) as query:
        while sum(each.replayed for each in told) < 2:  # one attempt of three fails, by chance
            lines.put(["moon", "sun", "moon"])
            files += 1
            query.query.processAllAvailable()
    assert [each.acked for each in told] == [3] * files
    assert sum(each.failed for each in told) == 3 * sum(each.replayed for each in told)
    assert found.multi_get(["moon", "sun"]) == {"moon": 2 * files, "sun": files}
    found.close()


def test_what_can_not_be_is_refused_by_name(spark: SparkSession, lines: Lines, tmp_path: Path) -> None:
    conf = {
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
        "test.maps": str(tmp_path / "maps.sqlite"),
    }
    with pytest.raises(TopologyError, match=r"spout 'lines' has no source.*the query's batches are the transactions"):
        stream_topology(transactions.topology, {}, checkpoint=str(tmp_path / "none"), conf=conf)
    with pytest.raises(TopologyError, match="has no stateful bolt whose state could be stored"):
        start(spark, lines, conf, state=str(tmp_path / "state"))
    fill(lines, 1)
    with start(spark, lines, conf) as query:
        query.query.processAllAvailable()
        with pytest.raises(StateError, match="is in use"):
            run_elsewhere(conf)
    fill(lines, 1)
    other = {**conf, "multilang.transactional.store": f"sqlite://{tmp_path}/elsewhere.sqlite"}
    with pytest.raises(
        SparkJobError, match=r"is at batch 1, and the store of the transactions .* has no batch of this"
    ):
        start(spark, lines, other).wait()

    def fails(*_: object) -> None:
        raise ValueError("not written")

    with pytest.raises(ValueError, match="not written"):
        start(spark, lines, conf, each_batch=fails).wait()
    # Its maps have transaction 2, which is not committed: nobody else may be that.
    with LocalCluster(mode="inprocess", conf=conf) as cluster, pytest.raises(TaskStartError, match="begun on Spark"):
        cluster.submit(transactions.topology)
    with pytest.raises(StateError, match=r"transaction 2 .* was begun on Spark .* run that again"):
        start(spark, lines, conf, checkpoint=str(tmp_path / "other")).wait()
    with start(spark, lines, conf) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 200)


def run_elsewhere(conf: dict[str, Any]) -> None:
    script = f"""
from spark_bridge.job.transactions import Transactions
from tests.spark.stream.transactions import topology
Transactions(topology.with_conf({conf!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    raise StateError(done.stderr.strip().splitlines()[-1])


@pytest.mark.timeout(600 + 150 * len(transactions.STEPS))
def test_a_driver_killed_at_steps_of_a_transaction(
    spark: SparkSession, lines: Lines, conf: dict[str, Any], tmp_path: Path
) -> None:
    is_opaque = isinstance(conf["test.maps"], int)
    steps = transactions.STEPS if SOAK else ["words after"] if is_opaque else ["committed before"]
    fill(lines, len(steps) + 1)
    for number, step in enumerate(steps):
        process = driver("transactions", tmp_path, conf, CRASH=f"{step}|{tmp_path / f'crash-{number}'}")
        _, said = end(process)
        assert process.returncode == -signal.SIGKILL, (step, said[-3000:])
    with start(spark, lines, conf) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 100 * (len(steps) + 1))


@pytest.mark.skipif(not SOAK, reason="drivers that are killed at random moments are in the soak")
@pytest.mark.timeout(600 + 150 * RANDOM_KILLS)
def test_a_driver_killed_at_random_moments(
    spark: SparkSession, lines: Lines, conf: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(9)
    kills = files = 0
    while kills < RANDOM_KILLS:
        fill(lines, 3)
        files += 3
        kills += killed_at_random(driver("transactions", tmp_path, conf), tmp_path, chance, not kills % 2)
    with start(spark, lines, conf) as query:
        query.query.processAllAvailable()
    assert_counted(conf, 100 * files)
