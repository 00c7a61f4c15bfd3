"""The transformation of a topology before it is submitted: each chain becomes one component."""

from __future__ import annotations

from multilang.chains.component import Chain
from multilang.chains.names import TICKS, VIEW, chain_name, chain_stream
from multilang.chains.plan import chains
from multilang.component.base import Component
from multilang.topology.model import ComponentSpec, Input
from multilang.topology.shell import program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from multilang.chains.plan import Chains
    from multilang.topology import Topology


def by_chains(topology: Topology, captured: Collection[tuple[str, str]] = ()) -> Topology:
    """Return ``topology`` with each chain as one component; the topology itself, if there are none.

    Components find what was declared in their own conf, under ``VIEW``.

    Args:
        topology: The topology, with the conf of the run.
        captured: The streams, as (component, stream), whose tuples must be seen one by one.

    Raises:
        TopologyError: A setting has a wrong value.
    """
    found = chains(topology, captured)
    return _Joining(topology, found).joined() if found.members else topology


class _Joining:
    def __init__(self, topology: Topology, found: Chains) -> None:
        self._topology = topology
        self._found = found
        self._names: dict[str, str] = {}  # of the chains, by their first members
        taken = set(topology.components)
        for head, members in found.members.items():
            name = chain_name(members)
            while name in taken:
                name += "+"
            self._names[head] = name
            taken.add(name)
        self._chain_of = {member: self._names[head] for head, members in found.members.items() for member in members}

    def joined(self) -> Topology:
        changed = self._topology.with_conf({})
        specs = {}
        for id, spec in changed.components.items():
            if id in self._names:
                chain = self._chain(spec)
                chain.settle(changed.conf)
                specs[chain.id] = chain
            elif id not in self._chain_of:
                spec.inputs = [self._renamed(each) for each in spec.inputs]
                if isinstance(spec.component, Component) and program_of(spec.component) is None:
                    spec.conf = {**spec.conf, VIEW: self._view([id])}
                specs[id] = spec
        changed.components = specs
        return changed

    def _chain(self, head: ComponentSpec) -> ComponentSpec:
        members = self._found.members[head.id]
        specs = [self._topology[id] for id in members]
        parallelism, tasks = head.declared
        conf = {key: value for key, value in head.conf.items() if key.startswith(("topology.", "multilang."))}
        ticks = [spec.conf[TICKS] for spec in specs if TICKS in spec.conf]
        if ticks:
            conf[TICKS] = ticks[0]
        leaving = {
            chain_stream(spec.id, input_.stream): spec.streams[input_.stream]
            for spec in specs
            for target, input_ in self._topology.subscribers(spec.id)
            if (spec.id, input_.stream, target.id) not in self._found.joined
        }
        return ComponentSpec(
            self._names[head.id],
            "bolt",
            Chain({spec.id: spec.component for spec in specs}),  # type: ignore[misc]
            streams=leaving,
            parallelism=parallelism,
            tasks=tasks,
            conf={**conf, VIEW: self._view(members)},
            inputs=[self._renamed(each) for each in head.inputs],
            home=head.home,
        )

    def _renamed(self, input_: Input) -> Input:
        chain = self._chain_of.get(input_.component)
        if chain is None:
            return input_
        return Input(chain, chain_stream(input_.component, input_.stream), input_.grouping)

    def _view(self, components: list[str]) -> dict[str, Any]:
        """Return what these components' process needs to know of the topology as it was declared."""
        declared = self._topology
        local: dict[str, dict[str, list[str]]] = {}
        for source, stream, target in self._subscriptions(components):
            local.setdefault(source, {}).setdefault(stream, []).append(target)
        return {
            "chains": {self._names[head]: members for head, members in self._found.members.items()},
            "components": {
                id: {
                    "conf": declared[id].conf,
                    "ticks": bool(declared[id].conf.get(TICKS, declared.conf.get(TICKS))),
                    "context": _context(declared, id),
                }
                for id in components
            },
            "joined": local,
        }

    def _subscriptions(self, components: list[str]) -> list[tuple[str, str, str]]:
        return [
            key
            for id in components
            for each in self._topology[id].inputs
            if (key := (each.component, each.stream, id)) in self._found.joined
        ]


def _context(topology: Topology, id: str) -> dict[str, Any]:
    """Return the part of a component's context that is the same for all of its tasks."""
    context = topology.context_for(0, {0: id})
    del context["taskid"], context["task->component"]
    return context
