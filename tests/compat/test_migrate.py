"""multilang migrate names what stops a project, with the line and the fix."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from multilang.compat.migrate import findings
from tests.cli.command import multilang
from tests.compat.test_projects import WORDS

if TYPE_CHECKING:
    from pathlib import Path

OLD = {
    "src/bolts/__init__.py": "",
    "src/bolts/helpers.py": "def split(line):\n    return line.split()\n",
    "src/bolts/old.py": (
        "import Queue\n"
        "from helpers import split\n"
        "from streamparse.bolt import Bolt\n"
        "class Old(Bolt):\n"
        "    def process(self, tup):\n"
        "        for key, value in {}.iteritems():\n"
        "            self.emit([unicode(key)])\n"
        "    def _run(self):\n"
        "        open('/Users/somebody/data.csv')\n"
    ),
    "src/spouts/printing.py": "print 'a line'\n",
    "topologies/words.clj": "(ns words)\n",
    "topologies/java.py": (
        "from streamparse import Grouping, JavaSpout, Topology\n"
        "class Words(Topology):\n"
        "    words = JavaSpout.spec(full_class_name='a.B', args_list=[], outputs=['word'])\n"
    ),
    "config.json": '{\n "serializer": "msgpack",\n "envs": {"prod": {"virtualenv_root": "/data", "use_ssh_for_nimbus": true}}\n}\n',
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    for name, text in OLD.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_each_fault_has_its_line_and_its_fix(old: Path) -> None:
    found = {
        (each.path.removeprefix(f"{old}/"), each.line, each.what.partition(". Did you mean")[0], each.stops)
        for each in findings(str(old))
    }
    assert found == {
        ("config.json", 2, "the serializer 'msgpack' of the environment 'prod'", True),
        ("config.json", 3, "use_ssh_for_nimbus of the environment 'prod' means nothing here", False),
        ("config.json", 3, "virtualenv_root of the environment 'prod' means nothing here", False),
        ("src/bolts/old.py", 1, "Python 3 has no module Queue", True),
        ("src/bolts/old.py", 2, "Python 3 looks for 'helpers' from the top, not beside this file", True),
        ("src/bolts/old.py", 4, "Old emits, and declares no outputs", False),
        ("src/bolts/old.py", 6, "Python 3's dicts have no iteritems", True),
        ("src/bolts/old.py", 7, "Python 3 has no unicode", True),
        ("src/bolts/old.py", 8, "Old defines _run, a part of a loop that does not run here", True),
        (
            "src/bolts/old.py",
            9,
            "the absolute path '/Users/somebody/data.csv', which other machines may not have",
            False,
        ),
        (
            "src/spouts/printing.py",
            1,
            "not valid in Python 3: Missing parentheses in call to 'print'",
            True,
        ),
        ("topologies/java.py", 3, "a component in Java, which only Storm's workers run", True),
        ("topologies/words.clj", 0, "a topology in Clojure", True),
    }


def test_a_project_that_runs_has_nothing_to_mend(tmp_path: Path) -> None:
    done = multilang("migrate", WORDS)
    assert done.returncode == 0, done.stdout
    assert all(": note: " in line for line in done.stdout.splitlines())
    (tmp_path / "config.json").write_text('{"name": "another tool"}')
    assert findings(str(tmp_path)) == []


def test_the_status_says_that_something_stops_it(old: Path) -> None:
    done = multilang("migrate", old)
    assert done.returncode == 1
    assert (
        f"{old}/topologies/words.clj: a topology in Clojure; declare it as a class of streamparse's DSL" in done.stdout
    )
    assert "9 to mend, 4 to know" in done.stderr


def test_python_2_is_rewritten(old: Path) -> None:
    shutil.rmtree(old / "topologies")
    (old / "config.json").unlink()
    done = multilang("migrate", old, "--fix")
    assert done.returncode == 1  # _run stays
    assert (old / "src/spouts/printing.py").read_text() == "print('a line')\n"
    rewritten = (old / "src/bolts/old.py").read_text()
    assert "import queue" in rewritten
    assert "from .helpers import split" in rewritten
    assert "in {}.items()" in rewritten
    assert [each.what for each in findings(str(old)) if each.stops] == [
        "Old defines _run, a part of a loop that does not run here"
    ]
