"""A component emits while another thread sends what it has: whichever of them is interrupted, and where, nothing is lost."""

from __future__ import annotations

import random
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.exchange import block
from tests.exchange.harness import Driven, tuples_of
from tests.soak import sampled

if TYPE_CHECKING:
    from types import FrameType

FOLDER = str(Path(block.__file__).parent)
STUCK_SECS = 0.002  # the thread whose turn it is waits for a lock that another one holds


class Turns:
    """Threads that take turns: the seed says after how many steps of the interpreter in the code under test another one runs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.changed = threading.Condition()
        self.waiting: list[int] = []
        self.running = 0  # the thread whose turn it is; 0: whoever comes first
        self.left = 1  # steps of its turn

    def step(self) -> None:
        me = threading.get_ident()
        with self.changed:
            if self.running == 0:
                self.running = me
            self.left -= 1
            if self.running == me and self.waiting and self.left <= 0:
                self.running = self.random.choice(self.waiting)
                self.left = int(10 ** self.random.uniform(0, 3.5))
                self.changed.notify_all()
            if self.running != me:
                self.waiting.append(me)
                self.changed.wait_for(lambda: self.running in (0, me), STUCK_SECS)
                self.waiting.remove(me)
                self.running = me

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.step()
        return self.trace

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self.trace)

    def __exit__(self, *exc: object) -> None:
        sys.settrace(self.before)

    def end(self) -> None:
        """Let the others run from now on."""
        with self.changed:
            self.running = 0
            self.changed.notify_all()


@pytest.mark.parametrize("how", ["root", "block"])
@pytest.mark.parametrize("seed", sampled(range(2_000), 100))
def test_nothing_is_lost_wherever_a_thread_is_interrupted(seed: int, how: str) -> None:
    turns = Turns(seed)
    driven = Driven(most=turns.random.choice([3, 1000]), how=how)
    driven.give_block([("default", [[0]])])
    (tup,) = driven.got
    ended = threading.Event()

    def send() -> None:
        sys.settrace(turns.trace)
        while not ended.is_set():
            driven.collector.send_meanwhile()
            turns.step()
        sys.settrace(None)
        turns.end()

    thread = threading.Thread(target=send)
    steps = [(turns.random.choice(["keyed", None]), turns.random.random() < 0.8) for _ in range(40)]
    with turns:
        thread.start()
        try:
            for number, (stream, anchored) in enumerate(steps):
                driven.collector.emit([number, "key"] if stream else [number], stream, [tup] if anchored else [])
            driven.collector.ack(tup)
        finally:
            ended.set()
            turns.end()
    thread.join()
    driven.flush()
    found: dict[int, list[int]] = defaultdict(list)
    for emit in driven.emits:
        for stream, (number, *_) in tuples_of(emit):
            found[emit.task or 0].append(number)
            assert (None if stream == "default" else stream, bool(emit.anchors)) == steps[number]
    driven.close()
    assert sorted(number for numbers in found.values() for number in numbers) == [*range(len(steps))]
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert driven.settled == [(tup.run.block.wire.id, True)]
