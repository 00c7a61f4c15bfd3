"""``PYTHON bytewax_job.py WINDOWS OPERATOR EVENTS KEYS``: the same counts by bytewax (0.21); prints its CPU seconds.

It needs no other connection with this project. The events are in a list before the time is taken.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, timezone

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, SlidingWindower, TumblingWindower, count_window, fold_window
from bytewax.testing import TestingSink, TestingSource, run_main

BEGIN = datetime(2024, 1, 1, tzinfo=timezone.utc)
MINUTE, SECOND = timedelta(seconds=60), timedelta(seconds=1)


def key_of(event):
    return event[0]


def time_of(event):
    return event[1]


def now():
    """Stand still: with the time of day, what comes after a busy machine let it wait would be late."""
    return BEGIN


def main() -> None:
    name, operator, total, keys = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    events = [(f"key{n % keys}", BEGIN + timedelta(milliseconds=n)) for n in range(total)]
    sliding = name.startswith("sliding")
    windower = SlidingWindower(MINUTE, SECOND, BEGIN) if sliding else TumblingWindower(length=MINUTE, align_to=BEGIN)
    clock = EventClock(time_of, wait_for_system_duration=timedelta(0), now_getter=now)
    flow = Dataflow("windows")
    source = op.input("in", flow, TestingSource(events, batch_size=200))
    if operator == "fold_window":
        keyed = op.key_on("key", source, key_of)
        counts = fold_window(
            "count", keyed, clock, windower, int, lambda count, _: count + 1, lambda one, other: one + other
        )
    else:
        counts = count_window("count", source, clock, windower, key_of)
    counted = 0

    def is_wanted(result):
        nonlocal counted
        counted += result[1][1]
        return False

    op.output("out", op.filter("sum", counts.down, is_wanted), TestingSink([]))
    before = time.process_time()
    run_main(flow)
    took = time.process_time() - before
    wanted = total * 60 if sliding else total
    if not 0.9 * wanted <= counted <= wanted:
        raise SystemExit(f"{name}: {counted} counted, {wanted} wanted")
    print(took)


if __name__ == "__main__":
    main()
