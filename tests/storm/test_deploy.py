"""A topology in the place of one that runs, and the former one back where the new one does not come up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from multilang.shipping.blobs import list_blobs
from tests.cli.command import multilang
from tests.storm.conftest import LIMIT, SHIPPED, wait_for

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_a_version_takes_over_with_its_state_and_a_broken_one_is_rolled_back(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.touch()
    provider = json.dumps({"path": str(tmp_path / "state.sqlite")})
    (tmp_path / "multilang.toml").write_text(
        f"""
topology = {json.dumps(str(SHIPPED / "deployed.py"))}
nimbus = "{storm.address}"
[conf]
"test.told" = {json.dumps(str(told))}
"topology.state.provider.config" = {json.dumps(provider)}
"""
    )

    def deploy(version: str, *options: object) -> CompletedProcess[str]:
        return multilang(
            "deploy",
            "-c",
            f"test.version={version}",
            "--drain",
            2,
            "--settled",
            3,
            "--wait",
            LIMIT,
            *options,
            cwd=tmp_path,
            limit=2 * LIMIT,
        )

    def counts() -> list[tuple[str, int]]:
        lines = told.read_text().split("\n")[:-1]
        return [(version, int(count)) for version, count in (line.split() for line in lines)]

    def id() -> str:
        return next(str(each.id) for each in nimbus.summary().topologies)

    first = deploy("one")
    assert first.returncode == 0, first.stderr
    assert "no topology 'deployed' runs" in first.stderr
    wait_for(lambda: len(counts()) > 20, "the first version counts")
    former = id()

    second = deploy("two")
    assert second.returncode == 0, second.stderr
    assert "its tuples in flight get 2 s" in second.stderr
    assert id() != former
    wait_for(lambda: counts()[-1][0] == "two", "the second version counts")
    told_by = [version for version, _ in counts()]
    assert told_by == sorted(told_by), "the first version counts no more"
    last_of_one = max(count for version, count in counts() if version == "one")
    first_of_two = next(count for version, count in counts() if version == "two")
    assert 1 < first_of_two <= last_of_one + 1, "it goes on from the last checkpoint"
    assert last_of_one - first_of_two < 50

    before = id()
    broken = deploy("broken")  # one of its three tasks refuses each tuple; its worker is up for longer than 3 s by then
    assert broken.returncode == 4, broken.stdout + broken.stderr
    assert "ValueError: this version takes no tuple" in broken.stderr
    assert "the former one runs again" in broken.stderr
    assert id() != before
    number = len(counts())
    wait_for(lambda: len(counts()) > number, "the second version counts again")
    assert {version for version, _ in counts()} == {"one", "two"}
    assert counts()[number][1] > first_of_two, "with its state"

    green = deploy("green", "--blue-green")
    assert green.returncode == 0, green.stderr
    assert "its name on the cluster is 'deployed-green'" in green.stdout
    wait_for(lambda: counts()[-1][0] == "green", "the new version counts")
    told_by = [version for version, _ in counts()]
    assert told_by[told_by.index("green") :] == ["green"] * (len(told_by) - told_by.index("green")), (
        "the former one counts no more"
    )
    last_of_two = max(count for version, count in counts() if version == "two")
    assert last_of_two - 50 < next(count for version, count in counts() if version == "green") <= last_of_two + 1

    assert [each.name for each in nimbus.summary().topologies] == ["deployed-green"]
    assert not [key for key in list_blobs(nimbus) if key.startswith("multilang-deploy-")]

    conf = json.loads(nimbus.call("getTopologyConf", id()))
    assert conf["test.version"] == "green"
    assert conf["topology.message.timeout.secs"] == 10
    refused = deploy("three", "-c", 'topology.blobstore.map={"nowhere.tgz": {}}')
    assert refused.returncode == 2
    assert "does not have; multilang blob put" in refused.stderr
    assert next(each.status for each in nimbus.summary().topologies) == "ACTIVE", "what is refused ends nothing"
