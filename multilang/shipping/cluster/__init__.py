"""A real Storm on this machine, for tests and laptops: ZooKeeper, Nimbus and supervisors on loopback."""

from __future__ import annotations

from multilang.shipping.cluster.artifacts import STORM_VERSION, missing_programs
from multilang.shipping.cluster.cluster import Cluster
from multilang.shipping.cluster.state import default_home

__all__ = ["STORM_VERSION", "Cluster", "default_home", "missing_programs"]
