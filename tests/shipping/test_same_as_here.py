"""Whatever a project's folder looks like, a command finds and starts on a worker what it finds and starts here."""

from __future__ import annotations

import itertools
import os
import random
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.cli.package import listed
from multilang.shipping import ShippingError, pack
from multilang.shipping.guard import Guard
from multilang.topology import TopologyError, load_topology
from multilang.topology.commands import local_start
from tests.shipping.conftest import TOPOLOGY as SHOUTING
from tests.shipping.test_programs import TOPOLOGY, run, shell, started, topology_with
from tests.shipping.worker import BARE_PYTHON, run_bolt, unpack_jar
from tests.soak import SOAK

if TYPE_CHECKING:
    from tests.shipping.conftest import Project

SEEDS = range(400 if SOAK else 16)
NAMES = ("a", "b c", ".d", "it's", "ü", "-x", "$e", "f.pl", "g.py")
WRAPPERS = (
    (),
    ("nice",),
    ("nice", "-n", "1"),
    ("env", "A=1"),
    ("timeout", "-k", "5", "60"),
    ("setsid", "-w"),
    ("stdbuf", "-oL"),
    ("env", "-u", "A", "nice", "-1"),
)


class Layout:
    """A folder of files, programs, folders and links, and what a script can do with each of them."""

    def __init__(self, seed: int, folder: Path, elsewhere: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.elsewhere = elsewhere
        self.looks: list[str] = []  # words of the shell
        self.targets = itertools.count()
        self.fill(folder, "", 2)

    def fill(self, folder: Path, below: str, depth: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.random.sample(NAMES, self.random.randint(2, 4)):
            word = shlex.quote(f"./{below}{name}")
            self.entry(folder / name, f"{below}{name}", word, depth)

    def entry(self, path: Path, name: str, word: str, depth: int) -> None:
        kind = self.random.choice(["file", "program", "link to a file", *["folder", "link to a folder"] * (depth > 0)])
        if kind == "folder":
            if self.random.random() < 0.3:
                path.mkdir()
            else:
                self.fill(path, f"{name}/", depth - 1)
            self.looks.append(f"ls -A {word}")
        elif kind == "link to a folder":
            target = self.target()
            self.fill(target, f"{name}/", depth - 1)
            self.link(path, target)
            self.looks.append(f"ls -A {word}")
        elif kind == "link to a file":
            target = self.target()
            self.program(target, word)
            self.link(path, target)
        else:
            self.program(path, word, executable=kind == "program")

    def target(self) -> Path:
        """A place outside of the project, or in it beside ``resources/``."""
        return self.random.choice([self.elsewhere, self.folder.parent / "beside"]) / f"to {next(self.targets)}"

    def link(self, path: Path, target: Path) -> None:
        path.symlink_to(target if self.random.random() < 0.5 else os.path.relpath(target, path.parent))

    def program(self, path: Path, word: str, executable: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {len(self.looks)} "$@"\n')
        path.chmod(0o755 if executable else 0o644)
        self.looks.append(f"{word} of {len(self.looks)}" if executable else f"cat {word}")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_command_does_on_a_worker_what_it_does_here(project: Project, tmp_path: Path, seed: int) -> None:
    """Links in and out of the project, dot folders, permissions, empty folders, wrappers, names of every kind."""
    pick = random.Random(f"command {seed}")
    layout = Layout(seed, project.folder / "resources", tmp_path / "elsewhere")
    change = pick.random() < 0.7
    enter = "" if change else "cd resources\n"
    script = project.write(
        "resources/run", f'#!/bin/sh\n{enter}exec 2>&1\necho "$@"\n' + "\n".join([*layout.looks, "echo done\n"])
    )
    if pick.random() < 0.3:  # where the script itself is elsewhere
        script = script.rename(tmp_path / "run")
        (project.folder / "resources" / "run").symlink_to(script)
    script.chmod(0o755)
    project.write("table", "")
    folder = project.folder
    if pick.random() < 0.5:
        folder = tmp_path / "a link"
        folder.symlink_to(project.folder)
    here = pick.choice([folder, project.folder]) / "resources" / "run"
    name = pick.choice(["./run", "resources/run", str(here)])
    words = [*pick.choice(WRAPPERS), *pick.choice([(), (), ("sh",)]), name, "x y", "--conf=8"]
    text = "\n".join(TOPOLOGY.split("\n    "))
    file = project.write("flow.py", text.format(bolt=shell(words, change_child_cwd=change), conf=None, bolt_conf=None))
    file = file.rename(file.with_name(f"{project.name}.py"))
    topology = load_topology(str(folder / file.name))

    command, at = local_start(topology["other"], topology.conf)
    found = run(command, Path(at))
    assert found.endswith("done\n")
    assert "sh:" not in found  # all can be done
    shipment = pack(topology, guard=Guard(force=True))
    for number in range(3):
        worker = tmp_path / f"worker {number}"
        unpack_jar(shipment.jar(), worker)
        words, place = list(started(shipment, worker))[number]
        assert run(words, place) == found, (words, layout.looks)


def test_of_what_does_not_go_along_each_is_told(project: Project) -> None:
    for name in (
        ".git/config",
        "env/pyvenv.cfg",
        "cache/CACHEDIR.TAG",
        "__pycache__/a.pyc",
        "b.py",
        "b.py.bak",
        "b.pyc",
        "c.pyc",
        "run",
    ):
        project.write(f"resources/{name}", "")
    (project.folder / "resources" / ".#lock").symlink_to("me@here.7")
    shipment = pack(topology_with(project, shell(["sh", "run"])))
    assert {"b.py", "c.pyc", "run"} < {item.name for item in shipment.contents}
    assert {name: reason.split()[0] for name, reason in shipment.contents.left_out.items()} == {
        ".git": "of",
        "b.py.bak": "an",
        "env": "an",
        "cache": "a",
        ".#lock": "a",
    }
    assert "without .git: of version control" in listed(shipment, every=False)


def test_links_out_of_the_project_are_told_and_those_that_lead_round_left_out(project: Project, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a").write_text("")
    project.write("resources/run", "")
    (project.folder / "resources" / "lib").symlink_to("../../lib")
    topology = topology_with(project, shell(["sh", "run"]))
    assert f"with lib from {tmp_path / 'lib'}, outside of the topology's folder" in listed(
        pack(topology, guard=Guard(force=True)), every=False
    )
    (tmp_path / "lib" / "round").symlink_to(project.folder)
    said = f"without lib/round: a link to {project.folder}, which it is itself a part of"
    assert said in listed(pack(topology, guard=Guard(force=True)), every=False)
    (tmp_path / "lib" / "round").unlink()
    os.mkfifo(tmp_path / "lib" / "pipe")
    with pytest.raises(ShippingError, match=r"lib/pipe, .* is neither a file nor a folder, so no jar can hold it"):
        pack(topology, guard=Guard(force=True))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["nice", "./run", "--conf=./a.json"], {"run", "a.json"}),
        (["env", "CONF=a.json", "perl", "-Ilib", "-I./more", "b.pl"], {"a.json", "more/c.pm", "b.pl"}),
        (["perl", "b.pl", "more/", "{more}"], {"b.pl", "more/c.pm"}),
    ],
)
def test_files_are_found_in_words_of_all_kinds(project: Project, words: list[str], found: set[str]) -> None:
    for name in ("run", "a.json", "more/c.pm", "lib/d.pm", "b.pl"):
        project.write(name, "")
    words = [word.format(more=project.folder / "more") for word in words]
    shipment = pack(topology_with(project, shell(words)))
    assert {item.name for item in shipment.contents if "in the command of bolt" in item.why} == found


def test_a_word_that_is_the_name_of_a_folder_is_told(project: Project) -> None:
    project.write("lib/d.pm", "")
    project.write("b.pl", "")
    topology = topology_with(project, shell(["perl", "-I", "lib", "b.pl"]))
    assert "without lib: a folder of the name that is in the command of bolt 'other'" in listed(
        pack(topology), every=False
    )
    assert not pack(topology, include=[project.folder / "lib"]).contents.left_out


@pytest.mark.parametrize(
    "words", [["nice", "./nosuch"], ["timeout", "-s", "9", "5", "./nosuch"], ["env", "A=1", "nice", "./nosuch"]]
)
def test_a_program_behind_another_that_is_not_there_is_refused(project: Project, words: list[str]) -> None:
    with pytest.raises(TopologyError, match=r"names './nosuch', but no such file"):
        topology_with(project, shell(words))


def test_programs_that_run_on_this_machine_alone_are_refused(project: Project) -> None:
    project.write("env/pyvenv.cfg", "")
    project.write("env/bin/python3", "")
    with pytest.raises(
        ShippingError, match=r"python3', in the command .* is in the environment .*multilang archive env"
    ):
        pack(topology_with(project, shell(["./env/bin/python3", "-V"])))
    interpreter = project.folder / "env/bin/python3"
    project.write("run", f"#!{interpreter} -u\n")
    with pytest.raises(
        ShippingError, match=rf"begins with #!{interpreter}, .* environment .*/env, .* write #!/usr/bin/env python3"
    ):
        pack(topology_with(project, shell(["nice", "./run"])))
    assert pack(topology_with(project, shell(["python3", "./run"]))).jar()


@pytest.mark.parametrize("interpreter", ["/srv/python/bin/python3", "/home/me/env/bin/python3", "{folder}/tools/py"])
def test_an_interpreter_that_workers_may_have_is_told(project: Project, interpreter: str) -> None:
    interpreter = interpreter.format(folder=project.folder)
    project.write("run", f"#!{interpreter} -u\n")
    told = (
        f"note: './run', in the command of bolt 'other', begins with #!{interpreter}: the workers need a program there"
    )
    assert told in listed(pack(topology_with(project, shell(["nice", "./run"]))), every=False)
    assert "note:" not in listed(pack(topology_with(project, shell(["python3", "./run"]))), every=False)


def test_what_a_component_in_python_starts_may_be_started_on_a_worker(project: Project, tmp_path: Path) -> None:
    project.write("data/say", "#!/bin/sh\necho $1\n").chmod(0o755)
    (project.folder / "data" / "empty").mkdir()
    imports = "import os, subprocess\nHERE = os.path.dirname(os.path.abspath(__file__))"
    more = (
        "def shout(word):\n    os.listdir(f'{HERE}/data/empty')\n"
        "    return subprocess.run([f'{HERE}/data/say', word], check=True, capture_output=True, text=True).stdout"
    )
    text = (
        textwrap.dedent(SHOUTING)
        .format(imports=imports, more="")
        .replace("def shout(word):\n    return word.upper()", more)
    )
    topology = project.topology(text=text)
    shipment = pack(topology, include=[project.folder / "data"])
    assert shipment.check()
    resources = unpack_jar(shipment.jar(), tmp_path / "worker")
    emitted, _ = run_bolt([BARE_PYTHON, "run_topology.py"], resources, topology, "shout", ["moo"])
    assert emitted == [["moo\n"]]
