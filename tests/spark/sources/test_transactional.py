"""Partition sources as transactional spouts: the same transaction has the same rows, and each row counts once."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import LocalCluster
from multilang.component.errors import ReportedFailedException
from multilang.topology import TopologyError
from multilang.transactional import OpaqueMap, SqliteBacking, TransactionalMap
from spark_bridge import (
    ChangedRowsError,
    ListSource,
    OpaqueTransactionalPartitionSpout,
    RDDSource,
    SourceUnavailable,
    TransactionalPartitionSpout,
    publish,
    serve,
)
from tests.patience import patient
from tests.soak import soak_only
from tests.spark.sources.topologies import Asked
from tests.transactional.spouts.test_sources import Reader, Rows
from tests.transactional.spouts.topologies import word_count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

WORDS = ["moon", "sun", "star", "comet", "é"]
LIMIT = patient(120)

parts = st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=4)


@given(parts=parts, take=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_batches_tile_the_partitions_in_order_and_the_same_one_has_the_same_rows(
    parts: list[list[int]], take: int, seed: int
) -> None:
    chance = random.Random(seed)
    spout = TransactionalPartitionSpout(ListSource(parts), take)
    readers = [Reader(spout), Reader(deepcopy(spout))]
    found: list[list[int]] = [[] for _ in parts]
    batches: list[tuple[int, Any, list[int]]] = []
    turns = [number for number, rows in enumerate(parts) for _ in range(len(rows) // take + 2)]
    chance.shuffle(turns)
    last: dict[int, Any] = {}
    for partition in turns:
        reader = chance.choice(readers)  # another task has it after a crash
        reader.last[partition] = last.get(partition)
        rows = reader.new(partition)
        last[partition] = reader.last[partition]
        assert len(rows) == min(take, len(parts[partition]) - len(found[partition]))
        batches.append((partition, last[partition], rows))
        found[partition] += rows
        again = chance.choice(batches)
        assert chance.choice(readers).again(*again[:2]) == again[2]
    assert found == parts


class Elsewhere(ListSource):
    """Some of its partitions are out of reach."""

    away: set[int]

    def read(self, partition: int, offset: int, limit: int) -> Any:
        if partition in self.away:
            raise SourceUnavailable(f"partition {partition} is away")
        return super().read(partition, offset, limit)


def test_what_is_out_of_reach_waits_and_an_opaque_spout_leaves_it_out() -> None:
    source = Elsewhere([["a", "b"], ["c"]])
    source.away = {0}
    reader = Reader(TransactionalPartitionSpout(source, 1))
    opaque = Reader(OpaqueTransactionalPartitionSpout(source, 1))
    with pytest.raises(ReportedFailedException, match="partition 0 is away"):
        reader.new(0)
    rows = Rows()
    assert opaque.new(0, rows) == []
    assert rows.errors == ["partition 0 is left out: partition 0 is away"]
    assert opaque.new(1) == ["c"]
    source.away = set()
    assert reader.new(0) == ["a"]


def test_other_rows_than_were_emitted_are_refused() -> None:
    reader = Reader(TransactionalPartitionSpout(ListSource([["a", "b", "c"]]), 2))
    assert reader.new(0) == ["a", "b"]
    other = Reader(TransactionalPartitionSpout(ListSource([["a", "x", "c"]]), 2))
    with pytest.raises(ReportedFailedException, match="rows 0 to 2 of partition 0 of 'list' are not what they were"):
        other.again(0, reader.last[0])
    fewer = Reader(TransactionalPartitionSpout(ListSource([["a"]]), 2))
    with pytest.raises(ReportedFailedException, match=r"had 2 rows .* and has 1 now"):
        fewer.again(0, reader.last[0])


def test_no_batch_comes_behind_other_rows_than_were_there() -> None:
    parts = [["a", "b", "c", "d"], ["e"]]
    for spout in (TransactionalPartitionSpout, OpaqueTransactionalPartitionSpout):
        reader = Reader(spout(ListSource(parts), 2))
        reader.new(0)
        for now, said in (
            ([["b", "a", "c", "d"], ["e"]], "partition 0 of the source 'list' has other rows"),
            ([["new", "a", "b", "c", "d"], ["e"]], "partition 0 of the source 'list' has other rows"),
            ([["a"], ["e"]], "partition 0 of the source 'list' ends at row 1"),
        ):
            other = Reader(spout(ListSource(now), 2))
            other.last = dict(reader.last)
            with pytest.raises(ChangedRowsError, match=said):
                other.new(0)
        more = Reader(spout(ListSource([[*parts[0], "more"], ["e"], ["x"]]), 5))
        more.last = dict(reader.last)
        assert more.new(0) == ["c", "d", "more"]


@pytest.mark.parametrize("now", [[WORDS * 20, WORDS[::-1] * 20], [WORDS * 20]], ids=["other rows", "fewer partitions"])
def test_a_topology_whose_source_was_replaced_ends_before_a_transaction_begins(now: Any, tmp_path: Path) -> None:
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    found = TransactionalMap(SqliteBacking(tmp_path / "counts.sqlite"))

    def run(parts: Any) -> None:
        with LocalCluster(mode="inprocess", conf=conf) as cluster:
            cluster.submit(word_count(TransactionalPartitionSpout(ListSource(parts), 7), found)).wait(timeout=LIMIT)

    run([WORDS * 20, WORDS * 20])
    with pytest.raises(Exception, match=r"ChangedRowsError .*partition 1 of the source 'list'"):
        run(now)
    assert found.multi_get(WORDS) == dict.fromkeys(WORDS, 40)
    run([WORDS * 20, WORDS * 21])
    assert found.multi_get(WORDS) == dict.fromkeys(WORDS, 41)
    found.close()


def test_fields_are_those_of_the_source_and_others_are_refused_before_the_start(tmp_path: Path) -> None:
    source = ListSource([[("a", 1)]], fields=["word", "n"])
    spout = TransactionalPartitionSpout(source)
    assert list(spout.declared_streams()["default"].fields) == ["tx", "word", "n"]
    counts = TransactionalMap(SqliteBacking(tmp_path / "counts"))
    with pytest.raises(TopologyError, match=r"has the fields \['word', 'n'\].*declares \['word'\]"):
        word_count(TransactionalPartitionSpout(source, fields=["word"]), counts)
    for wrong, said in (
        (
            TransactionalPartitionSpout(Asked(source._partitions, ["word", "n"]), fields=["word"]),
            r"declares \['word'\]",
        ),
        (TransactionalPartitionSpout(fields=["word"]), r"put its URL into the conf as 'multilang.source'"),
    ):
        with LocalCluster(mode="inprocess") as cluster, pytest.raises(Exception, match=said):
            cluster.submit(word_count(wrong, counts))


@pytest.fixture(params=["live", "published"])
def source(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    rdd = spark.sparkContext.parallelize([WORDS[n * n % 5] for n in range(1000)], 3)
    if request.param == "live":
        live = RDDSource(rdd, block_rows=64)
        yield live
        live.close()
    else:
        publish(rdd, str(tmp_path / "published"), fields=["word"])
        yield str(tmp_path / "published")


COUNTS = Counter(WORDS[n * n % 5] for n in range(1000))
KINDS = [(TransactionalPartitionSpout, TransactionalMap), (OpaqueTransactionalPartitionSpout, OpaqueMap)]


@pytest.mark.parametrize(("spout", "updates"), KINDS, ids=["idempotent", "opaque"])
def test_what_is_replayed_is_counted_once(source: Any, spout: Any, updates: Any, tmp_path: Path) -> None:
    found = updates(SqliteBacking(tmp_path / "counts.sqlite"))
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    for seed in (3, 4):  # the second time, all is committed already
        with LocalCluster(mode="inprocess", conf=conf, seed=seed) as cluster:
            run = cluster.submit(word_count(spout(source, 100), found))
            run.wait(timeout=LIMIT)
        assert found.multi_get(WORDS) == COUNTS
    found.close()


@pytest.mark.parametrize(
    ("spout", "updates"),
    [pytest.param(*KINDS[0], marks=soak_only, id="idempotent"), pytest.param(*KINDS[1], id="opaque")],
)
def test_a_served_source_knows_what_is_committed_though_processes_are_killed(
    spark: SparkSession, spout: Any, updates: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", "a secret of more than sixteen characters")
    rows = 6000
    rdd = spark.sparkContext.parallelize([WORDS[n % 5] for n in range(rows)], 3)
    found = updates(SqliteBacking(tmp_path / "counts.sqlite"))
    conf = {
        "multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite",
        "topology.tick.tuple.freq.secs": 1,
    }
    topology = word_count(spout(None, 20, fields=["value"]), found)
    topology.conf["topology.message.timeout.secs"] = 2

    def counted(least: int, _: object) -> bool:
        return sum(found.multi_get(WORDS).values()) > least

    with serve(RDDSource(rdd, block_rows=500, name="words")) as served, LocalCluster(conf=conf) as cluster:
        topology.conf["multilang.source"] = served.url
        run = cluster.submit(topology)
        for kill, component in enumerate(["spout", "update", "spout/coordinator", "partial"]):
            run.wait(until=partial(counted, rows * kill // 6), timeout=LIMIT)
            victims = [task.pid for task in run.tasks if task.component == component and task.pid]
            os.kill(victims[0], signal.SIGKILL)
            run.wait(until=lambda run, dead=victims[0]: dead not in [task.pid for task in run.tasks], timeout=LIMIT)
        assert not served.done
        assert served.acked <= sum(found.multi_get(WORDS).values())
        run.wait(timeout=LIMIT)
        served.wait(timeout=LIMIT)
        assert served.acked == rows
    assert found.multi_get(WORDS) == dict.fromkeys(WORDS, rows // 5)
    found.close()


def test_an_empty_source_is_done_at_once(tmp_path: Path) -> None:
    class Told(ListSource):
        said: dict[int, Any] = {}

        def report(self, progress: Any) -> None:
            self.said.update({each.partition: (each.watermark, each.done) for each in progress})

    counts = TransactionalMap(SqliteBacking(tmp_path / "counts"))
    conf = {"multilang.transactional.store": f"sqlite://{tmp_path}/transactions.sqlite"}
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(word_count(TransactionalPartitionSpout(Told([[], []])), counts)).wait(timeout=LIMIT)
    assert Told.said == {0: (0, True), 1: (0, True)}
