"""``python -m benchmarks.windows [EVENTS] [ROUNDS]``: CPU of windowed topologies over that of a plain one, in turn.

With ``--bytewax PYTHON``, a Python that has bytewax 0.21, they are compared with its ``count_window`` and ``fold_window`` instead,
each given the same number of events, which are in a list before the time is taken. Ours are acked, bytewax has no acks.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path
from statistics import median

from multilang import Bolt, LocalCluster, Spout, TopologyBuilder
from multilang.windowing import Count, Sliding, Tumbling, WindowedBolt, milliseconds, seconds

BATCH = 200


class Events(Spout):
    """``bench.events`` events of ``bench.keys`` keys, one each millisecond; the last one ends all windows."""

    output_fields = ["key", "ts"]
    is_done = False
    rows = None  # made before the time is taken, if they are

    def initialize(self, conf, context):
        self.n, self.total, self.keys = 0, conf["bench.events"], conf["bench.keys"]

    def next_tuple(self):
        if self.n < self.total:
            first, self.n = self.n, min(self.n + BATCH, self.total)
            keys = self.keys
            numbers = range(first, self.n)
            rows = self.rows[first : self.n] if self.rows else [[f"key{n % keys}", n] for n in numbers]
            self.emit_many(rows, numbers)
            if self.n == self.total:
                self.emit(["key0", self.n * 1000 + 10**9])
                Events.is_done = True

    def exhausted(self):
        return self.n >= self.total


class Plain(Bolt):
    """Counts by key, emits every hundredth count, and acks each tuple."""

    output_fields = ["key", "count"]

    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        key = tup["key"]
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count % 100 == 0:
            self.emit([key, 100], anchors=[tup])
        self.ack(tup)


class ByHand(Bolt):
    """Slides by 1 s over 60 s with counts alone: nothing waits, is late, is acked later, or comes in another order."""

    output_fields = ["key", "count"]

    def initialize(self, conf, context):
        self.end = 0
        self.counts = {}  # of the slice that ends at ``end``
        self.slices = {}  # those before, by their ends
        self.running = {}

    def process(self, tup):
        key, ts = tup["key"], tup["ts"]
        while ts > self.end:
            if not self.running and not self.counts:
                self.end = -(-ts // 1000) * 1000
                break
            self.turn()
        self.counts[key] = self.counts.get(key, 0) + 1
        self.ack(tup)

    def turn(self):
        running = self.running
        for key, count in self.counts.items():
            running[key] = running.get(key, 0) + count
        self.slices[self.end] = self.counts
        for key, count in running.items():
            self.emit([key, count])
        for key, count in self.slices.pop(self.end - 59_000, {}).items():
            running[key] -= count
            if not running[key]:
                del running[key]
        self.end += 1000
        self.counts = {}


class Windowed(WindowedBolt):
    output_fields = ["key", "count"]
    key_by = "key"
    aggregate = Count()
    anchor = "none"

    def process_window(self, window):
        self.emit([window.key, window.result])


class Timed(Windowed):
    timestamp_field = "ts"


class Sums(Bolt):
    total = 0

    def process(self, tup):
        Sums.total += tup["count"]
        self.ack(tup)


BOLTS = {
    "plain": Plain,
    "tumbling by count": type("Counted", (Windowed,), {"window": Tumbling(100)}),
    "tumbling 60 s": type("Tumbles", (Timed,), {"window": Tumbling(seconds(60))}),
    "sliding, by hand": ByHand,
    "sliding 60 s by 1 s": type("Slides", (Timed,), {"window": Sliding(seconds(60), seconds(1))}),
    "tumbling 10 ms": type("Short", (Timed,), {"window": Tumbling(milliseconds(10))}),
}


def run(name: str, events: int, keys: int) -> float:
    """Return the CPU seconds; the windows' counts must be those of the events."""
    builder = TopologyBuilder()
    builder.set_spout("events", Events)
    builder.set_bolt("windows", BOLTS[name]).shuffle_grouping("events")
    builder.set_bolt("sums", Sums).shuffle_grouping("windows")
    conf = {"bench.events": events, "bench.keys": keys, "topology.message.timeout.secs": 3600}
    Sums.total, Events.is_done = 0, False
    # The last tuples of each key stay in a window by count that is not full.
    acked = events // keys // 100 * 100 * keys if name == "tumbling by count" else events
    topology = builder.build("windows", conf)
    wanted = events * 60 if name.startswith("sliding") else events
    if name in ("plain", "tumbling by count"):
        wanted = events // keys // 100 * 100 * keys

    def is_done(run):
        return Events.is_done and 0.9 * wanted <= Sums.total and run.counters["events"].acked >= acked

    before = time.process_time()
    with LocalCluster("inprocess") as cluster:
        cluster.submit(topology).wait(is_done, timeout=3600)
    took = time.process_time() - before
    if not 0.9 * wanted <= Sums.total <= wanted:
        raise SystemExit(f"{name}: {Sums.total} counted, {wanted} wanted")
    return took


def by_bytewax(python: str, name: str, operator: str, events: int, keys: int) -> float:
    """Return the CPU seconds of bytewax, which counts the same."""
    command = [python, str(Path(__file__).with_name("bytewax_job.py")), name, operator, str(events), str(keys)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(python: str, events: int, rounds: int) -> None:
    """Print the rates of windows and of bytewax, measured in turn."""
    for keys in (10, 1000):
        Events.rows = [[f"key{n % keys}", n] for n in range(events)]
        for name in ("tumbling 60 s", "sliding 60 s by 1 s"):
            ours, others = [], {"count_window": [], "fold_window": []}
            for _ in range(rounds):
                ours.append(run(name, events, keys))
                for operator, each in others.items():
                    each.append(by_bytewax(python, name, operator, events, keys))
            for operator, each in others.items():
                ratio = median(other / mine for other, mine in zip(each, ours, strict=True))
                print(
                    f"{keys:>7} keys  {name:<20} {events / median(ours):>10.0f}/CPU s  {ratio:.2f} of the rate of bytewax' {operator} "
                    f"({events / median(each):.0f})"
                )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000)
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("--bytewax", metavar="PYTHON", help="a Python with bytewax 0.21")
    given = parser.parse_args()
    events, rounds = given.events, given.rounds
    if given.bytewax:
        compare(given.bytewax, events, rounds)
        return
    for keys in (10, 1000, 100_000):
        took: dict[str, list[float]] = {name: [] for name in BOLTS}
        for _ in range(rounds):
            for name, each in took.items():
                if keys > 1000 and name != "plain" and not name.startswith("tumbling 60"):
                    continue  # hardly a window by count is full, and one result for each tuple is another measure
                each.append(run(name, events, keys))
        for name, each in took.items():
            if each:
                ratio = median(plain / mine for plain, mine in zip(took["plain"], each, strict=True))
                print(f"{keys:>7} keys  {name:<20} {events / median(each):>10.0f}/CPU s  {ratio:.2f} of plain's rate")


if __name__ == "__main__":
    main()
