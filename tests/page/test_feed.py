"""The feed of a page: it polls only while somebody watches, and its curves are the run's histories."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from multilang.engine.status import ComponentStatus, History, InputStatus, RunStatus, Series, StreamStatus
from multilang.page.feed import CURVE_SECS, Curves, Feed


def status(seconds=0.0, *components, **of):
    return RunStatus(topology="t", engine="process", state="active", seconds=seconds, components=components, **of)


def bolt(id, executed, *inputs, **of):
    return ComponentStatus(id=id, kind="bolt", tasks=1, executed=executed, inputs=inputs, **of)


@given(st.lists(st.integers(0, 120), max_size=12), st.integers(1, 60))
def test_curves_join_overlapping_histories_without_gaps_or_repeats(steps, length):
    now, curves = 0, Curves()
    for step in steps:
        step = min(step, length)  # a page that asks less often than a history is long misses what was between
        now += step
        at = tuple(float(each) for each in range(max(0, now - length), now))
        series = Series(rate=tuple(each * 2.0 for each in at), failed=tuple(int(each) % 3 for each in at))
        curves.add(
            status(now, history=History(at=at, components={"a": series} if now % 2 else {"a": series, "b": series}))
        )
    expected = [float(each) for each in range(now)]
    expected = [each for each in expected if each > now - 1 - CURVE_SECS]
    assert curves.at == expected
    for columns in curves.components.values():
        assert {len(column) for column in columns.values()} <= {len(expected)}
    if expected:
        assert curves.components["a"]["rate"] == [each * 2.0 for each in expected]


def test_traffic_is_what_came_between_two_statuses():
    read = InputStatus(component="spout", stream="default", executed=100)
    feed = Feed(lambda: asyncio.sleep(0))
    feed.take(status(1.0, bolt("count", 100, read)))
    assert feed.traffic == {("spout", "default", "count"): None}
    feed.take(status(3.0, bolt("count", 700, InputStatus(component="spout", stream="default", executed=500))))
    assert feed.traffic == {("spout", "default", "count"): 200.0}


def test_traffic_of_a_stream_that_is_not_counted_by_its_reader_is_what_was_emitted():
    def now(secs, emitted, executed):
        reads = [InputStatus(component="a", stream="default"), InputStatus(component="b", stream="default")]
        sources = [
            ComponentStatus(id=id, kind="spout", tasks=1, streams=(StreamStatus(name="default", emitted=n),))
            for id, n in zip("ab", emitted, strict=True)
        ]
        return status(secs, *sources, bolt("join", executed, *reads), bolt("one", executed, reads[0]))

    feed = Feed(lambda: asyncio.sleep(0))
    feed.take(now(0.0, (0, 0), 0))
    feed.take(now(10.0, (50, 70), 120))
    assert feed.traffic == {("a", "default", "join"): 5.0, ("b", "default", "join"): 7.0, ("a", "default", "one"): 12.0}


def test_a_count_that_a_cluster_has_not_reported_anew_is_no_traffic_of_0():
    def now(secs, executed):
        read = InputStatus(component="spout", stream="default", executed=executed)
        return replace(status(secs, bolt("count", executed, read)), engine="storm")

    feed, edge = Feed(lambda: asyncio.sleep(0)), ("spout", "default", "count")
    found = []
    for secs, executed in ((1.0, 100), (3.0, 100), (11.0, 600), (13.0, 600), (72.0, 600)):
        feed.take(now(secs, executed))
        found.append(feed.traffic[edge])
    assert found == [None, None, 50.0, 50.0, 0.0]


def test_another_run_of_the_same_name_begins_anew():
    feed = Feed(lambda: asyncio.sleep(0))
    history = History(at=(1.0, 2.0), components={"a": Series(rate=(1.0, 2.0))})
    feed.take(status(5.0, history=history, id="t-1"))
    feed.take(status(0.5, id="t-2"))
    assert feed.curves.at == []


def test_nobody_is_asked_while_nobody_looks():
    async def scenario():
        asked = asyncio.Semaphore(0)

        async def ask():
            asked.release()
            return status(1.0)

        feed = Feed(ask, every=0.0)
        following = asyncio.create_task(feed.follow())
        for _ in range(100):
            await asyncio.sleep(0)
        assert asked.locked()  # nobody looks
        feed.watch()
        await asked.acquire()
        await asked.acquire()
        feed.unwatch()
        for _ in range(100):
            await asyncio.sleep(0)
        while not asked.locked():
            await asked.acquire()
        for _ in range(100):
            await asyncio.sleep(0)
        assert asked.locked()  # nobody looks any more
        feed.end()
        feed.watch()
        await asyncio.wait_for(following, 30)

    asyncio.run(scenario())


def test_a_question_without_an_answer_is_shown_and_asked_again():
    answers = iter([OSError("nobody there"), status(2.0)])

    async def ask():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def scenario():
        feed = Feed(ask)
        await feed.refresh()
        assert (feed.problem, feed.status) == ("nobody there", None)
        await feed.refresh()
        assert (feed.problem, feed.status.seconds) == ("", 2.0)

    asyncio.run(scenario())
