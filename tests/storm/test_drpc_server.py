"""Storm's own DRPC server runs in the cluster, for whoever asks and for whoever answers."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from thriftpy2.parser import load_fp
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TFramedTransportFactory

from multilang.shipping.cluster import Cluster
from tests.storm.conftest import LIMIT, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from multilang.shipping.storm_yaml import Address

IDL = """
struct Request { 1: required string func_args; 2: required string request_id; }
service Clients { string execute(1: string name, 2: string arguments); }
service Topologies { void result(1: string id, 2: string result); Request fetchRequest(1: string name); }
"""


@contextmanager
def client(service: Any, at: Address) -> Iterator[Any]:
    made = make_client(
        service,
        at.host,
        at.port,
        proto_factory=TBinaryProtocolFactory(),
        trans_factory=TFramedTransportFactory(),
        timeout=LIMIT * 1000,
    )
    try:
        yield made
    finally:
        made.close()


def test_a_request_finds_whoever_answers_it(storm: Cluster) -> None:
    if storm.drpc is None:
        assert "CI" not in os.environ
        pytest.skip("there is no JDK here, which the DRPC server needs")
    clients, topologies = storm.drpc
    idl = load_fp(StringIO(IDL), "drpc_in_small_thrift")
    answers: list[str] = []

    def ask() -> None:
        with client(idl.Clients, clients) as asking:
            answers.append(asking.execute("double", "21"))

    asking = threading.Thread(target=ask)
    asking.start()
    with client(idl.Topologies, topologies) as answering:
        requests: list[Any] = []

        def fetched() -> bool:
            requests.append(answering.fetchRequest("double"))
            return bool(requests[-1].request_id)

        wait_for(fetched, "the request is there")
        answering.result(requests[-1].request_id, str(2 * int(requests[-1].func_args)))
    asking.join(LIMIT)
    assert answers == ["42"]


def test_ports_are_those_that_the_conf_names(tmp_path: Path) -> None:
    from multilang.shipping.cluster.state import new_state

    conf = {"drpc.port": 3772, "nimbus.thrift.port": 6627}
    state = new_state("2.8.3", 1, 2, True, conf)
    assert (state.drpc, state.nimbus) == (3772, 6627)
    others = {state.drpc_invocations, state.zookeeper, *state.supervisors, *state.slots[0]}
    assert len(others) == 5
    assert not others & {3772, 6627}
    assert new_state("2.8.3", 1, 2, False, conf).daemons == ["zookeeper", "nimbus", "supervisor-1"]
