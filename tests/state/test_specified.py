"""Sentences of Storm's page on state management that no other test shows."""

from __future__ import annotations

from itertools import pairwise

import pytest

from multilang.engine.clock import VirtualClock
from multilang.settings import AT_LEAST_ONCE
from multilang.state.names import SPOUT, STATE_KEY, namespace
from multilang.state.providers import provider_of
from multilang.state.settings import interval_secs
from multilang.state.spout import CheckpointSpout
from multilang.testing import run_spout
from tests.state.conftest import opened


def started(conf):
    return run_spout(CheckpointSpout(["sink"], AT_LEAST_ONCE), conf=conf, clock=VirtualClock())


def asked(run):
    """Return what the checkpoint spout asks of all tasks next, or nothing: [(transaction, action)]."""
    return [(each.values[0], each.values[1]) for each in run.next()]


def kept(conf):
    """Return the stored state of the checkpoints."""
    found = provider_of(conf)
    state = found.new_state(namespace(SPOUT, 0))
    value = state.get(STATE_KEY)
    state.close()
    found.close()
    return value


def test_a_checkpoint_begins_each_second_unless_told_otherwise(conf):
    assert interval_secs({}) == 1.0
    assert interval_secs({"topology.state.checkpoint.interval.ms": 2500}) == 2.5
    clock = VirtualClock()
    conf = {key: value for key, value in conf.items() if key != "topology.state.checkpoint.interval.ms"}
    run = run_spout(CheckpointSpout(["sink"], AT_LEAST_ONCE), conf=conf, clock=clock)
    begun = []
    while len(begun) < 4:
        for txid, action in asked(run):
            begun += [clock.now()] if action == "PREPARE" else []
            run.ack(txid)
        clock.sleep(0.125)
    assert [later - earlier for earlier, later in pairwise(begun)] == [1.0, 1.0, 1.0]


def test_the_checkpoint_spout_keeps_what_is_committed(durable):
    run = started(durable)
    assert asked(run) == [(-1, "INITSTATE")]
    run.ack(-1)
    assert asked(run) == [(0, "PREPARE")]
    assert kept(durable) == [0, "PREPARING"]
    assert asked(run) == []  # all bolts have to ack first
    run.ack(0)
    assert kept(durable) == [0, "COMMITTING"]
    assert asked(run) == [(0, "COMMIT")]
    run.ack(0)
    assert kept(durable) == [0, "COMMITTED"]
    run.close()


@pytest.mark.parametrize(
    ("state", "recovery", "then"),
    [
        ("PREPARING", [(4, "ROLLBACK"), (3, "INITSTATE")], [3, "COMMITTED"]),
        ("COMMITTING", [(4, "COMMIT"), (4, "INITSTATE")], [4, "COMMITTED"]),
        ("COMMITTED", [(4, "INITSTATE")], [4, "COMMITTED"]),
    ],
)
def test_a_recovery_goes_on_from_what_is_stored(durable, state, recovery, then):
    found = provider_of(durable)
    before = opened(found, namespace(SPOUT, 0))
    before.put(STATE_KEY, [4, state])
    before.commit()
    before.close()
    found.close()
    run = started(durable)
    for step in recovery:
        assert asked(run) == [step]
        run.ack(step[0])
    assert kept(durable) == then
    assert asked(run) == [(then[0] + 1, "PREPARE")]
    run.close()
