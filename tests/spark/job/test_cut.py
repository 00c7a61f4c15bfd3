"""History by Spark, the rest live, and back: each row of a source counts once, wherever the cut is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang import TopologyBuilder
from multilang.component.errors import ConnectorError
from multilang.local import LocalCluster
from multilang.topology.errors import TopologyError
from spark_bridge import ListSource, PartitionSpout, ReplayablePartitionSpout, publish
from spark_bridge.job import run_topology
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.spark.stream.conftest import state_of
from tests.state.topologies import SENTENCES, Count, Split, exact, words_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PARTS = [[SENTENCES[n % 5] for n in range(part, 120, 3)] for part in range(3)]
SOURCE = ListSource(PARTS, ["sentence"])


def over(source, spout=ReplayablePartitionSpout, alignment: str = "exact"):
    builder = TopologyBuilder()
    builder.set_spout("sentences", spout(source), parallelism=2)
    builder.set_bolt("split", Split).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    return builder.build("cut", conf={"multilang.state.alignment": alignment})


def counted(*ends: int):
    return sum((words_of_list(part[:end]) for part, end in zip(PARTS, ends, strict=True)), start=words_of(0))


def words_of_list(sentences):
    return type(words_of(0))(word for sentence in sentences for word in sentence.split())


@pytest.mark.parametrize("durable", ["sqlite", "redis"] if SOAK else ["redis"], indirect=True)
def test_spark_and_the_live_topology_take_over_from_each_other_at_exact_cuts(spark: SparkSession, durable) -> None:
    def live(source) -> None:
        with LocalCluster(mode="inprocess", conf=durable) as cluster:
            cluster.submit(over(source)).wait(timeout=patient(120))

    whole = over(SOURCE)
    with run_topology(whole, {"sentences": SOURCE.until({0: 10, 1: 0, 2: 33})}, spark, save_state=durable) as result:
        assert result.acked == 43
    assert state_of({**durable, "topology.name": "cut"}) == counted(10, 0, 33)
    live(SOURCE.until({0: 11, 1: 7, 2: 33}))
    assert state_of({**durable, "topology.name": "cut"}) == counted(11, 7, 33)
    cut = SOURCE.until({0: 20, 1: 30, 2: 34})
    with run_topology(whole, {"sentences": cut}, spark, initial_state=durable, save_state=durable) as result:
        assert result.acked == 33
    assert state_of({**durable, "topology.name": "cut"}) == counted(20, 30, 34)
    live(SOURCE)
    assert state_of({**durable, "topology.name": "cut"}) == counted(40, 40, 40) == words_of(120)
    with run_topology(whole, {"sentences": SOURCE}, spark, initial_state=durable, save_state=durable) as result:
        assert result.acked == 0
    with pytest.raises(
        TopologyError, match=r"has 40 rows of partition 0 of the source of 'sentences', which ends at 20"
    ):
        run_topology(whole, {"sentences": cut}, spark, initial_state=durable, save_state=durable)


@soak_only
def test_what_was_published_is_read_by_both(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(sentence,) for part in PARTS for sentence in part], ["sentence"]).repartition(3)
    source = publish(frame, str(tmp_path / "published"))
    assert sum(source.count(each) for each in range(3)) == 120
    ends = {0: 1, 1: source.count(1), 2: source.count(2) // 2}
    place = tmp_path / "state.sqlite"
    with run_topology(over(source), {"sentences": source.until(ends)}, spark, save_state=place) as result:
        assert result.acked == sum(ends.values())
    config = {"topology.state.provider": "sqlite", "topology.state.provider.config": {"path": str(place)}}
    with LocalCluster(mode="inprocess", conf=config) as cluster:
        cluster.submit(over(source)).wait(timeout=patient(120))
    assert state_of(place) == words_of(120)


def test_a_spout_of_ones_own_goes_on_at_the_positions_that_are_said(spark: SparkSession, durable) -> None:
    rows = spark.sparkContext.parallelize([SENTENCES[n % 5] for n in range(60)], 2)
    with run_topology(exact, {"sentences": rows}, spark, save_state=durable, positions={"sentences": [60, 61]}):
        pass
    with LocalCluster(mode="inprocess", conf={**durable, "test.sentences": 100}) as cluster:
        cluster.submit(exact).wait(timeout=patient(120))
    assert state_of({**durable, "topology.name": exact.name}) == words_of(100)


def test_a_source_that_is_not_the_one_that_was_counted_is_refused_on_either_side(spark: SparkSession, durable) -> None:
    def live(parts) -> None:
        with LocalCluster(mode="inprocess", conf=durable) as cluster:
            cluster.submit(over(ListSource(parts, ["sentence"]))).wait(timeout=patient(120))

    with run_topology(over(SOURCE), {"sentences": SOURCE.until({0: 10, 1: 0, 2: 33})}, spark, save_state=durable):
        pass
    other = [["another", *PARTS[0]], PARTS[1], PARTS[2]]
    with pytest.raises(Exception, match=r"partition 0 of the source 'list' has other rows: .*10 rows"):
        live(other)
    given = {"sentences": ListSource(other, ["sentence"])}
    with pytest.raises(TopologyError, match=r"partition 0 of the source 'list' has other rows: .*10 rows"):
        run_topology(over(SOURCE), given, spark, initial_state=durable, save_state=durable)
    assert state_of({**durable, "topology.name": "cut"}) == counted(10, 0, 33)
    live([[*PARTS[0], "behind"], PARTS[1], PARTS[2]])
    assert state_of({**durable, "topology.name": "cut"}) == counted(40, 40, 40) + words_of_list(["behind"])


def test_cuts_that_would_not_be_exact_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "state"
    whole = over(SOURCE)

    def refused(said: str, topology=whole, source=SOURCE, **options) -> None:
        with pytest.raises(TopologyError, match=said):
            run_topology(topology, {"sentences": source}, spark, **{"save_state": place, **options})

    refused(r"where the source of 'sentences' ends can't be saved", over(SOURCE, PartitionSpout, "at-least-once"))
    refused(r"positions: spout 'sentences' resumes where its source ends", positions={"sentences": [1, 2]})
    refused(
        r"positions are saved with the states: name their place", save_state=None, positions={"sentences": [{}, {}]}
    )
    refused(r"'sentences' has 2 tasks, and \[7\] is not a list of one position", positions={"sentences": [7]})
    refused(r"'split' is no spout; .*sentences", positions={"split": [1]})
    loose = over(SOURCE, alignment="at-least-once")
    refused(r"'sentences' can't continue there: it must be a ReplayableSpout", loose, positions={"sentences": [1, 2]})
    refused(r"has the fields line, and its stream sentence", source=ListSource(PARTS, ["line"]))
    with pytest.raises(ConnectorError, match=r"of its 3 partitions, from 0 on: partition 1 has none"):
        SOURCE.until({0: 1, 2: 3})
    # Without a place for states it is a source as any other.
    with run_topology(over(SOURCE, PartitionSpout, "at-least-once"), {"sentences": SOURCE}, spark) as result:
        assert result.acked == 120
