"""Files that ``multilang spark`` reads and writes: no value in another column, no stream in the place of another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.cli.spark_fault import SparkFault
from multilang.cli.spark_files import check_folders, source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = Path("out")


def test_two_streams_never_share_a_folder() -> None:
    check_folders(OUTPUT, [("count", "default"), ("count", "late"), ("counts", "default"), ("..", "default")])
    for first, second in (("count-late", "default"), ("count", "late")), (("a/b", "default"), ("a%2Fb", "default")):
        with pytest.raises(
            SparkFault, match=f"stream '{first[1]}' of '{first[0]}' and stream .* would both be written to"
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
