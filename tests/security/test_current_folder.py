"""The folder in which somebody works, and the project that they look at, run no code of their own."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import COMMAND, ROOT, multilang

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


def test_the_modules_are_noticed(folder: Path) -> None:
    (folder / "own.py").write_text("import fissix")
    multilang("show", "own:topology", cwd=folder)
    assert ran(folder), "who names a module of the current folder runs it"


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
    shown = multilang("migrate", "--fix", "--offline", ".", cwd=folder)
    assert (folder / "old.py").read_text() == "print('old')\n", shown.stderr
    assert not ran(folder)
