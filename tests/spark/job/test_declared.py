"""Spark runs the declared topology, and refuses what it has no form for."""

from __future__ import annotations

import pytest

from multilang import TopologyBuilder
from multilang.topology.errors import TopologyError
from spark_bridge.job.declared import as_declared
from tests.topology import test_transform
from tests.topology.test_declared import in_transactions, stateful


@pytest.mark.parametrize("build", [stateful, in_transactions])
def test_state_and_transactions_run_as_they_were_declared(build) -> None:
    topology = build()
    assert list(as_declared(topology).components) == list(topology.declared.components)


def test_a_transformation_of_a_users_own_is_never_left_out() -> None:
    with pytest.raises(TopologyError, match="bolt 'double' runs inside a Auditor"):
        as_declared(test_transform.topology)


def test_a_topology_without_additions_is_taken_as_it_is() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", test_transform.Numbers)
    topology = builder.build("plain")
    assert as_declared(topology) is topology
