"""Captured tuples that are passed to a function instead of being stored."""

from __future__ import annotations

import pytest

from multilang import LocalCluster
from multilang.local import LocalClusterError
from tests.local.letters import topology
from tests.patience import patient


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_a_function_gets_each_tuple_in_order_and_nothing_is_kept(mode):
    got = []
    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology, capture={("upper", "default"): lambda tup: got.append(tup["letter"])})
        run.wait(timeout=patient(60))
        with pytest.raises(KeyError, match="not captured"):
            run.captured("upper")
    assert got == list("ABCDE")


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_what_a_function_raises_is_no_fault_of_the_component_and_ends_the_wait(mode):
    def take(tup):
        raise ZeroDivisionError("mine")

    with LocalCluster(mode) as cluster:
        run = cluster.submit(topology, capture={"upper": take})
        with pytest.raises(
            LocalClusterError, match=r"ZeroDivisionError\('mine'\) of the function that captures 'upper'"
        ):
            run.wait(timeout=patient(60))
        assert run.errors == []


def test_one_component_to_capture_may_be_given_by_itself():
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(topology, capture="upper")
        run.wait(timeout=patient(60))
        assert [tup["letter"] for tup in run.captured("upper")] == list("ABCDE")
        with pytest.raises(LocalClusterError, match="no topology 'leters' runs here; did you mean 'letters'"):
            cluster.kill("leters")
