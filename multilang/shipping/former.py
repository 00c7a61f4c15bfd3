"""All that a running topology was submitted with, so that it can be submitted again, whoever submitted it, and from where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilang.protocol.codec import dumps
from multilang.shipping.blobs import read_blob
from multilang.shipping.conf import KRYO
from multilang.shipping.errors import refused
from multilang.shipping.nimbus import conf_of, nimbus_conf
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from multilang.shipping.nimbus import Nimbus

DEFAULT_TIMEOUT = 30  # seconds: topology.message.timeout.secs
# Nimbus makes these anew for each submission.
_MADE_BY_NIMBUS = ("storm.id", "topology.submitter.principal", "topology.submitter.user", "storm.version")


@dataclass(frozen=True)
class Former:
    """All that a running topology was submitted with.

    Attributes:
        name: Its name.
        id: Its id.
        jar: Its jar.
        conf: Its conf, without the entries of the cluster's own.
        structure: Storm's StormTopology.
        active: Whether its spouts emitted.
        drain: The seconds after which each of its tuples is acked or failed, by its conf.
    """

    name: str
    id: str
    jar: bytes
    conf: dict[str, Any]
    structure: Any
    active: bool
    drain: int


def former_of(nimbus: Nimbus, found: Any) -> Former:
    """Return what a running topology was submitted with.

    Args:
        nimbus: The connection.
        found: Storm's TopologySummary.

    Raises:
        ShippingError: It is being killed or rebalanced, or its parts may not be read.
        ShippingError: Nimbus can't be reached.
    """
    if found.status in ("KILLED", "REBALANCING"):
        raise refused(
            "AlreadyAliveException",
            f"topology {found.name!r} is {found.status.lower()} on {nimbus.address}, and Storm does one thing at a time: wait until "
            f"that is over (multilang list)",
        )
    conf = conf_of(nimbus, found.id)
    of_cluster = nimbus_conf(nimbus)
    timeout = conf.get("topology.message.timeout.secs")
    return Former(
        name=found.name,
        id=found.id,
        jar=b"".join(read_blob(nimbus, f"{found.id}-stormjar.jar")),
        conf={
            key: _as_submitted(key, value)
            for key, value in conf.items()
            if key not in _MADE_BY_NIMBUS and not (key in of_cluster and of_cluster[key] == value)
        },
        structure=nimbus.call("getUserTopology", found.id),
        active=found.status == "ACTIVE",
        drain=timeout if isinstance(timeout, int) else DEFAULT_TIMEOUT,
    )


def submit_again(nimbus: Nimbus, former: Former, credentials: Mapping[str, str] | None) -> None:
    """Submit a former topology as it was, with these credentials. Raises ShippingError."""
    thrift = types()
    status = thrift.TopologyInitialStatus
    options = thrift.SubmitOptions(
        initial_status=status.ACTIVE if former.active else status.INACTIVE,
        creds=thrift.Credentials(creds=dict(credentials)) if credentials else None,
    )
    location = nimbus.upload(former.jar)
    nimbus.call("submitTopologyWithOpts", former.name, location, dumps(former.conf), former.structure, options)


def _as_submitted(key: str, value: Any) -> Any:
    """Return a value of the conf as Nimbus takes it: of the registrations for Kryo it makes an object with nulls."""
    if key == KRYO and isinstance(value, dict):
        return [name if serializer is None else {name: serializer} for name, serializer in value.items()]
    return value
