"""Quantiles of latencies are right within the width of an interval, whatever was measured."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.engine.counters import TaskStats, summed
from multilang.engine.quantiles import PARTS, bin_of, middle_of, quantiles

SECS = st.floats(1e-9, 1e6)


@given(SECS)
def test_an_interval_is_narrow_and_has_what_is_in_it(secs: float) -> None:
    middle = middle_of(bin_of(secs))
    assert abs(middle - secs) <= secs / (2 * PARTS)
    assert bin_of(middle) == bin_of(secs)


@given(st.lists(SECS, min_size=1, max_size=50), st.integers(1, 3), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_that_of_all_tasks_together(latencies: list[float], tasks: int, share: float) -> None:
    counts: list[dict[int, int]] = [{} for _ in range(tasks)]
    for index, secs in enumerate(latencies):
        own = counts[index % tasks]
        own[bin_of(secs)] = own.get(bin_of(secs), 0) + 1
    (found,) = quantiles(counts, [share])
    exact = sorted(latencies)[ceil(share * len(latencies)) - 1]
    assert found == pytest.approx(exact, rel=1 / (2 * PARTS))


def test_without_latencies_there_are_no_quantiles() -> None:
    assert quantiles([{}], [0.5, 0.99]) == [None, None]
    assert summed("a", "spout", [TaskStats()]).latency_p99_ms is None


def test_counters_tell_the_quantiles_of_the_latency_that_says_most() -> None:
    spout, bolt, inside = TaskStats(), TaskStats(), TaskStats()
    for n in range(1, 101):
        spout.complete.add(n / 1000)
        bolt.process.add(n / 100)
        bolt.execute.add(1000.0)
        inside.execute.add(n / 1_000_000)
    for kind, stats, scale in (("spout", spout, 1), ("bolt", bolt, 10), ("bolt", inside, 0.001)):
        found = summed("a", kind, [stats])
        assert found.latency_p50_ms == pytest.approx(50 * scale, rel=0.04)
        assert found.latency_p99_ms == pytest.approx(99 * scale, rel=0.04)


def test_a_measurement_that_stands_for_many_counts_as_many() -> None:
    stats = TaskStats()
    stats.execute.add(0.001, 99)
    stats.execute.add(1.0, 1)
    found = summed("a", "bolt", [stats])
    assert found.latency_p50_ms == pytest.approx(1, rel=0.04)
    assert found.latency_p99_ms == pytest.approx(1, rel=0.04)
    stats.execute.add(1.0, 1)
    assert summed("a", "bolt", [stats]).latency_p99_ms == pytest.approx(1000, rel=0.04)
