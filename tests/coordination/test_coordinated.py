"""The end of an id: when it is finished, what is reported then, and what happens when it can't be finished."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import BasicBolt, Bolt, ConfigError, FailedException
from multilang.coordination import COORD_STREAM, CoordinatedBolt
from multilang.protocol import UnserializableValue
from tests.coordination.task import DIRECT, FROM_ALL, FROM_ONE, IDS, Part, Task


class Recording(Part):
    """Emits as many tuples as the value says, acks, and notes what it is told of ids."""

    def initialize(self, conf, context):
        self.finished, self.timed_out, self.kept = [], [], []

    def process(self, tup):
        id, n = tup.values
        for each in range(n):
            self.emit([id, each], anchors=[tup])
        self.ack(tup)

    def finished_id(self, id):
        self.finished.append(id)

    def timeout_id(self, id):
        self.timed_out.append(id)


class Keeping(Recording):
    """Acks nothing by itself."""

    def process(self, tup):
        self.kept.append(tup)


BOTH = pytest.mark.parametrize("at_once", [False, True], ids=["asked for", "known at once"])


def test_the_first_bolt_is_finished_by_its_one_tuple():
    task = Task(Recording())
    task.request("a", 4)
    assert task.bolt.wrapped.finished == ["a"]
    assert sum(task.reports["a"]) == 4
    assert task.acked == [("source", "a", 4)]
    assert not task.bolt.tracked


def test_every_task_downstream_is_told_also_of_no_tuple():
    task = Task(Recording())
    task.request("a", 0)
    assert task.reports == {"a": [0, 0, 0]}


def test_reports_come_after_all_that_they_count_and_count_it_right():
    task = Task(Recording())
    task.request("a", 50)
    streams = [stream for stream, *_ in task.emitted]
    assert streams == ["default"] * 50 + [COORD_STREAM] * 3
    sent = [sum(target == each for stream, _, target, _ in task.emitted if stream == "default") for each in task.down]
    assert task.reports["a"] == sent


def test_task_ids_that_are_known_at_once_are_not_asked_for_and_counted_all_the_same():
    task = Task(Recording(), at_once=True)
    task.request("a", 50, answer=False)
    assert not task.withheld
    sent = [sum(target == each for stream, _, target, _ in task.emitted if stream == "default") for each in task.down]
    assert sum(sent) == 50
    assert task.reports["a"] == sent


def test_a_middle_bolt_waits_for_every_report_and_every_tuple():
    task = Task(Recording(), FROM_ALL)
    task.report("a", 1, up=0)
    task.report("a", 2, up=1)
    task.data("a", 1, up=0)
    task.data("a", 1, up=1)
    assert task.reports == {}
    assert task.bolt.wrapped.finished == []
    task.data("a", 0, up=1)
    assert sum(task.reports["a"]) == 2
    assert task.bolt.wrapped.finished == ["a"]
    assert not task.bolt.tracked


def test_one_report_is_enough_of_a_source_of_which_one_task_works_on_an_id():
    task = Task(Recording(), FROM_ONE)
    task.data("a", 3)
    task.report("a", 1)
    assert sum(task.reports["a"]) == 3


def test_the_last_bolt_waits_for_the_id_too():
    task = Task(Recording(), FROM_ONE, IDS)
    task.data("a", 1)
    task.report("a", 1)
    assert task.acked == [("up", "a", 1), (COORD_STREAM, "a", 1)]  # at once: only the id is held
    assert task.reports == {}
    task.identify("a")
    assert sum(task.reports["a"]) == 1
    assert task.acked[-1] == ("id", "a")


def test_a_report_is_held_until_its_id_is_finished():
    task = Task(Recording(), FROM_ONE)
    task.report("a", 1)
    assert task.acked == []
    task.data("a")
    assert set(task.acked) == {(COORD_STREAM, "a", 1), ("up", "a", 0)}


def test_reports_are_anchored_to_what_is_held():
    task = Task(Recording(), FROM_ONE, IDS)
    task.identify("a")
    task.data("a")
    task.report("a", 1)
    assert [anchors for stream, _, _, anchors in task.emitted if stream == COORD_STREAM] == [[("id", "a")]] * 3


@given(st.permutations([("data", 0), ("data", 0), ("data", 1), ("report", 0), ("report", 1), ("id", 0)]))
def test_any_order_of_arrival_finishes_an_id_once_and_at_the_last(order):
    task = Task(Recording(), FROM_ALL, IDS)
    counts = {0: 2, 1: 1}
    for step, (kind, up) in enumerate(order):
        assert task.bolt.wrapped.finished == [], step
        if kind == "data":
            task.data("a", 2, up)
        elif kind == "report":
            task.report("a", counts[up], up)
        else:
            task.identify("a")
    assert task.bolt.wrapped.finished == ["a"]
    assert sum(task.reports["a"]) == 6
    assert len(task.acked) == 6
    assert not task.bolt.tracked


@given(st.lists(st.integers(0, 3), min_size=4, max_size=30))
def test_ids_do_not_touch_each_other(ids):
    task = Task(Recording(), FROM_ONE)
    for id in ids:
        task.data(id, id)
    for id in set(ids):
        task.report(id, ids.count(id))
    assert {id: sum(counts) for id, counts in task.reports.items()} == {id: id * ids.count(id) for id in set(ids)}
    assert not task.bolt.tracked


def test_a_tuple_may_be_acked_after_everything_else():
    task = Task(Keeping(), FROM_ALL)
    task.data("a")
    task.report("a", 1, up=0)
    task.report("a", 0, up=1)
    (kept,) = task.bolt.wrapped.kept
    task.bolt.wrapped.ack(kept)
    task.settle()
    assert task.bolt.wrapped.finished == ["a"]
    assert task.reports == {"a": [0, 0, 0]}
    assert len(task.acked) == 3


def test_reports_wait_for_task_ids_and_nothing_else_does():
    task = Task(Recording(), FROM_ONE)
    task.data("a", 3, answer=False)
    task.report("a", 1, answer=False)
    task.data("b", 0, answer=False)
    task.report("b", 1, answer=False)
    assert task.bolt.wrapped.finished == ["a", "b"]
    assert list(task.reports) == ["b"]
    task.settle()
    assert sum(task.reports["a"]) == 3
    assert len(task.acked) == 4


@BOTH
def test_what_is_emitted_in_finished_id_is_counted(at_once):
    class AtTheEnd(Recording):
        def finished_id(self, id):
            for n in range(5):
                self.emit([id, n])

    task = Task(AtTheEnd(), FROM_ONE, at_once=at_once)
    task.data("a", 2)
    task.report("a", 1)
    assert sum(task.reports["a"]) == 7


@BOTH
def test_direct_emits_are_counted(at_once):
    class Choosing(Part):
        output_fields = None
        output_streams = {"direct": DIRECT}

        def process(self, tup):
            for task in self.context.tasks("down")[:2]:
                self.emit(tup.values, "direct", [tup], direct_task=task)
            self.emit(tup.values, "direct", [tup], direct_task=self.context.tasks("down")[0])
            self.ack(tup)

    task = Task(Choosing(), at_once=at_once)
    task.request("a")
    assert task.reports == {"a": [2, 1, 0]}


def test_one_task_downstream_needs_no_task_ids():
    task = Task(Recording(), downstream_tasks=1)
    task.request("a", 3, answer=False)
    assert task.reports == {"a": [3]}
    assert not task.withheld


@BOTH
def test_a_callers_own_callback_for_task_ids_is_called_too(at_once):
    heard = []

    class Asking(Part):
        def process(self, tup):
            self.emit(tup.values, on_task_ids=heard.append)
            self.ack(tup)

    task = Task(Asking(), at_once=at_once)
    task.request("a")
    assert len(heard) == 1
    assert sum(task.reports["a"]) == 1


@BOTH
def test_emit_many_is_counted(at_once):
    class Many(BasicBolt):
        output_fields = ["id", "n"]

        def process(self, tup):
            self.emit_many([[tup[0], n] for n in range(tup[1])])

    task = Task(Many(), at_once=at_once)
    task.request("a", 6)
    assert sum(task.reports["a"]) == 6
    assert all(anchors == [("source", "a", 6)] for stream, _, _, anchors in task.emitted if stream == "default")


# ---- what goes wrong ----


class Failing(Recording):
    def process(self, tup):
        if tup[1] < 0:
            raise FailedException
        self.ack(tup)


def test_a_failed_tuple_fails_its_id_whatever_comes_before_and_after():
    task = Task(Failing(), FROM_ALL)
    task.report("a", 1, up=0)
    task.data("a", 1)
    task.data("a", -1)
    assert task.failed == [(COORD_STREAM, "a", 1), ("up", "a", -1)]
    task.data("a", 1)
    task.report("a", 2, up=1)
    assert task.failed[2:] == [("up", "a", 1), (COORD_STREAM, "a", 2)]  # at once, not at the message timeout
    assert task.bolt.wrapped.timed_out == ["a"]
    assert task.bolt.wrapped.finished == []
    assert task.reports == {}


def test_a_failure_before_any_report_fails_the_reports_to_come():
    task = Task(Failing(), FROM_ONE, IDS)
    task.data("a", -1)
    task.report("a", 1)
    task.identify("a")
    assert task.failed == [("up", "a", -1), (COORD_STREAM, "a", 1), ("id", "a")]


def test_failed_exception_in_finished_id_fails_what_is_held():
    class Refusing(Recording):
        def finished_id(self, id):
            raise FailedException

    task = Task(Refusing(), FROM_ONE, IDS)
    task.identify("a")
    task.data("a")
    task.report("a", 1)
    assert task.failed == [("id", "a"), (COORD_STREAM, "a", 1)]
    assert task.reports == {}


@pytest.mark.parametrize("surplus", ["report", "data"])
def test_more_than_there_can_be_fails_an_id_instead_of_never_finishing_it(surplus):
    task = Task(Keeping(), FROM_ONE)
    task.data("a")
    task.data("a")
    task.bolt.wrapped.ack(task.bolt.wrapped.kept[0])
    if surplus == "report":
        task.report("a", 2)
        task.report("a", 0)
    else:
        task.bolt.wrapped.ack(task.bolt.wrapped.kept[1])
        task.report("a", 1)
    assert (COORD_STREAM, "a", 1 if surplus == "data" else 2) in task.failed
    assert "is an id used twice, or" in task.logged[0]
    assert task.bolt.wrapped.finished == []


def test_a_second_report_of_one_task_does_not_stand_for_that_of_another():
    task = Task(Recording(), FROM_ALL)
    for _ in range(2):  # the id comes again before the other task has reported
        task.data("a", 0, up=0)
        task.report("a", 1, up=0)
    task.data("a", 0, up=1)
    task.report("a", 1, up=1)
    assert task.bolt.wrapped.finished == []
    assert (COORD_STREAM, "a", 1) in task.failed
    assert task.reports == {}


def test_what_never_finishes_is_let_go_and_failed():
    task = Task(Recording(), FROM_ALL, conf={"topology.message.timeout.secs": 30})
    task.data("a", 0)
    task.report("a", 1)
    task.tick()
    task.report("b", 1)
    task.tick()
    assert task.failed == []
    task.tick()  # 45 s, 1.5 times the message timeout, at the latest
    assert task.failed == [(COORD_STREAM, "a", 1)]
    assert task.bolt.wrapped.timed_out == ["a"]
    assert list(task.bolt.tracked) == ["b"]
    task.tick()
    assert not task.bolt.tracked
    assert task.bolt.wrapped.timed_out == ["a", "b"]


def test_task_ids_that_come_after_the_end_of_an_id_are_no_reports():
    task = Task(Recording(), FROM_ONE)
    task.data("a", 2, answer=False)
    task.report("a", 1, answer=False)
    answers, task.withheld = task.withheld, []
    for _ in range(3):
        task.tick()
    for call, tasks in answers:
        call(tasks)
    task.settle()
    assert task.reports == {}
    assert task.failed == [(COORD_STREAM, "a", 1)]


def used_again():
    """Return a task, and the bolt in it, that holds a tuple of an id of before it expired, and one of its second life."""
    task = Task(Keeping(), FROM_ONE)
    task.data("a")
    while task.bolt.tracked:
        task.tick()
    task.data("a")
    return task, task.bolt.wrapped


@pytest.mark.parametrize("reported", ["first", "last"])
def test_a_tuple_of_an_earlier_life_of_an_id_stands_for_none_of_the_present_one(reported):
    task, bolt = used_again()
    task.data("a")
    if reported == "first":
        task.report("a", 2)
    bolt.ack(bolt.kept[1])
    bolt.ack(bolt.kept[0])  # of the earlier one; one of the present one is still to come
    if reported == "last":
        task.report("a", 2)
    task.settle()
    assert bolt.finished == []
    assert "still held a tuple of the time before" in task.logged[-1]
    assert (COORD_STREAM, "a", 2) in task.failed


def test_an_id_that_comes_again_after_it_expired_is_finished_if_the_bolt_holds_nothing_of_before():
    task, bolt = used_again()
    task.report("a", 1)
    bolt.ack(bolt.kept[1])
    task.settle()
    assert bolt.finished == ["a"]
    bolt.ack(bolt.kept[0])
    assert not task.bolt.tracked


def test_a_tick_is_no_id_and_reaches_only_a_bolt_that_takes_ticks():
    ticks = []

    class Ticking(Recording):
        def process_tick(self, tup):
            ticks.append(tup.values)

    for delegate in (Recording(), Ticking()):
        task = Task(delegate)
        task.tick()
        assert not task.bolt.tracked
    assert ticks == [[15]]


def test_an_emit_that_is_refused_leaves_nothing_to_wait_for():
    class Wrong(Part):
        def process(self, tup):
            with pytest.raises(UnserializableValue):
                self.emit([tup[0], object()])
            self.ack(tup)

    task = Task(Wrong())
    task.request("a")
    assert task.reports == {"a": [0, 0, 0]}


def test_acked_twice_is_refused_as_everywhere():
    class Twice(Bolt):
        output_fields = ["id", "n"]

        def process(self, tup):
            self.ack(tup)
            self.ack(tup)

    task = Task(Twice())
    with pytest.raises(Exception, match="acked"):
        task.request("a")


def test_sources_say_how_many_tasks_report():
    with pytest.raises(ConfigError, match="SINGLE or ALL"):
        CoordinatedBolt(Part(), {"up": "some"})
