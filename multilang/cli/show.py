"""``multilang show``: a topology as text, as a diagram or as data, with the way of each hop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multilang.component.errors import ConfigError
from multilang.exchange.hops import hops
from multilang.topology import TopologyError
from multilang.topology import show as shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.exchange.hops import Hop
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
    except (ConfigError, TopologyError) as error:
        raise click.UsageError(str(error)) from error
    if form == "mermaid":
        return shown.to_mermaid(topology.components, {hop.key for hop in found if hop.by_block})
    if form == "json":
        return _json(topology, found)
    return topology.to_text() + _text(found)


def _text(found: list[Hop]) -> str:
    if not found:
        return ""
    lines = ["", "between processes:"]
    for hop in found:
        source, stream, target = hop.key
        lines.append(f"  {source}{'' if stream == 'default' else f' ({stream})'} -> {target}: {hop}")
    return "\n".join(lines) + "\n"


def _json(topology: Topology, found: list[Hop]) -> str:
    import json

    document = shown.to_dict(topology.name, topology.conf, topology.components)
    ways = {hop.key: hop for hop in found}
    for component in document["components"]:
        for each in component["inputs"]:
            hop = ways[each["component"], each["stream"], component["id"]]
            each["exchange"] = _way(hop)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _way(hop: Hop) -> dict[str, Any]:
    if hop.against is not None:
        return {"by": "tuple", "because": hop.against}
    return {"by": "block"} if hop.by_root is None else {"by": "root", "because": hop.by_root}
