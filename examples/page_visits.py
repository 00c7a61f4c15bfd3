"""Sessions of visitors and the top pages of each minute, from the log of a web server.

    multilang run examples/page_visits.py --for 60 --top sessions:user:pages

The log is made up: 200,000 lines (``-c example.lines=N``), out of order by some seconds, a few of them broken and a few
far too late. Its last line is an hour behind the others, which closes all windows but its own: it runs until it is
stopped.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple
from multilang.windowing import Count, Session, TopN, Tumbling, Window, WindowedBolt, minutes, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = 200_000
BEGIN_MS = 1_700_000_000_000
LATE = 1000  # one line in so many is ten minutes late
BROKEN = 500  # one line in so many is broken


def log(lines: int, seed: int = 1) -> Iterator[str]:
    """Yield the lines: time in milliseconds, user, page."""
    random = Random(seed)
    for n in range(lines):
        ts = BEGIN_MS + n * 20 - random.randrange(5000)
        if n % LATE == LATE - 1:
            ts -= 600_000
        line = f"{ts} user{random.randrange(1 + lines // 20)} /page{int(random.paretovariate(1)) % 50}"
        yield line[:9] if n % BROKEN == BROKEN - 1 else line
    yield f"{BEGIN_MS + lines * 20 + 3_600_000} nobody /"


class Log(Spout):
    output_fields = ["line"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.lines = log(int(conf.get("example.lines", LINES)))
        self.line = next(self.lines, None)
        self.number = 0

    def next_tuple(self) -> None:
        if self.line is not None:
            line, self.line = self.line, next(self.lines, None)
            self.number += 1
            # The last line is in a window that never ends, so that it would never be acked.
            self.emit([line], None if self.line is None else self.number)

    def exhausted(self) -> bool:
        return self.line is None


class Parse(BasicBolt):
    output_fields = ["ts", "user", "page"]
    output_streams = {"broken": ["line"]}

    def process(self, tup: Tuple) -> None:
        try:
            ts, user, page = tup["line"].split(" ")
            self.emit([int(ts), user, page])
        except ValueError:
            self.emit([tup["line"]], stream="broken")


class Sessions(WindowedBolt):
    output_fields = ["session", "user", "pages", "seconds"]
    window = Session(minutes(2))
    key_by = "user"
    timestamp_field = "ts"
    lag = seconds(5)
    late_stream = "late"
    aggregate = Count()

    def process_window(self, window: Window) -> None:
        assert window.start is not None
        self.emit([window.id, window.key, window.result, (window.end - window.start) / 1000])


class TopPages(WindowedBolt):
    output_fields = ["minute", "pages"]
    window = Tumbling(minutes(1))
    timestamp_field = "ts"
    lag = seconds(5)
    late_stream = "late"
    aggregate = TopN(3, "page")

    def process_window(self, window: Window) -> None:
        self.emit([window.end, window.result])


builder = TopologyBuilder()
builder.set_spout("log", Log)
builder.set_bolt("parse", Parse).shuffle_grouping("log")
builder.set_bolt("sessions", Sessions).fields_grouping("parse", "user")
builder.set_bolt("top", TopPages).global_grouping("parse")
topology = builder.build("page-visits", conf={"topology.message.timeout.secs": 600})
