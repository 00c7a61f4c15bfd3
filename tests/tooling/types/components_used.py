"""Components and topologies as a user with mypy --strict writes them; checked, not run, by test_types.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import assert_type

from multilang import (
    BasicBolt,
    BatchBolt,
    Bolt,
    KeyValueState,
    LocalCluster,
    ReliableSpout,
    StatefulBasicBolt,
    Topology,
    TopologyBuilder,
    Tuple,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang import Context
    from multilang.coordination import BatchCollector


class Words(ReliableSpout):
    output_fields = ["word"]

    def next_tuple(self) -> None:
        words: list[str] = ["ant"]
        self.emit(words, 1)
        self.emit(("bee",), tup_id="2")
        self.emit_many([["cat"], ("dog",)])
        assert_type(self.emit(words, need_task_ids=True), list[int])
        assert_type(self.emit(words), list[int] | None)


class Split(BasicBolt):
    output_fields = ["word"]

    def process(self, tup: Tuple) -> None:
        assert_type(tup.component, str)
        assert_type(self.emit([tup[0]], anchors=[], need_task_ids=True), list[int])
        self.emit_many([word] for word in tup["line"].split())


class Careful(Bolt):
    def process(self, tup: Tuple) -> None:
        assert_type(self.emit([1], "counts", [tup], need_task_ids=True), list[int])
        self.ack(tup)


class Count(StatefulBasicBolt):
    output_fields = ["word", "count"]

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.counts = state

    def process(self, tup: Tuple) -> None:
        word: str = tup["word"]
        assert_type(self.counts.get(word), int | None)
        assert_type(self.counts.get(word, 0), int)
        assert_type(self.counts.get(word, "never"), int | str)
        assert_type(self.counts.delete(word), int | None)
        self.counts.put(word, self.counts.get(word, 0) + 1)
        self.emit([word, self.counts.get(word)])


class Total(BatchBolt):
    output_fields = ["id", "total"]

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        self.total = 0

    def finish_batch(self) -> None:
        assert_type(self.emit([self.id, self.total], need_task_ids=True), list[int])


def run(topology: Topology, words: Sequence[str]) -> int:
    with LocalCluster() as cluster:
        topo = cluster.submit(topology)
        topo.wait()
        topo.wait("drained", timeout=10)
        topo.wait(until=lambda it: len(it.captured("split")) >= len(words))
        return len(topo.captured("split"))


def build() -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("count", Count).fields_grouping("words", "word")
    return builder.build("words")
