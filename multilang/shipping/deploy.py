"""Putting a topology in the place of one that runs, and putting that one back if the new one does not come up.

Before anything is ended, Nimbus is asked for all that the running one was submitted with. So it can be submitted again,
whoever submitted it, and from where.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multilang.protocol.codec import dumps
from multilang.shipping.blobs import read_blob
from multilang.shipping.conf import KRYO
from multilang.shipping.errors import NimbusError, RefusedError, ShippingError
from multilang.shipping.submit import SETTLED, check_on_cluster, check_ready, submit, wait_until_running
from multilang.shipping.thrift_types import types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from multilang.runtime.status import RunStatus
    from multilang.shipping.jar import Shipment
    from multilang.shipping.nimbus import Nimbus

DEFAULT_TIMEOUT = 30  # seconds: topology.message.timeout.secs
_POLL = 0.5  # seconds
_LONGEST_END = 120.0  # seconds for a killed topology to be gone
# Nimbus makes these anew for each submission.
_MADE_BY_NIMBUS = ("storm.id", "topology.submitter.principal", "topology.submitter.user", "storm.version")


@dataclass(frozen=True)
class Former:
    """All that a running topology was submitted with.

    Attributes:
        name: Its name.
        id: Its id.
        jar: Its jar.
        conf: Its conf, without what the cluster's own says, too.
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


@dataclass(frozen=True)
class Deployed:
    """The outcome of a deployment.

    Attributes:
        runs: Whether the new topology runs.
        status: Its last status.
        former: The one that it replaced; None: there was none.
        rolled_back: Whether the former one runs again; None: it was not submitted again.
    """

    runs: bool
    status: RunStatus
    former: Former | None
    rolled_back: bool | None = None


def former_of(nimbus: Nimbus, name: str) -> Former | None:
    """Return what a running topology was submitted with; None if none of that name runs.

    Args:
        nimbus: The connection.
        name: The topology's name.

    Raises:
        RefusedError: It is being killed or rebalanced, or its parts may not be read.
        NimbusError: Nimbus is gone.
    """
    found = next((each for each in nimbus.summary().topologies if each.name == name), None)
    if found is None:
        return None
    if found.status in ("KILLED", "REBALANCING"):
        raise RefusedError(
            "AlreadyAliveException",
            f"topology {name!r} is {found.status.lower()} on {nimbus.address}, and Storm does one thing at a time: wait until "
            f"that is over (multilang list)",
        )
    conf = json.loads(nimbus.call("getTopologyConf", found.id))
    of_cluster = json.loads(nimbus.call("getNimbusConf"))
    timeout = conf.get("topology.message.timeout.secs")
    return Former(
        name=name,
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


def _as_submitted(key: str, value: Any) -> Any:
    """Return a value of the conf as Nimbus takes it: of the registrations for Kryo it makes an object with nulls."""
    if key == KRYO and isinstance(value, dict):
        return [name if serializer is None else {name: serializer} for name, serializer in value.items()]
    return value


def deploy(
    nimbus: Nimbus,
    shipment: Shipment,
    *,
    drain: int | None = None,
    timeout: float = 120.0,
    settled: float = SETTLED,
    credentials: Mapping[str, str] | None = None,
    jars: Sequence[Path] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Deployed:
    """Submit a topology, in the place of the one of its name that runs, and wait until it runs.

    The running one's spouts are stopped, its tuples in flight get time, and it is killed. If the new one does not run in
    time or reports an error, it is killed, and the former one is submitted again as it was. Each of them claims what is
    stored under the topology's name, with a higher epoch than the one before.

    Args:
        nimbus: The connection.
        shipment: The packed topology.
        drain: Seconds for the tuples in flight; None: the running one's message timeout, after which each is acked or
            failed.
        timeout: Seconds for the new one to run, and for the former one to run again.
        settled: Seconds for which the new one must have run without an error; the time that its slowest component takes
            to start belongs to them.
        credentials: Storm's credentials of the topology; a former one that is submitted again gets them, too, since
            nobody can read its own.
        jars: Jars whose classes are added.
        say: Is told of each step, in a sentence.

    Raises:
        ShippingError: The topology can't be submitted; nothing was ended.
        NimbusError: Nimbus refuses something, or is gone; the error's text says what runs.
    """
    name = shipment.topology.name
    former = former_of(nimbus, name)
    if former is None:
        say(f"no topology {name!r} runs on {nimbus.address} yet")
        submit(nimbus, shipment, credentials=credentials, jars=jars)
        say(f"{name!r} was submitted")
        return Deployed(*wait_until_running(nimbus, name, timeout, settled=settled), None)
    shipment.jar(jars)
    check_ready(nimbus, shipment, credentials)  # all that can be refused is refused while the former one runs
    check_on_cluster(nimbus, shipment.topology)
    _end(nimbus, former, former.drain if drain is None else drain, say)
    try:
        submit(nimbus, shipment, active=former.active, credentials=credentials, jars=jars)
        say(f"the new one was submitted{'' if former.active else ', inactive as the former one was'}")
        runs, status = wait_until_running(nimbus, name, timeout, settled=settled)
    except (NimbusError, ShippingError) as error:
        say(f"the new one can't be submitted: {error}")
        _put_back(nimbus, former, credentials, timeout, say)
        raise
    except KeyboardInterrupt:
        say("broken off")
        _put_back(nimbus, former, credentials, timeout, say)
        raise
    if runs:
        return Deployed(True, status, former)
    say("the new one does not run")
    return Deployed(False, status, former, _put_back(nimbus, former, credentials, timeout, say))


def _end(nimbus: Nimbus, former: Former, drain: int, say: Callable[[str], None]) -> None:
    """Stop the spouts, give the tuples in flight time, and kill the topology."""
    if former.active:
        nimbus.deactivate(former.name)
        say(f"{former.name!r} emits no more; its tuples in flight get {drain} s")
        try:
            _sleep(drain)
        except KeyboardInterrupt:
            nimbus.activate(former.name)
            say(f"broken off; {former.name!r} emits again")
            raise
    nimbus.kill(former.name, 0)
    _wait_until_gone(nimbus, former.name)
    say("it is ended")


def _put_back(
    nimbus: Nimbus,
    former: Former,
    credentials: Mapping[str, str] | None,
    timeout: float,
    say: Callable[[str], None],
) -> bool:
    """Submit the former topology again, in the place of a new one that may be there; return whether it runs."""
    if any(each.name == former.name for each in nimbus.summary().topologies):
        nimbus.kill(former.name, 0)
        _wait_until_gone(nimbus, former.name)
    thrift = types()
    status = thrift.TopologyInitialStatus
    creds = thrift.Credentials(creds=dict(credentials)) if credentials else None
    options = thrift.SubmitOptions(initial_status=status.ACTIVE if former.active else status.INACTIVE, creds=creds)
    try:
        location = nimbus.upload(former.jar)
        nimbus.call("submitTopologyWithOpts", former.name, location, dumps(former.conf), former.structure, options)
    except NimbusError as error:
        raise NimbusError(
            f"the former {former.name!r} can't be submitted again, so that none of that name runs now: {error}"
        ) from error
    say("the former one was submitted again")
    return wait_until_running(nimbus, former.name, timeout)[0]


def _wait_until_gone(nimbus: Nimbus, name: str) -> None:
    deadline = time.monotonic() + _LONGEST_END
    while any(each.name == name for each in nimbus.summary().topologies):
        if time.monotonic() > deadline:
            raise NimbusError(
                f"topology {name!r} was killed {_LONGEST_END:g} s ago, and is still there; see nimbus.log"
            )
        _sleep(_POLL)


def _sleep(secs: float) -> None:
    time.sleep(secs)
