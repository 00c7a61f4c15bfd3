"""Values have the types that the manual's tables say, on every way into a topology and out of it. The tests read the tables."""

from __future__ import annotations

import json
from datetime import time
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, types

from multilang import BasicBolt, Spout, Stream, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.topology.errors import TopologyError
from spark_bridge import ConnectorError, RDDSource, publish, serve
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.job.columns import Rows
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.spark.job.components import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from multilang.topology import Topology

pytestmark = pytest.mark.usefixtures("time_of_day")
MANUAL = Path(__file__).parents[3] / "docs" / "spark.md"
REFUSED = "refused"


@pytest.fixture
def time_of_day(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table behind a heading of the manual, without those of its head."""
    _, found, behind = MANUAL.read_text().partition(f"# {heading}\n")
    assert found, heading
    lines = behind[behind.index("\n|") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def code(cell: str) -> str:
    assert cell[0] == cell[-1] == "`", cell
    return cell[1:-1]


def known(spark: SparkSession, sql: str) -> bool:
    """True if this Spark has the type: an older one has not all."""
    return not sql.startswith("TIME'") or spark.version >= "4.1"


def sources(spark: SparkSession) -> list[tuple[str, str]]:
    rows = [(code(sql), due) for _, sql, due in table("Types, from Spark to tuples")]
    return [row for row in rows if known(spark, row[0])]


def columns(lines: DataFrame, values: list[str]) -> DataFrame:
    """Each value as a column, in the lines that are not empty; in an empty line they are null."""
    return lines.selectExpr(*[f"IF(value = '', NULL, {sql}) AS c{number}" for number, sql in enumerate(values)])


def whole(width: int) -> Topology:
    class Rows(Spout):
        output_fields = tuple(f"c{number}" for number in range(width))

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("row", Row).shuffle_grouping("rows")
    return builder.build("whole")


def by_job(spark: SparkSession, folder: Path, values: list[str]) -> list[Any]:
    with run_topology(whole(len(values)), {"rows": columns(spark.read.text(str(folder)), values)}, spark) as result:
        return [row for (row,) in result.rdd("row").collect()]


def by_query(spark: SparkSession, folder: Path, values: list[str]) -> list[Any]:
    found: list[Any] = []
    lines = spark.readStream.text(str(folder))
    with stream_topology(
        whole(len(values)),
        {"rows": columns(lines, values)},
        checkpoint=f"{folder}.checkpoint",
        trigger={"availableNow": True},
        each_batch=lambda result, _: found.extend(row for (row,) in result.rdd("row").collect()),
    ) as query:
        query.wait(timeout=patient(300))
    return found


def live(spark: SparkSession, folder: Path, values: list[str]) -> list[Any]:
    source = RDDSource(columns(spark.read.text(str(folder)), values))
    try:
        return source.read(0, 0, 10)
    finally:
        source.close()


def served(spark: SparkSession, folder: Path, values: list[str]) -> list[Any]:
    with serve(columns(spark.read.text(str(folder)), values)) as there:
        try:
            return there.source.read(0, 0, 10)
        finally:
            there.source.close()


def published(spark: SparkSession, folder: Path, values: list[str]) -> list[Any]:
    return publish(columns(spark.read.text(str(folder)), values), f"{folder}.published").read(0, 0, 10)


WAYS = [by_job, by_query, live, served, published]


@pytest.mark.parametrize("way", WAYS)
def test_a_column_of_each_type_arrives_as_the_manual_says(
    spark: SparkSession, tmp_path: Path, way: Callable[[SparkSession, Path, list[str]], list[Any]]
) -> None:
    due = [(sql, json.loads(code(cell))) for sql, cell in sources(spark) if cell != REFUSED]
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "lines.txt").write_text("given\n\n")
    values, nulls = map(list, way(spark, folder, [sql for sql, _ in due]))
    assert [(sql, json.dumps(value)) for (sql, _), value in zip(due, values, strict=True)] == [
        (sql, json.dumps(value)) for sql, value in due
    ]
    assert nulls == [None] * len(due)


def test_a_column_of_a_type_that_the_manual_excepts_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "lines").mkdir()
    refused = [sql for sql, cell in sources(spark) if cell == REFUSED]
    assert refused
    for sql in refused:
        for way in WAYS:
            with pytest.raises((ConnectorError, TopologyError), match=r"column 'c1' has the type .* cast it first"):
                way(spark, tmp_path / "lines", ["1", sql])


def test_what_a_tuple_has_becomes_a_column_of_the_type_that_it_was(spark: SparkSession) -> None:
    values = [sql for sql, cell in sources(spark) if cell != REFUSED]
    lines = spark.createDataFrame([("given",), ("",)], "value string").coalesce(1)
    frame = columns(lines, values)
    topology = whole(len(values))
    with run_topology(topology, {"rows": frame}, spark, outputs=["rows"]) as result:
        again = result.dataframe("rows", schema=frame.schema)
        assert again.dtypes == frame.dtypes
        assert list(map(str, again.collect())) == list(
            map(str, frame.collect())
        )  # as text, for NaN is equal to nothing


class Emits(BasicBolt):
    """Emits the values of its conf, one by one."""

    def __init__(self, fields: Any) -> None:
        self.output_fields = fields

    def process(self, tup):
        for value in self.conf["test.values"]:
            self.emit([value])


class Once(Spout):
    output_fields = ("n",)


def emitting(columns: list[tuple[Any, list[Any]]]) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("once", Once)
    for number, (fields, values) in enumerate(columns):
        bolt = builder.set_bolt(f"b{number}", Emits(fields), conf={"test.values": values})
        bolt.shuffle_grouping("once")
    return builder.build("emitting")


def test_an_output_has_the_type_that_the_manual_says_of_its_values(spark: SparkSession) -> None:
    rows = [(json.loads(code(values)), kind, due) for values, kind, due in table("Types, from tuples to Spark")]
    topology = emitting([(["value"], values) for values, _, _ in rows])
    with run_topology(topology, {"once": spark.sparkContext.parallelize([0], 1)}, spark) as result:
        assert not result.errors
        frames = []
        for number, (values, kind, due) in enumerate(rows):
            if due == REFUSED:
                with pytest.raises(Exception, match=r"field 'value'") as caught:
                    result.dataframe(f"b{number}").collect()
                assert "SparkJobError" in f"{caught.value!r} {caught.value}", values
            else:
                frame = result.dataframe(f"b{number}")
                assert (values, frame.dtypes) == (values, [("value", kind)])
                json_of_value = "to_json(struct(value), map('ignoreNullFields', 'false'))"
                frames.append(frame.selectExpr(f"{number} AS number", f"{json_of_value} AS value"))
        found: dict[int, list[Any]] = {number: [] for number, (_, _, due) in enumerate(rows) if due != REFUSED}
        for number, value in reduce(DataFrame.union, frames).collect():  # one job for all
            found[number].append(json.loads(value)["value"])
        for number, values in found.items():
            assert list(map(json.dumps, values)) == list(map(json.dumps, json.loads(code(rows[number][2]))))


def test_an_output_has_the_types_that_its_stream_declares(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(code(declared), kind) for declared, kind in table("Declared types")]
    topology = emitting([({"value": eval(declared)}, [None]) for declared, _ in rows])
    topology.components["b0"].conf["test.values"] = [5, {"a": 1}, "x"]
    with run_topology(topology, {"once": spark.sparkContext.parallelize([0], 1)}, spark) as result:
        for number, (_, kind) in enumerate(rows):
            assert result.dataframe(f"b{number}").dtypes == [("value", kind)]
        assert [row["value"] for row in result.dataframe("b0").collect()] == ["5", '{"a":1}', "x"]
        with pytest.raises(Exception, match=r"'b0' emitted \{'a': 1\} for the field 'value', whose column is a bigint"):
            result.dataframe("b0", schema="value bigint").collect()
        with pytest.raises(TopologyError, match="column 'value' is a interval day"):
            result.dataframe("b0", schema="value interval day")
        with pytest.raises(TopologyError, match="schema='bigint' names no columns; write 'value bigint'"):
            result.dataframe("b0", schema="bigint")
        with pytest.raises(TopologyError, match="'b0' emits the fields value, and the schema has a, b"):
            result.dataframe("b0", schema="a int, b int")


@pytest.mark.parametrize("kind", [None, set, dict[int, str], list[bytes], ""])
def test_a_declared_type_that_no_field_can_have_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match="field 'n' declares the type"):
        Stream({"n": kind})


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (types.ByteType(), [128, 1.0, True, "1"]),
        (types.LongType(), [2**63, 0.5]),
        (types.FloatType(), [1e39, "1"]),
        (types.DoubleType(), [2**53 + 1, True]),
        (types.DecimalType(4, 2), ["1.234", 100, "NaN", "x", True]),
        (types.BooleanType(), [0, "true"]),
        (types.VarcharType(3), ["abcd", 1234, [1, 2]]),
        (types.MapType(types.CharType(1), types.IntegerType()), [{"ab": 1}, {"a": "1"}]),
        (types.DateType(), ["2013-02-30", 5]),
        (
            types.TimestampType(),
            ["2013-01-01T00:00:00", "soon", "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"],
        ),
        (types.TimestampType(), ["2013-01-01T00:00:00.1234567Z", "+12345-01-01T00:00:00Z", "0000-01-01T00:00:00Z"]),
        (types.TimestampNTZType(), ["2013-01-01T00:00:00Z", "2013-01-01T00:00:00.000000001", "-0001-01-01T00:00:00"]),
        (types.BinaryType(), ["ab?", "abc", 1]),
        (types.ArrayType(types.IntegerType(), containsNull=False), [[1, None], {"a": 1}, [2**31]]),
        (types.MapType(types.StringType(), types.IntegerType()), [{"a": "1"}, []]),
        (types.StructType([types.StructField("n", types.IntegerType(), nullable=False)]), [{}, {"n": 1, "m": 2}]),
        (types.NullType(), [0]),
    ],
)
def test_a_value_that_a_column_could_have_only_with_a_loss_is_refused(kind: types.DataType, values: list[Any]) -> None:
    row = Rows("'b'", ["x"], types.StructType([types.StructField("x", kind)]))
    assert row([None]) == (None,)
    for value in values:
        with pytest.raises(SparkJobError, match=r"'b' emitted .* for the field 'x', whose column is a "):
            row([value])


@pytest.mark.parametrize(
    ("names", "due"),
    [
        (["n", "N", "m"], (1, 2, 3)),
        (["m", "N", "n"], (3, 2, 1)),
        (["N", "n", "m"], (2, 1, 3)),
        (["x", "y", "z"], (1, 2, 3)),
        (["n", "N", "other"], (1, 2, 3)),
        (["m", "n", "other"], "'m' is a field at another place"),
        (["M", "x", "y"], "'M' is a field at another place"),
        (["x", "y", "x"], "'x' is there twice"),
        (["n", "N"], "n, N$"),
    ],
)
def test_a_schema_takes_the_fields_by_their_names_or_renames_them_in_their_order(names: list[str], due: Any) -> None:
    schema = types.StructType([types.StructField(name, types.LongType()) for name in names])
    if isinstance(due, tuple):
        assert Rows("'b'", ["n", "N", "m"], schema)([1, 2, 3]) == due
    else:
        with pytest.raises(TopologyError, match=f"'b' emits the fields n, N, m, and the schema has .*{due}"):
            Rows("'b'", ["n", "N", "m"], schema)


@pytest.mark.skipif(not hasattr(types, "TimeType"), reason="Spark has this type from 4.1 on")
def test_a_time_of_day_that_a_column_could_have_only_with_a_loss_is_refused() -> None:
    row = Rows("'b'", ["x"], types.StructType([types.StructField("x", types.TimeType(2))]))
    assert row(["05:15:00.25"]) == (time(5, 15, 0, 250_000),)
    for value in ["05:15:00.255", "05:15:00.0000001", "05:15:00+01:00", "25:00:00"]:
        with pytest.raises(SparkJobError, match="for the field 'x', whose column is a time"):
            row([value])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("decimul(12,2)", "declares the type 'decimul.12,2.', which Spark SQL does not have"),
        ("interval day", "no value of a tuple is"),
    ],
)
def test_a_type_that_no_column_can_have_is_told_before_anything_runs(
    spark: SparkSession, tmp_path: Path, kind: str, said: str
) -> None:
    class Rows(Spout):
        output_fields = ["n"]

    class Typed(BasicBolt):
        output_fields = {"total": kind}

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("typed", Typed).shuffle_grouping("rows")
    topology = builder.build("typed")
    with pytest.raises(TopologyError, match=f"stream 'default' of 'typed': .*{said}"):
        run_topology(topology, {"rows": spark.sparkContext.parallelize([1], 1)}, spark)
    stream = spark.readStream.format("rate").load().selectExpr("value AS n")
    with pytest.raises(TopologyError, match=f"stream 'default' of 'typed': .*{said}"):
        stream_topology(topology, {"rows": stream}, checkpoint=tmp_path / "c", each_batch=print)
