"""Spouts that run as they are, and what Spark can't express."""

from __future__ import annotations

import sys
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

from multilang import LocalCluster, ShellSpout, TopologyBuilder
from multilang.local import TaskStartError
from multilang.topology.errors import TopologyError
from spark_bridge.job import SparkJobError, run_topology
from tests.spark.job.components import Chained, Endless, FailsAtFirst, Mortal, Numbers, Repeats, Rows, Same, Seen, Sums

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CHAINED = "from tests.spark.job.components import Chained; Chained().run()"


def numbers(parallelism: int = 1):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers, parallelism=parallelism)
    builder.set_bolt("fails", FailsAtFirst, parallelism=2).fields_grouping("numbers", "key")
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("fails", "key")
    return builder.build("numbers")


@pytest.mark.parametrize(("parallelism", "ackers"), [(1, 0), (3, None)])
def test_a_spout_runs_until_it_is_exhausted_and_is_told_what_was_acked_with_ackers_and_without(
    spark: SparkSession, tmp_path: Path, parallelism: int, ackers: int | None
) -> None:
    conf = {
        "topology.acker.executors": ackers,
        "test.numbers": 100,
        "test.folder": str(tmp_path),
        "test.fail": [4, 77],
        "test.times": [2, 1],
    }
    with run_topology(numbers(parallelism), {}, spark, conf=conf, batch_size=40) as result:
        assert (result.acked, result.lost) == (100, 0)
        sums: dict[str, int] = {}
        for key, total, _ in result.rdd("sums").collect():
            sums[key] = max(total, sums.get(key, 0))
    assert sums == {f"k{k}": sum(n for n in range(100) if n % 3 == k) for k in range(3)}
    told = Counter(line for file in tmp_path.iterdir() for line in file.read_text().splitlines())
    assert told == Counter(f"acked {n}" for n in range(100))
    assert result.rounds >= 3  # forty in each at the most, or the second replay of 4
    assert (result.counters["numbers"].acked, result.counters["numbers"].failed) == (100, 3)


def test_what_a_spout_gives_up_is_named(spark: SparkSession, tmp_path: Path) -> None:
    conf = {"test.numbers": 10, "test.folder": str(tmp_path), "test.fail": [4], "test.times": [1000]}
    with run_topology(numbers(), {}, spark, conf=conf, max_replays=2) as result:
        assert (result.acked, result.lost) == (9, 1)
    assert [(each.component, each.id, each.values) for each in result.failed] == [("numbers", 4, ["k1", 4])]


@pytest.mark.parametrize("ids", ["its own", "new ones"])
def test_a_spout_is_read_to_its_end_whatever_fails_first_and_given_up_where_it_repeats_itself(
    spark: SparkSession, ids: str
) -> None:
    conf = {"test.numbers": 6, "test.fail": [0, 1, 2], "test.times": [1000] * 3, "test.again": 0, "test.ids": ids}
    builder = TopologyBuilder()
    builder.set_spout("numbers", Repeats)
    builder.set_bolt("fails", FailsAtFirst).shuffle_grouping("numbers")
    topology = builder.build("repeats")
    if ids == "its own":
        with run_topology(topology, {}, spark, conf=conf, batch_size=1, max_replays=1) as result:
            assert (result.acked, result.lost) == (3, 3)
            assert [each.component for each in result.errors] == ["fails"]
    conf["test.again"] = 1000
    with run_topology(topology, {}, spark, conf=conf, batch_size=1, max_replays=1) as result:
        assert (result.acked, result.lost) == (0, 1)
        assert "spout 'numbers' was given up" in str(result.errors[-1])
        assert "What it would have emitted next, if there is more, was not read" in str(result.errors[-1])


@pytest.mark.parametrize(
    "given", [Chained, ShellSpout([sys.executable, "-c", CHAINED], output_fields=["n"])], ids=["python", "program"]
)
def test_what_a_spout_emits_in_answer_to_an_ack_is_processed_and_counts_for_its_bound(
    spark: SparkSession, given: Any
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("chained", given)
    builder.set_bolt("same", Same).shuffle_grouping("chained")
    for limits, due in (({}, 4), ({"chained": 2}, 2)):
        with run_topology(builder.build("chained"), {}, spark, conf={"test.numbers": 4}, limits=limits) as result:
            assert sorted(result.rdd("same").collect()) == [[n] for n in range(due)]
            assert (result.acked, result.lost, result.rounds) == (due, 0, due)


def mortal():
    builder = TopologyBuilder()
    builder.set_spout("mortal", Mortal)
    builder.set_bolt("same", Same).shuffle_grouping("mortal")
    return builder.build("mortal")


@pytest.mark.parametrize(
    ("resumes", "die", "due"),
    [
        (True, {"next_tuple-3": 2, "next_tuple-7": 1}, range(10)),
        (False, {"next_tuple-3": 1, "next_tuple-0": 4}, [0, 1, 2, *range(10)]),
        (True, {"ack-9": 1}, range(10)),
    ],
)
def test_a_spout_that_dies_is_started_again_as_on_the_embedded_cluster(
    spark: SparkSession, tmp_path: Path, resumes: bool, die: dict[str, int], due: list[int]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    conf = {"test.resumes": resumes, "test.die": die}
    with LocalCluster(mode="inprocess") as cluster:
        running = cluster.submit(mortal(), conf={**conf, "test.folder": str(here)}, capture=["same"])
        running.wait(until="drained")
        assert sorted(tup.values[0] for tup in running.captured("same")) == sorted(due)
        errors = running.counters["mortal"].errors
    with run_topology(mortal(), {}, spark, conf={**conf, "test.folder": str(there)}) as result:
        assert sorted(n for (n,) in result.rdd("same").collect()) == sorted(due)
        assert result.counters["mortal"].errors == errors == sum(die.values())
        assert "no source before" in str(result.errors[0])


def test_a_spout_that_dies_in_vain_five_times_ends_the_run_as_on_the_embedded_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    conf = {"test.resumes": False, "test.die": {"next_tuple-0": 99}, "test.folder": str(tmp_path)}
    said = r"'mortal' \(task \d\) died 5 times without emitting a tuple: RuntimeError .*no source before 0"
    with LocalCluster(mode="inprocess") as cluster, pytest.raises(TaskStartError, match=said):
        cluster.submit(mortal(), conf=conf).wait(until="drained")
    with pytest.raises(SparkJobError, match=said):
        run_topology(mortal(), {}, spark, conf=conf)
    # A job has an end: what begins anew each time, and dies at the same place, would never come to it.
    conf["test.die"] = {"next_tuple-3": 99}
    with pytest.raises(
        SparkJobError, match=r"died 5 times without getting beyond the same tuple: .*no source before 3"
    ):
        run_topology(mortal(), {}, spark, conf=conf)


def test_an_endless_spout_needs_a_bound(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("endless", Endless, parallelism=2)
    builder.set_bolt("seen", Seen).global_grouping("endless")
    topology = builder.build("endless")
    with pytest.raises(TopologyError, match=r"spout 'endless' has no end .*exhausted\(\) in Endless.*limits="):
        run_topology(topology, {}, spark)
    with run_topology(topology, {}, spark, limits={"endless": 25}) as result:
        assert result.rdd("seen").count() == 25
    assert result.counters["endless"].emitted == 25


def test_what_spark_cannot_express_is_refused_by_name(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize([("a", 1)], 1)

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("a", Seen).shuffle_grouping("rows").shuffle_grouping("b")
    builder.set_bolt("b", Seen).shuffle_grouping("a")
    with pytest.raises(TopologyError, match=r"topology 'cycle' has a cycle through 'a', 'b'"):
        run_topology(builder.build("cycle"), {"rows": rdd}, spark)

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_spout("other", ShellSpout(["another-language"], output_fields=["n"]))
    builder.set_bolt("a", Seen).shuffle_grouping("rows").shuffle_grouping("other")
    topology = builder.build("refused")
    with pytest.raises(TopologyError, match=r"spout 'rows' has no end"):
        run_topology(topology, {"other": rdd}, spark)
    with pytest.raises(TopologyError, match=r"sources: 'row' is no component .*did you mean 'rows'"):
        run_topology(topology, {"row": rdd}, spark)
    with pytest.raises(TopologyError, match=r"sources: 'a' is a bolt"):
        run_topology(topology, {"a": rdd}, spark)
    with pytest.raises(TopologyError, match=r"the source of 'rows' is an RDD or a DataFrame, not \[1\]"):
        run_topology(topology, {"rows": [1], "other": rdd}, spark)
    with pytest.raises(TopologyError, match=r"outputs: there is no stream 'b'"):
        run_topology(topology, {"rows": rdd, "other": rdd}, spark, outputs=["b"])
    with pytest.raises(TopologyError, match=r"stream 'default' of 'rows' has two sources"):
        run_topology(topology, {"rows": rdd, ("rows", "default"): rdd, "other": rdd}, spark)
    with pytest.raises(TopologyError, match=r"max_replays is -1"):
        run_topology(topology, {"rows": rdd, "other": rdd}, spark, max_replays=-1)


def test_a_component_that_cannot_be_pickled_is_named(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("seen", Seen).shuffle_grouping("rows")
    topology = builder.build("unpicklable")
    topology.components["seen"].component.lock = Lock()
    with pytest.raises(TopologyError, match=r"bolt 'seen' can't be sent to Spark's executors.*initialize"):
        run_topology(topology, {"rows": spark.sparkContext.parallelize([("a", 1)], 1)}, spark)


def test_what_the_progress_callback_raises_is_raised(spark: SparkSession) -> None:
    def progress(_: object) -> None:
        raise KeyError("mine")

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("seen", Seen).shuffle_grouping("rows")
    with pytest.raises(KeyError, match="mine"):
        run_topology(
            builder.build("told"), {"rows": spark.sparkContext.parallelize([("a", 1)], 1)}, spark, progress=progress
        )
