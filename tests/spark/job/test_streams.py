"""Topologies that are written as streams run as Spark jobs, too, with partial results combined before the shuffle."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from multilang.streams import StreamBuilder
from multilang.topology import load_topology
from multilang.windowing import Tumbling, seconds
from spark_bridge.job import run_topology
from tests.streams import pipelines, skewed

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


PIPELINE = """
from multilang.connectors import Csv, FileSink, FileSpout
from multilang.streams import StreamBuilder


async def looked_up(word):
    return word.upper()


s = StreamBuilder()
words = s.source(FileSpout({source!r}, Csv(["word"])), parallelism=2).map(lambda t: t["word"]).map_async(looked_up, limit=7)
words.to(FileSink({folder!r}), fields=["word"], name="kept")
topology = s.build("words")
"""


def test_files_go_through_look_ups_into_files(spark, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.csv").write_text("word\n" + "".join(f"w{n % 5}\n" for n in range(20 * number)))
    program = tmp_path / "words.py"
    program.write_text(PIPELINE.format(source=str(tmp_path / "in" / "*.csv"), folder=str(tmp_path / "out")))
    with run_topology(load_topology(str(program)), {}, spark) as result:
        assert (result.acked, result.errors) == (60, [])
    lines = [line for file in (tmp_path / "out").glob("kept-*.jsonl") for line in file.read_text().splitlines()]
    assert Counter(json.loads(line)["word"] for line in lines) == {f"W{n}": 12 for n in range(5)}


@pytest.mark.parametrize(("operation", "window"), [("full_join", "sliding"), ("count", "session")])
def test_windows_and_joins_give_what_plain_python_gives(spark, operation, window) -> None:
    keys = ["ant", "bee", "cow"]
    left = [[keys[n % 2], n * 7 % 41] for n in range(20)]
    right = [[keys[n % 3], n * 11 % 37] for n in range(15)]
    shape = {"sources": [(left, 2), (right, 1)], "tasks": 2, "window": window, "operation": operation}
    shape = pipelines.numbered(shape)
    with run_topology(pipelines.windowed(shape), {}, spark, outputs=["end"]) as result:
        assert result.errors == []
        values = [{"value": row[0]} for row in result.rdd("end").collect()]
    assert pipelines.windows_seen(Captured(values)) == pipelines.windows_worked_out(shape)


def test_bolts_of_the_user_s_stand_before_windows(spark) -> None:
    s = StreamBuilder()
    stream = s.source([[1000 * n, n] for n in range(20)], parallelism=2)
    for step in ("bolt", "bolts"):
        stream = skewed.STEPS[step](stream, 2)
    windows = stream.key_by(skewed.everything).window(Tumbling(seconds(5)), skewed.time_of).count()
    windows.with_end().through(skewed.Shown, name="end")
    with run_topology(s.build("bolts"), {}, spark, outputs=["end"]) as result:
        assert result.errors == []
        found = sorted(row[0] for row in result.rdd("end").collect())
    assert found == [["all", [0, 1]], *[["all", [end, 5]] for end in (5000, 10_000, 15_000)], ["all", [20_000, 4]]]


class Captured:
    """Rows in the form in which the embedded cluster gives them."""

    def __init__(self, values) -> None:
        self.values = values

    def captured(self, _):
        return self.values
