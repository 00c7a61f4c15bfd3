"""Sentences of Storm's page on guaranteed processing that no other test shows, in every mode."""

from __future__ import annotations

import pytest

from multilang.engine.settings import DEFAULTS, Settings
from tests.local import specified
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS


def heard(run):
    return [tup.values for tup in run.captured("own", "heard")]


@EVERY_MODE
def test_a_tuple_is_acked_and_failed_at_the_task_that_emitted_it(run_topology, mode):
    run = run_topology(specified.own, mode, capture=[("own", "heard")])
    assert {task for _, task, _ in heard(run)} == {task.id for task in run.tasks if task.component == "own"}
    assert all(task == of for _, task, of in heard(run))
    assert sorted(what for what, *_ in heard(run)) == ["ack"] * 60 + ["fail"] * 60


@MOSTLY_IN_PROCESS
def test_what_becomes_of_an_unanchored_tuple_does_not_matter_to_the_spouts(run_topology, mode):
    run = run_topology(specified.unanchored, mode, capture=[("own", "heard")])
    assert run.counters["fails"].failed == 20
    assert [what for what, *_ in heard(run)] == ["ack"] * 20


@MOSTLY_IN_PROCESS
def test_a_tuple_of_several_anchors_that_fails_fails_all_that_it_came_of(run_topology, mode):
    run = run_topology(specified.joined, mode, capture=[("own", "heard")])
    assert [what for what, *_ in heard(run)].count("fail") == 2
    assert (run.counters["own"].acked, run.counters["own"].timed_out) == (20, 0)


@EVERY_MODE
def test_a_tree_whose_branches_meet_again_is_acked_once_and_failed_as_one(run_topology, mode):
    run = run_topology(specified.diamond, mode, capture=["meets", ("own", "heard")])
    assert all(tup["came"] == ["left", "right"] for tup in run.captured("meets"))
    assert sorted(what for what, *_ in heard(run)) == ["ack"] * 20 + ["fail"]


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
def test_ten_tasks_split_and_twenty_count_each_word_at_one_of_them(run_topology, mode):
    run = run_topology(specified.page, mode, capture=["count"])
    assert [sum(task.component == each for task in run.tasks) for each in ("split", "count")] == [10, 20]
    counts, tasks = {}, {}
    for word, count, task in (tup.values for tup in run.captured("count")):
        counts[word] = max(count, counts.get(word, 0))
        tasks.setdefault(word, set()).add(task)
    assert counts == specified.words_of_the_page()
    assert all(len(each) == 1 for each in tasks.values())
    assert len(set.union(*tasks.values())) > 1


def test_the_defaults_are_storms():
    settings = Settings(DEFAULTS)
    assert settings.message_timeout_secs == 30
    assert settings.message_timeouts
    assert settings.max_spout_pending is None
    assert settings.ackers == 1
    assert Settings({**DEFAULTS, "topology.workers": 4}).ackers == 4  # one for each worker, as since Storm 0.9
