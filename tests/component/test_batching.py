"""Bolts that work on groups of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.component.harness import Starter

from multilang import LingeringBolt
from multilang.child.process import UNUSABLE
from multilang.component.errors import ConfigError
from multilang.protocol.messages import Emit
from multilang.testing import run_bolt

FORKS = True

TICKS = {"topology.tick.tuple.freq.secs": 1}
SUMS = """
class Part(BatchingBolt):
    output_fields = ["value"]
    {settings}
    def group_key(self, tup):
        return tup[0]["key"]
    def process_batch(self, key, tups):
        if key == "bad":
            raise {error}
        self.emit([[key, [tup[0]["n"] for tup in tups]]])
"""


def sums(settings: str = "", error: str = "ValueError('bad batch')") -> str:
    return SUMS.format(settings=settings.replace("; ", "\n    "), error=error)


def test_groups_by_key_are_handed_over_at_a_tick_and_acked(start: Starter) -> None:
    child = start(sums(), TICKS).started()
    ids = [child.give({"key": "ab"[n % 2], "n": n}) for n in range(5)]
    child.beat()
    assert (child.emitted, child.acked) == ([], [])
    tick = child.tick()
    child.until(lambda: tick in child.acked)
    assert child.emitted == [[["a", [0, 2, 4]]], [["b", [1, 3]]]]
    assert [list(emit.anchors) for emit in child.all(Emit)] == [[ids[0], ids[2], ids[4]], [ids[1], ids[3]]]
    assert child.acked == [ids[0], ids[2], ids[4], ids[1], ids[3], tick]


def test_a_group_of_batch_size_is_handed_over_at_once(start: Starter) -> None:
    child = start(sums("batch_size = 3"), TICKS)
    for n in range(7):
        child.give({"key": "a", "n": n})
    child.until(lambda: len(child.acked) == 6)
    child.beat()
    assert child.emitted == [[["a", [0, 1, 2]]], [["a", [3, 4, 5]]]]


def test_without_a_size_ticks_alone_decide(start: Starter) -> None:
    child = start(sums("batch_size = None; ticks_between_batches = 2"), TICKS)
    for n in range(3000):
        child.give({"key": "a", "n": n})
    first = child.tick()
    child.until(lambda: first in child.acked)
    assert child.emitted == []
    second = child.tick()
    child.until(lambda: second in child.acked)
    assert child.emitted == [[["a", list(range(3000))]]]
    assert len(child.acked) == 3002


@pytest.mark.parametrize(
    ("error", "reports"),
    [("ValueError('x')", 1), ("FailedException('x')", 0), ("ReportedFailedException('x')", 1)],
)
def test_a_group_that_raises_fails_and_the_others_go_on(start: Starter, error: str, reports: int) -> None:
    child = start(sums(error=error), TICKS)
    ids = {key: [child.give({"key": key, "n": n}) for n in range(2)] for key in ("a", "bad", "c")}
    tick = child.tick()
    child.until(lambda: tick in child.acked)
    assert child.failed == ids["bad"]
    assert child.acked == [*ids["a"], *ids["c"], tick]
    assert child.emitted == [[["a", [0, 1]]], [["c", [0, 1]]]]
    assert len(child.errors) == reports
    if reports:
        assert "in a batch of 2" in child.errors[0]
        assert ids["bad"][0] in child.errors[0]


def test_process_batch_fails_only_what_it_says_and_anchors_to_the_rest(start: Starter) -> None:
    child = start("""
        class Part(BatchingBolt):
            output_fields = ["value"]
            batch_size = 3
            def process_batch(self, key, tups):
                self.fail(tups[1])
                self.emit(["rest"])
                self.emit(["one"], anchors=[tups[0]])
                self.emit(["none"], anchors=[])
                self.ack(tups[0])
                self.emit_many([["last"]])
        """, TICKS)  # fmt: skip
    one, two, three = (child.give(n) for n in range(3))
    child.until(lambda: len(child.acked) == 2)
    assert child.failed == [two]
    assert sorted(child.acked) == sorted([one, three])
    assert [(emit.values[0], list(emit.anchors)) for emit in child.all(Emit)] == [
        ("rest", [one, three]),
        ("one", [one]),
        ("none", []),
        ("last", [three]),
    ]


def test_a_key_that_cannot_be_had_fails_its_tuple_alone(start: Starter) -> None:
    child = start(sums("batch_size = 2"), TICKS)
    first = child.give({"key": "a", "n": 1})
    bad = [child.give({"no": "key"}), child.give({"key": ["unhashable"], "n": 1})]
    last = child.give({"key": "a", "n": 2})
    child.until(lambda: len(child.acked) == 2)
    assert (child.failed, child.acked) == (bad, [first, last])
    assert len(child.errors) == 2


def test_an_emit_that_cannot_be_sent_fails_the_group(start: Starter) -> None:
    child = start("""
        class Part(BatchingBolt):
            output_fields = ["value"]
            batch_size = 2
            def process_batch(self, key, tups):
                self.emit([float("nan")])
        """, TICKS)  # fmt: skip
    ids = [child.give(1), child.give(2)]
    child.until(lambda: len(child.failed) == 2)
    assert child.failed == ids
    assert child.acked == []


def test_what_is_collected_at_the_end_is_neither_acked_nor_failed(start: Starter) -> None:
    child = start(sums(), TICKS).started()
    child.give({"key": "a", "n": 1})
    child.close_input()
    child.ended(0)
    assert (child.acked, child.failed) == ([], [])


@pytest.mark.parametrize(
    ("settings", "conf", "error"),
    [
        ("pass", {}, "topology.tick.tuple.freq.secs"),
        ("batch_size = 0", TICKS, "Part.batch_size is 0; use a number from 1, or None"),
        ("batch_size = '9'", TICKS, "Part.batch_size is '9'; use a number from 1, or None"),
        ("ticks_between_batches = None", TICKS, "Part.ticks_between_batches is None; use a number from 1"),
    ],
)
def test_settings_by_which_tuples_would_wait_for_ever_are_refused(
    start: Starter, settings: str, conf: dict[str, object], error: str
) -> None:
    child = start(sums(settings), conf)
    child.ended(UNUSABLE)
    assert error in child.errors[0]


def test_a_batching_bolt_without_process_batch_is_told_what_to_define(start: Starter) -> None:
    child = start("class Part(BatchingBolt): batch_size = 1", TICKS)
    child.give(1)
    child.until(lambda: child.failed)
    assert "define process_batch(self, key, tups)" in child.errors[0]


class Joined(LingeringBolt):
    """Emits the numbers of each batch."""

    output_fields = ["numbers"]
    linger_secs = 0.5
    batch_size = 10

    def process_batch(self, key, tups):
        self.emit([[tup["n"] for tup in tups]])


def test_tuples_linger_for_others_and_need_no_tick() -> None:
    run = run_bolt(Joined(), [[1], [2]], fields=["n"])
    run.tick()
    run.advance(0.4)
    assert (run.values, run.acked) == ([], [])
    run.advance(0.2)
    assert run.values == [[[1, 2]]]
    assert len(run.acked) == 2
    run.process(*[[n] for n in range(12)])  # ten are due at once, two wait
    run.advance(0.6)
    assert run.values[1:] == [[list(range(10))], [[10, 11]]]
    run.close()


def test_half_of_what_a_spout_may_have_under_way_lingers_at_most() -> None:
    run = run_bolt(Joined(), [[n] for n in range(5)], fields=["n"], conf={"topology.max.spout.pending": 4})
    assert run.values == [[[0, 1]], [[2, 3]]]
    run.advance(0.6)
    run.close()
    assert run.values[2:] == [[[4]]]


def test_a_time_to_linger_that_can_not_be_is_refused() -> None:
    bolt = Joined()
    bolt.linger_secs = -1
    with pytest.raises(ConfigError, match="linger_secs is -1; use seconds from 0"):
        run_bolt(bolt, [[1]], fields=["n"])
