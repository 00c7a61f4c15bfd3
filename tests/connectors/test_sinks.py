"""Every sink: a tuple that it can't write fails alone, and what was written is not written again for its sake."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest
import redis as redis_py

from multilang.connectors import FileSink, JsonLines, KafkaSink, Parquet, RedisStreamSink, SqlSink, WebhookSink
from multilang.testing import run_bolt
from tests.connectors.consumed import messages
from tests.connectors.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from multilang.component.batching import LingeringBolt

    Place = tuple[LingeringBolt, Callable[[], list[str]]]
    """A sink of the fields k and n, and what returns the k of all that it wrote."""


@pytest.fixture
def files(tmp_path: Path) -> Place:
    sink = FileSink(tmp_path / "out", JsonLines(["k", "n"]))

    def written() -> list[str]:
        lines = [line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
        return [json.loads(line)["k"] for line in lines]

    return sink, written


@pytest.fixture
def table(tmp_path: Path) -> Place:
    database = sqlite3.connect(tmp_path / "shop.sqlite", isolation_level=None)
    database.execute("CREATE TABLE kept (k TEXT, n INTEGER)")
    sink = SqlSink(f"sqlite:///{tmp_path / 'shop.sqlite'}", "kept", ["k", "n"])
    return sink, lambda: [k for (k,) in database.execute("SELECT k FROM kept")]


@pytest.fixture
def webhook(receiver: Receiver) -> Place:
    return WebhookSink(receiver.url, fields=["k", "n"]), lambda: [each["k"] for each in receiver.got]


@pytest.fixture
def redis_stream(redis) -> Place:
    def written() -> list[str]:
        with redis_py.Redis(port=redis.port, decode_responses=True) as client:
            return [entry["k"] for _, entry in client.xrange("out")]

    return RedisStreamSink("out", ["k", "n"], port=redis.port), written


@pytest.fixture
def kafka_topic(kafka, topic) -> Place:
    return KafkaSink(kafka.address, topic, value="n", key="k"), lambda: [key for key, _ in messages(kafka, topic)]


@pytest.mark.parametrize("place", ["files", "table", "webhook", "redis_stream", "kafka_topic"])
def test_a_tuple_without_a_field_fails_alone(place: str, request: pytest.FixtureRequest) -> None:
    """It would fail all others of its batch at each replay, and they would be written each time, or never."""
    sink, written = request.getfixturevalue(place)
    run = run_bolt(sink)
    run.process({"k": "a", "n": 1}, {"k": "b"}, {"k": "c", "n": 3})
    run.advance(10.0)
    run.process({"k": "d"})
    run.advance(10.0)
    run.close()
    assert [tup["k"] for tup in run.failed] == ["b", "d"]
    assert len(run.acked) == 2
    assert sorted(written()) == ["a", "c"]
    said, later = run.errors
    assert said.startswith("1 of 3 tuples can't be written to ")
    assert "n" in said
    assert later.startswith("1 of 1 tuples can't be written to ")


def test_tuples_that_no_file_has_together_are_in_files_of_their_own(tmp_path: Path) -> None:
    from pyarrow import parquet

    rows = [1, 2, "x", 3, [4], 5]
    run = run_bolt(FileSink(tmp_path / "out", Parquet(["n"])), [[row] for row in rows], fields=["n"])
    run.advance(10.0)
    run.close()
    assert (len(run.acked), run.failed) == (6, [])
    files = [parquet.read_table(file)["n"].to_pylist() for file in (tmp_path / "out").iterdir()]
    assert sorted((row for file in files for row in file), key=str) == sorted(rows, key=str)
    assert "send values of one type in a field; 6 tuples are written to" in run.errors[0]
