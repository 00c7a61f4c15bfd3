"""A topology counts, sums, joins and tells apart as Spark's SQL does over the same rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, Spout, TopologyBuilder
from spark_bridge.job import run_topology
from tests.soak import SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from multilang.topology import Topology

KEYS = st.sampled_from(["", "a", "A", "é", "\U0001f600", "a b", "0"])
ROWS = st.lists(st.tuples(KEYS, st.integers(-5, 5) | st.integers(-(2**40), 2**40)), max_size=40)
SCHEMA = "k string, v bigint"


class Rows(Spout):
    output_fields = ("k", "v")


class Totals(BasicBolt):
    """Emits the count and the sum of a key's values with each of its rows."""

    output_fields = {"k": str, "count": int, "sum": int}

    def initialize(self, conf: Any, context: Any) -> None:
        self.totals: dict[str, tuple[int, int]] = {}

    def process(self, tup: Any) -> None:
        key, value = tup.values
        count, total = self.totals.get(key, (0, 0))
        self.totals[key] = (count + 1, total + value)
        self.emit([key, count + 1, total + value])


class Distinct(BasicBolt):
    output_fields = {"k": str, "v": int}

    def initialize(self, conf: Any, context: Any) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def process(self, tup: Any) -> None:
        if tuple(tup.values) not in self.seen:
            self.seen.add(tuple(tup.values))
            self.emit(tup.values)


class Join(BasicBolt):
    output_fields = {"k": str, "left": int, "right": int}

    def initialize(self, conf: Any, context: Any) -> None:
        self.sides: dict[tuple[str, str], list[int]] = {}

    def process(self, tup: Any) -> None:
        key, value = tup.values
        self.sides.setdefault((tup.component, key), []).append(value)
        other = "right" if tup.component == "left" else "left"
        for match in self.sides.get((other, key), ()):
            self.emit([key, value, match] if other == "right" else [key, match, value])


class Whole(BasicBolt):
    """Counts all rows, at one task."""

    output_fields = {"n": int}

    def initialize(self, conf: Any, context: Any) -> None:
        self.n = 0

    def process(self, tup: Any) -> None:
        self.n += 1
        self.emit([self.n])


def topology_of(tasks: int) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("left", Rows)
    builder.set_spout("right", Rows)
    builder.set_bolt("totals", Totals, parallelism=tasks).fields_grouping("left", "k")
    builder.set_bolt("distinct", Distinct, parallelism=tasks).fields_grouping("left", "k", "v")
    builder.set_bolt("join", Join, parallelism=tasks).fields_grouping("left", "k").fields_grouping("right", "k")
    builder.set_bolt("of distinct", Totals, parallelism=tasks).fields_grouping("distinct", "k")
    builder.set_bolt("whole", Whole).global_grouping("join")
    return builder.build("sql")


DUE = {
    "totals": "SELECT k, count(*), sum(v) FROM l GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM l",
    "join": "SELECT l.k, l.v, r.v FROM l JOIN r ON l.k = r.k",
    "of distinct": "SELECT k, count(v), sum(v) FROM (SELECT DISTINCT k, v FROM l) GROUP BY k",
    "whole": "SELECT n FROM (SELECT count(*) AS n FROM l JOIN r ON l.k = r.k) WHERE n > 0",
}
# Of what is emitted with each row, the last of a key has all of its rows.
LAST = {
    "totals": "SELECT k, max(count), max_by(sum, count) FROM emitted GROUP BY k",
    "of distinct": "SELECT k, max(count), max_by(sum, count) FROM emitted GROUP BY k",
    "whole": "SELECT n FROM (SELECT max(n) AS n FROM emitted) WHERE n IS NOT NULL",
}


@settings(max_examples=60 if SOAK else 1, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example(
    left=[("a", 1), ("b", 2), ("a", 1), ("", -3), ("a", 4)] * 3,
    right=[("a", 7), ("", 0), ("a", 7), ("c", 1)],
    partitions=3,
    tasks=2,
    through_frame=True,
)
@given(left=ROWS, right=ROWS, partitions=st.integers(1, 5), tasks=st.integers(1, 3), through_frame=st.booleans())
def test_a_topology_counts_sums_joins_and_tells_apart_as_sql_does(
    spark: SparkSession, left: list[Any], right: list[Any], partitions: int, tasks: int, through_frame: bool
) -> None:
    sc = spark.sparkContext
    rdds = {name: sc.parallelize(rows, partitions) for name, rows in (("left", left), ("right", right))}
    frames = {name: spark.createDataFrame(rdd, SCHEMA) for name, rdd in rdds.items()}
    frames["left"].createOrReplaceTempView("l")
    frames["right"].createOrReplaceTempView("r")
    sources: Any = frames if through_frame else rdds
    with run_topology(topology_of(tasks), sources, spark, outputs=list(DUE)) as result:
        assert (result.acked, result.lost) == (len(left) + len(right), 0)
        for bolt, sql in DUE.items():
            result.dataframe(bolt).createOrReplaceTempView("emitted")
            found = spark.sql(LAST.get(bolt, "SELECT * FROM emitted"))
            assert Counter(map(tuple, found.collect())) == Counter(map(tuple, spark.sql(sql).collect())), bolt
