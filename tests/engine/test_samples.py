"""Rates, capacities and curves, against what they are made of."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.engine.clock import VirtualClock
from multilang.engine.samples import EVERY_SECS, MAX_SAMPLES, WINDOW_SECS, Recorder, Sample

STEPS = st.lists(
    st.tuples(
        st.floats(0, 30),  # seconds that pass
        st.integers(0, 1000),  # tuples done in them
        st.integers(0, 5),  # of these failed
        st.floats(0, 1),  # the share of the time in which the task was busy
        st.floats(0, 0.1),  # the latency of each
    ),
    max_size=150,
)


def run(steps):
    """Return a recorder, the time, the last sample, and each (time, sample) that it was given."""
    clock, recorder, given_ = VirtualClock(), Recorder(), [(0.0, Sample(by_task={1: (0, 0.0)}))]
    for secs, done, failed, share, latency in steps:
        old = given_[-1][1]
        clock.sleep(secs)
        busy = (old.by_task[1][1] or 0.0) + share * secs
        new = Sample(
            old.done + done,
            old.failed + failed,
            7,
            old.measured + done,
            old.latency_secs + done * latency,
            {1: (old.done + done, busy)},
        )
        given_.append((clock.now(), new))
        recorder.record(clock.now(), {"a": new})
    return recorder, clock.now(), given_


@given(STEPS)
def test_the_curves_are_short_and_add_up_to_what_was_counted(steps):
    recorder, _, seen = run(steps)
    history = recorder.history()
    assert len(history.at) <= MAX_SAMPLES
    assert all(after - before >= EVERY_SECS for before, after in pairwise(history.at))
    assert sorted(history.at) == list(history.at)
    if not history.at:
        return
    firsts = dict(reversed(seen))  # a time is kept with the first sample of it
    curve = history.components["a"]
    if len(history.at) < MAX_SAMPLES:
        start, base = 0.0, Sample()
        total = sum(
            rate * (at - before) for rate, before, at in zip(curve.rate, (start, *history.at), history.at, strict=False)
        )
        assert total == pytest.approx(firsts[history.at[-1]].done - base.done, rel=1e-6, abs=1e-6)
        assert sum(curve.failed) == firsts[history.at[-1]].failed
    assert all(0 <= share <= 1 for share in curve.capacity)
    assert all(latency is None or -1e-6 <= latency <= 100 + 1e-6 for latency in curve.latency_ms)
    assert set(curve.pending) == {7}


@given(STEPS)
def test_a_rate_is_the_increase_in_at_most_ten_seconds_or_since_the_last_sample(steps):
    recorder, now, seen = run(steps)
    _, sample = seen[-1]
    rates = recorder.rates(now, {"a": sample})
    if rates.window_secs is None:
        return
    then = now - rates.window_secs
    base = min((each for each in seen if each[0] >= then - 1e-9), key=lambda each: each[0])[1]
    assert rates.rate["a"] == pytest.approx((sample.done - base.done) / rates.window_secs, rel=1e-6, abs=1e-6)
    assert 0 <= rates.capacity["a"] <= 1
    assert rates.task_capacity == {1: rates.capacity["a"]}
    kept = [0.0, *recorder.history().at]
    assert rates.window_secs <= WINDOW_SECS or then == pytest.approx(kept[-1])


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_count_that_begins_again_at_0_gives_no_negative_rate(before, after):
    recorder = Recorder(start=None)
    recorder.record(5.0, {"a": Sample(before)})
    rate = recorder.rates(7.0, {"a": Sample(after)}).rate["a"]
    assert rate == (after - before if after >= before else after) / 2


def test_there_is_no_rate_before_any_time_has_passed_and_none_of_a_run_seen_for_the_first_time():
    assert Recorder().rates(0.0, {"a": Sample(5)}).window_secs is None
    unseen = Recorder(start=None)
    assert unseen.rates(100.0, {"a": Sample(5)}).window_secs is None
    unseen.record(100.0, {"a": Sample(5)})
    assert unseen.history().at == ()
    unseen.record(102.0, {"a": Sample(9)})
    assert unseen.history().components["a"].rate == (2.0,)


def test_what_is_not_known_of_a_task_gives_no_capacity():
    recorder = Recorder()
    rates = recorder.rates(2.0, {"a": Sample(by_task={1: (3, None), 2: (5, 1.0)}), "b": Sample(by_task={3: (1, None)})})
    assert rates.capacity == {"a": 0.5}
    assert rates.task_capacity == {2: 0.5}
    assert rates.task_rate == {1: 1.5, 2: 2.5, 3: 0.5}
