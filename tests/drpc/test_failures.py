"""A client learns of a failed request at once, by name, with the cause."""

from __future__ import annotations

import time

import pytest

from multilang import BasicBolt
from multilang.coordination import KeyedFairBolt
from multilang.drpc import DRPCExecutionException, LinearDRPCTopologyBuilder, LocalDRPC
from tests.drpc import failing
from tests.drpc.failing import CAUSES
from tests.patience import patient
from tests.soak import EVERY_MODE, MOSTLY_IN_PROCESS

LIMIT = patient(100.0)
NEVER = {"topology.message.timeout.secs": 3600}  # what is told by a timeout comes too late for these tests


def back(run, deaths):
    """Return whether so many tasks died, and all live again."""
    tasks = run.tasks
    return sum(task.restarts for task in tasks) == deaths and all(task.alive for task in tasks)


def problems(drpc, function, texts):
    """Return the error of each request."""
    futures = [drpc.start(function, text) for text in texts]
    drpc.wait(futures)
    return [str(future.exception()) for future in futures]


@EVERY_MODE
def test_an_exception_in_any_kind_of_step_is_reported_at_once_with_its_function_and_cause(mode):
    with LocalDRPC(mode, timeout_secs=LIMIT, seed=1) as drpc:
        run = drpc.submit(failing.alone, conf=NEVER)
        deaths = 0
        for text, (where, cause) in CAUSES.items():
            with pytest.raises(DRPCExecutionException) as caught:
                drpc.execute("line", text)
            assert caught.value.kind == "FAILED_REQUEST", text
            said = str(caught.value)
            assert "'line' failed in step" in said, said
            assert where in said, said
            assert cause in said, said
            deaths += text == "raise plain"  # a Bolt's exception ends its task: what comes meanwhile is lost with it
            run.wait(lambda _, n=deaths: back(run, n), LIMIT)
        assert drpc.execute("line", "all is well") == "all is well"
        assert len(drpc.requests) == 0


@pytest.mark.parametrize("mode", ["inprocess", "simulated"])
@pytest.mark.parametrize("seed", range(5))
def test_failures_of_requests_that_are_under_way_together_are_not_mixed_up(mode, seed):
    with LocalDRPC(mode, timeout_secs=LIMIT, seed=seed) as drpc:
        drpc.submit(failing.alone, conf=NEVER)
        texts = [text for text in CAUSES if "plain" not in text]  # which would take others with it
        futures = {text: drpc.start("line", text) for text in [*texts, "a", "b"]}
        drpc.wait(futures.values())
        assert [futures["a"].result(), futures["b"].result()] == ["a", "b"]
        assert [text for text in texts if CAUSES[text][1] not in str(futures[text].exception())] == []


@MOSTLY_IN_PROCESS
def test_where_several_tasks_are_the_last_step_nothing_and_twice_are_reported_too(mode):
    with LocalDRPC(mode, timeout_secs=LIMIT, seed=1) as drpc:
        run = drpc.submit(failing.several, conf=NEVER)
        (said,) = problems(drpc, "several", ["nothing"])
        assert "all tasks of its last step have seen all of the request and emitted no result for it" in said
        assert drpc.execute("several", "one") == "one"
        assert run.errors == []


def test_a_second_result_of_another_task_is_an_error_of_the_topology_s():
    class Both(BasicBolt):
        output_fields = ["id", "result"]

        def process(self, tup):
            self.emit([tup[0], self.context.task_index])

    builder = LinearDRPCTopologyBuilder("both")
    builder.add_bolt(failing.Basic)
    builder.add_bolt(Both, 2).all_grouping()
    with LocalDRPC("inprocess", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(builder.build(), conf=NEVER)
        assert drpc.execute("both", "a") == "0"
        run.wait(lambda _: run.errors, LIMIT)
        (error,) = run.errors
        assert "a second result of one request of 'both' is dropped, 1 of task" in error.message
        run.wait(timeout=LIMIT)
        (join,) = [actor.component for actor in run.bolts.values() if actor.plan.component == "bolt2"]
        assert join._requests == {}


@EVERY_MODE
def test_a_bolt_that_dies_of_one_request_fails_those_that_it_keeps(mode):
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        run = drpc.submit(failing.keeps, conf=NEVER)
        kept = [drpc.start("keeps", "a"), drpc.start("keeps", "b")]
        run.wait(lambda _: not drpc.requests.waiting, LIMIT)
        last = drpc.start("keeps", "raise keeps")
        drpc.wait([*kept, last])
        assert "failed in step 0" in str(last.exception())
        said = [str(future.exception()) for future in (last, *kept)]
        assert [text for text in said if "ZeroDivisionError: nothing by naught in keeps" not in text] == []
        assert all("its task died, of another of its tuples" in text for text in said[1:])


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_fair_bolt_around_a_bolt_that_raises_tells_it_too(mode):
    builder = LinearDRPCTopologyBuilder("fair")
    builder.add_bolt(KeyedFairBolt(failing.Keeps))
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        drpc.submit(builder.build(), conf=NEVER)
        (said,) = problems(drpc, "fair", ["raise keeps"])
        assert "'fair' failed in step 0" in said
        assert "ZeroDivisionError: nothing by naught in keeps" in said


@MOSTLY_IN_PROCESS
def test_a_function_that_nothing_serves_is_refused_at_once(mode):
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        began = time.monotonic()
        with pytest.raises(DRPCExecutionException, match="nothing serves 'keeps' here: submit a topology"):
            drpc.execute("keeps", "a")
        run = drpc.submit(failing.keeps, conf=NEVER)
        with pytest.raises(DRPCExecutionException, match="nothing serves 'keep' here; did you mean 'keeps'"):
            drpc.execute("keep", "a")
        future = drpc.start("keeps", "a")
        run.kill()
        drpc.wait([future])
        assert "nothing serves 'keeps' here" in str(future.exception())
        assert time.monotonic() - began < LIMIT
        assert len(drpc.requests) == 0
