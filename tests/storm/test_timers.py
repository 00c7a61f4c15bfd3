"""Timers of a spout and of a bolt on a real Storm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.storm.conftest import SHIPPED, acked, give, wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_a_spout_emits_and_a_bolt_acks_from_timers(storm: Cluster, nimbus: Nimbus) -> None:
    give(storm, SHIPPED / "timed.py", "timed")
    wait_for(lambda: acked(nimbus, "timed", "numbers") == (10, 0), "the ten tuples are acked")
