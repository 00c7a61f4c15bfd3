"""Pipes that are full, slow, or cut the messages anywhere."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from multilang.protocol.messages import Emit, Sync
from tests.patience import patient

if TYPE_CHECKING:
    from tests.component.harness import Starter

ECHO = """
class Part(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        self.emit([tup[0]])
"""
MEGABYTE = 1 << 20


def test_ten_megabytes_go_each_way(start: Starter) -> None:
    child = start(ECHO)
    value = "ü" * (5 * MEGABYTE)
    child.give(value)
    child.until(lambda: child.acked)
    assert child.emitted == [[value]]


def test_a_parent_that_writes_everything_before_it_reads_is_not_held_up(start: Starter) -> None:
    child = start(ECHO).started()
    child.reading.clear()
    for n in range(10_000):
        child.give(n)
    child.give("x" * (10 * MEGABYTE))
    child.written()
    child.reading.set()
    child.until(lambda: len(child.acked) == 10_001)
    assert child.emitted[:-1] == [[n] for n in range(10_000)]
    assert len(child.emitted[-1][0]) == 10 * MEGABYTE
    child.beat()


def test_a_spout_that_emits_much_at_once_is_read_slowly(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit_many([n, ][:1] for n in range(20_000))
        """, spout=True).started()  # fmt: skip
    child.read_size = 50_000
    child.pause = 0.002
    emits = [message for message in child.ask() if isinstance(message, Emit)]
    assert [emit.values for emit in emits] == [[n] for n in range(20_000)]
    assert child.all(Sync) == [Sync()]


def test_a_slow_reader_gets_everything_in_order(start: Starter) -> None:
    child = start(ECHO).started()
    child.read_size = 777
    child.pause = 0.0005
    for n in range(3000):
        child.give(n)
    child.until(lambda: len(child.acked) == 3000)
    assert child.emitted == [[n] for n in range(3000)]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_input_in_pieces_of_any_size_means_the_same(start: Starter, size: int) -> None:
    child = start.raw(ECHO)
    child.write_size = size
    child.set_up()
    for value in ("end", "\nend\n", "ü€😀", {"end": ["end"]}, ""):
        child.give(value)
    child.until(lambda: len(child.acked) == 5)
    assert child.emitted == [["end"], ["\nend\n"], ["ü€😀"], [{"end": ["end"]}], [""]]


def test_output_read_one_byte_at_a_time_means_the_same(start: Starter) -> None:
    child = start(ECHO).started()
    child.read_size = 1
    for n in range(20):
        child.give(n)
    child.until(lambda: len(child.acked) == 20)
    assert child.emitted == [[n] for n in range(20)]


def test_a_slow_writer_is_answered_message_by_message(start: Starter) -> None:
    child = start(ECHO).started()
    for n in range(20):
        tup_id = child.give(n)
        child.until(lambda tup_id=tup_id: tup_id in child.acked)  # what is said goes out before the next read
    assert len(child.emitted) == 20


def test_bytes_that_a_stalled_parent_never_reads_stay_bounded(start: Starter) -> None:
    """Beyond what is read ahead, the child stops reading: the parent's pipe fills, as it should."""
    child = start(ECHO).started()
    child.reading.clear()
    value = "x" * MEGABYTE
    for _ in range(100):
        child.give(value)
    left = len(child._to_write)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        time.sleep(1)
        now = len(child._to_write)
        if now == left:
            break
        left = now
    assert left > 20 * MEGABYTE  # 64 MB are read ahead
    child.reading.set()
    child.until(lambda: len(child.acked) == 100)


def test_a_message_larger_than_the_bound_is_a_clear_error(start: Starter) -> None:
    child = start(ECHO, {"multilang.buffer.max.bytes": 100_000}).started()
    child.give("x" * 90_000)
    child.until(lambda: child.acked)
    child.give("x" * 200_000)
    child.ended(1)
    assert "multilang.buffer.max.bytes" in child.errors[0]


def test_an_output_that_is_no_pipe_works_too(start: Starter) -> None:
    """A file, as when a conversation is replayed by hand."""
    import subprocess
    import sys

    from multilang.protocol import ParentConnection
    from multilang.protocol.messages import Ack, Pid
    from tests.component.harness import ROOT, SIGN_OF_LIFE, context

    path = start.write(ECHO)
    parent = ParentConnection("bolt")
    parent.setup({}, str(start.folder), context())
    parent.tuple("1", "source", "default", 6, ["x"])
    (start.folder / "input").write_bytes(parent.data_to_send())
    with open(start.folder / "input", "rb") as stdin, open(start.folder / "output", "wb") as stdout:
        command = [sys.executable, "-m", "multilang.component", f"{path}:Part"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, stdin=stdin, stdout=stdout, env=env, cwd=start.folder, timeout=patient(60), check=True)
    said = parent.receive_data((start.folder / "output").read_bytes())
    pid, emit, ack = (each for each in said if each != SIGN_OF_LIFE)
    assert isinstance(pid, Pid)
    assert isinstance(emit, Emit)
    assert emit.values == ["x"]
    assert ack == Ack("1")
