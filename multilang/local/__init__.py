"""The embedded cluster: plays Storm for a topology on one machine, in three ways with the same semantics.

``LocalCluster(mode="process")`` gives every task a process of its own, over the real wire; ``"inprocess"`` runs the
components here; ``"simulated"`` runs them on a virtual clock with seeded faults.
"""

from __future__ import annotations

from multilang.local.cluster import LocalCluster
from multilang.local.errors import LocalClusterError, NotDrainedError, TaskStartError
from multilang.local.faults import Faults
from multilang.local.topology import LocalTopology, TaskError, TaskInfo
from multilang.runtime.counters import Counters

__all__ = [
    "Counters",
    "Faults",
    "LocalCluster",
    "LocalClusterError",
    "LocalTopology",
    "NotDrainedError",
    "TaskError",
    "TaskInfo",
    "TaskStartError",
]
