"""Submitting a topology to a cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from multilang.protocol.codec import dumps
from multilang.settings import ANNOUNCED, STORED_NAME
from multilang.shipping.blobs import check_map
from multilang.shipping.conf import KRYO, storm_conf
from multilang.shipping.credentials import credentials_of, with_zookeeper_login
from multilang.shipping.errors import ShippingError, refused
from multilang.shipping.java_objects import with_java
from multilang.shipping.nimbus import conf_of, nimbus_conf
from multilang.shipping.settling import announcements
from multilang.shipping.shippable import check_can_run
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from multilang.shipping.jar import Shipment
    from multilang.shipping.nimbus import Nimbus
    from multilang.shipping.storm_yaml import Address

OLDEST_STORM = (2, 6)  # the first with json-smart as JSON parser, whose classes shipping.conf names
SKIP_MISSING = "topology.skip.missing.kryo.registrations"
_SAMPLE_RATE = "topology.stats.sample.rate"


def submit(
    nimbus: Nimbus,
    shipment: Shipment,
    *,
    active: bool = True,
    credentials: Mapping[str, str] | None = None,
    jars: Sequence[Path] = (),
) -> None:
    """Upload the jar and submit the topology under its own name.

    Args:
        nimbus: The connection.
        shipment: The packed topology.
        active: Whether its spouts emit at once.
        credentials: Storm's credentials of the topology, which its workers' plugins get; those that
            ``topology.auto-credentials`` makes here are added.
        jars: Jars whose classes are added.

    Raises:
        ShippingError: Thrift can't express the topology, or the cluster's Storm is too old, or a plugin of
            ``topology.auto-credentials`` can't be met, or a component can't run with its conf and the cluster's.
        ShippingError: Nimbus refuses the topology.
    """
    shipment = with_java(shipment, jars)
    structure, conf, creds, summary = check_ready(nimbus, shipment, credentials)
    topology = shipment.topology
    # checked here because Nimbus would refuse it only after the upload
    there = {each.name: each.id for each in summary.topologies}
    if topology.name in there:
        raise _runs_already(nimbus, topology.name)
    other = there.get(beside_name(topology.name))
    if other and STORED_NAME not in conf and conf_of(nimbus, other).get(STORED_NAME) == topology.name:
        raise refused(
            "AlreadyAliveException",
            f"topology {topology.name!r} runs already on {nimbus.address}, as {beside_name(topology.name)!r}; replace it (--replace, "
            "or multilang deploy)",
        )
    thrift = types()
    status = thrift.TopologyInitialStatus
    location = nimbus.upload(shipment.jar(jars))
    options = thrift.SubmitOptions(
        initial_status=status.ACTIVE if active else status.INACTIVE,
        creds=thrift.Credentials(creds=creds) if creds else None,
    )
    try:
        nimbus.call("submitTopologyWithOpts", topology.name, location, dumps(conf), structure, options)
    except ShippingError as error:
        if error.kind != "AlreadyAliveException":
            raise
        raise _runs_already(nimbus, topology.name) from None  # since the upload began


def _runs_already(nimbus: Nimbus, name: str) -> ShippingError:
    return refused(
        "AlreadyAliveException",
        f"a topology {name!r} runs already on {nimbus.address}; replace it (--replace, or multilang deploy), kill it "
        f"(multilang kill {name}), or submit this one under another name (--name)",
    )


def beside_name(name: str) -> str:
    """Return the name of a topology that is started beside the one of a name, and takes its place."""
    return f"{name}-green"


def check_ready(
    nimbus: Nimbus, shipment: Shipment, credentials: Mapping[str, str] | None
) -> tuple[Any, dict[str, Any], dict[str, str], Any]:
    """Check all that can be refused before the upload.

    Args:
        nimbus: The connection.
        shipment: The packed topology.
        credentials: Storm's credentials of the topology.

    Returns:
        Storm's StormTopology, the conf to submit, the credentials, and Storm's ClusterSummary.

    Raises:
        ShippingError: Thrift can't express the topology, or the cluster's Storm is too old, or a plugin of
            ``topology.auto-credentials`` can't be met.
        ShippingError: A blob that the topology maps does not exist.
        ShippingError: A component can't run with its conf and the cluster's, which holds where the topology sets nothing.
    """
    check_complete(shipment)
    topology = shipment.topology
    structure = storm_topology(shipment)
    conf = with_zookeeper_login(storm_conf(topology))
    creds = credentials_of({**nimbus.conf, **conf}, credentials or {})
    summary = nimbus.summary()
    check_version(summary, conf, nimbus.address)
    mapped = conf.get("topology.blobstore.map")
    check_map(nimbus, mapped if isinstance(mapped, dict) else ())
    of_cluster = nimbus_conf(nimbus)
    check_can_run(topology, of_cluster)
    conf[ANNOUNCED] = announcements(shipment, {**of_cluster, **conf}[_SAMPLE_RATE])
    return structure, conf, creds, summary


def check_complete(shipment: Shipment) -> None:
    """Raise ShippingError if the conf lacks a setting, without which every worker would end."""
    if shipment.missing:
        raise ShippingError("; ".join(shipment.missing))


def check_version(summary: Any, conf: Mapping[str, Any], address: Address) -> None:
    """Raise ShippingError for a Storm whose workers would die with our jars. ``summary``: Storm's ClusterSummary."""
    version = next((each.version for each in summary.nimbuses if each.isLeader), "")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= OLDEST_STORM or conf.get(SKIP_MISSING) is True:
        return
    raise ShippingError(
        f"{address} is Storm {version}, and the oldest that is supported is {'.'.join(map(str, OLDEST_STORM))}.0: workers before "
        f"that lack the classes that {KRYO} names and die of it. {SKIP_MISSING}=true submits to it all the same; what is "
        "different there is in the manual, docs/shipping.md, under 'Versions of Storm'"
    )
