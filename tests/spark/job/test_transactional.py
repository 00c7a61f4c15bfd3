"""Transactional topologies as Spark jobs: the answers of the embedded cluster, each row once, committers behind all else."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, BatchBolt, LocalCluster
from multilang.component.errors import FailedException
from multilang.drpc import LinearDRPCTopologyBuilder
from multilang.errors import TaskStartError
from multilang.loading.modules import load_module
from multilang.state import state_file
from multilang.store import open_store
from multilang.topology.errors import TopologyError
from multilang.transactional import (
    Committer,
    MemoryBacking,
    MemoryTransactionalSpout,
    OpaqueMap,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from spark_bridge.job import JobProgress, SparkJobError, run_topology
from spark_bridge.job.declared import as_declared
from spark_bridge.job.maps import check_maps
from tests.patience import patient
from tests.transactional.history import assert_in_order
from tests.transactional.spouts.topologies import word_count
from tests.transactional.topologies import COUNTS, PARTITIONS, Database, UpdateCounts, opaque, topology

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples"
WORDS = ["moon", "sun", "star", "comet", "é"]


def rows_in(spark: SparkSession, partitions: dict[int, list[Any]]) -> RDD[Any]:
    numbers = spark.sparkContext.parallelize(sorted(partitions), len(partitions))
    return numbers.flatMap(lambda number: partitions[number])


def stored(id: str) -> dict[str, dict[Any, Any]]:
    """All maps in the file of an example, each with its keys and values."""
    maps: dict[str, dict[Any, Any]] = {}
    with closing(open_store(f"sqlite:{state_file(id)}")) as kept:
        for place in kept.places("map/"):
            for key, value in kept.list(place, "values"):
                if key[:1] != b"$" and (found := json.loads(value)["value"]) != 0:  # 0: a bucket that was left
                    maps.setdefault(place.removeprefix("map/"), {})[json.loads(key)] = found
    return maps


@pytest.mark.parametrize(
    ("name", "spout"), [("global_count", "spout"), ("transactional_words", "spout"), ("bank_transfers", "transfers")]
)
def test_the_examples_give_what_they_give_on_the_embedded_cluster(
    spark: SparkSession, name: str, spout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place in ("local", "spark"):
        monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path / place))
        monkeypatch.delitem(sys.modules, name, raising=False)  # it names its files when it is loaded
        module = load_module(f"{EXAMPLES}/{name}.py")
        id = module.topology.name
        if place == "local":
            with LocalCluster(mode="inprocess") as cluster:
                cluster.submit(module.topology.with_conf({"bank.transfers": 300})).wait(timeout=patient(120))
        else:
            if name == "bank_transfers":
                rows = spark.sparkContext.parallelize([module.transfer(n) for n in range(300)], 3)
            else:
                rows = rows_in(spark, module.WORDS)
            with run_topology(module.topology, {spout: rows}, spark) as result:
                assert (result.acked, result.lost) == (rows.count(), 0)
                if name == "bank_transfers":
                    assert [row[1] for row in result.rdd("audit").collect()] == [0]
        found.append(stored(id))
    assert found[0] == found[1]
    # The topology's own spout has read none of it: what it reads now comes after what Spark has committed.
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(module.topology.with_conf({"bank.transfers": 300})).wait(timeout=patient(120))
    if name != "bank_transfers":
        assert stored(id)["counts"] == {key: 2 * value for key, value in found[0]["counts"].items()}


def store(tmp_path: Path) -> dict[str, Any]:
    return {
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
        "test.database": str(tmp_path / "counts.sqlite"),
    }


@pytest.mark.parametrize("declared", [topology, opaque], ids=["idempotent", "opaque"])
def test_committers_commit_in_order_transaction_by_transaction(
    spark: SparkSession, declared: Any, tmp_path: Path
) -> None:
    conf = store(tmp_path)
    UpdateCounts._databases.clear()  # of other tests' topologies in this process, and no executor's
    for _ in range(2):
        with run_topology(declared, {"spout": rows_in(spark, PARTITIONS)}, spark, conf=conf) as result:
            assert result.counters["spout"].acked == sum(COUNTS.values())
    database = Database(conf)
    counts = database.counts()
    commits = database.commits()
    database.close()
    assert counts.pop("*") == 2 * sum(COUNTS.values())
    assert counts == COUNTS + COUNTS
    assert_in_order(commits)
    total = min(task for task, *_ in commits)
    assert [task == total for task, *_ in commits] == [False, False, True] * 2  # which stands behind the others
    assert len({attempt for _, _, attempt in commits}) == 2


@pytest.mark.parametrize("kind", [TransactionalMap, OpaqueMap])
def test_what_fails_is_replayed_whole_and_counts_once(spark: SparkSession, kind: Any, tmp_path: Path) -> None:
    found = kind(SqliteBacking(tmp_path / "map.sqlite"))
    declared = word_count(MemoryTransactionalSpout({0: []}, ["word"], 1), found)
    failures = words = 0
    while failures < 3:  # one attempt of three fails, by chance
        rows = spark.sparkContext.parallelize([[WORDS[n % 5]] for n in range(words + 50)], 2)
        with run_topology(declared, {"spout": rows}, spark, conf=store(tmp_path), max_replays=60) as result:
            assert result.acked == words + 50
            failures += result.rounds - 1
        words += 50
        assert found.multi_get(WORDS) == dict.fromkeys(WORDS, words // 50 * (words // 50 + 1) * 5)
    found.close()


class Seen(BatchBolt, Committer):
    """Writes down each call."""

    output_fields = ["tx", "n"]

    def initialize(self, conf, context, collector, id):
        self.path = conf["test.seen"]
        self.rows = 0

    def process(self, tup):
        self.rows += 1

    def finish_batch(self):
        with open(self.path, "a") as file:
            file.write(f"{self.id} {self.rows}\n")
        self.emit([self.id, self.rows])


class Twice(BasicBolt):
    """Fails the first two attempts at its last tuple, and knows no other."""

    output_fields = ["tx", "word"]

    def process(self, tup):
        with open(self.conf["test.seen"] + ".tries", "a+") as file:
            file.write("." if tup["word"] == "last" else "")
            file.seek(0)
            tries = len(file.read())
        if tup["word"] == "last" and tries < 3:
            raise ValueError("not yet")
        self.emit([tup[0], tup["word"]])


class Ends(BatchBolt):
    """Behind what fails: its batch is never complete then."""

    def initialize(self, conf, context, collector, id):
        self.path = conf["test.seen"]

    def process(self, tup):
        pass

    def finish_batch(self):
        with open(self.path + ".ends", "a") as file:
            file.write(f"{self.id}\n")


def failing(bolt: type[BasicBolt]) -> Any:
    builder = TransactionalTopologyBuilder("failing", "rows", MemoryTransactionalSpout({0: []}, ["word"], 1), 2)
    builder.set_bolt("seen", Seen).shuffle_grouping("rows")
    builder.set_bolt("fails", bolt, 2).shuffle_grouping("rows")
    builder.set_bolt("ends", Ends).global_grouping("fails")
    return builder.build()


def test_no_committer_commits_while_anything_fails_in_the_processing_phase(spark: SparkSession, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    rows = spark.sparkContext.parallelize([["first"], ["second"], ["last"]], 2)
    conf = {**store(tmp_path), "test.seen": str(seen)}
    with run_topology(failing(Twice), {"rows": rows}, spark, conf=conf) as result:
        assert (result.acked, result.rounds) == (3, 3)
        # Of a worker that both came to, the second may be counted only.
        assert [each for each in result.errors if "ValueError" in each.message]
        assert all("not yet" in each.message for each in result.errors)
        outputs = result.rdd("seen")
        assert [row[1] for row in outputs.collect()] == [3]  # and nothing of what failed
    with pytest.raises(Exception, match="destroyed"):
        outputs.collect()
    assert [line.split()[1] for line in seen.read_text().splitlines()] == ["3"]
    assert len(Path(f"{seen}.ends").read_text().splitlines()) == 1


class Never(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup):
        raise FailedException("never")


class Foreign(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup):
        self.emit(["1:2", tup["word"]])


def test_a_job_that_broke_off_is_the_same_transaction_when_it_is_run_again(spark: SparkSession, tmp_path: Path) -> None:
    conf = {**store(tmp_path), "test.seen": str(tmp_path / "seen")}
    rows = spark.sparkContext.parallelize([["last"]], 1)
    with pytest.raises(SparkJobError, match=r"transaction 1 failed at every attempt \(2 of them\)"):
        run_topology(failing(Never), {"rows": rows}, spark, conf=conf, max_replays=1)
    with (
        LocalCluster(mode="inprocess", conf=conf) as cluster,
        pytest.raises(TaskStartError, match="was begun on Spark"),
    ):
        cluster.submit(failing(Never))
    with pytest.raises(SparkJobError, match=r"a tuple of TransactionAttempt\(1, 2\) is emitted.*it would be lost"):
        run_topology(failing(Foreign), {"rows": rows}, spark, conf=conf, max_replays=0)
    other = spark.sparkContext.parallelize(
        [["mended"]], 1
    )  # nothing was written, so that other rows may have the number
    run_topology(failing(Twice), {"rows": other}, spark, conf=conf).unpersist()
    assert (tmp_path / "seen").read_text().startswith("1:")
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(failing(Twice)).wait(timeout=patient(60))


def test_a_job_that_broke_off_behind_its_maps_is_run_again_with_its_rows_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "global_count", raising=False)
    topology = load_module(f"{EXAMPLES}/global_count.py").topology
    first, second = (spark.sparkContext.parallelize([word] * number, 2) for word, number in (("a", 5), ("b", 7)))

    def breaks_off(progress: JobProgress) -> None:
        if progress.done == progress.tasks:  # the map is written, and the transaction is not committed
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_topology(topology, {"spout": first}, spark, progress=breaks_off)
    assert stored(topology.name)["counts"] == {"words": 5}
    with pytest.raises(SparkJobError, match=r"had other rows .5 of spout/default; now 7 of spout/default.*first"):
        run_topology(topology, {"spout": second}, spark)
    run_topology(topology, {"spout": first.coalesce(1)}, spark).unpersist()  # the same rows, otherwise divided
    run_topology(topology, {"spout": second}, spark).unpersist()
    assert stored(topology.name)["counts"] == {"words": 12}


def test_a_bolt_that_works_on_requests_is_refused_by_name(spark: SparkSession) -> None:
    builder = LinearDRPCTopologyBuilder("reach")
    builder.add_bolt(Seen)
    with pytest.raises(
        TopologyError, match=r"bolt 'bolt0' \(Seen\) works on one id after the other.*transactional one"
    ):
        run_topology(builder.build(), {}, spark)


class InMemory(Seen):
    stored = TransactionalMap(MemoryBacking())


def test_a_map_that_executors_do_not_share_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    builder = TransactionalTopologyBuilder("memory", "rows", MemoryTransactionalSpout({0: []}, ["word"], 1))
    builder.set_bolt("seen", InMemory).shuffle_grouping("rows")
    rows = spark.sparkContext.parallelize([["a"]], 1)
    with pytest.raises(TopologyError, match=r"bolt 'seen' updates a map \(map 'map' in memory of this process\)"):
        run_topology(builder.build(), {"rows": rows}, spark, conf=store(tmp_path))
    in_a_file = as_declared(
        word_count(
            MemoryTransactionalSpout({0: []}, ["word"], 1), TransactionalMap(SqliteBacking(tmp_path / "map.sqlite"))
        )
    )
    check_maps(in_a_file, "local[4]")
    with pytest.raises(
        TopologyError,
        match=r"'update' updates a map .* executors of spark://one:7077 don't share: give it one on a server, such as a RedisBacking$",
    ):
        check_maps(in_a_file, "spark://one:7077")
    check_maps(as_declared(topology), "spark://one:7077")  # what its bolts open later is theirs
    with pytest.raises(TopologyError, match=r"spout 'spout' makes transactions.*give it a source"):
        run_topology(topology, {}, spark, conf=store(tmp_path))
