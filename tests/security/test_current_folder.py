"""The folder in which somebody works, and the project that they look at, run no code of their own."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from multilang.cli import exits
from tests.cli.command import COMMAND, ROOT, multilang
from tests.servers import free_port

if TYPE_CHECKING:
    from pathlib import Path

# Modules of Python, of this library's and of its extras that its processes import.
NAMES = (
    *(
        "asyncio",
        "click",
        "fissix",
        "json",
        "lib2to3",
        "multilang",
        "nicegui",
        "pip",
        "random",
        "re",
        "rich",
        "selectors",
    ),
    *("signal", "socket", "struct", "subprocess", "tempfile", "traceback", "typing", "ujson", "uvicorn"),
)
EXAMPLES = ROOT / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder full of modules that note that they were imported."""
    made = tmp_path / "theirs"
    made.mkdir()
    for name in NAMES:
        (made / f"{name}.py").write_text(f"import os\nos.close(os.open({str(tmp_path / 'ran')!r}, os.O_CREAT))\n")
    return made


def ran(folder: Path) -> bool:
    return (folder.parent / "ran").exists()


OWN = """
import fissix, json, shutil
from multilang import TopologyBuilder
from multilang.connectors import FileSpout

builder = TopologyBuilder()
builder.set_spout("lines", FileSpout(__file__))
topology = builder.build("own")
"""


def marks(folder: Path) -> str:
    return (folder / "random.py").read_text()


def test_the_modules_are_noticed(folder: Path) -> None:
    (folder / "own.py").write_text(marks(folder))
    multilang("show", "own:topology", cwd=folder)
    assert ran(folder), "who names a module of the current folder runs it"


@pytest.mark.parametrize("place", ["current folder", "folder of the project"])
@pytest.mark.parametrize("command", ["show", "run --mode process"])
def test_a_name_of_a_module_hides_no_installed_one(folder: Path, command: str, place: str) -> None:
    pytest.importorskip("fissix")
    (folder / "own.py").write_text(OWN)
    (folder / "below").mkdir()
    words = [*command.split(), "own:topology"][: -1 if place != "current folder" else None]
    if place != "current folder":
        (folder / "multilang.toml").write_text('topology = "own:topology"')
    shown = multilang(*words, cwd=folder / "below" if place == "folder of the project" else folder, PYTHONUTF8="1")
    assert shown.returncode == 0, shown.stderr
    assert not ran(folder)


@pytest.mark.parametrize("name", ["fissix", "json", "json.tool", "random"])
def test_a_name_that_is_an_installed_modules_too_is_refused_with_both_files(folder: Path, name: str) -> None:
    pytest.importorskip("fissix")
    (folder / "json.py").unlink()
    (folder / "json").mkdir()
    for each in ("__init__", "tool"):
        (folder / "json" / f"{each}.py").write_text(marks(folder))
    shown = multilang("show", f"{name}:topology", cwd=folder, PYTHONUTF8="1")
    assert shown.returncode == 2
    assert str(folder / name.split(".")[0]) in shown.stderr
    assert "another name" in shown.stderr
    assert not ran(folder)


LOOKS = ("list", "status", "kill", "kill own", "logs", "rebalance", "doctor")


@pytest.mark.parametrize(
    ("command", "given"), [*((each, "own") for each in LOOKS), ("status", "own.py"), ("status", "name")]
)
def test_looking_at_a_cluster_runs_nothing_of_the_project(folder: Path, command: str, given: str) -> None:
    for name in ("own", "thriftpy2", "kazoo", "nicegui", "cryptography"):
        (folder / f"{name}.py").write_text(marks(folder))
    text = f'topology = "{"own.py" if given == "own.py" else "own"}"\nnimbus = "127.0.0.1:{free_port()}"\n'
    (folder / "multilang.toml").write_text(text + ('name = "own"\n' if given == "name" else ""))
    shown = multilang(*command.split(), cwd=folder, PYTHONUTF8="1")
    assert not ran(folder)
    if command == "doctor":
        assert "Nimbus" in shown.stdout
    elif command == "list" or given == "name" or " " in command:
        assert shown.returncode == exits.UNAVAILABLE, shown.stderr
    else:
        assert shown.returncode == 2
        assert 'name = "' in shown.stderr, "it says what to write"


@pytest.mark.parametrize(
    ("words", "status"), [("config show", 0), ("state ls", 2), ("state ls -e x", 2), ("state get count /home", 2)]
)
def test_looking_at_a_project_runs_nothing_that_is_not_named(folder: Path, words: str, status: int) -> None:
    (folder / "own.py").write_text(marks(folder))
    (folder / "multilang.toml").write_text(
        'topology = "own"\nname = "own"\n[conf]\n"topology.state.provider" = "own.Provider"\n[environments.x]\n'
    )
    shown = multilang(*words.split(), cwd=folder, PYTHONUTF8="1")
    assert shown.returncode == status, shown.stderr
    assert not ran(folder)
    if "get" not in words:
        multilang(*words.split(), "own", cwd=folder, PYTHONUTF8="1")
        assert ran(folder), "who names it runs it"


@pytest.mark.parametrize("mode", ["process", "inprocess"])
def test_a_run_takes_nothing_from_it(folder: Path, mode: str) -> None:
    (folder / "text").write_text("the cow jumped over the moon\n")
    own = {"XDG_STATE_HOME": str(folder.parent)}
    shown = multilang("run", EXAMPLES / "stateful_word_count.py", "--mode", mode, "--input", "text", cwd=folder, **own)
    assert shown.returncode == 0, shown.stderr
    assert not ran(folder)


def test_a_page_takes_nothing_from_it(folder: Path) -> None:
    command = [COMMAND, "run", EXAMPLES / "exclamation.py", "--page", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith("page: "):
                break
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert "page: http://" in said
    assert not ran(folder)


def test_a_jar_with_requirements_takes_nothing_from_it(folder: Path) -> None:
    (folder.parent / "own.py").write_text((EXAMPLES / "exclamation.py").read_text())
    (folder / "wanted.txt").write_text("./no-such-package.whl\n")
    multilang(
        "package", folder.parent / "own.py", "--requirements", "wanted.txt", "-o", folder.parent / "own.jar", cwd=folder
    )
    assert not ran(folder)


def test_looking_at_a_strangers_project_and_rewriting_it_runs_nothing_of_it(folder: Path) -> None:
    pytest.importorskip("fissix")
    (folder / "old.py").write_text("print 'old'\n")
    shown = multilang("migrate", "--fix", ".", cwd=folder)
    assert (folder / "old.py").read_text() == "print('old')\n", shown.stderr
    assert not ran(folder)
