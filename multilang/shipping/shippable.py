"""What no shipping can help: topologies that Storm itself can't run as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from multilang.topology import Topology


def check_shippable(topology: Topology) -> None:
    """Raise ShippingError for what runs in the embedded cluster but not in a Storm worker."""
    for spec in topology.components.values():
        for input_ in spec.inputs:
            if input_.grouping.custom is not None:
                raise ShippingError(
                    f"bolt {spec.id!r} subscribes to {input_.component!r} by {type(input_.grouping.custom).__name__}, a "
                    "custom grouping in Python: Storm's workers choose tasks in Java. Let the source choose: declare the "
                    "stream with Stream([...], direct=True), emit with direct_task=, and subscribe with direct_grouping"
                )
