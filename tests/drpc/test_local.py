"""LocalDRPC, when what it runs can't answer."""

from __future__ import annotations

import pytest

from multilang.drpc import DRPCExecutionException, LocalDRPC
from multilang.drpc.thrift import MAX_TEXT
from multilang.local import TaskStartError
from tests.drpc.unanswered import grows, not_today, silent
from tests.soak import chosen


def asked(drpc):
    drpc.submit(not_today)
    return drpc.execute("f", "a")


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_a_topology_that_cannot_be_started_is_no_timeout(mode):
    with LocalDRPC(mode) as drpc, pytest.raises(TaskStartError, match="the database is not there"):
        asked(drpc)


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_request_whose_time_is_over_is_forgotten_and_may_be_cancelled(mode):
    with LocalDRPC(mode) as drpc:
        run = drpc.submit(silent)
        with pytest.raises(DRPCExecutionException) as caught:
            drpc.execute("f", "a", timeout=0.2)
        assert caught.value.kind == "SERVER_TIMEOUT"
        assert len(drpc.requests) == 0
        future = drpc.start("f", "a")
        assert future.cancel()
        assert len(drpc.requests) == 0
        run.kill()
        with pytest.raises(DRPCExecutionException):
            drpc.execute("f", "a", timeout=0.2)


@pytest.mark.parametrize("mode", chosen(["process", "inprocess", "simulated"], "process", "simulated"))
def test_what_no_message_can_carry_is_refused_with_its_size_and_the_limit(mode):
    with LocalDRPC(mode, timeout_secs=100) as drpc:
        run = drpc.submit(grows, conf={"topology.message.timeout.secs": 3600})
        for character, number in (("x", MAX_TEXT + 1), ("x", MAX_TEXT * 2), ("\u20ac", MAX_TEXT // 3 + 1)):
            size = number * len(character.encode())
            with pytest.raises(DRPCExecutionException, match=f"the arguments of {size} bytes: at most {MAX_TEXT} can"):
                drpc.execute("f", character * number)
            with pytest.raises(DRPCExecutionException, match=f"the result of {size} bytes: at most {MAX_TEXT} can"):
                drpc.execute("f", f"{number} {character}")
        assert len(drpc.execute("f", f"{MAX_TEXT} x")) == MAX_TEXT
        assert sum(task.restarts for task in run.tasks) == 0
        assert len(drpc.requests) == 0
