"""A run waits, in every mode, for all that the spouts emit and all that comes of it, and not for what only ticks
bring.
"""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster, NotDrainedError
from tests.local import topologies
from tests.patience import patient
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS


def ticked(run):
    """Return whether the bolts emitted at their ticks, with nothing else left to be done."""
    return run.counters["numbers"].acked == 100 and run.counters["quickbatches"].emitted >= 2


@EVERY_MODE
@pytest.mark.parametrize(
    "topology", [topologies.says, topologies.says_on, topologies.says_around], ids=lambda each: each.name
)
def test_a_bolt_that_speaks_at_its_ticks_does_not_keep_a_run_from_its_end(mode, topology):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(topology)
        run.wait(ticked, timeout=patient(60))  # from here on there is always a tuple in the batch
        run.wait(timeout=patient(30))
        assert run.waiting_for == []


@EVERY_MODE
def test_what_is_held_until_a_later_tick_is_waited_for_and_so_is_what_comes_of_it(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(topologies.keeps, capture=["keeps", "quickbatches"])
        run.wait(timeout=patient(60))
        assert sorted(tup["n"] for tup in run.captured("keeps")) == list(range(50))
        assert sum(tup["size"] for tup in run.captured("quickbatches")) == 50


@EVERY_MODE
def test_a_tuple_that_a_bolt_with_ticks_forgot_is_not_waited_for_longer_than_it_would_take_to_time_out(mode):
    conf = {"topology.message.timeout.secs": 0.3}
    with LocalCluster(mode, seed=1, conf=conf) as cluster:
        run = cluster.submit(topologies.forgets_all)
        run.wait(timeout=patient(60))
        assert run.counters["forgetsall"].unfinished >= 50  # and a tick, perhaps


@MOSTLY_IN_PROCESS
@pytest.mark.parametrize("topology", [topologies.forgets_all, topologies.forgets_plain], ids=lambda each: each.name)
def test_without_timeouts_it_is_waited_for_and_named(mode, topology):
    conf = {"topology.enable.message.timeouts": False}
    with LocalCluster(mode, seed=1, conf=conf) as cluster:
        run = cluster.submit(topology)
        run.wait(lambda run: any(each.unfinished >= 50 for each in run.counters.values()), timeout=60)
        with pytest.raises(NotDrainedError, match=r"bolt 'forgets\w+' \(task 2\): 50 tuples neither acked nor failed"):
            run.wait(timeout=1)


@MOSTLY_IN_PROCESS
def test_the_bolt_that_keeps_the_tuples_of_a_spout_is_named_beside_it(mode):
    conf = {"topology.enable.message.timeouts": False, "test.numbers": 3}
    with LocalCluster(mode, seed=1, conf=conf) as cluster:
        run = cluster.submit(topologies.forgets_once)
        run.wait(lambda run: run.counters["forgetsonce"].unfinished == 3, timeout=patient(60))
        with pytest.raises(NotDrainedError) as stuck:
            run.wait(timeout=0.5)
    assert stuck.value.waiting_for == [
        "spout 'numbers' (task 3): 3 tuples neither acked nor failed",
        "bolt 'forgetsonce' (task 2): 3 tuples neither acked nor failed",
    ]


@EVERY_MODE
def test_a_wait_for_something_else_says_that_nothing_is_left_to_be_done(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(topologies.passing)
        run.wait(timeout=patient(60))
        with pytest.raises(NotDrainedError, match="nothing is in flight, no spout has more, and no bolt holds a tuple"):
            run.wait(lambda run: False, timeout=0.1)
