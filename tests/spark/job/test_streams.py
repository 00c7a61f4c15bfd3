"""Topologies that are written as streams run as Spark jobs, too, with partial results combined before the shuffle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from multilang.topology import load_topology
from spark_bridge.job import run_topology

EXAMPLE = Path(__file__).parents[3] / "examples" / "stream_words.py"


def test_a_word_count_written_as_streams_counts_as_plain_python_does(spark) -> None:
    lines = [f"the cow number {n % 7}, the moon" for n in range(500)]
    with run_topology(
        load_topology(f"{EXAMPLE}"), {"lines": spark.sparkContext.parallelize(lines, 3)}, spark
    ) as result:
        found: dict[str, int] = {}
        emitted = result.rdd("count").collect()
        for word, count in emitted:
            found[word] = max(count, found.get(word, 0))
        assert (result.acked, result.errors) == (500, [])
    words = [word.strip(",") for line in lines for word in line.split()]
    assert found == Counter(words)
    assert len(emitted) < len(words) / 10  # most were combined
