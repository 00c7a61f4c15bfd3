"""Declarations that can't work are refused when the topology is built, with the bolt, the setting and what to write instead."""

from __future__ import annotations

from datetime import timedelta
from math import inf, nan

import pytest

from multilang import Spout, TopologyBuilder, windowing
from multilang.component.errors import ConfigError
from multilang.local import LocalCluster
from multilang.testing import BoltRun, FixedTupleSpout, VirtualClock, make_tuple, run_bolt
from multilang.topology import TopologyError
from multilang.windowing import (
    ApproximateDistinct,
    Count,
    Distinct,
    Max,
    Mean,
    Min,
    Session,
    Sliding,
    StatefulWindowedBolt,
    Sum,
    TopN,
    Tumbling,
    WindowedBolt,
    days,
    hours,
    milliseconds,
    minutes,
    seconds,
)
from multilang.windowing.declared import DeclaredWindows

LENGTH = "topology.bolts.window.length"
SLIDE = "topology.bolts.window.sliding.interval"
LAG = "topology.bolts.tuple.timestamp.max.lag.ms"
INTERVAL = "topology.bolts.watermark.event.interval.ms"


class Words(Spout):
    output_fields = ["word", "ts", "n"]


class Shows(WindowedBolt):
    output_fields = ["key", "result"]
    window = Tumbling(seconds(10))

    def process_window(self, window):
        self.emit([window.key, window.result])


def built(declared=(), conf=None, own=None, tasks=1, grouping=None, base=Shows):
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    bolt = builder.set_bolt("sums", type("Bolt", (base,), dict(declared))(), tasks=tasks, conf=own)
    (grouping or (lambda bolt: bolt.shuffle_grouping("words")))(bolt)
    return builder.build("sums", conf)


WRONG = [
    ({"window": None}, r"bolt 'sums' has no window: set window = Tumbling\(seconds\(10\)\)"),
    ({"window": 5}, r"window is 5; use Tumbling"),
    (
        {"window": Tumbling(seconds(16))},
        r"Tumbling\(seconds\(16\)\) make 32 s, and topology.message.timeout.secs is 30",
    ),
    (
        {"window": Session(minutes(1))},
        r"Session\(minutes\(1\)\) make 60 s, and topology.message.timeout.secs is 30.*to 60",
    ),
    ({"late_stream": "late"}, "late_stream is for event time; set timestamp_field"),
    ({"lag": seconds(1)}, "lag is for event time"),
    ({"lag": 5}, r"lag is 5; write a duration, such as seconds\(10\)"),
    ({"lag": seconds(-1), "timestamp_field": "ts"}, "lag is .*; write a duration of 0 ms or more"),
    (
        {"timestamp_field": "time"},
        "timestamp_field names the field 'time', which stream 'default' of 'words' does not have",
    ),
    ({"key_by": "words"}, "key_by names the field 'words'.*did you mean 'word'"),
    ({"key_by": []}, r"key_by is \[\]; give a field's name"),
    ({"id_field": "id"}, "id_field names the field 'id'"),
    ({"aggregate": Sum("amount")}, "aggregate names the field 'amount'"),
    ({"aggregate": 5}, r"aggregate is 5; give an Aggregate, such as Count\(\)"),
    ({"anchor": "some"}, "anchor is 'some'; use one of 'all', 'new', 'none'"),
    ({"early": 0}, "early is 0; give a whole number of tuples from 1, or a duration"),
    (
        {"early": 5, "window": Sliding(5, 2)},
        r"early is for tumbling windows and sessions, and the window is Sliding\(5, 2\)",
    ),
    ({"accumulating": False, "window": Sliding(5, 2)}, "accumulating = False is for tumbling windows"),
    ({"allowed_lateness": seconds(1), "timestamp_field": "ts", "window": Tumbling(5)}, "has a count"),
    ({"keep_expired": True, "aggregate": Count()}, "a bolt with an aggregate keeps no tuples"),
    ({"timestamp_field": "ts", "timestamp": lambda self, tup: 1}, "has both timestamp_field and a method timestamp"),
    ({"timestamp_field": "ts", "late_stream": "default"}, "'default' is late_stream, and is declared by the class"),
]


@pytest.mark.parametrize(("declared", "message"), WRONG)
def test_a_wrong_setting_is_refused(declared, message):
    with pytest.raises(TopologyError, match=message) as refused:
        built(declared)
    assert "bolt 'sums'" in str(refused.value)


WRONG_CONF = [
    ({f"{LENGTH}.count": 0}, rf"{LENGTH}.count is 0; use a whole number from 1"),
    ({f"{LENGTH}.duration.ms": "1000"}, f"{LENGTH}.duration.ms is '1000'"),
    ({f"{SLIDE}.count": 5}, "the conf has a sliding interval and no length"),
    (
        {f"{LENGTH}.count": 500, "topology.max.spout.pending": 400},
        "make 501 tuples, and topology.max.spout.pending is 400.*to 501",
    ),
    ({"topology.message.timeout.secs": 15}, "make 20 s, and topology.message.timeout.secs is 15"),
    ({"topology.bolts.late.tuple.stream": "late"}, "late_stream is for event time"),
    ({"topology.bolts.tuple.timestamp.max.lag.ms": -1}, "max.lag.ms is -1; use a whole number of milliseconds"),
]


@pytest.mark.parametrize(("own", "message"), WRONG_CONF)
def test_a_wrong_conf_is_refused(own, message):
    with pytest.raises(TopologyError, match=message):
        built(own=own)


NOTHING = [nan, inf, -inf, -1, 1.5, "", [], {}, object(), timedelta(microseconds=1), -seconds(1), timedelta.max]
ODD = [None, True, False, 0, "some", seconds(0), *NOTHING]
"""Values of every kind, few of which any setting takes."""

TAKEN = {
    "window": (),
    "key_by": (None,),
    "timestamp_field": (),  # None is, but the others need it here
    "lag": (seconds(0),),
    "watermark_interval": (),
    "late_stream": (None, "some"),
    "allowed_lateness": (seconds(0),),
    "idle_after": (None,),
    "aggregate": (None,),
    "early": (None,),
    "accumulating": (True, False),
    "anchor": (),
    "id_field": (None,),
    "keep_expired": (None, True, False),
    "memory_limit": (None,),
    "at_memory_limit": (None,),
}
"""The settings, each with those of the odd values that it takes."""


def refusal(does):
    """Return the error that a declaration is refused with; None if it is taken."""
    try:
        does()
    except (ConfigError, TopologyError) as error:
        return str(error)
    return None


def is_among(value, several):
    """Return whether a value is among several; 0 is not False."""
    return any(type(value) is type(each) and value == each for each in several)


@pytest.mark.parametrize("setting", sorted({*DeclaredWindows.__annotations__} - {"can_spill", "ways"}))
def test_every_setting_is_refused_by_its_name_if_its_value_has_no_sense(setting):
    usual = {"timestamp_field": "ts", "late_stream": "late", "allowed_lateness": seconds(1), "lag": seconds(1)}
    for value in ODD:
        error = refusal(lambda value=value: built({**usual, setting: value}))
        if is_among(value, TAKEN[setting]):
            assert error is None, value
        elif setting != "timestamp_field" or value is not None:
            assert error is not None, f"{setting} = {value!r} is taken"
            assert error.startswith("bolt 'sums'"), error
            assert setting in error or "has no window" in error, error
            assert "\n" not in error


CONF_KEYS = {
    f"{LENGTH}.count": (),
    f"{LENGTH}.duration.ms": (),
    f"{SLIDE}.count": (),
    f"{SLIDE}.duration.ms": (),
    LAG: (0,),
    INTERVAL: (),
    "topology.bolts.late.tuple.stream": (),
    "topology.bolts.message.id.field.name": (),
}


@pytest.mark.parametrize("key", CONF_KEYS)
def test_every_conf_key_is_refused_by_its_name_if_its_value_has_no_sense(key):
    for value in ODD[1:]:
        error = refusal(lambda value=value: built({"timestamp_field": "ts"}, own={key: value}))
        if is_among(value, CONF_KEYS[key]):
            assert error is None, value
        else:
            assert error is not None, f"{key} = {value!r} is taken"
            assert key in error or "id_field" in error, error


MAKERS = {
    "Sliding": [(Sliding, ()), (lambda slide: Sliding(5, slide), ())],
    "Tumbling": [(Tumbling, ())],
    "Session": [(Session, ())],
    **{make.__name__: [(make, (0, -1, 1.5))] for make in (milliseconds, seconds, minutes, hours, days)},
    **{kind.__name__: [(kind, ("some",))] for kind in (Sum, Mean, Min, Max, Distinct)},
    "ApproximateDistinct": [(ApproximateDistinct, ("some",)), (lambda lg: ApproximateDistinct("some", lg), ())],
    "TopN": [(lambda n: TopN(n, "some"), (10**400,)), (lambda field: TopN(3, field), ("some",))],
}


@pytest.mark.parametrize("name", MAKERS)
def test_windows_durations_and_aggregates_are_refused_by_their_names_if_their_values_have_no_sense(name):
    for make, taken in MAKERS[name]:
        for value in [*ODD, 1e300, 10**400]:
            if is_among(value, taken):
                make(value)
                continue
            with pytest.raises(ConfigError, match=name) as refused:
                make(value)
            assert refused.value.__cause__ is None
            assert "\n" not in str(refused.value)


def test_all_windows_durations_and_aggregates_are_looked_at():
    there = {name for name in windowing.__all__ if callable(getattr(windowing, name))}
    others = {"Aggregate", "Count", "MemoryLimitError", "StatefulWindowedBolt", "Window", "WindowedBolt"}
    assert {*MAKERS} == there - others


HELD = [
    ({"allowed_lateness": seconds(25)}, r"Tumbling\(seconds\(10\)\) and its allowed_lateness make 35 s.* Set .* to 35"),
    (
        {"lag": hours(10)},
        r"Tumbling\(seconds\(10\)\) and its lag make 36010 s, and topology.message.timeout.secs is 30",
    ),
    ({"lag": seconds(11), "allowed_lateness": seconds(10)}, "its lag and allowed_lateness make 31 s"),
    ({"lag": seconds(31), "window": Tumbling(5)}, r"Tumbling\(5\) and its lag make 31 s"),
    ({"lag": seconds(25), "window": Session(seconds(6))}, r"Session\(seconds\(6\)\) and its lag make 31 s"),
    ({"watermark_interval": seconds(31)}, r"\(watermark_interval\) make 31 s"),
]


@pytest.mark.parametrize(("declared", "message"), HELD)
def test_tuples_that_would_be_held_for_longer_than_their_timeout_are_refused(declared, message):
    """They would be replayed, and held for as long again."""
    timed = {**declared, "timestamp_field": "ts"}
    with pytest.raises(TopologyError, match=f"bolt 'sums'.*{message}"):
        built(timed)
    built(timed, {"topology.message.timeout.secs": 40_000})
    built(timed, {"topology.enable.message.timeouts": False})
    built(timed, base=type("Kept", (Shows, StatefulWindowedBolt), {}))
    built({"lag": seconds(10), "allowed_lateness": seconds(10), "timestamp_field": "ts"})


def test_tuples_are_held_for_as_long_as_late_ones_may_come():
    """The timeout has to be longer for that reason."""
    timed = {"window": Tumbling(seconds(10)), "timestamp_field": "ts", "lag": seconds(5), "aggregate": Count()}
    run = run_bolt(type("Bolt", (Shows,), {**timed, "allowed_lateness": seconds(10)}), [[1]], fields=["ts"])
    for secs in (14, 24):
        run.process([secs * 1000])
        run.advance(1)
        assert run.unfinished[0]["ts"] == 1
    run.process([26_000])
    run.advance(1)
    assert run.unfinished[0]["ts"] > 1


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"early": 7, "window": Tumbling(5)}, r"early is 7, and Tumbling\(5\) ends before"),
        ({"early": 5, "window": Tumbling(5)}, r"early is 5, and Tumbling\(5\) ends before"),
        ({"early": 6, "window": Tumbling(5), "timestamp_field": "ts"}, "early is 6"),
        ({"early": seconds(10)}, r"early is seconds\(10\), and Tumbling\(seconds\(10\)\) ends before"),
        ({"early": minutes(1)}, r"early is minutes\(1\), and Tumbling\(seconds\(10\)\) ends before"),
    ],
)
def test_early_results_that_would_not_come_before_the_windows_end_are_refused(declared, says):
    with pytest.raises(TopologyError, match=f"bolt 'sums': {says}"):
        built(declared)


@pytest.mark.parametrize(
    "declared",
    [
        {"early": 4, "window": Tumbling(5)},
        {"early": 100},
        {"early": minutes(1), "window": Tumbling(5)},
        {"early": minutes(1), "timestamp_field": "ts"},  # a window is open until the watermark has passed it
        {"early": minutes(1), "window": Session(seconds(5))},  # which lasts as long as tuples come
    ],
)
def test_early_results_that_may_come_before_the_windows_end_are_taken(declared):
    built(declared)


def test_the_task_checks_again():
    with pytest.raises(ConfigError, match=r"make 20 s, and topology.message.timeout.secs is 15"):
        run_bolt(Shows, [["ant"]], conf={"topology.message.timeout.secs": 15})


def test_a_length_and_slide_as_long_as_the_timeout_are_allowed():
    built({"window": Sliding(seconds(20), seconds(10))})
    built({"window": Tumbling(hours(1))}, {"topology.enable.message.timeouts": False})
    built({"window": Tumbling(hours(1))}, {"topology.message.timeout.secs": 7200})


def test_a_bolt_without_process_window_is_refused():
    with pytest.raises(TopologyError, match=r"bolt 'sums' .* has no process_window"):
        built({"process_window": WindowedBolt.process_window})


def test_tuples_of_one_key_must_come_to_one_task():
    keyed = {"key_by": ["word", "n"]}
    with pytest.raises(TopologyError, match=r"by shuffle grouping, .*fields_grouping\('words', 'word', 'n'\)"):
        built(keyed, tasks=2)
    with pytest.raises(TopologyError, match="by fields grouping on 'word', 'ts', so that tuples of one key"):
        built(keyed, tasks=2, grouping=lambda bolt: bolt.fields_grouping("words", "word", "ts"))
    built(keyed, tasks=2, grouping=lambda bolt: bolt.fields_grouping("words", "n"))
    built(keyed, tasks=2, grouping=lambda bolt: bolt.global_grouping("words"))


def test_the_settings_are_in_the_conf_under_storms_keys():
    event_time = {"timestamp_field": "ts", "lag": seconds(2), "late_stream": "late", "id_field": "n"}
    conf = built({"window": Sliding(5, seconds(1)), **event_time})["sums"].conf
    assert conf == {
        f"{LENGTH}.count": 5,
        f"{SLIDE}.duration.ms": 1000,
        "topology.bolts.tuple.timestamp.max.lag.ms": 2000,
        "topology.bolts.watermark.event.interval.ms": 1000,
        "topology.bolts.late.tuple.stream": "late",
        "topology.bolts.message.id.field.name": "n",
    }


class Sizes(WindowedBolt):
    output_fields = ["sizes"]

    def process_window(self, window):
        self.emit([[tup["n"] for tup in window.tuples]])


@pytest.mark.parametrize(
    ("declared", "own", "wanted"),
    [
        ({}, {}, (5000, 100)),
        ({"lag": seconds(2), "watermark_interval": seconds(3)}, {}, (2000, 3000)),
        ({"lag": seconds(2)}, {LAG: 7}, (7, 100)),
    ],
)
def test_what_the_class_leaves_as_it_is_may_be_in_the_topologys_conf(declared, own, wanted):
    bolt = type("Sums", (Sizes,), {"window": Tumbling(5), "timestamp_field": "ts", **declared})
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout(["n", "ts"], [[1, 1]]))
    builder.set_bolt("sums", bolt, conf=own).shuffle_grouping("words")
    conf = builder.build("sums", {LAG: 5000, INTERVAL: 100})["sums"].conf
    assert (conf[LAG], conf[INTERVAL]) == wanted


@pytest.mark.parametrize("window", [Tumbling(2), Tumbling(seconds(1)), Session(seconds(1)), Sliding(3, seconds(1))])
def test_values_that_fields_groupings_tell_apart_are_keys_of_their_own(window):
    """So the answer is the same in one task and in several."""
    keys = [1, True, 1.0, 0, False, 0.0, -0.0, None, "1", "true"]

    class Keyed(Sizes):
        output_fields = ["key", "sizes"]
        key_by = "key"

        def process_window(self, window):
            self.emit([window.key, [tup["n"] for tup in window.tuples]])

    several = [[key, "a"] for key in keys]

    def answer(tasks, fields, rows):
        builder = TopologyBuilder()
        builder.set_spout("words", FixedTupleSpout([*fields, "n"], rows))
        bolt = type("Sums", (Keyed,), {"window": window, "key_by": fields})
        builder.set_bolt("sums", bolt, tasks).fields_grouping("words", *fields)
        with LocalCluster("simulated", seed=1) as cluster:
            run = cluster.submit(builder.build("sums"), capture=["sums"])
            run.wait(lambda run: len(run.captured("sums")) == len(keys), timeout=10)
            return sorted(repr(tup.values) for tup in run.captured("sums"))

    for fields, wanted, given in (["key"], keys, [[key] for key in keys]), (["key", "other"], several, several):
        rows = [[*key, n] for n in (1, 2) for key in given]
        assert answer(1, fields, rows) == answer(3, fields, rows) == sorted(repr([key, [1, 2]]) for key in wanted)


@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ({f"{LENGTH}.count": 2, f"{SLIDE}.count": 2}, [[1, 2], [3, 4]]),
        ({f"{LENGTH}.count": 2}, [[1], [1, 2], [2, 3], [3, 4], [4, 5]]),
        ({f"{LENGTH}.count": 3, f"{LENGTH}.duration.ms": 1, f"{SLIDE}.count": 2}, [[1, 2], [2, 3, 4]]),
    ],
)
def test_the_window_may_be_in_the_conf_alone(conf, wanted):
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout(["n"], [[n] for n in range(1, 6)]))
    builder.set_bolt("sums", Sizes, conf=conf).shuffle_grouping("words")
    with LocalCluster("simulated", seed=1) as cluster:
        run = cluster.submit(builder.build("sums"), capture=["sums"])
        run.wait(lambda run: len(run.captured("sums")) == len(wanted), timeout=10)
        assert [tup["sizes"] for tup in run.captured("sums")] == wanted


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "5", seconds(0), seconds(-5), hours(24 * 30), milliseconds(0.5)])
def test_a_size_that_is_none_is_refused(wrong):
    for made in (lambda: Tumbling(wrong), lambda: Sliding(5, wrong), lambda: Sliding(wrong, 5)):
        with pytest.raises(ConfigError, match=r"Tumbling|Sliding"):
            made()


@pytest.mark.parametrize(
    ("aggregate", "wanted"),
    [
        (Count(), 4),
        (Sum("n"), 11),
        (Mean("n"), 2.75),
        (Min("n"), 1),
        (Max("n"), 5),
        (Distinct("n"), 3),
        (ApproximateDistinct("n"), 3),
        (TopN(2, "n"), [[1, 1], [3, 1]]),
    ],
)
@pytest.mark.parametrize("window", [Tumbling(4), Sliding(4, 4), Sliding(seconds(8), 4)])
def test_aggregates(aggregate, wanted, window):
    numbers = [5, 1, 3, 2] if isinstance(aggregate, TopN | Sum | Mean) else [5, 1, 5, 3]
    if isinstance(aggregate, TopN):
        wanted = [[1, 1], [2, 1]]
    run = run_bolt(
        type("Bolt", (Shows,), {"window": window, "aggregate": aggregate}), [[n] for n in numbers], fields=["n"]
    )
    assert run.values == [[None, wanted]]


def test_what_is_not_kept_says_so():
    class Asks(Shows):
        window = Tumbling(1)
        asked: list = []

        def process_window(self, window):
            for name in ("tuples", "new", "expired", "result"):
                try:
                    getattr(window, name)
                except TypeError as problem:
                    self.asked.append(f"{name}: {problem}")

    run_bolt(type("Bolt", (Asks,), {"aggregate": Count()}), [[1]], fields=["n"])
    assert [text.partition(":")[0] for text in Asks.asked] == ["tuples", "new", "expired"]
    Asks.asked.clear()
    run_bolt(type("Bolt", (Asks,), {"key_by": "n"}), [[1]], fields=["n"])
    assert [text.partition(":")[0] for text in Asks.asked] == ["expired", "result"]
    assert "set keep_expired = True" in Asks.asked[0]


@pytest.mark.parametrize("window", [Tumbling(2), Sliding(3, 2), Sliding(seconds(9), 2)])
def test_windows_by_count_have_other_ids_when_the_count_begins_anew(window):
    class Ids(Shows):
        output_fields = ["id"]

        def process_window(self, given):
            self.emit([given.id])

    def life(clock):
        names = [make_tuple([0], ["n"])]
        run = BoltRun(type("Bolt", (Ids,), {"window": window})(), names, None, "bolt", 1, 0, clock=clock)
        for n in range(6):
            run.process([n])
        return [id for (id,) in run.values]

    clock = VirtualClock()
    first = life(clock)
    clock.move_to(clock.now() + 0.01)  # the task died, and is there again
    assert len({*first, *life(clock)}) == 6


def test_a_windows_id_is_its_own_and_stays():
    class Ids(Shows):
        output_fields = ["id", "number", "timing"]
        window = Tumbling(milliseconds(10))
        timestamp_field = "ts"
        key_by = "key"
        allowed_lateness = seconds(1)

        def process_window(self, window):
            self.emit([window.id, window.number, window.timing])

    run = run_bolt(Ids, [["a", 3], ["b", 3], ["a", 15], ["a", 40]], fields=["key", "ts"])
    run.advance(1)
    run.process(["a", 4])
    assert run.values == [
        ['["a",10]', 0, "on time"],
        ['["b",10]', 0, "on time"],
        ['["a",20]', 0, "on time"],
        ['["a",10]', 1, "late"],
    ]
