"""map_async gives what plain Python gives, with a bound on the calls under way, whatever fails and dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from multilang.local import Faults
from multilang.state.providers import provider_of
from multilang.streams import StreamBuilder
from multilang.topology.errors import TopologyError
from multilang.windowing import Tumbling
from tests.patience import patient
from tests.soak import SOAK
from tests.state.topologies import stored
from tests.streams.calls import by_three, number_squared, squared
from tests.streams.pipelines import Values, increased, repeated

SHAPES = st.fixed_dictionaries(
    {
        "items": st.lists(st.integers(0, 30), max_size=20),
        "tasks": st.integers(1, 3),
        "spread": st.integers(0, 3),
        "before": st.sampled_from([None, "map", "flat_map", "key_by"]),
        "limit": st.integers(1, 8),
        "ordered": st.booleans(),
        "end": st.sampled_from(["values", "count", "again", "merge"]),
    }
)


def built(shape, conf=None):
    s = StreamBuilder()
    stream = s.source(shape["items"], parallelism=shape["tasks"])
    if shape["spread"]:
        stream = stream.repartition(shape["spread"])
    settings = {"limit": shape["limit"], "ordered": shape["ordered"]}
    if shape["before"] == "key_by":
        results = stream.key_by(by_three).map_async(number_squared, **settings)
        results.through(Values, name="end")
        return s.build("async", conf)
    if shape["before"] == "map":
        stream = stream.map(increased)
    elif shape["before"] == "flat_map":
        stream = stream.flat_map(repeated)
    results = stream.map_async(squared, **settings)
    if shape["end"] == "again":
        results = results.map_async(squared, **settings)
    elif shape["end"] == "merge":
        results = results.merge(stream)
    if shape["end"] == "count":
        results.key_by(by_three).count().through(Values, name="end")
    else:
        results.through(Values, name="end")
    return s.build("async", conf)


def worked_out(shape):
    items = shape["items"]
    if shape["before"] == "key_by":
        return Counter(f"[{n % 3}, {n * n}]" for n in items)
    if shape["before"] == "map":
        items = [n + 1 for n in items]
    elif shape["before"] == "flat_map":
        items = [n for n in items for _ in range(n % 3)]
    results = [n * n for n in items]
    if shape["end"] == "again":
        results = [n * n for n in results]
    elif shape["end"] == "merge":
        results += items
    if shape["end"] == "count":
        return Counter(n % 3 for n in results)
    return Counter(map(str, results))


def seen(shape, run):
    values = [tup["value"] for tup in run.captured("end")]
    if shape["end"] == "count" and shape["before"] != "key_by":
        last: dict[int, int] = {}
        for key, count in values:
            last[key] = max(count, last.get(key, 0))
        return Counter(last)
    return Counter(map(str, values))


def check(shape, mode, conf=None):
    with LocalCluster(mode, seed=7, fail_fast=mode != "process") as cluster:
        run = cluster.submit(built(shape, conf), capture=["end"])
        run.wait(timeout=patient(120))
        assert run.errors == []
        assert seen(shape, run) == worked_out(shape)


@settings(max_examples=300 if SOAK else 15, deadline=None)
@given(SHAPES)
def test_any_pipeline_gives_what_plain_python_gives(shape) -> None:
    check(shape, "inprocess")
    check(shape, "simulated")


@settings(max_examples=30 if SOAK else 2, deadline=None)
@given(SHAPES, st.sampled_from(["tuple", "block"]))
def test_any_pipeline_gives_it_in_processes(shape, exchange) -> None:
    check(shape, "process", {"multilang.exchange": exchange})


@settings(max_examples=100 if SOAK else 5, deadline=None)
@given(SHAPES)
def test_any_pipeline_gives_it_with_exact_state(shape) -> None:
    with TemporaryDirectory() as folder:
        conf = {
            "multilang.state.alignment": "exact",
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": f"{folder}/state.sqlite"},
            "topology.state.checkpoint.interval.ms": 100,
        }
        check(shape, "simulated", conf)


def run(build, mode="simulated", conf=None, timeout=600):
    """Run what ``build`` declares; return the values at its end in their order, and the run's errors."""
    s = StreamBuilder()
    build(s).through(Values, name="end")
    with LocalCluster(mode, {"multilang.max.replays": 3}, seed=1) as cluster:
        found = cluster.submit(s.build("async", conf), capture=["end"])
        found.wait(timeout=timeout)
        return [tup["value"] for tup in found.captured("end")], found


def test_never_more_calls_are_under_way_than_the_limit() -> None:
    now, most = 0, 0
    meet: asyncio.Event | None = None

    async def call(n):
        nonlocal now, most, meet
        meet = meet or asyncio.Event()
        now += 1
        most = max(most, now)
        if now == 4:
            meet.set()
        if n < 4:
            await meet.wait()  # until four are under way
        now -= 1
        return n

    values, _ = run(lambda s: s.source(range(20)).map_async(call, limit=4))
    assert values == list(range(20))
    assert most == 4


def test_results_come_in_order_or_as_they_are_there() -> None:
    gone: asyncio.Event | None = None

    async def second_first(n):
        nonlocal gone
        gone = gone or asyncio.Event()
        if n == 0:
            await gone.wait()
        gone.set()
        return n

    conf = {"topology.max.spout.pending": 4}
    assert run(lambda s: s.source(range(2)).map_async(second_first, limit=2), conf=conf)[0] == [0, 1]

    sent, waiting = None, None

    async def when_sent(n):
        nonlocal sent, waiting
        sent, waiting = sent or asyncio.Event(), asyncio.get_running_loop()
        if n == 0:
            await sent.wait()
        return n

    def tell(n):
        waiting.call_soon_threadsafe(sent.set)

    def build(s):
        return s.source(range(2)).map_async(when_sent, limit=2, ordered=False).peek(tell)

    assert run(build, conf=conf)[0] == [1, 0]


@pytest.mark.parametrize("timeout", [None, 600])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("five"), "ValueError: five"),
        (SystemExit("five"), "SystemExit: five"),
        (asyncio.CancelledError(), "CancelledError: it was cancelled"),
        (TimeoutError("the server's own"), "TimeoutError: the server's own"),
    ],
)
def test_a_call_that_fails_fails_its_tuple_alone(error, told, timeout) -> None:
    async def picky(n):
        if n == 5:
            raise error
        return n

    values, found = run(lambda s: s.source(range(10)).map_async(picky, timeout=timeout, name="look-up"))
    assert sorted(values) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert found.counters["source"].acked == 9
    assert f"stage 'look-up': {told}" in str(found.errors[0])
    if not isinstance(error, asyncio.CancelledError | TimeoutError):  # which asyncio makes anew on their way
        assert "raise error" in found.errors[0].message  # the line


def test_a_function_behind_a_call_fails_its_tuple_alone() -> None:
    def picky(n):
        if n == 25:
            raise ValueError("25")
        return n

    values, found = run(lambda s: s.source(range(10)).map_async(squared).map(picky, name="picky"))
    assert sorted(values) == [n * n for n in range(10) if n != 5]
    assert "stage 'picky': ValueError: 25" in str(found.errors[0])


def test_a_call_that_takes_too_long_fails_its_tuple() -> None:
    tries = []

    async def slow(n):
        tries.append(n)
        if tries.count(n) == 1:
            await asyncio.Event().wait()
        return n

    values, found = run(lambda s: s.source([3]).map_async(slow, timeout=0.05))
    assert values == [3]
    assert "stage 'map_async': TimeoutError: no result for 3 within 0.05 seconds" in str(found.errors[0])
    assert "Traceback" not in found.errors[0].message


def test_a_plain_function_is_refused() -> None:
    _, found = run(lambda s: s.source([3]).map_async(increased))
    assert "which can't be awaited; map_async takes an async function, map a plain one" in str(found.errors[0])


@pytest.mark.parametrize(
    ("more", "message"), [({"limit": 0}, "limit=0"), ({"limit": True}, "limit=True"), ({"timeout": 0}, "timeout=0")]
)
def test_arguments_that_can_not_be_are_refused(more, message) -> None:
    with pytest.raises(TopologyError, match=message):
        StreamBuilder().source([1]).map_async(squared, **more)


def test_windows_behind_it_have_each_result() -> None:
    def build(s):
        keyed = s.source(range(24), parallelism=2).map_async(squared, limit=3).key_by(by_three)
        return keyed.window(Tumbling(4)).count()

    values, _ = run(build)
    assert Counter(key for key, _ in values) == Counter({0: 2, 1: 4})


@pytest.mark.parametrize("seed", range(200 if SOAK else 4))
def test_with_exact_alignment_each_result_counts_once_whatever_dies(tmp_path, seed) -> None:
    """All that is under way is done before a checkpoint passes; otherwise a count would lack it or have it twice."""
    conf = {
        "multilang.state.alignment": "exact",
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "topology.message.timeout.secs": 5,
        "topology.max.spout.pending": 8,
    }
    s = StreamBuilder()
    s.source([n % 7 for n in range(100)], parallelism=2).map_async(squared, limit=5, ordered=seed % 2 == 0).key_by(
        str
    ).count()
    faults = Faults(crash=0.02, acker_crash=0.0003, late=0.0005, spouts=True, limit=15)
    with LocalCluster("simulated", conf, seed=seed, faults=faults) as cluster:
        found = cluster.submit(s.build("async", conf))
        found.wait(timeout=24 * 3600)
        assert found.faults_so_far
    counts = {key: value[0] for key, value in stored(provider_of(conf), "count", 2).items()}
    assert counts == Counter(str((n % 7) ** 2) for n in range(100))
