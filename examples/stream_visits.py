"""Sessions of visitors and the visits of each page by the minute, written as streams: those of ``page_visits.py``.

    multilang run examples/stream_visits.py --for 60 --top sessions:key:value
    multilang show examples/stream_visits.py

The log is that of ``page_visits.py``, beside this file.
"""

from __future__ import annotations

from page_visits import Log

from multilang import Tuple
from multilang.streams import StreamBuilder
from multilang.windowing import Session, Tumbling, minutes, seconds

Visit = tuple[int, str, str]  # the time in milliseconds, the user, the page


def parsed(tup: Tuple) -> list[Visit]:
    """Return the visit of a line; a broken line has none."""
    try:
        ts, user, page = tup["line"].split(" ")
        return [(int(ts), user, page)]
    except ValueError:
        return []


s = StreamBuilder()
visits = s.source(Log).flat_map(parsed, name="parse")
by_user = visits.key_by(lambda visit: visit[1])
sessions = by_user.window(Session(minutes(2)), lambda visit: visit[0], lag=seconds(5)).count(name="sessions")
sessions.with_end()
sessions.late(name="late")
by_page = visits.key_by(lambda visit: visit[2])
by_page.window(Tumbling(minutes(1)), lambda visit: visit[0], lag=seconds(5)).count(name="pages").with_end()
topology = s.build("stream-visits", conf={"topology.message.timeout.secs": 600})
