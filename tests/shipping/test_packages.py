"""The packages that a topology needs on workers come along by themselves, or the line that brings them is named."""

from __future__ import annotations

import re
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from multilang.component.errors import ConfigError
from multilang.shipping import ShippingError, WheelTarget, pack
from multilang.shipping.packages import packages_of
from multilang.shipping.submit import check_complete

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
MEMORY = 'MemoryTransactionalSpout({0: [["moon"]]}, ["word"], batch_size=1)'


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


def test_a_state_behind_a_queue_brings_what_the_place_of_its_note_needs(project: Project) -> None:
    text = STATEFUL_TEXT.format(conf={"multilang.positions": "redis://redis.example.com/0"})
    text = text.replace("from multilang import", "from multilang.queues import KafkaSpout\nfrom multilang import", 1)
    text = re.sub(r'set_spout\("(\w+)", .*\)', r'set_spout("\1", KafkaSpout("localhost:9092", "words", "shop"))', text)
    assert wheels_in(pack(project.topology(text=text))) & {"redis"} == {"redis"}


POSITIONED = """
from multilang import TopologyBuilder
from multilang.state import PositionSpout

class Lines(PositionSpout):
    output_fields = ["line"]

builder = TopologyBuilder()
builder.set_spout("lines", Lines())
topology = builder.build(conf={conf!r})
"""


@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        ({"multilang.positions": 5}, "multilang.positions is 5; use the URL of a store"),
        ({"multilang.positions": "redis://u:p@h"}, "a password belongs into multilang.redis.access"),
        ({"topology.state.provider": 42}, "topology.state.provider is 42; use a dotted name"),
        ({"topology.state.provider.config": {"keySerializerClass": 1}}, "keySerializerClass is 1; use a dotted name"),
        ({"multilang.trace": 1}, "multilang.trace is 1; use a dotted name"),
        ({"multilang.transactional.store": 42}, "multilang.transactional.store is 42; use text"),
        ({"topology.ackers": "x"}, "is 'x'; use a whole number from 0"),
        ({"topology.acker.executors": -1}, "is -1; use a whole number from 0"),
        ({"topology.message.timeout.secs": "30"}, "is '30'; use seconds above 0"),
    ],
)
def test_a_setting_that_every_worker_would_refuse_is_refused(
    project: Project, conf: dict[str, Any], reason: str
) -> None:
    with pytest.raises((ShippingError, ConfigError), match=re.escape(reason)):
        pack(positioned(project, conf) if "multilang.positions" in conf else stateful(project, {}).with_conf(conf))


def positioned(project: Project, conf: dict[str, Any]) -> Topology:
    return project.topology(text=POSITIONED.format(conf=conf))


def test_what_is_to_be_called_and_can_t_be_is_refused(project: Project) -> None:
    project.write(f"{project.name}_helper.py", "H = 1\n")
    shipment = pack(stateful(project, {"multilang.trace": f"{project.name}_helper.H"}))
    with pytest.raises(ShippingError, match=r"multilang\.trace '.*_helper.H' is 1; use a function"):
        shipment.check()


SOURCED = """
from multilang import TopologyBuilder
from spark_bridge import PartitionSpout

builder = TopologyBuilder()
builder.set_spout("rows", PartitionSpout({url!r}, fields=["a"]))
topology = builder.build(conf={conf!r})
"""


@pytest.mark.parametrize("by_conf", [False, True])
@pytest.mark.parametrize(
    ("url", "needed"),
    [
        ("served://localhost:1", set()),
        ("/published", {"fsspec", "pyarrow"}),
        ("file:///published", {"fsspec", "pyarrow"}),
        ("s3://bucket/published", {"fsspec", "pyarrow", "s3fs"}),
        ("simplecache::gcs://bucket/published", {"fsspec", "pyarrow", "gcsfs"}),
    ],
)
def test_a_source_brings_what_its_url_needs(project: Project, url: str, needed: set[str], by_conf: bool) -> None:
    pytest.importorskip("fsspec")
    topology = project.topology(
        text=SOURCED.format(url=None if by_conf else url, conf={"multilang.source": url} if by_conf else {})
    )
    assert {package.module for package in packages_of(topology, set())[0]} == needed


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("served://x", "the source of spout 'rows' can't be used: 'served://x' is not a served source"),
        ("", "spout 'rows': multilang.source is ''; use the URL of a source"),
        (7, "the topology's conf: multilang.source is 7; use the URL of a source"),
    ],
)
def test_a_source_that_is_none_is_refused(project: Project, source: object, reason: str) -> None:
    with pytest.raises((ShippingError, ConfigError), match=re.escape(reason)):
        pack(project.topology(text=SOURCED.format(url=None, conf={"multilang.source": source})))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SOURCED.format(url=None, conf={}), "spout 'rows': the spout has no source; put its URL into the conf as"),
        (
            POSITIONED.format(conf={}),
            "the position of 'lines' has no place that every worker reaches: set multilang.store",
        ),
    ],
)
def test_a_place_that_is_not_known_yet_is_asked_for_by_the_submission_alone(
    project: Project, text: str, reason: str
) -> None:
    shipment = pack(project.topology(text=text))
    assert shipment.check()
    assert len(shipment.missing) == 1
    with pytest.raises(ShippingError, match=re.escape(reason)):
        check_complete(shipment)
    known = {"multilang.source": "served://localhost:1", "multilang.positions": "/var/lib/shop/positions.sqlite"}
    check_complete(pack(shipment.topology.with_conf(known)))


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import multilang.transactional as tx", "tx.RedisBacking"),
        ("import multilang.transactional", "multilang.transactional.RedisBacking"),
        ("from multilang import transactional", "transactional.RedisBacking"),
        ("from multilang.transactional.maps import redis as maps", "maps.RedisBacking"),
        ("from multilang.transactional import RedisBacking", "RedisBacking"),
        ("import multilang", "multilang.queues.RedisStreamSpout"),
    ],
)
def test_what_is_made_later_brings_what_it_needs_however_it_is_imported(
    project: Project, imports: str, name: str
) -> None:
    shipment = pack(project.topology(imports=imports, more=f"def make():\n        return {name}('m')"))
    assert "redis" in wheels_in(shipment)


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
        ({"attribute": 'counts = TransactionalMap("redis://localhost/0", "counts")', "conf": SQLITE}, {"redis"}),
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
    target = WheelTarget.of("3.12", "manylinux2014_aarch64")
    with pytest.raises(
        ShippingError,
        match=r"(?s)workers need the package kazoo for the transactions of topology 'counted', and it can't be added by "
        r"itself; put the line kazoo>=2.10 into a file for --requirements, or, if the workers have it, give --leave-out kazoo"
        r": pip found no wheels of kazoo>=2.10 for Python 3.12",
    ):
        pack(topology, target=target)
    wheels("kazoo", "2.98", "py3-none-any", {"kazoo/__init__.py": "", "kazoo/client.py": ""})
    assert "kazoo 2.98, for the transactions of topology 'counted'" in pack(topology, target=target).notes


def test_a_package_that_is_neither_here_nor_with_pip_is_refused_with_the_line(
    project: Project, wheels: Callable[..., None]
) -> None:
    topology = transactional(project, attribute='requires = {"nosuch": "nosuch-package>=3"}', conf=SQLITE)
    with pytest.raises(ShippingError, match=r"put the line nosuch-package>=3 into a file .* give --leave-out nosuch"):
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
    from multilang.state import RedisStateProvider
    from multilang.store.zookeeper import ZooKeeperStore
    from multilang.transactional import RedisBacking, TransactionalKafkaSpout, TransactionalRedisSpout

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
        ZooKeeperStore,
    )
    assert lines == {line for each in users for line in each.requires.values()} | set(REQUIRES.values())
