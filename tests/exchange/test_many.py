"""Bolts that take many tuples at once: each is acked or failed once, and what is emitted is anchored to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, Bolt, Context, FailedException, Tuple, Tuples
from multilang.component.middleware import Middleware
from multilang.component.runner import start_bolt
from multilang.local import LocalCluster
from multilang.protocol import LocalProtocolError
from tests.exchange import running
from tests.exchange.harness import Driven, Part, tuples_of
from tests.patience import patient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WAYS = ("ack", "fail", "leave", "by id")
RUNS = st.lists(st.tuples(st.sampled_from(["default", "alone"]), st.lists(st.sampled_from(WAYS), min_size=1, max_size=6)), min_size=1, max_size=3)  # fmt: skip


class Many(BasicBolt):
    """Does to each tuple what its value says, then emits, and raises if it is told to."""

    output_fields = Part.output_fields
    output_streams = Part.output_streams
    error: BaseException | None = None
    sizes: Sequence[int] = ()

    def process_many(self, tups: Tuples) -> None:
        self.sizes = [*self.sizes, len(tups)]
        assert tups.column("n") == [tup["n"] for tup in tups] == [row[0] for row in tups.rows] == tups.column(0)
        assert [tup.stream for tup in tups] == [tups.stream] * len(tups)
        assert (tups.component, tups.task) == (tups[-1].component, tups[0].task)
        assert tups[1:] == list(tups)[1:]
        for tup in tups:
            if tup["n"] == "ack":
                self.ack(tup)
            elif tup["n"] == "by id":
                self.ack(tup.id)
            elif tup["n"] == "fail":
                self.fail(tup)
        if any(tup.unfinished for tup in tups):
            self.emit([len(tups)])
        if self.error is not None:
            raise self.error


class Later(Bolt):
    """Keeps everything for the test."""

    output_fields = Part.output_fields
    output_streams = Part.output_streams

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.kept: list[Tuples] = []

    def process_many(self, tups: Tuples) -> None:
        self.kept.append(tups)


def connected(bolt: Bolt) -> Driven:
    driven = Driven()
    execute = start_bolt(bolt, driven.collector, driven.exchange.conf, driven.exchange.context)
    driven.receive = driven.collector.receiver(execute, lambda: None)
    return driven


@settings(max_examples=150, deadline=None, database=None)
@given(RUNS, st.sampled_from([None, FailedException("wished"), ValueError("a bug")]))
def test_each_of_them_is_settled_once(runs: list[tuple[str, list[str]]], error: BaseException | None) -> None:
    bolt = Many()
    bolt.error = error
    driven = connected(bolt)
    block = driven.give_block([(stream, [[way] for way in ways]) for stream, ways in runs])
    driven.flush()
    assert bolt.sizes == [len(ways) for _, ways in runs]
    left = any("leave" in ways for _, ways in runs)
    ok = not (any("fail" in ways for _, ways in runs) or (error is not None and left))
    assert driven.settled == [(block, ok)]
    failed = False
    expected = []
    for _, ways in runs:
        failed = failed or "fail" in ways
        if "leave" in ways:
            expected.append((len(ways), [] if failed else [block]))
            failed = failed or error is not None
    # Sorted, since tuples for several tasks are in several blocks. Once a block has failed, nothing is anchored to it, and
    # what was may be in a block of its own.
    emitted = sorted((values[0], [*emit.anchors]) for emit in driven.emits for _, values in tuples_of(emit))
    assert emitted == sorted(expected) or failed
    assert sorted(values[0] for emit in driven.emits for _, values in tuples_of(emit)) == sorted(n for n, _ in expected)
    driven.close()


@pytest.mark.parametrize("ok", [True, False])
def test_they_may_be_kept_and_settled_later_together_or_one_by_one(ok: bool) -> None:
    bolt = Later()
    driven = connected(bolt)
    block = driven.give_block([("default", [[1], [2], [3]]), ("alone", [[4]])])
    driven.flush()
    assert driven.settled == []
    first, second = bolt.kept
    bolt.ack(first[1].id)
    with pytest.raises(LocalProtocolError, match="acked or failed before"):
        bolt.ack(first[1])
    bolt.emit([7], anchors=first)
    (bolt.ack_many if ok else bolt.fail_many)(first)
    bolt.ack_many(first)  # there is none left
    with pytest.raises(LocalProtocolError, match="acked or failed before"):
        bolt.emit([8], anchors=first)
    bolt.ack(second[0])
    driven.flush()
    assert driven.settled == [(block, ok)]
    assert [(emit.anchors, tuples_of(emit)) for emit in driven.emits] == [([block], [("default", [7])])]
    driven.close()


def test_without_blocks_they_come_one_at_a_time() -> None:
    bolt = Many()
    driven = connected(bolt)
    id = driven.give("direct", ["leave"])
    driven.flush()
    assert bolt.sizes == [1]
    assert driven.settled == [(id, True)]
    assert [(emit.anchors, tuples_of(emit)) for emit in driven.emits] == [([id], [("default", [1])])]
    driven.close()


def test_middleware_sees_single_tuples() -> None:
    seen: list[Any] = []

    class Sees(Middleware):
        def process(self, bolt: Bolt, call: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
            def process(tup: Tuple) -> None:
                seen.append(tup["n"])
                call(tup)

            return process

    class Watched(Many):
        middleware = (Sees(),)

    bolt = Watched()
    driven = connected(bolt)
    driven.give_block([("default", [["leave"], ["ack"]])])
    assert (seen, bolt.sizes) == (["leave", "ack"], [1, 1])
    driven.close()


@pytest.mark.parametrize(("mode", "how"), [("process", "block"), ("process", "tuple"), ("inprocess", "tuple")])
def test_the_answer_is_the_same_in_each_mode(tmp_path: Path, mode: Any, how: str) -> None:
    with LocalCluster(mode, {"multilang.exchange": how, "test.folder": str(tmp_path)}) as cluster:
        run = cluster.submit(running.many())
        run.wait(timeout=patient(150))
        n = running.NUMBERS
        assert [str(error) for error in run.errors] == []
        found = {id: (each.emitted, each.executed, each.acked) for id, each in run.counters.items()}
        assert (found["numbers"], found["adds"]) == ((n, 0, n), (n, n, n))
    sums = Counter(map(int, Path(tmp_path, "noted").read_text().split()))
    assert sums == Counter(range(1, n + 1))
