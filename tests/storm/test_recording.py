"""A conversation with a real Storm, recorded, and played again to the component and to one that errs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.conformance.replay import read_recording, replay
from multilang.conformance.target import Target
from tests.cli.command import COMMAND, ROOT
from tests.patience import patient
from tests.soak import soak_only
from tests.storm.conftest import acked, give, wait_for

if TYPE_CHECKING:
    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

LIMIT = patient(120.0)
TOPOLOGY = """
from multilang import ShellBolt, ShellSpout, TopologyBuilder

builder = TopologyBuilder()
builder.set_spout("numbers", ShellSpout(["python3", "plain_spout.py"], output_fields=["n", "nothing"]))
bolt = ShellBolt(["python3", "recorded.py"], output_fields=["n", "task"])
builder.set_bolt("plain", bolt).shuffle_grouping("numbers")
topology = builder.build("recording")
"""


@soak_only
def test_what_a_worker_says_is_recorded_and_replays(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    project, file = tmp_path / "project", tmp_path / "talk.jsonl"
    project.mkdir()
    for name in ("plain_bolt.py", "plain_spout.py"):
        shutil.copy(ROOT / "tests" / "local" / name, project)
    command = [str(COMMAND), "conformance", "record", "-o", str(file), "--", "python3", "plain_bolt.py"]
    (project / "recorded.py").write_text(f"import os\n\nos.execv({command[0]!r}, {command!r})\n", "utf-8")
    (project / "recording.py").write_text(TOPOLOGY, "utf-8")
    give(storm, project / "recording.py", "recording", "--include", "plain_bolt.py")
    wait_for(lambda: acked(nimbus, "recording", "numbers") == (10, 0), "ten numbers are acked")
    nimbus.kill("recording", 0)
    wait_for(lambda: '"d": "exit"' in file.read_text("utf-8"), "the component has ended")

    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert len(json.loads(rows[0]["raw"].removesuffix("end\n"))["conf"]) > 200  # Storm's whole conf
    assert sum(row["d"] == "out" and '"ack"' in row["raw"] for row in rows) == 10
    recording = read_recording(file)
    assert replay(recording, Target([sys.executable, str(project / "plain_bolt.py")], timeout=LIMIT)) is None
    other = replay(
        recording, Target([sys.executable, str(ROOT / "tests/conformance/replayed.py"), "sink"], timeout=LIMIT)
    )
    assert other is not None
    assert other.expected.startswith('{"command": "log", "msg": "got ')
