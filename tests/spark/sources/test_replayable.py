"""A spout over a partition source under exact alignment: each row counts once, and a second run finds it counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import TopologyBuilder
from multilang.component.collector import SpoutCollector
from multilang.local import LocalCluster
from multilang.protocol.codec import dumps, loads
from spark_bridge import ChangedRowsError, ListSource, ReplayablePartitionSpout
from tests.patience import patient
from tests.spark.job.components import Split
from tests.spark.stream.conftest import state_of
from tests.state.topologies import Count

if TYPE_CHECKING:
    from pathlib import Path

SENTENCES = [["one two", "two"], [], ["three two one", "one"] * 20]


def listed(alignment: str, sentences=SENTENCES):
    builder = TopologyBuilder()
    builder.set_spout("sentences", ReplayablePartitionSpout(ListSource(sentences, ["sentence"])), parallelism=2)
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
            cluster.submit(exact).wait(timeout=patient(120))
        assert state_of(place) == {"one": 41, "two": 22, "three": 20}


def test_where_no_positions_are_saved_it_is_a_reliable_spout() -> None:
    memory = {"topology.state.provider": "memory"}
    with LocalCluster(mode="inprocess", conf=memory) as cluster:
        run = cluster.submit(listed("at-least-once"), capture=["sentences"])
        run.wait(timeout=patient(120))
        assert len(run.captured("sentences")) == 42


class Silent(ListSource):
    """Counts what is read of it."""

    rows_read = 0

    def read(self, partition: int, offset: int, limit: int):
        rows = super().read(partition, offset, limit)
        self.rows_read += len(rows)
        return rows


class Known(Silent):
    identity = "the same"


def started(source, position=None, tasks: int = 1, task: int = 0):
    """A spout's task, as the executor around it has it, and what it emits."""
    spout, emitted = ReplayablePartitionSpout(source), []

    class Collector(SpoutCollector):
        replays_by_position = True

        def emit(self, values, tup_id=None, *_):
            emitted.append(values[0])

        def log(self, *_):
            raise AssertionError

        report_error = report_metric = log

    class Here:
        component = "rows"
        task_index = task

        def tasks(self, component):
            return list(range(tasks))

    spout._attach(Collector(), {}, {})
    spout.declared_streams()
    spout.initialize({}, Here())
    if position is not None:
        spout.seek(loads(dumps(position)))
    return spout, emitted


parts = st.lists(st.lists(st.integers(0, 3), max_size=40), min_size=1, max_size=3)


@settings(deadline=None, max_examples=60)
@given(parts=parts, asked=st.lists(st.integers(1, 3), min_size=1, max_size=4), changed=st.data())
def test_a_position_goes_on_in_the_source_that_was_and_is_refused_in_another(parts, asked, changed) -> None:
    spout, emitted = started(ListSource(parts))
    for times in asked:
        for _ in range(times):
            spout.next_tuple()
        position = spout.position()
        again, more = started(ListSource(parts), position)
        assert again.position() == position
        while not again.exhausted():
            again.next_tuple()
        assert emitted + more == [row for part in parts for row in part]
    now = [changed.draw(st.permutations(part)) for part in parts]
    read = {int(each): at for each, at in position["offsets"].items()}
    if any(now[each][:at] != parts[each][:at] for each, at in read.items()):
        with pytest.raises(ChangedRowsError, match="of the source 'list' has other rows"):
            started(ListSource(now), position)[0].position()


def test_tasks_and_partitions_that_are_others_are_refused() -> None:
    parts = [list(range(20)), list(range(20, 40)), [1]]
    spout, _ = started(ListSource(parts), tasks=2)
    for _ in range(3):
        spout.next_tuple()
    with pytest.raises(ChangedRowsError, match="is that of task 0 of 2, and this is task 0 of 3"):
        started(ListSource(parts), spout.position(), tasks=3)
    with pytest.raises(ChangedRowsError, match=r"partition 2 .* had 3 partitions and has 2, is not there any more"):
        started(ListSource(parts[:2]), spout.position(), tasks=2)[0].position()


def test_a_source_that_says_that_it_is_the_same_is_not_read_again() -> None:
    for kind, due in ((Known, 0), (Silent, 10_000)):
        spout, _ = started(kind([list(range(10_000))]))
        while not spout.exhausted():
            spout.next_tuple()
        source = kind([list(range(10_000))])
        assert started(source, spout.position())[0].position() == spout.position()
        assert source.rows_read == due


def test_a_topology_whose_source_was_replaced_ends_and_what_it_counted_stays(tmp_path: Path) -> None:
    place = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state")},
        "topology.state.checkpoint.interval.ms": 100,
    }
    with LocalCluster(mode="inprocess", conf=place) as cluster:
        cluster.submit(exact).wait(timeout=patient(120))
    other = listed("exact", [SENTENCES[2], [], SENTENCES[0]])
    with (
        LocalCluster(mode="inprocess", conf=place) as cluster,
        pytest.raises(Exception, match=r"ChangedRowsError .*partition 0 of the source 'list' has other rows"),
    ):
        cluster.submit(other).wait(timeout=patient(120))
    assert state_of(place) == {"one": 41, "two": 22, "three": 20}
