"""Counts what the modules of Python's standard library import: files in, files out, by two connectors.

    multilang run examples/imports_to_files.py --until-drained
    multilang run examples/imports_to_files.py:by_hand --until-drained

``topology`` is written as streams, ``by_hand`` with bolts; both give the same. The files are written to the folder that the
environment variable ``IMPORTS_FOLDER`` names, by default ``imports``. A file is complete or absent, and each line has the
count of a module so far: the largest is the last.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise

from multilang import BasicBolt, TopologyBuilder, Tuple
from multilang.connectors import FileSink, FileSpout, JsonLines, Lines
from multilang.streams import StreamBuilder

SOURCES = f"{os.path.dirname(json.__file__)}/../[a-c]*.py"  # of the standard library; some of it is enough
FOLDER = os.environ.get("IMPORTS_FOLDER", "imports")
CONF = {"topology.max.spout.pending": 2000}


def imported(line: str) -> list[str]:
    """Return the modules that a line imports, without the parts of packages."""
    words = line.split("#", maxsplit=1)[0].replace(",", " , ").split()
    if words[:1] == ["from"]:
        names = words[1:2]
    elif words[:1] == ["import"]:
        names = [name for before, name in pairwise(words) if before in ("import", ",")]
    else:
        return []
    return [name.partition(".")[0] for name in names if name[0] != "."]


# ---- as streams ----

s = StreamBuilder()
modules = s.source(FileSpout(SOURCES, Lines(errors="replace")), parallelism=2).flat_map(lambda t: imported(t["line"]))
counts = modules.key_by(lambda module: module).count()
counts.to(FileSink(FOLDER, JsonLines(), roll_secs=1), fields=["module", "count"], parallelism=1, name="saved")
topology = s.build("imports", CONF)


# ---- by hand ----


class Imports(BasicBolt):
    output_fields = ["module"]

    def process(self, tup: Tuple) -> None:
        for module in imported(tup["line"]):
            self.emit([module])


class Count(BasicBolt):
    output_fields = ["module", "count"]

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        module = tup["module"]
        self.counts[module] = self.counts.get(module, 0) + 1
        self.emit([module, self.counts[module]])


builder = TopologyBuilder()
builder.set_spout("sources", FileSpout(SOURCES, Lines(errors="replace")), 2)
builder.set_bolt("imports", Imports, 2).shuffle_grouping("sources")
builder.set_bolt("count", Count, 2).fields_grouping("imports", "module")
builder.set_bolt("saved-by-hand", FileSink(FOLDER, JsonLines(), roll_secs=1)).shuffle_grouping("count")
by_hand = builder.build("imports-by-hand", CONF)
