"""Spouts as processes: commands and syncs, ids, replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.child.process import UNRECOVERABLE, UNUSABLE
from multilang.component.repeats import kind_of
from multilang.protocol.messages import Emit, Error, Log, Sync
from tests.component.harness import context
from tests.patience import patient

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

FORKS = True

COUNTER = """
class Part({base}):
    output_fields = ["value"]
    n = 0
    def next_tuple(self):
        self.n += 1
        self.emit([self.n], tup_id=self.n)
"""


def emits(child: Child, command: str = "next", *args: object) -> list[Emit]:
    return [message for message in child.ask(command, *args) if isinstance(message, Emit)]


def test_each_command_is_answered_by_one_sync_after_its_emits_and_logs(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            def next_tuple(self):
                self.log("next")
                self.emit(["n"])
            def ack(self, tup_id):
                self.emit([["ack", tup_id]])
            def fail(self, tup_id):
                self.emit([["fail", tup_id]])
            def activate(self):
                self.emit(["activate"])
            def deactivate(self):
                self.emit(["deactivate"])
        """, spout=True).started()  # fmt: skip
    assert [e.values for e in emits(child, "activate")] == [["activate"]]
    assert child.ask() == [Log("next"), Emit(["n"], need_task_ids=False)]
    assert [e.values for e in emits(child, "ack", 7)] == [[["ack", 7]]]
    assert [e.values for e in emits(child, "fail", "seven")] == [[["fail", "seven"]]]
    assert [e.values for e in emits(child, "deactivate")] == [["deactivate"]]
    assert len(child.all(Sync)) == 5


@pytest.mark.parametrize("tup_id", ["text", 'ü/"', 7, 2**53 + 1, -(2**63), 1.5])
def test_a_message_id_comes_back_as_it_was_given(start: Starter, tup_id: object) -> None:
    child = start(f"""
        class Part(Spout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit(["x"], tup_id={tup_id!r})
            def ack(self, tup_id):
                self.log(repr((tup_id, tup_id == {tup_id!r})))
        """, spout=True).started()  # fmt: skip
    (emit,) = emits(child)
    assert emit.id == tup_id
    assert child.ask("ack", emit.id) == [Log(repr((tup_id, True)))]


def test_an_unreliable_emit_has_no_id(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit(["x"])
        """, spout=True).started()  # fmt: skip
    assert emits(child) == [Emit(["x"], need_task_ids=False)]


def test_emit_many_gives_each_row_its_id(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            output_streams = {"two": ["value"]}
            def next_tuple(self):
                self.emit_many(([n] for n in range(3)), tup_ids="abc")
                self.emit_many([["x"], ["y"]], stream="two")
        """, ctx=context(outputs={"default": ["value"], "two": ["value"]}, bolt=False), spout=True).started()  # fmt: skip
    assert [(e.values, e.id, e.stream) for e in emits(child)] == [
        ([0], "a", "default"),
        ([1], "b", "default"),
        ([2], "c", "default"),
        (["x"], None, "two"),
        (["y"], None, "two"),
    ]


def test_a_direct_emit_of_a_spout_names_its_task(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_streams = {"one": Stream(["value"], direct=True)}
            def next_tuple(self):
                self.log(self.emit(["x"], tup_id=1, stream="one", direct_task=7, need_task_ids=True))
        """, ctx=context(outputs={"one": ["value"]}, direct=["one"], bolt=False), spout=True).started()  # fmt: skip
    assert child.ask() == [Emit(["x"], "one", 1, task=7, need_task_ids=False), Log("[7]")]


@pytest.mark.parametrize("base", ["Spout", "ReliableSpout"])
@pytest.mark.parametrize("method", ["next_tuple", "ack", "fail", "activate", "deactivate"])
def test_an_exception_of_a_spout_is_reported_and_ends_the_process(start: Starter, base: str, method: str) -> None:
    argument = ", tup_id" if method in ("ack", "fail") else ""
    child = start(f"""
        class Part({base}):
            def {method}(self{argument}):
                raise RuntimeError("source is gone")
        """, spout=True).started()  # fmt: skip
    command = method.removesuffix("_tuple")
    child.say(lambda parent: getattr(parent, command)(*([1] if argument else [])))
    child.ended(1)
    (error,) = child.errors
    for part in ("RuntimeError", "source is gone", "'part' (task 4)", "Traceback", method):
        assert part in error
    assert child.all(Sync) == []


def test_a_spout_without_next_tuple_is_told_what_to_define(start: Starter) -> None:
    child = start("class Part(Spout): pass", spout=True).started()
    child.say(lambda parent: parent.next())
    child.ended(UNRECOVERABLE)
    assert "define next_tuple(self)" in child.errors[0]


def test_a_spout_that_emits_while_storm_does_not_listen_is_told_so(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            def initialize(self, conf, context):
                self.emit(["early"])
        """, spout=True)  # fmt: skip
    child.ended(1)
    assert child.emitted == []
    assert "next_tuple" in child.errors[0]


def test_to_our_own_parent_a_spout_says_whether_more_is_to_come(start: Starter) -> None:
    child = start("""
        class Part(Spout):
            output_fields = ["value"]
            left = 1
            def next_tuple(self):
                if self.left:
                    self.left -= 1
                    self.emit(["x"])
            def exhausted(self):
                return not self.left
        """, {"multilang.parent": "local"}, spout=True).started()  # fmt: skip
    child.ask()
    child.ask("ack", 1)
    assert [sync.exhausted for sync in child.all(Sync)] == [True, None]


def test_an_idle_spout_sleeps_before_it_answers_but_not_under_our_own_parent(start: Starter) -> None:
    source = """
        class Part(Spout):
            def next_tuple(self):
                pass
            def deactivate(self):
                self.log(time.process_time())
        """
    for conf, least in (({}, 0.3), ({"multilang.parent": "local"}, 0.0)):
        child = start(source, conf, spout=True).started()
        before = len(child.messages)
        for _ in range(30):
            child.ask()
        took = child.heard[-1] - child.heard[before]
        assert took >= least
        if not least:
            assert took < patient(10)


# ---- ReliableSpout ----


def test_a_reliable_spout_replays_what_failed_with_the_same_id_values_and_stream(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_streams = {"two": ["a", "b"]}
            max_replay_delay_secs = 0
            n = 0
            def next_tuple(self):
                self.n += 1
                if self.n == 1:
                    self.emit([1, [2]], tup_id="k", stream="two")
            def acked(self, tup_id):
                self.log(f"acked {tup_id} {self.under_way}")
        """, ctx=context(outputs={"two": ["a", "b"]}, bolt=False), spout=True).started()  # fmt: skip
    (first,) = emits(child)
    child.ask("fail", "k")
    (second,) = emits(child)
    assert first == second == Emit([1, [2]], "two", "k", need_task_ids=False)
    assert child.ask("ack", "k") == [Log("acked k 0")]
    assert child.ask("ack", "k") == []
    assert emits(child) == []


def test_a_reliable_emit_without_an_id_gets_a_serial_number(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit_many([["a"], ["b"]])
        """, spout=True).started()  # fmt: skip
    assert [e.id for e in emits(child) + emits(child)] == [1, 2, 3, 4]


def test_after_the_last_replay_gave_up_is_told_and_reports_it(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            max_replays = 2
            max_replay_delay_secs = 0
            n = 0
            def next_tuple(self):
                self.n += 1
                if self.n == 1:
                    self.emit(["precious"], tup_id=1)
        """, spout=True).started()  # fmt: skip
    assert len(emits(child)) == 1
    for _ in range(2):
        assert child.ask("fail", 1) == []
        assert len(emits(child)) == 1
    (error,) = child.ask("fail", 1)
    assert isinstance(error, Error)
    assert "on tuple 1, after 3 failures: ['precious']" in error.message
    assert kind_of(error.message) == kind_of(error.message.replace("tuple 1", "tuple 'b'").replace("precious", "other"))
    assert emits(child) == []


def test_replays_never_end_unless_there_is_a_limit(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            max_replay_delay_secs = 0
            n = 0
            def next_tuple(self):
                self.n += 1
                if self.n == 1:
                    self.emit(["x"], tup_id=1)
        """, spout=True).started()  # fmt: skip
    emits(child)
    told: list[object] = []
    for _ in range(1100):  # doubled so often, no float holds the delay
        said = child.ask("fail", 1)
        assert len(emits(child)) == 1
        if not told:
            told = said
    (warning,) = told
    assert isinstance(warning, Log)
    assert warning.level == 3
    assert (
        "tuple 1 of component 'part' (task 4) failed 8 times, and is emitted again until it is acked" in warning.message
    )
    assert "multilang.max.replays in the conf. Its values: ['x']" in warning.message


def test_replays_wait_twice_as_long_each_time_up_to_the_bound(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            replay_delay_secs = 1
            max_replay_delay_secs = 3
            now = 100.0
            n = 0
            def clock(self):
                return self.now
            def next_tuple(self):
                self.n += 1
                if self.n == 1:
                    self.emit(["x"], tup_id=1)
            def deactivate(self):
                self.now += 0.5
        """, spout=True).started()  # fmt: skip
    emits(child)
    waits = []
    for _ in range(4):
        child.ask("fail", 1)
        halves = 0
        while not emits(child):
            child.ask("deactivate")
            halves += 1
        waits.append(halves / 2)
    assert waits == [1, 2, 3, 3]


def test_a_failure_that_is_due_is_not_held_up_by_an_older_one_that_is_not(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            replay_delay_secs = 1
            now = 0.0
            sent = False
            def clock(self):
                return self.now
            def next_tuple(self):
                if not self.sent:
                    self.sent = True
                    self.emit_many([["a"], ["b"]], tup_ids=["a", "b"])
            def deactivate(self):
                self.now += 1
        """, spout=True).started()  # fmt: skip
    emits(child)
    child.ask("fail", "a")
    child.ask("deactivate")
    assert [e.id for e in emits(child)] == ["a"]
    child.ask("fail", "a")  # due in 2
    child.ask("fail", "b")  # due in 1
    child.ask("deactivate")
    assert [e.id for e in emits(child)] == ["b"]
    assert emits(child) == []
    child.ask("deactivate")
    assert [e.id for e in emits(child)] == ["a"]


def test_an_ack_that_comes_after_the_failure_ends_the_replays(start: Starter) -> None:
    child = start(COUNTER.format(base="ReliableSpout"), spout=True).started()
    emits(child)
    child.ask("fail", 1)
    child.ask("ack", 1)
    assert [e.id for e in emits(child)] == [2]
    assert child.ask("fail", 1) == []
    assert [e.id for e in emits(child)] == [3]


def test_a_message_id_that_is_under_way_is_refused(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit(["x"], tup_id="same")
        """, spout=True).started()  # fmt: skip
    emits(child)
    child.ask("ack", "same")
    emits(child)
    child.say(lambda parent: parent.next())
    child.ended(1)
    assert "'same' is in flight already" in child.errors[0]


@pytest.mark.parametrize("tup_id", ["[1, 2]", "(1, 2)", "{'a': 1}", "b'x'", "{1}"])
def test_a_reliable_spout_takes_strings_and_numbers_as_ids(start: Starter, tup_id: str) -> None:
    child = start(f"""
        class Part(ReliableSpout):
            output_fields = ["value"]
            def next_tuple(self):
                self.emit(["x"], tup_id={tup_id})
        """, spout=True).started()  # fmt: skip
    child.say(lambda parent: parent.next())
    child.ended(1)
    assert "strings or numbers" in child.errors[0]
    assert child.emitted == []


def test_an_emit_that_was_refused_is_not_under_way(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            def next_tuple(self):
                try:
                    self.emit([float("inf")], tup_id=1)
                except ValueError:
                    pass
                except Exception as error:
                    self.log(type(error).__name__)
                self.log(self.under_way)
        """, spout=True).started()  # fmt: skip
    assert child.ask() == [Log("UnserializableValue"), Log("0")]


def test_what_waits_for_its_replay_is_still_to_come(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            replay_delay_secs = 1000
            max_replay_delay_secs = 1000
            n = 0
            def next_tuple(self):
                self.n += 1
                if self.n == 1:
                    self.emit(["x"], tup_id=1)
            def exhausted(self):
                return self.n > 0
        """, {"multilang.parent": "local"}, spout=True).started()  # fmt: skip
    child.ask()
    child.ask("fail", 1)
    child.ask()
    child.ask("ack", 1)
    child.ask()
    assert [sync.exhausted for sync in child.all(Sync)] == [True, None, False, None, True]


def test_no_more_is_under_way_than_the_limit_those_included_that_wait_for_their_replay(start: Starter) -> None:
    child = start("""
        class Part(ReliableSpout):
            output_fields = ["value"]
            replay_delay_secs = 1
            now = 0.0
            n = 0
            def clock(self):
                return self.now
            def next_tuple(self):
                self.n += 1
                self.emit([self.n], tup_id=self.n)
            def deactivate(self):
                self.now += 1
        """, {"topology.max.spout.pending": 2}, spout=True).started()  # fmt: skip
    assert [e.id for e in emits(child) + emits(child) + emits(child)] == [1, 2]
    child.ask("fail", 1)
    child.ask("fail", 2)
    assert emits(child) == []
    child.ask("deactivate")
    assert [e.id for e in emits(child) + emits(child) + emits(child)] == [1, 2]
    child.ask("ack", 1)
    assert [e.id for e in emits(child) + emits(child)] == [3]


@pytest.mark.parametrize("name", ["replay_delay_secs", "max_replay_delay_secs"])
def test_a_negative_delay_is_refused_at_the_start(start: Starter, name: str) -> None:
    child = start(f"""
        class Part(ReliableSpout):
            {name} = -1
        """, spout=True)  # fmt: skip
    child.ended(UNUSABLE)
    assert f"Part.{name} is -1; use seconds from 0" in child.errors[0]
