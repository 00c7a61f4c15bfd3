"""Timers that a component sets: when they run, in which order, and what the wire sees of them."""

from __future__ import annotations

import math
import pickle
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.component import Bolt, ConfigError
from multilang.component.clock import VIRTUAL_EPOCH, MovableClock, TaskClock, virtual_clock
from multilang.component.collector import Collector
from multilang.component.timers import NEVER, Scope, TaskTimers
from multilang.engine.clock import VirtualClock
from multilang.protocol.messages import Ack, Emit, Sync
from tests.component.harness import context

# ---- the timers of a task, without an engine ----


class Heard(Collector):
    def log(self, message, level=2): ...
    def report_error(self, message): ...
    def report_metric(self, name, params): ...


def timers_on(clock, **more):
    return TaskTimers(Scope(), virtual_clock(clock.now), **more)


def set_on(timers):
    part = Bolt()
    part._collector = Heard(timers._scope)
    return part.set_timer


DELAYS = st.sampled_from([0, 0.25, 0.5, 1, 1.5, 3])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), DELAYS, st.one_of(st.none(), st.sampled_from([0.25, 0.5, 2]))),
        st.tuples(st.just("cancel"), st.integers(0, 30), st.none()),
        st.tuples(st.just("pass"), DELAYS, st.none()),
    ),
    max_size=80,
)


@given(STEPS)
def test_timers_run_as_a_plain_list_of_them_would(steps):
    clock = VirtualClock()
    timers = timers_on(clock)
    ran, expected = [], []
    handles, plain = [], []
    for what, secs, every in steps:
        if what == "set":
            number = len(handles)
            handles.append(set_on(timers)(secs, lambda number=number: ran.append(number), every=every))
            plain.append([clock.now() + secs, len(plain), number, every])
        elif what == "cancel" and secs < len(handles):
            handles[secs].cancel()
            plain = [each for each in plain if each[2] != secs]
        elif what == "pass":
            clock.sleep(secs)
            timers.run_due()
            for entry in sorted(each for each in plain if each[0] <= clock.now()):
                expected.append(entry[2])
                if entry[3] is None:
                    plain.remove(entry)
                else:
                    entry[0] += entry[3] * ((clock.now() - entry[0]) // entry[3] + 1)
                    entry[1] = entry[1] + 1000  # as if it had been set again
        # two that are due at the same instant may have been set again in either order: compare by instant
        assert timers.next_due == min((each[0] for each in plain), default=NEVER)
    assert sorted(ran) == sorted(expected)
    assert {number for number, each in enumerate(handles) if each.pending} == {each[2] for each in plain}


def test_timers_of_one_instant_run_in_the_order_in_which_they_were_set():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []
    for number in range(5):
        set_on(timers)(1, lambda number=number: ran.append(number))
    clock.sleep(1)
    timers.run_due()
    assert ran == [0, 1, 2, 3, 4]


def test_a_timer_that_a_callback_sets_waits_for_another_turn():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []

    def again():
        ran.append(clock.now())
        set_on(timers)(0, again)

    again()
    for turn in range(1, 4):
        timers.run_due()
        assert len(ran) == 1 + turn


def test_a_repeated_timer_keeps_to_its_grid_and_leaves_out_what_it_missed():
    clock = VirtualClock()
    timers = timers_on(clock)
    at = []
    handle = set_on(timers)(0.5, lambda: at.append(clock.now()), every=1)
    for secs in (0.5, 0.75, 4.0, 0.25):
        clock.sleep(secs)
        timers.run_due()
    assert at == [0.5, 5.25, 5.5]
    assert handle.due == 6.5


def test_a_callback_may_cancel_its_own_timer_and_another_that_is_due():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []

    def first():
        ran.append("first")
        one.cancel()
        two.cancel()

    one = set_on(timers)(1, first, every=1)
    two = set_on(timers)(1, lambda: ran.append("second"))
    clock.sleep(10)
    timers.run_due()
    assert ran == ["first"]
    assert not one.pending
    assert not two.pending
    assert timers.next_due == NEVER


def test_a_hundred_thousand_cancelled_timers_take_no_room():
    timers = timers_on(VirtualClock())
    kept = [set_on(timers)(60 + number, print) for number in range(10)]
    for _ in range(100_000):
        set_on(timers)(1, print).cancel()
    assert len(timers.heap) < 200
    assert [each.pending for each in kept] == [True] * 10
    assert timers.next_due == 60


def test_ten_thousand_timers_run_in_order():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []
    for number in range(10_000):
        due = (number * 7919) % 10_007
        set_on(timers)(due / 1000, lambda due=due: ran.append(due))
    clock.sleep(11)
    timers.run_due()
    assert len(ran) == 10_000
    assert ran == sorted(ran)


def test_timers_that_are_held_run_when_they_are_released():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []
    set_on(timers)(1, lambda: ran.append(clock.now()))
    timers.hold()
    clock.sleep(5)
    timers.run_due()
    assert (ran, timers.next_due) == ([], NEVER)
    timers.release()
    assert timers.next_due == 1
    timers.run_due()
    assert ran == [5]


def test_an_engine_is_woken_for_the_earliest_timer_and_not_more_often_than_that():
    clock = VirtualClock()
    woken = []
    timers = timers_on(clock, wake=woken.append)
    set_on(timers)(5, print)
    early = set_on(timers)(3, lambda: None)
    set_on(timers)(4, lambda: None)
    assert woken == [5, 3]
    assert not timers.take_wakeup(5)  # it was replaced by the call for 3
    clock.move_to(3)
    assert timers.take_wakeup(3)
    timers.run_due()
    assert woken == [5, 3, 4]
    assert not early.pending


def test_an_exception_leaves_the_other_timers_in_place():
    clock = VirtualClock()
    timers = timers_on(clock)
    ran = []

    def breaks():
        raise OSError("gone")

    set_on(timers)(1, breaks)
    set_on(timers)(1, lambda: ran.append(1))
    clock.sleep(1)
    with pytest.raises(OSError, match="gone"):
        timers.run_due()
    timers.run_due()
    assert ran == [1]


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, "1", None, True])
def test_a_delay_that_is_no_time_is_refused(delay):
    with pytest.raises(ConfigError, match="the delay is a number of seconds from 0"):
        set_on(timers_on(VirtualClock()))(delay, print)


@pytest.mark.parametrize("every", [0, -1, math.nan, math.inf, "1", True])
def test_a_period_that_is_no_time_is_refused(every):
    with pytest.raises(ConfigError, match="every is a number of seconds above 0, or None for once"):
        set_on(timers_on(VirtualClock()))(1, print, every=every)


def test_what_can_not_be_called_is_refused():
    with pytest.raises(ConfigError, match=r"set_timer\(1, 'flush'\): give a function to call, such as self.flush"):
        set_on(timers_on(VirtualClock()))(1, "flush")


def test_there_are_no_timers_before_the_start():
    with pytest.raises(ConfigError, match=r"Bolt.set_timer is there from initialize\(\) on, not in __init__"):
        Bolt().set_timer(1, print)


def test_a_timer_that_is_pickled_is_over():
    handle = set_on(timers_on(VirtualClock()))(1, print)
    copy = pickle.loads(pickle.dumps({"timer": handle}))["timer"]
    assert (handle.pending, copy.pending) == (True, False)
    copy.cancel()
    assert handle.pending


def test_a_clock_is_called_or_asked():
    clock = VirtualClock()
    seen = virtual_clock(clock.now)
    clock.sleep(2.5)
    assert (seen(), seen.monotonic(), seen.time()) == (2.5, 2.5, VIRTUAL_EPOCH + 2.5)
    before, now = time.time(), Bolt.clock.time()
    assert before <= now <= time.time()
    assert isinstance(Bolt().clock, TaskClock)


def test_a_movable_clock_goes_on_from_where_it_was_moved():
    clock = MovableClock()
    start = clock()
    clock.move_to(start + 100)
    assert 100 <= clock() - start < 160
    clock.move_to(start)
    assert clock() - start >= 100


# ---- on the wire ----

FLUSHES = """
class Part(Bolt):
    output_fields = ["value"]

    def initialize(self, conf, context):
        self.kept = []

    def process(self, tup):
        if not self.kept:
            self.set_timer(0.15, self.flush)
        self.kept.append(tup)

    def flush(self):
        for tup in self.kept:
            self.emit([tup[0]], anchors=[tup])
            self.ack(tup)
        self.kept.clear()
"""


def test_a_bolt_that_waits_for_input_wakes_for_its_timer(start):
    child = start(FLUSHES).started()
    given = time.monotonic()
    one, two = child.give("a"), child.give("b")
    child.until(lambda: len(child.acked) == 2)
    assert child.emitted == [["a"], ["b"]]
    assert child.acked == [one, two]
    assert [list(emit.anchors) for emit in child.all(Emit)] == [[one], [two]]
    assert child.heard[-1] - given >= 0.15


def test_timers_below_a_second_keep_their_order_and_their_distance(start):
    child = start(
        """
        class Part(Bolt):
            output_fields = ["name", "late"]

            def initialize(self, conf, context):
                begin = self.clock()
                for secs in (0.3, 0.1, 0.2):
                    self.set_timer(secs, lambda secs=secs: self.emit([str(secs), self.clock() - begin - secs]))
        """,
        ctx=context(outputs={"default": ["name", "late"]}),
    )
    child.until(lambda: len(child.emitted) == 3)
    assert [name for name, _ in child.emitted] == ["0.1", "0.2", "0.3"]
    assert all(late >= 0 for _, late in child.emitted)


def test_a_repeated_timer_goes_on_between_tuples_and_heartbeats_and_ends_when_it_is_cancelled(start):
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]

            def initialize(self, conf, context):
                self.beat = self.set_timer(0.02, lambda: self.emit(["beat"]), every=0.02)

            def process(self, tup):
                if tup[0] == "stop":
                    self.beat.cancel()
                self.emit([tup[0]])
        """
    )
    for number in range(5):
        before = child.emitted.count(["beat"])
        child.give(str(number))
        child.beat()
        child.until(lambda before=before: child.emitted.count(["beat"]) >= before + 2)
    child.give("stop")
    child.until(lambda: ["stop"] in child.emitted)
    child.give("last")
    child.until(lambda: ["last"] in child.emitted)
    assert child.emitted[-2:] == [["stop"], ["last"]]
    assert len(child.acked) == 7


def test_timers_run_between_tuples_that_came_together_and_never_in_one(start):
    child = start(
        """
        class Part(Bolt):
            output_fields = ["value"]

            def initialize(self, conf, context):
                self.inside = False
                self.set_timer(0.01, self.look, every=0.01)

            def process(self, tup):
                self.inside = True
                time.sleep(0.03)
                self.emit([tup[0]])
                self.inside = False
                self.ack(tup)

            def look(self):
                self.emit(["inside" if self.inside else "between"])
        """
    )
    numbers = [str(number) for number in range(10)]
    # one write: all of them come with one read
    child.say(lambda parent: [parent.tuple(f"t{each}", "source", "default", 6, [each]) for each in numbers])
    child.until(lambda: len(child.acked) == 10)
    assert ["inside"] not in child.emitted
    places = [child.emitted.index([each]) for each in numbers]
    assert all(later - earlier >= 2 for earlier, later in pairwise(places))


def test_an_exception_in_a_bolt_s_timer_ends_the_process(start):
    child = start(
        """
        class Part(Bolt):
            def process(self, tup):
                self.set_timer(0, self.breaks)

            def breaks(self):
                raise OSError("the disk is full")
        """
    )
    child.give("a")
    child.ended(1)
    assert "OSError in component 'part' (task 4): the disk is full" in child.errors[0]


def test_an_exception_in_a_basic_bolt_s_timer_is_reported_and_the_process_goes_on(start):
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]

            def initialize(self, conf, context):
                self.set_timer(0, self.breaks)

            def breaks(self):
                raise OSError("the disk is full")

            def process(self, tup):
                self.emit([tup[0]])
        """
    )
    child.until(lambda: child.errors)
    assert "OSError in component 'part' (task 4) in a timer: the disk is full" in child.errors[0]
    child.give("a")
    child.until(lambda: child.acked)


def test_what_a_basic_bolt_emits_in_a_timer_is_anchored_to_nothing(start):
    child = start(
        """
        class Part(BasicBolt):
            output_fields = ["value"]

            def process(self, tup):
                self.emit(["in process"])
                self.set_timer(0, lambda: self.emit(["in a timer"]))
        """
    )
    id = child.give("a")
    child.until(lambda: len(child.emitted) == 2)
    assert [list(emit.anchors) for emit in child.all(Emit)] == [[id], []]


def test_a_thread_of_the_component_can_not_set_a_timer(start):
    child = start(
        """
        import threading

        class Part(BasicBolt):
            output_fields = ["value"]

            def process(self, tup):
                def run():
                    try:
                        self.set_timer(1, print)
                    except Exception as error:
                        self.emit([str(error)], anchors=[])
                thread = threading.Thread(target=run)
                thread.start()
                thread.join()
        """
    )
    child.give("a")
    child.until(lambda: child.emitted)
    assert "sets a timer in a thread of its own" in child.emitted[0][0]


def test_no_timer_runs_once_the_component_is_closed(start):
    child = start(
        """
        class Part(BasicBolt):
            def initialize(self, conf, context):
                self.timer = self.set_timer(0.01, lambda: self.log("timer"), every=0.01)

            def close(self):
                self.log(f"closed, pending {self.timer.pending}")
        """
    )
    child.until(lambda: "timer" in child.logged())
    child.close_input()
    child.ended(0)
    assert child.logged()[-1] == "closed, pending False"


def test_a_bolt_without_timers_says_what_it_always_said_and_one_with_timers_says_no_more(start):
    said = []
    for line in ("pass", "self.set_timer(3600, print)"):
        child = start(
            f"""
            class Part(BasicBolt):
                output_fields = ["value"]

                def process(self, tup):
                    {line}
                    self.emit([tup[0]])
            """
        )
        child.started()
        child.give("a")
        child.until(lambda child=child: child.acked)
        said.append([message for message in child.messages if isinstance(message, Emit | Ack)])
        assert all(sync.timers is None and sync.timer_secs is None for sync in child.all(Sync))
    assert list(map(repr, said[0])) == list(map(repr, said[1]))


SPOUT = """
class Part(Spout):
    output_fields = ["value"]

    def initialize(self, conf, context):
        self.set_timer(0, lambda: self.emit(["timer"]))

    def activate(self):
        self.log("activated")

    def next_tuple(self):
        self.emit(["next"])

    def ack(self, tup_id):
        self.emit(["ack"])
"""


def values(messages):
    return [message.values[0] for message in messages if isinstance(message, Emit)]


def test_a_spout_s_timer_waits_for_the_next_command(start):
    child = start(SPOUT, spout=True).started()
    child.ask("activate")
    assert child.emitted == []
    assert values(child.ask("next")) == ["timer", "next"]


def test_a_spout_s_timer_runs_at_an_ack_too(start):
    child = start(SPOUT, spout=True).started()
    child.ask("activate")
    assert values(child.ask("ack", "x")) == ["timer", "ack"]


def test_the_timers_of_a_spout_rest_while_it_is_deactivated(start):
    child = start(SPOUT, spout=True).started()
    child.ask("activate")
    child.ask("deactivate")
    assert values(child.ask("ack", "x")) == ["ack"]
    assert values(child.ask("activate")) == []
    assert values(child.ask("next")) == ["timer", "next"]


def test_a_spout_that_storm_before_1_0_never_activates_has_timers(start):
    child = start(SPOUT, spout=True).started()
    assert values(child.ask("next")) == ["timer", "next"]


def test_an_idle_spout_sleeps_no_longer_than_until_its_timer(start):
    child = start(
        """
        class Part(Spout):
            output_fields = ["value"]

            def initialize(self, conf, context):
                self.set_timer(0.0001, lambda: self.emit(["timer"]), every=0.0001)

            def next_tuple(self):
                pass
        """,
        spout=True,
    )
    child.ask("activate")
    answers = [values(child.ask("next")) for _ in range(20)]
    # A next that comes before the timer is due sleeps until then, and the following one finds it due.
    assert all(["timer"] in pair for pair in pairwise(answers))


def test_only_our_own_parent_hears_of_a_spout_s_timer(start):
    child = start(SPOUT.replace("timer(0,", "timer(30,"), {"multilang.parent": "local"}, spout=True)
    child.ask("activate")
    assert 0 < child.all(Sync)[-1].timer_secs <= 30
    child = start(SPOUT.replace("timer(0,", "timer(30,"), spout=True)
    child.ask("activate")
    assert child.all(Sync)[-1].timer_secs is None
