"""Projects and programs written for other libraries run on a real Storm as they are."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tests.cli.command import multilang
from tests.compat.test_names import SCRIPT, TOPOLOGY
from tests.compat.test_projects import EXPECTED, project
from tests.compat.test_storm_py import storms_testers
from tests.soak import soak_only
from tests.storm.conftest import acked, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

__all__ = ["project"]


def test_a_project_of_streamparse_counts_its_words(
    storm: Cluster, nimbus: Nimbus, project: Path, tmp_path: Path
) -> None:
    (project / "virtualenvs" / "words.txt").write_text("streamparse\n")
    logs = tmp_path / "logs"
    logs.mkdir()
    entries = ("-o", f"pystorm.log.path={json.dumps(str(logs))}", "-o", 'pystorm.log.level="info"')
    done = multilang(
        "sparse", "submit", "-e", "prod", "-N", "moving", *entries, cwd=project, STREAMPARSE_NIMBUS=str(storm.address)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((project / "submitted.json").read_text()) == ["moving", "prod"]

    def counted() -> Counter[str]:
        lines = [line for file in logs.glob("*_count_*") for line in file.read_text().splitlines()]
        found: Counter[str] = Counter()
        for line in lines:
            word, number = line.rpartition(" - ")[2].split(": ")
            found[word] = max(found[word], int(number))
        return found

    wait_for(lambda: counted() == EXPECTED, "the words are counted")
    wait_for(lambda: acked(nimbus, "moving", "lines") == (12, 0), "every line is acked")
    killed = multilang(
        "sparse", "kill", "-n", "moving", "-e", "prod", cwd=project, STREAMPARSE_NIMBUS=str(storm.address)
    )
    assert killed.returncode == 0, killed.stderr


@soak_only
def test_a_program_that_imports_storm_is_a_topologys_command(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "split.py").write_text(SCRIPT)
    (tmp_path / "named.py").write_text(TOPOLOGY.replace("SCRIPT", "'scripts/split.py'"))
    done = multilang("submit", "named.py", "--nimbus", storm.address, "--name", "named", "--wait", 0, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: acked(nimbus, "named", "lines")[0] == 2, "every line is acked")


@soak_only
def test_storms_own_tester_spout_and_bolt_run_unedited(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    file = storms_testers(tmp_path)
    done = multilang("submit", file.name, "--nimbus", storm.address, "--wait", 0, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: acked(nimbus, "testers", "spout")[0] >= 5, "words are acked")  # the bolt lets a quarter time out
