"""On a real Storm, with its own DRPC server and with ours, linear DRPC topologies give the answers that they give here."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.drpc import (
    AsyncDRPCClient,
    DRPCClient,
    DRPCExecutionException,
    DRPCServer,
    DRPCTimeoutError,
    LocalDRPC,
)
from multilang.loading.modules import load_module
from multilang.shipping.cluster.artifacts import java, runs_sources
from multilang.shipping.conf import storm_conf
from multilang.shipping.jar import pack
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.thrift_types import types
from multilang.topology import load_topology
from tests.cli.command import ROOT
from tests.soak import soak_only
from tests.storm.conftest import LIMIT, SHIPPED, give

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus
    from multilang.topology import Topology

REACH = Path(ROOT) / "examples" / "reach.py"
EXCLAMATION = Path(ROOT) / "examples" / "exclamation.py"
WORDS = Path(ROOT) / "tests" / "drpc" / "steps_elsewhere" / "topology.py"
URLS = [f"foo.com/blog/{number}" for number in range(12)]


def test_reach_is_the_same_on_storm_in_the_embedded_cluster_and_in_plain_python(storm: Cluster, nimbus: Nimbus) -> None:
    if storm.drpc is None:
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    clients, topologies = storm.drpc
    conf = {"drpc.servers": [topologies.host], "drpc.invocations.port": topologies.port, "topology.workers": 2}
    give(storm, REACH, "reach", **conf)
    give(storm, EXCLAMATION, "exclamation", **{**conf, "topology.workers": 1})
    with DRPCClient(clients.host, clients.port, timeout=2 * LIMIT) as client:
        assert client.execute("exclamation", "hello") == "hello!"
        on_storm = [client.execute("reach", url) for url in URLS]
    reach = load_module(str(REACH)).reach
    assert on_storm == [str(reach(url)) for url in URLS]
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(load_topology(str(REACH)))
        assert [drpc.execute("reach", url) for url in URLS] == on_storm


@soak_only
def test_storms_server_answers_many_calls_at_once_from_asyncio_and_failed_ones_too(
    storm: Cluster, nimbus: Nimbus
) -> None:
    if storm.drpc is None:
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    clients, topologies = storm.drpc
    conf = {"drpc.servers": [topologies.host], "drpc.invocations.port": topologies.port}
    give(storm, SHIPPED / "between_java.py", "sum", **conf)
    texts = ["no number" if n % 10 == 5 else str(n) for n in range(100)]

    async def ask() -> list[str]:
        async with AsyncDRPCClient(clients.host, clients.port, timeout=2 * LIMIT, connections=20) as client:
            calls = [client.execute("sum", text) for text in texts]
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert await client.execute("sum", "4") == "6"
        return [str(end.kind) if isinstance(end, DRPCExecutionException) else str(end) for end in ends]

    assert asyncio.run(ask()) == [str(sum(range(int(t)))) if t.isdigit() else "FAILED_REQUEST" for t in texts]

    async def ask_nobody() -> None:
        async with AsyncDRPCClient(clients.host, clients.port, timeout=0.5) as client:
            await client.execute("nobody", "a")

    with pytest.raises(DRPCTimeoutError):
        asyncio.run(ask_nobody())
    with DRPCClient(clients.host, clients.port, timeout=0.5) as client, pytest.raises(DRPCTimeoutError):
        client.execute("nobody", "a")


@soak_only
def test_a_topology_on_storm_answers_clients_of_our_server(storm: Cluster, nimbus: Nimbus) -> None:
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        give(storm, EXCLAMATION, "exclamation", **server.conf)
        with DRPCClient(port=server.port) as client:
            assert [client.execute("exclamation", str(n)) for n in range(20)] == [f"{n}!" for n in range(20)]


def submit_with(nimbus: Nimbus, topology: Topology, parts: dict[str, object]) -> None:
    """Submit a topology with other component objects than ours, by the ids of those in whose place they are."""
    shipment = pack(topology)
    structure = storm_topology(shipment)
    for id, part in parts.items():
        if id in structure.spouts:
            structure.spouts[id].spout_object = part
        else:
            structure.bolts[id].bolt_object = part
    location = nimbus.upload(shipment.jar())
    options = types().SubmitOptions(initial_status=types().TopologyInitialStatus.ACTIVE)
    conf = json.dumps(storm_conf(topology))
    nimbus.call("submitTopologyWithOpts", topology.name, location, conf, structure, options)


@soak_only
def test_steps_in_node_are_counted_by_the_tasks_in_python_beside_them(storm: Cluster, nimbus: Nimbus) -> None:
    requests = ["", "ask", "ask ask moon", *(" ".join(f"w{n * m % 17}" for m in range(n)) for n in range(0, 60, 7))]
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        give(storm, WORDS, "words", **server.conf)
        with DRPCClient(port=server.port, timeout=2 * LIMIT) as client:
            for text in requests:
                assert json.loads(client.execute("words", text)) == sorted(text.split())


@soak_only
def test_storms_own_coordinated_bolts_stand_before_between_and_after_ours(storm: Cluster, nimbus: Nimbus) -> None:
    if not runs_sources():
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here")

    quickly = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    command = [java(), *quickly, "-cp", f"{storm.home}/lib-worker/*", SHIPPED / "Steps.java", "none", "bolt1", "bolt4"]
    shown = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=LIMIT)
    made = [types().ComponentObject(serialized_java=b64decode(line)) for line in shown.stdout.splitlines()]
    parts = dict(zip(("bolt0", "bolt2", "bolt5"), made, strict=True))
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        topology = load_topology(str(SHIPPED / "between_java.py"))
        conf = {**server.conf, "test.steps.in.java": True, "topology.message.timeout.secs": LIMIT}
        submit_with(nimbus, topology.with_conf(conf, "sum-between-java"), parts)
        with DRPCClient(port=server.port) as client:
            assert [client.execute("sum", str(n)) for n in (0, 1, 2, 10, 1000)] == [
                str(sum(range(n))) for n in (0, 1, 2, 10, 1000)
            ]


@soak_only
def test_storms_own_parts_stand_in_for_ours(storm: Cluster, nimbus: Nimbus) -> None:
    """Java's spout, JoinResult and ReturnResults around the steps in Python; PrepareRequest is none that Thrift can name."""
    thrift = types()

    def named(name: str, *arguments: str) -> object:
        words = [thrift.JavaObjectArg(string_arg=each) for each in arguments]
        return thrift.ComponentObject(
            java_object=thrift.JavaObject(full_class_name=f"org.apache.storm.drpc.{name}", args_list=words)
        )

    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        parts = {"bolt4": named("JoinResult", "prepare-request"), "bolt5": named("ReturnResults")}
        parts["spout"] = named("DRPCSpout", "reach")
        submit_with(nimbus, load_topology(str(REACH)).with_conf(server.conf, "reach-in-java"), parts)
        reach = load_module(str(REACH)).reach
        with DRPCClient(port=server.port) as client:
            assert [client.execute("reach", url) for url in URLS] == [str(reach(url)) for url in URLS]
