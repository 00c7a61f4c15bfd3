"""Requests that the command can't fulfil give one clear error and status 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click import ClickException

from multilang.cli.app import run_app
from multilang.cli.loading import load
from tests.cli.command import ROOT, multilang, topology

SMALL = topology("small")

REFUSALS = {
    "no file": (["run", "nope.py"], "there is no file"),
    "nearly a file": (["run", "examples/word_cuont.py"], "did you mean 'word_count.py'?"),
    "no folder": (["run", "exmples/word_count.py"], "there is no folder"),
    "no topology": (
        ["run"],
        "it needs a topology, and this folder is in no project: name a file or module (multilang run ",
    ),
    "no attribute": (["run", "examples/word_count.py:topologie"], "did you mean 'topology'?"),
    "no module": (["show", "nosuchmodule"], "there is no module 'nosuchmodule'"),
    "no input file": (["run", SMALL, "--input", "nope.txt"], "nope.txt"),
    "conf without =": (["run", SMALL, "-c", "topology.workers"], "write for example topology.max.spout.pending=100"),
    "conf of the wrong type": (
        ["run", SMALL, "-c", "topology.max.spout.pending=many"],
        "topology.max.spout.pending is",
    ),
    "conf that can't be": (
        ["run", SMALL, "-c", "topology.message.timeout.secs=0"],
        "topology.message.timeout.secs is 0",
    ),
    "conf of the components": (["run", SMALL, "-c", "multilang.log.level=loud"], "use one of trace, debug"),
    "misspelt conf": (
        ["run", SMALL, "-c", "topology.max.spout.pendng=3"],
        "'topology.max.spout.pendng' is read by nobody; did you mean 'topology.max.spout.pending'?",
    ),
    "no mode": (["run", SMALL, "--mode", "cluster"], "'inprocess'"),
    "top without a field": (["run", SMALL, "--top", "remainder"], "write for example count:word:count"),
    "top of no component": (["run", SMALL, "--top", "remaider:number"], "did you mean 'remainder'?"),
    "top of no stream": (["run", SMALL, "--top", "remainder/odd:number"], "write 'default'"),
    "top of no field": (["run", SMALL, "--top", "remainder:num"], "emits no field 'num'"),
    "a program needs a process": (["run", "examples/node_split.py", "--mode", "inprocess"], "use --mode process"),
    "faults without a seed": (["run", SMALL, "--faults"], "--faults needs --mode simulated"),
    "no time": (["run", SMALL, "--for", "0"], "0"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_wrong_command_line_is_refused_with_the_reason(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert run_app(arguments) == 2  # in this process: nothing is started
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_a_file_that_is_not_python_is_shown_where_it_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    shown = multilang("run", tmp_path / "broken.py")
    assert shown.returncode == 2
    assert "line 2" in shown.stderr
    assert "SyntaxError" in shown.stderr


IMPORTING = {
    "import nosuchlibrary\n": (
        "there is no module 'nosuchlibrary'; install the package that brings it, or, if it is a file of yours, put its folder on "
        "PYTHONPATH"
    ),
    "\nimport json.nothing\n": (
        "the package 'json' has no module 'json.nothing'; look at the spelling, and whether the file is there"
    ),
    "from json import nothing\n": "cannot import name 'nothing' from 'json' (",
}


@pytest.mark.parametrize("text", IMPORTING)
def test_an_import_that_fails_is_one_sentence_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text(text)
    with pytest.raises(ClickException) as raised:
        load(f"{tmp_path}/wrong.py")
    place = f"{tmp_path}/beside.py, line {text.count(chr(10))}: "
    assert str(raised.value).startswith(place + IMPORTING[text])
    assert "\n" not in str(raised.value)


def test_a_package_that_lacks_another_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "halfapackage.py").write_text("import its_other_half\n")
    monkeypatch.syspath_prepend(packages)
    (tmp_path / "uses_half.py").write_text("import halfapackage\n")
    with pytest.raises(ClickException) as raised:
        load(f"{tmp_path}/uses_half.py")
    assert str(raised.value).startswith(
        f"{tmp_path}/uses_half.py, line 1: there is no module 'its_other_half', which {packages}/halfapackage.py imports; install"
    )


def test_an_exception_of_the_topologys_own_code_is_shown_from_that_code_on(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("def called():\n    return {}['a']\n\n\ncalled()\n")
    shown = multilang("show", tmp_path / "fails.py")
    assert shown.returncode == 2
    assert f"importing {tmp_path}/fails.py failed in {tmp_path}/fails.py, line 2: KeyError: 'a'\n" in shown.stderr
    assert f'File "{tmp_path}/fails.py", line 5, in <module>' in shown.stderr
    assert "multilang/topology" not in shown.stderr
    assert "importlib" not in shown.stderr


def test_a_mistake_in_the_declaration_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "from multilang import BasicBolt, Spout, TopologyBuilder\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('words', type('Words', (Spout,), {'output_fields': ['word']}))\n"
        "builder.set_bolt('count', BasicBolt).fields_grouping('word', 'word')\n"
        "topology = builder.build('small')\n"
    )
    shown = multilang("show", tmp_path / "wrong.py")
    assert shown.returncode == 2
    assert f"{tmp_path}/wrong.py, line 5: " in shown.stderr
    assert "'words'" in shown.stderr


def test_without_the_extra_the_command_says_how_to_install_it() -> None:
    program = "import sys; sys.modules['rich'] = None; from multilang.cli import main; sys.exit(main())"
    shown = subprocess.run([sys.executable, "-c", program, "version"], capture_output=True, text=True, cwd=ROOT)
    assert shown.returncode == 69
    assert shown.stderr == (
        "multilang: the command needs the package rich; install the extra: pip install 'storm-multilang[cli]'\n"
    )


def test_what_a_component_logs_moves_no_cursor(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text(
        "from multilang import Spout, TopologyBuilder\n"
        "class Loud(Spout):\n"
        "    output_fields = ['word']\n"
        "    def initialize(self, conf, context): self.log('\\x1b]0;title\\x07 \\x1b[2J said', 'error')\n"
        "    def exhausted(self): return True\n"
        "    def next_tuple(self): pass\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('loud', Loud)\n"
        "topology = builder.build('t')\n"
    )
    shown = multilang("run", file)
    assert "\\x1b]0;title\\x07 \\x1b[2J said" in shown.stderr
    assert "\x1b" not in shown.stdout + shown.stderr
