"""A topology goes to a real Storm with one command, and gives there what it gives in the embedded cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.local import LocalCluster
from multilang.shipping.topology_status import topology_status
from multilang.topology import load_topology
from tests.cli.command import ROOT, multilang
from tests.storm.conftest import wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

HERE = Path(__file__).parent
Counts = dict[str, dict[str, int]]


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """The topology's file, with the example that it builds on beside it."""
    folder = tmp_path / "project"
    folder.mkdir()
    shutil.copy(HERE / "counting.py", folder / "counting.py")
    shutil.copy(ROOT / "examples" / "word_count.py", folder / "word_count.py")
    return folder / "counting.py"


def told(folder: Path) -> Counts:
    """Task index -> word -> how often."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("count-*.json")}


def total(counts: Counts) -> int:
    return sum(sum(each.values()) for each in counts.values())


def test_word_count_counts_task_by_task_as_in_the_embedded_cluster(
    storm: Cluster, nimbus: Nimbus, counting: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with LocalCluster() as cluster:
        run = cluster.submit(load_topology(str(counting)), conf={"test.folder": str(here)})
        run.wait(until="drained", timeout=120)
        sentences = run.counters["sentences"].acked
        words = run.counters["split"].emitted
        wait_for(lambda: total(told(here)) == words, "every word is counted here")

    shown = multilang("submit", counting, "--nimbus", storm.address, "--name", "words", "-c", f"test.folder={there}")
    assert shown.returncode == 0, shown.stderr
    assert "it runs: 6 tasks of 3 components in 2 workers" in shown.stdout

    def spout() -> tuple[int, int]:
        components = {each.id: each for each in topology_status(nimbus.topology("words")).components}
        return components["sentences"].acked, components["sentences"].failed

    wait_for(lambda: spout() == (sentences, 0), f"all {sentences} sentences are acked, none failed")
    wait_for(lambda: total(told(there)) >= words, f"all {words} words are counted")
    assert told(there) == told(here)
    assert len(told(there)) == 3


def test_an_exception_in_a_component_is_shown_with_its_python_traceback(storm: Cluster, nimbus: Nimbus) -> None:
    for fault, error in (
        ("initialize", "ValueError: no database at nowhere"),
        ("process", "KeyError: 'no such customer'"),
    ):
        shown = multilang(
            "submit", HERE / "broken.py", "--nimbus", storm.address, "--name", fault, "-c", f"test.fault={fault}"
        )
        assert shown.returncode == 4, shown.stdout + shown.stderr
        assert "error in 'broken' on 127.0.0.1:" in shown.stderr
        assert 'File "broken.py", line' in shown.stderr
        assert error in shown.stderr
        assert "at org.apache.storm" not in shown.stderr
        nimbus.kill(fault, 0)


def test_a_topology_is_listed_silenced_rebalanced_and_killed(storm: Cluster, nimbus: Nimbus) -> None:
    at = ("--nimbus", storm.address)

    def status() -> str:
        return next(each["status"] for each in listed() if each["name"] == "quiet")

    def listed() -> list[dict[str, str]]:
        topologies: list[dict[str, str]] = json.loads(multilang("list", *at, "--json").stdout)["topologies"]
        return topologies

    shown = multilang("submit", HERE / "broken.py", *at, "--name", "quiet", "--inactive")
    assert shown.returncode == 0, shown.stderr
    assert status() == "INACTIVE"
    again = multilang("submit", HERE / "broken.py", *at, "--name", "quiet")
    assert again.returncode == 2
    assert "a topology 'quiet' runs already" in again.stderr
    assert multilang("activate", "quiet", *at).returncode == 0
    assert status() == "ACTIVE"
    assert multilang("deactivate", "quiet", *at).returncode == 0
    assert status() == "INACTIVE"
    assert multilang("rebalance", "quiet", *at, "-n", 2, "--wait", 0).returncode == 0
    wait_for(lambda: topology_status(nimbus.topology("quiet")).workers == 2, "it is spread over two workers")
    assert "broken" in multilang("status", "quiet", *at).stdout
    wrong = multilang("rebalance", "quiet", *at, "-e", "nobody=2")
    assert wrong.returncode == 2
    assert "Invalid component nobody" in wrong.stderr
    assert multilang("kill", "quiet", *at, "--wait", 0).returncode == 0
    wait_for(lambda: not listed(), "it is gone")
    gone = multilang("kill", "quiet", *at)
    assert gone.returncode == 2
    assert "quiet is not alive (NotAliveException)" in gone.stderr
