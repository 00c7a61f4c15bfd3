"""Bolts as processes: acks, fails, ticks, anchors, exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.child.process import UNRECOVERABLE
from multilang.protocol.messages import Ack, Emit, Fail, Pid
from tests.component.harness import context

if TYPE_CHECKING:
    from tests.component.harness import Starter

FORKS = True

ECHO = """
class Part(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        self.emit([tup[0]])
"""


def test_the_first_message_is_the_pid_which_is_also_a_file(start: Starter) -> None:
    child = start(ECHO).started()
    assert child.messages[0] == Pid(child.process.pid)
    assert (start.folder / "pids" / str(child.process.pid)).read_bytes() == b""


def test_a_basic_bolt_anchors_what_it_emits_and_acks_afterwards(start: Starter) -> None:
    child = start(ECHO).started()
    id = child.give("hello")
    child.until(lambda: child.acked)
    emit, ack = (message for message in child.messages if isinstance(message, Emit | Ack))
    assert emit == Emit(["hello"], anchors=[id], need_task_ids=False)
    assert ack == Ack(id)


def test_a_basic_bolt_fails_the_tuple_of_any_exception_reports_it_and_lives_on(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                if tup["value"] == "bad":
                    raise ZeroDivisionError("no such price")
                self.emit([tup[0]])
        """)
    bad, good = child.give("bad"), child.give("good")
    child.until(lambda: child.acked)
    assert (child.failed, child.acked, child.emitted) == ([bad], [good], [["good"]])
    (error,) = child.errors
    for part in (
        "ZeroDivisionError",
        "no such price",
        "'part' (task 4)",
        bad,
        "'source'",
        "['bad']",
        "Traceback",
        "line",
    ):
        assert part in error


@pytest.mark.parametrize("base", ["BasicBolt", "Bolt"])
def test_failed_exception_fails_the_tuple_without_a_report(start: Starter, base: str) -> None:
    child = start(f"""
        class Part({base}):
            def process(self, tup):
                raise FailedException("not now")
        """)
    id = child.give("x")
    child.until(lambda: child.failed)
    child.beat()
    assert (child.failed, child.errors, child.acked) == ([id], [], [])


@pytest.mark.parametrize("base", ["BasicBolt", "Bolt"])
def test_reported_failed_exception_fails_the_tuple_with_a_report(start: Starter, base: str) -> None:
    child = start(f"""
        class Part({base}):
            def process(self, tup):
                raise ReportedFailedException("look at this")
        """)
    id = child.give("x")
    child.until(lambda: child.failed)
    child.beat()
    (error,) = child.errors
    assert child.failed == [id]
    assert "look at this" in error
    assert id in error


def test_any_other_exception_of_a_bolt_is_reported_and_ends_the_process_with_status_1(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            def process(self, tup):
                raise KeyError("lost")
        """)
    id = child.give("x")
    child.ended(1)
    (error,) = child.errors
    for part in ("KeyError", "'lost'", "'part' (task 4)", id, "'source'", "['x']", "Traceback"):
        assert part in error
    assert (child.acked, child.failed, child.stderr) == ([], [], b"")


@pytest.mark.parametrize("base", ["BasicBolt", "Bolt"])
@pytest.mark.parametrize("how", ["end", "fail", "fail and end"])
def test_a_bolt_says_what_its_exceptions_do(start: Starter, base: str, how: str) -> None:
    child = start(f"""
        class Part({base}):
            on_exception = "{how}"
            def process(self, tup):
                raise KeyError("lost")
        """)
    id = child.give("x")
    if "end" in how:
        child.ended(1)
    else:
        child.until(lambda: child.failed)
        child.beat()
    (error,) = child.errors
    assert "'lost'" in error
    assert (child.acked, child.failed) == ([], [id] if "fail" in how else [])


def test_what_an_exception_does_is_one_of_three(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            on_exception = "stop"
        """)
    child.ended(78)
    assert "Part.on_exception is 'stop'; write 'end', 'fail' or 'fail and end'" in child.errors[0]


def test_an_exception_that_cannot_be_shown_is_reported_all_the_same(start: Starter) -> None:
    child = start("""
        class Shy(Exception):
            def __str__(self):
                raise ValueError("no text")
        class Part(BasicBolt):
            def process(self, tup):
                raise Shy
        """)
    id = child.give("x")
    child.until(lambda: child.failed)
    assert child.failed == [id]
    assert "Shy" in child.errors[0]


def test_long_values_are_shortened_in_a_report(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                raise ValueError
        """)
    child.give("x" * 1_000_000)
    child.until(lambda: child.failed)
    assert len(child.errors[0]) < 5000


def test_a_bolt_acks_and_fails_what_it_says_now_or_later(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            output_fields = ["value"]
            def initialize(self, conf, context):
                self.kept = []
            def process(self, tup):
                self.kept.append(tup)
                if len(self.kept) == 3:
                    one, two, three = self.kept
                    self.emit(["sum"], anchors=self.kept)
                    self.ack(one)
                    self.fail(two.id)
                    self.ack(three)
        """)
    one, two, three = child.give(1), child.give(2), child.give(3)
    child.until(lambda: len(child.acked) == 2)
    said = [message for message in child.messages if isinstance(message, Emit | Ack | Fail)]
    assert said == [
        Emit(["sum"], anchors=[one, two, three], need_task_ids=False),
        Ack(one),
        Fail(two),
        Ack(three),
    ]


@pytest.mark.parametrize(
    ("base", "anchors", "sent"),
    [
        ("Bolt", "", []),
        ("Bolt", ", anchors=[tup]", ["t1"]),
        ("Bolt", ", anchors=[tup.id]", ["t1"]),
        ("Bolt", ", anchors=[]", []),
        ("BasicBolt", "", ["t1"]),
        ("BasicBolt", ", anchors=None", ["t1"]),
        ("BasicBolt", ", anchors=[]", []),
        ("BasicBolt", ", anchors=(tup,)", ["t1"]),
    ],
)
@pytest.mark.parametrize("emit", ["emit([1]", "emit_many([[1]]"])
def test_anchors_are_the_tuple_in_a_basic_bolt_and_none_in_a_bolt_unless_given(
    start: Starter, base: str, anchors: str, sent: list[str], emit: str
) -> None:
    child = start(f"""
        class Part({base}):
            output_fields = ["value"]
            def process(self, tup):
                self.{emit}{anchors})
        """)
    child.give("x")
    child.until(lambda: child.emitted)
    assert list(child.all(Emit)[0].anchors) == sent


def test_an_emit_anchored_to_a_finished_tuple_is_refused_with_nothing_sent(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                self.ack(tup)
                self.emit(["late"], anchors=[tup])
        """)
    id = child.give("x")
    child.ended(1)
    assert child.emitted == []
    assert id in child.errors[0]
    assert "acked or failed before" in child.errors[0]


@pytest.mark.parametrize("twice", ["ack(tup); self.ack(tup)", "ack(tup); self.fail(tup)", "fail(tup); self.fail(tup)"])
def test_a_tuple_finished_twice_is_refused_since_it_would_halt_the_worker(start: Starter, twice: str) -> None:
    child = start(f"""
        class Part(Bolt):
            def process(self, tup):
                self.{twice}
        """)
    child.give("x")
    child.ended(1)
    assert len(child.acked) + len(child.failed) == 1
    assert "once" in child.errors[0]


def test_emit_many_sends_each_row_with_the_same_anchor(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            output_streams = {"pairs": ["key", "value"]}
            def process(self, tup):
                self.emit_many([word] for word in tup["value"].split())
                self.emit_many([[1, 2], (3, 4)], stream="pairs")
        """, ctx=context(outputs={"default": ["value"], "pairs": ["key", "value"]}))  # fmt: skip
    id = child.give("a b c")
    child.until(lambda: child.acked)
    assert [(e.stream, e.values, list(e.anchors)) for e in child.all(Emit)] == [
        ("default", ["a"], [id]),
        ("default", ["b"], [id]),
        ("default", ["c"], [id]),
        ("pairs", [1, 2], [id]),
        ("pairs", [3, 4], [id]),
    ]


@pytest.mark.parametrize("base", ["BasicBolt", "Bolt"])
def test_a_tick_goes_to_process_tick_and_is_acked(start: Starter, base: str) -> None:
    child = start(f"""
        class Part({base}):
            output_fields = ["value"]
            def process(self, tup):
                self.emit(["tuple"])
                self.ack(tup)
            def process_tick(self, tup):
                self.emit(["tick", ][:1])
        """)
    tick = child.tick()
    id = child.give("x")
    child.until(lambda: len(child.acked) == 2)
    assert child.emitted == [["tick"], ["tuple"]]
    assert child.acked == [tick, id]


@pytest.mark.parametrize(("raises", "reported"), [("FailedException('x')", 0), ("ReportedFailedException('x')", 1)])
def test_a_tick_whose_process_tick_fails_it_is_failed(start: Starter, raises: str, reported: int) -> None:
    child = start(f"""
        class Part(Bolt):
            def process_tick(self, tup):
                raise {raises}
        """)
    tick = child.tick()
    child.until(lambda: child.failed)
    assert child.failed == [tick]
    assert len(child.errors) == reported


def test_a_user_stream_called_tick_is_no_tick(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([tup.is_tick])
        """, ctx=context(inputs={"__tick": ["value"]}))  # fmt: skip
    child.give("x", stream="__tick")
    child.until(lambda: child.acked)
    assert child.emitted == [[False]]


def test_a_bolt_without_process_is_told_what_to_define(start: Starter) -> None:
    child = start("class Part(Bolt): pass")
    child.give("x")
    child.ended(UNRECOVERABLE)
    assert "define process(self, tup)" in child.errors[0]


def test_a_bolt_may_emit_in_initialize_and_in_close(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            output_fields = ["value"]
            def initialize(self, conf, context):
                self.emit(["first"])
            def close(self):
                self.emit(["last"])
        """).started()
    child.close_input()
    child.ended(0)
    assert child.emitted == [["first"], ["last"]]


def test_a_tuple_is_read_by_name_and_by_position(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([[tup["word"], tup[1], tup[-1], tup.values, len(tup), list(tup), tup.get("no", 7),
                            tup.asdict(), tup.fields, tup.id, tup.component, tup.stream, tup.task]])
        """, ctx=context(inputs={"words": ["word", "n"]}))  # fmt: skip
    id = child.give("a", 5, stream="words")
    child.until(lambda: child.acked)
    expected = ["a", 5, 5, ["a", 5], 2, ["a", 5], 7, {"word": "a", "n": 5}, ["word", "n"], id, "source", "words", 6]
    assert child.emitted == [[expected]]


@pytest.mark.parametrize(
    ("asked", "values", "error"),
    [
        ("'wrod'", ["a", 5], "stream 'default' of 'source' has no field 'wrod'; it has 'word', 'n'"),
        ("'n'", ["a"], "sent 1 values, too few to hold field 'n'"),
        ("7", ["a", 5], "IndexError"),
    ],
)
def test_a_field_that_is_not_there_is_said_clearly(
    start: Starter, asked: str, values: list[object], error: str
) -> None:
    child = start(f"""
        class Part(BasicBolt):
            def process(self, tup):
                tup[{asked}]
        """, ctx=context(inputs={"default": ["word", "n"]}))  # fmt: skip
    child.give(*values)
    child.until(lambda: child.failed)
    assert error in child.errors[0]


def test_with_a_context_before_0_10_fields_are_read_by_position_and_task_ids_asked_for(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.emit([[self.context.component, self.context.sources, self.context.streams, tup[0]]])
                try:
                    tup["value"]
                except KeyError as error:
                    self.log(error)
        """, ctx={"taskid": 4, "task->component": {"4": "part", "6": "source"}})  # fmt: skip
    child.give("x")
    child.until(lambda: child.acked)
    assert child.emitted == [[["part", {}, [], "x"]]]
    assert child.all(Emit)[0].need_task_ids
    assert "use a position" in child.log_text


@pytest.mark.parametrize(
    ("emit", "parts"),
    [
        ("emit([float('nan')])", ["'part'", "'default'", "'value'", "nan"]),
        ("emit([b'x'])", ["'part'", "'value'", "bytes", "decode it"]),
        ("emit([{1, 2}])", ["set"]),
        ("emit([2**64])", ["64 bits"]),
        ("emit([1, 2])", ["2 values", "declares 1", "value"]),
        ("emit('a')", ["list"]),
        ("emit([1], stream='none')", ["'none'", "does not declare", "'default'"]),
        ("emit([1], anchors=tup)", ["anchors=[tup]"]),
        ("emit_many([[1], [2, 3]])", ["2 values"]),
    ],
)
def test_an_emit_that_cannot_arrive_is_refused_and_its_input_not_acked(
    start: Starter, emit: str, parts: list[str]
) -> None:
    child = start(f"""
        class Part(BasicBolt):
            output_fields = ["value"]
            def process(self, tup):
                self.{emit}
        """)
    id = child.give("x")
    child.until(lambda: child.failed)
    child.beat()
    assert (child.failed, child.acked) == ([id], [])
    assert [part for part in parts if part not in child.errors[0]] == []


def test_the_tasks_of_a_component_that_is_not_there_are_an_error_with_those_that_are(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def initialize(self, conf, context):
                context.tasks("nobody")
        """)  # fmt: skip
    child.until(lambda: child.errors)
    assert "asks for the tasks of 'nobody', which this topology does not have; write one of 'next'" in child.errors[0]


def test_the_context_has_a_name_for_each_of_its_keys(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            output_fields = ["value"]
            def initialize(self, conf, context):
                c = self.context
                assert c is context and self.conf is conf
                self.emit([[c.component, c.task, c.task_index, c.tasks("part"), c.tasks("__system"), c.streams,
                            c.output_fields, c.targets, c.sources, c.source_fields, sorted(c.task_component.items()),
                            c["taskid"], conf["topology.name"]]])
        """, {"topology.name": "shop"})  # fmt: skip
    child.until(lambda: child.emitted)
    assert child.emitted == [
        [
            [
                "part",
                4,
                0,
                [4, 5],
                [],
                ["default"],
                {"default": ["value"]},
                {"default": {"next": {"type": "SHUFFLE"}}},
                {"source": {"default": {"type": "SHUFFLE"}}},
                {"source": {"default": ["value"]}},
                [[1, "__acker"], [2, "next"], [3, "next"], [4, "part"], [5, "part"], [6, "source"], [7, "other"]],
                4,
                "shop",
            ]
        ]
    ]


@pytest.mark.parametrize(
    ("conf", "on_the_wire"),
    [({}, 7 + 2**32), ({"multilang.parent": "local"}, 7)],
)
def test_a_direct_emit_names_its_task_in_the_form_that_the_parent_reads(
    start: Starter, conf: dict[str, object], on_the_wire: int
) -> None:
    child = start("""
        class Part(BasicBolt):
            output_streams = {"counts": Stream(["n"], direct=True)}
            def process(self, tup):
                tasks = self.emit([1], stream="counts", direct_task=self.context.tasks("other")[0], need_task_ids=True)
                seen = []
                self.emit([2], stream="counts", direct_task=7, on_task_ids=seen.append)
                self.log([tasks, seen])
        """, conf, context(outputs={"counts": ["n"]}, direct=["counts"]), answer=None)  # fmt: skip
    wire = child.parent._read_emit  # what is on the wire is seen before the parent narrows it
    tasks: list[int] = []
    child.parent._readers["emit"] = lambda message, frame: (tasks.append(message["task"]), wire(message, frame))[1]
    child.give("x")
    child.until(lambda: child.acked)
    assert [emit.task for emit in child.all(Emit)] == [7, 7]
    assert tasks == [on_the_wire, on_the_wire]
    assert child.logged() == ["[[7], [[7]]]"]


@pytest.mark.parametrize(
    ("emit", "error"),
    [
        ("emit([1], stream='counts')", "direct_task=<task id>"),
        ("emit([1], stream='counts', direct_task=99)", "the topology does not have"),
        ("emit([1], stream='counts', direct_task='7')", "direct_task is a task id"),
        ("emit([1], direct_task=2)", "SHUFFLE grouping"),
        ("emit_many([[1]], stream='counts')", "direct_task=<task id>"),
    ],
)
def test_a_direct_emit_that_would_halt_the_worker_is_refused(start: Starter, emit: str, error: str) -> None:
    child = start(f"""
        class Part(BasicBolt):
            output_fields = ["value"]
            output_streams = {{"counts": Stream(["n"], direct=True)}}
            def process(self, tup):
                self.{emit}
        """, ctx=context(outputs={"default": ["value"], "counts": ["n"]}, direct=["counts"]))  # fmt: skip
    child.give("x")
    child.until(lambda: child.failed)
    assert error in child.errors[0]
    assert child.emitted == []


COPIES = {
    "copy": "copy.copy(tup)",
    "deepcopy": "copy.deepcopy(tup)",
    "pickle": "pickle.loads(pickle.dumps(tup))",
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_tuple_stands_for_it_and_not_for_another_one(start: Starter, copied: str) -> None:
    child = start(f"""
        import copy, pickle
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                mine = {copied}
                assert mine == tup and mine["value"] == tup["value"]
                self.emit([1], anchors=[mine])
                self.ack(mine)
                for again in (self.ack, self.fail, lambda tup: self.emit([2], anchors=[tup])):
                    for each in (tup, mine):
                        try:
                            again(each)
                        except Exception as error:
                            self.log(type(error).__name__)
        """)
    id = child.give("x")
    child.until(lambda: len(child.logged()) == 6)
    assert child.logged() == ["LocalProtocolError"] * 6
    assert child.acked == [id]
    assert child.failed == []
    assert [emit.anchors for emit in child.all(Emit)] == [[id]]


def test_a_component_may_have_a_logger_of_its_own(start: Starter) -> None:
    child = start("""
        import logging

        class Part(BasicBolt):
            def initialize(self, conf, context):
                self.logger = logging.getLogger("shop")
            def process(self, tup):
                self.logger.warning("sold %s", tup[0])
        """)
    child.give("x")
    child.until(lambda: "shop: sold x" in child.logged())


def test_metrics_before_initialize_say_when_they_are_there(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def __init__(self):
                self.metrics.counter("n")
        """)
    child.ended(78)
    assert "metrics is there from initialize() on" in child.errors[0]
