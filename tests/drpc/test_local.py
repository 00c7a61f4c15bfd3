"""LocalDRPC, when what it runs can't answer."""

from __future__ import annotations

import pytest

from multilang import BasicBolt, Bolt
from multilang.drpc import DRPCExecutionException, LinearDRPCTopologyBuilder, LocalDRPC
from multilang.local import TaskStartError


def topology(bolt, function="f"):
    builder = LinearDRPCTopologyBuilder(function)
    builder.add_bolt(bolt)
    return builder.build()


class NotToday(BasicBolt):
    output_fields = ["id", "result"]

    def initialize(self, conf, context):
        raise ValueError("the database is not there")


class Silent(Bolt):
    """Keeps what it gets."""

    output_fields = ["id", "result"]

    def process(self, tup):
        pass


not_today, silent = topology(NotToday), topology(Silent)


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
