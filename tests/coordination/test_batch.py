"""Batch bolts: one for each id, and what becomes of it."""

from __future__ import annotations

from multilang.component import FailedException, Middleware, Retry
from multilang.coordination import COORD_STREAM, BatchBolt, BatchBoltExecutor
from tests.coordination.task import FROM_ALL, FROM_ONE, Task


class Total(BatchBolt):
    """Emits the sum of an id's values, times a factor, at its end."""

    output_fields = ["id", "n"]

    def __init__(self, factor=1):
        self.factor = factor
        self.made = []

    def initialize(self, conf, context, collector, id):
        self.collector, self.given_id, self.sum = collector, id, 0

    def process(self, tup):
        if tup[1] == 13:
            raise FailedException
        self.sum += tup[1]
        self.made.append(tup[1])

    def finish_batch(self):
        if self.sum == 26:
            raise ZeroDivisionError("no 26")
        self.collector.emit([self.given_id, self.sum * self.factor])
        self.emit([self.id, len(self.made)])


def batch_task(bolt, sources=FROM_ONE, factory=None, **more):
    return Task(BatchBoltExecutor(bolt, factory), sources, **more)


def values(task):
    return [values for stream, values, *_ in task.emitted if stream == "default"]


def test_each_id_has_a_batch_bolt_of_its_own():
    template = Total(10)
    task = batch_task(template)
    for id, n in (("a", 1), ("b", 2), ("a", 3)):
        task.data(id, n)
    task.report("b", 1)
    task.report("a", 2)
    assert values(task) == [["b", 20], ["b", 1], ["a", 40], ["a", 2]]
    assert template.made == []
    assert task.bolt.wrapped.batches == {}


def test_an_id_without_tuples_is_finished_too():
    task = batch_task(Total(), FROM_ALL)
    task.report("a", 0, up=0)
    task.report("a", 0, up=1)
    assert values(task) == [["a", 0], ["a", 0]]


def test_a_class_is_as_good_as_an_instance():
    task = batch_task(Total(), factory=Total)
    task.data("a", 5)
    task.report("a", 1)
    assert values(task)[0] == ["a", 5]


def test_tuples_are_acked_at_once_and_emits_are_anchored_to_nothing():
    task = batch_task(Total())
    task.data("a", 1)
    assert task.acked == [("up", "a", 1)]
    task.report("a", 1)
    anchors = {stream: anchors for stream, _, _, anchors in task.emitted}
    assert anchors == {"default": [], COORD_STREAM: [(COORD_STREAM, "a", 1)]}


def test_failed_exception_fails_the_id_in_silence():
    task = batch_task(Total())
    task.data("a", 13)
    task.report("a", 1)
    assert task.failed == [("up", "a", 13), (COORD_STREAM, "a", 1)]
    assert task.errors == []
    assert task.bolt.wrapped.batches == {}


def test_another_exception_is_reported_and_fails_the_id_and_no_other():
    task = batch_task(Total())
    task.data("a", 26)
    task.data("b", 1)
    task.report("a", 1)
    task.report("b", 1)
    assert task.failed == [(COORD_STREAM, "a", 1)]
    assert values(task) == [["b", 1], ["b", 1]]
    (error,) = task.errors
    assert "ZeroDivisionError in component 'part'" in error
    assert "in finish_batch of 'a': no 26" in error


def test_an_exception_in_process_is_reported_with_its_tuple():
    class Wrong(Total):
        def process(self, tup):
            raise KeyError("x")

    task = batch_task(Wrong())
    task.data("a", 1)
    assert task.failed == [("up", "a", 1)]
    assert "values ['a', 1]: 'x'" in task.errors[0]


def test_an_id_that_expires_is_forgotten():
    task = batch_task(Total())
    task.data("a", 1)
    for _ in range(3):
        task.tick()
    assert task.bolt.wrapped.batches == {}
    assert not task.bolt.tracked


def test_all_ids_of_a_task_share_its_metrics():
    class Counted(Total):
        def process(self, tup):
            self.metrics.counter("tuples").inc()

    task = batch_task(Counted())
    for id in "ab":
        task.data(id, 1)
        task.report(id, 1)
    assert task.bolt._metrics.counter("tuples").take() == 2


def test_middleware_stands_around_process():
    seen = []

    class Watching(Middleware):
        def process(self, bolt, call):
            def watched(tup):
                seen.append(tup.values)
                call(tup)

            return watched

    class Watched(Total):
        middleware = [Watching(), Retry(1)]

    task = batch_task(Watched())
    task.data("a", 1)
    task.data("a", 2)
    task.report("a", 2)
    assert seen == [["a", 1], ["a", 2]]
    assert values(task)[0] == ["a", 3]


def test_what_is_not_finished_is_closed_with_the_task():
    closed = []

    class Closing(Total):
        def close(self):
            closed.append(self.id)

    task = batch_task(Closing())
    task.data("a", 1)
    task.data("b", 1)
    task.report("b", 1)
    task.bolt.close()
    assert closed == ["a"]


class Timed(BatchBolt):
    """Emits what it has each second, and at the end."""

    output_fields = ["id", "n"]

    def initialize(self, conf, context, collector, id):
        self.sum = 0
        self.set_timer(1, self.tell, every=1)

    def process(self, tup):
        self.sum += tup[1]

    def tell(self):
        if self.sum == 13:
            raise ZeroDivisionError("no 13")
        self.emit([self.id, self.sum])

    def finish_batch(self):
        self.emit([self.id, -self.sum])


def test_each_id_has_timers_of_its_own_that_end_with_it_and_whose_emits_are_counted():
    task = batch_task(Timed())
    task.data("a", 1)
    task.data("b", 2)
    task.advance(1)
    task.data("a", 3)
    task.advance(1)
    task.report("a", 2)
    task.advance(1)
    assert values(task) == [["a", 1], ["b", 2], ["a", 4], ["b", 2], ["a", -4], ["b", 2]]
    assert sum(task.reports["a"]) == 3
    task.report("b", 1)
    assert task.timers.heap == []


def test_an_exception_in_a_timer_is_reported_and_fails_the_id_alone():
    task = batch_task(Timed())
    task.data("a", 13)
    task.data("b", 2)
    task.advance(1)
    assert len(task.errors) == 1
    assert "ZeroDivisionError in component 'part' (task" in task.errors[0]
    assert "in a timer of 'a': no 13" in task.errors[0]
    task.data("a", 1)
    assert task.failed == [("up", "a", 1)]
    task.report("b", 1)
    assert values(task) == [["b", 2], ["b", -2]]
    task.advance(1)
    assert len(task.errors) == 1


def test_an_id_that_failed_in_a_timer_fails_at_its_end_if_nothing_more_comes():
    task = batch_task(Timed())
    task.data("a", 13)
    task.advance(1)
    task.report("a", 1)
    assert task.reports == {}
    assert [what for what, *_ in task.failed] == [COORD_STREAM]
