"""Groupings decide which task sees which tuple, also with several inputs and outputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from multilang import TopologyBuilder
from multilang.topology.errors import TopologyError
from multilang.topology.javahash import task_index
from spark_bridge.job import SparkJobError, run_topology
from tests.spark.job.components import ByRemainder, Deals, Pairs, Parts, Rows, Seen, Sums
from tests.topology.by_length import ByLength

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(f"k{n % 7}", n) for n in range(200)]


def seen_by(spark: SparkSession, declare, tasks: int = 3, partitions: int = 4, rows=ROWS):
    """Return what each task of ``seen`` got."""
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    declare(builder.set_bolt("seen", Seen, parallelism=tasks))
    rdd = spark.sparkContext.parallelize(rows, partitions)
    with run_topology(builder.build("grouped"), {"rows": rdd}, spark) as result:
        got = defaultdict(list)
        for values, task, *_ in result.rdd("seen").collect():
            got[task].append(tuple(values))
        assert result.acked == len(rows)
    return dict(got)


def test_fields_grouping_places_by_storms_hash(spark: SparkSession) -> None:
    got = seen_by(spark, lambda bolt: bolt.fields_grouping("rows", "key"))
    first = 3  # 1 is the acker, 2 the spout's
    assert {task: sorted(rows) for task, rows in got.items()} == {
        first + index: sorted(row for row in ROWS if task_index([row[0]], 3) == index)
        for index in {task_index([key], 3) for key, _ in ROWS}
    }


def test_fields_grouping_takes_several_fields_of_any_type(spark: SparkSession) -> None:
    rows = [(key, n) for key in ("a", None, True, 1.5, [1, "x"], {"a": 1}) for n in range(5)]
    got = seen_by(spark, lambda bolt: bolt.fields_grouping("rows", "key", "n"), rows=rows)
    assert sorted(map(repr, (row for each in got.values() for row in each))) == sorted(map(repr, rows))
    for task, each in got.items():
        assert {task_index(row, 3) for row in each} == {task - 3}


@pytest.mark.parametrize("tasks", [1, 2, 4, 6])
def test_shuffle_gives_each_tuple_to_one_task(spark: SparkSession, tasks: int) -> None:
    got = seen_by(spark, lambda bolt: bolt.shuffle_grouping("rows"), tasks=tasks)
    assert sorted(row for each in got.values() for row in each) == sorted(ROWS)
    assert len(got) == tasks
    assert max(map(len, got.values())) <= 2 * min(map(len, got.values()))


def test_all_global_and_none(spark: SparkSession) -> None:
    got = seen_by(spark, lambda bolt: bolt.all_grouping("rows"))
    assert [sorted(rows) for rows in got.values()] == [sorted(ROWS)] * 3
    got = seen_by(spark, lambda bolt: bolt.global_grouping("rows"))
    assert {task: sorted(rows) for task, rows in got.items()} == {3: sorted(ROWS)}
    got = seen_by(spark, lambda bolt: bolt.none_grouping("rows"))
    assert sorted(row for each in got.values() for row in each) == sorted(ROWS)


def test_partial_key_divides_a_skewed_key_among_two_tasks(spark: SparkSession) -> None:
    got = seen_by(spark, lambda bolt: bolt.partial_key_grouping("rows", "key"), rows=[("hot", n) for n in range(100)])
    assert len(got) == 2
    assert min(map(len, got.values())) >= 48  # each of four sources divides its 25 evenly


def test_custom_grouping_decides(spark: SparkSession) -> None:
    got = seen_by(spark, lambda bolt: bolt.custom_grouping("rows", ByRemainder()))
    assert {task: {n % 3 for _, n in rows} for task, rows in got.items()} == {3: {0}, 4: {1}, 5: {2}}


def test_local_or_shuffle_stays_in_the_task_that_emitted(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("first", Seen, parallelism=2).fields_grouping("rows", "key")
    builder.set_bolt("second", Seen, parallelism=2).local_or_shuffle_grouping("first")
    with run_topology(builder.build("local"), {"rows": spark.sparkContext.parallelize(ROWS, 3)}, spark) as result:
        pairs = {(source, task) for _, task, _, _, source in result.rdd("second").collect()}
    assert pairs == {(2, 5), (3, 6)}  # the tasks of first are 2 and 3


def test_direct_grouping_goes_where_the_emit_says(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("deal", Deals, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("seen", Seen, parallelism=3).direct_grouping("deal")
    with run_topology(builder.build("direct"), {"rows": spark.sparkContext.parallelize(ROWS, 2)}, spark) as result:
        got = [(values[0], task) for values, task, *_ in result.rdd("seen").collect()]
    first = min(task for _, task in got)
    assert sorted(got) == [(n, first + n % 3) for _, n in ROWS]


def test_a_diamond_with_two_streams_meets_again(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("parts", Parts, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("even", Seen).global_grouping("parts", stream="even")
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("parts", "key", stream="even").fields_grouping(
        "parts", "key", stream="odd"
    ).fields_grouping("rows", "key")
    rdd = spark.sparkContext.parallelize(ROWS, 3)
    with run_topology(builder.build("diamond"), {"rows": rdd}, spark) as result:
        sums = {key: (total, tuples) for key, total, tuples in result.rdd("sums").collect()}
        even = sorted(values[1] for values, *_ in result.rdd("even").collect())
        assert result.acked == len(ROWS)
    totals: Counter[str] = Counter()
    for key, n in ROWS:
        totals[key] += 2 * n  # once from the spout, once from the parts
    assert sums == {key: (total, 2 * sum(key == k for k, _ in ROWS)) for key, total in totals.items()}
    assert even == [n for _, n in ROWS if not n % 2]


def test_a_bolt_may_read_a_stage_and_one_far_before_it(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("a", Seen, parallelism=2).fields_grouping("rows", "key")
    builder.set_bolt("b", Seen, parallelism=3).global_grouping("a")
    builder.set_bolt("c", Seen, parallelism=2).all_grouping("b").all_grouping("rows").fields_grouping("a", "task")
    rdd = spark.sparkContext.parallelize(ROWS, 3)
    with run_topology(builder.build("far"), {"rows": rdd}, spark, outputs=["a", "c"]) as result:
        assert result.rdd("a").count() == len(ROWS)
        sources = Counter(component for _, _, component, _, _ in result.rdd("c").collect())
    assert sources == {"a": len(ROWS), "b": 2 * len(ROWS), "rows": 2 * len(ROWS)}


def test_two_spouts_are_joined_and_both_are_acked(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("left", Rows)
    builder.set_spout("right", Rows)
    declared = builder.set_bolt("parts", Parts, parallelism=2).shuffle_grouping("left").shuffle_grouping("right")
    assert declared
    builder.set_bolt("pairs", Pairs, parallelism=3).fields_grouping("parts", "key", stream="even").fields_grouping(
        "parts", "key", stream="odd"
    )
    rows = [(f"order{n}", 2 * n) for n in range(50)]
    more = [(f"order{n}", 2 * n + 1) for n in reversed(range(50))]
    sc = spark.sparkContext
    with run_topology(
        builder.build("join"), {"left": sc.parallelize(rows, 2), "right": sc.parallelize(more, 3)}, spark
    ) as result:
        assert (result.acked, result.lost) == (100, 0)
        assert sorted(result.rdd("pairs").collect()) == sorted([f"order{n}", 2 * n, 2 * n + 1] for n in range(50))


def test_a_dataframe_gives_its_columns_by_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(n, f"k{n % 7}", 1.5) for _, n in ROWS], ["n", "key", "unused"])
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("sums", Sums, parallelism=2).fields_grouping("rows", "key")
    topology = builder.build("frame")
    with run_topology(topology, {"rows": frame}, spark) as result:
        out = result.dataframe("sums")
        assert out.dtypes == [("key", "string"), ("sum", "bigint"), ("tuples", "bigint")]
        assert {row["key"]: row["sum"] for row in out.collect()} == {
            f"k{k}": sum(n for _, n in ROWS if n % 7 == k) for k in range(7)
        }
    spans = spark.sql("select 'a' as key, interval 1 day as n")
    with pytest.raises(TopologyError, match=r"the DataFrame for 'rows': column 'n' has the type interval day.*cast"):
        run_topology(topology, {"rows": spans}, spark)
    with pytest.raises(TopologyError, match=r"no column 'key'.*columns n, other"):
        run_topology(topology, {"rows": frame.selectExpr("n", "key as other")}, spark)
    with pytest.raises(TopologyError, match="has two columns 'n'"):
        run_topology(topology, {"rows": frame.selectExpr("n", "key", "unused as n")}, spark)


def test_types_that_json_lacks_arrive_as_from_any_other_source(spark: SparkSession) -> None:
    frame = spark.sql(
        "select 1.50bd as key, named_struct('at', timestamp '2013-01-01 10:15:00+00:00', 'bytes', x'0102', "
        "'days', array(date '2026-11-21')) as n union all select 2.25bd, null"
    )
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("seen", Seen).global_grouping("rows")
    with run_topology(builder.build("kinds"), {"rows": frame}, spark) as result:
        assert sorted(values for values, *_ in result.rdd("seen").collect()) == [
            ["1.50", {"at": "2013-01-01T10:15:00Z", "bytes": "AQI=", "days": ["2026-11-21"]}],
            ["2.25", None],
        ]


def test_an_output_with_types_that_no_column_has_together_is_refused_by_name(spark: SparkSession) -> None:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("seen", Seen).shuffle_grouping("rows")
    builder.set_bolt("sums", Sums).global_grouping("rows")
    mixed = [("a", 1), (5, 2), (None, 3)]
    with run_topology(builder.build("mixed"), {"rows": spark.sparkContext.parallelize(mixed, 1)}, spark) as result:
        with pytest.raises(SparkJobError, match=r"field 'key' of 'sums' has values of types NoneType, int, str"):
            result.dataframe("sums")
        shown = result.dataframe("seen").collect()
        assert [row["values"] for row in shown] == ['["a",1]', "[5,2]", "[null,3]"]
        with pytest.raises(SparkJobError, match=r"'rows' is no output: the outputs are 'seen' stream 'default'"):
            result.rdd("rows")


def test_a_grouping_that_is_defined_in_one_file_decides(spark: SparkSession) -> None:
    rows = [("k" * (n % 5), n) for n in range(60)]
    got = seen_by(spark, lambda bolt: bolt.grouping("rows", ByLength(fields=["key"])), rows=rows)
    assert {task: {len(key) % 3 for key, _ in each} for task, each in got.items()} == {3: {0}, 4: {1}, 5: {2}}
