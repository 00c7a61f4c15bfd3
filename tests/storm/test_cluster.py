"""A cluster comes up, stays up, and leaves nothing behind, whatever happens to the command that starts it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from multilang.shipping.cluster import Cluster, binding
from multilang.shipping.cluster.artifacts import runs_sources, storm_jars
from multilang.shipping.errors import ShippingError
from tests.cli.command import COMMAND, ROOT, multilang
from tests.soak import soak_only
from tests.storm import jvm
from tests.storm.conftest import LIMIT, wait_for


def alive(pid: int) -> bool:
    """Return whether a process still runs. One that has ended, and whose status nobody has read, does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return bool(shown.stdout.strip()) and not shown.stdout.strip().startswith("Z")


def test_up_goes_on_after_kill_9_and_down_leaves_nothing(storm_programs: None, tmp_path: Path) -> None:
    home = tmp_path / "home"
    cluster = Cluster(home)
    try:
        options = [word for name in jvm.DAEMONS for word in ("-c", f"{name}.childopts={json.dumps(jvm.daemon(name))}")]
        broken_off = subprocess.Popen([COMMAND, "cluster", "up", "--home", home, *options], stderr=subprocess.DEVNULL)
        wait_for(lambda: "nimbus" in set(cluster.processes().values()), "Nimbus is started", LIMIT)
        broken_off.send_signal(signal.SIGKILL)
        broken_off.wait()
        left = set(cluster.processes())
        assert left

        shown = multilang("cluster", "up", "--home", home)
        assert shown.returncode == 0, shown.stderr
        assert f"nimbus      {cluster.address}" in shown.stdout
        assert not left & set(cluster.processes())
        with cluster.client() as nimbus:
            assert len(nimbus.summary().supervisors) == 1

        first = cluster.status()
        assert multilang("cluster", "up", "--home", home).returncode == 0
        other = multilang("cluster", "up", "--home", home, "--supervisors", 2, "-c", "topology.debug=true")
        assert "keeps what it was started with (supervisors, topology.debug)" in other.stderr
        assert cluster.status() == first  # idempotent

        cluster.kill("nimbus")
        assert multilang("cluster", "status", "--home", home).returncode == 1
        own = {"HOME": str(tmp_path), "STORM_CONF_DIR": "", "MULTILANG_CLUSTER_HOME": str(home)}
        assert f"no Nimbus listens on {cluster.address}" in multilang("list", **own).stderr
        assert multilang("cluster", "up", "--home", home).returncode == 0
        again = cluster.status()
        assert again["zookeeper"] == first["zookeeper"]
        assert again["nimbus"] not in (None, first["nimbus"])

        whole = json.loads(multilang("cluster", "status", "--home", home, "--json").stdout)
        assert whole["daemons"] == again
    finally:
        pids = set(cluster.processes())
        cluster.down()
    assert pids
    assert not any(map(alive, pids))
    assert multilang("cluster", "down", "--home", home).stdout == "nothing was running\n"
    assert multilang("cluster", "status", "--home", home).returncode == 1


@soak_only
def test_a_daemon_that_ends_while_it_starts_is_started_again(storm_programs: None, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "home", drpc=False)
    try:
        cluster.up()
        former = cluster.status()["nimbus"]
        cluster.kill("nimbus")
        with socket.socket() as taken, ThreadPoolExecutor(1) as threads:
            taken.bind(("127.0.0.1", cluster.address.port))
            started = threads.submit(cluster.up)
            wait_for(lambda: cluster.status()["nimbus"] not in (None, former), "Nimbus is started")
            first = cluster.status()["nimbus"]
            wait_for(lambda: cluster.status()["nimbus"] != first, "Nimbus, which has no port, has ended")
            taken.close()
            assert started.result(LIMIT)
        assert cluster.status()["nimbus"] not in (None, former, first)
    finally:
        cluster.down()


@soak_only
def test_a_supervisor_that_was_away_does_not_cost_the_others_their_slots(storm_programs: None, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "home", supervisors=2, drpc=False)
    try:
        cluster.up()
        cluster.kill("supervisor-1")
        with cluster.client() as nimbus:
            wait_for(lambda: len(nimbus.summary().supervisors) == 1, "Nimbus misses a supervisor")
            time.sleep(8)  # three rounds of its scheduler, after which Storm's default shuns the host
        cluster.up()
        shown = multilang("submit", ROOT / "examples" / "word_count.py", "--nimbus", cluster.address, "--wait", 60)
        assert shown.returncode == 0, shown.stderr
    finally:
        cluster.down()


def test_a_port_where_another_listens_is_refused(storm_programs: None, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        cluster = Cluster(tmp_path / "home", conf={"nimbus.thrift.port": port}, drpc=False)
        with pytest.raises(ShippingError, match=f"nimbus.thrift.port is {port}, where another program listens"):
            cluster.up()
    assert not cluster.processes()


def test_a_folder_that_cannot_be_made_is_named(storm_programs: None) -> None:
    with pytest.raises(ShippingError, match=r"/proc/there can't be a cluster's folder: .*; name another"):
        Cluster(Path("/proc/there")).up()


def test_a_folder_with_other_things_is_left_alone(storm_programs: None, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(ShippingError, match="holds other things"):
        Cluster(tmp_path).up()
    Cluster(tmp_path).down()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_daemons_that_do_not_answer_are_waited_for_as_long_as_is_said(
    storm_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = --list-modules ] || exec sleep 600\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    cluster = Cluster(tmp_path / "home", expose=True, start_limit=1)
    try:
        with pytest.raises(ShippingError, match=r"ZooKeeper does not answer, after 1 seconds; see the logs in"):
            cluster.up()
    finally:
        assert cluster.down() == 1


def test_the_next_cluster_takes_what_a_jdk_has_compiled(storm_programs: None, tmp_path: Path) -> None:
    if not runs_sources():
        pytest.skip("there is no JDK here")
    jars = tmp_path / "cache" / "storm"
    jars.mkdir(parents=True)
    (jars / "lib").symlink_to(storm_jars() / "lib")
    homes = [tmp_path / name for name in ("first", "second")]
    for home in homes:
        home.mkdir()
    binding.prepare(homes[0], jars)
    first = (homes[0] / "extlib" / "loopback.jar").read_bytes()
    (kept,) = jars.parent.glob("*.jar")
    assert kept.read_bytes() == first
    kept.write_bytes(b"as it was kept")
    binding.prepare(homes[1], jars)
    assert (homes[1] / "extlib" / "loopback.jar").read_bytes() == b"as it was kept"
