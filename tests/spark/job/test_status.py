"""The status of a Spark job: the counts that the embedded cluster has, and how busy each task was."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from multilang import TopologyBuilder
from multilang.engine.status import RunStatus
from multilang.local import LocalCluster
from spark_bridge.job import JobProgress, run_topology
from tests.local import watched
from tests.patience import patient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTED = ("tasks", "emitted", "transferred", "executed", "acked", "failed", "timed_out", "lost", "errors")


def counts(status: RunStatus) -> dict[str, Any]:
    components = [each for each in status.components if each.id != "__acker"]
    return {each.id: (each.kind, *(getattr(each, name) for name in COUNTED)) for each in components}


def test_a_job_counts_what_the_embedded_cluster_counts_and_measures_its_tasks(spark: SparkSession) -> None:
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(watched.words)
        run.wait(timeout=patient(60))
        there = run.status()
    told: list[JobProgress] = []
    with run_topology(watched.words, {}, spark, progress=told.append) as result:
        here = result.status()
    assert counts(here) == counts(there)
    assert (here.topology, here.engine, here.state, here.waiting_for) == ("words", "spark", "ended", ())
    assert here.window_secs == here.seconds >= result.seconds
    assert RunStatus.from_json(json.loads(json.dumps(here.as_json()))) == here
    for each in here.components:
        assert len(each.by_task) == each.tasks
        for name in ("emitted", "transferred", "executed"):
            assert sum(getattr(task, name) for task in each.by_task) == getattr(each, name), (each.id, name)
        busiest = max(task.capacity for task in each.by_task if task.capacity is not None)
        assert 0 < each.capacity == busiest < 1
        assert (each.pending, each.restarts) == (0, None)
    assert [each.inputs for each in here.components] == [each.inputs for each in there.components[:-1]]
    first, last = told[0].status, told[-1].status
    assert (first.state, first.engine, last.state) == ("active", "spark", "active")
    assert first["sentences"].pending is None  # what is under way in a round is not known
    assert all(0 <= before.status.total("acked") <= after.status.total("acked") for before, after in pairwise(told))


def test_the_time_of_a_slow_bolt_is_its_own_and_not_that_of_its_source_or_of_what_follows(spark: SparkSession) -> None:
    with run_topology(watched.slow, {}, spark) as result:
        status = result.status()
    due = watched.TUPLES * watched.PAUSE
    assert 0.95 * due <= status["sleeps"].busy_secs <= status.seconds
    assert status["drop"].busy_secs < status["sleeps"].busy_secs / 2
    assert status["numbers"].busy_secs < status["sleeps"].busy_secs / 2


def test_a_source_in_the_place_of_a_spout_has_no_time_of_its_own(spark: SparkSession) -> None:
    rows = spark.sparkContext.parallelize([(n, 0) for n in range(40)], 2)
    builder = TopologyBuilder()
    builder.set_spout("numbers", watched.Numbers)
    builder.set_bolt("drop", watched.Drop).shuffle_grouping("numbers")
    with run_topology(builder.build("rows"), {"numbers": rows}, spark) as result:
        numbers = result.status()["numbers"]
    assert (numbers.emitted, numbers.acked, numbers.busy_secs, numbers.capacity) == (40, 40, None, None)
