"""Windows in streaming queries: they end batch by batch, and those that are open are in the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.topology.errors import TopologyError
from multilang.windowing import StatefulWindowedBolt, WindowedBolt
from spark_bridge.stream import stream_topology
from tests.spark.job.test_windows import SOME, parsed
from tests.spark.job.test_windows import lines as lines_of
from tests.windowing import every

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.stream.conftest import Lines

EVENTS = 240
CLOSERS = [" ".join([str(n), key.replace(" ", ""), str(ts)]) for n, key, ts in every.CLOSERS]


def test_windows_end_as_batches_pass_them_and_survive_the_query(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    expected = {name: windows for name, windows in every.answer(EVENTS).items() if name in SOME}
    found: dict[str, list[object]] = {name: [] for name in expected}
    after: list[int] = []

    def seen(result, _batch):
        for name, rows in found.items():
            rows += result.rdd(name).collect()
        after.append(len(found["sessions"]))

    def go_on(*batches: list[str]) -> None:
        query = stream_topology(
            parsed(StatefulWindowedBolt, SOME),
            {"events": lines.stream(spark)},
            checkpoint=str(tmp_path / "checkpoint"),
            state=tmp_path / "state.sqlite",
            outputs=[*expected],
            each_batch=seen,
        )
        with query:
            for batch in batches:
                lines.put(batch)
                query.query.processAllAvailable()
            assert query.failed == []

    go_on(lines_of(range(100)), lines_of(range(100, 160)))
    # Two lines that are late by far, in the first batch of another query with the same state.
    go_on(["900 ant 10", "901 bee 20", *lines_of(range(160, EVENTS))], CLOSERS)
    assert after == sorted({*after}), after
    assert len(after) == 4
    assert {name: every.given(rows) for name, rows in found.items()} == expected


def test_windows_without_state_are_refused(spark: SparkSession, lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"bolt 'counts' .* would be lost with the query: make it a StatefulWindow"):
        stream_topology(parsed(WindowedBolt), {"events": lines.stream(spark)}, checkpoint=str(tmp_path / "checkpoint"))
