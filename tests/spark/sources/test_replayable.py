"""A spout over a partition source under exact alignment: each row counts once, and a second run finds it counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang import TopologyBuilder
from multilang.local import LocalCluster
from spark_bridge import ListSource, ReplayablePartitionSpout
from tests.spark.job.components import Split
from tests.spark.stream.conftest import state_of
from tests.state.topologies import Count

if TYPE_CHECKING:
    from pathlib import Path

SENTENCES = [["one two", "two"], [], ["three two one", "one"] * 20]


def listed(alignment: str):
    builder = TopologyBuilder()
    builder.set_spout("sentences", ReplayablePartitionSpout(ListSource(SENTENCES, ["sentence"])), parallelism=2)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    return builder.build("listed", conf={"multilang.state.alignment": alignment})


exact = listed("exact")


def test_each_row_of_a_source_counts_once_over_two_runs(tmp_path: Path) -> None:
    place = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state")},
        "topology.state.checkpoint.interval.ms": 100,
    }
    for _ in range(2):
        with LocalCluster(mode="inprocess", conf=place) as cluster:
            cluster.submit(exact).wait(timeout=120)
        assert state_of(place) == {"one": 41, "two": 22, "three": 20}


def test_where_no_positions_are_saved_it_is_a_reliable_spout() -> None:
    memory = {"topology.state.provider": "memory"}
    with LocalCluster(mode="inprocess", conf=memory) as cluster:
        run = cluster.submit(listed("at-least-once"), capture=["sentences"])
        run.wait(timeout=120)
        assert len(run.captured("sentences")) == 42
