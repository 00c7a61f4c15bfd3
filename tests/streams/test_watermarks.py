"""No way from a source to a window makes an element late: the slowest source's task decides, whatever is between."""

from __future__ import annotations

import os
import signal
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import Context, LocalCluster, ReliableSpout
from multilang.streams import StreamBuilder
from multilang.windowing import Tumbling, seconds
from multilang.windowing.passed import Rounds, Ways
from tests.patience import patient
from tests.soak import SOAK
from tests.streams import skewed

TASKS = st.integers(1, 3)
STEPS = st.lists(st.tuples(st.sampled_from(list(skewed.STEPS)), TASKS), max_size=2)
SHAPES = st.fixed_dictionaries(
    {
        "sources": st.lists(
            st.tuples(TASKS, st.sampled_from([0.0, 1.0, 10.0]), st.sampled_from([0.0, 0.01, 0.2]), st.integers(0, 2)),
            min_size=1,
            max_size=2,
        ),
        "steps": STEPS,
        "together": STEPS,
        "tasks": TASKS,
        "window": st.sampled_from(list(skewed.WINDOWS)),
    }
)


@settings(max_examples=300 if SOAK else 12, deadline=None)
@given(SHAPES)
def test_no_element_is_late_that_was_not_late_at_its_source(shape) -> None:
    with TemporaryDirectory() as folder:
        state = {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": f"{folder}/state.sqlite"},
        }
        with LocalCluster("simulated", state, seed=7) as cluster:
            run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
            run.run_for(60)
            assert not run.captured("lates")
            assert skewed.seen(run.captured("end")) == skewed.worked_out(shape)
            assert not run.errors


@pytest.mark.parametrize("exchange", ["tuple", "block"])
def test_no_element_is_late_between_processes(exchange, tmp_path) -> None:
    shape = {
        "sources": [(2, 0.2, 0.01, 0), (1, 1.0, 0.0, 2)],
        "steps": [("fold", 2), ("bolts", 2)],
        "together": [("unordered", 1), ("bolt", 2), ("repartition", 2)],
        "tasks": 2,
        "window": "tumbling",
    }
    wanted = skewed.worked_out(shape)
    with LocalCluster("process", {"multilang.exchange": exchange}) as cluster:
        run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
        run.wait(until=lambda run: skewed.seen(run.captured("end")).total() >= wanted.total(), timeout=patient(120))
        assert not run.captured("lates")
        assert skewed.seen(run.captured("end")) == wanted
        assert not run.errors


def test_no_element_is_lost_or_late_when_tasks_between_sources_and_windows_die(tmp_path) -> None:
    shape = {
        "sources": [(1, 0.0, 0.01, 0), (1, 0.0, 0.0, 0)],
        "steps": [],
        "together": [("repartition", 2), ("bolt", 1)],
        "tasks": 1,
        "window": "tumbling",
    }
    wanted, go = skewed.worked_out(shape), tmp_path / "go"
    with LocalCluster("process", {"test.go.1": str(go)}) as cluster:
        run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
        run.wait(until=lambda run: run.counters["passes"].emitted > 5, timeout=patient(60))
        others = {"source0", "source1", "group", "late", "end", "lates"}
        killed = [task.pid for task in run.tasks if task.component not in others]
        assert len(killed) > 4
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        run.wait(
            until=lambda run: (
                not {task.pid for task in run.tasks} & {*killed, None} and all(each.alive for each in run.tasks)
            ),
            timeout=patient(60),
        )
        go.touch()
        run.wait(until=lambda run: skewed.seen(run.captured("end")).keys() >= wanted.keys(), timeout=patient(60))
        assert not run.captured("lates")
        assert skewed.seen(run.captured("end")).keys() == wanted.keys()


@pytest.mark.parametrize("bolt", [skewed.Passes, skewed.PassesByHand, skewed.PassesAtTicks()])
@pytest.mark.parametrize(("sources", "tasks_before", "lag"), [(1, 1, 0), (2, 1, 0), (1, 2, 0), (2, 1, 9)])
def test_a_bolt_that_watermarks_can_not_pass_is_named_where_tasks_come_together(
    bolt, sources, tasks_before, lag, caplog
) -> None:
    s = StreamBuilder()
    stream = s.source(skewed.Paced(0, 0.0, 0.0), parallelism=sources).map(skewed.taken).repartition(tasks_before)
    stream = stream.repartition(1).through(bolt, fields=["ts", "n"], name="between").map(skewed.all_of)
    keyed = stream.key_by(skewed.everything)
    keyed.window(Tumbling(seconds(5)), skewed.time_of, lag=seconds(lag) if lag else None).count().for_each(len)
    s.build("named", skewed.CONF)
    told = any("'between' gets elements of several tasks" in record.message for record in caplog.records)
    assert told == (bolt is not skewed.Passes and sources * tasks_before > 1 and not lag)


class Hosts(ReliableSpout):
    """Each task sends once a second; those of the second one have no errors, but for a while."""

    output_fields = ("ts", "status")

    def initialize(self, conf, context):
        self.quiet = context.task_index
        self.began, self.number = self.clock(), 0

    def next_tuple(self):
        if self.clock() - self.began >= self.number:
            self.emit([1000 * self.number, 200 if self.quiet and not 200 <= self.number < 220 else 500])
            self.number += 1


def test_windows_go_on_without_a_source_whose_elements_are_all_dropped(caplog) -> None:
    caplog.set_level("INFO")
    s = StreamBuilder()
    errors = s.source(Hosts(), parallelism=2).map(skewed.all_of).filter(lambda row: row[1] == 500)
    errors.key_by(skewed.everything).repartition(1).window(Tumbling(seconds(10)), skewed.time_of).count().through(
        skewed.Shown, name="end"
    )
    with LocalCluster("simulated", seed=1) as cluster:
        run = cluster.submit(s.build("errors", skewed.CONF), capture=["end"])
        run.run_for(100)
        assert [tup["value"] for tup in run.captured("end")][:6] == [["all", 1], *[["all", 10]] * 5]
        (said,) = [record.message for record in caplog.records if "windows for" in record.message]
        task = said.split(" task ")[1].split()[0]
        assert f"nothing that task {task} of 'hosts' sends has reached the windows for 30 s" in said
        run.run_for(200)
        told = [record.message for record in caplog.records if f"task {task} of 'hosts'" in record.message]
        assert ["nothing" in each for each in told] == [True, False, True]
        assert not run.errors


def test_a_way_that_is_far_behind_holds_windows_up_and_no_longer() -> None:
    ways = Ways({"a": ["s"]}, {("b", "default"): ["a"]})
    context = Context({"taskid": 9, "task->component": {"1": "s", "2": "a", "3": "b", "4": "b", "9": "w"}})
    rounds = Rounds(ways, context)
    fast, slow = ("b", "default", 3), ("b", "default", 4)
    for number in range(1000):
        assert rounds.arrive("2.1", number, fast, number) is None
    found = [rounds.arrive("2.1", number, slow, 0) for number in range(1000)]
    assert sum(each is not None for each in found) > 5
    for number in range(1000, 1010):  # and when the slow one has caught up, each round is complete at once
        assert rounds.arrive("2.1", number, slow, 0) is None
        assert sorted(rounds.arrive("2.1", number, fast, number)) == [0, number]
