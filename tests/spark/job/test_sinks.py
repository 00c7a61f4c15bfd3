"""Outputs are written in Spark's formats, and what the session can't write is told before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.cli.spark_files import FORMATS as OF_COMMAND
from multilang.topology.errors import TopologyError
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.job.sinks import FORMATS
from tests.spark.job.test_word_count import COUNTS, SENTENCES, word_count

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_outputs_are_written_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    rdd = spark.sparkContext.parallelize(SENTENCES, 1)
    with run_topology(word_count(), {"sentences": rdd}, spark) as result:
        due = sorted(map(tuple, result.rdd("count").collect()))
        assert len(due) == COUNTS.total()
        for form in ("parquet", "csv", "json"):
            place = str(tmp_path / form)
            result.write("count", place, format=form, schema="word string, count int" if form == "parquet" else None)
            read = spark.read.options(**({"header": "true"} if form == "csv" else {})).format(form).load(place)
            assert sorted((row["word"], int(row["count"])) for row in read.collect()) == due, form
        place = str(tmp_path / "parquet")
        assert dict(spark.read.parquet(place).dtypes) == {"word": "string", "count": "int"}
        with pytest.raises(Exception, match=r"(?i)already exists"):
            result.write("count", place)
        result.write("count", str(tmp_path / "json"), format="json", mode="append")
        assert spark.read.text(str(tmp_path / "json")).count() == 2 * len(due)
        for form in ("delta", "iceberg"):  # no session of the tests has them
            with pytest.raises(
                TopologyError, match=rf"can't write the format '{form}': start it with spark.jars.packages="
            ):
                result.write("count", str(tmp_path / form), format=form)
        with pytest.raises(TopologyError, match="format 'xlsx' is none of json, parquet, "):
            result.write("count", place, format="xlsx")
        with pytest.raises(TopologyError, match="mode 'replace' is none of error, "):
            result.write("count", place, mode="replace")
        with pytest.raises(SparkJobError, match="did you mean 'count'"):
            result.write("cuont", str(tmp_path / "none"), format="json")


def test_the_command_has_the_formats_of_a_result() -> None:
    assert OF_COMMAND == FORMATS
