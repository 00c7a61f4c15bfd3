"""Estimates are near the truth, and the same whatever the order and the parts they were made of."""

from __future__ import annotations

import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.testing import make_tuple
from multilang.windowing import ApproximateDistinct

VALUES = [*range(5000), *map(str, range(3000)), None, -1.5, 10**18]


def estimated(aggregate, values, parts=1, saved=False):
    """Return the result of values that were added in some parts, which were then merged."""
    made = []
    for part in range(parts):
        accumulator = aggregate.init()
        for value in values[part::parts]:
            accumulator = aggregate.add(accumulator, make_tuple([value], fields=["n"]))
        made.append(aggregate.load(aggregate.save(accumulator)) if saved else accumulator)
    whole = made[0]
    for each in made[1:]:
        whole = aggregate.merge(whole, each)
    return aggregate.result(whole)


@settings(max_examples=30)
@given(st.integers(0, len(VALUES)), st.integers(0, 2**32), st.integers(1, 5), st.booleans())
def test_an_estimate_is_near_and_depends_on_no_order(count, seed, parts, saved):
    aggregate = ApproximateDistinct("n")
    values = Random(seed).sample(VALUES, count)
    found = estimated(aggregate, values)
    assert found == count if count < 150 else abs(found / count - 1) < 0.08
    Random(seed).shuffle(values)
    assert estimated(aggregate, values * 2, parts, saved) == found


def test_equal_values_are_those_that_an_exact_count_takes_for_equal():
    assert estimated(ApproximateDistinct("n"), [1, 1.0, True, "1", None, "None", 2.5, 0, False, -0.0]) == 6


def test_a_sketch_stays_small_and_a_greater_precision_is_nearer():
    for precision in (8, 16):
        aggregate = ApproximateDistinct("n", precision)
        accumulator = aggregate.init()
        for n in range(20_000):
            accumulator = aggregate.add(accumulator, make_tuple([n], fields=["n"]))
        assert len(aggregate.save(accumulator)) < 2**precision * 1.4 + 200
        assert abs(aggregate.result(accumulator) / 20_000 - 1) < 5 * 1.04 / 2 ** (precision / 2)


@pytest.mark.parametrize("precision", [3, 22, 12.0, True, "12"])
def test_a_precision_that_is_none_is_refused(precision):
    with pytest.raises(ConfigError, match="precision from 4 to 21"):
        ApproximateDistinct("n", precision)


def test_a_missing_package_is_named_with_the_extra(monkeypatch):
    from multilang.windowing import sketches

    monkeypatch.setitem(sys.modules, "datasketches", None)
    sketches._datasketches.cache_clear()
    with pytest.raises(ConfigError, match=r"storm-multilang\[sketches\]"):
        ApproximateDistinct("n")
    monkeypatch.undo()
    sketches._datasketches.cache_clear()
