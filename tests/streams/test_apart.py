"""Tuples that are worked on together fail apart: what one of them can't do changes nothing for the others."""

from __future__ import annotations

from collections import Counter

import pytest

from multilang import BasicBolt, LocalCluster
from multilang.component.errors import FailedException
from multilang.connectors import CollectingSink
from multilang.streams import StreamBuilder

WRONG = 50


class Own(BasicBolt):
    """Passes values on, but fails some."""

    output_fields = ["value"]

    def __init__(self, refuses=()) -> None:
        self.refuses = set(refuses)

    def process(self, tup) -> None:
        if tup["value"] in self.refuses:
            raise FailedException
        self.emit([tup["value"]])


def odd(number):
    return float("nan") if number == WRONG else number


async def odd_later(number):
    return odd(number)


def mixed(source, own):
    """A stream that is counted, and also sent as it is."""
    numbers = source.map(odd)
    numbers.key_by(lambda number: 1 if number == 1 else 2).repartition(3).count(name="counts")
    return numbers.through(own, name="own")


def called(source, own):
    return source.map_async(odd_later).through(own, name="own")


def chained(source, own):
    return source.map(odd).through(own, name="own")


def run(make, own, many=100):
    s, sink = StreamBuilder(), CollectingSink()
    make(s.source(range(many), name="numbers"), own).to(sink)
    with LocalCluster("simulated", {"multilang.max.replays": 3}, seed=1) as cluster:
        found = cluster.submit(s.build("apart"))
        found.wait(timeout=3600)
    return [row[0] for row in sink.rows], found


@pytest.mark.parametrize("make", [mixed, called, chained])
def test_a_value_that_can_not_be_sent_doubles_no_other_one(make) -> None:
    rows, found = run(make, Own())
    assert Counter(rows) == Counter(set(range(100)) - {WRONG})
    assert found.counters["numbers"].acked == 99
    assert "nan has no JSON form" in str(found.errors[0])


def test_a_partial_result_that_can_not_be_sent_doubles_no_other_one() -> None:
    s, sink = StreamBuilder(), CollectingSink()
    numbers = s.source(range(100), name="numbers").map(lambda number: (number % 7, odd(number)))
    numbers.key_by(lambda pair: pair[0]).repartition(3).map_values(lambda pair: pair[1]).reduce(
        lambda one, other: one + other, name="sums"
    ).to(sink)
    with LocalCluster("simulated", {"multilang.max.replays": 3}, seed=1) as cluster:
        found = cluster.submit(s.build("apart"))
        found.wait(timeout=3600)
    last = dict(map(tuple, sink.rows))
    assert last == {
        key: sum(number for number in range(100) if number % 7 == key and number != WRONG) for key in range(7)
    }
    assert found.counters["numbers"].acked == 99


@pytest.mark.parametrize("make", [mixed, called])
def test_a_tuple_that_fails_behind_takes_none_with_it(make) -> None:
    rows, found = run(make, Own(refuses=[10]), many=40)
    assert Counter(rows) == Counter(set(range(40)) - {10})
    assert found.counters["numbers"].acked == 39


@pytest.mark.parametrize("make", [mixed, called])
def test_what_is_tracked_grows_with_the_tuples_and_not_with_their_square(make) -> None:
    _, found = run(make, Own(), many=49)
    assert found.counters["__acker"].executed < 10 * 49
