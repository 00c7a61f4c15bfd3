"""Values that JSON lacks arrive in the stated form, or are refused with the column's name."""

from __future__ import annotations

import datetime
import decimal
from typing import TYPE_CHECKING, Any

import pytest

from multilang.connectors.values import plain
from spark_bridge import ConnectorError, RDDSource, publish
from spark_bridge.sources.values import encoded
from tests.soak import soak_only

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ZONE = datetime.timezone(datetime.timedelta(hours=-5))
SCHEMA = (
    "text string, whole bigint, real double, amount decimal(20,5), at timestamp, local timestamp_ntz, day date, raw binary, "
    "list array<timestamp>, inner struct<day: date, n: int>, prices map<string, decimal(5,2)>, yes boolean, "
    "tiny decimal(38,8)"
)
GIVEN = (
    "é",
    2**60,
    0.1,
    decimal.Decimal("12.5"),
    datetime.datetime(2013, 7, 1, 5, 15, tzinfo=ZONE),
    datetime.datetime(2013, 7, 1, 5, 15),  # noqa: DTZ001  # a timestamp_ntz
    datetime.date(2013, 1, 1),
    b"\xff\x00",
    [datetime.datetime(2013, 1, 1, tzinfo=ZONE), None],
    (datetime.date(2000, 2, 29), 7),
    {"a": decimal.Decimal("1.5")},
    True,
    decimal.Decimal("1E-8"),
)
DUE = [
    "é",
    2**60,
    0.1,
    "12.50000",
    "2013-07-01T10:15:00Z",
    "2013-07-01T05:15:00",
    "2013-01-01",
    "/wA=",
    ["2013-01-01T05:00:00Z", None],
    {"day": "2000-02-29", "n": 7},
    {"a": "1.50"},
    True,
    "0.00000001",
]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([GIVEN, (None,) * len(GIVEN)], SCHEMA).coalesce(1)


def test_live_and_published_rows_have_the_stated_form(frame: DataFrame, tmp_path: Path) -> None:
    published = publish(frame, str(tmp_path / "rows"))
    live = RDDSource(frame)
    assert live.fields == published.fields == tuple(frame.columns)
    for source in (live, published):
        assert [list(row) for row in source.read(0, 0, 10)] == [DUE, [None] * len(DUE)]
    live.close()


@pytest.mark.parametrize(
    ("given", "due"), [(float("nan"), "NaN"), (float("inf"), "Infinity"), (-float("inf"), "-Infinity")]
)
def test_numbers_that_json_lacks_are_text_as_to_json_writes_them(
    spark: SparkSession, tmp_path: Path, given: float, due: str
) -> None:
    rows = [(given, [1.0, given], (given, {"a": given})), (1.5, [], None)]
    schema = "x double, xs array<double>, inner struct<x: double, by: map<string, double>>"
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    written = frame.selectExpr("to_json(struct(x))").first()
    assert written is not None
    assert f'"{due}"' in written[0]
    live = RDDSource(frame)
    for source in (live, publish(frame, str(tmp_path / "rows"))):
        assert [list(row) for row in source.read(0, 0, 10)] == [
            [due, [1.0, due], {"x": due, "by": {"a": due}}],
            [1.5, [], None],
        ]
    live.close()


@pytest.mark.parametrize("column", ["interval 1 day", "map(1, 2)", "array(interval 1 month)", "struct(map(1, 2) as m)"])
def test_a_column_without_a_json_form_is_refused_by_name_before_anything_runs(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    frame = spark.sql(f"SELECT 1 AS fine, {column} AS strange")
    with pytest.raises(ConnectorError, match=r"column 'strange' has the type .*cast"):
        RDDSource(frame)
    with pytest.raises(ConnectorError, match="column 'strange'"):
        publish(frame, str(tmp_path / "rows"))


def test_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    with pytest.raises(ConnectorError, match="two columns 'a'"):
        RDDSource(spark.sql("SELECT 1 AS a, 2 AS a"))
    with pytest.raises(ConnectorError, match="column 's' has a struct with two fields 'a'"):
        RDDSource(spark.sql("SELECT array(named_struct('a', 1, 'a', 2)) AS s"))


def test_the_values_of_an_rdd_are_converted_as_those_of_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    row = (
        decimal.Decimal("1E+2"),
        datetime.datetime(2013, 1, 1, tzinfo=ZONE),
        b"\0",
        {"d": datetime.date(2013, 1, 1)},
        1,
    )
    rdd = spark.sparkContext.parallelize([row], 1)
    fields = ["a", "b", "c", "d", "e"]
    live = RDDSource(rdd, fields=fields)
    for source in (live, publish(rdd, str(tmp_path / "rows"), fields=fields)):
        assert [list(each) for each in source.read(0, 0, 1)] == [
            ["100", "2013-01-01T05:00:00Z", "AA==", {"d": "2013-01-01"}, 1]
        ]
    live.close()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param((1, 2**64), "field 'b': the integer 18446744073709551616 is beyond 64 bits", marks=soak_only),
        ((1, object), "field 'b': .* which JSON does not have"),
        pytest.param((1, {2: 3}), "field 'b': the key 2 of a dict", marks=soak_only),
        pytest.param(("a", "\ud800"), "field 'b': a string with a lone surrogate", marks=soak_only),
        pytest.param((1,), "is no 2 values for the fields", marks=soak_only),
        (7, "is no 2 values for the fields"),
    ],
)
def test_a_row_that_fits_no_tuple_is_named_with_its_place(
    spark: SparkSession, tmp_path: Path, row: Any, said: str
) -> None:
    rdd = spark.sparkContext.parallelize([(1, 2), (3, 4), row], 1)
    live = RDDSource(rdd, fields=["a", "b"])
    with pytest.raises(ConnectorError, match=f"partition 0, offset 2: .*{said}"):
        live.read(0, 0, 10)
    live.close()
    # Each job that fails is tried four times, and the other rows are refused by the same code.
    if row in (7, ("a", "\ud800")):
        with pytest.raises(ConnectorError, match=f"partition 0, offset 2: .*{said}"):
            publish(rdd, str(tmp_path / "rows"), fields=["a", "b"])


def test_what_json_has_stays_as_it_is() -> None:
    value = [None, True, 1, 1.5, "x", {"a": [1, {"b": None}]}]
    assert plain(value) == value


@pytest.mark.parametrize("end", [1, decimal.Decimal("1.5")])
@pytest.mark.parametrize("depth", [301, 100_000])
def test_a_value_nested_too_deeply_is_named(end: object, depth: int) -> None:
    value = end
    for _ in range(depth):
        value = [value]
    with pytest.raises(ConnectorError, match=r"field 'y': nested deeper than 300 levels"):
        encoded([1, value], ["x", "y"])
