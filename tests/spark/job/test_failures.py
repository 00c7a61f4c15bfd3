"""Failures are named and replayed; work that Spark repeats is counted once."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from multilang import BasicBolt, TopologyBuilder
from spark_bridge.executors import source_error
from spark_bridge.job import SparkJobError, TaskStartError, run_topology
from spark_bridge.job.watch import readable
from tests.soak import chosen
from tests.spark.job.components import (
    Batches,
    CantStart,
    DiesOnce,
    FailsAtFirst,
    FailsPairs,
    Forgets,
    LogsToFile,
    Pairs,
    Parts,
    Rows,
    Sums,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = [(f"k{n % 7}", n) for n in range(100)]
SUMS = {f"k{k}": sum(n for _, n in ROWS if n % 7 == k) for k in range(7)}


def failing(tasks: int = 1, grouping: str = "shuffle"):
    """rows -> fails -> sums: a tuple fails before anything was emitted for it, so nothing is counted twice."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    declarer = builder.set_bolt("fails", FailsAtFirst, parallelism=tasks)
    declarer.shuffle_grouping("rows") if grouping == "shuffle" else declarer.fields_grouping("rows", "key")
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("fails", "key")
    return builder.build("failing")


def latest(rows):
    """Of sums that were said in each round, the last, which is the greatest."""
    sums: dict[str, int] = {}
    for key, total, _ in rows:
        sums[key] = max(total, sums.get(key, 0))
    return sums


@pytest.mark.parametrize(("tasks", "grouping"), [(1, "shuffle"), (2, "fields")])
def test_failed_rows_are_replayed_until_they_are_acked_and_bolts_go_on_from_what_they_know(
    spark: SparkSession, tasks: int, grouping: str
) -> None:
    # Three attempts are needed: only a bolt that remembers the first two lets the third pass.
    conf = {"test.fail": [3, 50, 99], "test.times": [1, 2, 2]}
    rdd = spark.sparkContext.parallelize(ROWS, 3)
    with run_topology(failing(tasks, grouping), {"rows": rdd}, spark, conf=conf) as result:
        assert (result.acked, result.lost, result.failed, result.rounds) == (100, 0, [], 3)
        assert latest(result.rdd("sums").collect()) == SUMS
    counters = result.counters
    assert (counters["rows"].acked, counters["rows"].failed, counters["rows"].lost) == (100, 5, 0)
    assert (counters["fails"].executed, counters["fails"].failed, counters["fails"].acked) == (105, 5, 100)
    assert counters["fails"].errors == 5
    assert "ValueError in component 'fails'" in result.errors[0].message
    assert "not yet" in str(result.errors[0])
    assert [each.times for each in result.errors] == [5]


def test_a_fault_of_many_tuples_is_in_each_executors_log_once_and_counted_in_the_result(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("logs", LogsToFile, parallelism=2).shuffle_grouping("rows")
    conf = {"test.fail": list(range(100)), "test.times": [9] * 100, "test.log": str(tmp_path / "log")}
    rdd = spark.sparkContext.parallelize(ROWS, 2)
    with run_topology(builder.build("logs"), {"rows": rdd}, spark, conf=conf, max_replays=2) as result:
        assert (result.lost, result.rounds) == (100, 3)
    assert [(each.component, each.times) for each in result.errors] == [("logs", 300)]
    assert "logs' (task 3), 300 times: ValueError" in str(result.errors[0]).replace("(task 2)", "(task 3)")
    told = [
        line.partition(" ")[0] for line in (tmp_path / "log").read_text().splitlines() if "ERROR ValueError" in line
    ]
    full = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("Traceback")]
    assert (
        1 <= len(full) == len(set(told)) <= 2 * 3
    )  # no more than processes, of which Spark may have another in each round


def test_sys_exit_of_a_bolt_fails_its_tuple_and_says_what_to_do_instead(spark: SparkSession) -> None:
    class Exits(BasicBolt):
        def process(self, tup):
            raise SystemExit(3)

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("exits", Exits).shuffle_grouping("rows")
    rdd = spark.sparkContext.parallelize(ROWS[:3], 1)
    with run_topology(builder.build("exits"), {"rows": rdd}, spark, max_replays=0) as result:
        assert (result.acked, result.lost) == (0, 3)
    assert "sys.exit(3) ends the task" in result.errors[0].message


def test_what_fails_at_every_attempt_is_named(spark: SparkSession) -> None:
    conf = {"test.fail": [3, 50], "test.times": [9, 1]}
    rdd = spark.sparkContext.parallelize(ROWS, 2)
    with run_topology(failing(), {"rows": rdd}, spark, conf=conf, max_replays=2) as result:
        assert (result.acked, result.lost, result.rounds) == (99, 1, 3)
    assert [(each.component, each.id, each.values) for each in result.failed] == [("rows", (0, 3), ["k3", 3])]
    assert str(result.failed[0]) == "'rows' (0, 3): ['k3', 3]"
    with run_topology(failing(), {"rows": rdd}, spark, conf=conf, max_replays=0) as result:
        assert (result.acked, result.lost, result.rounds) == (98, 2, 1)


def test_a_tuple_neither_acked_nor_failed_has_failed_at_the_end(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("forgets", Forgets, parallelism=2).shuffle_grouping("rows")
    rdd = spark.sparkContext.parallelize(ROWS, 2)
    conf = {"test.forget": [7, 8, 60]}
    with run_topology(builder.build("forget"), {"rows": rdd}, spark, conf=conf, max_replays=1) as result:
        assert (result.acked, result.lost, result.rounds) == (97, 3, 2)
        assert sorted(each.values[1] for each in result.failed) == [7, 8, 60]
        assert result.rdd("forgets").count() == 103  # what it emitted was emitted, at each attempt
    assert result.counters["forgets"].unfinished == 6
    assert (result.counters["rows"].failed, result.counters["rows"].timed_out) == (6, 6)
    assert result.counters["rows"].as_dict()["timed_out"] == 6


def test_a_tuple_that_timed_out_is_told_apart_from_one_that_a_bolt_failed(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("forgets", Forgets, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("fails", FailsAtFirst).shuffle_grouping("rows")
    rdd = spark.sparkContext.parallelize(ROWS, 2)
    conf = {
        "test.forget": [7, 8, 60],
        "test.fail": [3, 7],
        "test.times": [1, 9],
    }  # of 7, one forgets it and one fails it
    with run_topology(builder.build("both"), {"rows": rdd}, spark, conf=conf, max_replays=1) as result:
        assert (result.acked, result.lost, result.rounds) == (97, 3, 2)
    rows = result.counters["rows"]
    assert (rows.failed, rows.timed_out) == (7, 4)  # twice 7, 8 and 60, once 3


def test_a_tuple_anchored_to_two_fails_both(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("parts", Parts, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("pairs", Pairs, parallelism=2).fields_grouping("parts", "key", stream="even").fields_grouping(
        "parts", "key", stream="odd"
    )
    builder.set_bolt("last", FailsPairs, parallelism=2).shuffle_grouping("pairs")
    rows = [(f"order{n // 2}", n) for n in range(40)]
    rdd = spark.sparkContext.parallelize(rows, 4)
    topology = builder.build("join")
    with run_topology(topology, {"rows": rdd}, spark, conf={"test.bad": "order7"}, max_replays=1) as result:
        assert (result.acked, result.lost) == (38, 2)
        assert sorted(each.values[1] for each in result.failed) == [14, 15]
    alone = rdd.filter(lambda row: row[1] != 9)
    with run_topology(topology, {"rows": alone}, spark, conf={"test.bad": ""}, max_replays=0) as result:
        assert [each.values for each in result.failed] == [["order4", 8]]  # it waited for its other half in vain


def test_batches_are_handed_over_by_the_ticks_at_the_end(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("batches", Batches, parallelism=2).fields_grouping("rows", "key")
    rdd = spark.sparkContext.parallelize(ROWS, 3)
    with run_topology(builder.build("batches"), {"rows": rdd}, spark) as result:
        assert (result.acked, result.lost) == (100, 0)
        sums: dict[str, int] = {}
        for key, total in result.rdd("batches").collect():
            sums[key] = sums.get(key, 0) + total
    assert sums == SUMS


def test_a_python_worker_that_dies_is_started_again_and_nothing_is_counted_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("a", DiesOnce, parallelism=2, conf={"test.die": [5, 60]}).shuffle_grouping("rows")
    builder.set_bolt("b", DiesOnce, parallelism=2, conf={"test.die": [11, 70, 99]}).fields_grouping("a", "key")
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("b", "key")
    rdd = spark.sparkContext.parallelize(ROWS, 2)
    conf = {"test.folder": str(tmp_path)}
    with run_topology(builder.build("dies"), {"rows": rdd}, spark, conf=conf) as result:
        assert (result.acked, result.lost, result.rounds) == (100, 0, 1)
        assert {key: (total, tuples) for key, total, tuples in result.rdd("sums").collect()} == {
            key: (total, sum(k == key for k, _ in ROWS)) for key, total in SUMS.items()
        }
    assert sorted(os.listdir(tmp_path)) == sorted(f"died-{n}" for n in (5, 11, 60, 70, 99))
    assert result.counters["rows"].emitted == result.counters["sums"].executed - 2 == 100  # and a tick for each task


@pytest.mark.parametrize(
    ("dies", "said"),
    [
        ("a", r"partition (0|1) of the source of 'rows', bolt 'a' \(task \d\)"),
        ("b", r"bolt 'b' \(task \d\)"),
    ],
)
def test_a_python_worker_that_dies_at_each_attempt_names_its_components(
    spark: SparkSession, dies: str, said: str
) -> None:
    class Dies(BasicBolt):
        output_fields = ["key", "n"]

        def process(self, tup):
            if self.context.component == dies and tup["n"] == 11:
                os.kill(os.getpid(), signal.SIGKILL)
            self.emit(tup.values)

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("a", Dies, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("b", Dies, parallelism=3).fields_grouping("a", "key")
    builder.set_bolt("c", Dies, parallelism=2).fields_grouping("b", "key")
    shuffled = spark.sparkContext.parallelize(ROWS, 2).map(lambda row: (row, None)).partitionBy(2).keys()
    with pytest.raises(SparkJobError, match=f"the Spark task with {said} was lost 4 times"):
        run_topology(builder.build("dies"), {"rows": shuffled}, spark, progress=None if dies == "a" else lambda _: None)


def test_a_component_that_cannot_start_is_named(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("store", CantStart).global_grouping("rows")
    with pytest.raises(TaskStartError, match=r"bolt 'store' \(task 3\) can't be started: RuntimeError.*no database"):
        run_topology(builder.build("cant"), {"rows": spark.sparkContext.parallelize(ROWS, 2)}, spark)


@pytest.mark.parametrize("tasks", chosen([1, 2], 2))  # in the Spark task that reads the rows, and after a shuffle
def test_rows_that_change_before_they_are_replayed_are_noticed(spark: SparkSession, tmp_path: Path, tasks: int) -> None:
    rows = [(f"k{n % 7}", n) for n in range(1300)]

    def at_first(folder: str, was: int, is_: int):
        def read(index: int, given):
            if index == 0:
                try:
                    os.mkdir(folder)
                except FileExistsError:
                    given = [("k", is_) if row[1] == was else row for row in given]
            return given

        return read

    grouping = "shuffle" if tasks == 1 else "fields"
    for name, was, is_, bad in (("itself", 513, -1, [513]), ("beside", 600, -1, [513]), ("last", 1299, 0, [1290, 3])):
        rdd = spark.sparkContext.parallelize(rows, 1).mapPartitionsWithIndex(at_first(str(tmp_path / name), was, is_))
        with pytest.raises(
            SparkJobError, match=r"partition 0 of the source of 'rows' has other rows, from offset \d+ on"
        ):
            run_topology(
                failing(tasks, grouping), {"rows": rdd}, spark, conf={"test.fail": bad, "test.times": [1] * len(bad)}
            )
    same = [0, 511, 512, 1023, 1024, 1299]
    rdd = spark.sparkContext.parallelize(rows, 1).mapPartitionsWithIndex(at_first(str(tmp_path / "not"), -1, -1))
    conf = {"test.fail": same, "test.times": [1, 2, 1, 1, 2, 1]}
    with run_topology(failing(tasks, grouping), {"rows": rdd}, spark, conf=conf) as result:
        assert (result.acked, result.lost, result.rounds) == (1300, 0, 3)


def test_an_error_of_a_source_in_a_component_is_the_components() -> None:
    traceback = "Traceback (most recent call last):\n  ...\nmultilang.component.errors.ConnectorError: it can't be read"
    said = f"component 'rows' (task 3) can't be started: ConnectorError in component Spout in initialize: it can't be read\n{traceback}"
    found = readable(RuntimeError(f"Job aborted: multilang.errors.TaskStartError: {said}\n\n\tat a.B.c(B.scala:1)\n"))
    assert (type(found), str(found)) == (TaskStartError, said)


def test_a_text_that_looks_as_a_code_of_sparks_stays_in_its_message() -> None:
    said = "'rows' emitted 'saw  SQLSTATE: 22003 in the log' for the field 'n'"
    ours = f"multilang.errors.SparkJobError: {said}\n\n\tat a.B.c(B.scala:1)\n"
    assert str(readable(RuntimeError(ours))) == said
    of_a_column = f"[USER_RAISED_EXCEPTION] multilang.component.errors.ConnectorError: {said} SQLSTATE: P0001\n\tat a.B"
    assert str(readable(RuntimeError(of_a_column))) == said
    assert str(source_error(RuntimeError(of_a_column), "the job")) == said
    of_a_query = f"multilang.errors.SparkJobError: {said}\n SQLSTATE: 38000 SQLSTATE: XXKST\n=== Query ==="
    assert str(readable(RuntimeError(of_a_query))) == said


def test_what_stands_behind_an_aborted_job_is_told() -> None:
    said = (
        "An error occurred while calling o1.text.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.B.c(B.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: Job failed.\n\tat a.B.d(B.scala:2)\n"
        "Caused by: java.io.IOException: Mkdirs failed to create file:/here\n\tat a.B.e(B.scala:3)\n"
    )
    assert str(readable(RuntimeError(said))) == (
        "the Spark job failed: org.apache.spark.SparkException: Job aborted.; "
        "java.io.IOException: Mkdirs failed to create file:/here"
    )


def test_a_row_that_is_no_tuple_is_named(spark: SparkSession) -> None:
    sc = spark.sparkContext
    with pytest.raises(
        SparkJobError, match=r"row 1 of partition 0 of the source of 'rows' has 3 values, \('k', 1, 2\)"
    ):
        run_topology(
            failing(),
            {"rows": sc.parallelize([("k", 1), ("k", 1, 2)], 1)},
            spark,
            conf={"test.fail": [], "test.times": []},
        )
    with pytest.raises(SparkJobError, match=r"row 0 of partition 0 .*is a set, which JSON does not have"):
        run_topology(
            failing(), {"rows": sc.parallelize([("k", {1})], 1)}, spark, conf={"test.fail": [], "test.times": []}
        )


class Locked(FailsAtFirst):
    """Counts in an object with a lock, which can't be pickled."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.lock = threading.Lock()


def test_what_a_bolt_cannot_keep_for_the_next_round_is_named(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("locked", Locked).shuffle_grouping("rows")
    rdd = spark.sparkContext.parallelize(ROWS[:4], 1)
    for times, told in (0, False), (1, True):
        conf = {"test.fail": [2], "test.times": [times]}
        with run_topology(builder.build("locked"), {"rows": rdd}, spark, conf=conf) as result:
            assert (result.acked, result.rounds) == (4, 1 + times)
        said = [
            each.message for each in caplog.records if "does not keep lock from one round to the next" in each.message
        ]
        assert bool(said) == told
