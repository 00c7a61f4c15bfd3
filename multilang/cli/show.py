"""``multilang show``: a topology as text, as a diagram or as data, with the way of each hop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multilang.blocks.hops import hops
from multilang.chains.names import OFF
from multilang.chains.plan import chains, way_of
from multilang.component.errors import ConfigError
from multilang.topology import TopologyError
from multilang.topology import show as shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.blocks.hops import Hop
    from multilang.chains.plan import Chains
    from multilang.topology import Topology


def show_topology(topology: Topology, form: str, conf: Mapping[str, Any]) -> str:
    """Return what the command prints.

    Args:
        topology: The topology.
        form: "text", "mermaid" or "json".
        conf: What is added to its conf.
    """
    try:
        if conf:
            topology = topology.with_conf(conf)
        found = hops(topology)
        joining = chains(topology)
    except (ConfigError, TopologyError) as error:
        raise click.UsageError(str(error)) from error
    if form == "mermaid":
        thick = {hop.key for hop in found if hop.by_block and hop.key not in joining.joined}
        return shown.to_mermaid(topology.components, thick, list(joining.members.values()))
    if form == "json":
        return _json(topology, found, joining)
    return topology.to_text() + _text(topology, found, joining)


def _text(topology: Topology, found: list[Hop], joining: Chains) -> str:
    if not found:
        return ""
    lines = []
    if joining.members:
        lines += ["", "in one process:", *(f"  {' + '.join(members)}" for members in joining.members.values())]
    between = [hop for hop in found if hop.key not in joining.joined]
    if between:
        lines += ["", "between processes:"]
    for hop in between:
        source, stream, target = hop.key
        apart = f"; not in one process: {_apart(hop, joining)}" if _is_on(topology, hop) else ""
        lines.append(f"  {source}{'' if stream == 'default' else f' ({stream})'} -> {target}: {hop}{apart}")
    return "\n".join(lines) + "\n"


def _is_on(topology: Topology, hop: Hop) -> bool:
    """Return whether the subscriber may be joined to its source, as far as its own setting says."""
    return way_of(topology, topology[hop.target]) != OFF


def _apart(hop: Hop, joining: Chains) -> str:
    return joining.against[hop.key]


def _json(topology: Topology, found: list[Hop], joining: Chains) -> str:
    import json

    document = shown.to_dict(topology.name, topology.conf, topology.components)
    ways = {hop.key: hop for hop in found}
    for component in document["components"]:
        for each in component["inputs"]:
            hop = ways[each["component"], each["stream"], component["id"]]
            each["exchange"] = {"by": "chain"} if hop.key in joining.joined else _way(hop)
            if hop.key not in joining.joined:
                each["apart"] = _apart(hop, joining)
    document["chains"] = list(joining.members.values())
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _way(hop: Hop) -> dict[str, Any]:
    if hop.against is not None:
        return {"by": "tuple", "because": hop.against}
    return {"by": "block"} if hop.by_root is None else {"by": "root", "because": hop.by_root}
