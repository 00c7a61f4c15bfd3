"""Transactional topologies for these tests, at module level, where a task's process can import them."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter

from multilang import BasicBolt, BatchBolt
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionedTransactionalSpout,
    RedisBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)

SENTENCE = "the cow jumped over the moon an apple a day keeps the doctor away four score and seven years ago"
WORDS = SENTENCE.split(" ")
PARTITIONS = {p: [[WORDS[(7 * p + n) % len(WORDS)]] for n in range(60 + 25 * p)] for p in range(3)}
COUNTS = Counter(row[0] for rows in PARTITIONS.values() for row in rows)


class Database:
    """The database of committers, each task with its own rows, in the SQLite file of ``test.database``.

    It keeps a history.

    ``commits``: who committed which attempt, in order.
    """

    def __init__(self, conf):
        self.connection = sqlite3.connect(conf["test.database"], isolation_level=None, timeout=60)
        self.connection.execute("PRAGMA synchronous = OFF")  # killed are processes, not the machine
        for statement in (
            "BEGIN IMMEDIATE",  # which waits for others that begin at the same time
            "CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, value INT, txid INT, previous INT)",
            "CREATE TABLE IF NOT EXISTS commits (task INT, txid INT, attempt TEXT)",
            "COMMIT",
        ):
            self.connection.execute(statement)

    def commit(self, task, attempt, changes, opaque):
        """Add to the counts as the page has it, all at once."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO commits VALUES (?, ?, ?)", (task, attempt.txid, str(attempt)))
        for key, change in changes.items():
            value, txid, previous = self.get(key)
            if txid == attempt.txid:
                if not opaque:
                    continue
                value = previous
            row = (key, value + change, attempt.txid, value)
            execute("INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?)", row)
        execute("COMMIT")

    def get(self, key):
        row = self.connection.execute("SELECT value, txid, previous FROM counts WHERE key = ?", (key,)).fetchone()
        return row or (0, None, 0)

    def counts(self):
        return Counter(dict(self.connection.execute("SELECT key, value FROM counts WHERE value != 0")))

    def commits(self):
        return self.connection.execute("SELECT task, txid, attempt FROM commits ORDER BY rowid").fetchall()

    def close(self):
        self.connection.close()


class Tag(BasicBolt):
    """Tuple by tuple: each word, and its length."""

    output_fields = ["tx", "word", "length"]

    def process(self, tup):
        attempt, word = tup.values
        assert (attempt.txid, tup["tx"]) == (tup[0].txid, attempt)
        self.emit([attempt, word, len(word)])


class PartialCount(BatchBolt):
    """The words of a batch."""

    output_fields = ["tx", "word", "count"]

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def finish_batch(self):
        for word, count in self.counts.items():
            self.emit([self.id, word, count])


class UpdateCounts(BatchBolt, Committer):
    """Commits the counts of its words."""

    output_fields = ["tx", "count"]
    opaque = False
    _databases = {}

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()
        self.task = context.task
        path = conf["test.database"]
        key = (os.getpid(), path)
        if key not in self._databases:
            self._databases.clear()
            self._databases[key] = Database(conf)
        self.database = self._databases[key]

    def process(self, tup):
        self.counts[tup["word"]] += tup["count"]

    def finish_batch(self):
        self.database.commit(self.task, self.id, self.counts, self.opaque)
        self.emit([self.id, sum(self.counts.values())])


class OpaqueUpdateCounts(UpdateCounts):
    opaque = True


class Total(UpdateCounts):
    """A committer behind committers: all words of all transactions, under a key that is no word."""

    output_fields = None

    def process(self, tup):
        self.counts["*"] += tup["count"]

    def finish_batch(self):
        self.database.commit(self.task, self.id, self.counts, self.opaque)


class OpaqueTotal(Total):
    opaque = True


def word(number):
    """The ``number``-th word of each partition of Words."""
    return WORDS[number * 7 % len(WORDS)]


class Words(PartitionedTransactionalSpout):
    """``test.words`` in each of three partitions, ``test.take`` of each in a batch."""

    output_fields = ["tx", "word"]

    def get_coordinator(self, conf, context):
        return WordsCoordinator(conf["test.words"])

    def get_emitter(self, conf, context):
        return WordsEmitter(conf["test.words"], conf["test.take"])


class WordsCoordinator(PartitionedCoordinator):
    def __init__(self, words):
        self.words = words

    def num_partitions(self):
        return 3

    def exhausted(self, metadata):
        return all(metadata.get(partition, [0, 0])[1] == self.words for partition in range(3))


class WordsEmitter(PartitionedEmitter):
    def __init__(self, words, take):
        self.words = words
        self.take = take

    def emit_partition_batch_new(self, attempt, collector, partition, last_metadata):
        start = last_metadata[1] if last_metadata else 0
        metadata = [start, min(start + self.take, self.words)]
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        for number in range(*metadata):
            collector.emit([attempt, word(number)])


def counts_of(words):
    """Return the counts of so many words in each of the partitions of Words."""
    return Counter(word(number) for number in range(words) for _ in range(3))


class UpdateInRedis(UpdateCounts):
    """The same, in a map in Redis, ``test.redis.port``."""

    opened = {}

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()
        port = conf["test.redis.port"]
        if port not in self.opened:
            self.opened[port] = TransactionalMap(RedisBacking("words", "127.0.0.1", port))
        self.map = self.opened[port]

    def finish_batch(self):
        self.map.update(self.id, self.counts)
        self.emit([self.id, sum(self.counts.values())])


class TotalInRedis(UpdateInRedis):
    output_fields = None

    def process(self, tup):
        self.counts["*"] += tup["count"]

    def finish_batch(self):
        self.map.update(self.id, self.counts)


def build(spout, update, total, name="words", conf=None, partial=PartialCount):
    builder = TransactionalTopologyBuilder(name, "spout", spout, parallelism=2)
    builder.set_bolt("tag", Tag, 2).shuffle_grouping("spout")
    builder.set_bolt("partial", partial, 2).shuffle_grouping("tag")
    builder.set_bolt("update", update, 2).fields_grouping("partial", "word")
    builder.set_committer_bolt("total", total).global_grouping("update")
    return builder.build(conf=conf)


topology = build(MemoryTransactionalSpout(PARTITIONS, ["word"], 10), UpdateCounts, Total)
opaque = build(
    OpaqueMemoryTransactionalSpout(PARTITIONS, ["word"], 10), OpaqueUpdateCounts, OpaqueTotal, "opaque words"
)
many = build(Words, UpdateCounts, Total, "many words")
with_servers = build(Words, UpdateInRedis, TotalInRedis, "with servers")
