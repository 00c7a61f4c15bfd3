"""Transactional topologies with a mistake, in a module that a task's process imports without pytest."""

from __future__ import annotations

from multilang import BasicBolt, BatchBolt
from multilang.transactional import Committer, MemoryTransactionalSpout, TransactionalTopologyBuilder


class WithoutAttempt(BasicBolt):
    output_fields = ["word", "tx"]

    def process(self, tup):
        self.emit([tup["word"], tup[0]])


class OfAnotherAttempt(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup):
        self.emit([f"{tup[0].txid}:5", tup["word"]])


class ManyOfAnotherAttempt(BasicBolt):
    output_fields = ["tx", "word"]

    def process(self, tup):
        self.emit_many([[f"{tup[0].txid}:5", tup["word"]]])


class Commits(BatchBolt, Committer):
    committed = []

    def process(self, tup):
        pass

    def finish_batch(self):
        self.committed.append(self.id.txid)


def builder_of(bolt, parallelism=1):
    builder = TransactionalTopologyBuilder("wrong", "spout", MemoryTransactionalSpout({0: [["moon"]]}, ["word"], 1))
    builder.set_bolt("bolt", bolt).shuffle_grouping("spout")
    builder.set_bolt("commits", Commits, parallelism).shuffle_grouping("bolt")
    return builder
