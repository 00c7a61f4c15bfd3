"""The status of a run on the embedded cluster, the same in each of its modes."""

from __future__ import annotations

import json
from random import Random

import pytest

from multilang.engine.plan import Plan
from multilang.engine.status import RunStatus
from multilang.local import LocalCluster
from multilang.local.inprocess import InProcessTopology
from tests.local import watched
from tests.local.topologies import SENTENCES
from tests.patience import patient

MODES = ["process", "inprocess", "simulated"]
WORDS = 40 * sum(len(sentence.split()) for sentence in SENTENCES)
COUNTED = ("emitted", "transferred", "executed", "acked", "failed", "timed_out", "lost", "errors", "restarts")

everywhere = pytest.mark.parametrize("mode", MODES)


def counts(status):
    return {each.id: {name: getattr(each, name) for name in COUNTED} for each in status.components}


@everywhere
def test_the_counts_are_the_same_in_each_mode_and_add_up_over_tasks_and_streams(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(watched.words, conf={"multilang.exchange": "root"})  # so that ackers answer for each tuple
        run.wait(timeout=patient(60))
        status = run.status()
    none = dict.fromkeys(COUNTED, 0)
    found = counts(status)
    acker = found.pop("__acker")
    messages = 400 + WORDS  # processes exchange blocks, and ackers count these
    assert 600 < acker["executed"] < messages if mode == "process" else acker["executed"] == messages
    assert acker == {
        **none,
        "emitted": 200,
        "transferred": 200,
        **dict.fromkeys(("executed", "acked"), acker["executed"]),
    }
    assert found == {
        "sentences": {**none, "emitted": 200, "transferred": 200, "acked": 200},
        "split": {**none, "emitted": WORDS, "transferred": WORDS, "executed": 200, "acked": 200},
        "count": {**none, "emitted": WORDS, "executed": WORDS, "acked": WORDS},
    }
    assert (status.topology, status.engine, status.state, status.waiting_for) == ("words", mode, "active", ())
    assert [each.kind for each in status.components] == ["spout", "bolt", "bolt", "bolt"]
    for each in status.components[:-1]:
        assert len(each.by_task) == each.tasks
        for name in COUNTED:
            assert sum(getattr(task, name) for task in each.by_task) == getattr(each, name), (each.id, name)
        (stream,) = each.streams
        assert (stream.emitted, stream.transferred) == (each.emitted, each.transferred)
        assert each.rate > 0
    assert [(one.component, one.stream, one.grouping) for one in status["count"].inputs] == [
        ("split", "default", str(watched.words["count"].inputs[0].grouping))
    ]
    assert status.total("acked") == 200
    assert RunStatus.from_json(json.loads(json.dumps(status.as_json()))) == status


@everywhere
def test_a_status_says_what_the_run_does_and_what_it_waits_for(mode):
    with LocalCluster(mode) as cluster:
        run = cluster.submit(watched.words, inactive=True)
        before = run.status()
        assert (before.state, before["split"].executed) == ("inactive", 0)
        assert before.waiting_for
        assert "submitted inactive" in before.waiting_for[0]
        run.activate()
        run.wait(timeout=patient(60))
        assert run.status(by_task=False)["split"].by_task == ()
        assert run.status(by_task=False)["split"].executed == 200
    after = run.status()
    assert (after.state, after.waiting_for, after["split"].executed) == ("ended", None, 200)


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_the_time_in_which_a_task_is_busy_is_measured(mode):
    due = watched.TUPLES * watched.PAUSE
    with LocalCluster(mode) as cluster:
        run = cluster.submit(watched.slow)
        run.wait(timeout=patient(60))
        run.wait(lambda run: (run.status()["sleeps"].busy_secs or 0) > 0.95 * due, timeout=60)
        status = run.status().averaged()
    sleeps, drop = status["sleeps"], status["drop"]
    assert 0.95 * due <= sleeps.busy_secs <= 1.1 * status.seconds  # in process a sample tells
    assert sleeps.capacity == pytest.approx(min(sleeps.busy_secs / status.seconds, 1))
    assert sleeps.by_task[0].capacity == sleeps.capacity
    assert drop.busy_secs < sleeps.busy_secs / 2
    assert drop.capacity < sleeps.capacity


def test_a_tuple_that_takes_long_counts_as_busy_before_it_is_done(tmp_path):
    until = tmp_path / "until"
    with LocalCluster("process", {"test.until": str(until)}) as cluster:
        run = cluster.submit(watched.stuck)
        run.wait(lambda run: (run.status()["stuck"].busy_secs or 0) > 1, timeout=60)
        assert run.status()["stuck"].executed == 0
        assert run.status()["stuck"].capacity > 0
        until.touch()
        run.wait(timeout=patient(60))


def test_a_program_in_another_language_tells_no_time_and_none_is_made_up():
    with LocalCluster("process") as cluster:
        run = cluster.submit(watched.foreign)
        run.wait(timeout=patient(60))
        foreign = run.status()["foreign"]
    assert (foreign.executed, foreign.busy_secs, foreign.capacity) == (watched.TUPLES, None, None)
    assert foreign.rate is not None
    assert foreign.by_task[0].where is not None


def test_a_simulated_run_measures_no_time_and_tells_the_same_for_the_same_seed():
    told = []
    for _ in range(2):
        with LocalCluster("simulated", seed=5) as cluster:
            run = cluster.submit(watched.words)
            run.run_for(1.5)
            told.append(run.status())
            run.wait(timeout=60)
            told.append(run.status())
    assert told[:2] == told[2:]
    assert all(each.capacity is None and each.busy_secs is None for each in told[0].components)


@everywhere
def test_the_last_committed_checkpoint_is_told(mode, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    with LocalCluster(mode) as cluster:
        run = cluster.submit(watched.summed)
        assert run.status().checkpoint is None
        run.wait(lambda run: run.status().checkpoint is not None, timeout=patient(60))
        first = run.status().checkpoint
        run.wait(lambda run: run.status().checkpoint.number > first.number, timeout=patient(60))
        second = run.status().checkpoint
    assert (first.number >= 0, second.age_secs >= 0, second.seconds > 0) == (True, True, True)


class Hasty:
    """A clock on which a millisecond passes whenever somebody looks at it."""

    at = 0.0

    def now(self):
        self.at += 0.001
        return self.at

    def sleep(self, secs):
        self.at += secs


def test_samples_of_a_run_that_nobody_looks_at_are_kept_too():
    plan = Plan(watched.words, "words", {"test.sentences": 10**9}, Random(1))
    run = InProcessTopology(plan, Hasty(), (), Random(1), True)
    run.activate()
    run.run_for(5)
    history = run.status(by_task=False).history
    run.kill()
    assert len(history.at) >= 4
    assert all(rate > 0 for rate in history.components["split"].rate)


@everywhere
def test_many_errors_of_one_kind_hide_no_other(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(watched.faulty)
        run.wait(timeout=patient(60))
        status = run.status()
    rare, often = sorted(status.errors, key=lambda each: each.times)
    assert "ZeroDivisionError" in rare.message
    assert rare.times == 1
    assert "KeyError" in often.message
    assert often.times == watched.FAULTS
    assert status["faulty"].errors == watched.FAULTS + 1
