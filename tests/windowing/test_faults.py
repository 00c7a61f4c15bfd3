"""The faults of Storm's windows, each of which loses or doubles tuples there, in silence."""

from __future__ import annotations

import pytest

from multilang import FailedException, Spout, TopologyBuilder
from multilang.local import LocalCluster
from multilang.testing import BoltRun, FeederSpout, make_tuple, run_bolt, tick
from multilang.windowing import Aggregate, Session, Sliding, Tumbling, WindowedBolt, milliseconds, seconds
from tests.windowing.harness import fresh


class Times(WindowedBolt):
    """Emits the times of a window's tuples."""

    output_fields = ["end", "times"]
    window = Tumbling(milliseconds(10))
    timestamp_field = "ts"
    late_stream = "late"

    def process_window(self, window):
        self.emit([window.end, [tup["ts"] for tup in window.tuples]])


class Last(Aggregate):
    """The time of the last tuple."""

    def init(self):
        return None

    def add(self, accumulator, tup):
        return tup["ts"]

    def merge(self, first, second):
        return second


def times(**declared):
    return type("Bolt", (Times,), declared)()


def feed(run, *steps):
    """Give tuples with these times; None lets the watermark follow them."""
    for step in steps:
        if step is None:
            run.advance(1)
        else:
            run.process([step])
    return [each.values for each in run.emitted if each.stream == "default"]


def test_a9_1_nothing_is_lost_at_a_lag_of_0():
    run = fresh(times(), "ts")
    assert feed(run, 15, 8, None, 25, None) == [[10, [8]], [20, [15]]]
    assert run.emitted_on("late") == []


def test_a9_1_nothing_is_lost_out_of_order_within_the_lag():
    run = fresh(times(lag=milliseconds(3)), "ts")
    assert feed(run, 12, 16, None, 14, None, 40, None) == [[20, [12, 16, 14]]]
    run = fresh(times(lag=milliseconds(3)), "ts")
    assert feed(run, 12, 16, 9, 14, None, 40, None) == [[10, [9]], [20, [12, 16, 14]]]


def test_a9_2_streams_whose_times_differ_by_more_than_the_lag():
    run = run_bolt(times(), [make_tuple([100], ["ts"], "a"), make_tuple([5], ["ts"], "b")])
    for ts in (8, 10, 11):
        run.process(make_tuple([ts], ["ts"], "b"))
    run.advance(1)
    run.process(make_tuple([120], ["ts"], "b"), make_tuple([130], ["ts"], "a"))
    run.advance(1)
    assert run.values == [[10, [5, 8, 10]], [20, [11]], [100, [100]], [120, [120]]][:3]
    assert [tup["ts"] for tup in run.unfinished] == [120, 130]


def test_a9_3_a_tuple_at_the_watermark_and_at_a_windows_end():
    run = fresh(times(), "ts")
    assert feed(run, 3, 10, None, 10, None, 25, None) == [[10, [3, 10, 10]]]
    run = fresh(times(window=Sliding(milliseconds(20), milliseconds(10))), "ts")
    assert feed(run, 3, 10, None, 10, None, 35, None) == [[10, [3, 10, 10]], [20, [3, 10, 10]]]


def test_a9_4_counts_on_event_time():
    run = fresh(times(window=Tumbling(2)), "ts")
    got = [window for _, window in feed(run, 1, 2, None, 2, 3, 4, None, 5, 6, None, 7, None)]
    assert got == [[1, 2], [2, 3], [4, 5]]
    run = fresh(times(window=Tumbling(2), lag=milliseconds(4)), "ts")
    got = [window for _, window in feed(run, 1, 5, 3, 4, None, 6, 7, None, 30, None)]
    assert got == [[1, 3], [4, 5], [6, 7]]


def test_a9_5_expired_does_not_forget_at_an_empty_window():
    class Running(Times):
        output_fields = ["total", "sum"]
        total = 0
        window = Sliding(milliseconds(20), milliseconds(10))
        late_stream = None

        def process_window(self, window):
            self.total += sum(tup["ts"] for tup in window.new) - sum(tup["ts"] for tup in window.expired)
            self.emit([self.total, sum(tup["ts"] for tup in window.tuples)])

    run = fresh(Running, "ts")
    got = feed(run, *(step for ts in (1, 2, 15, 500, 505, 2000, 2005, 9000) for step in (ts, None)))
    assert len(got) == 9
    assert all(total == whole for total, whole in got)


def test_a9_6_an_idle_source_does_not_stop_time():
    def tuples():
        return [make_tuple([5], ["ts"], "a"), make_tuple([6], ["ts"], "b")]

    held_up = run_bolt(times(), tuples())
    waits = run_bolt(times(idle_after=seconds(5)), tuples())
    for run in (held_up, waits):
        for number in range(1, 8):
            run.process(make_tuple([number * 20], ["ts"], "a"))
            run.advance(1)
    assert held_up.values == []
    assert waits.values[0] == [10, [5, 6]]
    waits.process(make_tuple([7], ["ts"], "b"))  # it is back, behind the others
    assert [each["late_tuple"]["values"] for each in waits.emitted_on("late")] == [[7]]


@pytest.mark.parametrize(("idle", "interval"), [(1, 1), (10, 1), (0.5, 1), (10, 20), (1, 0.1)])
@pytest.mark.parametrize("phase", [0.05, 0.5, 0.95])
def test_a_source_is_idle_after_its_time_and_before_the_second_look(idle, interval, phase):
    bolt = times(idle_after=seconds(idle), watermark_interval=seconds(interval))
    run = run_bolt(bolt, [make_tuple([5], ["ts"], "a"), make_tuple([5], ["ts"], "b")])
    run.advance(phase)
    run.process(make_tuple([6], ["ts"], "b"))
    waited = 0.0
    while not run.values:
        run.advance(0.05)
        waited += 0.05
        run.process(make_tuple([round(100 + waited * 100)], ["ts"], "a"))
    assert idle - 0.06 < waited < idle + interval + 0.06


def test_a_source_that_starts_later_is_not_idle_before_the_others_have_sent_something():
    sources = [make_tuple([0], ["ts"], name) for name in "ab"]
    run = BoltRun(times(idle_after=seconds(5)), sources, None, "bolt", 1, 0)
    run.advance(20)  # all of them start
    for late in range(4):
        run.process(make_tuple([20 + late], ["ts"], "a"))
        run.advance(1)
    run.process(make_tuple([5], ["ts"], "b"))
    assert [each for each in run.emitted if each.stream == "late"] == []
    run.process(make_tuple([30], ["ts"], "b"))
    run.advance(1)
    assert run.values == [[10, [5]], [20, [20]]]


@pytest.mark.parametrize(
    "window", [Tumbling(seconds(7)), Sliding(seconds(9), seconds(2)), Session(seconds(3)), Tumbling(2)]
)
def test_a_timestamp_whose_windows_would_not_have_64_bits_fails_alone(window):
    least, most = 1 - 2**62, 2**62 - 1
    bolt = times(window=window, aggregate=Last(), process_window=lambda self, w: self.emit([w.end, w.result]))
    run = run_bolt(bolt, [[2**63 - 1], [-(2**63)], [2**62], [-(2**62)]], fields=["ts"], expect=FailedException)
    assert len(run.failed) == 4
    for ts in (least, 1, 2, most, most):
        run.process([ts])
        run.advance(1)
    assert len(run.failed) == 4
    assert run.values
    assert all(abs(end) < 2**63 and last in (least, 1, 2, most) for end, last in run.values)
    assert [each for each in run.emitted if each.stream == "late"] == []


def test_when_all_sources_are_idle_time_goes_on_by_the_clock():
    run = run_bolt(times(idle_after=seconds(5), window=Tumbling(seconds(10))), [[1000]], fields=["ts"])
    run.advance(9)
    assert run.values == []
    run.advance(2)
    assert run.values == [[10000, [1000]]]


def test_a9_7_the_watermark_interval_counts():
    run = fresh(times(watermark_interval=milliseconds(50)), "ts")
    run.process([3], [30])
    run.advance(0.05)
    assert run.values == [[10, [3]]]


def test_a9_8_a_replay_is_counted_once():
    run = fresh(times(id_field="id"), "ts", "id")
    run.process([3, "a"], [4, "b"], [3, "a"], [30, "c"])
    run.advance(1)
    assert run.values == [[10, [3, 4]]]
    assert sorted(tup["id"] for tup in run.acked) == ["a", "a", "b"]


def test_tuples_without_an_id_are_not_taken_for_replays():
    run = run_bolt(times(id_field="id"), [[3, None], [4, None]], fields=["ts", "id"], expect=FailedException)
    assert len(run.failed) == 2
    assert "bolt 'bolt': id_field id has the value None; a message id is" in run.errors[0]


class Picky(Aggregate):
    """The times of the tuples, of which one fails when it comes for the first time."""

    def __init__(self, fails):
        self.fails = fails

    def init(self):
        return []

    def add(self, accumulator, tup):
        if tup["ts"] == self.fails:
            self.fails = None
            raise FailedException("not this one")
        return [*accumulator, tup["ts"]]

    def merge(self, first, second):
        return first + second


@pytest.mark.parametrize("fails", [3, 4])  # the first two are between windows of two at every fourth
@pytest.mark.parametrize("window", [Tumbling(2), Sliding(2, 4), Sliding(4, 2), Sliding(seconds(9), 2)])
def test_a_tuple_that_fails_is_none_of_those_that_are_counted(window, fails):
    class Results(WindowedBolt):
        output_fields = ["times"]

        def process_window(self, window):
            self.emit([window.result])

    def played(given, fails=None):
        bolt = type("Bolt", (Results,), {"window": window, "aggregate": Picky(fails)})
        run = run_bolt(bolt, [[ts] for ts in given], fields=["ts"], expect=FailedException)
        assert [tup["ts"] for tup in run.failed] == ([] if fails is None else [fails])
        return run.values, sorted(tup["ts"] for tup in run.unfinished)

    given = [1, 2, 3, 4, 5, 6, fails, 7]
    assert played(given, fails) == played([ts for n, ts in enumerate(given) if n != fails - 1])


class Words(Aggregate):
    def init(self):
        return []

    def add(self, accumulator, tup):
        accumulator.append(tup["ts"])

    def merge(self, first, second):
        return first + second


class Lost(Words):
    def add(self, accumulator, tup):
        return [*accumulator, tup["ts"]]

    def merge(self, first, second):
        first.extend(second)


@pytest.mark.parametrize(
    ("aggregate", "window", "says"),
    [
        (Words(), Tumbling(1), "Words.add or its merge returned None: return"),
        (Lost(), Sliding(2, 1), "Lost.add or its merge returned None: return"),
    ],
)
def test_an_aggregate_that_forgets_to_return_is_named(aggregate, window, says):
    class Results(WindowedBolt):
        output_fields = ["times"]

        def process_window(self, window):
            self.emit([window.result])

    bolt = type("Bolt", (Results,), {"window": window, "aggregate": aggregate})
    with pytest.raises(TypeError, match=says):
        run_bolt(bolt, [[1], [2], [3]], fields=["ts"])


def test_ticks_are_in_no_window():
    run = fresh(times(window=Tumbling(2), timestamp_field=None, late_stream=None), "ts")
    run.process([1], tick(), tick(), [2])
    assert [window for _, window in run.values] == [[1, 2]]


def test_a_tuple_is_acked_when_it_is_in_no_window_any_more():
    run = fresh(times(window=Sliding(3, 1), timestamp_field=None, late_stream=None), "ts")
    for ts in range(1, 6):
        run.process([ts])
    assert [tup["ts"] for tup in run.acked] == [1, 2, 3]
    assert [[tup["ts"] for tup in each.anchors] for each in run.emitted] == [
        [1],
        [1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 5],
    ]


@pytest.mark.parametrize(("anchor", "wanted"), [("new", [[1], [2], [3]]), ("none", [[], [], []])])
def test_anchors_by_policy(anchor, wanted):
    run = fresh(times(window=Sliding(3, 1), timestamp_field=None, late_stream=None, anchor=anchor), "ts")
    run.process([1], [2], [3])
    assert [[tup["ts"] for tup in each.anchors] for each in run.emitted] == wanted


def test_tuples_between_windows_are_acked_at_once():
    run = fresh(times(window=Sliding(2, 5), timestamp_field=None, late_stream=None), "ts")
    run.process(*([ts] for ts in range(1, 11)))
    assert [window for _, window in run.values] == [[4, 5], [9, 10]]
    assert run.unfinished == []


def test_a_late_tuple_goes_to_its_stream_as_it_came():
    run = fresh(times(), "ts")
    feed(run, 25, None, 4)
    (late,) = run.emitted_on("late")
    assert late["late_tuple"] == {
        "component": "source",
        "task": 1,
        "stream": "default",
        "fields": ["ts"],
        "values": [4],
    }
    assert [tup["ts"] for tup in late.anchors] == [4]
    assert 4 in [tup["ts"] for tup in run.acked]


def test_late_tuples_without_a_stream_are_counted_in_the_log():
    run = fresh(times(late_stream=None), "ts")
    feed(run, 25, None, 4, 5, 6)
    assert [text[:13] for _, text in run.logged] == ["1 late tuples", "2 late tuples"]
    assert {tup["ts"] for tup in run.acked} == {4, 5, 6}


def test_a_window_that_fails_ends_the_task():
    class Fails(Times):
        def process_window(self, window):
            raise FailedException("no")

    run = run_bolt(Fails, [[3], [30]], fields=["ts"])
    with pytest.raises(RuntimeError, match="a window can't fail by itself"):
        run.advance(1)
    assert run.acked == []
    assert run.failed == []


def test_a_timestamp_that_is_no_whole_number_fails_its_tuple():
    run = run_bolt(times(), [[3.5], ["x"], [None], [True]], fields=["ts"], expect=FailedException)
    assert len(run.failed) == 4
    assert "bolt 'bolt': the timestamp is 3.5 (float); it is a whole number of milliseconds" in run.errors[0]


def test_windows_by_the_clock_are_evaluated_below_a_second():
    run = fresh(times(window=Tumbling(milliseconds(100)), timestamp_field=None, late_stream=None), "ts")
    run.process([1])
    run.advance(0.09)
    run.process([2])
    run.advance(0.012)
    assert [window for _, window in run.values] == [[1, 2]]


def test_a_worked_example_of_storms_page():
    """Windows of 20 s that slide by 10 s, a lag of 5 s: the example of Storm's page on windowing."""

    def at(hour, minute, second):
        return ((hour * 60 + minute) * 60 + second) * 1000

    bolt = times(window=Sliding(seconds(20), seconds(10)), lag=seconds(5))
    run = run_bolt(bolt, [[at(6, 0, second)] for second in (3, 5, 7, 18, 26, 36)], fields=["ts"])
    run.advance(1)
    six = [[(end // 1000) % 60, [ts // 1000 % 60 for ts in window]] for end, window in run.values]
    assert six == [[10, [3, 5, 7]], [20, [3, 5, 7, 18]], [30, [18, 26]]]
    run.emitted.clear()
    run.process(*([at(8, 0, second)] for second in (25, 26, 27, 39)))
    run.advance(1)
    rest = [[(end // 1000) % 60, [ts // 1000 % 60 for ts in window]] for end, window in run.values]
    assert rest == [[40, [26, 36]], [50, [36]], [30, [25, 26, 27]]]


def test_early_evaluations_by_time():
    run = fresh(times(early=milliseconds(300), window=Session(seconds(10)), watermark_interval=seconds(20)), "ts")
    run.process([1], [2])
    run.advance(0.3)
    run.advance(0.3)  # nothing new
    run.process([3])
    run.advance(0.3)
    assert [window for _, window in run.values] == [[1, 2], [1, 2, 3]]


class Split(Spout):
    """Each of its tasks has its own times, far from those of the others."""

    output_fields = ["ts"]

    def initialize(self, conf, context):
        first = context.task_index * 1000
        self.left = [first + each for each in (1, 5, 12, 3000)]

    def next_tuple(self):
        if self.left:
            ts = self.left.pop(0)
            self.emit([ts], ts)

    def exhausted(self):
        return not self.left


def test_the_slowest_task_of_a_source_decides():
    builder = TopologyBuilder()
    builder.set_spout("times", Split, 3)
    builder.set_bolt("windows", times()).global_grouping("times")
    for seed in range(5):
        with LocalCluster("simulated", seed=seed) as cluster:
            run = cluster.submit(builder.build("times"), capture=["windows"])
            run.wait(lambda run: len(run.captured("windows")) == 6, timeout=10)
            assert sorted(tup.values for tup in run.captured("windows")) == [
                [10, [1, 5]],
                [20, [12]],
                [1010, [1001, 1005]],
                [1020, [1012]],
                [2010, [2001, 2005]],
                [2020, [2012]],
            ]
            assert run.captured("windows", "late") == []


def test_a_source_that_never_sends_is_named(caplog):
    builder = TopologyBuilder()
    silent, feeder = FeederSpout(["ts"]), FeederSpout(["ts"])
    builder.set_spout("silent", silent)
    builder.set_spout("times", feeder)
    builder.set_bolt("windows", times()).global_grouping("times").global_grouping("silent")
    feeder.feed([5])
    with LocalCluster("simulated", seed=1) as cluster:
        cluster.submit(builder.build("times")).run_for(40)
    assert "stream 'default' of 'silent' have sent nothing so far. Set idle_after" in caplog.text
