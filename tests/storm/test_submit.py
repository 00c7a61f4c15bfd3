"""Topologies on a real Storm by the command line: what runs, what broke, and what is done with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.command import multilang
from tests.soak import soak_only
from tests.storm.conftest import SHIPPED, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@soak_only
def test_an_exception_in_a_component_is_shown_with_its_python_traceback(storm: Cluster, nimbus: Nimbus) -> None:
    for fault, error in (
        ("initialize", "ValueError: no database at nowhere"),
        ("process", "KeyError: 'no such customer'"),
    ):
        shown = multilang(
            "submit", SHIPPED / "broken.py", "--nimbus", storm.address, "--name", fault, "-c", f"test.fault={fault}"
        )
        assert shown.returncode == 4, shown.stdout + shown.stderr
        assert "error in 'broken' on 127.0.0.1:" in shown.stderr
        assert 'File "broken.py", line' in shown.stderr
        assert error in shown.stderr
        assert "at org.apache.storm" not in shown.stderr
        nimbus.kill(fault, 0)


def test_a_topology_is_listed_silenced_rebalanced_and_killed(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    at = ("--nimbus", storm.address)

    def status() -> str:
        return next(each["status"] for each in listed() if each["name"] == "quiet")

    def listed() -> list[dict[str, str]]:
        topologies: list[dict[str, str]] = json.loads(multilang("list", *at, "--json").stdout)["topologies"]
        return topologies

    entry = f"test.opened={opened}"
    shown = multilang("submit", SHIPPED / "broken.py", *at, "--name", "quiet", "--inactive", "-c", entry)
    assert shown.returncode == 0, shown.stderr
    assert "it runs: 2 tasks of 2 components in 1 worker" in shown.stdout
    assert status() == "INACTIVE"
    again = multilang("submit", SHIPPED / "broken.py", *at, "--name", "quiet")
    assert again.returncode == 2
    assert "a topology 'quiet' runs already" in again.stderr
    assert not opened.exists(), "no component is opened before the activation"
    assert multilang("activate", "quiet", *at).returncode == 0
    wait_for(lambda: opened.exists() and sorted(opened.read_text().split()) == ["broken", "one"], "both are opened")
    assert status() == "ACTIVE"
    assert multilang("deactivate", "quiet", *at).returncode == 0
    assert status() == "INACTIVE"
    assert multilang("rebalance", "quiet", *at, "-n", 2, "--wait", 0).returncode == 0
    wait_for(lambda: nimbus.status("quiet").workers == 2, "it is spread over two workers")
    assert "broken" in multilang("status", "quiet", *at).stdout
    wrong = multilang("rebalance", "quiet", *at, "-e", "nobody=2")
    assert wrong.returncode == 2
    assert "topology 'quiet' has no component 'nobody'; write one of 'broken', 'one'" in wrong.stderr
    wrong = multilang("rebalance", "quiet", *at, "-e", "broken=3")
    assert wrong.returncode == 2
    assert "'broken' of topology 'quiet' has 1 task, and no executor is without one: ask for 1 at most" in wrong.stderr
    assert multilang("rebalance", "quiet", *at, "-e", "broken=1", "--wait", 600).returncode == 0
    wrong = multilang("rebalance", "quiet", *at, "--wait", 0)
    assert wrong.returncode == 2
    assert "topology 'quiet' is being rebalanced" in wrong.stderr
    nowhere = 'topology.blobstore.map={"nowhere.tgz": {}}'
    wrong = multilang("submit", SHIPPED / "broken.py", *at, "--name", "blobless", "-c", nowhere)
    assert wrong.returncode == 2
    assert (
        f"names the blob 'nowhere.tgz', which {storm.address} does not have; multilang blob put nowhere.tgz FILE"
        in wrong.stderr
    )
    wrong = multilang("kill", "quite", *at)
    assert wrong.returncode == 2
    assert f"no topology 'quite' runs on {storm.address}; running: 'quiet'" in wrong.stderr
    assert multilang("kill", "quiet", *at, "--wait", 0).returncode == 0
    wait_for(lambda: not listed(), "it is gone")
    gone = multilang("kill", "quiet", *at)
    assert gone.returncode == 2
    assert "there is none at all" in gone.stderr
