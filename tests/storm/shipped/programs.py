"""Components that are programs: in blobs, and in the jar's resources/, each started where it says."""

from __future__ import annotations

import os

from multilang import ShellBolt, ShellSpout, TopologyBuilder

BLOBS = {"newPython.tgz": {"localname": "newPython", "uncompress": True}, "shell_spout.py": {}}
BOLTS = {
    "inside": (["python3", "inside.py"], True),  # in the project's resources/
    "outside": (["python3", "-u", "./outside.py"], False),  # beside this file
    "own": (["./resources/bin/own"], False),  # without the permission to be run
}
spout = ShellSpout(
    ["./newPython/bin/python", "./shell_spout.py"],
    output_fields=["n", "nothing"],
    conf={"topology.blobstore.map": BLOBS},
    change_child_cwd=False,
)
builder = TopologyBuilder()
builder.set_spout("numbers", spout)
for name, (command, change) in BOLTS.items():
    bolt = ShellBolt(command, output_fields=["n", "task"], change_child_cwd=change)
    builder.set_bolt(name, bolt).shuffle_grouping("numbers")
topology = builder.build(os.environ.get("TEST_NAME", "programs"))
