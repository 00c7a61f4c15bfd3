"""The embedded cluster: it runs a topology on one machine as Storm would, in three modes with the same semantics.

With ``LocalCluster(mode="process")`` every task has a process of its own, over the real wire; ``"inprocess"`` runs the
components in this process; ``"simulated"`` runs them on a virtual clock with faults drawn from a seed.
"""

from __future__ import annotations

from multilang.engine.counters import Counters
from multilang.errors import LocalClusterError, TaskStartError
from multilang.local.cluster import LocalCluster
from multilang.local.errors import NotDrainedError
from multilang.local.faults import Faults
from multilang.local.topology import LocalTopology, TaskError, TaskInfo

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
