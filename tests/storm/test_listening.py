"""A cluster on this machine listens on loopback, and says so where it does not."""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster import Cluster
from multilang.shipping.cluster.artifacts import java
from multilang.shipping.cluster.binding import other_interfaces
from multilang.shipping.errors import ShippingError
from tests.cli.command import multilang

if TYPE_CHECKING:
    from multilang.shipping.nimbus import Nimbus

LISTENS = "0A"  # in /proc/net/tcp


def listening(pids: set[int]) -> dict[int, str]:
    """The ports on which these processes listen, and the addresses as /proc/net has them."""
    inodes = set()
    for pid in pids:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(each))
            except FileNotFoundError:
                continue
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and f"socket:[{words[9]}]" in inodes:
                address, _, port = words[1].rpartition(":")
                found[int(port, 16)] = address
    return found


def is_loopback(address: str) -> bool:
    if len(address) == 8:
        return socket.inet_ntoa(struct.pack("=I", int(address, 16))).startswith("127.")
    words = struct.pack("=4I", *(int(address[at : at + 8], 16) for at in range(0, 32, 8)))
    return socket.inet_ntop(socket.AF_INET6, words) in ("::1", "::ffff:127.0.0.1")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="a system that does not tell who listens")
def test_every_daemon_listens_on_loopback_alone(storm: Cluster, nimbus: Nimbus) -> None:
    daemons = {pid for pid in storm.status().values() if pid is not None}
    ports = listening(daemons)
    assert {storm.address.port, *(each.port for each in storm.drpc or ())} <= set(ports)
    assert len(ports) >= 3  # ZooKeeper's, too
    assert [port for port, address in ports.items() if not is_loopback(address)] == []
    assert not storm.exposed


def test_a_clusters_files_are_its_users_alone(storm: Cluster, nimbus: Nimbus) -> None:
    assert stat.S_IMODE(storm.home.stat().st_mode) == 0o700
    logs = [path for path in storm.logs.iterdir() if path.is_file()]
    assert logs
    assert [path for path in logs if path.stat().st_mode & 0o077] == []


@pytest.mark.skipif(not other_interfaces(), reason="a machine without a network")
def test_a_cluster_that_could_not_stay_on_loopback_does_not_start(
    storm_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {java()} --limit-modules java.base,java.se,jdk.unsupported "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    cluster = Cluster(tmp_path / "home")
    with pytest.raises(ShippingError, match=r"whoever reaches .* could run code as this user: install a JDK"):
        cluster.up()
    assert not cluster.processes()
    shown = multilang("cluster", "up", "--home", tmp_path / "home")
    assert "or give --expose" in shown.stderr
    try:
        shown = multilang("cluster", "up", "--home", tmp_path / "home", "--expose", "--no-drpc")
        assert shown.returncode == 0, shown.stderr
        assert "listens     on every interface: whoever reaches this machine runs code as you\n" in shown.stdout
    finally:
        cluster.down()
