"""Published partitions: what was written is read, anywhere in it and without Spark, or refused."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from multilang import LocalCluster
from spark_bridge import ConnectorError, PartitionSpout, PublishedSource, publish
from tests.patience import patient
from tests.spark.sources.test_live import all_rows
from tests.spark.sources.topologies import FailsFirst, through

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def numbers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """3 partitions of 1000 rows, 100 to a row group."""
    url = f"file://{tmp_path_factory.mktemp('published')}/numbers"
    frame = spark.range(3000, numPartitions=3).selectExpr("id", "concat('row ', id) AS text")
    publish(frame, url, group_rows=100)
    return url


@pytest.fixture
def copied(numbers: str, tmp_path: Path) -> Path:
    import shutil

    return shutil.copytree(numbers.removeprefix("file://"), tmp_path / "copy")


def test_rows_are_read_by_offset_in_any_order(numbers: str) -> None:
    source = PublishedSource(numbers)
    assert (source.fields, source.partitions, source.rows) == (("id", "text"), 3, 3000)
    for partition in range(3):
        assert all_rows(source, partition) == [
            [n, f"row {n}"] for n in range(partition * 1000, partition * 1000 + 1000)
        ]
    for offset in random.Random(1).sample(range(1000), 30):
        assert [list(row) for row in source.read(1, offset, 1)] == [[1000 + offset, f"row {1000 + offset}"]]
    assert source.read(0, 1000, 1) == ()
    with pytest.raises(ConnectorError, match="no partition 3"):
        source.read(3, 0, 1)


@pytest.mark.parametrize("sizes", [[0, 0], [3, 0, 5], [0, 10, 11, 0, 20]])
def test_empty_partitions_have_their_place(spark: SparkSession, tmp_path: Path, sizes: list[int]) -> None:
    rows = [[(part, n) for n in range(size)] for part, size in enumerate(sizes)]
    rdd = spark.sparkContext.parallelize(rows, len(rows)).flatMap(lambda part: part)
    for number, given in enumerate((rdd, spark.createDataFrame(rdd, "part int, n int"))):
        source = publish(given, str(tmp_path / f"rows{number}"), fields=["part", "n"], group_rows=10)
        assert source.rows == sum(sizes)
        read = [all_rows(source, each) for each in range(source.partitions)]
        assert read == [[list(row) for row in part] for part in rows]


def test_one_row_costs_one_row_group(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "million")
    publish(spark.range(1_000_000, numPartitions=1).selectExpr("id", "concat('row ', id) AS text"), url)
    source = PublishedSource(url)
    source.read(0, 0, 1)  # now the index and the footer are there
    [index] = [json.loads(path.read_text()) for path in (tmp_path / "million").glob("part-*.json")]
    largest = max(size for _, _, size, _ in index["groups"])
    assert len(index["groups"]) == 123
    asked: list[int] = []
    cat_file = LocalFileSystem.cat_file

    def counted(self: LocalFileSystem, path: str, start: Any = None, end: Any = None, **more: Any) -> bytes:
        data: bytes = cat_file(self, path, start, end, **more)
        asked.append(len(data))
        return data

    monkeypatch.setattr(LocalFileSystem, "cat_file", counted)
    for offset in random.Random(2).sample(range(10_000, 1_000_000), 20):
        asked.clear()
        assert source.read(0, offset, 1) == [(offset, f"row {offset}")]
        assert len(asked) <= 1
        assert sum(asked) <= largest


def test_it_is_parquet_that_others_read_too(spark: SparkSession, numbers: str) -> None:
    frame = spark.read.parquet(f"{numbers}/*.parquet")
    assert frame.count() == 3000
    assert frame.dtypes == [("id", "bigint"), ("text", "string")]


def test_a_process_reads_it_without_spark(numbers: str) -> None:
    program = (
        "import sys\n"
        "from spark_bridge import PartitionSpout, open_source\n"
        f"spout = PartitionSpout({numbers!r})\n"
        f"print(len(open_source({numbers!r}).read(0, 5, 10)), [name for name in ('pyspark', 'py4j') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout == "10 []\n"


def parts(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"part-*{suffix}"))


def read_all(folder: Path) -> list[Any]:
    source = PublishedSource(str(folder))
    return [all_rows(source, partition) for partition in range(source.partitions)]


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_an_altered_file_is_refused_wherever_it_was_altered(copied: Path, suffix: str, bit: int) -> None:
    path = parts(copied, suffix)[1]
    whole = path.read_bytes()
    draw = random.Random(bit)
    for place in [0, len(whole) // 2, len(whole) - 1, *(draw.randrange(len(whole)) for _ in range(15))]:
        data = bytearray(whole)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        with pytest.raises(ConnectorError, match=f"{path.name} .*altered"):
            read_all(copied)
    path.write_bytes(whole)
    assert len(read_all(copied)) == 3


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_file_that_was_cut_short_is_refused(copied: Path, suffix: str) -> None:
    path = parts(copied, suffix)[2]
    whole = path.read_bytes()
    for size in (0, 1, len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ConnectorError, match=path.name):
            read_all(copied)
    path.unlink()
    with pytest.raises(ConnectorError, match=f"no {path.name}"):
        read_all(copied)


def test_an_altered_manifest_is_refused(copied: Path) -> None:
    path = copied / "manifest.json"
    whole = path.read_text()
    for altered in (whole.replace('"rows":1000', '"rows":999', 1), whole[:-1], "[]", ""):
        path.write_text(altered)
        with pytest.raises(ConnectorError, match=r"manifest\.json .*altered"):
            read_all(copied)


def test_files_that_were_swapped_are_refused(copied: Path) -> None:
    one, other = parts(copied, ".parquet")[:2]
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])
    with pytest.raises(ConnectorError):
        read_all(copied)


def test_a_topology_ends_with_the_name_of_a_damaged_file(copied: Path) -> None:
    path = parts(copied, ".parquet")[0]
    path.write_bytes(path.read_bytes()[:-100])
    with LocalCluster(mode="inprocess", fail_fast=True) as cluster, pytest.raises(Exception, match=path.name):
        cluster.submit(through(PartitionSpout(str(copied)))).wait(timeout=patient(60))  # submit may read so far already


def test_what_is_there_is_replaced_only_when_that_is_said(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "rows")
    first = publish(spark.range(10), url)
    with pytest.raises(ConnectorError, match="with overwrite=True"):
        publish(spark.range(5), url)
    assert first.read(0, 0, 1) == [(0,)]
    first.close()
    second = publish(spark.range(5, numPartitions=1), url, overwrite=True)
    assert all_rows(second, 0) == [[0], [1], [2], [3], [4]]
    assert second.identity != first.identity
    assert len(list((tmp_path / "rows").iterdir())) == 3  # the old files are gone
    with pytest.raises(ConnectorError, match="published anew"):
        first.read(0, 0, 1)
    (tmp_path / "rows/manifest.json").write_text("{}")
    third = publish(spark.range(2, numPartitions=1), url, overwrite=True)
    assert all_rows(third, 0) == [[0], [1]]


def test_a_folder_that_each_process_has_for_itself_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConnectorError, match="not one folder for all"):
        publish(spark.range(5), "memory://rows")
    with pytest.raises(ConnectorError, match="nothing was published"):
        PublishedSource("memory://rows").read(0, 0, 1)


def test_a_streaming_dataframe_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="stream_topology"):
        publish(spark.readStream.format("rate").load(), str(tmp_path / "rows"))


def test_a_publication_that_fails_leaves_nothing_that_could_be_read(spark: SparkSession, tmp_path: Path) -> None:
    def failing(rows: Iterator[int]) -> Iterator[int]:
        for row in rows:
            if row == 150:
                raise OSError("no more of them")
            yield row

    url = str(tmp_path / "rows")
    with pytest.raises(ConnectorError, match=r"could not publish .*no more of them"):
        publish(spark.sparkContext.parallelize(range(200), 2).mapPartitions(failing), url, group_rows=10)
    with pytest.raises(ConnectorError, match="nothing was published"):
        PublishedSource(url).read(0, 0, 1)
    assert list((tmp_path / "rows").iterdir()) == []


def test_attempts_that_were_lost_leave_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    mark = tmp_path / "failed"

    def failing_once(rows: Iterator[int]) -> Iterator[int]:
        yield from rows
        if not mark.exists():
            mark.touch()
            raise OSError("once")

    source = publish(spark.sparkContext.parallelize(range(200), 1).mapPartitions(failing_once), str(tmp_path / "rows"))
    assert len(all_rows(source, 0)) == 200
    assert mark.exists()
    assert len(list((tmp_path / "rows").iterdir())) == 3


def test_each_row_goes_through_an_embedded_cluster(numbers: str) -> None:
    with LocalCluster() as cluster:
        rows = through(
            PartitionSpout(numbers), FailsFirst, tasks=2, multilang_exchange="root"
        )  # no row fails with another
        run = cluster.submit(rows, capture=["echo"])
        run.wait(timeout=patient(120))
        got = [tuple(tup["row"]) for tup in run.captured("echo")]
    assert sorted(got) == [(n, f"row {n}") for n in range(3000)]


def test_columns_may_have_any_name_and_a_folder_must_be_one(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(3, numPartitions=1).selectExpr("id AS `a.b`", "id + 1 AS `c``d e`")
    source = publish(frame, str(tmp_path / "dots"))
    assert source.fields == ("a.b", "c`d e")
    assert list(source.read(0, 0, 3)) == [(0, 1), (1, 2), (2, 3)]
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match="can't be made a folder"):
        publish(frame, str(tmp_path / "file"))


def test_a_url_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConnectorError, match="can't be opened"):
        PublishedSource("nowhere://x").read(0, 0, 1)
