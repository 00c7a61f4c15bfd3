"""Emits and acks from user threads."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from multilang.protocol.messages import Ack, Emit

if TYPE_CHECKING:
    from tests.component.harness import Starter

POOL = """
from concurrent.futures import ThreadPoolExecutor
class Part(Bolt):
    output_fields = ["value"]
    def initialize(self, conf, context):
        self.pool = ThreadPoolExecutor(8)
    def process(self, tup):
        self.pool.submit(self.work, tup)
    def work(self, tup):
        if tup[0] == "wait":
            while not os.path.exists("go"):
                time.sleep(0.005)
        for part in range(3):
            self.emit([[tup.id, part]], anchors=[tup])
        self.ack(tup)
    def close(self):
        self.pool.shutdown()
"""


def test_a_pool_of_threads_emits_and_acks_correctly(start: Starter) -> None:
    child = start(POOL)
    ids = [child.give(n) for n in range(2000)]
    child.until(lambda: len(child.acked) == 2000)
    child.close_input()
    child.ended(0)
    assert sorted(child.acked) == sorted(ids)
    assert Counter(tuple(values[0]) for values in child.emitted) == {(id, part): 1 for id in ids for part in range(3)}
    done: set[str] = set()
    for message in child.messages:
        if isinstance(message, Emit):
            assert message.anchors == [message.values[0][0]]
            assert message.values[0][0] not in done
        elif isinstance(message, Ack):
            done.add(message.id)


def test_what_a_thread_emits_goes_out_at_once_while_the_process_is_idle(start: Starter) -> None:
    child = start(POOL).started()
    id = child.give("wait")
    child.beat()
    time.sleep(2)  # everything else has fallen asleep
    (start.folder / "go").touch()
    began = time.monotonic()
    child.until(lambda: child.acked == [id])
    assert time.monotonic() - began < 5


def test_what_a_thread_emits_goes_out_while_process_is_slow(start: Starter) -> None:
    child = start("""
        import threading
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                threading.Timer(0.2, lambda: (self.emit(["from a thread"], anchors=[tup]), self.ack(tup))).start()
                time.sleep(3600)
        """).started()
    id = child.give("x")
    child.until(lambda: child.acked == [id])
    assert child.emitted == [["from a thread"]]


def test_a_thread_that_emits_much_while_the_process_is_idle_and_the_pipe_full_loses_nothing(start: Starter) -> None:
    child = start("""
        import threading
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                def work():
                    for n in range(3000):
                        self.emit([[n, "x" * 1000]], anchors=[tup])
                    self.ack(tup)
                    open("done", "w").close()
                threading.Thread(target=work).start()
        """).started()
    child.reading.clear()
    child.give("x")
    child.until((start.folder / "done").exists)
    time.sleep(2)  # the thread has ended, everything else has fallen asleep
    child.reading.set()
    child.until(lambda: child.acked)
    assert [values[0][0] for values in child.emitted] == list(range(3000))


def test_task_ids_reach_the_emit_they_belong_to_when_threads_ask_at_once(start: Starter) -> None:
    child = start(
        """
        import sys, threading
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                sys.setswitchinterval(1e-6)
                self.wrong = self.right = 0
                def work(base):
                    for n in range(base, base + 300):
                        self.emit([n], on_task_ids=lambda tasks, n=n: self.count(tasks == [n]))
                threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(6)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
                self.ack(tup)
            def count(self, right):
                if right:
                    self.right += 1
                else:
                    self.wrong += 1
                if self.right + self.wrong == 1800:
                    self.log([self.right, self.wrong])
        """,
        answer=lambda emit: [emit.values[0]],
    )
    child.give("x")
    child.until(child.logged)
    assert child.logged() == ["[1800, 0]"]


def test_logs_prints_and_errors_of_threads_break_nothing(start: Starter) -> None:
    child = start("""
        from concurrent.futures import ThreadPoolExecutor
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                def shout(n):
                    self.log(f"log {n}")
                    print(f"print {n}")
                    self.report_error(f"error {n}")
                    self.logger.warning("logger %d", n)
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(shout, range(200)))
                self.emit([tup[0]])
        """)
    child.give("x")
    child.until(lambda: child.acked)
    child.close_input()
    child.ended(0)
    assert sorted(child.errors) == sorted(f"error {n}" for n in range(200))
    lines = Counter(child.logged())
    for n in range(200):
        assert lines[f"log {n}"] == lines[f"part: logger {n}"] == 1
        assert f"print {n}" in child.log_text
