"""The addresses that a cluster's daemons listen on: loopback alone, unless the cluster is exposed.

ZooKeeper has a setting for its address. Storm's Thrift servers have none, but their transport may be another class, and
that of ``LoopbackTransport.java`` listens on loopback. A JDK compiles it; a mere runtime can't.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.shipping.cluster import compiled
from multilang.shipping.cluster.artifacts import runs_sources
from multilang.shipping.errors import ShippingError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE = Path(__file__).with_name("LoopbackTransport.java")
_TRANSPORTS = {  # the settings of the Thrift servers of each daemon
    "nimbus": ("nimbus.thrift.transport",),
    "supervisor": ("supervisor.thrift.transport",),
    "drpc": ("drpc.thrift.transport", "drpc.invocations.thrift.transport"),
}
_PLAIN = "org.apache.storm.security.auth.SimpleTransportPlugin"
_UP = 1  # Linux's IFF_UP


def check(conf: Mapping[str, Any]) -> None:
    """Refuse to start a cluster on loopback alone where that can't be had.

    Raises:
        ShippingError: Storm's daemons would listen on another network, too.
    """
    if runs_sources() or all(_own_transport(conf, key) for keys in _TRANSPORTS.values() for key in keys):
        return
    others = other_interfaces()
    if others:
        raise ShippingError(
            "there is no JDK, without which Storm's daemons listen on every interface, and whoever reaches "
            f"{', '.join(others)} could run code as this user: install a JDK, 17 or newer (Debian, Ubuntu: apt-get install "
            "default-jdk-headless), or give --expose"
        )


def other_interfaces() -> list[str]:
    """Return the names of this machine's interfaces that are up, without loopback."""
    return [name for _, name in socket.if_nameindex() if not name.startswith("lo") and _is_up(name)]


def prepare(home: Path, jars: Path) -> None:
    """Put the transport that listens on loopback into a cluster's folder, if there is a JDK. Raises ShippingError."""
    if runs_sources():
        compiled.put(_SOURCE, jars, _jar(home))


def options(home: Path, daemon: str, conf: Mapping[str, Any]) -> str:
    """Return the settings with which a daemon listens on loopback, for its ``storm.options``; empty if none are needed.

    They are not in storm.yaml, which clients read, too: these have no such class.
    """
    if not _jar(home).exists():
        return ""
    keys = _TRANSPORTS.get(daemon.partition("-")[0], ())
    return ",".join(f"{key}={_SOURCE.stem}" for key in keys if not _own_transport(conf, key))


def _own_transport(conf: Mapping[str, Any], key: str) -> bool:
    """Return whether a conf has a transport of its own, such as one that asks for passwords."""
    return (conf.get(key) or conf.get("storm.thrift.transport") or _PLAIN) != _PLAIN


def _jar(home: Path) -> Path:
    return home / "extlib" / "loopback.jar"  # a folder on the class path of workers, too


def _is_up(name: str) -> bool:
    try:
        return bool(int(Path(f"/sys/class/net/{name}/flags").read_text(), 16) & _UP)
    except (OSError, ValueError):
        return True  # a system that does not tell
