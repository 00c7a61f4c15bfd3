"""On a real Storm, with its own DRPC server and with ours, linear DRPC topologies give the answers that they give here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.component.find import load_module
from multilang.drpc import DRPCClient, DRPCServer, LocalDRPC
from multilang.shipping.conf import storm_conf
from multilang.shipping.jar import pack
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.thrift_types import types
from multilang.topology import load_topology
from tests.cli.command import ROOT
from tests.storm.conftest import LIMIT, give

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

REACH = Path(ROOT) / "examples" / "reach.py"
EXCLAMATION = Path(ROOT) / "examples" / "exclamation.py"
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


def test_a_topology_on_storm_answers_clients_of_our_server(storm: Cluster, nimbus: Nimbus) -> None:
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        give(storm, EXCLAMATION, "exclamation", **server.conf)
        with DRPCClient(port=server.port) as client:
            assert [client.execute("exclamation", str(n)) for n in range(20)] == [f"{n}!" for n in range(20)]


def test_storms_own_parts_stand_in_for_ours(storm: Cluster, nimbus: Nimbus) -> None:
    """Java's spout, JoinResult and ReturnResults around the steps in Python; PrepareRequest is none that Thrift can name."""
    thrift = types()

    def java(name: str, *arguments: str) -> object:
        words = [thrift.JavaObjectArg(string_arg=each) for each in arguments]
        return thrift.ComponentObject(
            java_object=thrift.JavaObject(full_class_name=f"org.apache.storm.drpc.{name}", args_list=words)
        )

    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=2 * LIMIT) as server:
        topology = load_topology(str(REACH)).with_conf(server.conf, "reach-in-java")
        shipment = pack(topology)
        structure = storm_topology(shipment)
        structure.spouts["spout"].spout_object = java("DRPCSpout", "reach")
        structure.bolts["bolt4"].bolt_object = java("JoinResult", "prepare-request")
        structure.bolts["bolt5"].bolt_object = java("ReturnResults")
        options = thrift.SubmitOptions(initial_status=thrift.TopologyInitialStatus.ACTIVE)
        conf = json.dumps(storm_conf(topology))
        location = nimbus.upload(shipment.jar())
        nimbus.call("submitTopologyWithOpts", topology.name, location, conf, structure, options)
        reach = load_module(str(REACH)).reach
        with DRPCClient(port=server.port) as client:
            assert [client.execute("reach", url) for url in URLS] == [str(reach(url)) for url in URLS]
