"""A component's values arrive as they were emitted: through Storm's own parser, serialiser and Kryo, and once more.

A sample by default, a million values with MULTILANG_SOAK=full. MULTILANG_SEED replays a run; a failure names its seed.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from multilang import ShellSpout, TopologyBuilder
from multilang.protocol import Ack, Tuple
from multilang.protocol.codec import dumps, normalize
from multilang.protocol.fast import fast_emit
from multilang.shipping import storm_conf
from multilang.topology.javahash import task_index
from tests.protocol.wire import received, shaken_child
from tests.soak import SOAK, chosen
from tests.values import generated
from tests.values.generated import same
from tests.values.storm import TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from multilang.protocol import ChildConnection
    from tests.values.storm import Storm

VALUES = 1_000_000 if SOAK else 20_000
SEED = int(os.environ.get("MULTILANG_SEED") or Random().getrandbits(32))
WIDEST = 5
AT_ONCE = 2000  # tuples between two looks at what came of them


class Wire:
    """A component's end of the pipe to Storm's classes, with every way that it has to say something."""

    def __init__(self, storm: Storm) -> None:
        self._storm = storm
        streams = {f"of {n}": [f"f{i}" for i in range(n)] for n in range(WIDEST + 1)}
        self.child: ChildConnection = shaken_child(**{"stream->outputfields": streams, "streams": list(streams)})
        self._anchor = received(self.child)
        self._fast = fast_emit(self.child, lambda *_: pytest.fail("an emit that is not plain"))

    def ask(self, answers: int) -> list[Any]:
        """So many answers to what was said."""
        events: list[Any] = []

        def hear(data: bytes) -> bool:
            events.extend(self.child.receive_data(data))
            return len(events) >= answers

        self._storm.ask(self.child.data_to_send(), hear)
        assert len(events) == answers
        return events

    def there_and_back(self, rows: Sequence[list[Any]]) -> list[list[Tuple]]:
        """Return how each row arrives, in the same worker and in another one."""
        child = self.child
        ways: list[Callable[[list[Any], str], None]] = [
            child.emit,
            lambda values, stream: child.emit_many([values, values], stream),
            lambda values, stream: self._fast(values, stream, [self._anchor]),
            lambda values, stream: child.emit_from_spout(values, values[0], stream),
        ]
        answers = []
        for i, values in enumerate(rows):
            way = i % 4 if values and type(values[0]) in (str, int, float) else i % 3
            ways[way](values, f"of {len(values)}")
            answers.append((2, 4, 2, 3)[way])
        events = iter(self.ask(sum(answers)))
        found = []
        for values, n in zip(rows, answers, strict=True):
            if n == 3:
                ack = next(events)
                assert isinstance(ack, Ack)
                assert same(ack.id, values[0]), f"the message id {values[0]!a} comes back as {ack.id!a}"
                n = 2
            found.append([next(events) for _ in range(n)])
            assert [tup.stream for tup in found[-1]] == ["near", "far"] * (n // 2)
        return found

    def check(self, rows: Sequence[list[Any]]) -> None:
        """Check that each row arrives unchanged at the expected task, and once more."""
        wrong = []
        arrived = []
        for values, ways in zip(rows, self.there_and_back(rows), strict=True):
            place = task_index(values, TASKS)
            for way in ways:
                if not same(way.values, values):
                    wrong.append((values, f"arrives {way.stream} as {way.values!a:.200}"))
                if way.task != place:
                    wrong.append((values, f"is placed elsewhere ({way.stream})"))
            if not same(normalize(values), values):
                wrong.append((values, f"arrives in process as {normalize(values)!a:.200}"))
            arrived.append(ways[-1].values)
        if wrong:
            values, how = min(wrong, key=lambda each: len(ascii(each[0])))
            pytest.fail(f"{len(wrong)} of {len(rows)} differ (MULTILANG_SEED={SEED}); the shortest: {values!a} {how}")
        for values, ways in zip(rows, self.there_and_back(arrived), strict=True):
            assert all(same(way.values, values) for way in ways), f"changes on its second way: {values!a}"


@pytest.fixture
def wire(storm: Storm) -> Wire:
    return Wire(storm)


@pytest.mark.soak
def test_generated_values_arrive_as_they_were_emitted(wire: Wire) -> None:
    rng = Random(SEED)
    left = VALUES
    while left > 0:
        rows = [[generated.value(rng) for _ in range(rng.randrange(WIDEST + 1))] for _ in range(AT_ONCE)]
        wire.check(rows)
        left -= generated.count(rows)


@pytest.mark.parametrize("escape", chosen(["", "\n", '"', "\\", "\\u007f"], "", "\\"))
def test_every_code_point_arrives_alone_in_texts_and_in_keys(wire: Wire, escape: str) -> None:
    every = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    parts = ["".join(every[i : i + 300]) for i in range(0, len(every), 300)]
    wire.check([[escape + part, {part + escape: escape}] for part in parts])
    wire.check([[escape + point, point + escape, {escape + point: point}] for point in every[:0x300]])


def test_long_values_arrive(wire: Wire) -> None:
    long = 1 << (20 if SOAK else 16)
    wire.check([["\x7f\n" * long], ["\U0001f40d\x7f" * long], ["\\" * long], [list(range(-long, long))]])
    wire.check([[[1.2345678901234568e16, "e+16"] * (long // 8)], [{f"\x7f\n{n}": n / 7 for n in range(long // 8)}]])


def test_what_logs_errors_and_metrics_say_arrives(wire: Wire) -> None:
    rng = Random(SEED)
    texts = [generated.text(rng) for _ in range(1000)]
    params = [generated.value(rng) for _ in range(1000)]
    for text, value in zip(texts, params, strict=True):
        wire.child.log(text)
        wire.child.error(text)
        wire.child.metrics(text, value)
    events = iter(wire.ask(3 * len(texts)))
    for text, value in zip(texts, params, strict=True):
        log, error, metric = next(events), next(events), next(events)
        assert (log.stream, log.values) == ("log", [text])
        assert (error.stream, error.values) == ("error", [text])
        assert metric.stream == text
        assert same(metric.values, [value])


def test_a_conf_arrives(wire: Wire) -> None:
    """As Nimbus and the workers take it: parsed by the same json-smart."""
    rng = Random(SEED)
    conf = {f"test.{generated.text(rng)}": generated.value(rng) for _ in range(2000)}
    builder = TopologyBuilder()
    builder.set_spout("spout", ShellSpout(["true"]))
    whole = storm_conf(builder.build("conf", conf=conf))
    wire.child.write(f'{{"command":"metrics","name":"conf","params":{dumps(whole)}}}\nend\n')
    (arrived,) = wire.ask(1)
    assert same(arrived.values, [whole])
