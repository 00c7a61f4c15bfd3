"""Stateful bolts in a Spark job: what they begin with, what is saved, and when it is not."""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from multilang import StatefulBasicBolt, StatefulBolt, TopologyBuilder
from multilang.local import LocalCluster
from multilang.protocol.errors import LocalProtocolError
from multilang.state import ReplayableSpout, Serializer, SqliteStateProvider, StateError
from multilang.state.providers import provider_of
from multilang.state.settings import CONFIG, PROVIDER
from multilang.topology.errors import TopologyError
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.job.states import conf_of
from tests.patience import patient
from tests.spark.job.components import Rows
from tests.spark.stream.conftest import state_of
from tests.state.topologies import SENTENCES, Count, Lengths, Sentences, Split, exact, named, topology, words_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Pickled(Serializer):
    def encode(self, value):
        return pickle.dumps(value)

    def decode(self, data):
        return pickle.loads(data)


class PicklingProvider(SqliteStateProvider):
    """A provider whose conf does not say how values are written."""

    def __init__(self, config, conf):
        super().__init__(config, conf)
        self._values = Pickled()


def sentences(spark: SparkSession, first: int, end: int):
    return {"sentences": spark.sparkContext.parallelize([SENTENCES[n % 5] for n in range(first, end)], 3)}


def lengths_of(words: Counter[str]) -> dict[int, int]:
    found: Counter[int] = Counter()
    for word, count in words.items():
        found[len(word)] += count
    return dict(found)


def test_what_was_saved_is_what_the_next_job_begins_with(spark: SparkSession, tmp_path: Path) -> None:
    first, second, place = tmp_path / "first.sqlite", tmp_path / "second.sqlite", str(tmp_path / "first.sqlite")
    with run_topology(topology, sentences(spark, 0, 60), spark, save_state=first) as result:
        assert (result.acked, result.lost, result.rounds) == (60, 0, 1)
    assert state_of(first) == words_of(60)
    with run_topology(topology, sentences(spark, 60, 100), spark, initial_state=place, save_state=first):
        pass
    assert state_of(first) == words_of(100)
    with run_topology(exact, sentences(spark, 100, 120), spark, initial_state=first, save_state=second):
        pass
    assert state_of(first) == words_of(100)
    assert state_of(second) == words_of(120)
    assert state_of(second, "lengths", 1) == lengths_of(words_of(120))


@pytest.mark.parametrize("form", [{"valueSerializerClass": f"{__name__}.Pickled"}, None])
def test_what_is_saved_has_the_form_that_its_place_has(spark: SparkSession, tmp_path: Path, form) -> None:
    config = {"path": str(tmp_path / "state.sqlite"), **(form or {})}
    where = {PROVIDER: "sqlite" if form else f"{__name__}.PicklingProvider", CONFIG: config}
    with run_topology(exact, sentences(spark, 0, 30), spark, save_state=where, positions={"sentences": [30, 31]}):
        pass
    assert state_of(where) == words_of(30)
    with run_topology(exact, sentences(spark, 30, 50), spark, initial_state=where, save_state=where):
        pass
    assert state_of(where) == words_of(50)
    (raw,) = sqlite3.connect(config["path"]).execute("SELECT value FROM rows WHERE key = ?", (b'"cow"',)).fetchone()
    assert pickle.loads(raw) == words_of(50)["cow"]


def test_the_embedded_cluster_goes_on_from_what_spark_saved_and_back(spark: SparkSession, durable) -> None:
    with run_topology(topology, sentences(spark, 0, 50), spark, save_state=durable):
        pass
    with LocalCluster(mode="inprocess", conf={**durable, "test.sentences": 50}) as cluster:
        cluster.submit(topology).wait(timeout=patient(120))
    once = words_of(50)
    assert state_of(durable) == once + once
    with run_topology(topology, sentences(spark, 0, 50), spark, state=durable):
        pass
    assert state_of(durable) == once + once + once
    assert state_of(durable, "lengths", 1) == lengths_of(once + once + once)


class FailsOnce(StatefulBasicBolt):
    """Counts, and then fails a tuple that it has not failed before."""

    output_fields = ["n"]

    def initialize(self, conf, context):
        self.known: set[int] = set()

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put(tup["key"], self.state.get(tup["key"], 0) + 1)
        if tup["n"] % 10 == 3 and tup["n"] not in self.known:
            self.known.add(tup["n"])
            raise ValueError(f"not yet {tup['n']}")


class FailsAlways(FailsOnce):
    def process(self, tup):
        super().process(tup)
        self.known.clear()


def failing(bolt, conf=None):
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("fails", bolt, parallelism=2).fields_grouping("rows", "key")
    return builder.build("failing", conf=conf)


def test_a_failed_row_is_replayed_upon_the_state_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sparkContext.parallelize([(f"k{n % 4}", n) for n in range(40)], 2)
    with run_topology(failing(FailsOnce), {"rows": rows}, spark, save_state=tmp_path / "s") as result:
        assert (result.acked, result.lost, result.rounds) == (40, 0, 2)
    assert sum(state_of(tmp_path / "s", "fails").values()) == 44


def test_with_exact_alignment_a_failed_row_undoes_all(spark: SparkSession, tmp_path: Path) -> None:
    class Positions(ReplayableSpout):
        output_fields = ["key", "n"]

    class FailsFirstRound(FailsOnce):
        """Fails while a file is not there."""

        def initialize(self, conf, context):
            self.marker = conf["test.marker"]

        def process(self, tup):
            self.state.put(tup["key"], self.state.get(tup["key"], 0) + 1)
            if tup["n"] == 33 and not os.path.exists(self.marker):
                raise ValueError("not yet")

    builder = TopologyBuilder()
    builder.set_spout("rows", Positions)
    builder.set_bolt("fails", FailsFirstRound, parallelism=2).fields_grouping("rows", "key")
    conf = {"multilang.state.alignment": "exact", "test.marker": str(tmp_path / "marker")}
    topology = builder.build("failing", conf=conf)
    rows = {"rows": spark.sparkContext.parallelize([(f"k{n % 4}", n) for n in range(40)], 2)}
    with pytest.raises(SparkJobError, match=r"'rows' failed at every attempt.*not yet"):
        run_topology(topology, rows, spark, save_state=tmp_path / "s", max_replays=1)
    assert not state_of(tmp_path / "s", "fails")
    with run_topology(
        topology, rows, spark, save_state=tmp_path / "s", max_replays=1, progress=marking(tmp_path)
    ) as result:
        assert (result.acked, result.lost, result.rounds) == (40, 0, 2)
    assert state_of(tmp_path / "s", "fails") == {f"k{k}": 10 for k in range(4)}


def marking(folder: Path):
    def mark(progress) -> None:
        if progress.done == progress.tasks:
            (folder / "marker").touch()

    return mark


def test_what_else_a_stateful_bolt_knows_goes_along_and_its_state_is_one(spark: SparkSession, tmp_path: Path) -> None:
    class View:
        def __init__(self, state):
            self.state = state

    class Viewed(FailsOnce):
        def init_state(self, state):
            super().init_state(state)
            self.view = View(state)

        def process(self, tup):
            assert self.view.state is self.state
            super().process(tup)

    rows = spark.sparkContext.parallelize([("k", n) for n in range(40)], 2)
    with run_topology(failing(Viewed), {"rows": rows}, spark, save_state=tmp_path / "s") as result:
        assert (result.acked, result.rounds, [str(each) for each in result.errors if "Assert" in str(each)]) == (
            40,
            2,
            [],
        )
    assert state_of(tmp_path / "s", "fails") == {"k": 44}


def test_the_hook_before_the_prepare_may_put_and_one_before_the_commit_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Buffered(StatefulBasicBolt):
        def init_state(self, state):
            self.state, self.buffer = state, []

        def process(self, tup):
            self.buffer.append(tup["n"])

        def pre_prepare(self, txid):
            self.state.put("sum", self.state.get("sum", 0) + sum(self.buffer))
            self.state.put("txid", txid)
            self.buffer.clear()

    class Late(Buffered):
        def pre_commit(self, txid):
            self.late = txid

    rows = {"rows": spark.sparkContext.parallelize([("k", n) for n in range(40)], 2)}
    with run_topology(failing(Buffered), rows, spark, save_state=tmp_path / "s"):
        pass
    totals = all_of(tmp_path / "s", "fails")
    assert sum(state.get("sum", 0) for state in totals) == sum(range(40))
    assert {state["txid"] for state in totals} == {0}
    with pytest.raises(TopologyError, match=r"bolt 'fails' does something in pre_commit"):
        run_topology(failing(Late), rows, spark)


def all_of(where, component):
    provider = named(provider_of(conf_of(where)))
    states = [dict(provider.new_state(f"{component}-{index}").items()) for index in range(2)]
    provider.close()
    return states


def test_what_can_not_be_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = sentences(spark, 0, 5)
    with run_topology(topology, rows, spark, save_state=tmp_path / "s"):
        pass
    with pytest.raises(StateError, match=r"holds state already; name an empty place, or"):
        run_topology(topology, rows, spark, save_state=tmp_path / "s")
    for other in ("initial_state", "save_state"):
        with pytest.raises(TopologyError, match=r"give state alone"):
            run_topology(topology, rows, spark, state=tmp_path / "s", **{other: tmp_path / "t"})
    with pytest.raises(TopologyError, match=r"the state of 'count' is that of 2 tasks, and it has 3 now.*reshard"):
        run_topology(wider(), rows, spark, initial_state=tmp_path / "s")
    with pytest.raises(TopologyError, match=r"'sentences' has no source, and with exact alignment"):
        run_topology(exact, {}, spark)
    with pytest.raises(TopologyError, match=r"redis://HOST:PORT/DATABASE"):
        run_topology(topology, rows, spark, initial_state="redis://localhost/first")
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows)
    builder.set_bolt("split", Split).shuffle_grouping("rows")
    with pytest.raises(TopologyError, match=r"no stateful bolt, whose state could be read or saved"):
        run_topology(builder.build("plain"), {"rows": rows["sentences"]}, spark, save_state=tmp_path / "t")


def wider():
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count, parallelism=3).fields_grouping("split", "word")
    builder.set_bolt("lengths", Lengths).global_grouping("count")
    return builder.build("stateful")


def test_what_is_anchored_to_nothing_is_refused_as_on_storm(spark: SparkSession) -> None:
    class Unanchored(StatefulBolt):
        output_fields = ["n"]

        def init_state(self, state):
            pass

        def process(self, tup):
            self.emit([tup["n"]])
            self.ack(tup)

    rows = {"rows": spark.sparkContext.parallelize([("k", 1)], 1)}
    with run_topology(failing(Unanchored), rows, spark, max_replays=0) as result:
        assert result.lost == 1
        assert LocalProtocolError.__name__ in str(result.errors[0])
