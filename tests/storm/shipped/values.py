"""Values that are hard on JSON, on Java and on what carries tuples between workers, sent to two tasks in each way."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from multilang import BasicBolt, Bolt, Context, ReliableSpout, Stream, TopologyBuilder, Tuple

MIB = 1 << 20
VALUES: list[Any] = [
    *(0, 1, -1, 2**63 - 1, -(2**63)),  # what is beyond is refused where it is emitted: older Storms die of it
    *(sign * (1 << bits) + off for bits in (31, 32, 53, 62) for sign in (1, -1) for off in (-1, 0, 1)),
    *(round(math.pi, digits) for digits in range(16)),  # floats of every length
    *(round(-math.e * 10**9, digits) for digits in range(8)),
    *(10.0**power for power in range(-320, 309, 16)),
    *(
        0.0,
        -0.0,
        0.1 + 0.2,
        1 / 3,
        -1 / 3,
        1e16,
        123456789012345678.0,
        12345678901234568.0,  # a text that Storm's BigDecimal would write without a fraction
        -98765432109876544.0,
        1.7976931348623157e308,
        5e-324,
        2.2250738585072014e-308,
    ),
    *(None, True, False, "", " ", "1", "1.5", "null"),
    *("\0", "\n", "end", "\nend\n", '"', "\\", "/", "</", "\x7f", "\u2028\u2029", "\ufeff", "\uffff"),
    *("\x7f\n", '\x7f"', "\\\x7f", {"\n\x7f": "\x7f\t"}, [[12345678901234568.0, "1.2345678901234568e+16"]]),
    *("Grüße", "Ελληνικά", "日本語", "עברית", "é", "e\u0301", "🐍", "👩\u200d👩\u200d👧", "𝔘𝔫𝔦"),
    *([], {}, [[]], [{}], {"": None}, [1, [2, [3, [4, [0.1 + 0.2]]]]], {"a": {"b": {"c": [1 / 3, None, True]}}}),
    {"ключ": ["значение", 2**63 - 1, -(2**63), -0.0], "1": 1, "list": [[], {}, [None]]},
    [[n, str(n), n / 3] for n in range(100)],
    "x" * MIB,
    "ж🐍" * (MIB // 6),
    '\n"\\' * (MIB // 3),
    list(range(MIB // 8)),
    {f"key {n}": n / 7 for n in range(MIB // 32)},
]


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same type all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one.hex() == other.hex()
    return bool(one == other)


class Values(ReliableSpout):
    """Each value to every sink, by the stream and directly."""

    output_streams = {"default": ["n", "value"], "direct": Stream(["n", "value"], direct=True)}
    max_replays = None

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.n = 0

    def next_tuple(self) -> None:
        if self.n < len(VALUES):
            self.emit([self.n, VALUES[self.n]], tup_id=self.n)
            for task in self.context.tasks("sink"):
                self.emit([self.n, VALUES[self.n]], tup_id=f"{self.n} to {task}", stream="direct", direct_task=task)
            self.n += 1


class Echo(BasicBolt):
    """The same once more, from a bolt."""

    output_streams = {"default": ["n", "value"], "direct": Stream(["n", "value"], direct=True)}

    def process(self, tup: Tuple) -> None:
        self.emit(tup.values)
        for task in self.context.tasks("sink"):
            self.emit(tup.values, stream="direct", direct_task=task)


class Sink(Bolt):
    """Writes down what came by which way, and whether it is what was sent."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.file = open(
            os.path.join(conf["test.folder"], f"sink-{context.task_index}-{os.getppid()}"), "a", buffering=1
        )

    def process(self, tup: Tuple) -> None:
        n, value = tup.values
        right = same(value, VALUES[n])
        what = None if right else f"{value!r:.80} for {VALUES[n]!r:.80}"
        self.file.write(json.dumps([tup.component, tup.stream, n, what]) + "\n")
        self.ack(tup)


builder = TopologyBuilder()
builder.set_spout("values", Values)
builder.set_bolt("echo", Echo, parallelism=2).shuffle_grouping("values")
sink = builder.set_bolt("sink", Sink, parallelism=2)
for component in ("values", "echo"):
    sink.all_grouping(component).direct_grouping(component, stream="direct")
topology = builder.build(
    "values",
    conf={
        "topology.workers": 2,
        "topology.max.spout.pending": 20,
        "topology.message.timeout.secs": 120,
        "topology.component.resources.onheap.memory.mb": 48.0,  # the largest values are there many times at once
    },
)
