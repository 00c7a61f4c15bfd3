"""The maps that a transactional topology's bolts update, which executors must be able to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.wrapper import innermost
from multilang.dotted import by_dotted_name
from multilang.state.databases import DATABASES
from multilang.transactional.maps.base import maps_of
from spark_bridge.job.errors import NotOnSparkError

if TYPE_CHECKING:
    from multilang.topology.model import Topology
    from multilang.transactional.maps import Backing


def check_maps(topology: Topology, master: str) -> None:
    """Raise NotOnSparkError for a map among a bolt's attributes that the bolt's tasks can't reach."""
    for spec in topology.bolts.values():
        for found in maps_of(innermost(spec.component)):
            if not _is_shared(found.backing, master):
                kinds = (by_dotted_name(row.maps) for row in DATABASES.values() if row.maps)
                elsewhere = " or ".join(f"a {kind.__name__}" for kind in kinds if _is_shared(kind, master))
                raise NotOnSparkError(
                    f"bolt {spec.id!r} updates a map ({found.backing.describe()}), which the executors of {master} don't share: "
                    f"give it {elsewhere}"
                )


def _is_shared(backing: Backing | type[Backing], master: str) -> bool:
    """Return whether all executors of this master can reach the values."""
    return backing.durable and (not backing.local or master.startswith("local"))
