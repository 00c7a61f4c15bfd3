"""Generated values from a spout through a bolt, by a fields grouping, to one that says what came where."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple
from tests.values import generated

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS = 800
SINKS = 5
SEED = "test.seed"


def values(seed: int) -> list[Any]:
    """Return the values that are sent with a seed: values of every kind, and difficult ones."""
    rng = Random(seed)
    hard = ["\x7f\n", 12345678901234568.0, -0.0, 2**63 - 1, {"\x7f\\": [1e16, 1.0, 1]}, True, 1, 1.0, None, ""]
    return hard + [generated.value(rng) for _ in range(ROWS)]


class Values(Spout):
    """Each value, with its number."""

    output_fields = ["n", "value"]

    def initialize(self, conf: Mapping[str, Any], context: Context) -> None:
        self.left = list(enumerate(values(conf[SEED])))[::-1]

    def next_tuple(self) -> None:
        if self.left:
            self.emit(self.left.pop())

    def exhausted(self) -> bool:
        return not self.left


class Pass(BasicBolt):
    """The same once more."""

    output_fields = ["n", "value"]

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)


class Sink(BasicBolt):
    """Emits what came, and to which task of this component it came."""

    output_fields = ["n", "right", "index"]

    def initialize(self, conf: Mapping[str, Any], context: Context) -> None:
        self.values = values(conf[SEED])

    def process(self, tup: Tuple) -> None:
        n, value = tup.values
        self.emit([n, generated.same(value, self.values[n]), self.context.task_index])


builder = TopologyBuilder()
builder.set_spout("values", Values)
builder.set_bolt("pass", Pass, parallelism=2).shuffle_grouping("values")
sink = builder.set_bolt("sink", Sink, parallelism=SINKS)
sink.fields_grouping("pass", "value")
topology = builder.build("values")
