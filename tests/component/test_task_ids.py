"""Emits that want the ids of the tasks their tuple went to."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from multilang.protocol.messages import Ack, Emit, Log, Sync
from tests.component.harness import LIMIT, context

if TYPE_CHECKING:
    from pathlib import Path

    from tests.component.harness import Starter

WAITS = """
class Part(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        self.log([tup[0], self.emit([tup[0]], need_task_ids=True)])
"""


def test_task_ids_are_returned_when_asked_for(start: Starter) -> None:
    child = start(WAITS, answer=lambda _: [2, 3])
    child.give("x")
    child.until(lambda: child.acked)
    assert child.logged() == ["['x', [2, 3]]"]
    assert child.all(Emit)[0].need_task_ids


def test_tuples_that_come_before_the_task_ids_are_processed_afterwards_in_order(start: Starter) -> None:
    child = start(WAITS, answer=None)
    for n in range(5):
        child.give(n)
    child.beat()  # answered while process() waits
    for n in range(5):
        child.until(lambda n=n: len(child.emitted) == n + 1)
        assert child.acked == [f"t{i + 1}" for i in range(n)]
        child.give(n + 5)
        child.say(lambda parent, n=n: parent.task_ids([n]))
    for n in range(5, 10):
        child.until(lambda n=n: len(child.emitted) == n + 1)
        child.say(lambda parent, n=n: parent.task_ids([n]))
    child.until(lambda: len(child.acked) == 10)
    assert child.logged() == [f"[{n}, [{n}]]" for n in range(10)]
    assert child.acked == [f"t{n + 1}" for n in range(10)]


def test_task_ids_are_handed_to_the_callback_when_they_arrive(start: Starter) -> None:
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                for n in range(100):
                    self.emit([n], on_task_ids=lambda tasks, n=n: self.log([n, tasks]))
        """,
        answer=None,
    )
    id = child.give("x")
    child.until(lambda: child.acked == [id])  # nobody waited
    assert child.logged() == []
    for n in range(100):
        if n % 7 == 0:
            child.beat()
        child.say(lambda parent, n=n: parent.task_ids([n, n + 1]))
    child.until(lambda: len(child.logged()) == 100)
    assert child.logged() == [f"[{n}, [{n}, {n + 1}]]" for n in range(100)]


def test_callbacks_and_waiting_emits_each_get_their_own(start: Starter) -> None:
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                seen = []
                self.emit(["a"], on_task_ids=seen.append)
                self.emit(["quiet"])
                self.emit(["b"], on_task_ids=seen.append)
                got = self.emit(["c"], need_task_ids=True)
                self.emit(["d"], need_task_ids=True, on_task_ids=seen.append)
                self.log([seen, got])
        """,
        answer=lambda emit: [ord(emit.values[0])],
    )
    child.give("x")
    child.until(lambda: child.acked)
    assert child.logged() == [str([[[97], [98], [100]], [99]])]
    assert [emit.need_task_ids for emit in child.all(Emit)] == [True, False, True, True, True]


def test_a_callback_that_raises_ends_the_process_with_its_traceback(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit(["a"], on_task_ids=self.sent)
            def sent(self, tasks):
                raise LookupError("no such task")
        """)
    child.give("x")
    child.ended(1)
    assert "no such task" in child.errors[0]
    assert "in sent" in child.errors[0]


OLD_CONTEXT = {"taskid": 4, "task->component": {"4": "part", "2": "next", "6": "source"}}


@pytest.mark.parametrize("before_0_10", [True, False])
def test_a_parent_that_ignores_need_task_ids_is_understood(start: Starter, before_0_10: bool) -> None:
    """Storm before need_task_ids sends the ids of every emit that is not direct."""
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                if tup[0] == 0:
                    return self.emit([[0, "first"]])
                self.emit([[tup[0], "quiet"]])
                self.emit([[tup[0], "direct"]], direct_task=2)
                tasks = self.emit([[tup[0], "loud"]], need_task_ids=True)
                self.emit([[tup[0], "quiet"]], on_task_ids=lambda tasks: self.log([tup[0], "later", tasks]))
                self.emit_many([[[tup[0], "many"]]] * 2)
                self.log([tup[0], tasks])
        """,
        ctx=OLD_CONTEXT if before_0_10 else context(outputs={}) | {"stream->outputfields": {"default": ["value"]}},
        answer=None,
    )
    sent = 0

    def answer_all(count: int) -> None:
        nonlocal sent
        child.until(lambda: len([emit for emit in child.all(Emit) if emit.task is None]) >= count)
        while sent < count:
            sent += 1
            child.raw(f"[{sent}]\nend\n".encode())

    child.give(0)
    answer_all(1)
    for n in range(1, 4):
        child.give(n)
        answer_all(5 * n - 2)
        child.until(lambda n=n: len(child.acked) == n + 1)
        answer_all(5 * n + 1)
        child.until(lambda n=n: len(child.logged()) == 2 * n)
    assert child.logged() == [
        "[1, [3]]", "[1, 'later', [4]]",
        "[2, [8]]", "[2, 'later', [9]]",
        "[3, [13]]", "[3, 'later', [14]]",
    ]  # fmt: skip
    child.beat()
    assert child.errors == []


@pytest.mark.parametrize("base", ["Spout", "ReliableSpout"])
def test_without_ackers_an_ack_command_before_the_task_ids_is_handled(start: Starter, base: str) -> None:
    """With no ackers ShellSpout sends ``ack``, waits for its sync, and sends the task ids after that."""
    child = start(
        f"""
        class Part({base}):
            output_fields = ["value"]
            def next_tuple(self):
                self.log(self.emit(["x"], tup_id=1, need_task_ids=True))
            def ack{"ed" if base == "ReliableSpout" else ""}(self, tup_id):
                self.log(f"acked {{tup_id}}")
        """,
        spout=True,
        answer=None,
    ).started()
    child.say(lambda parent: parent.next())
    child.until(lambda: child.emitted)
    child.raw(b'{"command":"ack","id":1}\nend\n')  # inside of next, where our parent would not say it
    child.until(lambda: child.all(Sync))
    assert child.logged() == ["acked 1"]
    child.parent.command = "next"
    child.say(lambda parent: parent.task_ids([2, 3]))
    child.until(lambda: len(child.all(Sync)) == 2)
    assert child.logged() == ["acked 1", "[2, 3]"]


def test_waiting_for_task_ids_is_for_the_thread_that_reads(start: Starter) -> None:
    child = start("""
        import threading
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                def other():
                    try:
                        self.emit(["x"], need_task_ids=True)
                    except Exception as error:
                        self.log(error)
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert "on_task_ids" in child.log_text


def test_task_ids_that_answer_nothing_end_the_process_with_a_clear_error(start: Starter) -> None:
    child = start(WAITS).started()
    child.raw(b"[2]\nend\n")
    child.ended(1)
    assert "answers no emit" in child.errors[0]


def test_an_emit_that_waits_ends_with_the_input(start: Starter) -> None:
    child = start(WAITS, answer=None)
    child.give("x")
    child.until(lambda: child.emitted)
    child.close_input()
    child.ended(0, limit=LIMIT)
    assert (child.acked, child.failed, child.errors, child.all(Ack)) == ([], [], [], [])
    assert child.all(Log) == []


def test_an_emit_that_may_not_wait_is_not_sent(start: Starter) -> None:
    child = start("""
        import threading
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                def other():
                    try:
                        self.emit(["x"], need_task_ids=True)
                    except Exception as error:
                        self.log(type(error).__name__)
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
                self.ack(tup)
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert child.logged() == ["LocalProtocolError"]
    assert child.emitted == []


class ShellSpoutWithoutAckers:
    """A ShellSpout as it is without ackers: it acks during an emit, and reads on during the ack."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.depth = self.deepest = self.emits = 0
        self.logged: list[str] = []

    def write(self, message: object) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(message).encode() + b"\nend\n")
        self.child.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        text = self.child.stdout.readline()
        assert self.child.stdout.readline() == b"end\n"
        message: dict[str, Any] = json.loads(text)
        return message

    def query(self, command: dict[str, Any]) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.write(command)
        while (message := self.read())["command"] != "sync":
            if message["command"] == "log" and message["level"]:
                self.logged.append(message["msg"])
            if message["command"] == "emit":
                self.emits += 1
                self.query({"command": "ack", "id": message["id"]})
                if message.get("need_task_ids", True):
                    self.write([2])
        self.depth -= 1


@pytest.mark.parametrize("base", ["Spout", "ReliableSpout"])
def test_without_ackers_the_acks_of_one_command_nest_no_deeper_than_a_java_stack_bears(
    start: Starter, base: str, tmp_path: Path
) -> None:
    module = start.write(f"""
        class Part({base}):
            output_fields = ["value"]
            acks = 0
            def next_tuple(self):
                self.emit_many([[n] for n in range(1000)], range(1000))
                self.log(f"{{self.acks}} acked")
            def ack{"ed" if base == "ReliableSpout" else ""}(self, tup_id):
                self.acks += 1
        """)
    storm = ShellSpoutWithoutAckers([sys.executable, "-m", "multilang.component", f"{module}:Part"], tmp_path)
    try:
        storm.write({"conf": {"topology.acker.executors": 0}, "pidDir": str(tmp_path), "context": context(bolt=False)})
        assert "pid" in storm.read()
        storm.query({"command": "next"})
    finally:
        storm.child.kill()
        storm.child.communicate()
    assert storm.emits == 1000
    assert storm.logged == ["1000 acked"]
    assert storm.deepest <= 60
