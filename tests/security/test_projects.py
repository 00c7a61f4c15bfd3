"""Projects of other libraries that a stranger wrote, or put where everybody may write."""

from __future__ import annotations

import ast
import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from multilang.cli.project import Hooks, requirements_of
from multilang.compat.project import project_of
from multilang.component.errors import ConfigError
from multilang.migrate import MAX_BYTES, findings, from_clojure, python_files
from multilang.migrate.clojure import as_dsl
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
    with pytest.raises(ConfigError, match=r"config\.json belongs to another account"):
        taken(shared)
    shown = multilang("run", "mine", cwd=shared)
    assert shown.returncode == 2
    assert "config.json belongs to another account" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert not (shared.parent / "ran").exists()


def test_the_settings_that_another_account_put_above_a_folder_are_not_taken(shared: Path) -> None:
    ran = shared.parent / "ran"
    theirs(shared / "theirs.py", HOOKS.format(str(ran)))
    theirs(shared / "multilang.toml", 'topology = "theirs.py"')
    for words in (["run"], ["run", "mine.py", "--for", "1"], ["show", "mine.py"]):
        shown = multilang(*words, cwd=shared / "work")
        assert shown.returncode == (0 if len(words) > 1 else 2), shown.stderr
        assert shown.stderr.count("multilang.toml belongs to another account") == 1
        assert "Traceback" not in shown.stderr
    assert not ran.exists()


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
    with pytest.raises(ConfigError, match=f"^{re.escape(str(shared / name))} belongs to another account"):
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
    (tree / "calls.py").write_text("class A(" + "f" + "()" * 700 + "):\n    pass\n")
    (tree / "names.py").write_text("unicode(" + "[unicode],\n" * 5_000 + ")")  # takes long if each looks at all of them
    os.mkfifo(tree / "requirements.txt")
    (tree / "requirements-mine.txt").symlink_to(outside)
    (tree / "topologies").mkdir()
    os.mkfifo(tree / "topologies" / "pipe.clj")
    (tree / "topologies" / "nested.clj").write_text(clojure(f"a.B {'[' * 5_000}{']' * 5_000}"))
    (tree / "topologies" / "many.clj").write_text(clojure("a.B []", *[f"a.B{number} []" for number in range(30_000)]))
    for name, text in (("deep", "[" * 200_000), ("list", '{"envs": [1]}'), ("text", '{"envs": {"a": "b"}}')):
        (tree / name).mkdir()
        (tree / name / "config.json").write_text(text)
    found = {os.path.relpath(each.path, tree): each.what for each in findings(str(tree))}
    assert found["pipe.py"] == found["config.json"] == "it is no ordinary file"
    assert found["link.py"] == found["endless.py"] == "a link, which is not followed"
    assert "too large" in found["huge.py"]
    assert {"deep.py", "unary.py", "bytes.py", "deep/config.json", "text/config.json"} <= set(found)
    assert found["topologies/pipe.clj"] == "it is no ordinary file"
    reasons = {os.path.basename(each.path): each.fix for each in findings(str(tree)) if each.path.endswith(".clj")}
    assert "nested too deeply" in reasons["nested.clj"]
    assert "more than 1,000 components" in reasons["many.clj"]
    assert from_clojure(str(tree)) == []
    assert found["requirements.txt"] == "it is no ordinary file"
    assert found["requirements-mine.txt"] == "a link, which is not followed"
    of_python = {os.path.basename(each) for each in python_files(str(tree))}
    assert of_python == {"bytes.py", "calls.py", "deep.py", "names.py", "unary.py"}


def clojure(*bolts: str) -> str:
    """Return a topology of bolts with a class and outputs each."""
    specs = "\n".join(
        f'"{number}" (python-bolt-spec options {{}} "{bolt.replace(" ", chr(34) + " ", 1)} :p 1)'
        for number, bolt in enumerate(bolts)
    )
    return f"(defn topology [options] [{{}} {{{specs}}}])"


def test_a_topology_in_clojure_becomes_no_code_but_classes_and_values(tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    path = tmp_path / "topologies" / "a\"\"\"; open('ran', 'w') #.clj"
    path.write_text(clojure('mine.Bolt ["word"]'))
    (made,) = from_clojure(str(tmp_path))
    with open(made) as file:
        (shown, *_) = ast.parse(file.read()).body
    assert isinstance(shown, ast.Expr)
    assert isinstance(shown.value, ast.Constant), "the file's name is only a text"
    with pytest.raises(ValueError, match="is no class"):
        as_dsl(clojure("os;open('ran','w');import\tmine.Bolt [\"word\"]"), "words")


def test_requirements_include_no_file_outside_of_their_project_and_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hunter2\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to(tmp_path / "secret.txt")
    (tree / "more").write_text("git+https://host.invalid/more.git\n-r requirements.txt\n-r more\n")
    (tree / "requirements.txt").write_text("-r ../secret.txt\n-r pipe\n-r link\n-r /dev/zero\n-r more\n-r more\n")
    found = [(each.line, each.what.partition(" names")[0]) for each in findings(str(tree))]
    outside = [(1, "-r ../secret.txt"), (2, "-r pipe"), (3, "-r link"), (4, "-r /dev/zero")]
    assert sorted(found) == sorted([(1, "git+https://host.invalid/more.git"), *outside])


def test_rewriting_a_strangers_tree_changes_nothing_outside_of_it(tmp_path: Path) -> None:
    pytest.importorskip("fissix")
    outside, tree = tmp_path / "outside.py", tmp_path / "tree"
    outside.write_text("print 'mine'\n")
    tree.mkdir()
    (tree / "link.py").symlink_to(outside)
    (tree / "old.py.bak").symlink_to(outside)
    (tree / "-w").mkdir()
    (tree / "old.py").write_text("print 'old'\n")
    (tree / "\x1b[2Jold.py").write_text("print 'older'\n")
    shown = multilang("migrate", "--fix", ".", cwd=tree)
    assert outside.read_text() == "print 'mine'\n"
    assert (tree / "old.py").read_text() == "print('old')\n", shown.stderr
    assert "\x1b" not in shown.stdout + shown.stderr
