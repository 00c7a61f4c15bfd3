"""Numbers of an RDD that a Spark driver serves: at least once, and in transactions, whose batches are the same again or not."""

from __future__ import annotations

import os
import time
from functools import cache

from multilang import BasicBolt, BatchBolt, TopologyBuilder
from multilang.transactional import Committer, OpaqueMap, SqliteBacking, TransactionalMap, TransactionalTopologyBuilder
from spark_bridge import OpaqueTransactionalPartitionSpout, PartitionSpout, TransactionalPartitionSpout

PAUSE = 0.005  # seconds for each number: something is under way whenever something dies
TENS = 10  # numbers that are counted together
MAPS = {"transactional": TransactionalMap, "opaque": OpaqueMap}


class Write(BasicBolt):
    """Writes each number on a line, once it can't be lost any more."""

    def initialize(self, conf, context):
        path = os.path.join(conf["test.folder"], f"written-{context.task_index}-{os.getpid()}")
        self.file = open(path, "a", buffering=1)

    def process(self, tup):
        time.sleep(PAUSE)
        self.file.write(f"{tup['n']}\n")


class Tens(BasicBolt):
    output_fields = ["tx", "key"]

    def process(self, tup):
        time.sleep(PAUSE)
        self.emit([tup[0], tup["n"] // TENS])


@cache
def map_of(kind, folder):
    return MAPS[kind](SqliteBacking(os.path.join(folder, "counts.sqlite")))


class Count(BatchBolt, Committer):
    def __init__(self, kind):
        self.kind = kind

    def initialize(self, conf, context, collector, id):
        self.map = map_of(self.kind, conf["test.folder"])
        self.all = f"all-{context.task_index}"
        self.batch = {}

    def process(self, tup):
        for key in (tup["key"], self.all):
            self.batch[key] = self.batch.get(key, 0) + 1

    def finish_batch(self):
        self.map.update(self.id, self.batch)


def at_least_once():
    builder = TopologyBuilder()
    spout = PartitionSpout(fields=["n"])
    spout.save_secs = 0.2
    builder.set_spout("rows", spout, parallelism=2)
    builder.set_bolt("write", Write, parallelism=2).shuffle_grouping("rows")
    return builder.build("plain", conf={"topology.max.spout.pending": 200, "topology.message.timeout.secs": 5})


def in_transactions(kind, spout):
    builder = TransactionalTopologyBuilder(kind, "rows", spout(batch_size=20, fields=["n"]), parallelism=2)
    builder.set_bolt("tens", Tens, parallelism=2).shuffle_grouping("rows")
    builder.set_bolt("count", Count(kind), parallelism=2).fields_grouping("tens", "key")
    return builder.build(conf={"topology.max.spout.pending": 3, "topology.message.timeout.secs": 5})


plain = at_least_once()
transactional = in_transactions("transactional", TransactionalPartitionSpout)
opaque = in_transactions("opaque", OpaqueTransactionalPartitionSpout)
