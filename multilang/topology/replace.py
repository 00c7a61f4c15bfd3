"""A topology with other spouts in the place of some of its own: a recording, or lines of a file."""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.model import ComponentSpec, Topology
from multilang.topology.transform import transformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.component.spout import Spout


def with_spouts(topology: Topology, spouts: Mapping[str, Spout], why: str) -> Topology:
    """Return a topology like another one, with other spouts in the place of some; the other one is not changed.

    The new spouts have the streams of those that they replace, and as many tasks. What state adds to a topology is
    added anew.

    Args:
        topology: The topology.
        spouts: By id, the new spouts.
        why: The reason, which an error begins with.

    Raises:
        TopologyError: A name is none of a spout, or the topology's spouts are part of what it was built of, as those of
            DRPC and of transactional topologies.
    """
    declared = topology.declared
    specs = {id: spec.copy() for id, spec in declared.components.items()}
    for id, spout in spouts.items():
        spec = declared[id]
        if spec.kind != "spout":
            raise TopologyError(f"{why}: {id!r} of topology {topology.name!r} is a {spec.kind}; name a spout")
        parallelism, tasks = spec.declared
        spout.output_fields = None  # type: ignore[misc]
        spout.output_streams = dict(spec.streams)  # type: ignore[misc]
        specs[id] = ComponentSpec(
            id, "spout", spout, streams=spec.streams, parallelism=parallelism, tasks=tasks, conf=spec.conf
        )
    # Without a module: other processes must get this topology, and not the one that the module has.
    whole = transformed(Topology(topology.name, topology.conf, specs))
    if set(whole.components) != set(topology.components):
        raise TopologyError(
            f"{why}: topology {topology.name!r} was built by a builder of its own, as those of DRPC and transactions, whose "
            "spouts can't be replaced"
        )
    whole.home = topology.home
    return whole
