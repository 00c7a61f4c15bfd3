"""The names that Spark's UI shows of a topology's jobs: of the topology, the components of each stage, and the round."""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from multilang import BasicBolt, Bolt, Spout, TopologyBuilder
from spark_bridge.job import SparkJobError, run_topology

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from multilang import Tuple


class Numbers(Spout):
    output_fields = ("n",)


class FailsOnce(Bolt):
    output_fields = ("n",)

    def initialize(self, conf: object, context: object) -> None:
        self.seen: set[int] = set()

    def process(self, tup: Tuple) -> None:
        if tup["n"] not in self.seen:
            self.seen.add(tup["n"])
            self.fail(tup)
            return
        self.emit([tup["n"]], anchors=[tup])
        self.ack(tup)


class Sink(FailsOnce):
    output_fields = ()

    def process(self, tup: Tuple) -> None:
        self.ack(tup)


builder = TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("twice", FailsOnce(), parallelism=2).shuffle_grouping("numbers")
builder.set_bolt("all", Sink()).global_grouping("twice")
topology = builder.build("retried")


PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.job.tags")


def jobs(spark: SparkSession) -> list[tuple[str, str]]:
    """Return the description and group of all jobs that Spark keeps for its UI, also of a session without one."""
    found = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    each = [found.apply(number) for number in range(found.size())]
    return [
        (job.description().get(), job.jobGroup().get() if job.jobGroup().isDefined() else "")
        for job in each
        if job.description().isDefined()
    ]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("group", [None, "mine"])
def test_a_job_is_called_by_its_topology_its_stages_and_its_round_in_the_callers_group(
    spark: SparkSession, watched: bool, group: str | None
) -> None:
    sc = spark.sparkContext
    if group is not None:
        sc.setJobGroup(group, "what I do", interruptOnCancel=True)
    before = [sc.getLocalProperty(name) for name in PROPERTIES]
    name = f"retried-{watched}-{group}"
    rows = sc.parallelize(range(20), 2)
    told: list[int] = []
    progress = (lambda each: told.append(each.done)) if watched else None
    with run_topology(topology.with_conf({}, name), {"numbers": rows}, spark, progress=progress) as result:
        assert result.acked == 20
        assert result.rounds > 1, "what failed once was read again"
    stages = ["numbers -> twice | all", *["numbers | twice | all"] * (result.rounds - 1)]
    assert sorted(each for each in jobs(spark) if each[0].startswith(name)) == [
        (f"{name}: {each}, round {number} of at most 4", group or "") for number, each in enumerate(stages, 1)
    ]
    assert bool(told) == watched
    assert [sc.getLocalProperty(name) for name in PROPERTIES] == before
    for name in PROPERTIES:
        sc.setLocalProperty(name, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("watched", [False, True])
def test_who_cancels_their_group_ends_the_topology_in_it(spark: SparkSession, tmp_path: Path, watched: bool) -> None:
    class Waits(BasicBolt):
        output_fields = ()

        def process(self, tup: Tuple) -> None:
            (tmp_path / "began").touch()
            while True:
                time.sleep(0.1)

    sc = spark.sparkContext
    slow = TopologyBuilder()
    slow.set_spout("numbers", Numbers())
    slow.set_bolt("waits", Waits()).shuffle_grouping("numbers")
    group = f"mine, {watched}"

    def cancel() -> None:
        while not (tmp_path / "began").exists():
            time.sleep(0.05)
        sc.cancelJobGroup(group)

    sc.setJobGroup(group, "what I do", interruptOnCancel=True)
    canceller = Thread(target=cancel)
    canceller.start()
    try:
        with pytest.raises(SparkJobError, match="cancel"):
            run_topology(
                slow.build("waits"),
                {"numbers": sc.parallelize([1], 1)},
                spark,
                progress=(lambda _: None) if watched else None,
            )
    finally:
        canceller.join()
        for name in PROPERTIES:
            sc.setLocalProperty(name, None)  # type: ignore[arg-type]
