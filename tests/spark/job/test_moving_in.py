"""A project of streamparse counts its words as a Spark job, with its components unchanged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from multilang.topology import load_topology
from spark_bridge.job import run_topology
from tests.compat.test_projects import EXPECTED, WORDS

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_a_project_of_streamparse_counts_its_words(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    monkeypatch.chdir(WORDS / "src")  # a spout runs in the driver
    topology = load_topology(str(WORDS / "topologies" / "words.py"))
    with run_topology(topology, {}, spark, limits={"lines": 12}) as result:
        counts: Counter[str] = Counter()
        for word, count in result.rdd("count").map(lambda row: tuple(row)[:2]).collect():
            counts[word] = max(counts[word], count)
        assert counts == EXPECTED
