"""The maps that a transactional topology's bolts update: executors must be able to reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.topology.errors import TopologyError
from multilang.transactional.maps.base import maps_of

if TYPE_CHECKING:
    from multilang.topology.model import Topology


def check_maps(topology: Topology, master: str) -> None:
    """Raise TopologyError for a map among a bolt's attributes that the bolt's tasks can't reach."""
    for spec in topology.bolts.values():
        for found in maps_of(innermost(spec.component)):
            if not found.backing.durable or (found.backing.local and not master.startswith("local")):
                raise TopologyError(
                    f"bolt {spec.id!r} updates a map ({found.backing.describe()}), which the executors of {master} don't share: "
                    "give it one on a server, such as a RedisBacking"
                )
