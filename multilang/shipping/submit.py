"""Submitting a topology to a cluster, and waiting until it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from multilang.protocol.codec import dumps
from multilang.shipping.blobs import check_map
from multilang.shipping.conf import storm_conf
from multilang.shipping.errors import RefusedError
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import TopologyStatus, topology_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.shipping.jar import Shipment
    from multilang.shipping.nimbus import Nimbus

SETTLED = 5  # seconds that every executor must have been up: a component that dies at start takes its worker with it
_POLL = 0.5  # seconds


def submit(nimbus: Nimbus, shipment: Shipment, *, active: bool = True) -> None:
    """Upload the jar and submit the topology under its own name. ``active``: let its spouts emit at once.

    Raises ShippingError for what Thrift can't express, RefusedError for what Nimbus finds wrong.
    """
    topology = shipment.topology
    structure = storm_topology(shipment)
    if any(each.name == topology.name for each in nimbus.summary().topologies):
        # Nimbus would say so only after the upload.
        raise RefusedError(
            "AlreadyAliveException",
            f"a topology {topology.name!r} runs already on {nimbus.address}; kill it (multilang kill {topology.name}), "
            "or submit this one under another name (--name)",
        )
    conf = storm_conf(topology)
    mapped = conf.get("topology.blobstore.map")
    check_map(nimbus, mapped if isinstance(mapped, dict) else ())  # Nimbus would say so only after the upload
    thrift = types()
    status = thrift.TopologyInitialStatus
    location = nimbus.upload(shipment.jar())
    nimbus.call(
        "submitTopologyWithOpts",
        topology.name,
        location,
        dumps(conf),
        structure,
        thrift.SubmitOptions(initial_status=status.ACTIVE if active else status.INACTIVE),
    )


def wait_until_running(
    nimbus: Nimbus,
    name: str,
    timeout: float,
    progress: Callable[[TopologyStatus], None] = lambda _: None,
) -> tuple[bool, TopologyStatus]:
    """Wait until every executor has been up for SETTLED seconds, or an error is reported; whether it runs without any.

    ``timeout``: seconds after which the answer is no. Raises NimbusError when Nimbus is gone, or the topology.
    """
    deadline = time.monotonic() + timeout
    while True:
        status = topology_status(nimbus.topology(name))
        progress(status)
        if status.errors:
            return False, status
        if status.components and not status.missing and status.least_uptime >= SETTLED:
            return True, status
        if time.monotonic() > deadline:
            return False, status
        time.sleep(_POLL)
