from __future__ import annotations

import itertools
import sys
import textwrap
import zipfile
from typing import TYPE_CHECKING

import pytest

from multilang.topology import Topology, load_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TOPOLOGY = """
    from multilang import BasicBolt, ReliableSpout, TopologyBuilder
    {imports}

    class Words(ReliableSpout):
        output_fields = ["word"]

    class Shout(BasicBolt):
        output_fields = ["loud"]

        def process(self, tup):
            self.emit([shout(tup["word"])])

    def shout(word):
        return word.upper()

    {more}
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("shout", Shout).shuffle_grouping("words")
    topology = builder.build("shouting")
"""


class Project:
    """A folder with a topology in it, whose modules have names that no other test's have."""

    numbers = itertools.count()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"shipped_topology_{next(self.numbers)}"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def topology(self, imports: str = "", more: str = "", text: str | None = None) -> Topology:
        text = textwrap.dedent(TOPOLOGY).format(imports=imports, more=more) if text is None else text
        return load_topology(str(self.write(f"{self.name}.py", text)))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    path, modules = list(sys.path), set(sys.modules)
    folder = tmp_path / "project"
    folder.mkdir()
    yield Project(folder)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes wheels, and pip finds no others."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def make(name: str, version: str, tag: str, files: dict[str, str]) -> None:
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as wheel:
            for path, text in files.items():
                wheel.writestr(path, text)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
            wheel.writestr(f"{info}/RECORD", "")

    return make
