from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from multilang.engine.clock import Timers, VirtualClock
from multilang.engine.rotating import RotatingMap


class RotatingMapMachine(RuleBasedStateMachine):
    """Against a dict of key -> (value, rotations survived)."""

    def __init__(self):
        super().__init__()
        self.map = RotatingMap(3)
        self.model: dict[int, tuple[int, int]] = {}

    @rule(key=st.integers(0, 5), value=st.integers())
    def put(self, key, value):
        self.map.put(key, value)
        self.model[key] = (value, 0)

    @rule(key=st.integers(0, 5))
    def remove(self, key):
        assert self.map.remove(key) == self.model.pop(key, (None,))[0]

    @precondition(lambda self: self.model)
    @rule()
    def rotate(self):
        expired = self.map.rotate()
        aged = {key: (value, age + 1) for key, (value, age) in self.model.items()}
        assert expired == {key: value for key, (value, age) in aged.items() if age == 3}
        self.model = {key: entry for key, entry in aged.items() if entry[1] < 3}

    @invariant()
    def holds_the_same(self):
        assert len(self.map) == len(self.model)
        for key in range(6):
            assert (key in self.map) == (key in self.model)
            assert self.map.get(key) == self.model.get(key, (None,))[0]


RotatingMapMachine.TestCase.settings = settings(max_examples=50)
TestRotatingMap = RotatingMapMachine.TestCase


def test_two_buckets_at_the_least():
    with pytest.raises(ValueError, match="at least 2"):
        RotatingMap(1)


def test_an_entry_expires_between_one_and_two_periods_after_it_was_put():
    clock = VirtualClock()
    timers = Timers(clock)
    pending: RotatingMap[float] = RotatingMap(2)
    ages = []
    timers.every(10, lambda: ages.extend(clock.now() - at for at in pending.rotate().values()))
    for i in range(1000):
        clock.sleep(0.37)
        timers.run_due(clock.now())
        pending.put(i, clock.now())
    assert len(ages) > 900
    assert 10 <= min(ages) < 11
    assert 19 < max(ages) <= 20.4


def test_timers_run_in_the_order_of_their_instants_and_a_late_one_once():
    clock = VirtualClock()
    timers = Timers(clock)
    calls = []
    timers.every(1, lambda: calls.append("each second"))
    timers.after(0.5, lambda: calls.append("once"))
    assert timers.next_due == 0.5
    clock.sleep(3.2)
    timers.run_due(clock.now())
    assert calls == ["once", "each second"]
    assert timers.next_due == 4
