"""A sink that follows the manual's recipe has, in the end, a row for each window with all of its tuples, and no other row."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang import BasicBolt, LocalCluster, ReliableSpout
from multilang.engine.tuples import LocalTuple, Origin
from multilang.protocol.codec import dumps, loads
from multilang.streams import StreamBuilder
from multilang.testing import make_tuple
from multilang.testing.bolts import BoltRun
from multilang.windowing import (
    Aggregate,
    Session,
    Sliding,
    StatefulWindowedBolt,
    Tumbling,
    WindowedBolt,
    milliseconds,
    seconds,
)
from tests.windowing import reference

FIELDS = ("n", "key", "ts")
LATENESS = 30
LAST = 10**6
KEYS = [None, 0, 1, 1.0, True, "1", ""]
SIZES = st.integers(1, 30)


class Numbers(Aggregate):
    def init(self):
        return []

    def add(self, accumulator, tup):
        return [*accumulator, tup["n"]]

    def merge(self, first, second):
        return first + second


class Shows:
    output_fields = ["id", "number", "timing", "where", "ns"]
    timestamp_field = "ts"

    def process_window(self, window):
        ns = window.result if self.aggregate else [tup["n"] for tup in window.tuples]
        start = window.start if isinstance(self.window, Session) else None
        self.emit([window.id, window.number, window.timing, [window.key, start, window.end], ns])


def table(rows, accumulating):
    """Return what the recipe makes of rows that come in any order, some of them again: the windows and their tuples."""
    stored = {(id, number): rest for id, number, *rest in rows}
    found = []
    for id in {id for id, _ in stored}:
        mine = [stored[key] for key in sorted(stored, key=lambda key: key[1]) if key[0] == id]
        timing, where, _ = mine[-1]
        if timing != "retracted":
            ns = mine[-1][2] if accumulating else [n for _, _, ns in mine for n in ns]
            found.append((dumps(where), sorted(ns)))
    return sorted(found)


def shuffled(rows, seed):
    random = Random(seed)
    again = [row for row in rows if random.random() < 0.2]
    return random.sample([*rows, *again], len(rows) + len(again))


@st.composite
def arrivals(draw, sources=2):
    steps = []
    step = st.tuples(
        st.integers(0, sources - 1),
        st.sampled_from(KEYS[:3]) | st.sampled_from(KEYS),
        st.integers(0, 3),
        st.integers(-25, 25),
        st.booleans(),
    )
    for n, (source, key, at, jitter, tick) in enumerate(draw(st.lists(step, max_size=40))):
        steps.append(reference.Event(n, source, key, n * at + jitter))
        if tick:
            steps.append(None)
    return steps


def right(steps, sources, window, lag, lateness):
    """Return the table that plain Python makes of the tuples that are not late."""
    on_time, _, _ = reference.accepted(steps, sources, lag, lateness)
    for event in on_time:
        event.key = dumps(event.key)  # 1, 1.0 and true are different keys
    ever = float("inf")
    if isinstance(window, Session):
        found = reference.sessions(on_time, window.gap_ms, ever)
        return sorted((f"[{key},{start},{end}]", sorted(ns)) for (key, start, end), ns in found.items())
    found = reference.timed(on_time, window.length_ms, window.slide_ms, ever)
    return sorted((f"[{key},null,{end}]", sorted(ns)) for (key, end), ns in found.items())


def closed(steps, sources):
    return [*steps, *(reference.Event(-1 - n, n, "end", LAST) for n in range(sources)), None]


TUMBLING = st.builds(Tumbling, SIZES.map(milliseconds))
SESSIONS = st.builds(Session, SIZES.map(milliseconds))
SLIDING = st.builds(Sliding, SIZES.map(milliseconds), SIZES.map(milliseconds))


@given(
    arrivals(),
    st.one_of(SESSIONS, TUMBLING, SLIDING),
    st.sampled_from([None, 1, 2, 3, milliseconds(700)]),
    st.sampled_from([0, 5]),
    st.sampled_from([0, LATENESS]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([WindowedBolt, StatefulWindowedBolt]),
    st.integers(0, 99),
)
def test_of_bolts(steps, window, early, lag, lateness, accumulating, aggregates, base, seed):
    if isinstance(window, Sliding) and window.length != window.slide:
        early, accumulating = None, True
    kind = {
        "window": window,
        "key_by": "key",
        "early": early,
        "lag": milliseconds(lag),
        "allowed_lateness": milliseconds(lateness),
        "accumulating": accumulating,
        "aggregate": Numbers() if aggregates else None,
    }
    bolt = type("Bolt", (Shows, base), kind)
    names = [make_tuple([0, "", 0], FIELDS, f"source{index}") for index in range(2)]

    def started(state):
        return BoltRun(bolt(), names, None, "bolt", 1, 0, **({} if state is None else {"state": state}))

    run, rows = started({} if base is StatefulWindowedBolt else None), []
    chance = Random(seed)
    for step in closed(steps, 2):
        if step is None:
            run.advance(1)
            if base is StatefulWindowedBolt and chance.random() < 0.3:  # it is started again from its checkpoint
                run.bolt.pre_prepare(1)
                rows += [list(each.values) for each in run.emitted]
                run = started({key: loads(dumps(value)) for key, value in run.state.items()})
        else:
            origin = Origin(f"source{step.source}", "default", 1, FIELDS)
            run.process(LocalTuple([step.n, step.key, step.ts], "default", origin))
    rows += [list(each.values) for each in run.emitted]
    found = [row for row in table(shuffled(rows, seed), accumulating) if '"end"' not in row[0]]
    assert found == right(steps, 2, window, lag, lateness)


def test_the_manuals_query_finds_them():
    text = (Path(__file__).parents[2] / "docs" / "windows.md").read_text()
    query = re.search(r"^    SELECT .*(\n    .*)*", text, re.MULTILINE)[0]

    class Stays(WindowedBolt):
        output_fields = ["id", "number", "timing", "user", "pages"]
        window = Session(milliseconds(10))
        key_by = "key"
        timestamp_field = "ts"
        allowed_lateness = seconds(1)

        def process_window(self, window):
            self.emit([window.id, window.number, window.timing, window.key, len(window.tuples)])

    run = BoltRun(Stays(), [make_tuple([0, "", 0], FIELDS, "source0")], None, "bolt", 1, 0)
    for step in closed(merging(), 1):
        if step is None:
            run.advance(1)
        else:
            run.process(make_tuple([step.n, str(step.key), step.ts], FIELDS, "source0"))
    table = sqlite3.connect(":memory:")
    table.execute('create table stays (id text, number integer, timing text, "user" text, pages integer)')
    table.executemany("insert into stays values (?, ?, ?, ?, ?)", run.values)
    assert [row[2] for row in run.values].count("retracted") == 1
    assert sorted(table.execute(query)) == [("1", 1), ("1", 3)]


class Script(ReliableSpout):
    """Emits events in order, and waits for the watermark at each tick."""

    output_fields = list(FIELDS)

    def __init__(self, steps):
        self.steps = steps

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.at, self.due = 0, self.clock()

    def next_tuple(self):
        while self.at < len(self.steps) and self.clock() >= self.due:
            step, self.at = self.steps[self.at], self.at + 1
            if step is None:
                self.due = self.clock() + 1.5
            else:
                self.emit([step.n, step.key, step.ts])


def merging():
    """Return two sessions that are evaluated before a late tuple joins them."""
    first, second, later, between = (reference.Event(n, 0, 1, ts) for n, ts in enumerate([0, 18, 40, 9]))
    return [first, second, None, later, None, between, None]


@settings(max_examples=25)
@example(merging(), Session(milliseconds(10)), False, False, 0)
@example(merging(), Session(milliseconds(10)), True, True, 0)
@given(arrivals(1), st.one_of(SESSIONS, TUMBLING, SLIDING), st.booleans(), st.booleans(), st.integers(0, 99))
def test_of_streams(steps, window, joins, state, seed):
    steps = [step for step in steps if step is None or type(step.key) is int]
    s = StreamBuilder(state=state)
    values = s.source(Script(closed(steps, 1)), name="source").map(lambda t: [t["n"], t["key"], t["ts"]])
    windows = values.key_by(lambda value: value[1]).window(window, lambda value: value[2], allowed_lateness=seconds(1))
    results = windows.join(windows, name="op") if joins else windows.group(name="op")
    results.with_window(name="rows").to(Ends, name="sink", fields=["key", "told"])
    conf = {"topology.message.timeout.secs": 300, "topology.state.provider": "memory"}
    with LocalCluster("simulated", seed=seed) as cluster:
        run = cluster.submit(s.build("sinks", conf), capture=["sink"])
        run.run_for(3 * len(steps) + 10)
        told = [each.values for each in run.captured("sink")]
    found = {}
    for key, (about, result) in shuffled(told, seed):
        number, row = about["number"], about["row"]
        if key != "end":
            found.setdefault(about["id"], {}).setdefault(number, {})[row] = (key, about, result)
    rows = []
    for by_number in found.values():
        newest = by_number[max(by_number)]
        key, about, result = newest[0]
        if about["timing"] == "retracted":
            continue
        start = about["start"] if isinstance(window, Session) else None
        if joins:
            ns = sorted({left[0] for _, _, (left, _) in newest.values()})
            assert sorted([a[0], b[0]] for _, _, (a, b) in newest.values()) == [[a, b] for a in ns for b in ns]
        else:
            ns = sorted(value[0] for value in result)
        rows.append((dumps([key, start, about["end"]]), ns))
    assert sorted(rows) == right(steps, 1, window, 0, 1000)


class Ends(BasicBolt):
    output_fields = ["key", "told"]

    def process(self, tup):
        self.emit(tup.values)
