"""Windows from their definition: a list of all tuples, and what belongs together. Slow, short, and written first."""

from __future__ import annotations

import math


class Event:
    """A tuple: when it came, how often, from which source, its key and its timestamp."""

    def __init__(self, n, source, key, ts):
        self.n, self.source, self.key, self.ts = n, source, key, ts


def accepted(steps, sources, lag, lateness=0):
    """Return the tuples that are not late, those that are, and the last watermark. A step without a tuple is a tick."""
    greatest, watermark, on_time, late = {}, -math.inf, [], []
    for step in steps:
        if step is None:
            if len(greatest) == sources:
                watermark = max(watermark, min(greatest.values()) - lag)
            continue
        greatest[step.source] = max(step.ts, greatest.get(step.source, -math.inf))
        (late if step.ts < watermark - lateness else on_time).append(step)
    return on_time, late, watermark


def by_key(events):
    found = {}
    for event in events:
        found.setdefault(event.key, []).append(event)
    return found


def timed(events, length, slide, before):
    """Return {(key, end): numbers} of the windows (end - length, end] that end before ``before``."""
    found = {}
    for event in events:
        end = math.ceil(event.ts / slide) * slide
        while end - length < event.ts:
            if end < before:
                found.setdefault((event.key, end), set()).add(event.n)
            end += slide
    return found


def sessions(events, gap, before):
    """Return {(key, start, end): numbers} of the sessions that end at ``before`` at the latest."""
    found = {}
    for key, mine in by_key(events).items():
        parts = []
        for event in sorted(mine, key=lambda event: event.ts):
            if parts and event.ts - parts[-1][-1].ts < gap:
                parts[-1].append(event)
            else:
                parts.append([event])
        for part in parts:
            if part[-1].ts + gap <= before:
                found[key, part[0].ts, part[-1].ts + gap] = {event.n for event in part}
    return found


def in_order(events, before):
    """Return the tuples before ``before``, in the order of their times."""
    return sorted((event for event in events if event.ts < before), key=lambda event: (event.ts, event.n))


def counted(events, length, slide):
    """Return [(key, numbers)] of the windows of ``length`` tuples, in order of their ends for each key."""
    return {
        key: [[event.n for event in mine[max(0, end - length) : end]] for end in range(slide, len(mine) + 1, slide)]
        for key, mine in by_key(events).items()
    }


def latest(events, length, slide, before):
    """Return {(key, end): numbers}: the last ``length`` tuples at each ``end`` since the one before which one came."""
    found = {}
    for key, mine in by_key(events).items():
        for end in {math.ceil(event.ts / slide) * slide for event in mine}:
            if end < before:
                found[key, end] = [event.n for event in mine if event.ts <= end][-length:]
    return found


def recent(events, length, slide):
    """Return {key: [numbers]}: after every ``slide`` tuples, those of the last ``length`` milliseconds."""
    return {
        key: [
            [event.n for event in mine[:end] if event.ts > mine[end - 1].ts - length]
            for end in range(slide, len(mine) + 1, slide)
        ]
        for key, mine in by_key(events).items()
    }
