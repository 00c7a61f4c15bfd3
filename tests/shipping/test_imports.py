"""Modules that are imported on a worker are shipped, and imports of another Python or platform stop nothing."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.component.errors import ConfigError
from multilang.shipping import ShippingError, WheelTarget, pack
from multilang.shipping.conditions import WorkersPython
from multilang.shipping.imports import Found, follow
from multilang.topology import TopologyError, load_topology
from tests.shipping.conftest import TOPOLOGY
from tests.shipping.worker import BARE_PYTHON, run_bolt, unpack_jar
from tests.soak import SOAK

if TYPE_CHECKING:
    from tests.shipping.conftest import Project

SEEDS = range(300 if SOAK else 12)
HEAD = """\
import importlib
import os
import sys
import sys as system
import typing as t
from contextlib import suppress
from sys import platform as name
from typing import TYPE_CHECKING
PY2 = sys.version_info[0] == 2
OLD = PY2 or sys.version_info < (3, 8)
HAS = bool(os.environ.get("NO_SUCH_VARIABLE"))
"""
FALSE = [
    "sys.version_info < (3, 0)",
    "system.version_info[0] == 2",
    "sys.version_info.major < 3",
    "sys.version_info[:2] <= (3, 5)",
    "(3, 7) > sys.version_info",
    "PY2",
    "OLD",
    "PY2 and HAS",
    "sys.platform == 'win32'",
    "name.startswith('win')",
    "name in ('win32', 'cygwin')",
    "os.name == 'nt'",
    "TYPE_CHECKING",
    "t.TYPE_CHECKING",
    "__name__ == '__main__'",
    "not __debug__",
    "False",
]
IN_PYTHON_2 = "print 'hello'\n"


class Tree:
    """Random modules, each of which imports later ones, behind guards of all kinds."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.dead = 0
        self.folder = folder
        self.start = f"tree_{seed}_0"
        names = [self.start]
        for number in range(1, 5):
            package = f"tree_{seed}_{number}"
            names += (
                [package] if number % 2 else [package, f"{package}.one", f"{package}.two", f"{package}.inner.three"]
            )
        self.packages = {name.rpartition(".")[0] for name in names} - {""}
        inner = [each for each in self.packages if each not in names]
        self.names = names
        for package in inner:
            self.write(package, HEAD)
        for at, module in enumerate(names):
            later = [each for each in names[at + 1 :] if not module.startswith(f"{each}.")]
            text = "".join(self.statement(module, self.random.choice(later)) for _ in range(3) if later)
            self.write(module, HEAD + self.all_of(module) + text)

    def write(self, module: str, text: str) -> None:
        end = "/__init__.py" if module in self.packages else ".py"
        path = self.folder / f"{module.replace('.', '/')}{end}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def all_of(self, module: str) -> str:
        if module not in self.packages or "." in module:
            return ""
        return self.random.choice(
            [
                "__all__ = ['one', 'two']\n",
                "__all__ = ('one',)\n__all__ += ('two',)\n",
                "__all__ = ['one']\n__all__.append('two')\n",
                "__all__ = [each[:3] for each in ('one.py', 'two.py')]\n",
                "__all__: list = []\n__all__.extend(['one'])\n",
                "",
            ]
        )

    def live(self, module: str, other: str) -> str:
        package, _, own = other.rpartition(".")
        forms = [f"import {other}", f"from {other} import *" if other in self.packages else f"import {other} as it"]
        forms.append(f"importlib.import_module({other!r})")
        if package:
            forms.append(f"from {package} import {own}")
        return self.random.choice(forms)

    def never(self, known: bool = True) -> str:
        """An import that would fail, of a module that is not there, or that is one of Python 2's."""
        self.dead += 1
        forms = ["import Queue", "from nowhere_to_be_found.at_all import it"]
        if known:
            self.write(
                f"{self.start}_dead_{self.dead}", self.random.choice([IN_PYTHON_2, "import nowhere_to_be_found\n"])
            )
            forms.append(f"import {self.start}_dead_{self.dead}")
        return self.random.choice(forms)

    def statement(self, module: str, other: str) -> str:
        live, never, perhaps = self.live(module, other), self.never(), self.never(known=False)
        false = self.random.choice(FALSE)
        form = self.random.choice(
            [
                "{live}\n",
                "if {false}:\n    {never}\nelse:\n    {live}\n",
                "if not ({false}):\n    {live}\nelse:\n    {never}\n",
                "if {false}:\n    {never}\nelif not HAS:\n    {live}\nelse:\n    {perhaps}\n",
                "if HAS:\n    {perhaps}\n{live}\n",
                "if not HAS or {false}:\n    {live}\n",
                "try:\n    import queue\nexcept ImportError:\n    {never}\n{live}\n",
                "try:\n    from collections import OrderedDict\nexcept ImportError:\n    {never}\nelse:\n    {live}\n",
                "try:\n    import nowhere_to_be_found\nexcept ImportError:\n    {live}\nelse:\n    {never}\n",
                "try:\n    from collections import Mapping\nexcept (ImportError, AttributeError):\n    {live}\n",
                "try:\n    {live}\nexcept ImportError:\n    {perhaps}\n",
                "try:\n    import json\n    importlib.import_module(''.join(['nowhere', '_to_be_found']))\nexcept ImportError:\n    {live}\n",
                "with suppress(ImportError):\n    {perhaps}\n{live}\n",
                "def late():\n    if not ({false}):\n        {live1}\n        return\n    {never}\nlate()\n",
                "def late():\n    if {false}:\n        {never}\n    return\n    {never}\nlate()\n{live}\n",
            ]
        )
        if "def late" in form and "*" in live:
            live = f"import {other}"
        return form.format(live=live, live1=live, never=never, perhaps=perhaps, false=false)

    def followed(self) -> Found:
        importlib.import_module(self.start)  # as loading the topology does
        return follow(self.start, self.folder / f"{self.start}.py")


def loaded_from(folder: Path, start: str) -> set[str]:
    code = (
        f"import sys, json; sys.path.insert(0, {str(folder)!r}); import {start}; print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([BARE_PYTHON, "-I", "-B", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {each for each in json.loads(done.stdout) if each.startswith(start[:-1])}


@pytest.mark.parametrize("seed", SEEDS)
def test_all_that_is_imported_is_shipped_and_no_branch_of_another_python_stops_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    tree = Tree(seed, project.folder)
    monkeypatch.syspath_prepend(str(project.folder))
    found = tree.followed()
    for name, (path, _) in found.files.items():
        place = tmp_path / "worker" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
    assert loaded_from(tmp_path / "worker", tree.start) == loaded_from(project.folder, tree.start)
    assert not [name for name in found.files if "_dead_" in name]
    assert not found.foreign


@pytest.mark.parametrize(
    ("target", "missing"),
    [
        (WheelTarget("3.10"), "new_package"),
        (WheelTarget("3.12"), None),
        (WheelTarget("3.12", "win_amd64"), "of_windows"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "if sys.version_info >= (3, 11):\n    import tomllib\nelse:\n    import new_package\n",
        "try:\n    import tomllib\nexcept ImportError:\n    import new_package\n",
    ],
)
def test_the_branch_of_the_workers_python_counts(
    project: Project, monkeypatch: pytest.MonkeyPatch, target: WheelTarget, missing: str | None, text: str
) -> None:
    text = f"import sys\n{text}if sys.platform == 'win32':\n    import of_windows\n"
    file = project.write(f"{project.name}.py", text)
    python = WorkersPython.of(target)
    if missing is None:
        assert not follow(project.name, file, python=python).missing
        return
    with pytest.raises(ShippingError, match=f"there is no module {missing!r}"):
        follow(project.name, file, python=python)
    assert follow(project.name, file, python=python, brought=lambda name: name == missing)


def test_a_module_that_the_workers_python_does_not_have_is_refused(project: Project) -> None:
    file = project.write(f"{project.name}.py", "import asyncore\n")
    python = WorkersPython.of(WheelTarget("3.12"))
    with pytest.raises(
        ShippingError, match=r"workers' Python, 3\.12, has no module 'asyncore', imported by .*, line 1"
    ):
        follow(project.name, file, python=python)


def test_a_package_that_may_be_imported_is_reported(project: Project) -> None:
    topology = project.topology(more="if len(shout('a')) > 1:\n        import nowhere_to_be_found\n")
    (warning,) = pack(topology).contents.warnings
    assert warning.startswith("'nowhere_to_be_found', imported by ")


@pytest.mark.parametrize("folder", ["", "topologies"])
@pytest.mark.parametrize("library", ["import json", "from streamparse import Bolt as Other"])
def test_a_topology_may_have_the_name_of_the_package_that_it_imports(
    project: Project, tmp_path: Path, folder: str, library: str
) -> None:
    package = f"src/{project.name}" if folder else project.name
    project.write(f"{package}/__init__.py", "")
    project.write(f"{package}/marks.py", "MARK = '!'\n")
    more = f"from {project.name}.marks import MARK\n    def shout(word): return word + MARK\n    {library}\n"
    text = textwrap.dedent(TOPOLOGY).format(imports="", more=textwrap.dedent(f"    {more}"))
    project.name = f"{folder}/{project.name}" if folder else project.name
    topology = project.topology(text=text)
    shipment = pack(topology)
    assert shipment.check()
    resources = unpack_jar(shipment.jar(), tmp_path / "worker")
    emitted, _ = run_bolt([BARE_PYTHON, "run_topology.py"], resources, topology, "shout", ["moo"])
    assert emitted == [["moo!"]]


def test_a_folder_without_init_that_a_topology_hides_is_named(project: Project) -> None:
    project.write(f"src/{project.name}/marks.py", "MARK = '!'\n")
    file = project.write(f"topologies/{project.name}.py", f"from {project.name}.marks import MARK\n")
    with pytest.raises(ConfigError, match=rf"has the name of that package itself: .* __init__.py .* {project.name}/"):
        load_topology(str(file))


def test_a_program_whose_lines_end_as_on_windows_is_refused(project: Project) -> None:
    program = project.folder / "run"
    program.write_bytes(b"#!/usr/bin/env python3\r\nprint()\r\n")
    program.chmod(0o755)
    more = (
        "from multilang import ShellBolt\n"
        "builder.set_bolt('other', ShellBolt(['./run'], output_fields=['a'])).shuffle_grouping('words')\n"
        "topology = builder.build('others')\n"
    )
    text = textwrap.dedent(TOPOLOGY).format(imports="", more="")
    with pytest.raises(TopologyError, match=r"bolt 'other': .* starts .*/run, whose lines end as on Windows \(CRLF\)"):
        project.topology(text=text + more)
    project.name += "_included"
    (warning,) = pack(project.topology(text=text), include=[program]).contents.warnings
    assert warning.startswith("run may be run, and its first line ends in CRLF")
