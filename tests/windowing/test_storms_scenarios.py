"""The scenarios of Storm's own tests of windows, as a user of this library would write them."""

from __future__ import annotations

import pytest

from multilang import TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.testing import FixedTupleSpout, make_tuple, run_bolt
from multilang.testing.bolts import BoltRun
from multilang.topology import TopologyError
from multilang.windowing import Session, Sliding, Tumbling, WindowedBolt, milliseconds, seconds

CONF = {"topology.message.timeout.secs": 100}


class Shows(WindowedBolt):
    output_fields = ["end", "tuples", "new", "expired"]

    def process_window(self, window):
        self.emit([window.end, *([tup[0] for tup in part] for part in (window.tuples, window.new, window.expired))])


def bolt(window, **more):
    return type("Bolt", (Shows,), {"window": window, **more})


def timed(window, **more):
    return bolt(window, timestamp_field="ts", **more)


def played(declared, *steps, fields=("n", "ts")):
    """Return what a bolt emits of the steps: tuples, and None for a watermark."""
    run = run_bolt(declared, [], CONF, fields=list(fields))
    for step in steps:
        if step is None:
            run.advance(1)
        else:
            run.process(list(step))
    return run


def of(*numbers):
    return [[n] for n in numbers]


# ---- by count and by arrival ----


def test_sliding_by_count_has_new_and_expired_tuples() -> None:
    run = played(bolt(Sliding(5, 2)), *of(*range(1, 11)), fields=["n"])
    assert [row[1:] for row in run.values] == [
        [[1, 2], [1, 2], []],
        [[1, 2, 3, 4], [3, 4], []],
        [[2, 3, 4, 5, 6], [5, 6], [1]],
        [[4, 5, 6, 7, 8], [7, 8], [2, 3]],
        [[6, 7, 8, 9, 10], [9, 10], [4, 5]],
    ]


def test_tumbling_by_count_has_each_tuple_once_and_acks_it() -> None:
    run = played(bolt(Tumbling(3)), *of(*range(1, 9)), fields=["n"])
    assert [row[1:] for row in run.values] == [[[1, 2, 3], [1, 2, 3], []], [[4, 5, 6], [4, 5, 6], [1, 2, 3]]]
    assert [tup[0] for tup in run.unfinished] == [7, 8]


def test_a_window_at_each_tuple_if_no_slide_is_given() -> None:
    run = played(bolt(Sliding(2)), *of(1, 2, 3), fields=["n"])
    assert [row[1] for row in run.values] == [[1], [1, 2], [2, 3]]


def test_windows_by_processing_time_slide_with_the_clock() -> None:
    run = run_bolt(bolt(Sliding(seconds(1), milliseconds(500))), [], CONF, fields=["n"])
    run.process([1])
    run.advance(0.3)
    run.process([2])
    run.advance(0.3)  # the first window ended
    run.process([3])
    run.advance(2)
    assert [row[1] for row in run.values] == [[1, 2], [1, 2, 3], [3]]
    assert run.unfinished == []


# ---- watermarks ----


def test_no_watermark_without_tuples_and_none_backwards() -> None:
    run = played(timed(Tumbling(milliseconds(10))), None, (1, 15), None, (2, 25), (3, 20), None, None)
    assert [row[1] for row in run.values] == [[1, 3]]  # 3 was out of order, and not late: no watermark came between


def test_the_slower_of_two_streams_decides() -> None:
    names = [make_tuple([0, 0], ["n", "ts"], "one"), make_tuple([0, 0], ["n", "ts"], "two")]
    run = BoltRun(timed(Tumbling(milliseconds(10)))(), names, CONF, "bolt", 1, 0)
    run.process(make_tuple([1, 100], ["n", "ts"], "one"))
    run.advance(1)
    run.process(make_tuple([2, 5], ["n", "ts"], "two"))
    run.process(make_tuple([3, 8], ["n", "ts"], "two"))
    run.advance(1)
    assert run.values == []
    run.process(make_tuple([4, 11], ["n", "ts"], "two"))
    run.advance(1)
    assert [row[:2] for row in run.values] == [[10, [2, 3]]]


def test_only_what_is_before_the_watermark_is_late() -> None:
    run = played(timed(Tumbling(milliseconds(10)), late_stream="late"), (1, 20), None, (2, 20), (3, 19), (4, 31), None)
    assert [late["late_tuple"]["values"] for late in run.emitted_on("late")] == [[3, 19]]
    assert [tup["tuples"] for tup in run.emitted_on("default")] == [[1, 2]]


# ---- by event time ----


def test_sliding_by_event_time() -> None:
    run = played(
        timed(Sliding(milliseconds(20), milliseconds(10)), lag=milliseconds(5), late_stream="late"),
        *enumerate([603, 605, 607, 618, 626, 636]),
        None,
        (6, 600),
        (7, 670),
        None,
    )
    assert [(tup["end"], tup["tuples"]) for tup in run.emitted_on("default")] == [
        (610, [0, 1, 2]),
        (620, [0, 1, 2, 3]),
        (630, [3, 4]),
        (640, [4, 5]),
        (650, [5]),
    ]
    assert [late["late_tuple"]["values"] for late in run.emitted_on("late")] == [[6, 600]]
    assert [tup[0] for tup in run.unfinished] == [7]


def test_nothing_between_two_windows_that_are_far_apart() -> None:
    run = played(timed(Sliding(milliseconds(20), milliseconds(10))), (1, 5), (2, 10_000_005), (3, 20_000_000), None)
    assert [(row[0], row[1]) for row in run.values] == [
        (10, [1]),
        (20, [1]),
        (10_000_010, [2]),
        (10_000_020, [2]),
    ]


def test_the_last_three_tuples_every_ten_milliseconds() -> None:
    run = played(
        timed(Sliding(3, milliseconds(10))),
        *enumerate([603, 605, 607]),
        None,
        (3, 618),
        None,
        (4, 625),
        (5, 626),
        (6, 629),
        (7, 636),
        None,
    )
    assert [(row[0], row[1]) for row in run.values] == [(610, [0, 1, 2]), (620, [1, 2, 3]), (630, [4, 5, 6])]


def test_the_last_twenty_milliseconds_at_each_third_tuple() -> None:
    times = [603, 605, 607, 618, 625, 626, 629, 636]
    run = played(timed(Sliding(milliseconds(20), 3)), *enumerate(times), (8, 700), None)
    assert [row[1] for row in run.values] == [[0, 1, 2], [1, 2, 3, 4, 5][1:]]


@pytest.mark.parametrize(("window", "expected"), [(Tumbling(2), [[0, 1], [2, 3], [4, 5]]), (Sliding(5, 2), None)])
def test_tuples_of_one_time_fill_windows_by_count_in_their_order(window, expected) -> None:
    run = played(timed(window), *enumerate([10, 10, 11, 12, 12, 12, 12, 13, 14, 15]), None)
    if expected is None:
        expected = [[0, 1], [0, 1, 2, 3], [1, 2, 3, 4, 5], [3, 4, 5, 6, 7]]
    assert [row[1] for row in run.values][: len(expected)] == expected


def test_sessions_end_after_their_gap() -> None:
    run = played(timed(Session(milliseconds(10))), (1, 0), (2, 9), (3, 30), (4, 18), (5, 100), None)
    assert [(row[0], sorted(row[1])) for row in run.values] == [(28, [1, 2, 4]), (40, [3])]


# ---- declarations ----


@pytest.mark.parametrize("size", [0, -1, milliseconds(0), milliseconds(-5), 1.5, None])
@pytest.mark.parametrize(
    "kind", [Tumbling, Sliding, lambda size: Sliding(5, size), lambda size: Sliding(seconds(5), size)]
)
def test_a_length_or_slide_that_is_not_above_zero_is_refused(kind, size) -> None:
    with pytest.raises(ConfigError):
        kind(size)


@pytest.mark.parametrize(
    ("declared", "conf", "says"),
    [
        (bolt(None), {}, "has no window"),
        (bolt(Tumbling(seconds(16))), {"topology.message.timeout.secs": 30}, "topology.message.timeout.secs"),
        (bolt(Tumbling(6)), {"topology.max.spout.pending": 11}, "topology.max.spout.pending"),
        (bolt(Tumbling(5), late_stream="late"), {}, "set timestamp_field"),
        (bolt(Tumbling(5), lag=seconds(1)), {}, "set timestamp_field"),
        (timed(Tumbling(5)), {"topology.bolts.late.tuple.stream": "late"}, "which the bolt does not declare"),
        (timed(Tumbling(5), timestamp=lambda self, tup: 1), {}, "both timestamp_field and a method timestamp"),
        (timed(Tumbling(5), watermark_interval=seconds(0)), {}, "watermark_interval"),
        (bolt(None), {"topology.bolts.window.sliding.interval.count": 3}, "topology.bolts.window.length.count"),
    ],
)
def test_what_kills_storms_workers_is_refused_when_the_topology_is_built(declared, conf, says) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout(["n", "ts"], []))
    own = {key: value for key, value in conf.items() if key.startswith("topology.bolts")}
    bolts = builder.set_bolt("windows", declared, conf=own)
    bolts.shuffle_grouping("numbers")
    with pytest.raises((TopologyError, ConfigError), match=says):
        builder.build("windows", {key: value for key, value in conf.items() if key not in own})


def test_length_and_slide_may_be_as_long_as_the_timeout() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout(["n", "ts"], []))
    builder.set_bolt("windows", bolt(Sliding(seconds(20), seconds(10)))).shuffle_grouping("numbers")
    assert (
        builder.build("windows", conf={"topology.message.timeout.secs": 30})
        .components["windows"]
        .conf["topology.bolts.window.length.duration.ms"]
        == 20_000
    )
