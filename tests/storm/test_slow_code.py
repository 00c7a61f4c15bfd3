"""A component whose code takes long is not taken for dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.soak import soak_only
from tests.storm.conftest import SHIPPED, acked, give, wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@soak_only  # tests/component/test_alive.py has a parent that gives up as Storm does
def test_code_that_is_slower_than_the_subprocess_timeout_ends_and_is_acked(storm: Cluster, nimbus: Nimbus) -> None:
    # Were there no signs of life, each try would be broken off before its end, and no tuple ever acked.
    give(storm, SHIPPED / "slow.py", "slow")
    wait_for(lambda: acked(nimbus, "slow", "slow")[0] == 2, "both tuples are acked")
