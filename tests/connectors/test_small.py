"""Iterables, timers, and the collecting sink, as spouts and bolts of an ordinary topology."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from multilang import LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.connectors import (
    CollectingSink,
    FileSpout,
    FromIterable,
    KafkaSink,
    Parquet,
    RedisStreamSink,
    SqlSink,
    SqlSpout,
    TimerSpout,
)
from multilang.state import StateError
from multilang.streams import StreamBuilder
from multilang.testing import run_spout
from tests.patience import patient


def run(spout, mode="simulated", tasks=1, timeout=600, conf=None):
    sink = CollectingSink()
    builder = TopologyBuilder()
    builder.set_spout("source", spout, tasks)
    builder.set_bolt("sink", sink, 2).shuffle_grouping("source")
    with LocalCluster(mode, seed=1, fail_fast=mode != "process") as cluster:
        submitted = cluster.submit(builder.build("small", conf))
        submitted.wait(timeout=timeout)
    return sink


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_each_item_comes_once(mode, tasks) -> None:
    assert sorted(run(FromIterable(lambda: iter(range(50))), mode, tasks).values) == list(range(50))


def test_an_iterable_goes_on_from_its_position_where_there_is_a_store(tmp_path) -> None:
    conf = {"multilang.positions": str(tmp_path / "positions.sqlite"), "topology.name": "t", "storm.id": "t-1"}
    first = run_spout(FromIterable(range(10)), conf=conf)
    for tup in first.next(4):
        first.ack(tup.tup_id)
    first.next(2)  # which are not acked
    first.close()
    again = run_spout(FromIterable(range(10)), conf=conf)
    again.next(20)
    again.close()
    assert again.values == [[n] for n in range(4, 10)]
    without = run_spout(FromIterable(range(3)))
    without.next(5)
    assert without.values == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("items", "message"),
    [(5, "not 5"), (iter([1]), "can be iterated only once.*lambda: open"), ({"a"}, "is a set.*give a list")],
)
def test_what_is_no_iterable_is_refused(items, message) -> None:
    with pytest.raises(ConfigError, match=message):
        FromIterable(items)


def test_a_collecting_sink_in_a_process_says_where_it_collects() -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", FromIterable(range(3)))
    builder.set_bolt("sink", CollectingSink()).shuffle_grouping("source")
    with LocalCluster() as cluster, pytest.raises(Exception, match="run the topology with mode='inprocess'"):
        cluster.submit(builder.build("collects")).wait(timeout=patient(60))


def test_a_timer_ticks_every_so_many_seconds_in_one_task() -> None:
    rows = run(TimerSpout(2.0, count=4), tasks=2).rows
    assert [number for number, _ in rows] == [0, 1, 2, 3]
    assert {later - earlier for (_, earlier), (_, later) in pairwise(rows)} == {2000}


@pytest.mark.parametrize("secs", [0, -1, True, float("inf"), "1"])
def test_a_timer_of_no_seconds_is_refused(secs) -> None:
    with pytest.raises(ConfigError, match="use seconds above 0"):
        TimerSpout(secs)


def test_a_topology_with_state_may_be_run_again_from_the_beginning(tmp_path, monkeypatch) -> None:
    """Without multilang.positions nothing is kept of a source, and nothing is noted beside what is not kept."""
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path / "home"))
    for name in ("first", "second"):
        s = StreamBuilder(state=True)
        s.source(range(5)).key_by(lambda n: "all").count().for_each(len)
        conf = {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": str(tmp_path / f"{name}.sqlite")},
        }
        with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
            cluster.submit(s.build("again", conf)).wait(timeout=600)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("make", "module", "message"),
    [
        (lambda: SqlSpout("sqlite://", "t", "k", ["a"]), "sqlalchemy", r"package sqlalchemy .*storm-multilang\[sql\]"),
        (lambda: FileSpout("memory://a"), "fsspec.core", r"package fsspec .*storm-multilang\[files\]"),
        (lambda: FileSpout(__file__, Parquet(["a"])), "pyarrow", r"package pyarrow .*storm-multilang\[files\]"),
        (lambda: KafkaSink("h:1", "t"), "confluent_kafka", r"package confluent-kafka .*storm-multilang\[kafka\]"),
        (lambda: RedisStreamSink("s"), "redis", r"package redis .*storm-multilang\[redis\]"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch, make, module, message) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises((ConfigError, StateError), match=message):
        make().check_start({})


@pytest.mark.parametrize("acks", [0, 1, "1"])
def test_acks_of_kafka_that_lose_messages_are_refused(acks) -> None:
    with pytest.raises(ConfigError, match=r"options has 'acks' as .* a message can be lost"):
        KafkaSink("h:1", "t", options={"acks": acks})
    with pytest.raises(ConfigError, match=r"multilang\.kafka\.options has 'request\.required\.acks'"):
        KafkaSink("h:1", "t").check_start({"multilang.kafka.options": {"request.required.acks": acks}})
    KafkaSink("h:1", "t", options={"acks": "all"})


def test_what_workers_need_follows_from_the_connector() -> None:
    spout, sink = FileSpout("s3://bucket/*", Parquet(["a"])), SqlSink("sqlite://", "t")
    assert set(spout.requires) == {"fsspec", "pyarrow", "s3fs"}
    assert set(sink.requires) == {"sqlalchemy"}
    assert FileSpout("a").requires == {}


def test_connectors_are_imported_without_any_extra() -> None:
    program = """
import sys
for name in ("click", "confluent_kafka", "fsspec", "pyarrow", "redis", "rich", "sqlalchemy"):
    sys.modules[name] = None
import multilang.connectors as connectors
for name in connectors.__all__:
    getattr(connectors, name)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=patient(60))
    assert (found.returncode, found.stderr) == (0, "")
