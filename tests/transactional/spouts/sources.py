"""Each kind of source, with rows of one word that a test puts into it."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.transactional.spouts.files import OpaqueTransactionalFileSpout, TransactionalFileSpout
from multilang.transactional.spouts.kafka import OpaqueTransactionalKafkaSpout, TransactionalKafkaSpout
from multilang.transactional.spouts.redis import OpaqueTransactionalRedisSpout, TransactionalRedisSpout
from multilang.transactional.spouts.sqlite import OpaqueTransactionalSqliteSpout, TransactionalSqliteSpout
from tests.servers import LIMIT, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from multilang.transactional.spouts.source import SourceSpout

KINDS = ["files", "sqlite", "redis", "kafka"]
PARTITIONS = 3
_topics = itertools.count()


class Filled:
    """A source of ``PARTITIONS`` partitions; ``spout`` and ``opaque`` make spouts of it, whose rows are ``[word]``."""

    def add(self, partition: int, words: Sequence[str]) -> None:
        raise NotImplementedError

    def spout(self, take: int) -> SourceSpout:
        raise NotImplementedError

    def opaque(self, take: int) -> SourceSpout:
        raise NotImplementedError

    def close(self) -> None:
        pass


class FilledFiles(Filled):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for partition in range(PARTITIONS):
            (folder / f"{partition}.txt").touch()

    def add(self, partition: int, words: Sequence[str]) -> None:
        with (self.folder / f"{partition}.txt").open("a") as file:
            file.write("".join(f"{word}\n" for word in words))

    def spout(self, take: int) -> SourceSpout:
        return TransactionalFileSpout(self.folder, take, "*.txt", "word")

    def opaque(self, take: int) -> SourceSpout:
        return OpaqueTransactionalFileSpout(self.folder, take, "*.txt", "word")


class FilledSqlite(Filled):
    query = "SELECT id, word FROM words WHERE id > :after AND id <= :to AND id % :partitions = :partition ORDER BY id"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "words.sqlite"
        self.last = [partition - PARTITIONS for partition in range(PARTITIONS)]
        self._run("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)", [()])

    def add(self, partition: int, words: Sequence[str]) -> None:
        rows = []
        for word in words:
            self.last[partition] += PARTITIONS
            rows.append((self.last[partition], word))
        self._run("INSERT INTO words VALUES (?, ?)", rows)

    def _run(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        connection = sqlite3.connect(self.path)
        with connection:
            connection.executemany(statement, rows)
        connection.close()

    def spout(self, take: int) -> SourceSpout:
        return TransactionalSqliteSpout(self.path, self.query, ["id", "word"], take, PARTITIONS)

    def opaque(self, take: int) -> SourceSpout:
        return OpaqueTransactionalSqliteSpout(self.path, self.query, ["id", "word"], take, PARTITIONS)


class FilledRedis(Filled):
    def __init__(self, port: int) -> None:
        import redis

        self.port = port
        self.client = redis.Redis(port=port)
        self.names = [f"words-{partition}" for partition in range(PARTITIONS)]
        for name in self.names:
            self.client.xadd(name, {"word": "first"}, id="0-1")
            self.client.xdel(name, "0-1")

    def add(self, partition: int, words: Sequence[str]) -> None:
        with self.client.pipeline() as pipeline:
            for word in words:
                pipeline.xadd(self.names[partition], {"word": word, "other": "x"})
            pipeline.execute()

    def spout(self, take: int) -> SourceSpout:
        return TransactionalRedisSpout(self.names, ["word"], take, port=self.port)

    def opaque(self, take: int) -> SourceSpout:
        return OpaqueTransactionalRedisSpout(self.names, ["word"], take, port=self.port)

    def close(self) -> None:
        self.client.close()


class FilledKafka(Filled):
    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        self.address = address
        self.topic = f"words-{next(_topics)}"
        self.admin = AdminClient({"bootstrap.servers": address})
        self.admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result(LIMIT)
        self.producer = Producer({"bootstrap.servers": address})
        wait_for(lambda: self.partitions() == PARTITIONS, "the topic is known")

    def partitions(self) -> int:
        """Return how many partitions can be read."""
        found = self.admin.list_topics(self.topic, timeout=LIMIT).topics[self.topic]
        return sum(each.leader >= 0 for each in found.partitions.values())

    def add(self, partition: int, words: Sequence[str]) -> None:
        for word in words:
            self.producer.produce(self.topic, word, partition=partition)
        assert self.producer.flush(LIMIT) == 0

    def spout(self, take: int) -> SourceSpout:
        return TransactionalKafkaSpout(self.address, self.topic, batch_size=take)

    def opaque(self, take: int) -> SourceSpout:
        return OpaqueTransactionalKafkaSpout(self.address, self.topic, batch_size=take)


def filled(kind: str, request: pytest.FixtureRequest, folder: Path) -> Filled:
    if kind == "files":
        return FilledFiles(folder / "words")
    if kind == "sqlite":
        return FilledSqlite(folder)
    if kind == "redis":
        return FilledRedis(request.getfixturevalue("redis").port)
    return FilledKafka(request.getfixturevalue("kafka").address)
