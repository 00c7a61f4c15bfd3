"""The maps that a transactional topology's bolts update, which executors must be able to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.transactional.maps import MemoryBacking, SqliteBacking
from multilang.transactional.maps.base import maps_of
from spark_bridge.job.errors import NotOnSparkError

if TYPE_CHECKING:
    from multilang.topology.model import Topology


def check_maps(topology: Topology, master: str) -> None:
    """Raise NotOnSparkError for a map among a bolt's attributes that the bolt's tasks can't reach."""
    for spec in topology.bolts.values():
        for found in maps_of(innermost(spec.component)):
            is_memory = isinstance(found.backing, MemoryBacking)
            if is_memory or (isinstance(found.backing, SqliteBacking) and not master.startswith("local")):
                elsewhere = "a SqliteBacking or a RedisBacking" if master.startswith("local") else "a RedisBacking"
                raise NotOnSparkError(
                    f"bolt {spec.id!r} updates a map ({found.backing.describe()}), which the executors of {master} don't share: "
                    f"give it {elsewhere}"
                )
