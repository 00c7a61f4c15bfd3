"""Aggregates of a field: what they make of any values, in any order."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.protocol.codec import dumps, loads
from multilang.testing import make_tuple, run_bolt
from multilang.windowing import Count, Distinct, Max, Mean, Min, Sum, TopN, Tumbling, WindowedBolt

VALUES = st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=12)


def result(aggregate, values):
    """Return what a window by count, of these values, tells; and the run."""

    class Bolt(WindowedBolt):
        output_fields = ["result"]
        window = Tumbling(len(values))

        def process_window(self, window) -> None:
            self.emit([window.result])

    bolt = Bolt()
    bolt.aggregate = aggregate
    run = run_bolt(bolt, [[value] for value in values], fields=["value"])
    run.close()
    return run


@given(VALUES, st.randoms(use_true_random=False))
def test_they_leave_none_out_as_sql_does_in_any_order(values, random) -> None:
    numbers = [value for value in values if value is not None]
    wanted = {
        Count(): len(values),
        Sum("value"): sum(numbers),
        Mean("value"): fmean(numbers) if numbers else None,
        Min("value"): min(numbers, default=None),
        Max("value"): max(numbers, default=None),
        Distinct("value"): len(set(values)),
        TopN(20, "value"): sorted(
            ([value, count] for value, count in Counter(values).items()), key=lambda pair: (-pair[1], str(pair[0]))
        ),
    }
    random.shuffle(values)
    for aggregate, each in wanted.items():
        run = result(aggregate, values)
        assert run.values == [[each]], aggregate
        assert not run.failed


@pytest.mark.parametrize(
    ("aggregate", "wrong", "message"),
    [
        (Sum("value"), "7", "Sum takes numbers, and field 'value' has the value '7'"),
        (Mean("value"), [1], "Mean takes numbers, "),
        (Min("value"), "7", "Min takes numbers alone, or text alone, and field 'value' has the value '7'"),
        (Max("value"), {"a": 1}, "Max takes numbers alone, "),
        (Distinct("value"), [1], "Distinct takes strings, numbers, booleans and None, "),
        (TopN(3, "value"), [1], "TopN takes strings, numbers, booleans and None, "),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_value_that_can_not_be_fails_its_tuple_alone(aggregate, wrong, message, place) -> None:
    values = [1, 2]
    values.insert(place, wrong)
    if isinstance(wrong, str) and place == 0 and type(aggregate) is Min:
        values = [1, wrong, 2]  # text alone could follow it
    run = result(aggregate, [*values, 3, 4, 5])
    assert [tup.values for tup in run.failed] == [[wrong]]
    assert message in run.errors[0]


MIXED = st.lists(
    st.sampled_from([1, True, 1.0, "1", 0, False, 0.0, -0.0, "0", None, "None", "True"]), min_size=1, max_size=9
)


@given(MIXED, st.randoms(use_true_random=False))
def test_the_most_frequent_values_do_not_depend_on_which_of_equal_ones_came_first(values, random) -> None:
    (first,) = result(TopN(5, "value"), values).values
    assert [[value, count] for value, count in first[0]] == first[0]
    counted = Counter(map(repr, values))
    assert all(counted[repr(value)] == count for value, count in first[0])
    random.shuffle(values)
    assert repr(result(TopN(5, "value"), values).values) == repr([first])
    top = TopN(5, "value")
    accumulator = top.init()
    for value in values:
        accumulator = top.add(accumulator, make_tuple([value], ["value"]))
    assert repr(top.result(top.load(loads(dumps(top.save(accumulator)))))) == repr(first[0])
