"""An RDD in the driver: the same rows for the same offset, or none at all."""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from multilang import LocalCluster
from spark_bridge import ChangedRowsError, ConnectorError, PartitionSpout, RDDSource
from spark_bridge.sources import live
from spark_bridge.sources.blocks import Block, Width
from tests.patience import patient
from tests.soak import chosen, soak_only
from tests.spark.sources.test_serve import until
from tests.spark.sources.topologies import FailsFirst, through

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


def all_rows(source: Any, partition: int, limit: int = 10**9) -> list[Any]:
    rows: list[Any] = []
    while some := source.read(partition, len(rows), limit):
        rows += [list(row) for row in some]
    return rows


@pytest.mark.parametrize("persist", chosen([True, False, None], False))
def test_rows_are_read_by_offset_in_any_order(spark: SparkSession, persist: bool | None) -> None:
    source = RDDSource(spark.sparkContext.parallelize(range(1000), 3), persist=persist, block_rows=7)
    assert source.partitions == 3
    due = [list(range(333)), list(range(333, 666)), list(range(666, 1000))]
    for partition, numbers in enumerate(due):
        assert all_rows(source, partition) == [[n] for n in numbers]
        assert not source.read(partition, len(numbers), 5)
    for offset in random.Random(1).sample(range(333), 20):
        assert source.read(1, offset, 1) == [(333 + offset,)]
    source.close()


@pytest.mark.parametrize("rows", [0, 1, 6, 7, 8, 14])
def test_a_partition_ends_where_it_ends(spark: SparkSession, rows: int) -> None:
    source = RDDSource(spark.sparkContext.parallelize(range(rows), 1), block_rows=7)
    assert all_rows(source, 0, limit=3) == [[n] for n in range(rows)]
    assert not source.read(0, rows, 1)
    assert not source.read(0, rows + 70, 1)
    source.close()


@soak_only
def test_a_short_partition_takes_one_job_and_a_long_one_few(spark: SparkSession) -> None:
    sc = spark.sparkContext
    passes = sc.accumulator(0)

    def counted(rows: Iterator[int]) -> Iterator[int]:
        passes.add(1)
        return rows

    source = RDDSource(sc.parallelize(range(10), 2).mapPartitions(counted), block_rows=7)
    assert all_rows(source, 0) == [[n] for n in range(5)]
    assert passes.value == 1
    source.close()
    passes.value = 0
    source = RDDSource(sc.parallelize(range(7000), 1).mapPartitions(counted), block_rows=7)
    assert len(all_rows(source, 0)) == 7000
    assert passes.value <= 5  # 1, 4 and 16 blocks, and then all of it, once, for the executors to keep
    source.close()


def test_short_partitions_are_begun_together(spark: SparkSession) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    source = RDDSource(spark.sparkContext.parallelize(range(200), 100).persist())
    before = jobs()
    assert [all_rows(source, partition) for partition in range(100)] == [[[2 * n], [2 * n + 1]] for n in range(100)]
    assert jobs() - before <= 40  # 5 but where a busy machine makes them slow
    source.close()


def test_a_long_partition_that_was_begun_with_short_ones_is_read_ahead_from_anywhere(spark: SparkSession) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    rows = spark.sparkContext.parallelize(range(8), 8).flatMap(lambda n: range(150) if n == 7 else [n])
    source = RDDSource(rows, block_rows=10)
    for partition in range(6):
        assert all_rows(source, partition) == [[partition]]
    before = jobs()
    for offset in range(20, 150, 10):  # where a spout goes on that was stopped in the middle
        assert source.read(7, offset, 10) == [(offset + n,) for n in range(10)]
    assert jobs() - before <= 4  # of 1, 4 and 16 blocks; one for each of 13 blocks before
    source.close()


def test_what_is_begun_for_readers_that_do_not_come_takes_little_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "READ_AHEAD_BYTES", 500)
    source = RDDSource(spark.sparkContext.parallelize(["moon" * 25] * 80, 80))
    for partition in range(0, 80, 2):  # the others belong to a task that is not up
        assert all_rows(source, partition) == [["moon" * 25]]
        source.finished(partition)
    gc.collect()
    here = [each.data for each in gc.get_objects() if type(each) is Block and b"moonmoon" in each.data]
    assert sum(map(len, here)) < 4_000  # of 8,000
    for partition in range(1, 80, 2):
        assert all_rows(source, partition) == [["moon" * 25]]
    source.close()


def test_a_partition_that_fails_keeps_nobody_from_the_ones_before_it(spark: SparkSession) -> None:
    source = RDDSource(spark.sparkContext.parallelize(range(60), 60).map(lambda n: 1 // (n - 50)), name="quotients")
    for partition in range(50):
        assert len(all_rows(source, partition)) == 1
    with pytest.raises(ConnectorError, match="could not compute partition 50 of 'quotients': ZeroDivisionError"):
        source.read(50, 0, 1)
    source.close()


def test_partitions_that_are_long_or_slow_are_begun_one_by_one() -> None:
    def first(size: int, last: bool = True) -> Block:
        return Block(0, 1, b"", b"", last, b"x" * size)

    width = Width(most_bytes=10_000)
    for brought in (4, 16, 64, 64):
        width.learn([first(10)] * width.partitions, 0.1)
        assert width.partitions == brought
    width.learn([first(1000)] * 64, 0.1)
    assert width.partitions == 9
    width.learn([first(10)] * 9, 3.0)
    assert width.partitions == 2
    width.learn([first(10), first(10, last=False)], 0.1)
    assert width.partitions == 1
    width.learn([first(1_000_000)], 0.1)
    assert width.partitions == 1


def test_rows_that_change_when_they_are_computed_again_are_refused(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(100), 1).map(lambda n: (n, random.random()))
    source = RDDSource(rdd, fields=["n", "x"], persist=False, block_rows=10, name="dice")
    with pytest.raises(
        ChangedRowsError,
        match=r"partition 0 of 'dice' .*between offsets 0 and \d+: .*not deterministic.*checkpoint\(\)",
    ):
        all_rows(source, 0)
    with pytest.raises(ChangedRowsError):  # for good: rows were given out that can't be read again
        source.block(0, 0)
    source.close()


def test_a_topology_is_told_of_rows_that_change(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(100), 1).map(lambda n: random.random())
    source = RDDSource(rdd, persist=False, block_rows=10)
    with LocalCluster(mode="inprocess", fail_fast=True) as cluster:
        run = cluster.submit(through(PartitionSpout(source)))
        with pytest.raises(Exception, match="not deterministic"):
            run.wait(timeout=patient(60))
    source.close()


def test_a_partition_that_ends_elsewhere_the_second_time_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def shrinking(rows: Iterator[int]) -> Iterator[int]:
        kept = list(rows)
        if mark.exists():
            return iter(kept[:30])
        mark.touch()
        return iter(kept)

    source = RDDSource(
        spark.sparkContext.parallelize(range(100), 1).mapPartitions(shrinking), persist=False, block_rows=10
    )
    source.run(0, 0, 10)
    with pytest.raises(ChangedRowsError):
        source.run(0, 50, 1)
    source.close()


def test_a_python_worker_that_is_killed_is_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "killed"

    def fatal(n: int) -> int:
        if n == 50:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return n
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    source = RDDSource(spark.sparkContext.parallelize(range(100), 1).map(fatal), block_rows=10)
    assert all_rows(source, 0) == [[n] for n in range(100)]
    assert mark.exists()
    source.close()


def test_blocks_that_were_evicted_are_computed_again_and_are_the_same(spark: SparkSession) -> None:
    source = RDDSource(spark.sparkContext.parallelize(range(1000), 2), persist=True, block_rows=10)
    before = [all_rows(source, partition) for partition in range(2)]
    source._blocks.unpersist(blocking=True)  # what an executor that is lost takes with it
    assert [all_rows(source, partition) for partition in range(2)] == before
    assert source.read(1, 77, 1) == [(577,)]
    source.close()


def test_a_failing_job_says_what_failed_and_ends_the_source(spark: SparkSession) -> None:
    source = RDDSource(spark.sparkContext.parallelize([1, 0], 1).map(lambda n: 1 / n), name="inverses")
    with pytest.raises(ConnectorError, match="could not compute partition 0 of 'inverses': ZeroDivisionError"):
        source.read(0, 0, 1)
    assert source.failed is not None
    source.close()


def test_closing_ends_the_jobs_that_read_ahead(spark: SparkSession) -> None:
    def slowly(n: int) -> int:
        time.sleep(0.2)
        return n

    jobs = spark.sparkContext.statusTracker().getActiveJobsIds
    source = RDDSource(spark.sparkContext.parallelize(range(10_000), 1).map(slowly))
    source.soon(0, 0)
    until(jobs, "it reads ahead")
    source.close()
    until(lambda: not jobs(), "nothing runs any more")


def test_an_rdd_source_stays_in_its_driver(spark: SparkSession) -> None:
    source = RDDSource(spark.sparkContext.parallelize([1], 1))
    with pytest.raises(ConnectorError, match=r"serve\(rdd\)"):
        pickle.dumps(source)
    with pytest.raises(ConnectorError, match="no partition 1, only 0 to 0"):
        source.read(1, 0, 1)
    source.close()
    with pytest.raises(ConnectorError, match="an RDD or a DataFrame, not of list"):
        RDDSource([1, 2])  # type: ignore[arg-type]


def test_each_row_of_a_live_dataframe_goes_through_an_embedded_cluster(spark: SparkSession) -> None:
    frame = spark.range(5000, numPartitions=3).selectExpr("id", "concat('row ', id) AS text")
    source = RDDSource(frame)
    with LocalCluster(mode="inprocess") as cluster:
        run = cluster.submit(through(PartitionSpout(source), FailsFirst, tasks=2), capture=["echo"])
        run.wait(timeout=patient(120))
        got = [tuple(tup["row"]) for tup in run.captured("echo")]
        assert run.counters["rows"].failed > 1000
    assert sorted(got) == [(n, f"row {n}") for n in range(5000)]
    source.close()
