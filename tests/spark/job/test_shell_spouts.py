"""Spouts in other languages that run as they are: until they say that they are exhausted, or a bound is reached."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang import ShellSpout, TopologyBuilder
from multilang.topology.errors import TopologyError
from spark_bridge.job import SparkJobError, TaskStartError, run_topology
from tests.soak import sampled
from tests.spark.job.components import FailsAtFirst, Sums

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHILD = str(Path(__file__).with_name("spout_child.py"))
SUMS = {f"k{k}": sum(n for n in range(60) if n % 3 == k) for k in range(3)}


def topology(*command: str, tasks: int = 1):
    builder = TopologyBuilder()
    builder.set_spout("numbers", ShellSpout(list(command), output_fields=["key", "n"]), parallelism=tasks)
    builder.set_bolt("fails", FailsAtFirst, parallelism=2).fields_grouping("numbers", "key")
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("fails", "key")
    return builder.build("shell-spout")


def conf(folder: Path, fail=(), times=()):
    return {"test.folder": str(folder), "test.fail": list(fail), "test.times": list(times)}


def told(folder: Path) -> Counter[str]:
    return Counter(line for file in folder.iterdir() for line in file.read_text().splitlines())


@pytest.mark.parametrize(
    ("arguments", "tasks", "limits"),
    sampled(
        [(["tells", "asks"], 3, {}), (["tells"], 1, {}), (["tells"], 1, {"numbers": 60}), ([], 2, {"numbers": 1000})], 2
    ),
)
def test_it_runs_until_it_is_exhausted_and_hears_what_came_of_its_tuples(
    spark: SparkSession, tmp_path: Path, arguments: list[str], tasks: int, limits: dict[str, int]
) -> None:
    program = topology(sys.executable, CHILD, "60", *arguments, tasks=tasks)
    with run_topology(program, {}, spark, conf=conf(tmp_path, [4, 51], [2, 1]), limits=limits, batch_size=25) as result:
        assert (result.acked, result.lost) == (60, 0)
        assert {
            key: total for key, total, _ in sorted(result.rdd("sums").collect())
        } == SUMS  # the greatest is the last
    due = Counter(f"ack {n}" for n in range(60)) + Counter(["fail 4", "fail 4", "fail 51"])
    assert told(tmp_path) == due
    assert (result.counters["numbers"].acked, result.counters["numbers"].failed) == (60, 3)


def test_a_bound_holds_and_what_fails_for_ever_is_named(spark: SparkSession, tmp_path: Path) -> None:
    program = topology(sys.executable, CHILD, "1000000")
    with run_topology(
        program, {}, spark, conf=conf(tmp_path, [3], [1000]), limits={"numbers": 20}, max_replays=2
    ) as result:
        assert (result.acked, result.lost) == (19, 1)
        assert [(each.component, each.id, each.values) for each in result.failed] == [("numbers", {"n": 3}, ["k0", 3])]
    assert result.counters["numbers"].failed == 4


def test_one_that_cannot_say_whether_it_has_an_end_is_refused_before_any_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(TopologyError, match=r"spout 'numbers' is the program .*exhausted.*source, .*limits="):
        run_topology(topology(sys.executable, CHILD, "60"), {}, spark, conf=conf(tmp_path))


def test_one_that_dies_at_the_same_place_each_time_ends_the_run_with_its_last_words(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(
        SparkJobError, match=r"'numbers' \(task \d\) died 5 times .* exited with status 7; .*\nno more of this"
    ):
        run_topology(topology(sys.executable, CHILD, "60", "tells", "dies"), {}, spark, conf=conf(tmp_path))


def test_one_that_dies_is_started_again_and_hears_nothing_of_its_former_life(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = topology(sys.executable, CHILD, "60", "tells", "dies", "once")
    with run_topology(program, {}, spark, conf=conf(tmp_path), limits={"numbers": 80}, batch_size=10) as result:
        assert (result.acked, result.lost) == (80, 0)
        assert "exited with status 7" in str(result.errors[0])
    assert told(tmp_path) == Counter(f"ack {n}" for n in [*range(30), *range(50)])


def test_one_that_cannot_be_started_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TaskStartError, match=r"'numbers' \(task \d\): the command \['no-such-program'\] can't be"):
        run_topology(topology("no-such-program", tasks=2), {}, spark, conf=conf(tmp_path))


def test_a_spout_of_ours_may_be_given_as_a_program_too(spark: SparkSession, tmp_path: Path) -> None:
    code = "from tests.spark.job.components import Numbers; Numbers().run()"
    program = topology(sys.executable, "-c", code, tasks=2)
    with run_topology(program, {}, spark, conf={**conf(tmp_path, [7], [1]), "test.numbers": 60}) as result:
        assert (result.acked, result.lost) == (60, 0)
        assert {key: total for key, total, _ in sorted(result.rdd("sums").collect())} == SUMS
    assert told(tmp_path) == Counter(f"acked {n}" for n in range(60))


def test_one_that_is_given_up_at_its_activation_leaves_neither_process_nor_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # of the driver's program
    command = [sys.executable, CHILD, "60", "tells", "babbles"]
    with pytest.raises(SparkJobError, match=r"'numbers' \(task \d\) died 5 times"):
        run_topology(topology(*command), {}, spark, conf=conf(tmp_path))
    pids = [int(file.name[6:]) for file in tmp_path.glob("alive-*")]
    assert len(pids) == 5
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists()]
    assert not list(tmp_path.glob("multilang-pids-*"))
