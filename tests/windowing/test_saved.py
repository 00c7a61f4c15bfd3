"""Windows in a state: a crash, a rollback or a restart changes nothing in what they hold."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.component.errors import ConfigError
from multilang.engine.tuples import LocalTuple, Origin
from multilang.local import Faults, LocalCluster, LocalClusterError
from multilang.protocol.codec import dumps, loads
from multilang.state import UnusableStateError
from multilang.testing import BoltRun, VirtualClock, make_tuple
from multilang.topology import TopologyBuilder, TopologyError
from multilang.windowing import (
    Aggregate,
    ApproximateDistinct,
    Count,
    Distinct,
    Max,
    MemoryLimitError,
    Session,
    Sliding,
    StatefulWindowedBolt,
    Sum,
    Tumbling,
    WindowedBolt,
    hours,
    milliseconds,
    seconds,
)
from multilang.windowing.watermarks import Watermarks
from tests.patience import patient
from tests.soak import SOAK
from tests.windowing import reference
from tests.windowing.test_properties import SIZES, arrivals
from tests.windowing.topologies import Events, Full, topology, wanted

FIELDS = ("n", "key", "ts")


class Shows(StatefulWindowedBolt):
    output_fields = ["key", "end", "timing", "tuples", "number"]
    key_by = "key"
    timestamp_field = "ts"
    late_stream = "late"

    def process_window(self, window):
        shown = window.result if self.aggregate else sorted(tup["n"] for tup in window.tuples)
        self.emit([window.key, window.end, window.timing, shown, window.number])


KINDS = st.one_of(
    st.builds(lambda a, b: Sliding(milliseconds(a), milliseconds(b)), SIZES, SIZES),
    st.builds(Session, SIZES.map(milliseconds)),
    st.builds(Sliding, st.integers(1, 5), st.integers(1, 5)),
    st.builds(lambda a, b: Sliding(a, milliseconds(b)), st.integers(1, 5), SIZES),
    st.builds(lambda a, b: Sliding(milliseconds(a), b), SIZES, st.integers(1, 5)),
)


def declared(window, **more):
    return type("Bolt", (Shows,), {"window": window, **more})


def started(kind, state=()):
    names = [make_tuple([0, "", 0], FIELDS, f"source{index}") for index in range(3)]
    return BoltRun(kind(), names, None, "bolt", 1, 0, state=dict(state))


def give(run, step):
    if step is None:
        run.advance(1)
    else:
        run.process(
            LocalTuple([step.n, step.key, step.ts], "default", Origin(f"source{step.source}", "default", 1, FIELDS))
        )


def saved(run):
    """Return the contents of a store after a checkpoint, in the form in which it comes back from JSON."""
    run.bolt.pre_prepare(1)
    return {key: loads(dumps(value)) for key, value in run.state.items()}


def emitted(run):
    return [each.values for each in run.emitted if each.stream == "default"]


LIMITED = [
    {},
    {"aggregate": Count()},
    {"aggregate": Sum("n")},
    {"aggregate": Distinct("n")},
    {"aggregate": ApproximateDistinct("n")},
    {"id_field": "n"},
    {"memory_limit": 1},
    {"memory_limit": 3, "aggregate": Sum("n")},
]


KEYS = st.sampled_from([("ant", "bee"), (1, True), (1.0, 1), (0, False), (0.0, -0.0), (None, "null"), ("1", 1)])


@given(arrivals(), KINDS, st.sampled_from(LIMITED), st.integers(0, 15), st.integers(0, 20), KEYS, st.data())
def test_a_restart_from_a_checkpoint_changes_no_window(steps, window, more, lag, lateness, keys, data):
    kind = declared(window, lag=milliseconds(lag), **more)
    if kind().window.__class__ is Session or (window.length_ms and window.slide_ms):
        kind.allowed_lateness = milliseconds(lateness)
    for step in filter(None, steps):
        step.key = keys[step.key == "bee"]
    straight, stopping = started(kind), started(kind)
    found = []
    for step in steps:
        give(straight, step)
        give(stopping, step)
        if data.draw(st.booleans()):
            found += emitted(stopping)
            stopping = started(kind, saved(stopping))
    found += emitted(stopping)
    assert sorted(map(repr, found)) == sorted(map(repr, emitted(straight)))
    assert straight.unfinished == []  # acked with the checkpoint


@given(arrivals(), KINDS, st.sampled_from([{}, {"aggregate": Sum("n")}]), st.integers(0, 15), st.booleans(), st.data())
def test_replays_of_what_a_checkpoint_has_change_no_window(steps, window, more, lag, event_time, data):
    of_time = {"lag": milliseconds(lag)} if event_time else {"timestamp_field": None, "late_stream": None}
    kind = declared(window, id_field="n", **of_time, **more)
    straight, stopping = started(kind), started(kind)
    found, before = [], []
    for step in steps:
        give(straight, step)
        give(stopping, step)
        if step is not None:
            before.append(step)
        if before and data.draw(st.booleans()):
            found += emitted(stopping)
            stopping = started(kind, saved(stopping))
            for again in data.draw(st.lists(st.sampled_from(before), max_size=5)):
                give(stopping, again)
    found += emitted(stopping)
    if event_time:
        assert sorted(map(repr, found)) == sorted(map(repr, emitted(straight)))
    elif window.__class__ is not Session and window.length_count and window.slide_count:
        shown = [sorted((key, tuples) for key, _, _, tuples, _ in rows) for rows in (found, emitted(straight))]
        assert shown[0] == shown[1]
    assert stopping.unfinished == []


@pytest.mark.parametrize("more", [{}, {"memory_limit": 1}, {"aggregate": Count()}])
@pytest.mark.parametrize("window", [Tumbling(milliseconds(100)), Session(milliseconds(50))])
def test_replays_are_known_after_a_restart_though_the_first_tuples_were_stored_without_ids(window, more):
    kind = declared(window, id_field="n", **more)
    run = started(declared(window, **more))
    for numbers in [0, 1, 2], [3, 4], [4, 3, 5], [5, 6]:
        for n in numbers:
            run.process(make_tuple([n, "ant", 5], FIELDS, "source0"))
        run = started(kind, saved(run))
    for index in range(3):
        run.process(make_tuple([9, "ant", 300], FIELDS, f"source{index}"))
    run.advance(20)
    assert emitted(run)[0][3] == (7 if "aggregate" in more else list(range(7)))


TUMBLING = st.one_of(
    st.builds(lambda size: Tumbling(milliseconds(size)), SIZES),
    st.builds(Session, SIZES.map(milliseconds)),
    st.builds(Tumbling, st.integers(4, 6)),
)
EVERY = st.sampled_from([1, 2, 3, milliseconds(700)])


@settings(max_examples=60)
@given(arrivals(), TUMBLING, st.sampled_from(LIMITED), st.integers(0, 15), EVERY, st.booleans(), st.data())
def test_a_restart_changes_no_early_evaluation(steps, window, more, lag, early, accumulating, data):
    kind = declared(window, lag=milliseconds(lag), early=early, accumulating=accumulating, **more)
    if kind().window.__class__ is Session or window.length_ms:
        kind.allowed_lateness = milliseconds(data.draw(st.integers(0, 20)))
    straight, stopping = started(kind), started(kind)
    found = []
    for step in steps:
        give(straight, step)
        give(stopping, step)
        if step is None and data.draw(st.booleans()):  # its clock begins anew, too
            found += emitted(stopping)
            stopping = started(kind, saved(stopping))
    found += emitted(stopping)
    if type(early) is int:
        assert sorted(map(repr, found)) == sorted(map(repr, emitted(straight)))
        return
    # A timer of 0.7 s comes at other instants after a restart, so that its evaluations divide the tuples in another way.
    ends = [[repr(row) for row in rows if row[2] == "on time"] for rows in (found, emitted(straight))]
    if accumulating:
        assert len(ends[0]) == len(ends[1])
    elif kind.aggregate is None:
        numbers = [sorted(n for row in rows for n in row[3]) for rows in (found, emitted(straight))]
        assert numbers[0] == numbers[1]


@pytest.mark.parametrize("accumulating", [True, False])
@pytest.mark.parametrize("window", [Tumbling(hours(1)), Tumbling(10), Session(hours(1))])
def test_early_evaluations_by_duration_come_once_for_each_batch_with_new_tuples(window, accumulating):
    """An engine whose input comes in batches moves windows on in a round without rows, with new objects."""
    early = {"early": seconds(5), "accumulating": accumulating}
    kind = declared(window, **early) if window.__class__ is Session or window.length_ms else None
    kind = kind or declared(window, timestamp_field=None, late_stream=None, **early)
    state, found = {}, []
    for batch, rows in enumerate([[1, 2], [], [3], [], []]):
        conf = {"multilang.batch": {"time_ms": batch * 1000, "merged": ["source0"]}}
        for numbers in (rows, None):
            names = [make_tuple([0, "", 0], FIELDS, "source0")]
            run = BoltRun(kind(), names, conf, "bolt", 1, 0, state=state)
            for n in numbers or ():
                give(run, reference.Event(n, 0, "ant", n))
            if numbers is None:
                run.bolt.set_timer(0, partial(run.bolt.move_windows, is_last=False))
                run.advance(0)
            run.bolt.save_windows()
            state = {key: loads(dumps(value)) for key, value in run.state.items()}
            found += [(batch, row[2], row[3]) for row in emitted(run)]
    assert found == [(0, "early", [1, 2]), (2, "early", [1, 2, 3] if accumulating else [3])]


class Nested(Aggregate):
    """Shows what was merged with what."""

    def init(self):
        return []

    def add(self, accumulator, tup):
        return [*accumulator, tup["n"]]

    def merge(self, first, second):
        return [first, second]


@given(arrivals(), SIZES, SIZES, st.integers(0, 15), st.data())
def test_a_restart_does_not_change_what_is_merged_with_what(steps, length, slide, lag, data):
    """So a sum of fractions keeps its last digit."""
    window = Sliding(milliseconds(length), milliseconds(slide))
    kind = declared(window, lag=milliseconds(lag), aggregate=Nested())
    straight, stopping = started(kind), started(kind)
    found = []
    for step in steps:
        give(straight, step)
        give(stopping, step)
        if data.draw(st.booleans()):
            found += emitted(stopping)
            stopping = started(kind, saved(stopping))
    found += emitted(stopping)
    assert sorted(map(repr, found)) == sorted(map(repr, emitted(straight)))


class Seen(Aggregate):
    """Has accumulators that JSON does not have."""

    def init(self):
        return set()

    def add(self, accumulator, tup):
        return accumulator | {tup["n"]}


def test_an_accumulator_that_no_state_can_keep_is_told_with_its_aggregate():
    run = started(declared(Tumbling(milliseconds(10)), aggregate=Seen()))
    give(run, reference.Event(1, 0, "key", 5))
    with pytest.raises(
        ValueError, match=r"the aggregate Seen has .* Define Seen.save\(accumulator\), which .* load\(saved\)"
    ):
        run.bolt.pre_prepare(1)


@given(arrivals(), KINDS, st.integers(0, 15), st.data())
def test_a_rollback_goes_back_to_the_checkpoint(steps, window, lag, data):
    kind = declared(window, lag=milliseconds(lag))
    cut = data.draw(st.integers(0, len(steps)))
    run = started(kind)
    for step in steps[:cut]:
        give(run, step)
    run.bolt.pre_prepare(1)
    run.state.prepare_commit(1)
    run.state.commit(1)
    again = started(kind, dict(run.state.items()))
    extra = data.draw(st.integers(0, 6))
    for step in steps[cut : cut + extra]:
        give(run, step)
    run.bolt.pre_rollback()
    run.state.rollback()
    run.emitted.clear()
    for step in steps[cut:]:
        give(run, step)
        give(again, step)
    assert sorted(map(repr, emitted(run))) == sorted(map(repr, emitted(again)))


def test_a_checkpoint_writes_what_changed_since_the_one_before():
    run = started(declared(Tumbling(hours(1))))
    for n in range(200):
        give(run, reference.Event(n, n % 3, f"key{n % 100}", 1000 + n))
    written = []
    put = run.state.put
    run.state.put = lambda key, value: (written.append(key), put(key, value))
    run.bolt.pre_prepare(1)
    assert len(written) == 101  # the keys, and the task's own
    written.clear()
    run.bolt.pre_prepare(2)
    assert written == []
    give(run, reference.Event(200, 0, "key7", 5000))
    run.bolt.pre_prepare(3)
    panes = [key for key in written if key[0] == "$window"]
    assert panes == [("$window", '"key7"', 3600000, 2)]  # its third tuple alone
    assert len(run.state.get(panes[0])[0]) == 1


@pytest.mark.parametrize("aggregate", [None, Sum("n")])
@pytest.mark.parametrize("window", [Tumbling(hours(1)), Session(hours(1)), Tumbling(1000)])
def test_what_was_given_out_does_not_come_again_after_a_restart(window, aggregate):
    kind = declared(window, early=2, accumulating=False, aggregate=aggregate, timestamp_field=None, late_stream=None)
    run, found = started(kind), []
    for n in range(1, 20):
        give(run, reference.Event(n, 0, "ant", 1000 + n))
        if n % 3 == 0:
            found += emitted(run)
            run = started(kind, saved(run))
    found += emitted(run)
    shown = [row[3] for row in found if row[2] == "early"]
    if aggregate is None:
        assert [n for numbers in shown for n in numbers] == [*range(1, 19)]
    else:
        assert sum(shown) == sum(range(1, 19))


def many(number, keys):
    return [reference.Event(n, 0, f"key{n % keys}", 1000 + n) for n in range(number)]


@pytest.mark.parametrize("aggregate", [None, Sum("n")])
@pytest.mark.parametrize("window", [Tumbling(hours(1)), Session(hours(1)), Sliding(hours(2), hours(1))])
def test_windows_over_the_limit_are_spilled_to_the_store_and_read_again(window, aggregate):
    kind = declared(window, memory_limit=50, aggregate=aggregate)
    free = declared(window, aggregate=aggregate)
    run, other = started(kind), started(free)
    most = 0
    for n, event in enumerate(many(2000, 200)):
        give(run, event)
        give(other, event)
        if n % 20 == 19:
            run.bolt.pre_prepare(n)
        most = max(most, in_memory(run))
    assert most < 50 + 20  # at most what came since the checkpoint above the limit
    assert in_memory(other) == (2000 if aggregate is None else 200)
    again = started(kind, saved(run))
    assert in_memory(again) <= 50
    for each in (run, again, other):
        for source in range(3):
            give(each, reference.Event(9999, source, "last", hours(9).total_seconds().__int__() * 1000))
        give(each, None)
    assert sorted(emitted(run)) == sorted(emitted(again)) == sorted(emitted(other)) != []


def test_a_value_that_a_spilled_part_of_its_windows_refuses_fails_alone():
    run = started(declared(Sliding(seconds(20), seconds(10)), memory_limit=1, aggregate=Max("n")))
    run.process(make_tuple([1, "ant", 1_000], FIELDS, "source0"))
    run.bolt.pre_prepare(1)
    run.process(make_tuple([2, "bee", 2_000], FIELDS, "source0"))  # the ant's part is spilled
    run.process(make_tuple(["text", "ant", 11_000], FIELDS, "source0"))
    assert [tup["n"] for tup in run.failed] == ["text"]


def in_memory(run):
    """Return the number of tuples or accumulators that the windows of a bolt have in memory."""
    lines = run.bolt._windows.windows._lines
    panes = [
        pane
        for line in lines.values()
        for pane in (line.values() if isinstance(line, dict) else [each.pane for each in line])
    ]
    return sum(
        len(pane.accumulator) if isinstance(pane.accumulator, list) else pane.accumulator is not None for pane in panes
    )


@pytest.mark.parametrize("base", [WindowedBolt, StatefulWindowedBolt])
def test_without_spilling_a_full_memory_ends_the_task_with_a_reason(base):
    class Full(base):
        output_fields = ["count"]
        window = Tumbling(100)
        memory_limit = 10
        at_memory_limit = "error"

        def process_window(self, window): ...

    run = (
        started(Full) if base is StatefulWindowedBolt else BoltRun(Full(), [make_tuple([0], ["n"])], None, "bolt", 1, 0)
    )
    for n in range(10):
        run.process(make_tuple([n, "ant", n], FIELDS, "source0"))
    with pytest.raises(MemoryLimitError, match=r"'bolt': its windows have 10 tuples in memory, and memory_limit is 10"):
        run.process(make_tuple([10, "ant", 10], FIELDS, "source0"))


@pytest.mark.parametrize("mode", ["simulated", "inprocess", "process"])
def test_a_full_memory_ends_the_topology_instead_of_filling_it_again_for_ever(mode):
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology(1, Full))
        with pytest.raises(
            LocalClusterError, match=r"'windows' ends: .*'counts': its windows have 20 accumulators in memory, .*spill"
        ):
            run.wait(timeout=patient(60))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"memory_limit": 0}, "memory_limit is 0; give a whole number"),
        (
            {"memory_limit": 5, "at_memory_limit": "drop"},
            "at_memory_limit is 'drop'; use one of None, 'error', 'spill'",
        ),
        ({"at_memory_limit": "error"}, "there is no limit; set memory_limit, too"),
    ],
)
def test_a_wrong_limit_is_refused(settings, says):
    with pytest.raises(ConfigError, match=says):
        topology(1, declared(Tumbling(5), **settings))


def test_a_bolt_without_state_has_no_store_to_spill_to():
    class Plain(WindowedBolt):
        output_fields = ["key", "end", "count"]
        window = Tumbling(5)
        memory_limit = 100
        at_memory_limit = "spill"

        def process_window(self, window): ...

    with pytest.raises(ConfigError, match="it has no state to spill to; make it a StatefulWindowedBolt"):
        topology(1, Plain)


def written_bytes(run):
    """Return the bytes that a checkpoint puts into the state."""
    found = []
    put = run.state.put
    run.state.put = lambda key, value: (found.append(len(dumps([key, value]))), put(key, value))
    run.bolt.pre_prepare(len(found) + 1)
    run.state.put = put
    return sum(found)


@pytest.mark.parametrize("aggregate", [None, Count(), Distinct("n")])
def test_the_bytes_of_a_checkpoint_grow_with_what_changed_not_with_what_is_open(aggregate):
    sizes = {}
    for open_windows in (100, 10_000):
        run = started(declared(Tumbling(hours(1)), aggregate=aggregate))
        for event in many(open_windows, open_windows):
            give(run, event)
        sizes[open_windows, "all"] = written_bytes(run)
        for event in many(10, 10):
            give(run, event)
        sizes[open_windows, "ten"] = written_bytes(run)
        assert written_bytes(run) == 0
    assert sizes[10_000, "all"] > 90 * sizes[100, "all"]
    assert sizes[10_000, "ten"] < 1.5 * sizes[100, "ten"]
    assert sizes[100, "ten"] < sizes[100, "all"] / 4


def test_what_is_over_leaves_the_state():
    run = started(declared(Tumbling(seconds(1))))
    for source in range(3):
        give(run, reference.Event(source, source, "ant", 10))
    run.bolt.pre_prepare(1)
    assert any(key[0] == "$window" for key, _ in run.state.items())
    for source in range(3):
        give(run, reference.Event(3 + source, source, "bee", 20_000_000))
    give(run, None)
    run.bolt.pre_prepare(2)
    assert [key[1] for key, _ in run.state.items() if key[0] == "$window"] == ['"bee"']


class Arrivals(StatefulWindowedBolt):
    output_fields = ["count"]
    key_by = "key"
    window = Tumbling(seconds(1))
    aggregate = Count()

    def process_window(self, window):
        self.emit([window.result])


LIVES = st.lists(
    st.tuples(st.integers(-5000, 5000), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=6)),
    max_size=5,
)


@given(LIVES)
def test_a_clock_that_is_set_back_or_ahead_counts_nothing_twice(lives):
    day, state, given, counted = 100_000.0, {}, 0, 0
    for set_by, steps in lives:
        clock = VirtualClock()
        clock.move_to(max(day + set_by, 0))
        names = [make_tuple([0, "", 0], FIELDS, "source0")]
        run = BoltRun(Arrivals(), names, None, "bolt", 1, 0, state=dict(state), clock=clock)
        for secs, tuples in steps:
            run.advance(secs / 3)
            for n in range(tuples):
                run.process(make_tuple([n, f"key{n % 2}", 0], FIELDS, "source0"))
                given += 1
        run.advance(0)
        state, day = saved(run), clock.now()
        counted += sum(each[0] for each in emitted(run))
    clock = VirtualClock()
    clock.move_to(day + 100_000)
    run = BoltRun(
        Arrivals(), [make_tuple([0, "", 0], FIELDS, "source0")], None, "bolt", 1, 0, state=dict(state), clock=clock
    )
    run.advance(10)
    assert counted + sum(each[0] for each in emitted(run)) == given


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"window": Tumbling(10)}, {"window": Tumbling(seconds(10))}),
        ({"window": Tumbling(seconds(10))}, {"window": Tumbling(10)}),
        ({"window": Tumbling(seconds(10))}, {"window": Session(seconds(10))}),
        ({"window": Sliding(5, seconds(1))}, {"window": Sliding(seconds(5), 1)}),
        ({"window": Tumbling(10)}, {"window": Tumbling(10), "aggregate": Count()}),
        ({"window": Tumbling(10), "aggregate": Count()}, {"window": Tumbling(10)}),
        ({"window": Tumbling(10), "aggregate": Count()}, {"window": Tumbling(10), "aggregate": Sum("n")}),
        ({"window": Tumbling(10), "aggregate": Sum("ts")}, {"window": Tumbling(10), "aggregate": Sum("n")}),
        ({"window": Tumbling(10)}, {"window": Tumbling(10), "timestamp_field": None, "late_stream": None}),
        ({"window": Tumbling(seconds(10))}, {"window": Tumbling(seconds(7))}),
        ({"window": Sliding(seconds(10), seconds(5))}, {"window": Sliding(seconds(14), seconds(7))}),
        ({"window": Tumbling(10)}, {"window": Tumbling(11)}),
        ({"window": Tumbling(10)}, {"window": Tumbling(10), "key_by": ["key", "n"]}),
    ],
)
def test_windows_that_are_declared_otherwise_do_not_go_on_with_stored_ones(then, now):
    run = started(declared(**then))
    give(run, reference.Event(1, 0, "ant", 10))
    with pytest.raises(
        UnusableStateError, match=r"the stored state has .* and this bolt has .*multilang state rm TOPOLOGY bolt"
    ):
        started(declared(**now), saved(run))


def test_windows_that_are_written_otherwise_go_on():
    run = started(declared(Tumbling(seconds(60))))
    give(run, reference.Event(1, 0, "ant", 10))
    again = started(declared(Sliding(hours(1) / 60, seconds(60))), saved(run))
    give(again, reference.Event(2, 0, "ant", 11))
    for source in range(3):
        give(again, reference.Event(3, source, "bee", 10**6))
    give(again, None)
    assert emitted(again) == [["ant", 60_000, "on time", [1, 2], 0]]


def test_a_source_whose_tasks_have_other_ids_after_a_restart_does_not_hold_up_time():
    """Task ids are given out anew when a topology gets one component more."""
    before = Watermarks({("events", "default"): 2})
    for task in (3, 4):
        before.source("events", "default", task, 0).greatest = 10
    assert before.advance(0) == 10
    after = Watermarks({("events", "default"): 2})
    after.restore(before.saved(), 0, {3: "new", 4: "events", 5: "events"})
    after.source("events", "default", 4, 0).greatest = 90
    assert after.advance(0) == 10  # the other one is expected still
    after.source("events", "default", 5, 0).greatest = 100
    assert after.advance(0) == 90


def test_a_window_may_be_longer_than_the_timeout():
    builder = TopologyBuilder()
    builder.set_spout("events", Events)
    builder.set_bolt("counts", declared(Tumbling(hours(5)))).global_grouping("events")
    builder.build("counts")


def test_a_bolt_that_does_not_pass_its_state_on_says_so():
    class Forgets(Shows):
        window = Tumbling(5)

        def init_state(self, state):
            self.state = state

    with pytest.raises(TypeError, match=r"init_state of Forgets does not call super\(\).init_state\(state\)"):
        give(started(Forgets), reference.Event(1, 0, "ant", 5))


@pytest.mark.parametrize("seed", range(100 if SOAK else 4))
def test_exactly_once_whatever_dies(tmp_path, seed):
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "topology.message.timeout.secs": 5,
        "multilang.state.alignment": "exact",
    }
    faults = Faults(crash=0.003, acker_crash=0.0003, late=0.0005, spouts=True, limit=20)
    with LocalCluster("simulated", seed=seed, faults=faults) as cluster:
        run = cluster.submit(topology(1, conf=conf), capture=["counts"])
        run.wait(timeout=24 * 3600)
        run.run_for(5)
        assert run.faults_so_far
        check_counts(run, 300)


def check_counts(run, events):
    """Each window was evaluated, and is right each time that it was."""
    found = {(tup["key"], tup["end"], tup["count"]) for tup in run.captured("counts") if tup["key"] != "end"}
    assert found == {(*where, count) for where, count in wanted(events, 200, 100).items()}


EVERY_STEP = [
    *(f"PREPARE {step}" for step in ("received", "write", "synced", "forward", "acked")),
    *(f"COMMIT {step}" for step in ("received", "write", "synced", "forward", "acked")),
    *(f"ROLLBACK {step}" for step in ("received", "synced", "forward", "acked")),
    *(f"INITSTATE {step}" for step in ("received", "forward", "acked")),
]


@pytest.mark.parametrize("step", EVERY_STEP if SOAK else ["PREPARE synced", "COMMIT write"])
def test_exactly_once_after_a_kill_at_any_step(tmp_path, monkeypatch, step):
    crashes = [f"counts-0|{step}|2|{tmp_path / 'crashed'}"]
    if step.startswith(("ROLLBACK", "INITSTATE")):  # which come after another kill
        crashes = [f"all-0|COMMIT received|2|{tmp_path / 'first'}", f"counts-0|{step}|1|{tmp_path / 'crashed'}"]
    monkeypatch.setenv("CRASHES", ";".join(crashes))
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
        "topology.message.timeout.secs": 5,
        "multilang.state.alignment": "exact",
        "multilang.trace": "tests.state.crashing.at_step",
        "test.events": 4000,
    }
    with LocalCluster("process") as cluster:
        run = cluster.submit(topology(1, conf=conf), capture=["counts"])
        count = len(wanted(4000, 200, 100))
        run.wait(
            lambda run: (
                len({(tup["key"], tup["end"]) for tup in run.captured("counts")} - {("end", 10**9)}) >= count
                and ((tmp_path / "crashed").exists() or step.startswith("INITSTATE"))
            ),
            timeout=120,
        )
        check_counts(run, 4000)


def test_a_bolt_without_state_can_not_be_exact():
    class Plain(WindowedBolt):
        output_fields = ["key", "end", "count"]
        window = Tumbling(5)

        def process_window(self, window): ...

    with pytest.raises(TopologyError, match=r"bolt 'counts' .* holds tuples .* StatefulWindowedBolt"):
        topology(1, Plain, {"multilang.state.alignment": "exact"})


@pytest.mark.parametrize("window", [Tumbling(2), Sliding(2, milliseconds(10)), Sliding(milliseconds(10), 2)])
def test_a_tuple_that_was_acked_and_fails_when_its_turn_comes_is_reported_and_changes_no_window(window):
    kind = declared(window, aggregate=Sum("n"))
    run = started(kind)
    for ts, value in enumerate([1, "two", 3], 1):
        run.process(make_tuple([value, "ant", ts], FIELDS, "source0"))
    run = started(kind, saved(run))
    for index in range(3):
        run.process(make_tuple([0, "bee", 50], FIELDS, f"source{index}"))
    run.advance(1)
    assert [row[3] for row in emitted(run) if row[0] == "ant"] == [4]
    assert len(run.errors) == 1
    assert "field 'n' has the value 'two'" in run.errors[0]
    assert run.failed == []
