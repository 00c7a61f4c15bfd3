"""Files that ``multilang spark`` reads and writes: no value in another column, no stream in the place of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click import ClickException

from multilang import TopologyBuilder
from multilang.cli.spark_files import check_folders, check_source, source_of, streaming
from multilang.connectors import FromIterable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = Path("out")


def test_two_streams_never_share_a_folder() -> None:
    check_folders(OUTPUT, [("count", "default"), ("count", "late"), ("counts", "default"), ("..", "default")])
    for first, second in (("count-late", "default"), ("count", "late")), (("a/b", "default"), ("a%2Fb", "default")):
        with pytest.raises(
            ClickException, match=f"stream '{first[1]}' of '{first[0]}' and stream .* would both be written to"
        ):
            check_folders(OUTPUT, [("else", "default"), first, second])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("amount,customer\n2,bob\n", "CSV header does not conform"),
        ("customer,amount\nbob\n", "Malformed CSV record: bob"),
    ],
)
def test_a_csv_file_with_other_columns_than_the_first_ends_the_job(
    spark: SparkSession, tmp_path: Path, more: str, said: str
) -> None:
    folder = tmp_path / "orders.csv"
    folder.mkdir()
    (folder / "1.csv").write_text("customer,amount\nann,1\n")
    assert source_of(spark, str(folder)).collect() == [("ann", 1)]
    (folder / "2.csv").write_text(more)
    with pytest.raises(Exception, match=said):
        source_of(spark, str(folder)).collect()


@pytest.mark.parametrize("name", ["b[1]", "a{b,c}", "b?", "b*", "b,c", "b}{,", "b\\\\[c]"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_an_existing_name_is_no_pattern_and_no_list(
    spark: SparkSession, tmp_path: Path, name: str, scheme: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for other in ("b1", "ab", "ac", "bx", "b", "c", "b\\c"):
        (tmp_path / other).mkdir()
        (tmp_path / f"{other}.txt").write_text("WRONG\n")
        (tmp_path / other / "x.txt").write_text("WRONG\n")
    (tmp_path / f"{name}.txt").write_text("of the name\n")
    (folder / "x.txt").write_text("of the name\n")
    (folder / "x.csv").write_text("word\nof the name\n")
    for file in (f"{name}.txt", name + "/x.txt", name + "/*.txt"):
        assert source_of(spark, f"{scheme}{tmp_path}/{file}").collect() == ["of the name"]
    for file in ("x.csv", "*.csv"):
        assert source_of(spark, f"{scheme}{folder}/{file}").collect() == [("of the name",)]


@pytest.mark.parametrize("pattern", ["in [1]", "in [1]/*.txt"])
def test_a_stream_reads_the_folder_of_the_name(spark: SparkSession, tmp_path: Path, pattern: str) -> None:
    for folder, text in (("in [1]", "right"), ("in 1", "WRONG")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(f"{text}\n")
    builder = TopologyBuilder()
    builder.set_spout("words", FromIterable([], field="word"))
    place = str(tmp_path / pattern)
    check_source(builder.build("t"), "words", place, stream=True)
    frame = streaming(spark, builder.build("t"), "words", place)
    query = frame.writeStream.format("memory").queryName("named").trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.sql("select * from named").collect() == [("right",)]
