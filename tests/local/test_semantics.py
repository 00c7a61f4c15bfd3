"""The same topologies have the same outcomes in every mode."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise

import pytest

from multilang.local import LocalCluster, NotDrainedError, TaskStartError
from multilang.topology.javahash import task_index
from tests.local import topologies
from tests.patience import patient
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS

QUICK = {"topology.message.timeout.secs": 0.4}


def values(run, component, stream="default"):
    return [tup.values for tup in run.captured(component, stream)]


def final_counts(run):
    counts: Counter[str] = Counter()
    for word, count in values(run, "count"):
        counts[word] = max(counts[word], count)
    return counts


@EVERY_MODE
def test_word_count_counts_every_word_and_acks_every_sentence(run_topology, mode):
    run = run_topology(topologies.word_count, mode, capture=["count"])
    expected = Counter(word for n in range(200) for word in topologies.SENTENCES[n % 5].split())
    assert final_counts(run) == expected
    sentences, split, count = (run.counters[name] for name in ("sentences", "split", "count"))
    assert (sentences.emitted, sentences.acked, sentences.failed, sentences.pending) == (200, 200, 0, 0)
    assert (split.executed, split.acked, split.unfinished) == (200, 200, 0)
    assert count.executed == split.emitted == split.transferred == sum(expected.values())
    assert sentences.complete_latency_ms is not None
    assert run.errors == []


@MOSTLY_IN_PROCESS
def test_a_word_is_counted_where_storm_would_count_it(run_topology, mode):
    run = run_topology(topologies.word_count, mode, capture=["count"])
    tasks = [task.id for task in run.tasks if task.component == "count"]
    placed = {tup["word"]: tup.task for tup in run.captured("count")}
    assert placed == {word: tasks[task_index([word], 3)] for word in placed}


@MOSTLY_IN_PROCESS
def test_tasks_are_numbered_as_storm_numbers_them(run_topology, mode):
    run = run_topology(topologies.word_count, mode)
    assert [(task.id, task.component) for task in run.tasks] == [
        (2, "count"),
        (3, "count"),
        (4, "count"),
        (5, "sentences"),
        (6, "split"),
        (7, "split"),
    ]


@EVERY_MODE
@pytest.mark.parametrize("ackers", [1, 3])
def test_failed_tuples_are_replayed_until_they_pass(run_topology, mode, ackers):
    run = run_topology(topologies.fails_twice, mode, capture=["failstwice"], conf={"topology.acker.executors": ackers})
    assert sorted(values(run, "failstwice")) == [[n] for n in range(100)]
    assert run.counters["numbers"].failed == 200
    assert run.counters["numbers"].timed_out == 0
    assert run.counters["numbers"].acked == 100


@EVERY_MODE
def test_forgotten_tuples_time_out_and_are_replayed(run_topology, mode):
    run = run_topology(topologies.forgets_once, mode, capture=["forgetsonce"], conf={**QUICK, "test.numbers": 10})
    assert {n for (n,) in values(run, "forgetsonce")} == set(range(10))
    assert run.counters["numbers"].failed >= 10  # on a slow machine one that was not forgotten may be late, too
    assert run.counters["numbers"].timed_out == run.counters["numbers"].failed
    assert run.counters["numbers"].acked == 10
    assert run.counters["forgetsonce"].unfinished == 10


@MOSTLY_IN_PROCESS
def test_without_timeouts_a_forgotten_tuple_stays_pending_and_the_wait_says_where(mode):
    with LocalCluster(mode, conf={"topology.enable.message.timeouts": False, "test.numbers": 3}) as cluster:
        run = cluster.submit(topologies.forgets_once)
        run.wait(lambda run: run.counters["numbers"].pending == 3, timeout=patient(30))
        with pytest.raises(NotDrainedError, match=r"spout 'numbers' \(task 3\): 3 tuples neither acked nor failed"):
            run.wait(timeout=0.3)


@EVERY_MODE
def test_a_task_that_dies_is_started_again_and_what_it_held_is_replayed(run_topology, mode, tmp_path):
    conf = {**QUICK, "test.deaths": str(tmp_path / "deaths"), "topology.max.spout.pending": 10}
    run = run_topology(topologies.dies_once, mode, capture=["dieson"], conf=conf)
    assert {n for (n,) in values(run, "dieson")} == set(range(100))
    assert run.counters["dieson"].restarts == 1
    fatal = [error for error in run.errors if error.fatal]
    assert len(fatal) == 1
    assert fatal[0].component == "dieson"
    assert any("seven is too much" in error.message for error in run.errors)


@MOSTLY_IN_PROCESS
@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("undeclared stream", "emits on stream 'nowhere', which it does not declare"),
        ("wrong number of values", "emits 3 values on stream 'default', which declares 1: n"),
        ("double ack", "can't be acked: it was acked or failed before"),
        ("anchor after ack", "can't be used as an anchor: it was acked or failed before"),
        ("direct to a shuffled stream", "takes stream 'default' by SHUFFLE grouping"),
        ("not a number", "field 'n'): nan has no JSON form"),
        ("ack of a stranger", "tuple '4711' can't be acked"),
    ],
)
def test_misuse_is_refused_with_the_same_words_and_ends_the_task(run_topology, mode, tmp_path, fault, complaint):
    conf = {**QUICK, "test.fault": fault, "test.deaths": str(tmp_path / "deaths"), "test.numbers": 5}
    run = run_topology(topologies.misbehaving, mode, capture=["last"], conf=conf)
    assert any(complaint in error.message for error in run.errors), run.errors
    assert run.counters["misbehaves"].restarts == 1
    assert {n for n, _ in values(run, "last")} | {0} == set(range(5))
    assert run.counters["numbers"].acked == 5


@MOSTLY_IN_PROCESS
def test_a_tuple_anchored_to_two_completes_both(run_topology, mode):
    run = run_topology(topologies.pairs, mode, capture=["pairs"])
    assert sorted(n for pair in values(run, "pairs") for n in pair) == list(range(100))
    assert (run.counters["numbers"].acked, run.counters["numbers"].failed) == (100, 0)


@MOSTLY_IN_PROCESS
def test_unanchored_tuples_are_waited_for_too(run_topology, mode):
    run = run_topology(topologies.unreliable, mode, capture=["pass"])
    assert [n for n, _ in values(run, "pass")] == list(range(50))
    assert (run.counters["unreliable"].acked, run.counters["unreliable"].pending) == (0, 0)


@MOSTLY_IN_PROCESS
def test_a_spout_that_can_not_tell_any_more_whether_it_is_exhausted_counts_as_such_when_it_is_idle(run_topology, mode):
    run = run_topology(topologies.undecided, mode)
    assert run.counters["undecided"].acked == 1


@MOSTLY_IN_PROCESS
def test_without_ackers_a_tuple_is_acked_as_soon_as_it_is_emitted(run_topology, mode):
    run = run_topology(topologies.fails_twice, mode, conf={"topology.acker.executors": 0})
    assert (run.counters["numbers"].acked, run.counters["numbers"].failed) == (100, 0)
    assert run.counters["failstwice"].failed == 100
    assert min(task.id for task in run.tasks) == 1  # no acker has a task id


@EVERY_MODE
def test_without_ackers_an_emit_tells_the_spout_of_the_ack_before_it_returns(run_topology, mode):
    run = run_topology(topologies.prompt, mode, capture=["prompt"], conf={"topology.acker.executors": 0})
    ids = topologies.Prompt.ids
    assert values(run, "prompt") == [[[]], *([[id]] for id in ids[:-1])]
    assert run.counters["prompt"].acked == len(ids)


@EVERY_MODE
def test_direct_emits_reach_the_task_they_name_and_task_ids_are_told(run_topology, mode):
    run = run_topology(topologies.routed, mode, capture=["mark", ("routes", "told")])
    marks = [task.id for task in run.tasks if task.component == "mark"]
    marked = Counter(map(tuple, values(run, "mark")))
    shuffled = Counter((n, tasks[0]) for n, tasks in values(run, "routes", "told"))
    assert {len(tasks) for _, tasks in values(run, "routes", "told")} == {1}
    assert marked - shuffled == Counter((n, marks[n % 3]) for n in range(100))
    assert run.counters["numbers"].acked == 100


@EVERY_MODE
def test_task_ids_come_to_a_callback_after_the_emit(run_topology, mode):
    run = run_topology(topologies.called_back, mode, capture=["pass", ("callsback", "told")])
    told = [(n, task) for n, tasks in values(run, "callsback", "told") for task in tasks]
    assert sorted(told) == sorted(map(tuple, values(run, "pass")))
    assert (len(told), run.counters["numbers"].acked) == (100, 100)


@EVERY_MODE
def test_a_cycle_runs_to_its_end(run_topology, mode):
    run = run_topology(topologies.cycle, mode, capture=["down"], conf={"test.numbers": 60})
    assert values(run, "down") == [[0]] * 60
    assert run.counters["down"].executed == 60 * 61 / 2
    assert run.counters["numbers"].acked == 60


@MOSTLY_IN_PROCESS
def test_all_and_global_groupings_with_several_spouts(run_topology, mode):
    run = run_topology(topologies.fan, mode, capture=["everywhere", "first"])
    tasks = [task.id for task in run.tasks if task.component == "everywhere"]
    first = min(task.id for task in run.tasks if task.component == "first")
    expected = Counter({(n, task): 2 + (n < 50) for n in range(100) for task in tasks})
    assert Counter(map(tuple, values(run, "everywhere"))) == expected
    assert {task for _, task in values(run, "first")} == {first}
    assert run.counters["one"].acked == 200


@EVERY_MODE
def test_max_spout_pending_bounds_what_is_under_way(mode):
    conf = {"topology.max.spout.pending": 4, "topology.enable.message.timeouts": False}
    with LocalCluster(mode, conf=conf) as cluster:
        run = cluster.submit(topologies.forgets_once)
        run.wait(lambda run: run.counters["numbers"].pending == 4, timeout=patient(30))
        run.run_for(0.2)
        assert run.counters["numbers"].emitted == 4


def asked_at(run):
    return [float(error.message.split()[2]) for error in run.errors if error.component == "asked"]


@MOSTLY_IN_PROCESS
def test_a_spout_that_emitted_nothing_is_left_alone_for_as_long_as_the_conf_says(mode):
    with LocalCluster(mode, conf={"test.numbers": 10**9, "topology.max.spout.pending": 10}) as cluster:
        run = cluster.submit(topologies.idle_beside_busy)
        run.wait(lambda run: len(asked_at(run)) >= 5, timeout=60)
        at = asked_at(run)
    gaps = [round(later - earlier, 3) for earlier, later in pairwise(at)]
    assert min(gaps) >= 0.3
    assert mode != "simulated" or max(gaps) <= 0.302


@MOSTLY_IN_PROCESS
def test_a_spout_that_emitted_nothing_is_soon_asked_again_unless_the_conf_says_else(mode):
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topologies.idle)
        run.wait(lambda run: len(asked_at(run)) >= 50, timeout=300)
        at = asked_at(run)
    if mode == "simulated":  # each wait doubles the one before, and none is longer than four virtual seconds
        assert at[4] - at[0] < 0.05
        assert max(later - earlier for earlier, later in pairwise(at)) < 4.1


@MOSTLY_IN_PROCESS
def test_failed_tuples_that_wait_for_their_replay_are_under_way(run_topology, mode):
    conf = {"topology.max.spout.pending": 7, "test.numbers": 40}
    run = run_topology(topologies.patient, mode, capture=["patient"], conf=conf)
    assert run.counters["patient"].acked == 40
    assert max(under_way for _, under_way in values(run, "patient")) == 7


@EVERY_MODE
def test_ticks_come_and_what_waits_for_them_is_waited_for(run_topology, mode):
    run = run_topology(topologies.batches, mode, capture=["batches"], conf={"test.numbers": 25})
    assert sum(size for (size,) in values(run, "batches")) == 25
    assert run.counters["numbers"].acked == 25


@EVERY_MODE
def test_a_deactivated_topology_emits_no_more_until_it_is_activated(mode):
    with LocalCluster(mode, conf={"test.numbers": 10**9, "topology.max.spout.pending": 100}) as cluster:
        run = cluster.submit(topologies.passing)
        run.wait(lambda run: run.counters["numbers"].acked > 50, timeout=patient(30))
        run.deactivate()
        run.wait(timeout=patient(30))
        emitted = run.counters["numbers"].emitted
        assert run.counters["numbers"].acked == emitted
        run.run_for(0.2)
        assert run.counters["numbers"].emitted == emitted
        run.activate()
        run.wait(lambda run: run.counters["numbers"].acked > emitted, timeout=patient(30))


@EVERY_MODE
def test_no_component_is_opened_before_its_topology_is_activated(mode, tmp_path):
    opened = tmp_path / "opened"
    with LocalCluster(mode, conf={"test.opened": str(opened)}) as cluster:
        run = cluster.submit(topologies.opens, inactive=True)
        with pytest.raises(NotDrainedError, match="submitted inactive"):
            run.wait(timeout=0.1)
        run.run_for(0.2)
        assert not opened.exists()
        assert not any(task.alive for task in run.tasks)
        assert ["inactive" in line for line in run.waiting_for] == [True]
        with pytest.raises(NotDrainedError, match="submitted inactive"):
            run.wait(lambda run: opened.exists(), timeout=0.1)
        run.activate()
        run.wait(timeout=patient(30))
        assert sorted(opened.read_text().splitlines()) == ["activated", "numbers", "pass"]
        assert run.counters["opens"].acked == 100
        run.deactivate()
        run.activate()
        run.wait(lambda run: opened.read_text().count("activated") == 2, timeout=patient(30))


@MOSTLY_IN_PROCESS
def test_a_wait_lasts_until_a_topology_is_activated_and_drained_or_says_that_nobody_can(mode, tmp_path):
    opened = tmp_path / "opened"
    with LocalCluster(mode, conf={"test.opened": str(opened)}) as cluster:
        run = cluster.submit(topologies.opens, inactive=True)
        if mode == "process":
            activating = threading.Timer(0.2, run.activate)
            activating.start()
            run.wait(timeout=patient(60))
            assert run.counters["opens"].acked == 100
            activating.join()
            return
        for until in ("drained", lambda run: run.activate() or True):
            if until == "drained":
                with pytest.raises(NotDrainedError, match=r"would never be drained; activate\(\) it before wait\(\)"):
                    run.wait()
            else:
                run.wait(until)
        run.wait(timeout=patient(60))
        assert run.counters["opens"].acked == 100


@MOSTLY_IN_PROCESS
def test_a_topology_that_never_was_activated_ends_without_a_component(mode, tmp_path):
    opened = tmp_path / "opened"
    with LocalCluster(mode, conf={"test.opened": str(opened)}) as cluster:
        cluster.submit(topologies.opens, inactive=True)
        cluster.kill("opens", wait_secs=30)
    assert not opened.exists()


@EVERY_MODE
def test_a_component_that_can_not_be_opened_is_told_at_the_activation(mode):
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topologies.never_starts, inactive=True)
        if mode == "process":
            run.activate()
        else:
            with pytest.raises(TaskStartError, match="can't be opened"):
                run.activate()
        with pytest.raises(TaskStartError, match="can't be opened"):
            run.wait(timeout=patient(60))


@MOSTLY_IN_PROCESS
def test_a_stream_that_is_not_captured_is_named_with_what_to_write(run_topology, mode):
    run = run_topology(topologies.unreliable, mode)
    with pytest.raises(KeyError, match="submit with capture="):
        run.captured("pass")


@EVERY_MODE
def test_at_the_end_spouts_are_deactivated_and_then_all_are_closed(mode, tmp_path):
    end = tmp_path / "end"
    with LocalCluster(mode, conf={"test.end": str(end)}) as cluster:
        run = cluster.submit(topologies.ends)
        run.wait(lambda run: end.exists(), timeout=patient(30))
        run.wait(timeout=patient(30))
        assert end.read_text() == "bolt started\n"
    lines = end.read_text().splitlines()
    assert lines[1] == "deactivated"
    assert sorted(lines[2:]) == ["bolt closed", "spout closed"]


@EVERY_MODE
def test_several_topologies_run_side_by_side(mode):
    with LocalCluster(mode) as cluster:
        runs = [cluster.submit(topologies.passing, name=f"number {i}") for i in range(2)]
        for run in runs:
            run.wait(timeout=patient(60))
        assert [run.counters["numbers"].acked for run in runs] == [100, 100]
        cluster.kill("number 0")
        cluster.submit(topologies.passing, name="number 0").wait(timeout=patient(60))


@EVERY_MODE
def test_metrics_and_logs_of_components_go_to_python_s_logging(run_topology, mode, caplog):
    with caplog.at_level("DEBUG"):
        run_topology(topologies.talks, mode, conf={"test.numbers": 1})
    lines = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert ("talks", "WARNING", "watch out") in lines
    assert any(line[:2] == ("talks", "INFO") and line[2].endswith("a logger's line") for line in lines)
    assert ("talks", "DEBUG", "metric m: [1]") in lines


@MOSTLY_IN_PROCESS
def test_a_spout_without_an_end_is_not_drained(mode):
    with LocalCluster(mode, conf={"test.numbers": 10**9, "topology.max.spout.pending": 10}) as cluster:
        run = cluster.submit(topologies.passing)
        with pytest.raises(NotDrainedError, match="spout 'numbers'"):
            run.wait(timeout=0.3)
        assert run.waiting_for


@EVERY_MODE
@pytest.mark.parametrize("ackers", [0, 1, 3])
def test_ackers_are_counted_as_storm_counts_them(run_topology, mode, ackers):
    conf = {"topology.acker.executors": ackers, "multilang.exchange": "tuple"}  # otherwise they count blocks
    counters = run_topology(topologies.word_count, mode, conf=conf).counters
    if not ackers:
        assert "__acker" not in counters
        return
    acker = counters["__acker"]
    assert list(counters)[-1] == "__acker"
    assert acker.tasks == ackers
    assert acker.emitted == acker.transferred == counters["sentences"].acked == 200
    acked = sum(counters[name].acked for name in ("split", "count"))
    assert acker.executed == acker.acked == 200 + acked, "one message for each root, and one for each ack"
    failing = run_topology(topologies.fails_twice, mode, conf=conf).counters["__acker"]
    assert (failing.executed, failing.emitted) == (600, 300)


@MOSTLY_IN_PROCESS
def test_topology_ackers_of_old_storm_is_the_number_of_ackers(run_topology, mode):
    assert run_topology(topologies.word_count, mode, conf={"topology.ackers": 3}).counters["__acker"].tasks == 3
    assert "__acker" not in run_topology(topologies.word_count, mode, conf={"topology.ackers": 0}).counters
