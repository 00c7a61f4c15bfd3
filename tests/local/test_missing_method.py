"""A component that lacks the method that is called for every tuple ends its topology, instead of dying again and again."""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster, LocalClusterError
from multilang.topology import TopologyBuilder
from tests.local.lacking import Nothing, Numbers, Silent
from tests.patience import patient


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
@pytest.mark.parametrize(
    ("spout", "said"),
    [
        (Numbers, r"component 'nothing'.*Nothing has no process method: define process\(self, tup\)"),
        (Silent, r"component 'numbers'.*Silent has no next_tuple method: define next_tuple\(self\)"),
    ],
)
def test_the_topology_ends_with_one_sentence(mode, spout, said):
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("nothing", Nothing).shuffle_grouping("numbers")
    with LocalCluster(mode=mode) as cluster:
        run = cluster.submit(builder.build("t"))
        with pytest.raises(LocalClusterError, match=said):
            run.wait(timeout=patient(60))
