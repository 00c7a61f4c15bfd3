"""The packages that a topology needs on workers come along by themselves, or the line that brings them is named."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from multilang.shipping import ShippingError, Target, pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.topology import Topology
    from tests.shipping.conftest import Project

STATEFUL = """
    from multilang import ReliableSpout, StatefulBasicBolt, TopologyBuilder

    class Words(ReliableSpout):
        output_fields = ["word"]

    class Count(StatefulBasicBolt):
        def process(self, tup):
            self.state.put(tup["word"], 1)

    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("count", Count).shuffle_grouping("words")
    topology = builder.build("stateful", conf={conf})
"""
TRANSACTIONAL = """
    from multilang import BatchBolt
    from multilang.transactional import *
    {more}

    class Count(BatchBolt, Committer):
        {attribute}

        def finish_batch(self):
            {finish}

    builder = TransactionalTopologyBuilder("counted", "spout", {spout})
    builder.set_bolt("count", Count).global_grouping("spout")
    topology = builder.build(conf={conf})
"""
MEMORY = 'MemoryTransactionalSpout({0: [["moon"]]}, ["word"], take=1)'


def wheels_in(shipment: Shipment) -> set[str]:
    return {item.part.removeprefix("wheel ") for item in shipment.contents if item.part.startswith("wheel ")}


def stateful(project: Project, conf: dict[str, Any]) -> Topology:
    return project.topology(text=STATEFUL_TEXT.format(conf=conf))


def transactional(
    project: Project, spout: str = MEMORY, conf: dict[str, Any] | None = None, more: str = "",
    attribute: str = "pass", finish: str = "pass",
) -> Topology:  # fmt: skip
    text = TRANSACTIONAL_TEXT.format(spout=spout, conf=conf or {}, more=more, attribute=attribute, finish=finish)
    return project.topology(text=text)


def dedented(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.splitlines()) + "\n"


STATEFUL_TEXT, TRANSACTIONAL_TEXT = dedented(STATEFUL), dedented(TRANSACTIONAL)
SQLITE = {"multilang.transactional.store": "sqlite"}


@pytest.mark.parametrize(
    ("conf", "needed"),
    [
        ({}, set()),
        ({"topology.state.provider": "memory"}, set()),
        ({"topology.state.provider": "sqlite"}, set()),
        ({"topology.state.provider": "redis"}, {"redis"}),
        ({"topology.state.provider": "org.apache.storm.redis.state.RedisKeyValueStateProvider"}, {"redis"}),
        ({"multilang.metrics.prometheus.port": 0}, {"prometheus_client"}),
    ],
)
def test_state_brings_what_its_provider_needs(project: Project, conf: dict[str, Any], needed: set[str]) -> None:
    shipment = pack(stateful(project, conf))
    assert wheels_in(shipment) & {"redis", "kazoo", "prometheus_client"} == needed
    assert shipment.check(), "which imports it from the files alone"


@pytest.mark.parametrize(
    ("positions", "needed"), [("/var/lib/shop/positions.sqlite", set()), ("redis://redis.example.com/0", {"redis"})]
)
def test_a_position_brings_what_its_place_needs(project: Project, positions: str, needed: set[str]) -> None:
    text = f"""
from multilang import TopologyBuilder
from multilang.state import PositionSpout

class Lines(PositionSpout):
    output_fields = ["line"]

builder = TopologyBuilder()
builder.set_spout("lines", Lines())
topology = builder.build(conf={{"multilang.positions": {positions!r}}})
"""
    shipment = pack(project.topology(text=text))
    assert wheels_in(shipment) & {"redis"} == needed


@pytest.mark.parametrize(
    ("spout", "needed"),
    [
        ('RedisStreamSpout("orders", ["number"], "shop")', {"redis"}),
        ('KafkaSpout("localhost:9092", "orders", "shop")', {"confluent_kafka"}),
    ],
)
def test_a_queue_brings_what_its_spout_needs(project: Project, spout: str, needed: set[str]) -> None:
    text = f"""
from multilang import TopologyBuilder
from multilang.queues import {spout.partition("(")[0]}

builder = TopologyBuilder()
builder.set_spout("orders", {spout})
topology = builder.build()
"""
    shipment = pack(project.topology(text=text))
    assert wheels_in(shipment) & {"redis", "confluent_kafka"} == needed
    assert shipment.check()


@pytest.mark.parametrize(
    ("how", "needed"),
    [
        ({}, {"kazoo"}),
        ({"conf": SQLITE}, set()),
        ({"spout": 'TransactionalKafkaSpout("localhost:9092", "orders")', "conf": SQLITE}, {"confluent_kafka"}),
        ({"spout": 'OpaqueTransactionalRedisSpout(["orders"], ["word"])', "conf": SQLITE}, {"redis"}),
        ({"attribute": 'counts = TransactionalMap(RedisBacking("counts"))', "conf": SQLITE}, {"redis"}),
        (
            {
                "more": "from multilang.transactional import RedisBacking",
                "finish": 'OpaqueMap(RedisBacking("counts")).update(self.id, {})',
                "conf": SQLITE,
            },
            {"redis"},
        ),
        ({"attribute": 'requires = {"click": "click>=8"}', "conf": SQLITE}, {"click"}),
    ],
)
def test_transactions_bring_what_their_parts_need(project: Project, how: dict[str, Any], needed: set[str]) -> None:
    shipment = pack(transactional(project, **how))
    assert wheels_in(shipment) & {"kazoo", "redis", "confluent_kafka", "click"} == needed
    assert shipment.check()


def test_what_the_requirements_bring_or_workers_have_is_not_added(
    project: Project, wheels: Callable[..., None]
) -> None:
    wheels("kazoo", "2.99", "py3-none-any", {"kazoo/__init__.py": "", "kazoo/client.py": ""})
    topology = transactional(project)
    requirements = project.write("requirements.txt", "kazoo\n")
    assert "kazoo 2.99" in pack(topology, requirements=requirements).notes
    shipment = pack(topology, leave_out=["kazoo"])
    assert not wheels_in(shipment)
    assert shipment.check()


def test_a_package_for_another_machine_is_pip_s(project: Project, wheels: Callable[..., None]) -> None:
    version = metadata.version("ujson")
    wheels("ujson", version, "cp312-cp312-manylinux2014_aarch64", {"ujson.cpython-312-a.so": ""})
    topology = transactional(project)
    target = Target.of("3.12", "manylinux2014_aarch64")
    with pytest.raises(
        ShippingError,
        match=r"(?s)workers need the package kazoo for the transactions of topology 'counted', and it can't be added by "
        r"itself; put the line kazoo>=2.10 into a file for --requirements, or, if the workers have it, say --leave-out kazoo"
        r": pip found no wheels of kazoo>=2.10 for Python 3.12",
    ):
        pack(topology, target=target)
    wheels("kazoo", "2.98", "py3-none-any", {"kazoo/__init__.py": "", "kazoo/client.py": ""})
    assert "kazoo 2.98, for the transactions of topology 'counted'" in pack(topology, target=target).notes


def test_a_package_that_is_neither_here_nor_with_pip_is_refused_with_the_line(
    project: Project, wheels: Callable[..., None]
) -> None:
    topology = transactional(project, attribute='requires = {"nosuch": "nosuch-package>=3"}', conf=SQLITE)
    with pytest.raises(ShippingError, match=r"put the line nosuch-package>=3 into a file .* say --leave-out nosuch"):
        pack(topology)
    project.name += "_wrong"
    with pytest.raises(ShippingError, match=r"requires of Count .* write the module that is imported and pip's line"):
        pack(transactional(project, attribute='requires = ["nosuch-package"]', conf=SQLITE))


def test_what_a_user_imports_of_such_a_package_is_there_too(project: Project) -> None:
    assert pack(stateful(project, {"topology.state.provider": "redis"})).check()
    project.name += "_importing"
    more = "import kazoo.client"
    assert pack(transactional(project, more=more)).check()


def test_the_lines_are_those_of_the_extras() -> None:
    from multilang.component.prometheus import REQUIRES
    from multilang.queues import KafkaSpout, RedisStreamSpout
    from multilang.state.redis import RedisStateProvider
    from multilang.transactional import RedisBacking, TransactionalKafkaSpout, TransactionalRedisSpout
    from multilang.transactional.stores.zookeeper import ZooKeeperTransactionalState

    mine = [line.split(";") for line in metadata.requires("storm-multilang") or ()]
    extras = [f'extra == "{name}"' for name in ("kafka", "metrics", "redis", "zookeeper")]
    lines = {line.strip() for line, *marker in mine if "".join(marker).strip() in extras}
    users = (
        KafkaSpout,
        RedisStateProvider,
        RedisBacking,
        RedisStreamSpout,
        TransactionalKafkaSpout,
        TransactionalRedisSpout,
        ZooKeeperTransactionalState,
    )
    assert lines == {line for each in users for line in each.requires.values()} | set(REQUIRES.values())
