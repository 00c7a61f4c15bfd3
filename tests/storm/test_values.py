"""A value that goes from one worker to another arrives as it was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.storm.conftest import SHIPPED, acked, give, wait_for
from tests.storm.shipped.values import VALUES

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

WAYS = [(component, stream) for component in ("values", "echo") for stream in ("default", "direct")]


def test_every_value_arrives_in_both_workers_by_every_way(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    give(storm, SHIPPED / "values.py", "values", **{"test.folder": str(tmp_path)})
    every = 2 * len(WAYS) * len(VALUES)
    wait_for(lambda: sum(len(path.read_text().splitlines()) for path in tmp_path.iterdir()) >= every, "all have come")
    # Storm counts one message for each task that gets a tuple in a block, and for each direct emit.
    wait_for(lambda: acked(nimbus, "values", "values") == (5 * len(VALUES), 0), "all values are acked, none failed")
    # Storm may start a worker on a busy machine a second time, before anything was emitted.
    files = sorted(path for path in tmp_path.iterdir() if path.stat().st_size)
    workers = {path.name.rpartition("-")[2] for path in files}
    assert len(files) == len(workers) == 2, "each sink is in a worker of its own"
    for path in files:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line for line in lines if line[3]] == []
        came = sorted((component, stream, n) for component, stream, n, _ in lines)
        assert came == sorted((*way, n) for way in WAYS for n in range(len(VALUES)))
