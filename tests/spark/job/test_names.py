"""Fields keep their names and values on every way into a topology and out of it, whatever Spark thinks of the names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from multilang import Spout, TopologyBuilder
from spark_bridge import ConnectorError, RDDSource, publish
from spark_bridge.job import run_topology
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.spark.job.components import Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology import Topology

NAMES = [
    "a",
    "A",
    "b.c",
    "b",
    "two words",
    "back`tick`",
    "é",
    "c1",
    "c0",
    "source",
    "row0",
    "value",
    "1",
    "*",
    "key='x'",
]


@pytest.fixture(params=["false", "true"], ids=["names as Spark has them", "case-sensitive names"])
def case(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", request.param)
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def named(frame: DataFrame) -> DataFrame:
    """A column of each name, whose values are the column's number and the row's; the last is a struct of such names."""
    inner = "named_struct('a', timestamp_seconds(n), 'A', timestamp_seconds(n + 1), 'a.b', 'x', '', 7)"
    columns = [f"concat('{place} ', n)" for place in range(len(NAMES))]
    return frame.selectExpr(*columns, inner).toDF(*NAMES, "inner")


def row_of(n: int) -> list[Any]:
    inner = {"a": f"1970-01-01T00:00:0{n}Z", "A": f"1970-01-01T00:00:0{n + 1}Z", "a.b": "x", "": 7}
    return [*(f"{place} {n}" for place in range(len(NAMES))), inner]


def backwards() -> Topology:
    """Two spouts whose fields are the columns in another order."""

    class Backwards(Spout):
        output_fields = tuple([*NAMES, "inner"][::-1])

    builder = TopologyBuilder()
    builder.set_spout("rows", Backwards)
    builder.set_spout("more", Backwards)
    builder.set_bolt("row", Row).shuffle_grouping("rows").shuffle_grouping("more")
    return builder.build("backwards")


def test_live_and_published_columns(spark: SparkSession, case: None, tmp_path: Path) -> None:
    frame = named(spark.range(2, numPartitions=1).withColumnRenamed("id", "n"))
    live = RDDSource(frame)
    for source in (live, publish(frame, str(tmp_path / "rows"))):
        assert list(source.fields) == [*NAMES, "inner"]
        assert [list(row) for row in source.read(0, 0, 10)] == [row_of(0), row_of(1)]
    live.close()


def test_a_column_without_a_name_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConnectorError, match="column 2 of the DataFrame has no name"):
        RDDSource(spark.range(1).selectExpr("1 AS a", "2").toDF("a", ""))


def test_columns_of_a_job_and_of_its_outputs(spark: SparkSession, case: None) -> None:
    frame = named(spark.range(2, numPartitions=1).withColumnRenamed("id", "n"))
    with run_topology(backwards(), {"rows": frame, "more": frame}, spark, outputs=["rows", "row"]) as result:
        found = [row for (row,) in result.rdd("row").collect()]
        assert sorted(map(str, found)) == sorted([str(row_of(n)[::-1]) for n in (0, 1)] * 2)
        again = result.dataframe("rows", schema=frame.schema)
        assert again.schema == frame.schema
        assert [list(row) for row in again.collect()] == [list(row) for row in frame.collect()]


def test_columns_of_the_sources_of_a_query(spark: SparkSession, case: None, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "lines.txt").write_text("0\n1\n")
    frame = named(spark.readStream.text(str(tmp_path / "lines")).selectExpr("CAST(value AS INT) AS n"))
    found: list[Any] = []
    with stream_topology(
        backwards(),
        {"rows": frame, "more": frame},
        checkpoint=tmp_path / "checkpoint",
        trigger={"availableNow": True},
        each_batch=lambda result, _: found.extend(row for (row,) in result.rdd("row").collect()),
    ) as query:
        query.wait(timeout=patient(300))
    assert sorted(map(str, found)) == sorted([str(row_of(n)[::-1]) for n in (0, 1)] * 2)
