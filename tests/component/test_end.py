"""A component's process ends quickly and cleanly, without noise."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from multilang.protocol.messages import Emit, Pid
from tests.component.harness import LIMIT
from tests.soak import chosen, combined, soak_only

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

pytestmark = pytest.mark.usefixtures("unmeasured")

QUICK = 20.0  # seconds; what hangs takes much longer, what is busy on a loaded machine less

STATES = {
    "idle": "pass",
    "in user code's sleep": "time.sleep(3600)",
    "in a loop": "while True: pass",
    "in a loop that catches exceptions": """
while True:
    try:
        time.sleep(3600)
    except Exception:
        pass
""",
    "waiting for a lock": "threading.Lock().acquire() and self.lock.acquire()",
    "waiting for a child": "subprocess.run(['sleep', '60'])",
    "in C code": "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)",
    "waiting for task ids": "self.emit(['x'], need_task_ids=True)",
    "emitting": "\nwhile True: self.emit(['y' * 1000])",
}


def in_state(start: Starter, state: str, close: str = 'self.log("closed")') -> Child:
    code = STATES[state].strip().replace("\n", "\n        ")
    child = start(f"""
import hashlib, subprocess, threading
class Part(BasicBolt):
    output_fields = ["value"]
    lock = threading.Lock()
    lock.acquire()
    def process(self, tup):
        self.log("working")
        {code}
    def close(self):
        {close}
""", answer=None).started()  # fmt: skip
    child.give("x")
    child.until(lambda: "working" in child.logged() and (state != "idle" or child.acked))
    if state == "waiting for task ids":
        child.until(lambda: child.emitted)
    return child


def quietly(child: Child) -> None:
    began = time.monotonic()
    child.ended(0, limit=LIMIT)
    assert time.monotonic() - began < QUICK
    assert (child.errors, child.stderr) == ([], b"")


@pytest.mark.parametrize(("state", "number"), combined(list(STATES), [signal.SIGTERM, signal.SIGINT]))
def test_a_signal_ends_the_process_in_any_state(start: Starter, state: str, number: int) -> None:
    child = in_state(start, state)
    child.signal(number)
    quietly(child)
    if state != "in C code":  # which does not come back
        assert "closed" in child.logged()


@pytest.mark.parametrize(
    "state",
    [
        *("idle", "in user code's sleep", "in a loop", "waiting for task ids"),
        pytest.param("in C code", marks=soak_only),  # which the watchdog's grace ends
    ],
)
def test_an_output_that_nobody_reads_any_more_ends_the_process(start: Starter, state: str) -> None:
    child = in_state(start, state, close='open("closed", "w").close()')
    child.close_output()
    quietly(child)
    assert (start.folder / "closed").exists() == (state != "in C code")


@pytest.mark.parametrize("state", ["idle", "waiting for task ids"])
def test_the_end_of_input_ends_the_process(start: Starter, state: str) -> None:
    child = in_state(start, state)
    child.close_input()
    quietly(child)
    assert "closed" in child.logged()


def test_what_came_before_the_end_of_input_is_still_processed(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                time.sleep(0.001)
                self.emit([tup[0]])
        """)
    for n in range(500):
        child.give(n)
    child.close_input()
    quietly(child)
    assert child.emitted == [[n] for n in range(500)]
    assert len(child.acked) == 500


@pytest.mark.parametrize("place", ["import", "initialize"])
@pytest.mark.parametrize("code", ["time.sleep(3600)", "while True: pass"])
def test_sigterm_during_the_start_ends_it_without_close(start: Starter, place: str, code: str) -> None:
    def at(where: str) -> str:
        return code if where == place else "pass"

    child = start(f"""
open("importing", "w").close()
{at("import")}
class Part(BasicBolt):
    def initialize(self, conf, context):
        {at("initialize")}
        self.opened = True
    def close(self):
        self.log(f"closed {{self.opened}}")
""")
    child.until(lambda: child.all(Pid) and (start.folder / "importing").exists())
    child.signal()
    quietly(child)
    assert child.logged() == []


def test_sigterm_while_the_pipe_is_full_ends_it(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit(["y" * 5_000_000])
                open("emitted", "w").close()
        """).started()
    child.reading.clear()
    child.give("x")
    child.until((start.folder / "emitted").exists)
    child.signal()
    began = time.monotonic()
    child.process.wait(LIMIT)
    assert time.monotonic() - began < QUICK
    assert child.process.returncode == 0
    assert child.stderr == b""


@pytest.mark.parametrize("code", chosen(["time.sleep(3600)", "while True: pass"], "while True: pass"))
def test_a_close_that_takes_too_long_is_cut_off(start: Starter, code: str) -> None:
    child = in_state(start, "idle", close=code)
    child.close_input()
    quietly(child)


def test_a_second_signal_does_not_disturb_close(start: Starter) -> None:
    child = in_state(start, "idle", close='self.log("closing"); time.sleep(1); self.log("closed")')
    child.signal()
    child.until(lambda: "closing" in child.logged())
    child.signal()
    child.signal(signal.SIGINT)
    quietly(child)
    assert "closed" in child.logged()


def test_a_close_that_raises_is_reported_and_shows_in_the_status(start: Starter) -> None:
    child = in_state(start, "idle", close='raise OSError("disk full")')
    child.close_input()
    child.ended(1)
    assert "disk full" in child.errors[0]


def test_close_is_called_after_a_fatal_exception_but_not_when_initialize_failed(start: Starter) -> None:
    source = """
        class Part(Bolt):
            def initialize(self, conf, context):
                {}
            def process(self, tup):
                1 / 0
            def close(self):
                self.log("closed")
        """
    child = start(source.format("pass"))
    child.give("x")
    child.ended(1)
    assert "closed" in child.logged()
    child = start(source.format("raise OSError('no database')"))
    child.ended(1)
    assert "closed" not in child.logged()
    (error,) = child.errors
    assert "no database" in error


@pytest.mark.parametrize(
    ("code", "status"), [("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(3)", 3), ("sys.exit('told so')", 1)]
)
def test_sys_exit_in_user_code_ends_the_process_with_its_status(start: Starter, code: str, status: int) -> None:
    child = start(f"""
        class Part(BasicBolt):
            def process(self, tup):
                {code}
        """)
    child.give("x")
    child.ended(status)
    (error,) = child.errors
    said = "told so; " * ("told" in code) + code
    assert (
        f"SystemExit in component 'part' (task 4) on tuple t1 from 'source', stream 'default', values ['x']: {said} ends the task, "
        in error
    )
    assert "raise an exception if something is wrong" in error
    assert child.acked == []


def test_end_of_input_and_sigterm_at_once_make_no_noise(start: Starter) -> None:
    """As Java's Process.destroy does it."""
    source = "class Part(BasicBolt): pass"
    for _ in range(20):
        child = start(source).started()
        child.close_input()
        child.signal()
        quietly(child)


def test_a_parent_that_ends_before_the_handshake_leaves_no_noise(start: Starter) -> None:
    child = start.raw("class Part(BasicBolt): pass")
    child.close_input()
    quietly(child)
    assert child.messages == []


def test_ctrl_c_before_the_handshake_makes_no_noise(start: Starter) -> None:
    child = start.raw("""
        class Part(BasicBolt): pass
        import threading
        def look(main):
            while sys._current_frames()[main].f_code.co_name != "_first_message":
                time.sleep(0.05)
            open("waiting", "w").close()
        threading.Thread(target=look, args=[threading.get_ident()]).start()
        Part().run()
        """, script=True)  # fmt: skip
    child.until((start.folder / "waiting").exists)
    while child.process.poll() is None:
        # Python misses what comes between its last look for signals and the read; whoever presses Ctrl-C does it again.
        child.signal(signal.SIGINT)
        try:
            child.process.wait(5)
        except subprocess.TimeoutExpired:
            continue
    quietly(child)


def test_a_deactivated_spout_ends_on_sigterm(start: Starter) -> None:
    """A spout gets deactivate, then SIGTERM."""
    child = start("""
        class Part(Spout):
            def deactivate(self):
                self.log("deactivated")
            def close(self):
                self.log("closed")
        """, spout=True).started()  # fmt: skip
    child.ask("activate")
    child.ask("deactivate")
    child.signal()
    quietly(child)
    assert child.logged() == ["deactivated", "closed"]


def test_threads_that_never_end_do_not_keep_the_process(start: Starter) -> None:
    child = start("""
        import threading
        class Part(BasicBolt):
            def initialize(self, conf, context):
                threading.Thread(target=time.sleep, args=(3600,)).start()
        """).started()
    child.close_input()
    quietly(child)


def test_input_that_ends_inside_a_message_is_an_error(start: Starter) -> None:
    child = start("class Part(BasicBolt): pass").started()
    child.raw(b'{"id":"1","comp":')
    child.close_input()
    child.ended(1)
    assert "ended inside a message" in child.errors[0]


@pytest.mark.parametrize(
    ("bytes_", "error"),
    [
        (b"no json\nend\n", "is not JSON"),
        (b'{"command":"dance"}\nend\n', "'dance' is unknown"),
        (b'{"command":"next"}\nend\n', "which is for spouts"),
        (b'{"id":"1","comp":"source","stream":"default","task":"6","tuple":[]}\nend\n', "'task'"),
    ],
)
def test_a_parent_that_breaks_the_protocol_ends_the_process_after_what_came_before(
    start: Starter, bytes_: bytes, error: str
) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([tup[0]])
        """).started()
    id = child.give("x")
    child.raw(bytes_)
    child.ended(1)
    assert child.acked == [id]
    (said,) = child.errors
    assert error in said


@pytest.mark.parametrize("base", ["Bolt", "BasicBolt", "BatchingBolt"])
def test_what_close_emits_is_anchored_to_nothing(start: Starter, base: str) -> None:
    child = start(f"""
        class Part({base}):
            output_fields = ["value"]
            batch_size = 1
            def process_batch(self, key, tups):
                self.emit(["in process"])
            def process(self, tup):
                if {base == "BatchingBolt"}:
                    super().process(tup)
                else:
                    self.ack(tup)
            def close(self):
                self.emit(["total"])
        """)
    child.give("x")
    child.until(lambda: child.acked)
    child.close_input()
    child.ended(0)
    assert child.all(Emit)[-1].values == ["total"]
    assert not child.all(Emit)[-1].anchors


@pytest.mark.parametrize("by", ["signal", "close_input"])
def test_close_is_told_that_no_task_ids_will_come(start: Starter, by: str) -> None:
    child = start("""
        class Part(Bolt):
            output_fields = ["value"]
            def close(self):
                self.emit(["x"], need_task_ids=True)
        """).started()
    began = time.monotonic()
    getattr(child, by)()
    child.ended(1)
    assert time.monotonic() - began < 4
    assert child.emitted == []
    (error,) = child.errors
    assert "close() would not get" in error


def test_sys_exit_in_close_is_the_status(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            def close(self):
                sys.exit(3)
        """).started()
    child.close_input()
    child.ended(3)
    assert len(child.errors) == 1
