"""A topology with every kind of windows by event time, and the answer from their definition, the same on every engine."""

from __future__ import annotations

from collections import Counter

from multilang import TopologyBuilder
from multilang.state import ReplayableSpout
from multilang.windowing import (
    Count,
    Session,
    Sliding,
    StatefulWindowedBolt,
    Sum,
    Tumbling,
    WindowedBolt,
    milliseconds,
)
from tests.windowing import reference
from tests.windowing.topologies import event

LAST = 10**9  # the time of the first tuples that are far behind the others
CLOSERS = [[-1, f"end {n}", ts] for ts in (LAST, 2 * LAST) for n in range(8)]


class Events(ReplayableSpout):
    """``test.events`` events, out of order by less than 50 ms.

    Then come tuples that end all windows, of so many keys that each task of a windowed bolt has some, and ends windows of
    its own after all others, for the windows of windows.
    """

    output_fields = ["n", "key", "ts"]
    max_replays = None

    def initialize(self, conf, context):
        self.n, self.step = context.task_index, len(context.tasks(context.component))
        self.total, self.closed = conf["test.events"], 0

    def next_tuple(self):
        if self.n < self.total:
            n, self.n = self.n, self.n + self.step
            self.emit(list(event(n)), n)
        elif self.closed < len(CLOSERS):
            self.closed += 1
            self.emit(CLOSERS[self.closed - 1], f"end {self.closed}")

    def exhausted(self):
        return self.closed == len(CLOSERS)

    def position(self):
        return [self.n, self.closed]

    def seek(self, position):
        self.n, self.closed = position


class Shows:
    """Emits a window's key, its end, and the numbers of its tuples."""

    output_fields = ["key", "end", "numbers"]
    key_by = "key"
    timestamp_field = "ts"
    lag = milliseconds(50)
    watermark_interval = milliseconds(100)

    def process_window(self, window):
        self.emit([window.key, window.end, sorted(tup["n"] for tup in window.tuples)])


class Counts(Shows):
    output_fields = ["key", "end", "count"]
    window = Sliding(milliseconds(200), milliseconds(100))
    aggregate = Count()

    def process_window(self, window):
        self.emit([window.key, window.end, window.result])


class Totals(Shows):
    """Windows of windows: their counts by end."""

    output_fields = ["end", "total"]
    window = Tumbling(milliseconds(100))
    key_by = None
    timestamp_field = "end"
    aggregate = Sum("count")

    def process_window(self, window):
        self.emit([window.end, window.result])


WINDOWS = {
    "counts": Counts,
    "tumbling": type("TumblingWindows", (Shows,), {"window": Tumbling(milliseconds(70))}),
    "gaps": type("WindowsWithGaps", (Shows,), {"window": Sliding(milliseconds(30), milliseconds(80))}),
    "sessions": type("Sessions", (Shows,), {"window": Session(milliseconds(21))}),
    "fives": type("Fives", (Shows,), {"window": Tumbling(5)}),
    "last six": type("LastSix", (Shows,), {"window": Sliding(6, 4)}),
    "latest": type("Latest", (Shows,), {"window": Sliding(3, milliseconds(100))}),
    "recent": type("Recent", (Shows,), {"window": Sliding(milliseconds(60), 4)}),
}
BOLTS = {
    base: {name: type(shows.__name__, (shows, base), {}) for name, shows in [*WINDOWS.items(), ("totals", Totals)]}
    for base in (WindowedBolt, StatefulWindowedBolt)
}


def builder(base, tasks=2):
    """Return a builder that has the topology, with its bolts made of ``base``."""
    builder = TopologyBuilder()
    builder.set_spout("events", Events, 2)
    for name, bolt in BOLTS[base].items():
        if name == "totals":
            builder.set_bolt(name, bolt).global_grouping("counts")
        else:
            builder.set_bolt(name, bolt, tasks).fields_grouping("events", "key")
    return builder


def built(base, tasks=2, conf=None):
    """Return the topology, with its bolts made of ``base``."""
    return builder(base, tasks).build("windows", {"topology.message.timeout.secs": 100, **(conf or {})})


plain = built(WindowedBolt)
stateful = built(StatefulWindowedBolt)


def answer(total):
    """Return what each bolt emits of ``total`` events, as Counters."""
    events = [reference.Event(n, 0, key, ts) for n, key, ts in map(event, range(total))]
    before = float("inf")
    ordered = reference.in_order(events, before)
    counts = {(key, end): len(numbers) for (key, end), numbers in reference.timed(events, 200, 100, before).items()}
    totals = Counter()
    for (_, end), count in counts.items():
        totals[end] += count
    by_time = {event.n: event.ts for event in events}
    found = {
        "counts": [(*where, count) for where, count in counts.items()],
        "totals": [*totals.items()],
        "tumbling": _with_ends(reference.timed(events, 70, 70, before)),
        "gaps": _with_ends(reference.timed(events, 30, 80, before)),
        "sessions": [(key, end, numbers) for (key, _, end), numbers in reference.sessions(events, 21, before).items()],
        "fives": _by_count(reference.counted(ordered, 5, 5), by_time),
        "last six": _by_count(reference.counted(ordered, 6, 4), by_time),
        "latest": _with_ends(reference.latest(ordered, 3, 100, before)),
        "recent": _by_count(reference.recent(ordered, 60, 4), by_time),
    }
    return {name: Counter(map(_plain, rows)) for name, rows in found.items()}


def given(rows):
    """Return what a bolt emitted as a Counter like those of ``answer``, without what came of the closing tuples."""
    return Counter(
        _plain(row) for row in rows if not (row[0].startswith("end") if isinstance(row[0], str) else row[0] >= LAST)
    )


def _with_ends(found):
    return [(*where, numbers) for where, numbers in found.items()]


def _by_count(found, by_time):
    """A window by count ends with its last tuple."""
    return [(key, max(by_time[n] for n in numbers), numbers) for key, windows in found.items() for numbers in windows]


def _plain(row):
    """Return a row as something that can be counted."""
    return tuple(tuple(sorted(part)) if isinstance(part, list | set | tuple) else part for part in row)
