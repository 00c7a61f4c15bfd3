"""Each value of a DataFrame arrives as Spark's own SQL has it, or is refused with its column's name: to the ends of its type."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from multilang import Spout
from multilang.connectors.values import plain
from multilang.protocol.errors import UnserializableValue
from multilang.topology import TopologyBuilder
from spark_bridge import ConnectorError, RDDSource, publish
from spark_bridge.job import SparkJobError, run_topology
from tests.soak import SOAK, sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SEED = 25
MANY = 2000 if SOAK else 60
YEAR = 366 * 86_400_000_000  # microseconds
ZONES = sampled(
    [
        ("America/New_York", "Asia/Tokyo"),
        ("Asia/Tokyo", "America/New_York"),
        ("UTC", "UTC"),
        ("Asia/Kolkata", "Pacific/Apia"),
    ],
    4,
)


def moments() -> list[int]:
    """Microseconds since 1970: around the first and last of Python's, around changes of the clock, anywhere."""
    draw = random.Random(SEED)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001
    ends = [(each - epoch) // timedelta(microseconds=1) for each in (datetime.min, datetime.max)]  # noqa: DTZ901
    hours = [
        0,
        1,
        -1,
        *(sign * hour * 3_600_000_000 + place for sign in (1, -1) for hour in (5, 14, 25) for place in (0, 1)),
    ]
    clocks = [1383456600000000, 1383460200000000, 1362898799999999, -2717650800000000, -1]
    return [
        *(end + hour for end in ends for hour in hours),
        *clocks,
        *(draw.randrange(-12000 * YEAR, 20000 * YEAR) for _ in range(MANY)),
        *(draw.randrange(-1900 * YEAR, 8000 * YEAR) for _ in range(MANY)),
    ]


def iso(text: str, zone: str) -> str:
    """Return the text of Spark's cast, with all digits of a second's fraction."""
    whole, dot, fraction = text.replace(" ", "T").partition(".")
    return f"{whole}{dot}{fraction.ljust(6, '0') if dot else ''}{zone}"


# A type: how its values are made of a number or bytes, which of them Python has, and the tuple's value of Spark's text.
TIMES: dict[str, tuple[str, Callable[[str], str]]] = {
    "date": ("date_from_unix_date(CAST(floor(n / 86400000000) AS INT))", lambda text: text),
    "timestamp": ("timestamp_micros(n)", lambda text: iso(text, "Z")),
    "timestamp_ntz": ("TIMESTAMPADD(MICROSECOND, n, TIMESTAMP_NTZ'1970-01-01 00:00:00')", lambda text: iso(text, "")),
}
WRAPPED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "plain": ("x", lambda x: x),
    "array": ("array(x, NULL)", lambda x: [x, None]),
    "map": ("map('k', x)", lambda x: {"k": x}),
    "struct of names that differ in case": ("named_struct('a', NULL, 'A', x)", lambda x: {"a": None, "A": x}),
    "nested": (
        "array(named_struct('by.name', map('k', array(x)), 'none', CAST(NULL AS STRUCT<x: TIMESTAMP>)), NULL)",
        lambda x: [{"by.name": {"k": [x]}, "none": None}, None],
    ),
}


@pytest.fixture(params=ZONES, ids=lambda zones: f"session {zones[0]}, workers {zones[1]}")
def zones(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    session, workers = request.param
    sc = spark.sparkContext
    spark.conf.set("spark.sql.session.timeZone", session)
    sc.environment["TZ"] = workers
    yield
    spark.conf.unset("spark.sql.session.timeZone")
    del sc.environment["TZ"]


def as_spark_says(spark: SparkSession, expression: str) -> list[tuple[int, bool, str]]:
    """Each number, whether the moment made of it is of a year that Python has, and the moment's text, all in UTC."""
    session = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        made = numbered(spark, moments()).selectExpr("n", f"{expression} AS x")
        return [tuple(row) for row in made.selectExpr("n", "year(x) BETWEEN 1 AND 9999", "CAST(x AS STRING)").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", session)


def numbered(spark: SparkSession, numbers: list[int]) -> DataFrame:
    return spark.createDataFrame([(n,) for n in numbers], "n bigint").coalesce(1)


def live(frame: DataFrame, _folder: Path) -> list[Any]:
    source = RDDSource(frame)
    try:
        return [list(row) for row in source.read(0, 0, 100_000)]
    finally:
        source.close()


def published(frame: DataFrame, folder: Path) -> list[Any]:
    return [list(row) for row in publish(frame, str(folder / "rows"), group_rows=100_000).read(0, 0, 100_000)]


def by_job(frame: DataFrame, _folder: Path) -> list[Any]:
    class Rows(Spout):
        output_fields = tuple(frame.columns)

    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    with run_topology(builder.build("rows"), {"rows": frame}, frame.sparkSession, outputs=["rows"]) as result:
        return [list(row) for row in result.rdd("rows").collect()]


WAYS = [live, published, by_job]
# A job that fails is tried four times, each with a Python of its own, so few fail outside of the soak.
FEW = {"date": ([by_job], published), "timestamp": ([live, published], by_job), "timestamp_ntz": ([live], live)}


@pytest.mark.parametrize("kind", TIMES)
def test_a_moment_arrives_as_it_is_or_is_refused_by_its_columns_name(
    spark: SparkSession, tmp_path: Path, zones: None, kind: str
) -> None:
    expression, tuples_text = TIMES[kind]
    said = as_spark_says(spark, expression)
    fits = [(n, tuples_text(text)) for n, fits, text in said if fits]
    assert 20 < len(fits) < len(said)
    columns = [f"{sql} AS c{number}" for number, (sql, _) in enumerate(WRAPPED.values())]
    frame = numbered(spark, [n for n, _ in fits]).selectExpr("n", f"{expression} AS x").selectExpr(*columns)
    due = [[wrap(text) for _, wrap in WRAPPED.values()] for _, text in fits]
    ways, refusing = FEW[kind]
    for way in WAYS if SOAK else ways:
        assert way(frame, tmp_path) == due
    beyond = [(n, text) for n, fits, text in said if not fits]
    refused = [(n, text, sql) for n, text in beyond for sql, _ in WRAPPED.values()]
    for number, (n, text, sql) in enumerate(random.Random(SEED).sample(refused, 60 if SOAK else 1)):
        frame = numbered(spark, [0, n]).selectExpr(f"{expression} AS x").selectExpr("1 AS fine", f"{sql} AS `the day`")
        with pytest.raises(
            (ConnectorError, SparkJobError), match="column 'the day' has a date or time outside of the years 1 to"
        ) as caught:
            (WAYS[number % len(WAYS)] if SOAK else refusing)(frame, tmp_path / str(number))
        assert "df.withColumn('the day', df['the day'].cast('string'))" in str(caught.value)
        assert text.partition(" ")[0][:5] in str(caught.value) or kind == "timestamp"  # which is in the session's zone


TEXTS = [
    b"",
    b"a",
    b"\0",
    "\u00e9 \U0001f600".encode(),
    b"\xff",
    b"a\xc3",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbf\xbd",
]


def is_text(given: bytes) -> bool:
    try:
        given.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_text_arrives_as_it_is_or_is_refused_by_its_columns_name(spark: SparkSession, tmp_path: Path) -> None:
    columns = [f"{sql} AS c{number}" for number, (sql, _) in enumerate(WRAPPED.values())]
    columns += ["map(x, 1) AS keys"]

    def frame(texts: list[bytes], *columns: str) -> DataFrame:
        raw = spark.createDataFrame([(text,) for text in texts], "raw binary").coalesce(1)
        return raw.selectExpr("CAST(raw AS STRING) AS x").selectExpr(*columns)

    fine = [text for text in TEXTS if is_text(text)]
    due = [[*(wrap(text.decode()) for _, wrap in WRAPPED.values()), {text.decode(): 1}] for text in fine]
    for way in WAYS if SOAK else [live, published]:
        assert way(frame(fine, *columns), tmp_path) == due
    broken = [text for text in TEXTS if not is_text(text)]
    for number, text in enumerate(sampled(broken, 3)):
        column = columns[number % len(columns)]
        with pytest.raises(
            (ConnectorError, SparkJobError), match=r"column 'c\d|column 'keys' has text that is no UTF-8.*binary"
        ):
            WAYS[number % len(WAYS)](frame([b"fine", text], column), tmp_path / str(number))


@pytest.mark.parametrize("way", [live, by_job])
def test_rows_that_spark_has_when_it_plans_are_refused_in_the_same_way(
    spark: SparkSession, way: Callable[[DataFrame, Path], Any], tmp_path: Path
) -> None:
    frame = spark.sql("SELECT CAST(raw AS STRING) AS x FROM VALUES (X'FF') AS t(raw)")
    with pytest.raises((ConnectorError, SparkJobError), match="column 'x' has text that is no UTF-8"):
        way(frame, tmp_path)


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])  # noqa: DTZ901
def test_a_moment_of_an_rdd_that_utc_does_not_have_is_refused(moment: datetime) -> None:
    hours = 14 if moment.year == 1 else -14
    assert plain(moment.replace(tzinfo=timezone.utc)) == f"{moment.isoformat()}Z"
    with pytest.raises(UnserializableValue, match="outside of the years 1 to 9999 in UTC"):
        plain([moment.replace(tzinfo=timezone(timedelta(hours=hours)))])
