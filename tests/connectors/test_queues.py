"""Sinks of Kafka and of Redis Streams: what was acked is there, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import redis as redis_py
from confluent_kafka.admin import AdminClient, NewTopic

from multilang import LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.connectors import FromIterable, KafkaSink, KafkaSpout, RedisStreamSink, RedisStreamSpout
from multilang.testing import run_bolt
from tests.connectors.consumed import messages
from tests.patience import patient
from tests.servers import LIMIT, KafkaServer, RedisServer, free_port

COUNT = 200


class DiesOnce:
    """Is killed before its batch with ``number`` is sent, and after its batch with ``later`` was, each once."""

    folder = ""

    def process_batch(self, key, tups):
        numbers = {int(tup["value"]) for tup in tups}
        self.die(50 in numbers, "before")
        super().process_batch(key, tups)
        self.die(120 in numbers, "behind")

    def die(self, now, when):
        marker = Path(self.folder) / when
        if now and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class DyingKafka(DiesOnce, KafkaSink):
    pass


class DyingRedis(DiesOnce, RedisStreamSink):
    pass


def topology(sink, folder):
    sink.folder = str(folder)
    builder = TopologyBuilder()
    builder.set_spout("numbers", FromIterable([str(n) for n in range(COUNT)]))
    builder.set_bolt("sink", sink).shuffle_grouping("numbers")
    conf = {"topology.max.spout.pending": 20, "topology.message.timeout.secs": 5}
    return builder.build("sends", conf)


def run_through(sink, folder):
    with LocalCluster(seed=1) as cluster:
        run = cluster.submit(topology(sink, folder))
        run.wait(timeout=patient(120))
        assert run.counters["numbers"].acked >= COUNT
        assert sum(task.restarts for task in run.tasks if task.component == "sink") == 2


# ---- Kafka ----


def test_a_sink_of_kafka_that_is_killed_loses_nothing(kafka, topic, tmp_path) -> None:
    run_through(DyingKafka(kafka.address, topic, value="value"), tmp_path)
    found = [int(value) for _, value in messages(kafka, topic)]
    assert set(found) == set(range(COUNT))
    assert len(found) <= COUNT + 2 * 20


def test_a_broker_that_is_killed_and_started_again_costs_nothing(kafka, tmp_path) -> None:
    (tmp_path / "kafka").mkdir()
    server = KafkaServer(tmp_path / "kafka")
    server.start()
    admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    admin.create_topics([NewTopic("out", 2, 1)])["out"].result(LIMIT)
    builder = TopologyBuilder()
    builder.set_spout("numbers", FromIterable(range(400)))
    builder.set_bolt("sink", KafkaSink(server.address, "out", value="value")).shuffle_grouping("numbers")
    try:
        with LocalCluster("inprocess", {"topology.max.spout.pending": 20}) as cluster:
            run = cluster.submit(builder.build("sends"))
            run.wait(lambda run: run.counters["numbers"].acked > 20, timeout=patient(60))
            server.kill()
            server.start()
            run.wait(timeout=patient(120))
            assert run.counters["numbers"].acked == 400
        assert {int(value) for _, value in messages(server, "out")} == set(range(400))
    finally:
        server.kill()


def test_a_message_has_the_key_and_the_value_that_were_asked_for(kafka, topic) -> None:
    rows = [["a", 1], ["ä", None]]
    for sink in (KafkaSink(kafka.address, topic, value="n", key="k"), KafkaSink(kafka.address, topic)):
        run = run_bolt(sink, rows, fields=["k", "n"])
        run.advance(1.0)
        run.close()
        assert len(run.acked) == 2
    found = messages(kafka, topic)
    assert {each for each in found if each[0] is not None} == {("a", "1"), ("ä", None)}
    whole = sorted((json.loads(value) for key, value in found if key is None), key=str)
    assert whole == sorted([{"k": "a", "n": 1}, {"k": "ä", "n": None}], key=str)


def test_a_message_that_is_too_large_fails_alone(kafka, topic) -> None:
    run = run_bolt(KafkaSink(kafka.address, topic), [["x"], ["y" * 2_000_000]], fields=["value"])
    run.advance(1.0)
    run.close()
    assert len(run.acked) + len(run.failed) == 2
    assert len(run.failed) >= 1
    assert "Message size too large" in run.errors[0]


def test_what_is_not_there_is_reported_before_the_start(kafka) -> None:
    with pytest.raises(ConfigError, match=r"topic 'nowhere' of Kafka at .* can't be used: .*make the topic"):
        KafkaSink(kafka.address, "nowhere").check_start({})
    with pytest.raises(ConfigError, match="is a broker running there"):
        KafkaSink(f"127.0.0.1:{free_port()}", "nowhere").check_start({})
    with pytest.raises(ConfigError, match="topic is None"):
        KafkaSink(kafka.address, None)


# ---- Redis Streams ----


def entries(redis: RedisServer, stream: str = "out") -> list[dict[str, str]]:
    client = redis_py.Redis(port=redis.port, decode_responses=True)
    try:
        return [entry for _, entry in client.xrange(stream)]
    finally:
        client.close()


def test_a_sink_of_redis_that_is_killed_loses_nothing(redis, tmp_path) -> None:
    run_through(DyingRedis("out", port=redis.port), tmp_path)
    found = [int(entry["value"]) for entry in entries(redis)]
    assert set(found) == set(range(COUNT))
    assert len(found) <= COUNT + 2 * 20


def test_an_entry_is_read_again_as_it_was(redis) -> None:
    rows = [["a", 1, None], [None, None, None], ["b", [1, "x"], "text"]]
    run = run_bolt(RedisStreamSink("out", port=redis.port), rows, fields=["k", "n", "t"])
    run.advance(1.0)
    run.close()
    assert len(run.acked) == 2
    assert [tup.values for tup in run.failed] == [[None, None, None]]  # alone: no entry is empty
    assert "1 of 3 tuples can't be written to stream 'out'" in run.errors[0]
    assert entries(redis) == [{"k": "a", "n": "1"}, {"k": "b", "n": '[1,"x"]', "t": "text"}]


def test_a_redis_that_is_not_there_is_reported_before_the_start_and_fails_the_tuples(redis) -> None:
    sink = RedisStreamSink("out", port=free_port())
    with pytest.raises(Exception, match="the sink's host and port"):
        sink.check_start({})
    client = redis_py.Redis(port=redis.port)
    client.set("text", "x")
    client.close()
    with pytest.raises(ConfigError, match=r"stream 'text' in .* is a string; name another key"):
        RedisStreamSink("text", port=redis.port).check_start({})
    run = run_bolt(RedisStreamSink("text", port=redis.port), [["a"]], fields=["k"], expect=Exception)
    run.advance(1.0)
    run.close()
    assert len(run.failed) == 1


def test_both_styles_find_their_queues_in_one_place() -> None:
    from multilang.queues import KafkaSpout as Kafka
    from multilang.queues import RedisStreamSpout as Redis

    assert (KafkaSpout, RedisStreamSpout) == (Kafka, Redis)
