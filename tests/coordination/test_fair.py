"""KeyedFairBolt: no id keeps the others waiting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import BasicBolt
from multilang.coordination import KeyedFairBolt
from multilang.coordination.fair import RoundRobin
from multilang.protocol import Tuple
from tests.component.harness import Starter
from tests.coordination.task import FROM_ONE, Task


def taken(turns):
    found = []
    while (tup := turns.take()) is not None:
        found.append(tuple(tup.values))
    return found


def put(turns, *values):
    for key, n in values:
        turns.put(key, Tuple(str(n), "c", "default", 1, [key, n]))


def test_keys_take_turns_in_the_order_in_which_they_came():
    turns = RoundRobin()
    put(turns, ("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("c", 6))
    assert taken(turns) == [("a", 1), ("b", 4), ("c", 5), ("a", 2), ("c", 6), ("a", 3)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_nothing_is_lost_and_each_key_keeps_its_order(values):
    turns = RoundRobin()
    put(turns, *values)
    got = taken(turns)
    for key in range(6):
        assert [v for v in got if v[0] == key] == [v for v in values if v[0] == key]
    assert turns.take() is None


class Echo(BasicBolt):
    output_fields = ["id", "n"]

    def initialize(self, conf, context):
        self.finished = []

    def process(self, tup):
        self.emit(tup.values)

    def finished_id(self, id):
        self.finished.append(id)


def test_it_is_coordinated_as_the_bolt_that_it_stands_around():
    task = Task(KeyedFairBolt(Echo()), FROM_ONE)
    task.data("a", 1)
    task.data("b", 2)
    task.report("a", 1)
    task.report("b", 1)
    assert {id: sum(counts) for id, counts in task.reports.items()} == {"a": 1, "b": 1}
    assert task.bolt.wrapped.wrapped.finished == ["a", "b"]


def test_ticks_reach_a_bolt_behind_it_that_takes_them():
    ticks = []

    class Ticking(Echo):
        def process_tick(self, tup):
            ticks.append(tup.values)

    task = Task(KeyedFairBolt(Ticking()), FROM_ONE)
    task.tick()
    assert ticks == [[15]]


PART = """
from multilang.coordination import KeyedFairBolt
class Slow(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        while tup.values == ["a", 0] and not os.path.exists("go"):
            time.sleep(0.005)
        self.emit([tup.values])
class Breaking(Bolt):
    output_fields = ["value"]
    def process(self, tup):
        raise ZeroDivisionError
Part = KeyedFairBolt(Slow())
"""


@pytest.fixture
def start(tmp_path):
    starter = Starter(tmp_path)
    yield starter
    starter.clean_up()


def test_in_a_process_of_its_own_a_long_queue_of_one_key_waits_for_the_others(start):
    child = start(PART)
    for values in (["a", 0], ["a", 1], ["a", 2], ["b", 3]):
        child.give(*values)
    child.beat()  # all of them have been taken in
    (start.folder / "go").touch()
    child.until(lambda: len(child.acked) == 4)
    order = [values[0] for values in child.emitted]
    assert [each for each in order if each[0] == "a"] == [["a", 0], ["a", 1], ["a", 2]]
    assert order.index(["b", 3]) < order.index(["a", 2])
    child.close_input()
    assert child.ended() == 0


def test_an_exception_in_its_thread_is_reported_and_ends_the_process(start):
    child = start(PART.replace("KeyedFairBolt(Slow())", "KeyedFairBolt(Breaking())"))
    child.give("a", 1)
    child.ended()
    assert "ZeroDivisionError in component 'part'" in child.errors[0]


TIMED = """
from _thread import get_ident
from multilang.coordination import KeyedFairBolt
class Timed(BasicBolt):
    output_fields = ["value"]
    def initialize(self, conf, context):
        self.inside = False
        self.set_timer(0.005, self.look, every=0.005)
    def process(self, tup):
        self.thread = get_ident()
        self.inside = True
        time.sleep(0.02)
        self.inside = False
        self.set_timer(0.01, lambda: self.emit([[tup[0], get_ident() == self.thread]]))
    def look(self):
        if self.inside:
            self.emit(["inside"])
Part = KeyedFairBolt(Timed())
"""


def test_timers_run_in_its_thread_between_two_tuples(start):
    child = start(TIMED)
    for key in "abcab":
        child.give(key, 1)
    child.until(lambda: len(child.emitted) == 5)
    assert sorted(values[0] for values in child.emitted) == [[key, True] for key in "aabbc"]
    child.close_input()
    assert child.ended() == 0


def test_a_timer_is_no_tuple_to_its_delegate_in_process():
    class Late(Echo):
        def process(self, tup):
            self.set_timer(1, lambda: self.emit(tup.values))

    task = Task(KeyedFairBolt(Late()), FROM_ONE)
    task.data("a", 1)
    task.advance(1)
    assert [values for _, values, *_ in task.emitted] == [["a", 1]]
