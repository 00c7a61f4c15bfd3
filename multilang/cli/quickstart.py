"""A first project in streamparse's form: a word count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.project.new import check_place

if TYPE_CHECKING:
    from pathlib import Path

_FILES = {
    "config.json": """\
{
  "topology_specs": "topologies/",
  "virtualenv_specs": "virtualenvs/",
  "envs": {
    "prod": {
      "nimbus": "localhost",
      "workers": [],
      "log": {"level": "info"}
    }
  }
}
""",
    "virtualenvs/wordcount.txt": "# the packages that the components import\n",
    "src/spouts/__init__.py": "",
    "src/spouts/words.py": """\
from itertools import cycle

from streamparse import Spout


class WordSpout(Spout):
    outputs = ["word"]

    def initialize(self, conf, context):
        self.words = cycle(["cow", "moon", "apple", "day"])

    def next_tuple(self):
        self.emit([next(self.words)])
""",
    "src/bolts/__init__.py": "",
    "src/bolts/count.py": """\
from collections import Counter

from streamparse import Bolt


class CountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, context):
        self.counts = Counter()

    def process(self, tup):
        word = tup.values.word
        self.counts[word] += 1
        self.emit([word, self.counts[word]])
""",
    "topologies/wordcount.py": """\
from streamparse import Grouping, Topology

from bolts.count import CountBolt
from spouts.words import WordSpout


class WordCount(Topology):
    words = WordSpout.spec()
    counts = CountBolt.spec(inputs={words: Grouping.fields("word")}, par=2)
""",
}


def write_project(folder: Path) -> list[Path]:
    """Write the project's files.

    Args:
        folder: The project's folder, which must not exist.

    Returns:
        The files.

    Raises:
        OSError: The folder exists, or it can't be written.
        ConfigError: It is in one that another account made where everybody may.
    """
    folder.mkdir(parents=True)
    check_place(folder)
    made = []
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        made.append(path)
    return made
