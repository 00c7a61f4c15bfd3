"""Threads for Spark's calls end when they are told to, whatever they take at that moment."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Any

from spark_bridge.sources.live import Workers
from tests.patience import patient

LIMIT = patient(60.0)


class Raced(SimpleQueue[Any]):
    """A queue whose last item is taken by another thread just after it was seen."""

    def empty(self) -> bool:
        seen = super().empty()
        if not seen:
            super().get()
        return seen


def test_a_call_that_is_taken_while_the_threads_are_told_to_end_holds_nothing_up() -> None:
    workers = Workers(1, "race")
    workers._calls = Raced()
    workers._calls.put(None)
    ends = Thread(target=workers.shutdown, daemon=True)
    ends.start()
    ends.join(LIMIT)
    assert not ends.is_alive()
