"""Replacement of components of a topology: by a recording, or by stand-ins."""

from __future__ import annotations

from multilang.topology.errors import TopologyError
from multilang.topology.model import ComponentSpec, Topology
from multilang.topology.transform import transformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.component.base import Component
    from multilang.component.spout import Spout


def with_spouts(topology: Topology, spouts: Mapping[str, Spout], why: str) -> Topology:
    """Return a copy of a topology with some spouts replaced; see ``with_components``.

    Raises:
        TopologyError: As there, or a name is none of a spout.
    """
    for id in spouts:
        spec = topology.declared[id]
        if spec.kind != "spout":
            raise TopologyError(f"{why}: {id!r} of topology {topology.name!r} is a {spec.kind}; name a spout")
    return with_components(topology, spouts, why)


def with_components(topology: Topology, components: Mapping[str, Component], why: str) -> Topology:
    """Return a copy of a topology with some components replaced.

    The new ones have the streams and subscriptions of those that they replace, and as many tasks. The additions for
    state are made anew.

    Args:
        topology: The topology.
        components: By id, the new components.
        why: The reason, which an error begins with.

    Raises:
        TopologyError: There is no such component, or the topology's components are part of what it was built of, as those of
            DRPC and of transactional topologies.
    """
    declared = topology.declared
    specs = {id: spec.copy() for id, spec in declared.components.items()}
    for id, component in components.items():
        spec = declared[id]
        parallelism, tasks = spec.declared
        component.output_fields = None  # type: ignore[misc]
        component.output_streams = dict(spec.streams)  # type: ignore[misc]
        specs[id] = ComponentSpec(
            id,
            spec.kind,
            component,
            streams=spec.streams,
            parallelism=parallelism,
            tasks=tasks,
            conf=spec.conf,
            inputs=spec.inputs,
        )
    # Without a module: other processes must get this topology, and not the one that the module has.
    whole = transformed(Topology(topology.name, topology.conf, specs))
    if set(whole.components) != set(topology.components):
        raise TopologyError(
            f"{why}: topology {topology.name!r} was built by a builder of its own, as those of DRPC and transactions, whose "
            "components can't be replaced"
        )
    whole.home = topology.home
    return whole
