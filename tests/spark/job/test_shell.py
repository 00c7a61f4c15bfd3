"""Bolts in other languages, and components over the wire, inside a Spark job."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang import ShellBolt, TopologyBuilder
from spark_bridge.job import TaskStartError, run_topology
from tests.spark.job.components import Count, Words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = str(Path(__file__).with_name("child.py"))
SENTENCES = [f"a{n} b{n % 3} c" for n in range(60)]


def shell(*arguments: str, tasks: int = 2, conf=None):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    split = ShellBolt([sys.executable, CHILD, *arguments], output_fields=["word"])
    builder.set_bolt("split", split, parallelism=tasks, conf=conf).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    return builder.build("shell")


def counted(rows):
    return Counter(word for word, _ in rows)


COUNTS = Counter(word for sentence in SENTENCES for word in sentence.split())


@pytest.mark.parametrize("arguments", [(), ("task-ids",), ("late",)])
def test_a_program_over_the_wire_is_a_bolt_as_any_other(spark: SparkSession, arguments: tuple[str, ...]) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 3)
    with run_topology(shell(*arguments), {"sentences": rdd}, spark) as result:
        assert (result.acked, result.lost, result.rounds) == (60, 0, 1)
        assert counted(result.rdd("count").collect()) == COUNTS
    split = result.counters["split"]
    assert (split.executed, split.acked, split.emitted, split.transferred) == (60, 60, 180, 180)


def test_a_programs_script_is_found_from_the_topologys_folder_wherever_the_job_is_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    split = ShellBolt([sys.executable, "child.py"], output_fields=["word"])  # beside this file
    builder.set_bolt("split", split).shuffle_grouping("sentences")
    rdd = spark.sparkContext.parallelize(SENTENCES[:5], 1)
    with run_topology(builder.build("beside"), {"sentences": rdd}, spark) as result:
        assert (result.acked, result.lost) == (5, 0)


def test_what_it_fails_or_never_acks_is_named(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 2)
    conf = {"topology.message.timeout.secs": 1}
    with run_topology(
        shell("fail", "a7", "forget", "a33", conf=conf), {"sentences": rdd}, spark, max_replays=1
    ) as result:
        assert (result.acked, result.lost, result.rounds) == (58, 2, 2)
        assert sorted(each.values[0].split()[0] for each in result.failed) == ["a33", "a7"]
    assert (result.counters["sentences"].failed, result.counters["sentences"].timed_out) == (4, 2)


def test_a_program_that_dies_is_started_again_and_its_tuples_are_replayed(spark: SparkSession, tmp_path: Path) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 2)
    with run_topology(shell("die", str(tmp_path / "died"), tasks=1), {"sentences": rdd}, spark) as result:
        assert (result.acked, result.lost, result.rounds) == (60, 0, 2)
        assert set(counted(result.rdd("count").collect())) == set(COUNTS)
    assert "exited with status 9" in result.errors[0].message


def test_a_program_that_cannot_be_started_is_named(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("split", ShellBolt(["no-such-program"])).shuffle_grouping("sentences")
    with pytest.raises(TaskStartError, match=r"bolt 'split' \(task \d\): the command \['no-such-program'\] can't be"):
        run_topology(builder.build("none"), {"sentences": spark.sparkContext.parallelize(["a"], 1)}, spark)
