"""A topology runs when all of its tasks are known to have started, and no error came for a while."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import BasicBolt, TopologyBuilder
from multilang.settings import ANNOUNCED
from multilang.shipping.jar import Shipment
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.settling import announcements, not_started, wait_until_running
from multilang.shipping.submit import submit
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import topology_status
from multilang.shipping.wheels import WheelTarget
from multilang.testing import FixedTupleSpout
from tests.protocol.wire import shaken_child
from tests.shipping.nimbus_server import NimbusServer, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from multilang.shipping.storm_yaml import Address

NAME = "shop"


class Count(BasicBolt):
    pass


def shipment(tasks: int = 1, launcher: str = "run_topology.py", **conf: Any) -> Shipment:
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout(["n"], [[1]]))
    builder.set_bolt("count", Count, tasks=tasks).shuffle_grouping("numbers")
    topology = builder.build(NAME, conf)
    commands = dict.fromkeys(topology.components, ("python3", launcher))
    return Shipment(topology, WheelTarget.of(None, None), [], commands, [])  # type: ignore[arg-type]


class Sampler:
    """Counts emits as a task of Storm's does (ConfigUtils.evenSampler): one of each interval, drawn at random, as so many."""

    def __init__(self, interval: int, seed: int) -> None:
        self._interval = interval
        self._random = random.Random(seed)
        self._at = -1
        self._target = self._random.randrange(interval)

    def count(self, emits: int) -> int:
        counted = 0
        for _ in range(emits):
            self._at += 1
            if self._at >= self._interval:
                self._at, self._target = 0, self._random.randrange(self._interval)
            counted += self._interval * (self._at == self._target)
        return counted


@given(
    rate=st.sampled_from([1.0, 0.5, 0.3, 0.1, 0.05, 0.02]),
    tasks=st.lists(st.tuples(st.booleans(), st.integers(0, 70), st.integers(0, 1000)), min_size=1, max_size=6),
)
def test_the_tasks_of_an_executor_have_started_only_if_each_of_them_has(
    rate: float, tasks: list[tuple[bool, int, int]]
) -> None:
    """Storm counts them together. ``tasks``: whether each announces its start, its emits before, and the seed of its sampling."""
    announced = announcements(shipment(len(tasks)), rate)
    interval = int(1 / rate)
    counted = 0
    for starts, before, seed in tasks:
        sampler = Sampler(interval, seed)
        sampler.count(before)
        if starts:
            child = shaken_child()
            child.announce(announced["count"], interval)
            counted += sampler.count(child.data_to_send().count(b'"stream":"__system"'))
    thrift = types()
    executor = thrift.ExecutorSummary(
        executor_info=thrift.ExecutorInfo(task_start=3, task_end=2 + len(tasks)),
        component_id="count",
        host="a",
        port=6700,
        uptime_secs=1,
        stats=thrift.ExecutorStats(emitted={":all-time": {"__system": counted}}, transferred={}),
    )
    info = thrift.TopologyInfo(id="t", name="t", uptime_secs=1, executors=[executor], status="ACTIVE", errors={})
    problem = not_started(info, topology_status(info), announced)
    assert (not problem) == all(starts for starts, _, _ in tasks)


@pytest.fixture
def server() -> NimbusServer:
    return NimbusServer()


@pytest.fixture
def address(server: NimbusServer) -> Iterator[Address]:
    with serving(server) as where:
        yield where


def silent(info: Any) -> None:
    info.executors[0].stats.emitted = {":all-time": {"default": 100}}


def gone(info: Any) -> None:
    info.executors[0].stats = None


def started(info: Any) -> None:
    pass


def broken(info: Any) -> None:
    info.errors = {"count": [types().ErrorInfo(error="ValueError: x", error_time_secs=1, host="a", port=6700)]}


def wait(
    server: NimbusServer,
    address: Address,
    *steps: Callable[[Any], None],
    settled: float,
    timeout: float = 30,
    shipped: Shipment | None = None,
    active: bool = True,
) -> tuple[bool, str]:
    """Submit a topology, and wait for it; ``steps`` change what Nimbus answers, each once and the last one from then on."""
    real, left = server.getTopologyInfo, list(steps)

    def answered(id: str) -> Any:
        info = real(id)
        (left.pop(0) if left[1:] else left[0])(info)
        return info

    server.getTopologyInfo = answered  # type: ignore[method-assign]
    with Nimbus([address], timeout=10) as nimbus:
        submit(nimbus, shipped or shipment(), active=active)
        outcome = wait_until_running(nimbus, NAME, timeout, settled)
    return outcome.runs, outcome.problem


def test_a_worker_that_is_up_is_no_sign_that_python_runs(server: NimbusServer, address: Address) -> None:
    """Nor are emits of another stream: they may be another task's."""
    runs, problem = wait(server, address, silent, settled=0, timeout=0)
    assert not runs
    assert problem.startswith(
        "'count' (task 1 on a:6700) did not report the start of Python; multilang logs shop --storm"
    )


def test_the_error_of_a_version_that_started_late_is_waited_for(server: NimbusServer, address: Address) -> None:
    """Its worker has been up for longer than the time without an error."""
    said = wait(server, address, gone, silent, started, broken, settled=20)
    assert said == (False, "'count' reported an error on a:6700")


def test_the_time_without_an_error_begins_anew_when_a_worker_starts_again(
    server: NimbusServer, address: Address
) -> None:
    """There is half a second between two answers."""
    assert wait(server, address, started, gone, started, broken, settled=0.9)[0] is False


def young(info: Any) -> None:
    info.executors[0].uptime_secs = 1


@pytest.mark.parametrize("launcher", ["run_topology.py", "run_command_1.py"])
def test_a_worker_that_starts_again_and_again_does_not_run(
    server: NimbusServer, address: Address, launcher: str
) -> None:
    """Also without an error, and with the last counters that Nimbus has, or of a program that announces nothing."""
    shipped = shipment(launcher=launcher)
    assert wait(server, address, started, young, settled=1.2, timeout=2, shipped=shipped)[0] is False


@pytest.mark.parametrize(
    "how",
    [
        {"shipped": shipment(launcher="run_command_1.py")},  # a program in another language
        {"active": False},  # its components start only when it is activated
    ],
    ids=["no Python", "inactive"],
)
def test_executors_are_all_that_is_waited_for_where_no_python_starts(
    server: NimbusServer, address: Address, how: dict[str, Any]
) -> None:
    assert wait(server, address, silent, settled=0, **how) == (True, "")


def test_a_topology_of_somebody_else_announces_nothing(server: NimbusServer, address: Address) -> None:
    """Such as a former one, submitted by Storm's own client, that is submitted again."""
    with Nimbus([address]) as nimbus:
        submit(nimbus, shipment())
        del server.topologies[NAME]["conf"][ANNOUNCED]
        assert wait_until_running(nimbus, NAME, 30, 0).runs
