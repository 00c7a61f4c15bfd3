"""The stored state of a cluster, in its folder. It is complete before anything starts, so that any ``up`` can continue."""

from __future__ import annotations

import json
import os
import random
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.shipping.cluster.artifacts import cache_folder
from multilang.shipping.errors import ShippingError
from multilang.shipping.storm_yaml import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "cluster.json"
LOOPBACK = "127.0.0.1"
PORTS = ("storm.zookeeper.port", "nimbus.thrift.port", "drpc.port", "drpc.invocations.port")  # conf may set them


@dataclass(frozen=True)
class ClusterState:
    """The ports of a cluster. ``exposed``: whether daemons may listen on every interface, as those of older ones do.

    ``slots``: the ports of each supervisor's workers. ``ready``: True once all daemons were up.

    ``drpc``: the port of Storm's DRPC server for clients; ``drpc_invocations``: for topologies. None: there is no DRPC
    server.
    """

    version: str
    zookeeper: int
    nimbus: int
    supervisors: list[int]
    slots: list[list[int]]
    drpc: int | None = None
    drpc_invocations: int | None = None
    ready: bool = False
    exposed: bool = True

    @property
    def address(self) -> Address:
        """The address of Nimbus."""
        return Address(LOOPBACK, self.nimbus)

    @property
    def daemons(self) -> list[str]:
        """The names of the daemons, in the order in which they are started."""
        supervisors = [f"supervisor-{n}" for n in range(1, len(self.supervisors) + 1)]
        return ["zookeeper", "nimbus", *supervisors, *(["drpc"] if self.drpc else [])]


def default_home() -> Path:
    """Return the folder of this user's cluster: ``MULTILANG_CLUSTER_HOME``, else one in the cache folder."""
    return Path(os.environ.get("MULTILANG_CLUSTER_HOME") or cache_folder() / "cluster").absolute()


def new_state(
    version: str, supervisors: int, slots: int, drpc: bool, conf: Mapping[str, Any], exposed: bool = False
) -> ClusterState:
    """Choose ports for a cluster of ``supervisors``, each with ``slots`` workers: those in ``conf``, else free ones."""
    free = iter(_free_ports(4 + supervisors * (1 + slots)))

    def port(key: str) -> int:
        number = conf.get(key, 0)
        if not isinstance(number, int) or not 0 <= number <= 65535:
            raise ShippingError(f"{key} is {number!r}; a port is a number from 1 to 65535")
        return number or next(free)

    return ClusterState(
        version,
        port("storm.zookeeper.port"),
        port("nimbus.thrift.port"),
        [next(free) for _ in range(supervisors)],
        [[next(free) for _ in range(slots)] for _ in range(supervisors)],
        port("drpc.port") if drpc else None,
        port("drpc.invocations.port") if drpc else None,
        exposed=exposed,
    )


def read_state(home: Path) -> ClusterState | None:
    """Return the state in a folder, or None if there is none that can be read."""
    try:
        return ClusterState(**json.loads((home / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_state(home: Path, state: ClusterState) -> None:
    """Store the state. Whatever happens, the old state or the new one is there."""
    part = home / f".{FILE}"
    part.write_text(json.dumps(asdict(state)) + "\n")
    part.replace(home / FILE)


def _free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens, below those of outgoing connections (32768 and up on Linux)."""
    found: list[int] = []
    for port in random.sample(range(20000, 32000), 2000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ShippingError(f"there are no {count} free ports between 20000 and 32000")
