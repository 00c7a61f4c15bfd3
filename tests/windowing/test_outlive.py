"""Tuples that outlive the message timeout in a window count once, and none is late that was not, although nothing failed."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, Bolt, LocalCluster, ReliableSpout, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.shipping.errors import ShippingError
from multilang.shipping.shippable import check_can_run, check_shippable
from multilang.streams import StreamBuilder
from multilang.testing import make_tuple, run_bolt
from multilang.topology import TopologyError
from multilang.windowing import Count, Session, Sliding, StatefulWindowedBolt, Tumbling, WindowedBolt, seconds
from tests.patience import PACE

TIMEOUT = 4
CONF = {"topology.message.timeout.secs": TIMEOUT}
LAST = 10**6


class Script(ReliableSpout):
    """Emits [n, key, ts] at the given times, in seconds, from one task."""

    output_fields = ["n", "key", "ts"]

    def __init__(self, times):
        self.times = times

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.go, self.began, self.n = conf.get("test.go"), self.clock(), 0

    def next_tuple(self):
        if self.go is not None:
            if not os.path.exists(self.go):
                return
            self.go, self.began = None, self.clock()
        while self.n < len(self.times) and self.clock() - self.began >= self.times[self.n]:
            self.emit([self.n, "ab"[self.n % 2], round(self.times[self.n] * 1000)])
            self.n += 1


class Passes(BasicBolt):
    output_fields = Script.output_fields

    def process(self, tup):
        self.emit(tup.values)


class Twice(BasicBolt):
    """Emits all again with other numbers, so that several tuples come of one."""

    output_fields = Script.output_fields

    def process(self, tup):
        n, key, ts = tup.values
        self.emit([n, key, ts])
        self.emit([n + LAST, key, ts])


class Shows(WindowedBolt):
    output_fields = ["ns", "end"]
    late_stream = None

    def process_window(self, window):
        self.emit([window.result if self.aggregate else sorted(t["n"] for t in window.tuples), window.end])


class Outer(Shows):
    """A window of windows."""

    window = Tumbling(2)

    def process_window(self, window):
        self.emit([sorted(n for t in window.tuples for n in t["ns"]), window.end])


WINDOWS = [
    Tumbling(3),
    Sliding(4, 2),
    Session(seconds(2)),
    Sliding(3, seconds(1)),
    Sliding(seconds(2), 3),
    Tumbling(seconds(2)),
    Sliding(seconds(2), seconds(1)),
]
PAUSES = st.lists(st.sampled_from([0.0, 0.3, 1.5, 1.9, 5.0, 11.0]), min_size=1, max_size=12)


def times_of(pauses):
    found, at = [], 0.0
    for pause in pauses:
        at += pause
        found.append(at)
    return found


def run(topology, capture, secs=150, seed=0):
    with LocalCluster("simulated", seed=seed) as cluster:
        run = cluster.submit(topology, capture=capture)
        run.run_for(secs)
        assert run.counters["script"].failed == 0
        return [[x.values for x in run.captured(*each)] for each in capture]


def slow(window, event_time, **more):
    """Return the topology's windows under a timeout that all are older than, or that none is."""
    of_time = {"timestamp_field": "ts", "late_stream": "late"} if event_time else {}
    bolt = type("Windows", (Shows,), {"window": window, **of_time, **more})

    def built(times, timeout, between):
        builder = TopologyBuilder()
        builder.set_spout("script", Script(times))
        builder.set_bolt("between", between).shuffle_grouping("script")
        builder.set_bolt("windows", bolt).shuffle_grouping("between")
        return builder.build("outlive", {"topology.message.timeout.secs": timeout})

    return built


@settings(max_examples=60, deadline=None)
@given(
    PAUSES,
    st.sampled_from(WINDOWS),
    st.booleans(),
    st.sampled_from([Passes, Twice]),
    st.sampled_from(["all", "new", "none"]),
    st.sampled_from([None, Count()]),
    st.integers(0, 9),
)
def test_windows_are_those_of_a_timeout_that_never_comes(pauses, window, event_time, between, anchor, aggregate, seed):
    built = slow(window, event_time, anchor=anchor, aggregate=aggregate)
    capture = [("windows", "default"), *([("windows", "late")] if event_time else [])]
    times = times_of(pauses)
    assert run(built(times, TIMEOUT, between), capture, seed=seed) == run(
        built(times, 10**6, between), capture, seed=seed
    )


@settings(max_examples=20, deadline=None)
@given(PAUSES, st.integers(0, 9))
def test_windows_of_windows_have_each_value_once(pauses, seed):
    builder = TopologyBuilder()
    times = times_of(pauses)
    builder.set_spout("script", Script(times))
    builder.set_bolt("windows", type("Windows", (Shows,), {"window": Tumbling(2)})).global_grouping("script")
    builder.set_bolt("outer", Outer).global_grouping("windows")
    (found,) = run(builder.build("outlive", CONF), [("outer", "default")], seed=seed)
    assert [n for ns, _ in found for n in ns] == list(range(len(times) // 4 * 4))


@settings(max_examples=20, deadline=None)
@example(
    [0.0, 0.3, 1.5, 1.9, 5.0], Tumbling(3), 5
)  # a timeout comes when a window has ended, and its acks are under way
@given(PAUSES, st.sampled_from([Tumbling(3), Session(seconds(2)), Tumbling(seconds(2))]), st.integers(0, 9))
def test_streams_have_each_value_once(pauses, window, seed):
    found = []
    for timeout in (TIMEOUT, 10**6):
        s = StreamBuilder()
        times = times_of(pauses)
        pairs = s.source(Script(times), name="script").map(lambda t: [t["key"], t["n"], t["ts"]]).repartition(2)
        event_time = None if window == Tumbling(3) else (lambda v: v[2])
        pairs.key_by(lambda v: v[0]).window(window, event_time).group(name="group")
        topology = s.build("outlive", {"topology.message.timeout.secs": timeout})
        found.append(sorted(map(str, run(topology, [("group", "default")], seed=seed)[0])))
    assert found[0] == found[1]


class Threes(Shows):
    window = Tumbling(3)


class Forgets(Bolt):
    """Neither acks nor fails what comes first."""

    output_fields = Script.output_fields

    def initialize(self, conf, context):
        self.seen = []

    def process(self, tup):
        self.seen.append(tup["n"])
        if len(self.seen) > 1:
            self.emit(tup.values, anchors=[tup])
            self.ack(tup)


@pytest.mark.parametrize(("mode", "secs"), [("inprocess", 1.5), ("process", 4.0)])
def test_in_real_time(mode, secs, tmp_path):
    secs *= PACE
    builder = TopologyBuilder()
    builder.set_spout("script", Script([0.0] * 4 + [2.2 * secs] * 7 + [4.4 * secs]))
    builder.set_bolt("between", Passes).shuffle_grouping("script")
    builder.set_bolt("windows", Threes).shuffle_grouping("between")
    builder.set_bolt("outer", Outer).shuffle_grouping("windows")
    conf = {"topology.message.timeout.secs": secs, "test.go": str(tmp_path / "go")}
    with LocalCluster(mode) as cluster:
        run = cluster.submit(builder.build("outlive", conf), capture=["outer"])
        run.wait(lambda run: all(task.alive for task in run.tasks), timeout=60 * PACE)
        (tmp_path / "go").touch()
        run.wait(lambda run: len(run.captured("outer")) > 1, timeout=60 * PACE)
        assert [x["ns"] for x in run.captured("outer")] == [[*range(6)], [*range(6, 12)]]
        assert run.counters["script"].failed == 0


@pytest.mark.parametrize("seed", range(5))
def test_what_is_lost_is_replayed_although_a_window_holds_the_rest(seed):
    builder = TopologyBuilder()
    builder.set_spout("script", Script([0.0]))
    builder.set_bolt("windows", Threes).shuffle_grouping("script")
    builder.set_bolt("forgets", Forgets).shuffle_grouping("script")
    with LocalCluster("simulated", seed=seed) as cluster:
        run = cluster.submit(builder.build("outlive", CONF), capture=["forgets"])
        run.wait(lambda run: run.captured("forgets"), timeout=4 * TIMEOUT)


def chained(*kinds, conf=None):
    builder = TopologyBuilder()
    builder.set_spout("script", Script([0.0]))
    before = "script"
    for number, (base, more) in enumerate(kinds):
        bolt = type("Windows", (Plain, base), {"window": Tumbling(seconds(6)), **more})
        builder.set_bolt(f"w{number}", bolt).global_grouping(before)
        builder.set_bolt(f"b{number}", Passes).shuffle_grouping(f"w{number}")
        before = f"b{number}"
    return builder.build("chained", {"topology.message.timeout.secs": 20, **(conf or {})})


def all_alike(_):
    return "all"


class Plain:
    output_fields = Script.output_fields

    def process_window(self, window):
        self.emit(window.tuples[0].values)


def test_windows_one_behind_the_other_that_hold_a_tuple_for_too_long_are_refused():
    plain, stateful, loose = (WindowedBolt, {}), (StatefulWindowedBolt, {}), (WindowedBolt, {"anchor": "none"})
    chained(plain)
    with pytest.raises(
        ConfigError, match=r"'w0' and 'w1', one behind the other, make 24 s, and .*timeout.secs is 20: "
    ):
        chained(plain, plain)
    chained(plain, plain, conf={"topology.message.timeout.secs": 24})
    chained(plain, plain, conf={"topology.enable.message.timeouts": False})
    chained(plain, loose, plain, conf={"topology.message.timeout.secs": 24})
    chained(plain, stateful, plain)


@pytest.mark.parametrize("window", [Tumbling(seconds(6)), Sliding(seconds(9), seconds(3)), Session(seconds(12))])
@pytest.mark.parametrize("stream", [False, True])
def test_a_timeout_that_is_given_later_is_checked_before_anything_starts(window, stream):
    if stream:
        s = StreamBuilder()
        s.source(Script([0.0])).key_by(all_alike).window(window).count(name="w0")
        topology = s.build("later")
    else:
        topology = chained((WindowedBolt, {"window": window}))
    said = r"'w0'.* make 12 s, and topology.message.timeout.secs is 11: .*Set topology.message.timeout.secs to 12"
    fits, short = ({"topology.message.timeout.secs": secs} for secs in (12, 11))
    check_shippable(topology.with_conf(fits))
    with pytest.raises(ShippingError, match=said):
        check_shippable(topology.with_conf(short))
    if "topology.message.timeout.secs" not in topology.conf:
        check_can_run(topology, fits)
        with pytest.raises(ShippingError, match=said):
            check_can_run(topology, short)
    with LocalCluster("simulated") as cluster, pytest.raises(TopologyError, match=said):
        cluster.submit(topology, conf=short)


def test_a_spout_that_waits_for_windows_for_ever_is_named(caplog):
    builder = TopologyBuilder()
    builder.set_spout("script", Script([0.0] * 9))
    builder.set_bolt("windows", type("Windows", (Shows,), {"window": Tumbling(2), "key_by": "n"})).shuffle_grouping(
        "script"
    )
    topology = builder.build("full", {**CONF, "topology.max.spout.pending": 4})
    with LocalCluster("simulated", seed=1) as cluster:
        cluster.submit(topology).run_for(10 * TIMEOUT)
    (line,) = [record.message for record in caplog.records if "max.spout.pending" in record.message]
    assert "topology.max.spout.pending is 4, and windows" in line


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("event_time", [False, True])
def test_on_storm_an_error_is_reported_when_a_window_holds_tuples_for_too_long(window, event_time):
    bolt = type("Windows", (Shows,), {"window": window, "timestamp_field": "ts" if event_time else None})
    told, conf = {}, {**CONF, "multilang.parent": "storm"}
    for id_field in (None, "n"):
        run = run_bolt(
            type("Bolt", (bolt,), {"id_field": id_field}), [], conf, fields=Script.output_fields, component="windows"
        )
        for n in range(2):
            run.process(make_tuple([n, "a", n], Script.output_fields))
        for _ in range(4):
            run.advance(TIMEOUT)
        told[id_field] = [text for text in run.errors if "count twice" in text]
    assert bool(told[None]) == bool(run.unfinished)
    assert told["n"] == []
