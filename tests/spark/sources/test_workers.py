"""Threads for calls that may take long: they are few, they end, and nobody waits for them at a program's end."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from threading import Event

import pytest

from spark_bridge.sources.workers import Workers
from tests.spark.sources.test_serve import until

BUSY = """
import threading
from spark_bridge.sources.workers import Workers
workers = Workers(2, "for ever")
begun = threading.Event()
workers.submit(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
raise SystemExit("an error ends the driver")
"""


def named(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def test_a_program_ends_while_they_work() -> None:
    ended = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "an error ends the driver\n")


def test_there_are_as_many_as_are_needed_and_results_and_errors_come_back() -> None:
    workers = Workers(3, "sums")
    assert [workers.submit(pow, n, 2).result(10) for n in range(20)] == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        workers.submit(divmod, 1, 0).result(10)
    go = Event()
    waiting = [workers.submit(go.wait, 10) for _ in range(9)]
    assert named("sums") == 3
    go.set()
    assert all(each.result(10) for each in waiting)
    workers.shutdown()
    until(lambda: not named("sums"), "the threads end")


def test_no_call_is_left_waiting_at_the_shutdown() -> None:
    workers = Workers(1, "shutdown")
    begun, go = Event(), Event()
    first = workers.submit(lambda: begun.set() or go.wait(10))
    assert begun.wait(10)
    second = workers.submit(go.wait)
    workers.shutdown()
    with pytest.raises(CancelledError):
        second.result(10)
    with pytest.raises(RuntimeError, match="take no more calls"):
        workers.submit(go.wait)
    go.set()
    assert first.result(10)
    until(lambda: not named("shutdown"), "the threads end")


def test_they_end_when_nobody_has_them_any_more() -> None:
    Workers(2, "forgotten").submit(pow, 2, 2).result(10)
    until(lambda: not named("forgotten"), "the threads end")
