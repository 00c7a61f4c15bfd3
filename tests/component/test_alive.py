"""A slow component is not taken for a dead one, and a hung one is found."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from multilang.protocol.messages import Emit, Log, Pid, Sync
from tests.patience import patient
from tests.soak import chosen, combined, soak_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.component.harness import Child, Starter

TIMEOUT = 3.0  # seconds of silence after which the parent here would end the worker (Storm: 30)
SLOW = 4.0  # seconds that user code takes


class Heartbeats:
    """Asks for a sign of life each 0.3 s, as Storm does each second."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.3):
            self._child.say(lambda parent: parent.heartbeat("h"))


SLEEP = f"time.sleep({SLOW})"
LOOP = f"""
until = time.monotonic() + {SLOW}
while time.monotonic() < until:
    pass
"""


def indented(code: str, spaces: int) -> str:
    return code.strip().replace("\n", "\n" + " " * spaces)


def places(code: str, place: str) -> str:
    def at(where: str, spaces: int) -> str:
        return indented(code, spaces) if where == place else "pass"

    return f"""
{at("import", 0)}
class Part(BasicBolt):
    output_fields = ["value"]
    def initialize(self, conf, context):
        {at("initialize", 8)}
    def process(self, tup):
        self.emit(["before"])
        {at("process", 8)}
        self.emit(["after"])
    def process_tick(self, tup):
        {at("process_tick", 8)}
"""


@pytest.mark.parametrize(
    ("place", "code"),
    combined(chosen(["process", "initialize", "import", "process_tick"], "process", "import"), [LOOP, SLEEP]),
)
def test_a_bolt_gives_signs_of_life_while_user_code_is_slow(start: Starter, code: str, place: str) -> None:
    began = time.monotonic()
    child = start(places(code, place))
    child.until(lambda: child.all(Pid))
    with Heartbeats(child):
        child.tick()
        child.give("x")
        child.until(lambda: len(child.acked) == 2)
    assert time.monotonic() - began > SLOW
    assert child.longest_silence(began) < TIMEOUT


def test_what_is_emitted_before_a_long_sleep_goes_out_meanwhile(start: Starter) -> None:
    child = start(places("time.sleep(3600)", "process")).started()
    child.give("x")
    child.until(lambda: child.emitted == [["before"]])
    assert child.acked == []


def test_many_tuples_of_half_a_second_each_give_signs_of_life_too(start: Starter) -> None:
    """None of them is slow, nothing is sent, and the heartbeat waits behind them all."""
    child = start("""
        class Part(Bolt):
            def process(self, tup):
                time.sleep(0.5)
        """).started()
    began = time.monotonic()
    for _ in range(16):
        child.give("x")
    child.say(lambda parent: parent.heartbeat("h"))
    child.until(lambda: child.heard[-1] - began > 6)
    assert child.longest_silence(began) < TIMEOUT


@pytest.mark.parametrize(
    ("method", "code"), combined(chosen(["ack", "next_tuple", "initialize"], "next_tuple"), chosen([SLEEP, LOOP], LOOP))
)
def test_a_spout_gives_signs_of_life_while_user_code_is_slow(start: Starter, code: str, method: str) -> None:
    arguments = {"next_tuple": "", "ack": ", tup_id", "initialize": ", conf, context"}[method]
    began = time.monotonic()
    child = start(f"""
class Part(Spout):
    output_fields = ["value"]
    def next_tuple(self):
        self.emit(["x"])
    def {method}(self{arguments}):
        {indented(code, 8)}
""", spout=True).started()  # fmt: skip
    child.ask(*{"next_tuple": ("next",), "ack": ("ack", 1), "initialize": ("activate",)}[method])
    assert time.monotonic() - began > SLOW
    assert child.longest_silence(began) < TIMEOUT
    assert len(child.all(Sync)) == 1
    assert {log.level for log in child.all(Log)} <= {0}


@soak_only
def test_a_slow_callback_of_task_ids_gives_signs_of_life(start: Starter) -> None:
    child = start(f"""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([1], on_task_ids=lambda tasks: time.sleep({SLOW}) or self.log("slept"))
        """).started()
    began = time.monotonic()
    child.give("x")
    child.until(lambda: "slept" in child.logged())
    assert child.longest_silence(began) < TIMEOUT


def test_a_heartbeat_is_answered_at_once_when_idle(start: Starter) -> None:
    child = start("class Part(BasicBolt): pass").started()
    times = []
    for _ in range(50):
        began = time.monotonic()
        child.beat()
        times.append(time.monotonic() - began)
    assert sorted(times)[25] < 0.1


def test_an_idle_bolt_says_nothing_unasked(start: Starter) -> None:
    child = start("class Part(BasicBolt): pass").started()
    child.tick()
    child.until(lambda: child.acked)  # with that, all that it was asked before is answered
    said = len(child.messages)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert len(child.messages) == said
        time.sleep(0.1)


@pytest.fixture
def cpu_seconds(start: Starter) -> Iterator[object]:
    from pathlib import Path

    def read(child: Child) -> float:
        fields = Path(f"/proc/{child.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    return read  # type: ignore[return-value]


def test_an_idle_bolt_costs_nothing(start: Starter, cpu_seconds) -> None:  # type: ignore[no-untyped-def]
    child = start("class Part(BasicBolt): pass").started()
    deadline = time.monotonic() + patient(15)

    def spent() -> float:
        before = cpu_seconds(child)
        time.sleep(3)
        return cpu_seconds(child) - before  # type: ignore[no-any-return]

    while (took := spent()) > 0.02:  # it has not fallen asleep yet
        assert time.monotonic() < deadline, f"{took:.2f} CPU-s within 3 s of doing nothing"


def test_a_large_tuple_in_pieces_wakes_an_idle_bolt(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([len(tup[0])])
        """).started()
    time.sleep(2)  # it falls asleep
    child.write_size = 1000
    child.give("x" * 300_000)
    child.until(lambda: child.acked)
    assert child.emitted == [[300_000]]


@pytest.mark.parametrize("code", ["time.sleep(3600)", "while True: pass", "threading.Event().wait()"])
def test_user_code_that_hangs_ends_the_process_with_its_stack_in_the_log(start: Starter, code: str) -> None:
    child = start(f"""
        import threading
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit(["before"])
                self.stuck_here()
            def stuck_here(self):
                {code}
        """, {"multilang.process.timeout.secs": 2})  # fmt: skip
    began = time.monotonic()
    id = child.give("the culprit")
    child.ended(1)
    assert time.monotonic() - began > 2
    (error,) = child.errors
    for part in ("in stuck_here", code, "multilang.process.timeout.secs", "'part' (task 4)", id, "the culprit"):
        assert part in error
    assert child.logged(4) == [error]
    assert child.all(Emit)[0].values == ["before"]


@pytest.mark.parametrize("place", ["initialize", "import"])
def test_a_start_that_hangs_ends_the_process(start: Starter, place: str) -> None:
    child = start(places("time.sleep(3600)", place), {"multilang.process.timeout.secs": 2})
    child.ended(1)
    assert "has not returned" in child.errors[0]


def test_a_spout_that_hangs_ends(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            def next_tuple(self):
                time.sleep(3600)
        """, {"multilang.process.timeout.secs": 1.5}, spout=True).started()  # fmt: skip
    child.say(lambda parent: parent.next())
    child.ended(1)
    assert "Next()" in child.errors[0]
    assert "in next_tuple" in child.errors[0]


def test_the_deadline_is_for_one_call_and_not_for_many_or_for_waiting(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                time.sleep(0.5)
                if tup[0] == 9:
                    self.emit(["last"], need_task_ids=True)
        """, {"multilang.process.timeout.secs": 2}, answer=None)  # fmt: skip
    for n in range(10):
        child.give(n)
    child.until(lambda: child.emitted)
    time.sleep(4)  # the parent's answer takes its time, which is not user code's fault
    child.say(lambda parent: parent.task_ids([2]))
    child.until(lambda: len(child.acked) == 10)
    assert child.errors == []


def test_a_deadline_of_0_is_none(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                time.sleep(2)
        """, {"multilang.process.timeout.secs": 0})  # fmt: skip
    child.give("x")
    child.until(lambda: child.acked)
