"""Pipelines that are described by data: built as streams, and worked out in plain Python on the same input.

All functions have names in this module, so that processes can be given a topology that was made in a test.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial

from multilang import BasicBolt
from multilang.streams import StreamBuilder
from multilang.windowing import Session, Sliding, Tumbling, milliseconds

END = 10**9  # the time of the last element of each key, far behind all others, which ends all windows


class Values(BasicBolt):
    """The end of a stream, whose tuples are captured."""

    output_fields = ["value"]

    def process(self, tup):
        self.emit([tup.values[0] if len(tup.values) == 1 else tup.values])


def increased(n):
    return n + 1


def is_even(n):
    return n % 2 == 0


def is_small(n):
    return n % 7 < 3


def repeated(n):
    return [n] * (n % 3)


def by_number(n):
    return n % 3


def by_text(n):
    return f"k{n % 3}"


def by_odd_text(n):
    return ["[", '"', ""][n % 3]


def by_pair(n):
    return n % 2, f"[{n % 3}"


def even_value(pair):
    return pair[1] % 2 == 0


def added(first, second):
    return first + second


def nothing():
    return [0, 0]


def with_value(acc, value):
    return [acc[0] + 1, acc[1] + value]


def both(first, second):
    return [first[0] + second[0], first[1] + second[1]]


STAGES = {"map": increased, "filter": is_even, "flat_map": repeated, "peek": increased}
KEYERS = {"number": by_number, "text": by_text, "odd": by_odd_text, "pair": by_pair}
ON_VALUES = {"map_values": increased, "flat_map_values": repeated, "filter": even_value}
FOLDS = ["count", "reduce", "aggregate", "unmerged", "update_state"]


def built(shape, state=False, conf=None):
    """Return the topology of a description; its ends are bolts whose names begin with "end"."""
    s = StreamBuilder(state=state)
    ends = iter(f"end{number}" for number in range(1000))
    open_streams = [s.source(items, parallelism=tasks) for items, tasks in shape["sources"]]
    for step in shape["steps"]:
        kind, number = step[0], step[1] % len(open_streams)
        stream = open_streams.pop(number)
        if kind == "merge":
            other = open_streams.pop(step[2] % len(open_streams)) if open_streams else stream
            open_streams.append(stream.merge(other))
        elif kind == "branch":
            open_streams += stream.branch(is_small, is_even)
        elif kind == "repartition":
            open_streams.append(stream.repartition(step[2]))
        elif kind == "fork":
            open_streams += [stream, stream.map(increased)]
        elif kind == "copy":
            open_streams += [stream, stream]
        else:
            open_streams.append(getattr(stream, kind)(STAGES[kind]))
    for stream, (keyer, on_values, tasks, fold) in zip(open_streams, shape["ends"], strict=False):
        if keyer is None:
            stream.through(Values, name=next(ends))
            continue
        keyed = stream.key_by(KEYERS[keyer])
        for kind in on_values:
            keyed = getattr(keyed, kind)(ON_VALUES[kind])
        if tasks:
            keyed = keyed.repartition(tasks)
        _folded(keyed, fold).through(Values, name=next(ends))
    return s.build("pipeline", conf)


def _folded(keyed, fold):
    if fold == "count":
        return keyed.count()
    if fold == "reduce":
        return keyed.reduce(added)
    if fold == "aggregate":
        return keyed.aggregate(nothing, with_value, both)
    if fold == "unmerged":
        return keyed.aggregate(nothing, with_value)
    if fold == "update_state":
        return keyed.update_state(nothing, with_value)
    return keyed


def worked_out(shape):
    """Return the wanted contents of each end: a Counter of elements, or a dict of the last result of each key."""
    streams = [list(items) for items, _ in shape["sources"]]
    for step in shape["steps"]:
        kind, number = step[0], step[1] % len(streams)
        elements = streams.pop(number)
        if kind == "merge":
            streams.append(elements + (streams.pop(step[2] % len(streams)) if streams else elements))
        elif kind == "branch":
            first = [n for n in elements if is_small(n)]
            rest = [n for n in elements if not is_small(n)]
            streams += [first, [n for n in rest if is_even(n)], [n for n in rest if not is_even(n)]]
        elif kind == "fork":
            streams += [elements, [n + 1 for n in elements]]
        elif kind == "copy":
            streams += [elements, elements]
        else:
            streams.append(_plainly(kind, elements))
    found = {}
    for number, (elements, (keyer, on_values, _, fold)) in enumerate(zip(streams, shape["ends"], strict=False)):
        if keyer is None:
            found[f"end{number}"] = Counter(elements)
            continue
        pairs = [(KEYERS[keyer](n), n) for n in elements]
        for kind in on_values:
            if kind == "filter":
                pairs = [pair for pair in pairs if even_value(pair)]
            else:
                pairs = [(key, new) for key, n in pairs for new in _plainly(kind.removesuffix("_values"), [n])]
        if fold is None:
            found[f"end{number}"] = Counter((key, n) for key, n in pairs)
            continue
        values = defaultdict(list)
        for key, n in pairs:
            values[key].append(n)
        results = {"count": len, "reduce": sum}.get(fold, lambda ns: [len(ns), sum(ns)])
        found[f"end{number}"] = {key: results(ns) for key, ns in values.items()}
    return found


def _plainly(kind, elements):
    if kind == "map":
        return [n + 1 for n in elements]
    if kind == "filter":
        return [n for n in elements if n % 2 == 0]
    if kind == "flat_map":
        return [n for n in elements for _ in range(n % 3)]
    return elements


def _hashable(value):
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def seen(shape, run):
    """Return what came to each end, in the form of ``worked_out``."""
    found = {}
    for name, wanted in worked_out(shape).items():
        values = [tup["value"] for tup in run.captured(name)]
        if isinstance(wanted, Counter):
            found[name] = Counter(map(_hashable, values))
        else:
            last = {}
            for key, result in values:
                key = _hashable(key)
                last[key] = max(last.get(key, result), result)
            found[name] = last
    return found


def ends(shape):
    return list(worked_out(shape))


# ---- windows ----

WINDOWS = {
    "tumbling": Tumbling(milliseconds(10)),
    "sliding": Sliding(milliseconds(10), milliseconds(5)),
    "session": Session(milliseconds(4)),
}


def time_of(event):
    return event[1]


def key_of(event):
    return event[0]


def number_of(event):
    return event[2]


def appended(values, event):
    return [*values, event[2]]


def joined(first, second):
    return [*first, *second]


def numbers(events):
    return sorted(event[2] for event in events)


def number_pair(pair):
    return [None if event is None else event[2] for event in pair]


def of_lists(pair):
    return [numbers(events) for events in pair]


def windowed(shape, state=False, conf=None):
    """Return the topology of a description with windows: of one stream, or a join of two."""
    s = StreamBuilder(state=state)
    streams = []
    for items, tasks in shape["sources"]:
        # Each task of a source must send an element that ends the windows: its share is every n-th item.
        keyed = s.source([*items, *[["end", END, -1]] * tasks], parallelism=tasks).key_by(key_of)
        windows = keyed.repartition(shape["tasks"]).window(
            WINDOWS[shape["window"]],
            time_of,
            lag=milliseconds(100),
            watermark_interval=milliseconds(10),
            idle_after=milliseconds(200),
        )
        streams.append(windows)
    left, right = streams[0], streams[-1]
    operation = shape["operation"]
    if operation == "count":
        results = left.count()
    elif operation == "aggregate":
        results = left.aggregate(list, appended, joined, sorted)
    elif operation == "group":
        results = left.group()
    else:
        results = getattr(left, operation)(right)
    ended = results.with_end()
    shown = {"group": numbers, "co_group": of_lists, "count": None, "aggregate": None}.get(operation, number_pair)
    if shown is not None:
        ended = ended.map_values(partial(_second, shown))
    ended.through(Values, name="end")
    return s.build("windows", {"topology.message.timeout.secs": 600, **(conf or {})})


def _second(function, pair):
    return pair[0], function(pair[1])


def numbered(shape):
    """Give each event of a description a number, and close the shape of a join with one source."""
    count = iter(range(10**6))
    shape["sources"] = [([[*event, next(count)] for event in events], tasks) for events, tasks in shape["sources"]]
    return shape


def windows_worked_out(shape):
    """Return the wanted results as a Counter of (key, end, result)."""
    sides = [[(key, ts, n) for key, ts, n in events] for events, _ in shape["sources"]]
    left, right = sides[0], sides[-1]
    operation, kind = shape["operation"], shape["window"]
    is_join = "join" in operation or operation == "co_group"
    both = left + right if is_join else left
    found = Counter()
    for key in {key for key, _, _ in both}:
        spans = _spans(kind, [ts for each, ts, _ in both if each == key])
        for start, end in spans:
            one = sorted(n for each, ts, n in left if each == key and start < ts <= end)
            other = sorted(n for each, ts, n in right if each == key and start < ts <= end)
            if not one and not (is_join and other):
                continue
            for result in _combined(operation, one, other):
                found[key, _end_told(end, kind), _hashable(result)] += 1
    return found


def _combined(operation, one, other):
    if operation == "count":
        return [len(one)]
    if operation in ("aggregate", "group"):
        return [one]
    if operation == "co_group":
        return [[one, other]]
    lefts = one or [None] * (operation in ("right_join", "full_join"))
    rights = other or [None] * (operation in ("left_join", "full_join"))
    return [[a, b] for a in lefts for b in rights]


def _spans(kind, times):
    """Return the windows over some times: each holds the times after its start, up to its end."""
    if kind == "session":
        spans = []
        for ts in sorted(times):
            if spans and ts < spans[-1][1] + 4:
                spans[-1][1] = ts
            else:
                spans.append([ts - 1, ts])
        return spans
    length, slide = (10, 10) if kind == "tumbling" else (10, 5)
    ends = {end for ts in times for end in range(-(-ts // slide) * slide, ts + length, slide)}
    return [(end - length, end) for end in ends]


def _end_told(end, kind):
    """Return the end that a window tells: a session's is one gap after its last value."""
    return end + 4 if kind == "session" else end


def windows_seen(run):
    values = [tup["value"] for tup in run.captured("end")]
    return Counter((key, end, _hashable(result)) for key, (end, result) in values if key != "end")
