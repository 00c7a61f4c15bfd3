"""A bolt whose Python, whose code, whose tools and whose data all come from the blob store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from multilang import BasicBolt, Context, Spout, TopologyBuilder, Tuple


class Nothing(Spout):
    output_fields = ["n"]

    def next_tuple(self) -> None:
        pass


class Finder(BasicBolt):
    """Writes down at each tick what it finds, and where."""

    component_conf = {"topology.tick.tuple.freq.secs": 1}

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.path = os.path.join(conf["test.folder"], "found")
        self.blobs = "." if os.path.islink("table") else ".."  # the worker's directory

    def process_tick(self, tup: Tuple) -> None:
        with open(f"{self.blobs}/table") as table:
            found = {
                "python": sys.executable,
                "library": os.__file__,
                "code": __file__,
                "directory": os.getcwd(),
                "worker": os.getppid(),
                "table": table.read(),
                "tool": subprocess.run([f"{self.blobs}/tools/bin/hello"], capture_output=True, text=True).stdout,
            }
        with open(f"{self.path}.part", "w") as file:
            json.dump(found, file)
        os.replace(file.name, self.path)


BLOBS = {
    "tools.tgz": {"localname": "tools", "uncompress": True},
    "env.tgz": {"localname": "env", "uncompress": True},
    "table": {"localname": "table"},
}
builder = TopologyBuilder()
builder.set_spout("nothing", Nothing)
builder.set_bolt("finder", Finder).shuffle_grouping("nothing")
topology = builder.build(
    os.environ.get("TEST_NAME", "from-blobs"),
    conf={"topology.blobstore.map": BLOBS, "test.folder": os.environ.get("TEST_FOLDER", "")},
)
