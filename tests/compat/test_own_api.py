"""Component classes that are written over to this library's own do what they did before."""

from __future__ import annotations

import errno
import importlib
import json
import os
import shutil
import stat
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang import Component, Stream
from multilang.compat.migrate import python_files
from multilang.compat.names import provide
from multilang.compat.own_api import plan
from multilang.testing import complete_topology, run_bolt, run_spout, tick
from multilang.topology import load_topology
from tests.cli.command import multilang
from tests.compat.test_projects import EXPECTED, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = Path(__file__).with_name("own_api")
STREAMS = {"two": ["a", "b"], "direct": Stream(["a"], direct=True)}
WRITTEN: dict[str, dict[str, list[str] | None]] = {
    "petrel": {"Split": ["word", "n"], "Count": ["word", "count"], "Numbers": ["n"]},
    "pystorm": {"Count": ["word", "count"], "Numbers": ["a", "b"]},
    "sparse": {
        "Count": ["word", "count"],
        "Slices": ["value"],
        "ByHand": ["word"],
        "Anchored": ["word"],
        "Mild": ["word"],
        "Base": ["word"],
        "Upper": ["word"],
        "Nothing": None,
        "Lines": ["line"],
    },
    "storm": {"Split": ["word", "n"], "ByHand": ["word"], "Numbers": ["n"]},
}
KEPT = {
    "petrel": {"Told": "its method activate", "Asked": "declareOutputFields does more"},
    "pystorm": {"Silent": "neither fail the tuple nor end"},
    "sparse": {
        "Groups": "processes a group at the tick",
        "OfKept": "processes a group at the tick",
        "Kept": "emits a failed tuple again at once",
        "Early": "emits in initialize",
        "Undeclared": "declares no outputs",
        "Wide": "emits 2 values to the stream 'default', whose number of fields in outputs is 1",
        "Bytes": "it may emit bytes",
        "Collision": "sets self.metrics, a name",
        "Hands": "hands tup to self.waiting.append",
        "AsTuple": "_asdict, a method of namedtuples",
        "Formatted": "is in an f-string",
        "Reports": "self.raise_exception, which multilang's components don't have",
        "NoAnchors": "acks automatically but does not anchor",
        "OddLevel": "self.log with a level",
        "Unpacks": "keeps tup or hands it on",
    },
    "storm": {
        "Many": "emits with anchors, which storm.py's BasicBolt ignores",
        "Level": "the level in its call of storm.log",
        "Syncs": "storm.sync, which multilang does not have",
    },
}
LIBRARIES = {"petrel": "petrel", "pystorm": "pystorm", "sparse": "streamparse", "storm": "storm"}


@pytest.fixture(autouse=True)
def _names() -> Iterator[None]:
    provide()
    yield
    del sys.meta_path[0]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts, written over."""
    folder = Path(shutil.copytree(PARTS, tmp_path_factory.mktemp("parts") / "parts"))
    plan(python_files(str(folder))).write()
    return folder


def loaded(file: Path) -> Any:
    spec = spec_from_file_location(f"{file.stem}_{abs(hash(file))}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_classes_that_mean_the_same_are_written_over_and_the_others_have_a_reason() -> None:
    found = plan(python_files(str(PARTS)))
    written: dict[str, set[str]] = {}
    for path, _, name, _ in found.written:
        written.setdefault(Path(path).stem.removesuffix("_parts"), set()).add(name)
    assert written == {library: set(classes) for library, classes in WRITTEN.items()}
    for library, classes in KEPT.items():
        for name, reason in classes.items():
            reasons = [each.reason for each in found.kept if each.name == name and library in Path(each.path).name]
            assert any(reason in each for each in reasons), (name, reasons)
    assert {(Path(each.path).stem.removesuffix("_parts"), each.name) for each in found.kept} == {
        (library, name) for library, classes in KEPT.items() for name in classes
    }


@pytest.mark.parametrize(("library", "name"), [(library, name) for library in WRITTEN for name in WRITTEN[library]])
def test_a_class_does_what_it_did_before(library: str, name: str, parts: Path) -> None:
    fields = WRITTEN[library][name]
    home = "pystorm" if library == "sparse" else LIBRARIES[library]
    adapted = importlib.import_module(f"multilang.compat.{home}.running").adapted
    file = f"{library}_parts.py"
    old, new = (getattr(loaded(folder / file), name) for folder in (PARTS, parts))
    assert issubclass(new, Component)
    assert not issubclass(old, Component)
    streams = (
        {"two": ["a"], "direct": Stream(["a"], direct=True)} if library == "storm" and name != "Split" else STREAMS
    )
    did = [of_spout if "next_tuple" in dir(new) else of_bolt] * 2
    before, after = (how(adapted(kind, fields, streams)) for how, kind in zip(did, (old, new), strict=True))
    assert after == before
    assert before["emitted"] or name == "Nothing"


def of_bolt(bolt: Any) -> dict[str, Any]:
    """The answers of a bolt in a scripted conversation."""
    run = run_bolt(
        bolt, [], {"step": 3, "topology.name": "talks"}, fields=["word", "n"], expect=(IndexError, KeyError, ValueError)
    )
    raised = []
    told: list[Any] = [["cow", 1], ["moon", 2], ["bad", 3], tick(), ["cow", 5], ["bad", 6]]
    for each in told:
        try:
            run.process(each)
        except (IndexError, KeyError, ValueError) as error:
            raised.append(type(error))
    return {
        "emitted": [
            (each.values, each.stream, [tup.values for tup in each.anchors], each.direct_task) for each in run.emitted
        ],
        "acked": [tup.values for tup in run.acked],
        "failed": [tup.values for tup in run.failed],
        "unfinished": [tup.values for tup in run.unfinished],
        "reported": len(run.errors),
        "raised": raised,
        "logged": run.logged,
        "metrics": run.metrics,
    }


def of_spout(spout: Any) -> dict[str, Any]:
    """The answers of a spout in a scripted conversation."""
    run = run_spout(spout, 0, {"topology.name": "talks"})
    raised: list[Any] = []
    run.activate()
    for number in range(5):
        try:
            run.next()
        except ValueError as error:
            raised.append(str(error))
        if run.pending and number % 2:
            (run.ack if number == 1 else run.fail)(run.pending[0])
    run.deactivate()
    return {
        "emitted": [(each.values, each.stream, each.tup_id) for each in run.emitted],
        "pending": run.pending,
        "raised": raised,
        "reported": len(run.errors),
        "logged": run.logged,
    }


def test_a_second_run_changes_nothing(parts: Path) -> None:
    texts = {path: path.read_bytes() for path in sorted(parts.glob("*.*"))}
    again = plan(python_files(str(parts)))
    assert (again.texts, again.written) == ({}, [])
    again.write()
    assert {path: path.read_bytes() for path in sorted(parts.glob("*.*"))} == texts


def test_comments_and_layout_stay(parts: Path) -> None:
    text = (parts / "sparse_parts.py").read_text()
    of_imports = (
        "from streamparse import BatchingBolt, Bolt, ReliableSpout, Spout\n"
        "from multilang.component import BasicBolt, Bolt as OwnBolt, Spout as OwnSpout, Stream\n"
    )
    for line in (
        of_imports,
        '    output_fields = ["word", "count"]  # the fields\n',
        '        word = tup["word"]  # by name\n',
        "    # it acks by itself\n",
        '    """It counts words."""\n\n    on_exception = "fail and end"\n',
    ):
        assert line in text


def test_a_project_written_over_counts_what_it_counted(tmp_path: Path) -> None:
    project = Path(shutil.copytree(WORDS, tmp_path / "words", ignore=shutil.ignore_patterns("__pycache__")))
    before = {path: path.read_text() for path in sorted(project.rglob("*.py"))}
    shown = multilang("migrate", "--offline", "--own-api", ".", cwd=project)
    assert (
        "src/bolts/words.py:7: note: SplitBolt can become a BasicBolt of multilang; --fix writes it over"
        in shown.stdout
    )
    assert (
        "topologies/words.py:10: note: Words stays on the compatibility layer and runs as before: par of 'count' has a number "
        "for each environment ('prod', 'beta'), and a builder takes one number\n" in shown.stdout
    )
    assert {path: path.read_text() for path in before} == before
    done = multilang("migrate", "--offline", "--own-api", "--fix", ".", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("written over: ") == 3
    ran = multilang("run", "words", "-e", "prod", "--top", "count:word:count", "--rows", 20, "--json", cwd=project)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert figures["reliability"]["acked"] == 12
    assert {row["word"]: row["count"] for row in figures["top"]} == EXPECTED
    assert {path: Path(f"{path}.bak").read_text() for path in before if Path(f"{path}.bak").exists()} == {
        path: text
        for path, text in before.items()
        if "__init__" not in path.name and path.name not in ("fabfile.py", "helpers.py")
    }


def test_after_any_of_its_files_a_project_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    found = plan(python_files(str(WORDS)))
    assert len(found.texts) == 3
    for number in range(4):
        project = Path(shutil.copytree(WORDS, tmp_path / str(number), ignore=shutil.ignore_patterns("__pycache__")))
        for path, text in found.steps[:number]:
            (project / Path(path).relative_to(WORDS)).write_text(text)
        topology = load_topology(str(project / "topologies" / "words.py"))
        assert {name: spec.tasks for name, spec in topology.components.items()} == {"lines": 1, "split": 2, "count": 2}
        ran = complete_topology(topology, {"lines": [["the cow"], ["the moon"]]})
        assert Counter(map(tuple, ran.values("count"))) == {("the", 1): 1, ("the", 2): 1, ("cow", 1): 1, ("moon", 1): 1}


def test_each_file_is_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Path(shutil.copytree(WORDS, tmp_path / "words", ignore=shutil.ignore_patterns("__pycache__")))
    file = project / "src" / "bolts" / "words.py"
    file.chmod(0o640)
    found = plan(python_files(str(project)))
    old = file.read_text()

    def full(handle: int, data: bytes) -> None:
        os.write(handle, data[:10])
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("multilang.compat.own_api.project.write_all", full)
        with pytest.raises(OSError, match="no space"):
            found.write()
    assert file.read_text() == old
    assert not list(project.rglob("*.bak"))
    found.write()
    assert file.read_text() == found.texts[str(file)][0]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


LIKE_STREAMPARSE = (
    "from streamparse import Bolt\nclass Part(Bolt):\n    outputs = ['word']\n    def process(self, tup):\n"
)


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("self.emit([tup.values.word])", 'self.emit([tup["word"]])'),
        ("self.emit([ü := tup.values[0], ][:1])", "self.emit([ü := tup[0], ][:1])"),
        ("word = 'ü'; self.emit([word, ], need_task_ids=True)", None),
        ("x = [tup.values.a, tup.values.b]; self.emit([x])", 'x = [tup["a"], tup["b"]]; self.emit([x])'),
        ("for x in tup.values: self.emit([x])", None),
        ("a, *b = tup.values; self.emit([a])", None),
        ("print(*tup.values)", None),
        ("self.emit(values=[1])", ""),
        ("tup.values = 1", ""),
        ("tup.values.word = 1", ""),
        ("self.emit([tup.values])", ""),
        ("self.emit([tup.values + (1,)])", ""),
        ("self.emit([hash(tup.values)])", ""),
        ("self.emit(*[['a']])", ""),
        ("self.emit(['a'], **{})", ""),
        ("emit = self.emit; emit(['a'])", ""),
        ("print(self)", ""),
        ("getattr(self, 'ack')(tup)", ""),
        ("x = getattr(tup.values, 'word', None)", ""),
        ("self.ack = print", ""),
        ("self.send_message({})", ""),
        ("self.task_id = 1", None),
        ("self.pid = 1; self.emit([self.pid])", None),
        ("self.emit([self.pid])", ""),
        ("super().process(tup)", None),
        ("super().emit([1])", ""),
        ("import threading; threading.Thread(target=self.emit).start()", ""),
        ("id, comp, stream, task, values = tup", ""),
        ("copy = tup", ""),
        ("(lambda given: self.emit([given]))(tup)", ""),
        ("try: self.emit([tup.values.word])\n        except AttributeError: pass", ""),
        ("self.emit([{1: 2}])", ""),
        ("x = 1\n        try: self.emit([x])\n        except Exception: pass", ""),
        ("x = 1\n        try: self.emit([x])\n        except: pass", ""),
        ("x = 1\n        try: self.emit([x])\n        except IOError: pass", None),
        ("self.emit([b'x'])", ""),
        ("self.emit(['x'], stream='other')", ""),
        ("self.emit(['x'], stream=tup.values.word)", "self.emit(['x'], stream=tup[\"word\"])"),
    ],
)
def test_a_line_is_written_over_or_keeps_its_class(line: str, becomes: str | None, tmp_path: Path) -> None:
    """None: the line stays as it is in a class that is written over; empty: the class stays."""
    file = tmp_path / "part.py"
    file.write_text(f"{LIKE_STREAMPARSE}        {line}\n")
    found = plan([str(file)])
    if becomes == "":
        assert not found.written
        assert found.kept
        assert found.kept[0].line in (2, 5, 6)
    else:
        assert not found.kept
        assert found.texts[str(file)][0].endswith(f"        {becomes or line}\n")


@pytest.mark.parametrize(
    "text",
    [
        "def make():\n    return Part()\n",
        "PARTS = [Part]\n",
        "Part.outputs = ['b']\n",
        "def is_part(given):\n    return isinstance(given, Bolt)\n",
        "part = Part(input_stream=None)\n",
        "Bolt = object\n",
        "@print\nclass Part(Bolt):\n    def process(self, tup): pass\n",
        "class Part(Bolt, dict):\n    def process(self, tup): pass\n",
        "class Part(Bolt): outputs = ['b']\n",
        "from os import *\n",
        "CONF = {'pystorm.log.path': '/tmp'}\n",
    ],
)
def test_a_class_stays_if_the_file_uses_it_in_ways_that_are_not_known(text: str, tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    file.write_text(f"{LIKE_STREAMPARSE}        self.emit(['a'])\n\n{text}")
    found = plan([str(file)])
    assert not found.texts
    assert found.kept or text == "Bolt = object\n"


def test_ends_of_lines_encoding_and_tabs_stay(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    text = "# -*- coding: latin-1 -*-\r\nfrom streamparse import Bolt\r\nclass Part(Bolt):\r\n\toutputs = ['ü']\r\n\tdef process(self, tup):\r\n\t\tself.emit(['ü' + tup.values.word])"
    file.write_bytes(text.encode("latin-1"))
    plan([str(file)]).write()
    new = text.replace("streamparse import Bolt", "multilang.component import BasicBolt").replace(
        "(Bolt)", "(BasicBolt)"
    )
    new = new.replace("\toutputs", '\ton_exception = "fail and end"\r\n\toutput_fields').replace(
        "tup.values.word", 'tup["word"]'
    )
    assert file.read_bytes() == new.encode("latin-1")
    assert Path(f"{file}.bak").read_bytes() == text.encode("latin-1")
