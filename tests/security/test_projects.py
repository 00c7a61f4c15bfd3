"""Projects of other libraries that a stranger wrote, or put where everybody may write."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from multilang.cli.project import Hooks, requirements_of
from multilang.compat.migrate import MAX_BYTES, findings, python_files
from multilang.compat.project import project_of
from multilang.component.errors import ConfigError
from multilang.topology import load_topology
from tests.cli.command import multilang
from tests.security.test_another_account import NOBODY

if TYPE_CHECKING:
    from pathlib import Path

TOPOLOGY = """
from multilang import BasicBolt, Spout, TopologyBuilder


class Nothing(Spout):
    def next_tuple(self):
        pass


builder = TopologyBuilder()
builder.set_spout("nothing", Nothing())
topology = builder.build("mine", {})
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder like /tmp, in which this user's topology is in a folder of its own."""
    if os.geteuid() != 0:
        assert "CI" not in os.environ
        pytest.skip("only root can give files to another account")
    folder = tmp_path / "shared"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "mine.py").write_text(TOPOLOGY)
    folder.chmod(0o1777)
    return folder


def theirs(path: Path, text: str | None = None) -> None:
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    os.chown(path, NOBODY, NOBODY)


HOOKS = "open({!r}, 'w').close()\ndef pre_submit(*_): pass\n"
CONFIG = json.dumps({"topology_specs": "work", "envs": {"x": {}}})


def taken(shared: Path) -> list[str]:
    """Take what a submission takes of the project around a topology; return its requirements."""
    file = next(shared.glob("*/mine.py"))
    project = project_of(str(file))
    assert project is not None
    Hooks(project, "mine").call("pre_submit", {})
    with requirements_of(project, load_topology(f"{file}:topology")) as path:
        return [] if path is None else path.read_text().split()


def test_a_project_that_another_account_put_around_a_topology_is_not_taken(shared: Path) -> None:
    theirs(shared / "config.json", CONFIG)
    theirs(shared / "tasks.py", HOOKS.format(str(shared.parent / "ran")))
    with pytest.raises(ConfigError, match=r"config\.json is not used: it belongs to another account"):
        taken(shared)
    shown = multilang("run", "mine", cwd=shared)
    assert shown.returncode == 2
    assert "config.json is not used: it belongs to another account" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not (shared.parent / "ran").exists()


@pytest.mark.parametrize("name", ["tasks.py", "virtualenvs/mine.txt", "src", "topologies"])
def test_a_part_that_another_account_added_to_a_project_is_refused_by_its_name(shared: Path, name: str) -> None:
    ran = shared.parent / "ran"
    if name == "topologies":
        (shared / "work").rename(shared / "topologies")
        os.chown(shared / "topologies", NOBODY, NOBODY)
        (shared / "src").mkdir()
    else:
        (shared / "config.json").write_text(CONFIG)
        (shared / "virtualenvs").mkdir()
        (shared / "virtualenvs").chmod(0o1777)
        theirs(shared / name, HOOKS.format(str(ran)) if "." in name else None)
    with pytest.raises(
        ConfigError, match=f"{re.escape(str(shared / name))} is not used: it belongs to another account"
    ):
        taken(shared)
    assert not ran.exists()


@pytest.mark.parametrize("whose", [NOBODY, 0])
def test_a_project_in_its_owners_folder_is_taken(shared: Path, whose: int) -> None:
    theirs(shared / "config.json", CONFIG)
    theirs(shared / "tasks.py", HOOKS.format(str(shared.parent / "ran")))
    (shared / "virtualenvs").mkdir()
    theirs(shared / "virtualenvs" / "mine.txt", "theirs\n")
    os.chown(shared, whose, whose)
    shared.chmod(0o1777 if whose else 0o775)  # who may write there by their group is trusted
    assert taken(shared) == ["theirs"]
    assert (shared.parent / "ran").exists()


@pytest.mark.timeout(60)
def test_a_strangers_tree_is_looked_at_without_reading_what_has_no_end(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("print 'mine'\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe.py")
    os.mkfifo(tree / "config.json")
    (tree / "link.py").symlink_to(outside)
    (tree / "endless.py").symlink_to("/dev/zero")
    (tree / "loop").symlink_to(tree)
    with (tree / "huge.py").open("wb") as file:
        file.truncate(MAX_BYTES * 1000)
    (tree / "deep.py").write_text("x = " + "(" * 100_000 + ")" * 100_000)
    (tree / "unary.py").write_text("x = " + "-" * 100_000 + "1")
    (tree / "bytes.py").write_bytes(b"\0\xff")
    for name, text in (("deep", "[" * 200_000), ("list", '{"envs": [1]}'), ("text", '{"envs": {"a": "b"}}')):
        (tree / name).mkdir()
        (tree / name / "config.json").write_text(text)
    found = {os.path.relpath(each.path, tree): each.what for each in findings(str(tree))}
    assert found["pipe.py"] == found["config.json"] == "it is no ordinary file"
    assert found["link.py"] == found["endless.py"] == "a link, which is not followed"
    assert "too large" in found["huge.py"]
    assert {"deep.py", "unary.py", "bytes.py", "deep/config.json", "text/config.json"} <= set(found)
    assert {os.path.basename(each) for each in python_files(str(tree))} == {"deep.py", "unary.py", "bytes.py"}


def test_rewriting_a_strangers_tree_changes_nothing_outside_of_it(tmp_path: Path) -> None:
    pytest.importorskip("fissix")
    outside, tree = tmp_path / "outside.py", tmp_path / "tree"
    outside.write_text("print 'mine'\n")
    tree.mkdir()
    (tree / "link.py").symlink_to(outside)
    (tree / "-w").mkdir()
    (tree / "old.py").write_text("print 'old'\n")
    (tree / "\x1b[2Jold.py").write_text("print 'older'\n")
    shown = multilang("migrate", "--fix", "--offline", ".", cwd=tree)
    assert outside.read_text() == "print 'mine'\n"
    assert (tree / "old.py").read_text() == "print('old')\n", shown.stderr
    assert "\x1b" not in shown.stdout + shown.stderr
