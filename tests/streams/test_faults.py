"""The cases that Storm's own Stream API gets wrong, and what happens when a user's function fails."""

from __future__ import annotations

from collections import Counter

import pytest

from multilang import BasicBolt, LocalCluster
from multilang.state.providers import provider_of
from multilang.streams import StreamBuilder
from multilang.windowing import Session, Sliding, Tumbling, milliseconds
from tests.patience import patient
from tests.state.topologies import stored
from tests.streams.pipelines import Values, added, by_number

TIMED = {"lag": milliseconds(100), "idle_after": milliseconds(200), "watermark_interval": milliseconds(10)}


def ends(build, until=None, conf=None, mode="simulated", errors=0, state=False):
    """Run what ``build`` declares; return the values that came to the bolts named "end" and so on."""
    s = StreamBuilder(state=state)
    names = build(s) or ["end"]
    topology = s.build("faults", {"topology.message.timeout.secs": 600, **(conf or {})})
    with LocalCluster(mode, conf=conf, seed=1) as cluster:
        run = cluster.submit(topology, capture=names)
        if until is None:
            run.wait(timeout=patient(60))
        else:
            run.wait(until=lambda run: sum(len(run.captured(name)) for name in names) >= until, timeout=60)
            run.run_for(1)
        assert len(run.errors) == errors, run.errors
        found = [[tup["value"] for tup in run.captured(name)] for name in names]
        return found[0] if len(found) == 1 else found


def timed(stream, window=None):
    return stream.key_by(lambda event: event[0]).window(
        window or Tumbling(milliseconds(10)), lambda event: event[1], **TIMED
    )


def test_a_join_keeps_the_rows_of_repeated_keys() -> None:
    def build(s):
        left = timed(s.source([["k", 1, 1], ["k", 2, 2], ["k", 3, 3]]))
        right = timed(s.source([["k", 4, 10]]))
        left.join(right).map_values(lambda pair: [event[2] for event in pair]).through(Values, name="end")

    assert sorted(value for _, value in ends(build, until=3)) == [[1, 10], [2, 10], [3, 10]]


def test_an_outer_join_gives_a_row_that_matches_no_null() -> None:
    def build(s):
        left = timed(s.source([["k", 1, 1], ["k", 2, 2], ["l", 2, 3]]))
        right = timed(s.source([["k", 4, 10]]))
        left.left_join(right).map_values(lambda pair: [e and e[2] for e in pair]).through(Values, name="end")

    assert sorted(value for _, value in ends(build, until=3)) == [[1, 10], [2, 10], [3, None]]


def test_a_stream_joins_itself() -> None:
    def build(s):
        windows = timed(s.source([["k", 1, 1], ["k", 2, 2]]))
        windows.join(windows).map_values(lambda pair: [event[2] for event in pair]).through(Values, name="end")

    assert sorted(value for _, value in ends(build, until=4)) == [[1, 1], [1, 2], [2, 1], [2, 2]]


def test_two_windows_of_one_stream_are_those_that_were_asked_for() -> None:
    def build(s):
        keyed = s.source(range(8)).key_by(lambda n: 0)
        keyed.window(Tumbling(2)).count().map(lambda pair: pair[1]).through(Values, name="twos")
        keyed.window(Tumbling(4)).count().map(lambda pair: pair[1]).through(Values, name="fours")
        return ["twos", "fours"]

    assert ends(build) == [[2, 2, 2, 2], [4, 4]]


def test_a_branch_behind_a_window_goes_on_to_an_aggregate() -> None:
    def build(s):
        counts = s.source(range(12)).key_by(by_number).window(Tumbling(2)).count()
        first, rest = counts.branch(lambda pair: pair[0] == 0)
        rest.map(lambda pair: pair[1]).key_by(str).reduce(added).through(Values, name="end")
        first.for_each(len)

    assert max(value for _, value in ends(build)) == 8


def test_a_branch_takes_the_first_predicate_that_holds() -> None:
    def build(s):
        first, second, rest = s.source(range(6)).branch(lambda n: n < 4, lambda n: n < 5)
        for number, stream in enumerate((first, second, rest)):
            stream.through(Values, name=f"end{number}")
        return ["end0", "end1", "end2"]

    assert [sorted(values) for values in ends(build)] == [[0, 1, 2, 3], [4], [5]]


def test_a_new_key_is_exchanged_again() -> None:
    def build(s):
        sums = s.source(range(40), parallelism=2).key_by(lambda n: n % 10).reduce(added)
        again = sums.map(lambda pair: pair[0]).key_by(lambda key: "all").map_values(lambda key: 1)
        again.aggregate(int, added).through(Values, name="end")

    values = [value for _, value in ends(build)]
    assert sorted(values) == list(range(1, len(values) + 1))  # one task has counted all


def test_a_window_of_a_window_counts_what_the_first_gave() -> None:
    def build(s):
        counts = s.source(range(12), parallelism=2).key_by(by_number).window(Tumbling(2)).count()
        counts.map(lambda pair: pair[1]).key_by(lambda n: "all").window(Tumbling(6)).reduce(added).through(
            Values, name="end"
        )

    assert ends(build) == [["all", 12]]


@pytest.mark.parametrize("first", [True, False])
def test_a_source_merged_with_what_came_of_it_is_there_once(first) -> None:
    def build(s):
        source = s.source(range(5))
        spread = source.repartition(2)
        (spread.merge(source) if first else source.merge(spread)).through(Values, name="end")

    assert sorted(ends(build)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_state_behind_windows_is_in_one_task_for_each_key() -> None:
    def build(s):
        counts = s.source(range(60), parallelism=3).key_by(by_number).repartition(3).window(Tumbling(5)).count()
        counts.update_state(int, added).through(Values, name="end")

    conf = {"topology.state.provider": "multilang.state.MemoryStateProvider"}
    values = ends(build, conf=conf)
    assert sorted(values) == sorted([key, total] for key in range(3) for total in (5, 10, 15, 20))


def test_streams_are_grouped_together_in_several_tasks() -> None:
    def build(s):
        events = [[f"k{n % 4}", 1 + n % 9, n] for n in range(24)]
        left = timed(s.source(events[:12], parallelism=2).repartition(3))
        right = timed(s.source(events[8:], parallelism=3))
        grouped = left.co_group(right)
        grouped.map_values(lambda pair: [sorted(e[2] for e in side) for side in pair]).through(Values, name="end")

    wanted = [[f"k{k}", [list(range(k, 12, 4)), list(range(8 + k, 24, 4))]] for k in range(4)]
    assert sorted(ends(build, until=4)) == wanted


def test_windows_are_what_a_bolt_behind_them_gets() -> None:
    def build(s):
        s.source(range(12)).key_by(by_number).window(Tumbling(4)).group().through(Values, name="end")

    assert sorted([key, sorted(values)] for key, values in ends(build)) == [
        [n, [n, n + 3, n + 6, n + 9]] for n in range(3)
    ]


def test_a_filter_of_pairs_keeps_both_fields() -> None:
    def build(s):
        pairs = s.source(range(40), parallelism=2).key_by(by_number).filter(lambda pair: pair[1] % 2)
        pairs.repartition(3).count().through(Values, name="counts")
        pairs.through(Fields, name="sink")
        return ["counts", "sink"]

    counts, fields = ends(build)
    odd = Counter(n % 3 for n in range(1, 40, 2))
    assert {key: max(n for k, n in counts if k == key) for key in odd} == odd
    assert Counter(key for key, _ in fields) == odd
    assert {names for _, names in map(tuple, fields)} == {"key, value"}


class Fields(BasicBolt):
    """Emits each tuple's key, and the names of its fields."""

    output_fields = ["value"]

    def process(self, tup):
        self.emit([[tup["key"], ", ".join(tup.fields)]])


@pytest.mark.parametrize("rounds", [5, 30])
def test_an_outer_join_tells_a_row_without_a_match_once_and_keeps_no_window_that_ended(tmp_path, rounds) -> None:
    conf = {
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
    }

    def build(s):
        left = timed(s.source([["k", 1 + 10 * n, n] for n in range(rounds)]))
        right = timed(s.source([["k", 2 + 10 * n, n] for n in range(0, rounds, 2)]))
        left.full_join(right).map_values(lambda pair: [e and e[2] for e in pair]).through(Values, name="end")

    found = Counter(tuple(pair) for _, pair in ends(build, until=rounds, conf=conf, state=True))
    assert found == Counter((n, n if n % 2 == 0 else None) for n in range(rounds))
    assert len(stored(provider_of(conf), "full_join", 1)) == 1  # the watermark, and nothing of a window


def test_no_value_is_taken_for_a_sign() -> None:
    values = ["__punctuation", "", "[", '"', None, [], {"key": 1}]

    def build(s):
        s.source(values).repartition(2).through(Values, name="end")

    assert sorted(map(repr, ends(build))) == sorted(map(repr, values))


def test_none_is_a_value_of_an_aggregate_like_any_other() -> None:
    def build(s):
        s.source([1, 2, 3]).key_by(lambda n: 0).aggregate(
            lambda: "new", lambda acc, n: None if n == 1 else [acc, n]
        ).through(Values, name="end")

    assert [value for _, value in ends(build)] == [None, [None, 2], [[None, 2], 3]]


def test_late_values_can_be_had() -> None:
    def build(s):
        events = [["k", 1000, 1], ["k", 3000, 2]]
        windows = (
            s.source(slowly(events))
            .map(lambda t: t["value"])
            .key_by(lambda event: event[0])
            .window(Tumbling(milliseconds(10)), lambda event: event[1], watermark_interval=milliseconds(10))
        )
        windows.count().late().map_values(lambda event: event[2]).through(Values, name="end")

    assert ends(build, until=1) == [["k", 9]]


def slowly(events):
    """Return a spout of events with one behind them that comes too late, after a while."""
    from multilang import ReliableSpout

    class Slowly(ReliableSpout):
        output_fields = ["value"]

        def initialize(self, conf, context):
            self.left = list(events)
            self.set_timer(1, self.last)

        def last(self):
            self.emit([["k", 5, 9]], "late")

        def next_tuple(self):
            if self.left:
                event = self.left.pop(0)
                self.emit([event], str(event))

    return Slowly


def test_sessions_are_joined_and_counted() -> None:
    def build(s):
        timed(s.source([["k", 1], ["k", 3], ["k", 20]]), Session(milliseconds(5))).count().with_end().through(
            Values, name="end"
        )

    assert Counter(map(str, ends(build, until=2))) == Counter(["['k', [8, 2]]", "['k', [25, 1]]"])


# ---- functions that fail ----


def test_an_exception_names_the_stage() -> None:
    def build(s):
        s.source([1]).map(lambda n: n + 1).map(lambda n: 1 // (n - 2), name="divide").through(Values, name="end")

    s = StreamBuilder()
    build(s)
    topology = s.build("fails")
    with LocalCluster("simulated", {"multilang.max.replays": 3}, seed=1) as cluster:
        run = cluster.submit(topology)
        run.wait(timeout=600)
        assert "stage 'divide': ZeroDivisionError" in str(run.errors[0])


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_an_element_that_fails_takes_no_other_with_it(mode) -> None:
    seen = []

    def build(s):
        def fails(n):
            if n == 5:
                raise ValueError("five")
            return n

        s.source(range(10)).map(fails, name="picky").key_by(lambda n: "all").count(name="all").for_each(seen.append)

    s = StreamBuilder()
    build(s)
    topology = s.build("picky")
    with LocalCluster(mode, {"multilang.max.replays": 3}, seed=1) as cluster:
        run = cluster.submit(topology)
        run.wait(timeout=patient(60))
        assert all("stage 'picky': ValueError: five" in str(e) or " on tuple 5, after " in str(e) for e in run.errors)
        assert run.counters["source"].acked == 9
        shown = next(each.message for each in run.errors if "stage 'picky'" in each.message)
        assert shown.count("Traceback") == 2  # of the function's error and of the stage's, once each
    assert max(count for _, count in seen) == 9


def with_one(values, value):
    values.append(value)
    return values


def with_total(totals, value):
    totals["all"] = totals.get("all", 0) + value
    totals["list"] = with_one(totals.get("list", []), value)
    return totals


FOLDS = [
    lambda values: values.aggregate(list, with_one),
    lambda values: values.aggregate(list, with_one, lambda first, second: first + second),
    lambda values: values.aggregate(dict, with_total),
    lambda values: values.aggregate(lambda: (0, []), lambda pair, n: (pair[0] + n, with_one(pair[1], n))),
    lambda values: values.update_state(dict, with_total),
]


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
@pytest.mark.parametrize("fold", FOLDS)
def test_a_result_that_fails_behind_an_accumulator_that_changes_in_place_counts_once(fold, mode) -> None:
    has_failed = []

    def fails_once(pair):
        if len(has_failed) < 2 and "4" in str(pair):
            has_failed.append(pair)
            raise ValueError("not now")
        return str(pair[1])

    def build(s):
        values = s.source(range(10)).key_by(lambda n: "all").map_values(lambda n: n)
        fold(values).map(fails_once).through(Values, name="end")

    s = StreamBuilder()
    build(s)
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(s.build("once", {"topology.state.provider": "memory"}), capture=["end"])
        run.wait(timeout=patient(60))
        assert run.counters["source"].acked == 10
        last = max((tup["value"] for tup in run.captured("end")), key=len)
    assert has_failed
    assert all(last.count(str(n)) == 1 for n in range(10) if n != 4 and n != 5), last


def test_states_are_sent_on_as_they_were_at_each_change() -> None:
    def build(s):
        s.source([[1, 2, 3]]).flat_map(list).key_by(lambda n: "all").update_state(list, with_one).through(
            Values, name="end"
        )

    found = ends(build, conf={"topology.state.provider": "memory"})
    assert [value for _, value in found] == [[1], [1, 2], [1, 2, 3]]


def test_what_changes_an_element_changes_no_other_streams() -> None:
    def build(s):
        lists = s.source([[1, 2], [3]]).map(list)
        lists.through(Values, name="before")
        lists.map(lambda values: with_one(values, "x")).through(Values, name="end")
        lists.filter(lambda values: values.pop() and False).through(Values, name="none")
        lists.key_by(len).through(Values, name="after")
        return ["before", "end", "after"]

    before, end, after = ends(build)
    assert [before, end, after] == [[[1, 2], [3]], [[1, 2, "x"], [3, "x"]], [[2, [1, 2]], [1, [3]]]]


@pytest.mark.parametrize("lateness", [None, milliseconds(500)])
def test_what_changes_a_windows_result_changes_no_other_window(lateness) -> None:
    sliding = Sliding(milliseconds(30), milliseconds(10))
    events = [["k", ts, ts] for ts in range(1, 60, 6)]

    def windows(change, merge):
        def build(s):
            keyed = s.source(events).key_by(lambda event: event[0])
            timed = keyed.window(sliding, lambda event: event[1], allowed_lateness=lateness, **TIMED)
            lists = timed.aggregate(list, lambda values, event: with_one(values, event[2]), merge)
            lists.with_end().map_values(lambda pair: [pair[0], change(pair[1])]).through(Values, name="end")

        return ends(build, until=8)

    def spoilt(values):
        return [values.pop() for _ in range(len(values))][::-1]

    def into_the_first(first, second):
        first.extend(second)
        return first

    def into_the_second(first, second):
        second[:0] = first
        return second

    wanted = windows(list, lambda first, second: first + second)
    assert windows(spoilt, into_the_first) == wanted
    assert windows(spoilt, into_the_second) == wanted


@pytest.mark.parametrize("key", [1.5, True, None, ["a"], ("a", 1.0)])
def test_a_key_that_hashes_otherwise_elsewhere_is_refused(key) -> None:
    s = StreamBuilder()
    s.source([1]).key_by(lambda n: key, name="keys").count().for_each(len)
    with LocalCluster("simulated", {"multilang.max.replays": 3}, seed=1) as cluster:
        run = cluster.submit(s.build("keys"))
        run.wait(timeout=600)
        assert "stage 'keys': TypeError: the key is" in str(run.errors[0])


def test_a_state_is_asked_from_another_stream() -> None:
    s = StreamBuilder()
    table = (
        s.source([["a", 1], ["b", 2], ["a", 3]], name="updates")
        .key_by(lambda e: e[0])
        .update_state(int, lambda total, event: total + event[1])
    )
    asked = s.source(["a", "b", "c"], name="asking").key_by(str).state_query(table)
    asked.through(Values, name="end")
    topology = s.build("asks", {"topology.state.provider": "multilang.state.MemoryStateProvider"})
    with LocalCluster("simulated", seed=1) as cluster:
        run = cluster.submit(topology, capture=["end"])
        run.wait(timeout=60)
        found = dict([tup["value"] for tup in run.captured("end")])
        assert run.errors == []
    assert found["c"] == ["c", None]
    assert found["a"][1] in (None, 1, 4)
    assert found["b"][1] in (None, 2)
