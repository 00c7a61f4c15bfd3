"""The tasks of processes that the laws of ``stores`` kill and stop; this is run as a program.

Its arguments: the task, and further ones in JSON. The store comes pickled on standard input, in base64 on one line; what
the test sends comes on further lines.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import pickle
import signal
import sys
import threading

from multilang.store import claims
from multilang.store.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.store.claims import Claim
    from multilang.store.interface import Rows, Store

BEFORE: Rows = {
    "data": {b"kept": b"1", b"replaced": b"1", b"removed": b"1", b"changed": b"1"},
    "prepared": {b"replaced": b"2", b"removed": b"", b"new": b"2"},
    "old": {b"gone": b"1"},
    "meta": {b"number": b"1"},
}
AFTER: Rows = {
    "data": {b"kept": b"1", b"replaced": b"2", b"new": b"2", b"changed": b"2"},
    "prepared": {},
    "old": {},
    "meta": {b"number": b"2"},
}


def whole_step(store: Store, place: str) -> bool:
    """Make ``AFTER`` of ``BEFORE``, with all that one step can do."""
    changes: Rows = {"data": {b"changed": b"2"}, "meta": {b"number": b"2"}}
    return store.compare_and_write(place, {"meta": {b"number": b"1"}}, changes, ["old"], ("prepared", "data"))


def count(store: Store, place: str, times: int) -> None:
    """Increment a row so many times."""
    done = 0
    while done < times:
        (text,) = store.get(place, "t", [b"n"])
        done += store.compare_and_write(place, {"t": {b"n": text}}, {"t": {b"n": b"%d" % (int(text or 0) + 1)}})


def killed_at_each_step(store: Store, start: str) -> None:
    """Kill a process of its own at each call of ``trace``, in a place of its own, and print the step."""
    used = pickle.loads(pickle.dumps(store))  # noqa: S301  # so that its modules are imported once
    used.places(start)
    used.close()
    for call in range(20):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store.compare_and_write(f"{start}{call}", {}, BEFORE)
                calls = itertools.count()

                def trace(step: str, call: int = call, calls: Any = calls, writer: int = writer) -> None:
                    if next(calls) == call:
                        os.write(writer, step.encode())
                        os.kill(os.getpid(), signal.SIGKILL)

                store.trace = trace
                status = 0 if whole_step(store, f"{start}{call}") else 1
            finally:
                os._exit(status)
        os.close(writer)
        status = os.waitpid(child, 0)[1]
        step = os.read(reader, 100).decode()
        os.close(reader)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                sys.exit("a step failed; see above")
            return
        report(step)


def write_on(store: Store, place: str, keys: int) -> None:
    """Write one number into all keys, and the next one, until somebody kills this; print each that was written."""
    (text,) = store.get(place, "t", [b"0"])
    for number in itertools.count(int(text or 0) + 1):
        expected = {"t": {b"0": None if number == 1 else b"%d" % (number - 1)}}
        changes = {b"%d" % key: b"%d" % number for key in range(keys)}
        if not store.compare_and_write(place, expected, {"t": changes}):
            sys.exit(f"number {number} was refused")
        report(number)


def own(store: Store, place: str, run: str, beat_secs: float, stopped_at: str | None) -> None:
    """Claim a place, and write there when the test sends a line; ``stopped_at``: stop in the midst of that write."""
    claims.BEAT_SECS = beat_secs
    claim = store.claim(place, run, "tested")
    with claim.beating:  # whoever is stopped meanwhile is in no beat, where a store of one lock keeps everybody out
        report(claim.epoch)
        sys.stdin.readline()
    if stopped_at is not None:
        store.trace = stopping_at(stopped_at, claim)
    try:
        report(claim.write({"t": {b"row": b"of the stopped one"}}))
    except StateError as error:
        report(type(error).__name__)


def stopping_at(where: str, claim: Claim) -> Callable[[str], None]:
    """Return what stops this process at a step of this thread's, and in no beat."""
    seen: list[str] = []
    mine = threading.get_ident()

    def trace(step: str) -> None:
        if step == where and not seen and threading.get_ident() == mine:
            seen.append(step)
            with claim.beating:
                os.kill(os.getpid(), signal.SIGSTOP)

    return trace


def fill(store: Store, place: str, most: int) -> None:
    """Write more and more where no file may have more than ``most`` bytes; print each row that was written, and the error."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    for number in range(100):
        try:
            store.compare_and_write(place, {}, {"t": {b"%d" % number: b"x" * 10_000}, "u": {b"last": b"%d" % number}})
        except StateError as error:
            report(str(error))
            return
        report(number)


def report(what: object) -> None:
    """Print a value for the test."""
    print(json.dumps(what), flush=True)  # noqa: T201  # a program of its own


def main() -> None:
    """Do the task that the arguments name."""
    tasks = (count, killed_at_each_step, write_on, own, fill)
    store = pickle.loads(base64.b64decode(sys.stdin.readline()))  # noqa: S301  # of the test
    {task.__name__: task for task in tasks}[sys.argv[1]](store, *map(json.loads, sys.argv[2:]))
    store.close()


if __name__ == "__main__":
    main()
