"""Words counted in all, and by the tenth of a second, written as streams; a bolt writes the results down."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from multilang import BasicBolt, Context, Tuple
from multilang.streams import StreamBuilder
from multilang.windowing import Tumbling, milliseconds

SLIDE = 100
END = 10**9  # the time of a last line, whose words end the windows of each task
LINES: list[list[Any]] = [
    *([n * 7 + n * 31 % 40, f"the cow number {n % 7} the moon"] for n in range(400)),  # out of order by 40 ms
    [END, " ".join(f"end{n}" for n in range(20))],
]


class Recorder(BasicBolt):
    """Adds a line of JSON to the file ``test.rows`` for each tuple."""

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.file = conf["test.rows"]

    def process(self, tup: Tuple) -> None:
        with open(self.file, "a") as file:
            file.write(json.dumps([tup.component, *tup.values]) + "\n")


def timed_words(line: list[Any]) -> list[list[Any]]:
    return [[line[0], word] for word in line[1].split()]


s = StreamBuilder()
words = s.source(LINES, name="lines").flat_map(timed_words).key_by(lambda timed: timed[1]).repartition(2)
words.count(name="all").to(Recorder, name="totals")
in_windows = words.window(
    Tumbling(milliseconds(SLIDE)), lambda timed: timed[0], lag=milliseconds(50), watermark_interval=milliseconds(200)
)
in_windows.count(name="windows").with_end().to(Recorder, name="ended")
topology = s.build("stream-counts", {"topology.message.timeout.secs": 1000})


def answer() -> tuple[Counter[str], Counter[tuple[str, int]]]:
    """Return the counts of the words, and by the ends of windows but the last one, from their definition."""
    timed = [each for line in LINES for each in timed_words(line)]
    ends = Counter((word, -(-ts // SLIDE) * SLIDE) for ts, word in timed if ts < END)
    return Counter(word for _, word in timed), ends
