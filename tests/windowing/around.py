"""Windowed bolts of all kinds, with different things around them that change what their collectors do."""

from __future__ import annotations

from itertools import product
from random import Random

from multilang import BasicBolt, Bolt, Spout, TopologyBuilder
from multilang.coordination import COORD, COORD_STREAM, SINGLE, CoordinatedBolt
from multilang.state import ReplayableSpout, StatefulBasicBolt
from multilang.windowing import (
    Aggregate,
    Count,
    Sliding,
    StatefulWindowedBolt,
    Sum,
    Tumbling,
    WindowedBolt,
    milliseconds,
)
from tests.windowing import reference

FIELDS = ["id", "n", "key", "ts"]
KEYS = ["ant", "bee", "cat"]
EVENTS = 60
OF_AN_ID = 5
LAG = 50
LAST = 10**9


class Own(Aggregate):
    """Counts, but nobody knows that."""

    def init(self):
        return 0

    def add(self, accumulator, tup):
        return accumulator + len(tup.values[2:3])

    def merge(self, first, second):
        return first + second


class Shows:
    """Emits a window's key and what is in it, and the ids that are finished."""

    output_streams = {"default": ["key", "what"], "finished": ["id"]}
    key_by = "key"

    def process_window(self, window):
        what = sorted(tup["n"] for tup in window.tuples) if self.aggregate is None else window.result
        self.emit([window.key, what])

    def finished_id(self, id):
        self.emit([id], "finished", [])


WINDOWS = {
    "tumbling": (milliseconds(70), milliseconds(70)),
    "sliding": (milliseconds(200), milliseconds(100)),
    "gaps": (milliseconds(30), milliseconds(80)),
    "fives": (5, 5),
    "last six": (6, 4),
}
CONTENTS = {"count": Count(), "sum": Sum("n"), "own": Own(), "tuples": None}
ANCHORS = ["all", "new", "none"]
WAYS = ["fast", "slow"]
PARTS = [WINDOWS, CONTENTS, ANCHORS, WAYS]
KINDS = [*product(*PARTS)]


def _bolt(base, kind):
    window, content, anchor, way = kind
    length, slide = WINDOWS[window]
    name = f"{base.__name__} {' '.join(kind)}".replace(" ", "_")
    by_time = {"timestamp_field": "ts", "lag": milliseconds(LAG), "watermark_interval": milliseconds(10)}
    of_window = {
        "window": Tumbling(length) if length == slide else Sliding(length, slide),
        **({} if isinstance(length, int) else by_time),
        "aggregate": CONTENTS[content],
        "anchor": anchor,
        "id_field": "n" if way == "slow" else None,
        "__module__": __name__,  # where processes find it
    }
    globals()[name] = made = type(name, (Shows, base), of_window)
    return made


BOLTS = {base: {kind: _bolt(base, kind) for kind in KINDS} for base in (WindowedBolt, StatefulWindowedBolt)}


def event(n):
    return [n // OF_AN_ID, n, KEYS[n % len(KEYS)], n * 10 + n * 7919 % (LAG - 1)]


def closers():
    """Return tuples that end all windows: some of each key, and one far behind them."""
    first = EVENTS // OF_AN_ID
    keys = [key for _ in range(12) for key in KEYS]
    return [[first + i, -1 - i, key, LAST] for i, key in enumerate(keys)] + [[first + 99, -99, "end", 2 * LAST]]


class Rows:
    """All events, and the tuples that end all windows, which have no message id, so that nobody waits for them."""

    output_fields = FIELDS

    def initialize(self, conf, context):
        self.rows, self.given = self.all_rows(), 0

    def all_rows(self):
        return [(row, row[1]) for row in map(event, range(EVENTS))] + [(row, None) for row in closers()]

    def next_tuple(self):
        if self.given < len(self.rows):
            self.given += 1
            self.emit(*self.rows[self.given - 1])

    def exhausted(self):
        return self.given == len(self.rows)


class Events(Rows, Spout):
    pass


class EventsByPosition(Rows, ReplayableSpout):
    """The same, as exact alignment needs them: all have ids."""

    max_replays = None

    def position(self):
        return self.given

    def seek(self, position):
        self.given = position


class Requests(Events):
    """The ids of the events; whoever reads them knows the events."""

    output_fields = ["id"]

    def all_rows(self):
        return [([id], id) for id in range(EVENTS // OF_AN_ID)] + [([row[0]], None) for row in closers()]


class Prepare(BasicBolt):
    """Emits the events of an id."""

    output_streams = {"default": FIELDS, COORD_STREAM: COORD}

    def process(self, tup):
        for row in [*map(event, range(EVENTS)), *closers()]:
            if row[0] == tup[0]:
                self.emit(row)


class Passes(BasicBolt):
    output_fields = FIELDS

    def process(self, tup):
        self.emit(tup.values)


class Adds(StatefulBasicBolt):
    """Counts the windows."""

    output_fields = ["key"]

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put("n", self.state.get("n", 0) + 1)
        self.emit([tup[0]])


class Reads(Bolt):
    def process(self, tup):
        self.ack(tup)


def chosen(seed, most):
    """Return kinds of windows by chance, among which is each value of each part if there are enough of them."""
    random = Random(seed)
    columns = []
    for part in PARTS:
        values: list[str] = []
        while len(values) < most:
            values += random.sample([*part], len(part))
        columns.append(values[:most])
    return sorted(set(zip(*columns, strict=True)))


def built(kinds, *, base=WindowedBolt, state=False, coordinated=False, exact=False, conf=None):
    """Return a topology that has windowed bolts of these kinds, named by them."""
    builder = TopologyBuilder()
    builder.set_spout("events", Requests if coordinated else EventsByPosition if exact else Events)
    if coordinated:
        builder.set_bolt("passes", CoordinatedBolt(Prepare())).shuffle_grouping("events")
    else:
        builder.set_bolt("before", Passes).shuffle_grouping("events")
        builder.set_bolt("passes", Passes).shuffle_grouping("before")
    last = builder.set_bolt("last", Adds if state else Reads)
    for kind in kinds:
        name, bolt = " ".join(kind), BOLTS[base][kind]
        windows = builder.set_bolt(name, CoordinatedBolt(bolt(), {"passes": SINGLE}) if coordinated else bolt)
        windows.shuffle_grouping("passes")
        if coordinated:
            windows.direct_grouping("passes", stream=COORD_STREAM)
        last.shuffle_grouping(name)
    if state:
        builder.set_bolt("end", Reads).shuffle_grouping("last")
    alignment = {"multilang.state.alignment": "exact"} if exact else {}
    return builder.build("around", {"topology.message.timeout.secs": 100, **alignment, **(conf or {})})


def answer(kind):
    """Return what a windowed bolt emits, sorted as text."""
    window, content, _, _ = kind
    events = [reference.Event(n, 0, key, ts) for _, n, key, ts in [*map(event, range(EVENTS)), *closers()]]
    length, slide = WINDOWS[window]
    if isinstance(length, int):
        windows = [(key, mine) for key, every in reference.counted(events, length, slide).items() for mine in every]
    else:
        length, slide = (duration // milliseconds(1) for duration in (length, slide))
        found = reference.timed(events, length, slide, 2 * LAST - LAG)
        windows = [(key, mine) for (key, _), mine in found.items()]
    shown = {"count": len, "own": len, "sum": sum, "tuples": sorted}[content]
    return sorted(str([key, shown(mine)]) for key, mine in windows)
