"""run_bolt and run_spout: what is raised, what stands around a bolt, and the time of a spout."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, BatchBolt, BatchingBolt, Bolt, FailedException, KeyedFairBolt, ReliableSpout, Spout
from multilang.component import ReportedFailedException
from multilang.coordination import ALL, COORD_STREAM, SINGLE, CoordinatedBolt
from multilang.state import StatefulBasicBolt
from multilang.testing import VirtualClock, make_tuple, run_bolt, run_spout
from multilang.topology import ShellBolt, ShellSpout
from multilang.transactional import Committer, MemoryBacking, TransactionalMap, TransactionAttempt


class Divides(BasicBolt):
    output_fields = ["n"]

    def process(self, tup):
        if tup[0] == 13:
            raise FailedException("unlucky")
        if tup[0] == 14:
            raise ReportedFailedException("unlucky, and reported")
        self.emit([1 // tup[0]])


class DividesAll(BatchingBolt):
    output_fields = ["n"]

    def process_batch(self, key, tups):
        self.emit([1 // sum(tup[0] for tup in tups)])


class DividesWithState(StatefulBasicBolt):
    def process(self, tup):
        1 // tup[0]


@pytest.mark.parametrize("bolt", [Divides, DividesAll, DividesWithState])
def test_an_exception_that_the_test_did_not_ask_for_is_raised(bolt):
    with pytest.raises(ZeroDivisionError) as caught:
        run_bolt(bolt, [[0]]).tick()
    assert caught.traceback[-1].name in ("process", "process_batch")  # where it was raised, not where it was stored


@pytest.mark.parametrize("bolt", [Divides, DividesAll, DividesWithState])
def test_one_that_it_asked_for_is_reported_and_fails_its_tuple_as_on_a_cluster(bolt):
    run = run_bolt(bolt, [[0]], expect=ZeroDivisionError)
    run.tick()
    assert [tup.values for tup in run.failed] == [[0]]
    (error,) = run.errors
    assert "ZeroDivisionError in component 'bolt'" in error
    with pytest.raises(ZeroDivisionError):
        run_bolt(bolt, [[0]], expect=(ValueError, KeyError)).tick()


class Late(Bolt):
    """Reports an exception of each tuple when the next one comes."""

    held = None

    def process(self, tup):
        if self.held is not None:
            self.ack(self.held)
        self.held = tup


def test_an_exception_that_it_asked_for_and_that_never_comes_is_reported():
    due = "expect=ZeroDivisionError: no such exception came from {}; leave expect= out"
    with pytest.raises(AssertionError, match=due.format("Divides")):
        run_bolt(Divides, [[1], [13]], expect=ZeroDivisionError)
    with pytest.raises(
        AssertionError, match="expect=ValueError or KeyError: no such exception came from DividesWithState"
    ):
        run_bolt(DividesWithState, [[1]], expect=(ValueError, KeyError))
    run_bolt(Divides, [[0], [1]], expect=(ValueError, ZeroDivisionError))
    run_bolt(Divides, [[13]], expect=FailedException)  # which is not reported
    run_bolt(Divides, [[14]], expect=ReportedFailedException)
    with pytest.raises(AssertionError, match="no such exception came from Divides"):
        run_bolt(Divides, [[13]], expect=ReportedFailedException)


def test_a_failed_exception_is_asked_for_by_the_bolt_itself():
    run = run_bolt(Divides, [[13], [14], [1]])
    assert ([tup[0] for tup in run.failed], run.values) == ([13, 14], [[1]])
    assert len(run.errors) == 1


def test_the_run_is_whole_after_an_exception():
    run = run_bolt(Divides, [[1]])
    with pytest.raises(ZeroDivisionError):
        run.process([0], [1])
    assert ([tup[0] for tup in run.failed], [tup[0] for tup in run.acked]) == ([0], [1])
    run.process([1])
    assert run.values == [[1], [1]]


class Total(BatchBolt):
    output_fields = ["id", "total"]

    def initialize(self, conf, context, collector, id):
        self.total = 0

    def process(self, tup):
        self.total += 1 // tup[1] * tup[1]

    def finish_batch(self):
        if not self.total:
            raise LookupError("nothing came")
        self.emit([self.id, self.total])


@pytest.mark.parametrize("bolt", [Total, Total(), KeyedFairBolt(Total)])
def test_a_batch_bolt_is_tested_as_it_runs(bolt):
    run = run_bolt(bolt, [["a", 1], ["b", 1], ["a", 1]], fields=["id", "n"])
    assert run.values == []
    run.finish("b", "a")
    assert run.values == [["b", 1], ["a", 2]]
    assert [report.values for report in run.reports] == [["b", 1], ["a", 1]]
    assert run.emitted_on(COORD_STREAM) == run.reports
    assert [tup[0] for tup in run.acked] == ["a", "b", "a"]
    with pytest.raises(LookupError, match="nothing came"):
        run.finish("c")
    with pytest.raises(ZeroDivisionError):
        run.process(["d", 0])
    assert [tup[0] for tup in run.failed] == ["d"]


class Recording(Bolt):
    output_fields = ["id", "n"]
    finished: list[object]

    def initialize(self, conf, context):
        self.finished = []

    def process(self, tup):
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)

    def finished_id(self, id):
        self.finished.append(id)


def test_a_coordinated_bolt_is_tested_as_it_runs():
    bolt = CoordinatedBolt(Recording(), {"up": ALL, "other": SINGLE}, ("source", "ids"))
    run = run_bolt(bolt, [make_tuple({"id": "a", "n": 1}, component="up")], sink_tasks=2)
    assert run.bolt is bolt.wrapped
    run.process(make_tuple(["a", 1], ["id", "count"], "up", COORD_STREAM))
    run.process(make_tuple(["a", 0], ["id", "count"], "other", COORD_STREAM))
    assert run.bolt.finished == []
    run.process(make_tuple(["a"], ["id"], "source", "ids"))
    assert run.bolt.finished == ["a"]
    assert sorted(report["count"] for report in run.reports) == [0, 1]
    run.process(make_tuple({"id": "b", "n": 1}, component="up"))
    run.finish("b")
    assert run.bolt.finished == ["a", "b"]
    assert run.unfinished == []


class Sum(Total, Committer):
    counts: TransactionalMap

    def __init__(self, counts):
        self.counts = counts

    def finish_batch(self):
        self.emit([self.id, self.counts.update(self.id, {"all": self.total})["all"]])


@pytest.mark.parametrize("marked", [True, False])
def test_transactional_bolts_are_tested_as_they_run(marked):
    counts = TransactionalMap(MemoryBacking())
    first, second = TransactionAttempt(1, 7), TransactionAttempt(2, 8)
    bolt = Sum(counts) if marked else type("Plain", (BatchBolt,), dict(vars(Total)) | dict(vars(Sum)))(counts)
    run = run_bolt(bolt, [[first, 1], [first, 1]], commits=not marked)
    run.finish(first)
    run.process([second, 1])
    assert counts.get("all") == 2
    run.finish(second)
    assert counts.get("all") == 3
    assert run.values == [[first, 2], [second, 3]]
    assert type(run.emitted[0][0]) is TransactionAttempt


def test_what_is_no_attempt_is_refused_in_a_transactional_bolt():
    class Mixes(BatchBolt):
        output_fields = ["id", "n"]

        def process(self, tup):
            self.emit([TransactionAttempt(9, 9), 1])

    with pytest.raises(ValueError, match="but no tuple of that attempt came to this task"):
        run_bolt(Mixes, [[TransactionAttempt(1, 1), 1]])


def test_finish_is_for_who_is_told_of_ends():
    with pytest.raises(TypeError, match=r"Divides does not learn when an id ends: finish\(\) is for batch bolts"):
        run_bolt(Divides, [[1]]).finish("a")
    with pytest.raises(TypeError, match="a committer is a BatchBolt"):
        run_bolt(Divides, [[1]], commits=True)


def test_tasks_of_nobody_are_an_error():
    class Asks(BasicBolt):
        def process(self, tup):
            self.context.tasks("nope")

    known = "which this topology does not have; write one of 'bolt', 'source'"
    with pytest.raises(LookupError, match=f"tasks of 'nope', {known}"):
        run_bolt(Asks, [[1]])


class Retries(ReliableSpout):
    output_fields = ["n"]
    replay_delay_secs = 10.0
    left = 1

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.emit([1])


@pytest.mark.parametrize("function", [False, True])
def test_a_spout_s_clock_is_the_test_s(function):
    clock = VirtualClock()
    run = run_spout(Retries, 1, clock=clock.now if function else clock)
    run.fail(1)
    assert run.next() == []
    clock.sleep(9.9)
    assert run.next() == []
    clock.sleep(0.2)
    assert [emitted.values for emitted in run.next()] == [[1]]


def test_exceptions_of_a_spout_are_raised():
    class Breaks(Spout):
        output_fields = ["n"]

        def next_tuple(self):
            raise OSError("the source is lost")

    with pytest.raises(OSError, match="the source is lost"):
        run_spout(Breaks, 1)


@pytest.mark.parametrize("bolt", [DividesAll, Late, Total])
def test_one_that_may_come_yet_is_asked_for_at_the_end(bolt):
    run = run_bolt(bolt, [["a", 1]] if bolt is Total else [[1]], expect=ZeroDivisionError)
    if bolt is Total:
        run.finish("a")
    elif bolt is DividesAll:
        run.tick()
    with pytest.raises(AssertionError, match=f"no such exception came from {bolt.__name__}"):
        run.close()
    late = run_bolt(Divides, expect=ZeroDivisionError)
    late.process([0])
    late.close()
    with pytest.raises(AssertionError, match="no such exception came from Retries"):
        run_spout(Retries, 1, expect=OSError).close()


@pytest.mark.parametrize("given", [Spout, Spout(), Retries])
def test_a_spout_is_no_bolt_and_the_right_function_is_named(given):
    name = "Retries" if given is Retries else "Spout"
    with pytest.raises(TypeError, match=rf"^run_bolt\({name}\): {name} is a spout; use run_spout$"):
        run_bolt(given, [[1]])


@pytest.mark.parametrize("given", [Divides, Divides(), Total, KeyedFairBolt(Total)])
def test_a_bolt_is_no_spout_and_the_right_function_is_named(given):
    name = (given if isinstance(given, type) else type(given)).__name__
    with pytest.raises(TypeError, match=rf"^run_spout\({name}\): {name} is a bolt; use run_bolt$"):
        run_spout(given, 1)


@pytest.mark.parametrize("function", [run_bolt, run_spout])
def test_what_is_no_component_or_a_command_is_said_to_be(function):
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(3\): that is no (bolt|spout); give a subclass"):
        function(3)
    with pytest.raises(TypeError, match=r"Shell(Bolt|Spout) is a command, which runs in a process of its own"):
        function((ShellBolt if function is run_bolt else ShellSpout)(["program"]))


class Flushes(Bolt):
    output_fields = ["n", "at"]

    def initialize(self, conf, context):
        self.held = []
        self.set_timer(1, self.flush, every=1)

    def process(self, tup):
        self.held.append(tup)

    def flush(self):
        for tup in self.held:
            self.emit([tup[0], self.clock()], anchors=[tup])
            self.ack(tup)
        self.held.clear()


def test_the_test_lets_time_pass_for_a_bolt():
    run = run_bolt(Flushes, [[1], [2]])
    run.advance(0.75)
    assert (run.values, len(run.unfinished)) == ([], 2)
    run.advance(0.75)
    assert run.values == [[1, 1.0], [2, 1.0]]
    assert [list(each.anchors) for each in run.emitted] == [[each] for each in run.acked]
    run.process([3])
    run.advance(10)
    assert run.values[2:] == [[3, 2.0]]
    assert run.clock.now() == 11.5


def test_what_a_timer_raises_is_raised_where_time_passes():
    class Breaks(BasicBolt):
        def process(self, tup):
            self.set_timer(1, self.breaks)

        def breaks(self):
            raise OSError("gone")

    run = run_bolt(Breaks, [[1]])
    with pytest.raises(OSError, match="gone"):
        run.advance(1)
    run = run_bolt(Breaks, expect=OSError)
    run.process([1])
    run.advance(1)
    assert "OSError in component 'bolt' (task 2) in a timer: gone" in run.errors[0]


class Polls(Spout):
    output_fields = ["at"]

    def initialize(self, conf, context):
        self.start = self.clock()
        self.set_timer(30, lambda: self.emit([round(self.clock() - self.start)]), every=30)

    def next_tuple(self):
        pass


@pytest.mark.parametrize("clock", [None, VirtualClock()])
def test_the_test_lets_time_pass_for_a_spout(clock):
    run = run_spout(Polls, clock=clock)
    assert [emitted["at"] for emitted in run.advance(60)] == [30, 60]
    run.deactivate()
    assert run.advance(60) == []
    run.activate()
    assert [emitted["at"] for emitted in run.advance(0)] == [120]


def test_a_clock_that_is_a_function_is_moved_by_the_test_alone():
    with pytest.raises(TypeError, match="the clock that run_spout got is a function; give it a VirtualClock"):
        run_spout(Polls, clock=lambda: 0.0).advance(1)
