"""The names that Spark's UI shows of a topology's jobs: of the topology, the components of each stage, and the round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang import Bolt, Spout, TopologyBuilder
from spark_bridge.job import run_topology

if TYPE_CHECKING:
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


def descriptions(spark: SparkSession) -> list[str]:
    """Return the descriptions of all jobs that Spark keeps for its UI, also of a session without one."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(number).description() for number in range(jobs.size())]
    return [each.get() for each in found if each.isDefined()]


@pytest.mark.parametrize("watched", [False, True])
def test_a_job_is_called_by_its_topology_its_stages_and_its_round(spark: SparkSession, watched: bool) -> None:
    sc = spark.sparkContext
    sc.setJobDescription("mine")
    name = f"retried-{watched}"
    rows = sc.parallelize(range(20), 2)
    progress = (lambda _: None) if watched else None
    with run_topology(topology.with_conf({}, name), {"numbers": rows}, spark, progress=progress) as result:
        assert result.acked == 20
        assert result.rounds > 1, "what failed once was read again"
    stages = ["numbers -> twice | all", *["numbers | twice | all"] * (result.rounds - 1)]
    assert sorted(each for each in descriptions(spark) if each.startswith(name)) == [
        f"{name}: {each}, round {number} of at most 4" for number, each in enumerate(stages, 1)
    ]
    assert sc.getLocalProperty("spark.job.description") == "mine", "what the caller called it came back"
    sc.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
