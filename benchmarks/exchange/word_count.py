"""The README's word count, whose spout measures: sentences per second, CPU-seconds, and the time until each ack.

It is one file without imports of the benchmarks, since it also goes to Storm's workers. The spout emits at once what it
has, or ``bench.rate`` sentences a second. After a third of the sentences it begins to measure, and after the last ack it
writes what it found to ``bench.result``. The CPU time is that of its parent and all of the parent's children: of a
worker of Storm's and its components, or of the embedded cluster and its components.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from multilang import BasicBolt, Context, ReliableSpout, TopologyBuilder, Tuple, Tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang import Topology

TEXT = (
    "storm makes it easy to reliably process unbounded streams of data doing for realtime processing what batch did for "
    "processing a tuple is acked once every tuple in its tree has been processed and failed when one of them is late"
)
WORDS = TEXT.split()
LINES = [" ".join(WORDS[(n * 7 + i * 3) % len(WORDS)] for i in range(10)) for n in range(len(WORDS))]


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Return the CPU time of a process, and of its children, which live."""
    return cpu_of(pid), sum(map(cpu_of, children(pid)))


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    found: set[int] = set()
    for each in Path(f"/proc/{pid}/task").iterdir():
        found.update(map(int, (each / "children").read_text().split()))
    return sorted(found)


def quantile(sorted_values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return sorted_values[min(int(share * len(sorted_values)), len(sorted_values) - 1)]


class Sentences(ReliableSpout):
    output_fields = ["sentence"]
    emits_again = True  # fail counts, and goes on

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.left = self.total = conf["bench.sentences"]
        self.rate = conf["bench.rate"]
        self.result = Path(conf["bench.result"])
        self.sent: dict[int, float] = {}
        self.latencies: list[float] = []
        self.done = self.failed = 0
        self.began: tuple[float, tuple[float, float], int] | None = None
        self.due = 0.0

    def next_tuple(self) -> None:
        if not self.left:
            return
        if self.rate:
            now = time.perf_counter()
            if now < self.due:
                return
            self.due = max(self.due + 1 / self.rate, now - 1)
        self.left -= 1
        self.sent[self.left] = time.perf_counter()
        self.emit([LINES[self.left % len(LINES)]], tup_id=self.left)

    def acked(self, tup_id: int) -> None:
        now = time.perf_counter()
        self.done += 1
        sent = self.sent.pop(tup_id)
        if self.began is not None:
            self.latencies.append(now - sent)
        elif self.done >= self.total // 3:
            self.began = now, cpu_seconds(os.getppid()), self.done
        self.tell_at_end(now)

    def fail(self, tup_id: int) -> None:
        self.failed += 1  # a run with a failure is refused
        super().fail(tup_id)

    def tell_at_end(self, now: float) -> None:
        """Write the result when nothing is under way any more."""
        if self.done < self.total or self.began is None:
            return
        wall, sentences = now - self.began[0], self.done - self.began[2]
        parent, parts = (now - before for now, before in zip(cpu_seconds(os.getppid()), self.began[1], strict=True))
        found = sorted(self.latencies)
        said = {
            "rate": sentences / wall,
            "cpu_us": (parent + parts) / sentences * 1e6,
            "parent_us": parent / sentences * 1e6,
            "p50_ms": quantile(found, 0.5) * 1e3,
            "p99_ms": quantile(found, 0.99) * 1e3,
            "failed": self.failed,
        }
        written = self.result.with_suffix(".part")
        written.write_text(json.dumps(said))
        written.rename(self.result)

    def exhausted(self) -> bool:
        return not self.left


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        for word in tup["sentence"].split():
            self.emit([word])


class Count(BasicBolt):
    output_fields = ["word", "count"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup["word"]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])


class SplitMany(Split):
    def process_many(self, tups: Tuples) -> None:
        self.emit_many([[word] for sentence in tups.column("sentence") for word in sentence.split()])


class CountMany(Count):
    def process_many(self, tups: Tuples) -> None:
        counts = self.counts
        for word in tups.column("word"):
            counts[word] = counts.get(word, 0) + 1
        self.emit_many([[word, counts[word]] for word in tups.column("word")])


def built(split: type[Split], count: type[Count]) -> Topology:
    """Return the word count with these bolts."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    builder.set_bolt("split", split).shuffle_grouping("sentences")
    builder.set_bolt("count", count, parallelism=2).fields_grouping("split", "word")
    conf = {"topology.max.spout.pending": 2000, "topology.message.timeout.secs": 120}
    return builder.build("word-count", conf=conf)


class Parse(BasicBolt):
    output_fields = ["first", "last", "words"]

    def process(self, tup: Tuple) -> None:
        self.emit(parsed(tup["sentence"]))


class Enrich(BasicBolt):
    output_fields = ["key", "words"]

    def process(self, tup: Tuple) -> None:
        self.emit([enriched(tup["first"], tup["last"]), tup["words"]])


class Tally(BasicBolt):
    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.words: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        self.words[tup["key"]] = self.words.get(tup["key"], 0) + tup["words"]


class ByHand(Tally):
    """The three in one."""

    def process(self, tup: Tuple) -> None:
        first, last, words = parsed(tup["sentence"])
        key = enriched(first, last)
        self.words[key] = self.words.get(key, 0) + words


def parsed(sentence: str) -> list[Any]:
    """Return the first and the last word of a sentence, and the number of its words."""
    words = sentence.split()
    return [words[0], words[-1], len(words)]


def enriched(first: str, last: str) -> str:
    """Return the key of a sentence with these words."""
    return f"{first.upper()}-{last.lower()}"


def built_of(*bolts: type[BasicBolt]) -> Topology:
    """Return these bolts, shuffled, one behind the other."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences)
    source = "sentences"
    for bolt in bolts:
        builder.set_bolt(bolt.__name__.lower(), bolt).shuffle_grouping(source)
        source = bolt.__name__.lower()
    conf = {"topology.max.spout.pending": 2000, "topology.message.timeout.secs": 120}
    return builder.build("word-count", conf=conf)


topology = built(Split, Count)
three = built_of(Parse, Enrich, Tally)
one = built_of(ByHand)
many = built(SplitMany, CountMany)
