"""Kafka: brokers that are killed, topics that grow and lose their beginning, offsets without messages."""

from __future__ import annotations

import pytest

from multilang.component.errors import ChangedRowsError, ConfigError, ReportedFailedException, SourceUnavailable
from multilang.transactional.spouts import kafka as module
from multilang.transactional.spouts.kafka import TransactionalKafkaSpout
from tests.servers import LIMIT, KafkaServer, free_port, wait_for
from tests.soak import soak_only
from tests.transactional.spouts.sources import FilledKafka
from tests.transactional.spouts.test_sources import Reader


@pytest.fixture
def source(kafka):
    return FilledKafka(kafka.address)


def test_the_fields_are_parts_of_the_message(source):
    source.producer.produce(source.topic, "moon", "key", partition=1, timestamp=1_700_000_000_000)
    source.producer.produce(source.topic, None, None, partition=1)
    source.producer.flush(LIMIT)
    fields = ["offset", "partition", "key", "value", "timestamp"]
    found = TransactionalKafkaSpout(source.address, source.topic, fields).open({})
    rows, _ = found.read(1, 0, 5)
    found.close()
    assert rows[0] == [0, 1, "key", "moon", 1_700_000_000_000]
    assert rows[1][:4] == [1, 1, None, None]
    with pytest.raises(ConfigError, match="a message of Kafka has no 'word'; it has key, offset"):
        TransactionalKafkaSpout(source.address, source.topic, ["word"])


def test_a_message_that_is_no_text_is_refused_again_each_time_and_none_beside_it_is_left_out(source):
    for value in ("a", b"\xff", "b"):
        source.producer.produce(source.topic, value, partition=0)
    source.producer.flush(LIMIT)
    found = source.spout(take=5).open({})
    for position in (0, 1, 1, 0):
        with pytest.raises(SourceUnavailable, match=r"message 1, partition 0 of topic .* is not UTF-8"):
            found.read(0, position, 5)
    assert found.read(0, 0, 1) == ([["a"]], 1)
    assert found.read(0, 2, 5) == ([["b"]], 3)
    found.close()


def test_a_topic_that_is_not_there_is_named_before_anything_runs(kafka):
    with pytest.raises(ConfigError, match=r"topic 'nix' of Kafka at 127\.0\.0\.1:\d+ can't be used.*make the topic"):
        TransactionalKafkaSpout(kafka.address, "nix").get_emitter({}, None)


def test_a_broker_that_is_not_there_is_named_after_a_while(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECS", 1.0)
    with pytest.raises(ConfigError, match=r"does not answer: .*; is a broker running there"):
        TransactionalKafkaSpout(f"127.0.0.1:{free_port()}", "words").get_emitter({}, None)


def test_an_option_that_librdkafka_does_not_know_is_reported(kafka):
    with pytest.raises(ConfigError, match=r"does not take the options.*nix"):
        TransactionalKafkaSpout(kafka.address, "words", options={"nix": 1}).get_emitter({}, None)


def test_a_topic_that_gets_further_partitions_is_read_whole(source, monkeypatch):
    from confluent_kafka.admin import NewPartitions

    monkeypatch.setattr(module, "REFRESH_SECS", 0)
    found = source.spout(take=5).open({})
    assert found.num_partitions() == 3
    source.admin.create_partitions([NewPartitions(source.topic, 4)])[source.topic].result(LIMIT)
    wait_for(lambda: source.partitions() == 4, "the partition is known")
    source.add(3, ["new"])
    assert found.num_partitions() == 4
    assert found.read(3, found.first(3), 5)[0] == [["new"]]
    found.close()


def test_messages_that_kafka_has_removed_are_reported(source):
    from confluent_kafka import TopicPartition

    source.add(0, ["a", "b", "c", "d"])
    reader = Reader(source.spout(take=2))
    reader.new(0)
    source.admin.delete_records([TopicPartition(source.topic, 0, 3)])[TopicPartition(source.topic, 0, 3)].result(LIMIT)
    with pytest.raises(ReportedFailedException, match=r"has offsets from 3 to 4, and 2 is to be read.*retention"):
        reader.new(0)
    reader.emitter.close()
    fresh = Reader(source.spout(take=2))
    assert fresh.new(0) == ["d"]
    fresh.emitter.close()


def test_what_a_producers_transaction_did_not_commit_is_not_read(source, kafka):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": source.topic})
    producer.init_transactions(LIMIT)
    reader = Reader(source.spout(take=3))
    found = source.spout(take=3).open({})
    for word, commit in (("a", True), ("b", False), ("c", True), ("d", True), ("e", False)):
        producer.begin_transaction()
        producer.produce(source.topic, word, partition=0)
        producer.flush(LIMIT)
        if commit:
            producer.commit_transaction(LIMIT)
        else:
            producer.abort_transaction(LIMIT)
    producer.begin_transaction()
    producer.produce(source.topic, "open", partition=0)
    producer.flush(LIMIT)
    assert reader.new(0) == ["a", "c", "d"]
    assert reader.again(0, reader.last[0]) == ["a", "c", "d"]
    assert reader.new(0) == []
    assert not found.has_more(0, reader.last[0]["to"])
    producer.commit_transaction(LIMIT)
    wait_for(lambda: found.has_more(0, reader.last[0]["to"]), "it is committed")
    assert reader.new(0) == ["open"]
    reader.emitter.close()
    found.close()


@soak_only
def test_a_broker_that_is_killed_is_reported_and_read_on_when_it_is_back(tmp_path, kafka, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECS", 2.0)
    server = KafkaServer(tmp_path)
    server.start()
    try:
        source = FilledKafka(server.address)
        source.add(0, ["a", "b", "c"])
        reader = Reader(source.spout(take=2))
        assert reader.new(0) == ["a", "b"]
        server.kill()
        with pytest.raises(ReportedFailedException, match=r"topic 'words-\d+' of Kafka at 127"):
            reader.new(0)
        server.start()
        assert reader.again(0, reader.last[0]) == ["a", "b"]
        assert reader.new(0) == ["c"]
        reader.emitter.close()
    finally:
        server.kill()


def test_a_topic_that_was_deleted_and_made_anew_is_refused_and_one_whose_rows_were_removed_is_not(source):
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import NewTopic

    source.add(0, ["a", "b", "c"])
    reader = Reader(source.spout(take=2))
    assert reader.new(0) == ["a", "b"]
    reader.emitter.close()
    source.admin.delete_records([TopicPartition(source.topic, 0, 2)])[TopicPartition(source.topic, 0, 2)].result(LIMIT)
    again = Reader(source.spout(take=2))
    again.last = reader.last
    assert again.new(0) == ["c"]
    again.emitter.close()
    source.admin.delete_topics([source.topic])[source.topic].result(LIMIT)
    wait_for(lambda: source.topic not in source.admin.list_topics(timeout=LIMIT).topics, "the topic is gone")
    source.admin.create_topics([NewTopic(source.topic, 3, 1)])[source.topic].result(LIMIT)
    wait_for(lambda: source.partitions() == 3, "the topic is there again")
    source.producer.produce(source.topic, "x", partition=0)
    assert source.producer.flush(LIMIT) == 0
    other = Reader(source.spout(take=2))
    other.last = reader.last

    said = []

    def is_refused():
        try:
            assert not other.new(0)
        except ReportedFailedException:  # a broker may need a moment for a new topic
            pass
        except ChangedRowsError as problem:
            said.append(str(problem))
        return said

    wait_for(is_refused, "the topic is refused")
    assert "partition 0 of the spout's source, topic 'words-" in said[0]
    assert "has topic id " in said[0]
    other.emitter.close()
