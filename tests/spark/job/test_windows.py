"""Windows in Spark jobs: at the end of the input all of them end, and give the answer of their definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang import BasicBolt, TopologyBuilder
from multilang.loading.modules import load_module
from multilang.windowing import Count, StatefulWindowedBolt, Tumbling, WindowedBolt, seconds
from spark_bridge.job import SparkJobError, run_topology
from tests.examples.test_windows import EXAMPLES, sliding_sums
from tests.soak import chosen
from tests.spark.job.components import Words
from tests.windowing import every
from tests.windowing.topologies import event

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from multilang import Topology

EVENTS = 300
SOME = ("counts", "totals", "sessions", "fives")


class Parse(BasicBolt):
    """Fails each seventh line at first, so that windows get their last tuples in a later round."""

    output_fields = ["n", "key", "ts"]

    def initialize(self, conf, context):
        self.failed = set()

    def process(self, tup):
        n, key, ts = tup["sentence"].split()
        if int(n) % 7 == 0 and n not in self.failed:
            self.failed.add(n)
            raise ValueError("not yet")
        self.emit([int(n), key, int(ts)])


def parsed(base: type[WindowedBolt], names: Collection[str] = ()) -> Topology:
    """Windows of these kinds, or of all, behind a bolt that parses lines."""
    builder = TopologyBuilder()
    builder.set_spout("events", Words, 3)
    builder.set_bolt("parse", Parse, 2).shuffle_grouping("events")
    for name, bolt in every.BOLTS[base].items():
        if names and name not in names:
            continue
        if name == "totals":
            builder.set_bolt(name, bolt).global_grouping("counts")
        else:
            builder.set_bolt(name, bolt, 2).fields_grouping("parse", "key")
    return builder.build("windows", {"topology.message.timeout.secs": 100})


def lines(numbers: Iterable[int]) -> list[str]:
    return [" ".join(map(str, event(n))) for n in numbers]


@pytest.mark.parametrize("base", chosen([WindowedBolt, StatefulWindowedBolt], StatefulWindowedBolt))
def test_a_job_ends_all_windows_whatever_fails_on_the_way(spark: SparkSession, base: type[WindowedBolt]) -> None:
    rows = spark.sparkContext.parallelize(lines(range(EVENTS)), 3)
    with run_topology(parsed(base), {"events": rows}, spark, outputs=[*every.BOLTS[base]]) as result:
        assert (result.acked, result.lost) == (EVENTS, 0)
        assert result.rounds > 1
        for name, windows in every.answer(EVENTS).items():
            assert every.given(result.rdd(name).collect()) == windows, name


def test_windows_that_are_saved_go_on_in_the_next_job(spark: SparkSession, tmp_path: Path) -> None:
    topology, place = parsed(StatefulWindowedBolt, SOME), tmp_path / "state.sqlite"
    expected = {name: windows for name, windows in every.answer(EVENTS).items() if name in SOME}
    found = {name: [] for name in expected}
    for numbers, states in ((range(170), {"state": place}), (range(170, EVENTS), {"initial_state": place})):
        rows = spark.sparkContext.parallelize(lines(numbers), 2)
        with run_topology(topology, {"events": rows}, spark, outputs=[*expected], **states) as result:
            for name, rows_so_far in found.items():
                rows_so_far += result.rdd(name).collect()
    assert {name: every.given(rows) for name, rows in found.items()} == expected


def test_a_spout_without_a_source_and_windows_by_count_give_what_they_give_elsewhere(spark: SparkSession) -> None:
    topology = load_module(f"{EXAMPLES}/sliding_sums.py").topology
    with run_topology(topology, {}, spark, outputs=["sums", "averages"], batch_size=128) as result:
        assert result.rounds > 5
        sums = [sum(row) for row in result.rdd("sums").collect()]
        averages = [row[0] for row in result.rdd("averages").collect()]
    assert (sums, averages) == sliding_sums()


class PerTen(WindowedBolt):
    output_fields = ["count"]
    window = Tumbling(seconds(10))
    aggregate = Count()

    def process_window(self, window):
        if self.conf.get("test.breaks"):
            raise ValueError("out of order")
        self.emit([window.result])


@pytest.mark.parametrize("breaks", [False, True])
def test_by_processing_time_a_job_has_one_instant_and_an_error_of_a_window_ends_it(
    spark: SparkSession, breaks: bool
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("events", Words)
    builder.set_bolt("tens", PerTen).shuffle_grouping("events")
    topology = builder.build("windows", {"topology.message.timeout.secs": 100, "test.breaks": breaks})
    rows = spark.sparkContext.parallelize(lines(range(40)), 2)
    if breaks:
        with pytest.raises(SparkJobError, match=r"bolt 'tens' .*ValueError.*out of order"):
            run_topology(topology, {"events": rows}, spark)
        return
    with run_topology(topology, {"events": rows}, spark) as result:
        assert [*map(list, result.rdd("tens").collect())] == [[40]]


def test_sessions_and_top_pages_of_a_web_log_are_those_that_sql_finds(spark: SparkSession) -> None:
    example = load_module(f"{EXAMPLES}/page_visits.py")
    log = [[line] for line in example.log(3000)]
    rows = spark.sparkContext.parallelize(log, 3)
    with run_topology(example.topology, {"log": rows}, spark, outputs=["sessions", "top"]) as result:
        sessions = sorted(tuple(row[1:]) for row in result.rdd("sessions").collect())
        tops = dict(result.rdd("top").collect())
    spark.createDataFrame(log, ["line"]).createOrReplaceTempView("log")
    visits = """with parts as (select split(line, ' ') as part from log),
        visits as (select bigint(part[0]) as ts, part[1] as user, part[2] as page from parts where size(part) = 3)"""
    by_sql = spark.sql(f"""{visits},
        begun as (select *, int(coalesce(ts - lag(ts) over (partition by user order by ts) >= 120000, true)) as begins from visits),
        numbered as (select *, sum(begins) over (partition by user order by ts) as session from begun)
        select user, count(*), (max(ts) - min(ts) + 120000) / 1000 from numbered group by user, session""")
    assert sessions == sorted(map(tuple, by_sql.collect()))
    by_sql = spark.sql(f"""{visits} select ceil(ts / 60000) * 60000, page, count(*) from visits group by 1, 2""")
    pages: dict[int, list[tuple[int, str]]] = {}
    for end, page, count in by_sql.collect():
        pages.setdefault(end, []).append((-count, page))
    assert tops == {end: [[page, -count] for count, page in sorted(found)[:3]] for end, found in pages.items()}
