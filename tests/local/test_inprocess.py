"""The particular behaviour of running in this process."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc

import pytest

from multilang.component import BasicBolt, Bolt, Spout
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.local import LocalCluster, LocalClusterError, TaskStartError
from multilang.topology import TopologyBuilder
from tests.local import topologies
from tests.patience import patient
from tests.soak import SOAK


def built(spout, *bolts):
    builder = TopologyBuilder()
    builder.set_spout("spout", spout)
    source = "spout"
    for i, bolt in enumerate(bolts):
        builder.set_bolt(f"bolt{i}", bolt).shuffle_grouping(source)
        source = f"bolt{i}"
    return builder.build("here")


class Keeps(Bolt):
    """Acks nothing: that is done outside of the loop."""

    def initialize(self, conf, context):
        self.kept = []

    def process(self, tup):
        self.kept.append(tup)


FULL = {"topology.max.spout.pending": 2, "topology.enable.message.timeouts": False, "test.numbers": 10}


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_acks_between_two_waits_make_room_for_more(mode):
    with LocalCluster(mode, conf=FULL) as cluster:
        run = cluster.submit(built(topologies.Numbers, Keeps))
        kept = run.tasks[0].instance.kept
        for _ in range(5):
            run.wait(lambda _: len(kept) == 2, timeout=20)
            while kept:
                run.tasks[0].instance.ack(kept.pop())
        run.wait(timeout=20)
        assert run.counters["spout"].acked == 10


def test_acks_of_another_thread_make_room_for_more():
    with LocalCluster("inprocess", conf=FULL) as cluster:
        run = cluster.submit(built(topologies.Numbers, Keeps))
        bolt = run.tasks[0].instance
        ended = threading.Event()

        def work():
            while not ended.wait(0.001):
                if len(bolt.kept) == 2:  # the loop has nothing to do but to look at what comes of this
                    while bolt.kept:
                        bolt.ack(bolt.kept.pop())

        thread = threading.Thread(target=work)
        thread.start()
        try:
            run.wait(timeout=20)
        finally:
            ended.set()
            thread.join()
        assert run.counters["spout"].acked == 10


def test_each_task_has_a_component_of_its_own(run_topology):
    run = run_topology(topologies.word_count)
    instances = [task.instance for task in run.tasks]
    assert len({id(instance) for instance in instances}) == len(instances)
    counts = [task.instance.counts for task in run.tasks if task.component == "count"]
    assert sum(sum(count.values()) for count in counts) == run.counters["count"].executed


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_sys_exit_ends_a_task_as_with_a_process_of_its_own_and_not_the_program(mode):
    class Exits(BasicBolt):
        exited = 0

        def process(self, tup):
            if Exits.exited < 3:
                Exits.exited += 1
                raise SystemExit(Exits.exited)

    class SpoutExits(topologies.Numbers):
        def ack(self, tup_id):
            if tup_id == 7:
                raise SystemExit
            super().ack(tup_id)

    with LocalCluster(mode=mode, conf={"topology.message.timeout.secs": 0.2}) as cluster:
        run = cluster.submit(built(SpoutExits, Exits))
        run.wait(lambda run: Exits.exited == 3 and len(run.errors) >= 4, timeout=patient(60))
        messages = [str(error) for error in run.errors]
    for code in ("sys.exit(1)", "sys.exit(2)", "sys.exit(3)", "sys.exit()"):
        assert any(f"{code} ends the task, which is restarted" in message for message in messages), messages
    assert run.counters["bolt0"].restarts == 3


def test_what_one_bolt_changes_in_a_tuple_no_other_sees(run_topology):
    class Lists(Spout):
        output_fields = ["list"]

        def next_tuple(self):
            if not hasattr(self, "mine"):
                self.mine = [1, [2]]
                self.emit([self.mine])
                self.mine[1].append("changed after the emit")

    class Changes(BasicBolt):
        output_fields = ["list"]

        def process(self, tup):
            self.emit([tup["list"]])
            tup["list"][1].append("changed by one")

    builder = TopologyBuilder()
    builder.set_spout("lists", Lists)
    builder.set_bolt("changes", Changes, parallelism=3).all_grouping("lists")
    run = run_topology(builder.build("lists"), capture=["changes"])
    assert [tup.values for tup in run.captured("changes")] == [[[1, [2]]]] * 3


def test_a_tuple_in_values_arrives_as_a_list_and_an_id_as_it_was(run_topology):
    class Pairs(topologies.Unreliable):
        def next_tuple(self):
            if not self.n:
                self.n = 1
                self.emit([(1, 2)], tup_id="x")

        def ack(self, tup_id):
            self.emit([tup_id])

    run = run_topology(built(Pairs, topologies.Echo), capture=["bolt0"])
    assert [tup["n"] for tup in run.captured("bolt0")] == [[1, 2], "x"]


def test_without_ackers_the_ack_comes_inside_the_emit(run_topology):
    class Order(topologies.Unreliable):
        def next_tuple(self):
            if not self.n:
                self.n = 1
                self.log_ = ["emit"]
                self.emit([1], tup_id=1)
                self.log_.append("emitted")

        def ack(self, tup_id):
            self.log_.append("acked")

    run = run_topology(built(Order, topologies.Echo), conf={"topology.acker.executors": 0})
    assert next(task.instance.log_ for task in run.tasks if task.component == "spout") == ["emit", "acked", "emitted"]


def test_a_tuple_is_acked_and_anchored_to_by_its_id(run_topology):
    class ById(Bolt):
        output_fields = ["n"]

        def process(self, tup):
            self.emit([tup["n"]], anchors=[tup.id])
            self.ack(tup.id)

    run = run_topology(built(topologies.Numbers, ById, topologies.Echo), capture=["bolt1"])
    assert run.counters["spout"].acked == 100
    assert len(run.captured("bolt1")) == 100
    assert run.named == {}


def test_a_component_is_never_entered_while_it_works(run_topology):
    class Enters(BasicBolt):
        output_fields = ["n"]
        output_streams = {"again": ["n"]}
        inside = False

        def process(self, tup):
            assert not self.inside
            self.inside = True
            for _ in range(2 if tup["n"] else 0):
                self.emit([tup["n"] - 1], stream="again")
            self.emit([tup["n"]])
            self.inside = False

    builder = TopologyBuilder()
    builder.set_spout("numbers", topologies.Numbers)
    builder.set_bolt("enters", Enters).shuffle_grouping("numbers").shuffle_grouping("enters", stream="again")
    run = run_topology(builder.build("enters"), conf={"test.numbers": 8})
    assert run.errors == []
    assert run.counters["enters"].executed == sum(2 ** (n + 1) - 1 for n in range(8))


def test_fail_fast_raises_what_would_end_a_task():
    class Wrong(Bolt):
        output_fields = ["n"]

        def process(self, tup):
            raise ZeroDivisionError("by nothing")

    with LocalCluster("inprocess", fail_fast=True) as cluster:
        run = cluster.submit(built(topologies.Numbers, Wrong))
        with pytest.raises(LocalClusterError, match=r"bolt 'bolt0' \(task 2\) died: ZeroDivisionError") as raised:
            run.wait(timeout=10)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_tasks_that_were_started_before_one_that_can_not_be_are_closed(mode):
    closed = []

    class Holds(Bolt):
        def close(self):
            closed.append(self.context.component)

    class Broken(Spout):
        output_fields = ["n"]

        def initialize(self, conf, context):
            raise ConfigError("no such table")

        def close(self):
            closed.append("broken")

    with LocalCluster(mode) as cluster, pytest.raises(TaskStartError, match="no such table"):
        cluster.submit(built(Broken, Holds))
    assert closed == ["bolt0"]


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_what_can_not_be_mended_by_another_start_ends_the_topology(mode):
    class Fenced(topologies.Numbers):
        def next_tuple(self):
            raise UnrecoverableError("somebody else has it")

    with LocalCluster(mode) as cluster:
        run = cluster.submit(built(Fenced, Keeps))
        with pytest.raises(LocalClusterError, match=r"topology 'here' ends: UnrecoverableError .*somebody else has it"):
            run.wait(timeout=20)
        assert run.counters["spout"].restarts == 0


def test_a_component_that_can_not_be_initialized_is_tried_three_times():
    with LocalCluster("inprocess") as cluster, pytest.raises(TaskStartError, match="the database is not there"):
        cluster.submit(topologies.bad_start)


def test_a_spout_that_dies_at_every_next_ends_the_wait():
    class Wrong(Spout):
        output_fields = ["n"]

        def next_tuple(self):
            raise RuntimeError("nothing to give")

    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(built(Wrong, topologies.Echo))
        with pytest.raises(TaskStartError, match="nothing to give"):
            run.wait(timeout=10)


def test_components_are_closed_at_the_end_and_a_close_that_raises_does_not_keep_the_others_from_it():
    closed = []

    class Closes(BasicBolt):
        output_fields = ["n"]

        def process(self, tup):
            self.emit([tup["n"]])

        def close(self):
            closed.append(self.context.component)
            raise OSError("too late")

    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(built(topologies.Numbers, Closes, Closes))
        run.wait(timeout=10)
    assert closed == ["bolt0", "bolt1"]
    assert [error.message.count("too late") > 0 for error in run.errors] == [True, True]


def test_a_captured_stream_may_go_to_a_function():
    seen = []
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(built(topologies.Numbers, topologies.Echo), capture={"bolt0": seen.append})
        run.wait(timeout=10)
        with pytest.raises(KeyError):
            run.captured("bolt0")
    assert [tup["n"] for tup in seen] == list(range(100))


@pytest.mark.soak
def test_memory_and_cost_stay_the_same_however_many_tuples():
    total = 400_000 if SOAK else 40_000
    with LocalCluster("inprocess", {"test.sentences": 10**9, "topology.message.timeout.secs": 3600}) as cluster:
        run = cluster.submit(topologies.word_count)

        def until(n):
            start = time.process_time()
            before = run.counters["sentences"].acked
            run.wait(lambda run: run.stats[5].acked >= n, timeout=patient(120))
            gc.collect()
            return (time.process_time() - start) / (n - before)

        until(2000)
        first = until(total // 4)
        tracemalloc.start()
        until(total // 2)
        size, _ = tracemalloc.get_traced_memory()
        until(total // 2 + total // 8)
        later_size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        later = until(total)
    assert later_size - size < 50_000
    assert later < first * 2  # other programs share the machine, and its caches
