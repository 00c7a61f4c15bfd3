"""A DataFrame is the same source live, served and published: its partitions, its rows, their checksums, and what is refused."""

from __future__ import annotations

import json
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructType
from pyspark.testing.objects import ExamplePoint, ExamplePointUDT

from multilang.component.errors import ChangedRowsError
from multilang.helpers.checksums import extended
from spark_bridge import ConnectorError, RDDSource, publish, serve
from spark_bridge.sources import blocks
from spark_bridge.sources.blocks import BLOCK_BYTES, Block, Chains, RowText, blocks_of
from spark_bridge.sources.live import READ_AHEAD_BYTES
from spark_bridge.sources.publish import GROUP_BYTES
from spark_bridge.sources.source import Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# A type: values of it, to its ends. Each column also has nulls.
VALUES: dict[str, list[str]] = {
    "tinyint": ["-128", "127"],
    "smallint": ["-32768", "32767"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["'-9223372036854775808'", "9223372036854775807"],
    "float": ["'NaN'", "'-0.0'", "'-Infinity'", "3.4028235E38", "1.4E-45", "1"],
    "double": ["'NaN'", "'-0.0'", "'Infinity'", "1.7976931348623157E308D", "4.9E-324D", "1", "1E22D", "0.1D"],
    "decimal(38,10)": ["'9999999999999999999999999999.9999999999'", "'-0.0000000001'", "0"],
    "decimal(38,38)": ["'0.99999999999999999999999999999999999999'", "0"],
    "decimal(38,0)": ["'-99999999999999999999999999999999999999'", "100"],
    "string": ["''", "' a '", "'\\u00e9 \\u2028 \\u0000 \\\\ \"'"],
    "string collate UNICODE_CI": ["''", "'A'"],
    "varchar(3)": ["''", "'ab '"],
    "char(3)": ["''", "'ab'"],
    "binary": ["X''", "X'00FF'"],
    "boolean": ["true", "false"],
    "date": ["DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-10'"],
    "timestamp": ["TIMESTAMP'0001-01-01 00:00:00Z'", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"],
    "time(6)": ["TIME'00:00:00'", "TIME'23:59:59.999999'"],
    "void": ["NULL"],
    "array<double>": ["array()", "array(1, NULL, double('NaN'))"],
    "array<array<date>>": ["array(array(DATE'2000-01-01'), array(), NULL)"],
    "map<string,int>": ["map()", "map('b', 1, 'a', 2)", "map('a', 2, 'b', 1)", "map('z', 1, 'y', NULL, '', 3, 'x', 4)"],
    "map<string,map<string,binary>>": ["map('d', map('f', X'00', 'e', NULL), 'c', NULL, 'b', map())"],
    "array<map<string,float>>": ["array(map('b', float('NaN'), 'a', -1), map(), NULL)"],
    "struct<b:int,a:map<string,decimal(3,1)>,v:void>": [
        "named_struct('b', NULL, 'a', NULL, 'v', NULL)",
        "named_struct('b', 1, 'a', map('q', 1.5, 'p', NULL), 'v', NULL)",
    ],
    "map<string,struct<y:timestamp,m:map<string,timestamp>>>": [
        "map('k', named_struct('y', TIMESTAMP'2000-01-01 00:00:00Z', 'm', map('t', NULL, 's', TIMESTAMP'2000-01-01 00:00:00Z')))"
    ],
}
REFUSED = [
    "INTERVAL '1 02:03:04' DAY TO SECOND",
    "INTERVAL '1-2' YEAR TO MONTH",
    "make_interval(0, 1, 0, 2)",
    "parse_json('{\"a\": 1}')",
    "map(1, 2)",
    "map(X'00', 2)",
    "array(named_struct('m', map(DATE'2000-01-01', 2)))",
    "ST_GeomFromWKB(X'0101000000000000000000F03F0000000000000040')",
    "ST_GeogFromWKB(X'0101000000000000000000F03F0000000000000040')",
    "struct()",
    "array(struct())",
    "a type of the user's",
]


@pytest.fixture
def types(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield
    spark.conf.unset("spark.sql.timeType.enabled")


def every_type(numbers: DataFrame) -> DataFrame:
    """Each value in the rows whose number says so, at a place of its own in each partition."""
    columns = []
    for place, (kind, values) in enumerate(VALUES.items()):
        cases = " ".join(f"WHEN {number} THEN CAST({value} AS {kind})" for number, value in enumerate(values))
        columns.append(f"CASE (id + {place}) % {len(values) + 1} {cases} END AS `{kind}`")
    return numbers.selectExpr(*columns)


SHAPES: dict[str, Callable[[SparkSession], DataFrame]] = {
    "behind a shuffle, empty at the end": lambda spark: spark.range(9).repartitionByRange(4, f.expr("id % 2")),
    "no rows": lambda spark: spark.range(0, 6, 1, 3).where("id < 0"),
    "no partitions": lambda spark: spark.createDataFrame(spark.sparkContext.emptyRDD(), "id long"),
    "as many as Spark likes": lambda spark: spark.range(90).groupBy(f.expr("id % 30 AS id")).count().orderBy("id"),
    "the first few": lambda spark: spark.range(0, 90, 1, 4).limit(11),
    "a list": lambda spark: spark.createDataFrame([(n,) for n in range(3)], "id long"),
}


def content(source: Any) -> list[tuple[int, str]]:
    """The checksum and the rows of each partition."""
    found = []
    for partition in range(source.partitions):
        rows: list[Any] = []
        while some := source.read(partition, len(rows), 10**9):
            rows += some
        found.append((extended(0, rows), json.dumps(rows)))
    return found


def live(rows: Any, _folder: Path) -> Any:
    source = RDDSource(rows)
    try:
        return content(source)
    finally:
        source.close()


def served(rows: Any, _folder: Path) -> Any:
    with serve(rows) as there:
        source = there.source
        try:
            return content(source)
        finally:
            source.close()


def published(rows: Any, folder: Path) -> Any:
    return content(publish(rows, str(folder / "rows")))


def test_each_type_is_the_same_live_served_and_published(spark: SparkSession, types: None, tmp_path: Path) -> None:
    numbers = spark.range(0, 50, 1, 5).where("id BETWEEN 10 AND 19 OR id BETWEEN 30 AND 39")
    frame = every_type(numbers)
    due = live(frame, tmp_path)
    assert served(frame, tmp_path) == due
    assert published(frame, tmp_path) == due
    assert [len(json.loads(rows)) for _, rows in due] == [0, 10, 0, 10, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_partitions_are_the_same_live_and_published(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    frame = SHAPES[shape](spark).select("id")
    due = live(frame, tmp_path)
    assert published(frame, tmp_path) == due
    assert len(due) == frame.rdd.getNumPartitions()


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_is_refused_alike_and_the_fix_that_is_told_helps(
    spark: SparkSession, tmp_path: Path, sql: str
) -> None:
    if sql == "a type of the user's":
        df = spark.createDataFrame(
            [(1, ExamplePoint(1.0, 2.0))], StructType().add("fine", IntegerType()).add("the one", ExamplePointUDT())
        )
    else:
        df = spark.sql(f"SELECT 1 AS fine, {sql} AS `the one`")
    told = set()
    for way in (live, served, published):
        with pytest.raises(ConnectorError, match="column 'the one' has ") as caught:
            way(df, tmp_path)
        told.add(str(caught.value))
    (text,) = told
    fixed = eval(re.search(r"df\.\w+\(.*\)", text)[0], {"df": df, "f": f})  # type: ignore[index]
    assert live(fixed, tmp_path) == published(fixed, tmp_path)


LONG = 300_000
SIZES = [LONG] * 16 + [1] * 50 + [11 << 20] + [LONG, 1, 1]


def test_blocks_and_row_groups_of_long_rows_are_bounded_in_bytes(spark: SparkSession, tmp_path: Path) -> None:
    rdd = spark.sparkContext.parallelize(SIZES, 1)
    frame = spark.createDataFrame(rdd.map(lambda size: (size,)), "n int").selectExpr("n", "repeat('x', n) AS text")
    source = RDDSource(frame)
    found = source.run(0, 0, 1000)  # as much as a job brings
    assert all(len(block.data) <= BLOCK_BYTES + 3 or block.rows == 1 for block in found)
    assert sum(len(block.data) for block in found) <= READ_AHEAD_BYTES + max(SIZES) + BLOCK_BYTES
    due = content(source)
    source.close()
    for number, rows in enumerate((frame, rdd.map(lambda size: [size, "x" * size]))):
        url = tmp_path / str(number)
        assert content(publish(rows, str(url), fields=["n", "text"])) == due
        (index,) = (json.loads(path.read_text()) for path in url.glob("part-*.json"))
        groups = [count for count, *_ in index["groups"]]
        ends = list(accumulate(groups))
        assert ends[-1] == len(SIZES)
        assert all(
            count == 1 or sum(SIZES[end - count : end]) <= GROUP_BYTES for count, end in zip(groups, ends, strict=True)
        )
        assert len(groups) <= 2 + sum(SIZES) // GROUP_BYTES


def test_a_source_finds_out_wherever_its_rows_changed_in_whatever_order_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 40)
    draw = random.Random(7)
    texts = ["x" * draw.randrange(30) for _ in range(60)]

    def computed(rows: list[str]) -> list[Block]:
        return [Block(*each) for each in blocks_of(rows, 0, RowText(["text"], None), 5)]

    def check(chains: Chains, found: list[Block]) -> None:
        for block in found:
            chains.check(0, block)

    first = computed(texts)
    assert [each.start for each in first[1:]] == [each.end for each in first[:-1]]
    assert all(each.rows == 1 or len(each.data) <= 42 + each.rows for each in first)
    for _ in range(300):
        place = draw.randrange(len(texts))
        changed = draw.choice(["y", "x" * 29, "x"])
        again = computed([*texts[:place], changed, *texts[place + 1 :]] if draw.random() < 0.8 else texts[:place])
        chains = Chains("source")
        read: dict[int, str] = {}
        refused = False
        for _ in range(25):
            found = draw.choice([first, again])
            block = draw.choice(found)
            try:
                chains.check(0, block)
            except ChangedRowsError:
                refused = True
                break
            for offset, (text,) in enumerate(block.decoded(), block.start):
                assert read.setdefault(offset, text) == text  # nobody gets two rows for one offset
        sequential = Chains("source")
        check(sequential, first)
        if again[-1].chain != first[-1].chain:
            with pytest.raises(ChangedRowsError):
                check(sequential, again)
        else:
            assert not refused


def test_any_number_of_threads_may_check_the_blocks_of_a_partition() -> None:
    found = [Block(*each) for each in blocks_of(range(300), 0, RowText(["number"], None), 1)]
    orders = [random.Random(seed).sample(found, len(found)) for seed in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(orders)) as threads:
            for _ in range(10):
                chains = Chains("source")
                list(threads.map(lambda order, chains=chains: [chains.check(0, block) for block in order], orders))
                assert chains.newest() == {0: found[-1].start}
    finally:
        sys.setswitchinterval(before)


def test_a_spout_holds_few_pieces_of_long_rows_and_knows_the_checksum_at_each_piece() -> None:
    sums = Sums()
    sums.begin(0, 0, 0)
    rows = [(str(n),) for n in range(200)]
    for offset in range(0, 200, 2):
        sums.read(0, offset, rows[offset : offset + 2])
    assert len(sums._held) <= 8
    for offset in range(0, 201, 10):
        assert sums.at(0, offset) == (offset, extended(0, rows[:offset]))
