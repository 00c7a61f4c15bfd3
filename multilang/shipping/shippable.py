"""The check for topologies that Storm itself can't run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from multilang.engine.settings import Settings
from multilang.shipping.errors import ShippingError
from multilang.topology.check import check_components
from multilang.topology.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.topology import Topology


def check_shippable(topology: Topology) -> None:
    """Raise ShippingError for a topology that only the embedded cluster can run, ConfigError for one that runs
    nowhere.
    """
    _check_name(topology.name)
    Settings(topology.conf)
    check_can_run(topology)
    for spec in topology.components.values():
        Settings({**topology.conf, **spec.conf})
        for input_ in spec.inputs:
            refused = input_.grouping.refused_by_storm()
            if refused is not None:
                raise ShippingError(f"bolt {spec.id!r} subscribes to {input_.component!r} {refused}")


def check_can_run(topology: Topology, cluster: Mapping[str, Any] | None = None) -> None:
    """Raise ShippingError if a component refuses the conf that it would find on a cluster.

    Args:
        topology: The topology.
        cluster: The cluster's own settings, which hold where the topology sets nothing; None: they are not known.
    """
    try:
        check_components(topology, cluster)
    except TopologyError as error:
        raise ShippingError(str(error)) from error


def _check_name(name: str) -> None:
    """Raise ShippingError for a name that is no good name of a folder on a supervisor.

    Nimbus refuses some characters. It accepts others, such as a space or an umlaut, which the supervisor escapes as in
    a URL. But its cleanup, twice a minute, then finds a folder that it does not know, and removes the topology's files.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]+", name) is None:
        better = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
        raise ShippingError(
            f"Storm takes no topology called {name!r}, or loses its files: a name has letters from A to Z, digits, - and _; "
            f"give it another, such as {better or 'word-count'!r}: build(name), or --name of multilang submit"
        )
