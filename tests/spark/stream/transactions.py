"""A transactional topology over sentences for queries, whose steps a test can let die: $CRASH is ``STEP|MARKER``.

``python -m tests.spark.stream.transactions FOLDER CONF`` runs it in a driver of its own, until all files are read.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter

from multilang import BasicBolt, BatchBolt
from multilang.store.sqlite import SqliteStore
from multilang.transactional import (
    Committer,
    MemoryTransactionalSpout,
    OpaqueMap,
    RedisBacking,
    SqliteBacking,
    TransactionalMap,
    TransactionalTopologyBuilder,
)
from multilang.transactional.names import CURRENT, RUNS
from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.spark.stream.drivers import settings_of


def at(step):
    """Kill the driver here, once; that may be another process."""
    name, _, marker = os.environ.get("CRASH", "").partition("|")
    if name == step:
        try:
            with open(marker, "x"):
                pass
        except FileExistsError:
            return
        os.kill(int(os.environ["DRIVER"]), signal.SIGKILL)


class Store(SqliteStore):
    """Rows in the file that the URL names."""

    def __init__(self, url, conf, setting):
        super().__init__(f"sqlite:{url.partition(':')[2]}", conf, setting)

    def compare_and_write(self, place, expected, changes, cleared=(), merged=None):
        table, _, key = CURRENT.partition("/")
        steps = ["begun"] * (RUNS in changes) + ["committed"] * (key.encode() in changes.get(table, {}))
        for step in steps:
            at(f"{step} before")
        done = super().compare_and_write(place, expected, changes, cleared, merged)
        for step in steps:
            at(f"{step} after")
        return done


def map_of(conf, name):
    """``test.maps``: the port of a Redis, for an OpaqueMap; or the path of a file, for a TransactionalMap."""
    place = conf["test.maps"]
    if isinstance(place, int):
        return OpaqueMap(RedisBacking(name, "127.0.0.1", place))
    return TransactionalMap(SqliteBacking(place, name))


class Split(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup):
        attempt, sentence = tup.values
        for word in sentence.split():
            self.emit([attempt, word])


class Partial(BatchBolt):
    output_fields = ["tx", "word", "count"]

    def initialize(self, conf, context, collector, id):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def finish_batch(self):
        self.emit_many([self.id, word, count] for word, count in self.counts.items())
        at("partial")


class Update(BatchBolt, Committer):
    output_fields = ["tx", "count"]
    name = "words"

    def initialize(self, conf, context, collector, id):
        self.map = map_of(conf, self.name)
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += tup["count"]

    def finish_batch(self):
        at(f"{self.name} before")
        self.map.update(self.id, self.counts)
        at(f"{self.name} after")
        self.map.close()
        if self.output_fields:
            self.emit([self.id, self.counts.total()])


class Total(Update):
    output_fields = None
    name = "total"

    def process(self, tup):
        self.counts["*"] += tup["count"]


STEPS = [f"{step} {when}" for step in ("begun", "words", "total", "committed") for when in ("before", "after")] + [
    "partial",
    "batch",
]

builder = TransactionalTopologyBuilder("sentences", "lines", MemoryTransactionalSpout({0: []}, ["sentence"], 1), 2)
builder.set_bolt("split", Split, 2).shuffle_grouping("lines")
builder.set_bolt("partial", Partial, 2).shuffle_grouping("split")
builder.set_bolt("words", Update, 2).fields_grouping("partial", "word")
builder.set_bolt("total", Total).global_grouping("words")
topology = builder.build()


def main() -> None:
    folder, conf = sys.argv[1], json.loads(sys.argv[2])
    os.environ["DRIVER"] = str(os.getpid())
    with session("local[2]", "killed", settings_of(folder)) as spark:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/lines")
        query = stream_topology(
            topology,
            {"lines": lines.withColumnRenamed("value", "sentence")},
            checkpoint=f"{folder}/checkpoint",
            conf=conf,
            each_batch=lambda *_: at("batch"),
            trigger={"availableNow": True},
        )
        query.wait()


if __name__ == "__main__":
    main()
