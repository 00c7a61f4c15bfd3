"""Sources without rows, without partitions, without columns, and with more partitions than rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, LocalCluster, Spout, TopologyBuilder
from multilang.transactional import SqliteBacking, TransactionalMap
from spark_bridge import ConnectorError, PartitionSpout, RDDSource, TransactionalPartitionSpout, publish, serve
from spark_bridge.job import run_topology
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.soak import SOAK, chosen
from tests.transactional.spouts.topologies import word_count

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from multilang.topology import Topology

PARTITIONS = 10_000 if SOAK else 12
LIMIT = patient(1800 if SOAK else 120)


class Words(Spout):
    output_fields = ("word",)


class Nothing(Spout):
    output_fields = ()


class Values(BasicBolt):
    output_fields = ("values",)

    def process(self, tup):
        self.emit([tup.values])


def topology_of(spout: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("rows", spout, parallelism=2)
    builder.set_bolt("values", Values, parallelism=2).shuffle_grouping("rows")
    return builder.build("rows")


def by_job(rows: Any, spout: Any, spark: SparkSession) -> list[Any]:
    with run_topology(topology_of(spout), {"rows": rows}, spark) as result:
        assert (result.lost, result.dataframe("values").count()) == (0, result.acked)
        return [values for (values,) in result.rdd("values").collect()]


def read(source: Any) -> list[Any]:
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(topology_of(PartitionSpout(source)), capture=["values"])
        running.wait(until="drained", timeout=LIMIT)
        return [tup.values[0] for tup in running.captured("values")]


def live(rows: Any) -> list[Any]:
    source = RDDSource(rows)
    try:
        return read(source)
    finally:
        source.close()


def served(rows: Any) -> list[Any]:
    with serve(rows) as there:
        found = read(there.source)
        there.wait(timeout=LIMIT)
        return found


def committed(rows: Any, folder: Path) -> dict[str, int]:
    found = TransactionalMap(SqliteBacking(folder / "counts.sqlite"))
    conf = {"multilang.transactional.store": f"sqlite://{folder}/transactions.sqlite"}
    source = RDDSource(rows)
    try:
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(word_count(TransactionalPartitionSpout(source, 2), found)).wait(timeout=LIMIT)
        return {word: count for word, count in found.multi_get(list("abc")).items() if count}
    finally:
        source.close()
        found.close()


EMPTY = ["an RDD without partitions", "a DataFrame without partitions", "a DataFrame without rows"]


@pytest.mark.parametrize("what", chosen(EMPTY, EMPTY[0], EMPTY[2]))
def test_what_has_no_rows_is_done_at_once(spark: SparkSession, tmp_path: Path, what: str) -> None:
    sc = spark.sparkContext
    rows: Any = {
        "an RDD without partitions": sc.emptyRDD(),
        "a DataFrame without partitions": spark.createDataFrame(sc.emptyRDD(), "word string"),
        "a DataFrame without rows": spark.range(3, numPartitions=2)
        .selectExpr("CAST(id AS STRING) AS word")
        .where("word = ''"),
    }[what]
    assert by_job(rows, Words, spark) == live(rows) == served(rows) == []
    assert read(publish(rows, str(tmp_path / "published"))) == []
    assert committed(rows, tmp_path) == {}


def test_most_partitions_have_no_row(spark: SparkSession, tmp_path: Path) -> None:
    words = spark.range(3, numPartitions=PARTITIONS).selectExpr("substr('abc', CAST(id AS INT) + 1, 1) AS word")
    due = [["a"], ["b"], ["c"]]
    assert sorted(by_job(words, Words, spark)) == due
    assert sorted(read(publish(words, str(tmp_path / "published")))) == due
    assert sorted(served(words)) == due
    assert committed(words, tmp_path) == dict.fromkeys("abc", 1)


def test_rows_without_columns_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(3, numPartitions=2).select()
    assert by_job(rows, Nothing, spark) == live(rows) == [[], [], []]
    with pytest.raises(ConnectorError, match="the DataFrame has no columns, and a file of Parquet's no rows then"):
        publish(rows, str(tmp_path / "published"))


def test_a_batch_without_rows_is_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "lines"
    folder.mkdir()
    seen: list[tuple[int, int]] = []

    def run() -> None:
        with stream_topology(
            topology_of(Words),
            {"rows": spark.readStream.text(str(folder)).withColumnRenamed("value", "word")},
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            each_batch=lambda result, batch: seen.append((batch, result.dataframe("values").count())),
        ) as query:
            query.wait(timeout=LIMIT)

    run()  # no file
    (folder / "0.txt").write_text("")
    run()
    (folder / "1.txt").write_text("a\nb\n")
    run()
    assert [rows for _, rows in seen if rows] == [2]
