"""All kinds of windows do what their definition says, whatever comes in whatever order."""

from __future__ import annotations

import sys
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from multilang import ReportedFailedException
from multilang.engine.tuples import LocalTuple, Origin
from multilang.testing import make_tuple, run_bolt
from multilang.testing.bolts import BoltRun
from multilang.windowing import (
    Aggregate,
    Count,
    Max,
    Min,
    Session,
    Sliding,
    StatefulWindowedBolt,
    Tumbling,
    WindowedBolt,
    milliseconds,
    seconds,
)
from multilang.windowing.ordered import Ordered
from tests.windowing import reference

FIELDS = ("n", "key", "ts")
KEYS = ["ant", "bee"]
SIZES = st.integers(1, 30)


class Shows(WindowedBolt):
    """Emits all that it knows of a window."""

    output_fields = ["key", "start", "end", "timing", "tuples", "new", "expired"]
    key_by = "key"
    timestamp_field = "ts"
    late_stream = "late"
    keep_expired = True

    def process_window(self, window):
        parts = [[tup["n"] for tup in part] for part in (window.tuples, window.new, window.expired)]
        self.emit([window.key, window.start, window.end, window.timing, *parts])


@st.composite
def arrivals(draw, sources=3):
    """Tuples of some sources, out of order, with ticks (None) between them."""
    steps = []
    for n, (source, key, at, jitter, tick) in enumerate(
        draw(
            st.lists(
                st.tuples(
                    st.integers(0, sources - 1),
                    st.sampled_from(KEYS),
                    st.integers(0, 3),
                    st.integers(-12, 12),
                    st.booleans(),
                ),
                max_size=40,
            )
        )
    ):
        steps.append(reference.Event(n, source, key, n * at + jitter))
        if tick:
            steps.append(None)
    return [*steps, None]


def declared(window, **more):
    return type("Bolt", (Shows,), {"window": window, **more})()


def played(bolt, steps, sources=3):
    """Give a bolt the steps: tuples as they come, and ticks of its watermark."""
    names = [make_tuple([0, "", 0], FIELDS, f"source{index}") for index in range(sources)]
    run = BoltRun(bolt, names, None, "bolt", 1, 0)
    for step in steps:
        if step is None:
            run.advance(1)
        else:
            origin = Origin(f"source{step.source}", "default", 1, FIELDS)
            run.process(LocalTuple([step.n, step.key, step.ts], "default", origin))
    return run


def check_acks(run, late, held):
    """All tuples are acked but those that are in windows to come."""
    assert {tup["n"] for tup in run.unfinished} == held
    assert [each["late_tuple"]["values"][0] for each in run.emitted_on("late")] == [event.n for event in late]


def evaluated(run):
    return [each for each in run.emitted if each.stream == "default"]


@given(arrivals(), SIZES, SIZES, st.integers(0, 15))
def test_windows_by_duration(steps, length, slide, lag):
    bolt = declared(Sliding(milliseconds(length), milliseconds(slide)), lag=milliseconds(lag))
    run = played(bolt, steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag)
    found = [((each["key"], each["end"]), each) for each in evaluated(run)]
    assert {where: set(each["tuples"]) for where, each in found} == reference.timed(on_time, length, slide, watermark)
    assert len(found) == len(dict(found)), "evaluated twice"
    assert [each["end"] for _, each in found] == sorted(each["end"] for _, each in found)
    assert all(each["start"] == each["end"] - length for _, each in found)
    to_come = reference.timed(on_time, length, slide, float("inf")).items()
    check_acks(run, late, {n for (_, end), numbers in to_come if end >= watermark for n in numbers})
    check_running(found)


class Gathered(Aggregate):
    """The numbers of all tuples, in the order of the slices."""

    def init(self):
        return ()

    def add(self, accumulator, tup):
        return (*accumulator, tup["n"])

    def merge(self, first, second):
        return first + second


class ShowsIds(Shows):
    """Emits which window it is, and how often it was evaluated before."""

    output_fields = ["key", "start", "end", "id", "number"]

    def process_window(self, window):
        self.emit([window.key, window.start, window.end, window.id, window.number])


class ShowsResult(Shows):
    output_fields = ["key", "end", "result", "count"]
    keep_expired = False

    def process_window(self, window):
        self.emit([window.key, window.end, window.result, window.count])


def slice_end(ts, length, slide):
    """Return the first end of a window, or begin of one, that is not before a time."""
    return min(ceil(ts / slide) * slide, ceil((ts + length) / slide) * slide - length)


@given(arrivals(), SIZES, SIZES, st.integers(0, 15), st.integers(0, 25), st.sampled_from(["all", "new", "none"]))
def test_aggregates_of_windows_by_duration(steps, length, slide, lag, lateness, anchor):
    kind = {
        "window": Sliding(milliseconds(length), milliseconds(slide)),
        "lag": milliseconds(lag),
        "allowed_lateness": milliseconds(lateness),
        "aggregate": Gathered(),
        "anchor": anchor,
    }
    run = played(type("Bolt", (ShowsResult,), kind)(), steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag, lateness)
    times = {event.n: event.ts for event in on_time}
    found = {}
    for each in evaluated(run):  # the last time of each
        slices = [slice_end(times[n], length, slide) for n in each["result"]]
        assert slices == sorted(slices)
        assert each["count"] == len(set(each["result"])) == len(each["result"])
        found[each["key"], each["end"]] = set(each["result"])
        anchors = {tup["n"] for tup in each.anchors}
        if anchor == "all":
            assert anchors == set(each["result"])
        else:
            assert anchors <= (set(each["result"]) if anchor == "new" else set())
    assert found == reference.timed(on_time, length, slide, watermark)
    if not lateness:
        assert len(found) == len(evaluated(run)), "evaluated twice"
    to_come = reference.timed(on_time, length, slide, float("inf")).items()
    check_acks(run, late, {n for (_, end), numbers in to_come if end >= watermark - lateness for n in numbers})


class CountsByMerging(Count):
    """Counts as an aggregate of somebody's own, which is merged."""


@given(arrivals(), SIZES, SIZES, st.integers(0, 15), st.sampled_from(["all", "new", "none"]))
def test_counts_by_tallies_are_those_by_merging_and_those_of_the_definition(steps, length, slide, lag, anchor):
    kind = {"window": Sliding(milliseconds(length), milliseconds(slide)), "lag": milliseconds(lag), "anchor": anchor}
    tallied = played(type("Bolt", (ShowsResult,), {**kind, "aggregate": Count()})(), steps)
    merged = played(type("Bolt", (ShowsResult,), {**kind, "aggregate": CountsByMerging()})(), steps)
    shown = [(each.values, {tup["n"] for tup in each.anchors}) for each in evaluated(tallied)]
    assert shown == [(each.values, {tup["n"] for tup in each.anchors}) for each in evaluated(merged)]
    assert [tup["n"] for tup in tallied.unfinished] == [tup["n"] for tup in merged.unfinished]
    on_time, _, watermark = reference.accepted(steps, 3, lag)
    wanted = {where: len(numbers) for where, numbers in reference.timed(on_time, length, slide, watermark).items()}
    assert {(key, end): (result, count) for (key, end, result, count), _ in shown} == {
        where: (count, count) for where, count in wanted.items()
    }
    assert len(shown) == len(wanted), "evaluated twice"


@given(arrivals(), SIZES, SIZES, st.sampled_from([None, Count(), Gathered()]))
def test_what_is_acked_and_evaluated_does_not_depend_on_how_many_panes_are_forgotten_together(
    steps, length, slide, aggregate
):
    """With a limit of memory each pane is forgotten by itself, and its slices are merged for each window."""
    kind = {"window": Sliding(milliseconds(length), milliseconds(slide)), "aggregate": aggregate}
    shows = Shows if aggregate is None else ShowsResult
    together = played(type("Bolt", (shows,), kind)(), steps)
    apart = played(type("Bolt", (shows,), {**kind, "memory_limit": 10_000})(), steps)
    assert [each.values for each in evaluated(apart)] == [each.values for each in evaluated(together)]
    assert [tup["n"] for tup in apart.unfinished] == [tup["n"] for tup in together.unfinished]
    assert apart.bolt._windows.in_memory == sum(
        len(pane.accumulator) if aggregate is None else 1
        for line in apart.bolt._windows.windows._lines.values()
        for pane in line.values()
    )


def check_running(found):
    """``new`` and ``expired`` alone keep the tuples that ``tuples`` has."""
    running = {key: [] for key in KEYS}
    for where, each in found:
        mine = running[where[0]]
        mine += each["new"]
        for n in each["expired"]:
            mine.remove(n)
        assert sorted(mine) == sorted(each["tuples"])


@given(arrivals(), SIZES, SIZES, st.integers(0, 10), st.integers(1, 25))
def test_late_tuples_evaluate_their_windows_again(steps, length, slide, lag, lateness):
    bolt = declared(
        Sliding(milliseconds(length), milliseconds(slide)),
        lag=milliseconds(lag),
        allowed_lateness=milliseconds(lateness),
    )
    run = played(bolt, steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag, lateness)
    found = {(each["key"], each["end"]): set(each["tuples"]) for each in evaluated(run)}  # the last time of each
    assert found == reference.timed(on_time, length, slide, watermark)
    to_come = reference.timed(on_time, length, slide, float("inf")).items()
    check_acks(run, late, {n for (_, end), numbers in to_come if end >= watermark - lateness for n in numbers})


@given(arrivals(), SIZES, st.integers(0, 15))
def test_sessions(steps, gap, lag):
    run = played(declared(Session(milliseconds(gap)), lag=milliseconds(lag)), steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag)
    found = {(each["key"], each["start"], each["end"]): set(each["tuples"]) for each in evaluated(run)}
    assert found == reference.sessions(on_time, gap, watermark)
    assert len(found) == len(evaluated(run))
    check_acks(run, late, {event.n for event in on_time} - {n for numbers in found.values() for n in numbers})


@given(arrivals(), SIZES, st.integers(0, 10), st.integers(1, 25))
def test_sessions_with_lateness(steps, gap, lag, lateness):
    bolt = declared(Session(milliseconds(gap)), lag=milliseconds(lag), allowed_lateness=milliseconds(lateness))
    run = played(bolt, steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag, lateness)
    found = {(each["key"], each["start"], each["end"]): set(each["tuples"]) for each in evaluated(run)}
    wanted = reference.sessions(on_time, gap, watermark)
    assert {where: found.get(where) for where in wanted} == wanted  # those that grew since have other bounds
    kept = reference.sessions(on_time, gap, float("inf")).items()
    check_acks(run, late, {n for (_, _, end), numbers in kept if end > watermark - lateness for n in numbers})


@given(arrivals(), st.integers(1, 8), st.integers(1, 8), st.integers(0, 15))
def test_windows_by_count_on_event_time(steps, length, slide, lag):
    run = played(declared(Sliding(length, slide), lag=milliseconds(lag)), steps)
    on_time, late, watermark = reference.accepted(steps, 3, lag)
    wanted = reference.counted(reference.in_order(on_time, watermark), length, slide)
    found = evaluated(run)
    for key in KEYS:
        assert [each["tuples"] for each in found if each["key"] == key] == wanted.get(key, [])
    check_running([((each["key"],), each) for each in found])
    assert [each["late_tuple"]["values"][0] for each in run.emitted_on("late")] == [event.n for event in late]


@given(arrivals(), st.integers(1, 8), SIZES, st.integers(0, 15))
def test_the_last_tuples_at_every_duration(steps, length, slide, lag):
    run = played(declared(Sliding(length, milliseconds(slide)), lag=milliseconds(lag)), steps)
    on_time, _, watermark = reference.accepted(steps, 3, lag)
    wanted = reference.latest(reference.in_order(on_time, watermark), length, slide, watermark)
    found = [((each["key"], each["end"]), each) for each in evaluated(run)]
    assert {where: each["tuples"] for where, each in found} == wanted
    check_running(found)


@given(arrivals(), SIZES, st.integers(1, 8), st.integers(0, 15))
def test_the_tuples_of_a_duration_after_every_count(steps, length, slide, lag):
    run = played(declared(Sliding(milliseconds(length), slide), lag=milliseconds(lag)), steps)
    on_time, _, watermark = reference.accepted(steps, 3, lag)
    wanted = reference.recent(reference.in_order(on_time, watermark), length, slide)
    found = evaluated(run)
    for key in KEYS:
        assert [each["tuples"] for each in found if each["key"] == key] == wanted.get(key, [])
    check_running([((each["key"],), each) for each in found])


KINDS = st.one_of(
    st.builds(lambda a, b: Sliding(milliseconds(a), milliseconds(b)), SIZES, SIZES),
    st.builds(Session, SIZES.map(milliseconds)),
    st.builds(Sliding, st.integers(1, 5), st.integers(1, 5)),
    st.builds(lambda a, b: Sliding(a, milliseconds(b)), st.integers(1, 5), SIZES),
    st.builds(lambda a, b: Sliding(milliseconds(a), b), SIZES, st.integers(1, 5)),
)


@given(arrivals(), KINDS, st.data())
def test_a_replay_of_what_is_still_held_counts_once(steps, window, data):
    lag = milliseconds(40)  # so that a good part is held
    again = []
    for step in steps:
        again.append(step)
        known = [each for each in again if each is not None]
        if known and data.draw(st.booleans()):
            again.append(data.draw(st.sampled_from(known)))
    plain = played(declared(window, lag=lag), steps)
    held = {tup["n"] for tup in plain.unfinished}
    with_replays = played(declared(window, lag=lag, id_field="n"), again)
    shown = [each.values for each in evaluated(plain)]
    if not plain.emitted_on("late") and len(held) == len({step.n for step in steps if step is not None}):
        # Nothing was acked, so that all that came twice was held.
        assert [each.values for each in evaluated(with_replays)] == shown
    for each in evaluated(with_replays):
        assert len(set(each["tuples"])) == len(each["tuples"])


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 12)), max_size=30), KINDS)
@settings(max_examples=60)
def test_processing_time_is_event_time_by_the_clock(waits, window):
    """The same tuples give the same windows by the time of their arrival as with that time in a field."""
    clocked = declared(window, timestamp_field=None, late_stream=None)
    run = played(clocked, [])
    start, now, steps = round(run.bolt.clock.time() * 1000), 1, []  # the task begins in the first millisecond
    for n, (key, wait) in enumerate(waits):
        run.advance(wait / 1000)
        now += wait
        steps.append(reference.Event(n, 0, key, now))
        origin = Origin("source0", "default", 1, FIELDS)
        run.process(LocalTuple([n, key, 0], "default", origin))
    run.advance(0.2)
    timed = played(declared(window, late_stream=None), [*steps, reference.Event(-1, 0, "end", now + 200), None], 1)

    def shown(run, start):
        return sorted(
            [each["key"], each["end"] - start, each["tuples"], each["new"]]
            for each in evaluated(run)
            if each["key"] != "end"
        )

    assert shown(run, start) == shown(timed, 0)


@given(arrivals(), st.integers(1, 4), st.booleans(), st.sampled_from([Tumbling(seconds(0.02)), Session(seconds(0.01))]))
def test_early_evaluations_come_before_and_the_last_one_has_all(steps, every, accumulating, window):
    lag = milliseconds(40)
    plain = played(declared(window, lag=lag), steps)
    early = played(declared(window, lag=lag, early=every, accumulating=accumulating), steps)
    last = {(each["key"], each["end"]): sorted(each["tuples"]) for each in evaluated(plain)}
    found, parts, taken_back = {}, {}, []
    for each in evaluated(early):
        if each["timing"] == "retracted":  # its tuples come again with the session that it joins
            taken_back.extend(parts.pop(each["key"], []))
            continue
        if each["timing"] == "early":
            assert accumulating or len(each["tuples"]) == every or isinstance(window, Session)
        where = each["key"], each["end"]
        found[where] = sorted(each["tuples"])
        parts.setdefault(each["key"], []).extend(each["tuples"])
    if accumulating:
        assert {where: found[where] for where in last} == last
    else:
        assert all(len(set(mine)) == len(mine) for mine in parts.values()), "a tuple came in two parts"
        assert {n for mine in last.values() for n in mine} <= {
            n for mine in (*parts.values(), taken_back) for n in mine
        }


@given(arrivals(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 15), st.booleans())
def test_early_evaluations_of_counts_by_event_time_are_those_of_tuples_in_order(steps, every, rest, lag, accumulating):
    more = {"window": Tumbling(every + rest), "early": every, "accumulating": accumulating}
    run = played(declared(**more, lag=milliseconds(lag)), steps)
    on_time, _, watermark = reference.accepted(steps, 3, lag)
    in_order = played(declared(**more, timestamp_field=None, late_stream=None), reference.in_order(on_time, watermark))

    def shown(run):
        return [[each[name] for name in ("key", "timing", "tuples", "new")] for each in evaluated(run)]

    assert shown(run) == shown(in_order)


TUMBLING_OR_SESSIONS = st.builds(Tumbling, SIZES.map(milliseconds)) | st.builds(Session, SIZES.map(milliseconds))


@given(arrivals(), TUMBLING_OR_SESSIONS, st.sampled_from([None, 1, 2, milliseconds(700)]), st.booleans())
def test_a_windows_numbers_begin_at_0_and_have_no_gaps(steps, window, early, accumulating):
    kind = {"window": window, "allowed_lateness": milliseconds(30), "early": early, "accumulating": accumulating}
    numbers = {}
    for each in evaluated(played(type("Bolt", (ShowsIds,), kind)(), steps)):
        numbers.setdefault(each["id"], []).append(each["number"])
    assert all(mine == list(range(len(mine))) for mine in numbers.values()), numbers


ANY_KEY = st.one_of(
    st.sampled_from([None, 0, -0.0, 0.0, False, 1, 1.0, True, "", "0", "1", "null", "true", "[0,10]", '",10', "a,b"]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
)


@given(st.lists(st.tuples(ANY_KEY, ANY_KEY, st.integers(-5, 60)), min_size=1, max_size=12), KINDS, st.booleans())
def test_windows_that_differ_have_ids_that_differ_and_the_same_ones_keep_theirs(rows, window, has_two):
    fields = ["key", "other"] if has_two else ["key"]
    if isinstance(window, Sliding) and window.slide_count:
        window = Tumbling(1)  # so that each window by count is one of a tuple
    kind = {"window": window, "key_by": fields, "keep_expired": False, "timestamp_field": "ts"}
    lives = []
    for _ in range(2):
        names = [make_tuple([0, 0, 0], ["key", "other", "ts"], "source0")]
        run = BoltRun(type("Bolt", (ShowsIds,), kind)(), names, None, "bolt", 1, 0)
        run.process(*[list(row) for row in sorted(rows, key=repr)], ["end", "end", 1000])
        run.advance(1)
        lives.append([(repr(each["key"]), each["start"], each["end"], each["id"]) for each in evaluated(run)])
    ids = [id for *_, id in lives[0]]
    assert len(set(ids)) == len(ids)
    if not (isinstance(window, Sliding) and window.slide_count):  # otherwise a task counts anew
        assert lives[0] == lives[1]


def has_all(window):
    """Return whether each tuple is in a window: there are gaps where the slide is longer, or not of the length's kind."""
    if isinstance(window, Session):
        return True
    by_count = bool(window.length_count and window.slide_count and window.slide_count <= window.length_count)
    return by_count or bool(window.length_ms and window.slide_ms and window.slide_ms <= window.length_ms)


class Picky(Gathered):
    """Takes no tuple that has no number."""

    def add(self, accumulator, tup):
        if tup["n"] is None:
            raise ReportedFailedException("no number")
        return super().add(accumulator, tup)


@given(arrivals(), KINDS, st.integers(0, 15), st.integers(0, 25), st.sets(st.integers(0, 40), max_size=10))
def test_a_tuple_that_fails_changes_no_window(steps, window, lag, lateness, bad):
    """It only moves the watermark on, as one of another key does."""
    assume(has_all(window))  # what is in no window is not refused, and counts
    kind = {"window": window, "lag": milliseconds(lag), "aggregate": Picky(), "memory_limit": 1000}
    if isinstance(window, Session) or (window.length_ms and window.slide_ms):
        kind["allowed_lateness"] = milliseconds(lateness)

    def instead(n, key):
        return [
            reference.Event(n, step.source, key or step.key, step.ts) if step is not None and step.n in bad else step
            for step in steps
        ]

    run = played(type("Bolt", (ShowsResult,), kind)(), instead(None, None))
    without = played(type("Bolt", (ShowsResult,), kind)(), instead(-1, "other"))
    for key in KEYS:
        shown = [[each.values for each in evaluated(which) if each["key"] == key] for which in (run, without)]
        assert shown[0] == shown[1]
    assert [tup["n"] for tup in run.acked if tup["n"] is not None] == [
        tup["n"] for tup in without.acked if tup["n"] != -1
    ]
    late = sum(each["late_tuple"]["values"][0] is None for each in run.emitted_on("late"))
    waiting = [tup for tup in run.unfinished if tup["n"] is None]
    assert len(run.failed) + late + len(waiting) == sum(step is not None and step.n in bad for step in steps)
    assert isinstance(run.bolt._windows.windows, Ordered) or not waiting
    assert len(run.errors) == len(run.failed)


@pytest.mark.parametrize("event_time", [True, False])
@pytest.mark.parametrize(
    "window", [Session(milliseconds(9)), Tumbling(3), Sliding(3, milliseconds(9)), Sliding(milliseconds(9), 3)]
)
def test_a_tuple_that_fails_takes_no_memory(window, event_time):
    kind = {"window": window, "aggregate": Picky(), "memory_limit": 5}
    if not event_time:
        kind.update(timestamp_field=None, late_stream=None)
    steps = [step for n in range(20) for step in (reference.Event(None, 0, "ant", n), None)]
    run = played(type("Bolt", (ShowsResult,), kind)(), [*steps, reference.Event(1, 0, "bee", 90), None], 1)
    assert run.bolt._windows.in_memory <= 1
    assert len(run.failed) == 20


class Merges(Aggregate):
    """The times of its tuples, in order; it counts its merges."""

    def __init__(self):
        self.merges = 0

    def init(self):
        return ()

    def add(self, accumulator, tup):
        return (*accumulator, tup["ts"])

    def merge(self, first, second):
        self.merges += 1
        return first + second


LONG = {"topology.message.timeout.secs": 10**7}
STEPS = st.lists(st.integers(0, 400), min_size=1, max_size=40)


@given(STEPS, st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_window_by_duration_takes_few_merges_whatever_its_lengths(steps, length, slide):
    """Times are a fraction of the slide apart, so that there are several tuples in a slide, and windows without new ones."""
    length, slide = max(length, slide), min(length, slide)
    assume(length // slide < 500)
    times = [1 + sum(steps[: n + 1]) * max(slide // 100, 1) for n in range(len(steps))]
    aggregate = Merges()
    kind = {
        "window": Sliding(milliseconds(length), milliseconds(slide)),
        "aggregate": aggregate,
        "timestamp_field": "ts",
    }
    bolt = type("Bolt", (ShowsResult,), {**kind, "key_by": None, "output_fields": ["key", "end", "result", "count"]})
    run = run_bolt(bolt, [[ts] for ts in [*times, times[-1] + 3 * length]], LONG, fields=["ts"])
    run.advance(1)
    wanted = {
        end: [ts for ts in times if end - length < ts <= end]
        for first in times
        for end in range(-(-first // slide) * slide, first + length, slide)
    }
    assert {end: result for _, end, result, _ in run.values} == wanted
    assert aggregate.merges <= 7 * len(wanted) + 7


@given(st.integers(1, 300), st.integers(1, 100), st.integers(1, 100))
def test_a_window_by_count_takes_few_merges_whatever_its_lengths(number, length, slide):
    length, slide = max(length, slide), min(length, slide)
    aggregate = Merges()
    kind = {"window": Sliding(length, slide), "aggregate": aggregate, "timestamp_field": None, "late_stream": None}
    bolt = type("Bolt", (ShowsResult,), {**kind, "key_by": None, "output_fields": ["key", "end", "result", "count"]})
    run = run_bolt(bolt, [[n] for n in range(1, number + 1)], fields=["ts"])
    ends = range(slide, number + 1, slide)
    assert [result for _, _, result, _ in run.values] == [
        list(range(max(end - length, 0) + 1, end + 1)) for end in ends
    ]
    assert aggregate.merges <= 7 * len(ends) + 7


def test_a_tuple_does_not_look_at_each_session_of_its_key():
    def work(sessions):
        bolt = declared(Session(milliseconds(10)), allowed_lateness=milliseconds(10**6))
        run = run_bolt(bolt, [[n, 0, 100 * n] for n in range(sessions)], LONG, fields=["n", "key", "ts"])
        lines = 0

        def count(frame, event, argument):
            nonlocal lines
            lines += 1
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            run.process([sessions, 0, 100 * (sessions // 2)])
        finally:
            sys.settrace(before)
        return lines

    assert work(1000) < 2 * work(10)


class Choosy(Aggregate):
    """The numbers or the texts of its tuples. It takes no -1, and merges no text with a number."""

    def init(self):
        return []

    def add(self, accumulator, tup):
        if tup["v"] == -1:
            raise ValueError("no -1")
        return self.merge(accumulator, [tup["v"]])

    def merge(self, first, second):
        return [*first, *second] if len({*map(type, first), *map(type, second)}) < 2 else first + sum(second)


class Careless(Choosy):
    """The same, and it has changed its accumulator when it refuses a value."""

    def add(self, accumulator, tup):
        before = [*accumulator]
        accumulator.append(tup["v"])
        super().add(before, tup)
        return accumulator


CHOOSY_ROWS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(0, 6), st.sampled_from([1, 2, -1, "a", "b"])), max_size=30
)
CHOOSY_WINDOWS = st.one_of(
    st.builds(lambda a, b: Sliding(milliseconds(a), milliseconds(b)), SIZES, SIZES),
    st.builds(lambda a: Tumbling(milliseconds(a)), SIZES),
    st.builds(lambda a: Session(milliseconds(a)), SIZES),
    st.builds(Sliding, st.integers(1, 8), st.integers(1, 8)),
    st.builds(lambda a, b: Sliding(a, milliseconds(b)), st.integers(1, 5), SIZES),
    st.builds(lambda a, b: Sliding(milliseconds(a), b), SIZES, st.integers(1, 5)),
)


@given(
    CHOOSY_ROWS,
    CHOOSY_WINDOWS,
    st.sampled_from([Choosy(), Careless(), Max("v"), Min("v")]),
    st.integers(0, 20),
    st.booleans(),
)
def test_a_tuple_that_an_aggregate_refuses_fails_alone(rows, window, aggregate, lag, saved):
    """The windows are those of a run without the refused tuples, which ends as well."""
    kind = {
        "window": window,
        "aggregate": aggregate,
        "lag": milliseconds(lag),
        "key_by": "key",
        "timestamp_field": "ts",
        "output_fields": ["key", "start", "end", "result", "count"],
        "process_window": lambda self, w: self.emit([w.key, w.start, w.end, w.result, w.count]),
    }
    ts, steps = 0, []
    for n, (key, pause, value) in enumerate(rows):
        ts += pause
        steps.append([n, key, ts, value])

    def played_with(base, steps):
        run = run_bolt(type("Bolt", (base,), kind)(), [], LONG, fields=["n", "key", "ts", "v"])
        for step in steps:
            run.process(step)
            run.advance(1)
        run.process([len(rows), "other", ts + 1000, 1])
        run.advance(1)
        return run

    run = played_with(WindowedBolt, steps)
    refused = {tup["n"] for tup in run.failed}
    assert not {n for n in refused if steps[n][3] == 1 and not any(type(each[3]) is str for each in steps)}
    if isinstance(aggregate, Choosy) and isinstance(window, Tumbling | Session):  # others may have gaps between them
        assert {n for n, *_, value in steps if value == -1} <= refused

    def by_key(run):
        return {key: [values for values in run.values if values[0] == key] for key in KEYS}

    others = [
        [n, "other", ts, 1] if n in refused else [n, key, ts, value] for n, key, ts, value in steps
    ]  # for the watermark
    again = played_with(WindowedBolt, others)
    assert not again.failed
    assert by_key(again) == by_key(run)
    if saved:  # a tuple that waited for earlier ones is acked by then: its refusal is reported
        stateful, base = played_with(StatefulWindowedBolt, steps), played_with(StatefulWindowedBolt, others)
        assert by_key(stateful) == by_key(base)
        assert not base.failed
