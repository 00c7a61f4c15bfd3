"""``python -m benchmarks.streams``: a running word count by streams, tuple by tuple, and by bytewax, per CPU-second.

All run in one process; ours with acks. Bytewax is measured if ``--bytewax`` names a Python that has it (0.21); it needs no
other connection with this project.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from multilang import BasicBolt, LocalCluster, TopologyBuilder
from multilang.connectors import FromIterable
from multilang.streams import StreamBuilder

SENTENCE = "the cow jumped over the moon and word{} ran away with spoon number{}"
BYTEWAX = """
import resource, sys
import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main
total = int(sys.argv[1])
sentences = [{sentence!r}.format(n % 500, n % 50) for n in range(total)]
flow = Dataflow("words")
words = op.flat_map("split", op.input("in", flow, TestingSource(sentences, batch_size=1000)), str.split)
counts = op.stateful_map("count", op.key_on("key", words, str), lambda n, _: ((n or 0) + 1,) * 2)
op.output("out", op.filter("none", counts, lambda _: False), TestingSink([]))
before = resource.getrusage(resource.RUSAGE_SELF)
run_main(flow)
after = resource.getrusage(resource.RUSAGE_SELF)
print(total / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
"""


class Split(BasicBolt):
    """Emits the words of a sentence."""

    output_fields = ["word"]

    def process(self, tup):
        for word in tup["value"].split():
            self.emit([word])


class Count(BasicBolt):
    """Counts words."""

    output_fields = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup["word"]
        self.counts[word] = count = self.counts.get(word, 0) + 1
        self.emit([word, count])


def by_streams(sentences):
    s = StreamBuilder()
    s.source(sentences).flat_map(str.split).key_by(str).count()
    return s.build("streams")


def by_tuples(sentences):
    builder = TopologyBuilder()
    builder.set_spout("source", FromIterable(sentences))
    builder.set_bolt("split", Split).shuffle_grouping("source")
    builder.set_bolt("count", Count).fields_grouping("split", "word")
    return builder.build("tuples")


def rate(topology, total):
    """Return the sentences per CPU-second of a run in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    with LocalCluster("inprocess", {"topology.max.spout.pending": 2000}, seed=1) as cluster:
        run = cluster.submit(topology)
        run.wait()
        assert run.counters["source"].acked == total
    after = resource.getrusage(resource.RUSAGE_SELF)
    return total / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def bytewax_rate(python, total):
    """Return the sentences per CPU-second of bytewax."""
    command = [python, "-c", BYTEWAX.format(sentence=SENTENCE), str(total)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--sentences", type=int, default=40_000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--bytewax", metavar="PYTHON", help="a Python with bytewax 0.21")
    given = parser.parse_args()
    sentences = [SENTENCE.format(n % 500, n % 50) for n in range(given.sentences)]
    for _ in range(given.rounds):
        ours = rate(by_streams(sentences), given.sentences)
        others = {"tuple by tuple": rate(by_tuples(sentences), given.sentences)}
        if given.bytewax:
            others["bytewax"] = bytewax_rate(given.bytewax, given.sentences)
        against = ", ".join(f"{ours / other:.2f} of {name} ({other:,.0f})" for name, other in others.items())
        sys.stdout.write(f"streams: {ours:,.0f} sentences per CPU-second, {against}\n")


if __name__ == "__main__":
    main()
