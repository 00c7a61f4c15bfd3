"""multilang migrate names what stops a project, with the line and the fix."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import click
import pytest

from multilang.cli.migrate import migrate
from multilang.migrate import findings, from_clojure, has_program
from multilang.migrate.python2 import rewrite
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
    "src/bolts/empty.py": "from streamparse import Bolt\nclass Empty(Bolt):\n    outputs = []\n    def process(self, tup):\n        self.emit([1])\n",
    "topologies/words.clj": "(ns words)\n",
    "topologies/java.py": (
        "from streamparse import Grouping, JavaSpout, Topology\n"
        "class Words(Topology):\n"
        "    words = JavaSpout.spec(full_class_name='a.B', args_list=[], outputs=['word'])\n"
        "    other = JavaSpout.spec(serialized_java=b'', outputs=['word'])\n"
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
    found = {(each.path.removeprefix(f"{old}/"), each.line, each.what, each.stops) for each in findings(str(old))}
    assert found == {
        (
            "config.json",
            2,
            "the environment 'prod' has the serializer 'msgpack', which needs a Java class on the workers",
            True,
        ),
        ("config.json", 3, "use_ssh_for_nimbus of the environment 'prod' means nothing here", False),
        ("config.json", 3, "virtualenv_root of the environment 'prod' means nothing here", False),
        ("src/bolts/old.py", 1, "Python 3 has no module Queue", True),
        ("src/bolts/old.py", 2, "Python 3 looks for 'helpers' from the top, not beside this file", True),
        ("src/bolts/old.py", 4, "Old emits, and declares no outputs", True),
        ("src/bolts/empty.py", 2, "Empty emits, and declares no outputs", True),
        ("src/bolts/old.py", 6, "Python 3's dicts have no iteritems", True),
        ("src/bolts/old.py", 7, "Python 3 has no unicode", True),
        ("src/bolts/old.py", 8, "Old defines _run, a part of a loop that does not run here", True),
        (
            "src/bolts/old.py",
            9,
            "it names the absolute path '/Users/somebody/data.csv', which other machines may not have",
            False,
        ),
        (
            "src/spouts/printing.py",
            1,
            "not valid in Python 3: Missing parentheses in call to 'print'",
            True,
        ),
        ("topologies/java.py", 3, "it declares a component in Java, which only Storm's workers run", False),
        ("topologies/java.py", 4, "it declares a serialized Java object, which can't be checked or packed here", True),
        ("topologies/words.clj", 0, "a topology in Clojure", True),
    }


def test_a_component_of_this_librarys_own_api_is_not_asked_for_the_layers_outputs(tmp_path: Path) -> None:
    body = "class Words(Spout):\n    output_fields = ['word']\n    def next_tuple(self):\n        self.emit(['cow'])\n"
    (tmp_path / "own.py").write_text(f"from multilang.component import Spout\n{body}")
    (tmp_path / "layers.py").write_text(f"from multilang.compat.streamparse import Spout\n{body}")
    found = [(each.path.removeprefix(f"{tmp_path}/"), each.what) for each in findings(str(tmp_path))]
    assert found == [("layers.py", "Words emits, and declares no outputs")]


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
    assert "11 to mend, 4 to know" in done.stderr


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
        "Empty emits, and declares no outputs",
        "Old emits, and declares no outputs",
        "Old defines _run, a part of a loop that does not run here",
    ]


CLOJURE = """\
(ns words
  (:use     [streamparse.specs])
  (:gen-class))

(defn words [options]
   [
    ;; a "comment" (with brackets
    {"word-spout" (python-spout-spec options "spouts.words.WordSpout" ["word"] :p 2)
     "lines" (shell-spout-spec ["python" "lines.py" "-v"] ["line"])}
    {"sum" (python-bolt-spec
          options
          {["count" "other"] ["k" "v"], "lines" :global}
          "bolts.total.Count"
          {"default" ["sum"]}
          )
     "count" (python-bolt-spec options
          {"word-spout" :shuffle}
          "bolts.words.Count"
          {"default" ["word"], "other" ["k" "v"]}
          :p 3 :conf {"topology.tick.tuple.freq.secs" 1, "deep" {"list" ["a" 1.5 true nil]}})}])
"""


def test_a_topology_in_clojure_becomes_one_of_the_dsl(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"envs": {"prod": {}}}')
    for folder in ("topologies", "src/bolts", "src/spouts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "topologies" / "words.clj").write_text(CLOJURE)
    bolt = "from streamparse.bolt import BasicBolt\nclass Count(BasicBolt):\n    pass\n"
    (tmp_path / "src" / "bolts" / "words.py").write_text(bolt)
    (tmp_path / "src" / "bolts" / "total.py").write_text(bolt)
    spout = "from streamparse.spout import Spout\nclass WordSpout(Spout):\n    pass\n"
    (tmp_path / "src" / "spouts" / "words.py").write_text(spout)
    (tmp_path / "src" / "lines.py").write_text("")
    done = multilang("show", ".", cwd=tmp_path)
    assert "multilang migrate" in done.stderr
    assert "--fix writes it" in done.stderr
    done = multilang("migrate", ".", "--fix", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    done = multilang("show", ".", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {each["id"]: each for each in json.loads(done.stdout)["components"]}
    assert {id: (each["component"], each["tasks"]) for id, each in found.items()} == {
        "word-spout": ({"class": "spouts.words:WordSpout"}, 2),
        "lines": ({"command": ["python", "lines.py", "-v"], "change_child_cwd": True}, 1),
        "count": ({"class": "bolts.words:Count"}, 3),
        "sum": ({"class": "bolts.total:Count"}, 1),
    }
    assert found["count"]["conf"] == {"topology.tick.tuple.freq.secs": 1, "deep": {"list": ["a", 1.5, True, None]}}
    assert {name: of["fields"] for name, of in found["count"]["streams"].items()} == {
        "default": ["word"],
        "other": ["k", "v"],
    }
    assert [(each["component"], each["stream"]) for each in found["sum"]["inputs"]] == [
        ("count", "other"),
        ("lines", "default"),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('"lines" :global', '"lines" (my-grouping)'), "the grouping"),
        (('["word"] :p 2', "(fields) :p 2"), "computed by Clojure"),
        (("python-bolt-spec options", "my-bolt options"), "'count' is declared by my-bolt"),
        (('["count" "other"]', '["cuont" "other"]'), "no component 'cuont'"),
        (('{"word-spout" :shuffle}', '{"sum" :shuffle}'), "lead back to itself"),
        (('"bolts.total.Count"', '"bolts.words.Count"'), "is there twice, with other outputs"),
        (("(ns words", "(ns words ["), "brackets don't match"),
        (('"lines.py"', '"lines.py'), "it is no Clojure"),
        ((":p 3 :conf", ":tasks 3 :conf"), "'count' has :tasks"),
    ],
)
def test_what_can_not_be_rewritten_is_said(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    assert change[0] in CLOJURE
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies" / "words.clj").write_text(CLOJURE.replace(*change))
    (found,) = findings(str(tmp_path))
    assert found.stops
    assert "--fix can't, because" in found.fix
    assert reason in found.fix


def test_an_environment_in_the_project_is_none_of_its_files(tmp_path: Path) -> None:
    for folder in ("env/bin", "env/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "env" / "bin" / "activate").write_text("")
    (tmp_path / "env" / "lib" / "old.py").write_text("print 'a'\n")
    assert findings(str(tmp_path)) == []


OLD_STORM = "class BasicBolt(object):\n    pass\ndef emitBolt(tup):\n    print tup\n"


def test_an_old_copy_of_storm_py_makes_room_for_the_layer(tmp_path: Path) -> None:
    (tmp_path / "storm.py").write_text(OLD_STORM)
    (found,) = findings(str(tmp_path))
    assert found.what == "a copy of Storm's storm.py for Python 2"
    done = multilang("migrate", ".", "--fix", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == ["storm.py.bak"]


def test_a_program_of_petrel_is_told_once_that_it_is_not_supported(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text("import os\nfrom petrel import storm\nfrom petrel.emitter import BasicBolt\n")
    (tmp_path / "old.py").write_text("from petrel.emitter import Spout\nprint 1\n")
    done = multilang("migrate", tmp_path)
    assert done.returncode == 1
    (told,) = (line for line in done.stdout.splitlines() if "Petrel" in line)
    assert told == (
        f"{tmp_path}/count.py:2: this program is written for Petrel, which is not supported; write its components for storm.py "
        "and its topology for TopologyBuilder; docs/migrating.md, Petrel, has a table"
    )


def test_a_project_of_pyleus_and_its_tests_with_nose_are_explained(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text("from nose.tools import assert_equal\nfrom pyleus.storm import Bolt\n")
    (tmp_path / "pyleus_topology.yaml").write_text("name: words\n")
    found = {(each.path.removeprefix(f"{tmp_path}/"), each.line, each.stops) for each in findings(str(tmp_path))}
    assert found == {("count.py", 1, True), ("count.py", 2, True), ("pyleus_topology.yaml", 0, True)}


def test_a_batching_bolt_of_old_is_told_that_it_waits_for_ticks(tmp_path: Path) -> None:
    (tmp_path / "bolt.py").write_text(
        "from streamparse import BatchingBolt, TicklessBatchingBolt\n"
        "class Old(BatchingBolt):\n    secs_between_batches = 5\n"
        "class New(TicklessBatchingBolt):\n    secs_between_batches = 5\n"
    )
    (found,) = findings(str(tmp_path))
    assert (found.line, found.stops) == (2, True)
    assert "TicklessBatchingBolt" in found.fix


def test_requirements_that_name_sources_are_told(tmp_path: Path) -> None:
    (tmp_path / "virtualenvs").mkdir()
    (tmp_path / "virtualenvs" / "words.txt").write_text(
        "# the packages\n--no-index\nstreamparse>=3\npure==1.0  # a wheel\n\ngit+https://host.invalid/pure.git\n-e .\n-r more.txt\n"
    )
    (tmp_path / "virtualenvs" / "more.txt").write_text("./beside\n")
    found = {(each.path.removeprefix(f"{tmp_path}/"), each.line): each.what for each in findings(str(tmp_path))}
    assert found == {
        ("virtualenvs/more.txt", 1): "./beside names sources instead of a wheel, which a jar can't hold",
        ("virtualenvs/words.txt", 6): (
            "git+https://host.invalid/pure.git names sources instead of a wheel, which a jar can't hold"
        ),
        ("virtualenvs/words.txt", 7): "-e . names sources instead of a wheel, which a jar can't hold",
    }
    assert len(findings(str(tmp_path))) == 3


TWEETS = (
    "import sys\r\n"
    "from collections import Counter, Iterable\r\n"
    "import tweepy\r\n"
    "reload(sys); sys.setdefaultencoding('utf-8')\r\n"
    "class Tweets:\r\n"
    "    '''tabs:\r\n"
    "\there'''\r\n"
    "    def __init__(self, stream):\r\n"
    "\tself.async = 1\r\n"
    "        print 'async', self.async\r\n"
    "        stream.filter(track=['a'], async=True)\r\n"
)


def test_what_fissix_leaves_is_rewritten_too(tmp_path: Path) -> None:
    path = tmp_path / "tweets.py"
    path.write_bytes(TWEETS.encode())
    (tmp_path / "other.py").write_text("def wait(async=False): return async\n")
    (tmp_path / "never.py").write_text("print 'a' 1\n")
    assert rewrite([str(each) for each in sorted(tmp_path.iterdir())]) == [str(tmp_path / "other.py"), str(path)]
    assert (tmp_path / "tweets.py.bak").read_bytes() == TWEETS.encode()
    text = path.read_bytes().decode()
    assert "'''tabs:\r\n\there'''" in text
    compile(text, "tweets.py", "exec")
    (tmp_path / "tweepy.py").touch()

    class Stream:
        def filter(self, track: list[str], is_async: bool) -> None:
            self.track = track if is_async else []

    stream, names = Stream(), {"__name__": "tweets"}
    exec(text.replace("import tweepy", ""), names)
    names["Tweets"](stream)  # type: ignore[operator]
    assert stream.track == ["a"]
    assert (tmp_path / "other.py").read_text() == "def wait(async_=False): return async_\n"
    (found,) = (each for each in findings(str(tmp_path), rewritten=True) if each.stops)
    assert (found.path, found.fix) == (str(tmp_path / "never.py"), "mend it by hand: --fix could not read it")


def test_python_2_that_compiles_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import sys, tweepy\nfrom collections import Mapping\nsys.setdefaultencoding('utf-8')\ntweepy.StreamListener\n"
    )
    assert [(each.line, each.stops) for each in findings(str(tmp_path))] == [(2, True), (3, True), (4, False)]


def test_a_topology_in_clojure_is_written_beside_components_of_its_name(tmp_path: Path) -> None:
    for folder in ("topologies", "src/words"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src" / "words" / "__init__.py").write_text("")
    (tmp_path / "src" / "words" / "spouts.py").write_text(
        "from streamparse import Spout\nclass Words(Spout):\n    outputs = []\n    def next_tuple(self): pass\n"
    )
    (tmp_path / "topologies" / "words.clj").write_text(
        "(ns words (:use [streamparse.specs]) (:gen-class))\n"
        '(defn words [options] [{"spout" (python-spout-spec options "words.spouts.Words" ["word"])} {}])\n'
    )
    assert from_clojure(str(tmp_path)) == [str(tmp_path / "topologies" / "words_topology.py")]
    (tmp_path / "src" / "words" / "spouts.py").write_text(
        "from streamparse import Spout\nclass Words(Spout):\n    def next_tuple(self): self.emit(['a'])\n"
    )
    assert findings(str(tmp_path)) == []
    done = multilang("show", "words_topology", cwd=tmp_path)
    assert "-> default (word)" in done.stdout, done.stderr


def test_the_settings_of_streamparse_1_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from streamparse.bolt import Bolt\nclass Count(Bolt):\n    outputs = ['n']\n    AUTO_ACK = False\n"
    )
    (found,) = findings(str(tmp_path))
    assert (found.line, found.fix, found.stops) == (2, "write auto_ack", True)


BESIDE = {
    "config.json": '{"envs": {"prod": {}}}',
    "topologies/__init__.py": "",
    "topologies/sums.py": (
        "from counting import Count\nfrom streamparse import Grouping, Topology\nfrom numbering import Numbers\n\n\n"
        "class Sums(Topology):\n    numbers = Numbers.spec()\n    count = Count.spec(inputs=[numbers])\n"
    ),
    "src/__init__.py": "",
    "src/helpers.py": "def odd(number):\n    return number % 2\n",
    "src/numbering.py": (
        "from streamparse import Spout\n\n\nclass Numbers(Spout):\n    outputs = ['n']\n\n"
        "    def initialize(self, conf, context):\n        self.numbers = iter(xrange(3))\n\n"
        "    def next_tuple(self):\n        for n in self.numbers:\n            self.emit([n])\n"
    ),
    "src/counting.py": (
        "from streamparse import Bolt\nfrom helpers import odd\n\n\nclass Count(Bolt):\n    outputs = ['n']\n\n"
        "    def process(self, tup):\n        for key, value in {}.iteritems():\n            pass\n        self.emit([odd(tup.values.n)])\n"
    ),
    "src/tools/__init__.py": "",
    "src/tools/asking.py": "def ask():\n    return 'an answer'\n",
    "src/tools/report.py": "from asking import ask\n\n\nif __name__ == '__main__':\n    print ask()\n",
}


def test_modules_beside_one_that_is_found_by_its_name_stay_as_they_are(tmp_path: Path) -> None:
    for name, text in BESIDE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert not [each for each in findings(str(tmp_path)) if "from the top" in each.what]
    assert multilang("migrate", tmp_path, "--fix").returncode == 0
    assert "from helpers import odd" in (tmp_path / "src/counting.py").read_text()
    assert "from asking import ask" in (tmp_path / "src/tools/report.py").read_text()
    done = multilang("run", tmp_path / "topologies/sums.py", "--mode", "inprocess")
    assert done.returncode == 0, done.stderr
    (tmp_path / "src/helpers.py").write_text("from .numbering import Numbers\n")
    wrong = multilang("show", tmp_path / "topologies/sums.py")
    assert "helpers.py" in wrong.stderr
    assert "is a file of the package 'topologies'" not in wrong.stderr


def test_a_topology_of_another_tools_in_yaml_is_not_taken_for_one_of_flux(tmp_path: Path) -> None:
    (tmp_path / "parts.yml").write_text("name: parts\nspouts:\n  - name: a\n    impl: java:a.B\nbolts:\n  - name: b\n")
    assert findings(str(tmp_path)) == []


def test_outputs_that_a_topology_in_clojure_gives_are_not_missed(tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies/words.clj").write_text(CLOJURE)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/words.py").write_text(
        "from streamparse.bolt import Bolt\nclass Count(Bolt):\n    def process(self, tup):\n        self.emit([1])\n"
    )
    assert [each.what for each in findings(str(tmp_path))] == ["a topology in Clojure"]


def test_what_python_3_has_not_is_found_where_it_is_meant(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        "import string, sys, urllib\nimport thread\nfrom itertools import izip\n"
        "def total(numbers, start=sys.maxint):\n    return reduce(max, numbers) + len(string.letters)\n"
        "urllib.urlencode({})\nsorted([], cmp=cmp)\n"
    )
    (tmp_path / "both.py").write_text(
        "import sys\nimport six\ntry:\n    import Queue\nexcept ImportError:\n    import queue as Queue\n"
        "def far(lat, long, string, file):\n    return string.join(six.iteritems({})), long, file\n"
        "text = unicode if sys.version_info[0] < 3 else str\nif six.PY2:\n    from urllib import quote\n"
        "def reduce(a): return a\nreduce(1)\n"
    )
    found = [(each.path.removeprefix(f"{tmp_path}/"), each.line, each.what) for each in findings(str(tmp_path))]
    assert found == [
        ("old.py", 2, "Python 3 has no module thread"),
        ("old.py", 3, "Python 3 has no itertools.izip"),
        ("old.py", 4, "Python 3 has no sys.maxint"),
        ("old.py", 5, "Python 3 has no reduce"),
        ("old.py", 5, "Python 3 has no string.letters"),
        ("old.py", 6, "Python 3 has no urllib.urlencode"),
        ("old.py", 7, "Python 3 has no cmp"),
        ("old.py", 7, "Python 3 sorts by no function of two arguments"),
    ]
    multilang("migrate", "--fix", tmp_path)
    left = [(each.line, each.what) for each in findings(str(tmp_path), rewritten=True)]
    assert [what for _, what in left] == ["Python 3 has no string.letters", "Python 3 has no cmp"]


def test_divisions_that_change_with_python_3_are_told(tmp_path: Path) -> None:
    text = "import Queue\nhalf = a / 2\nhalf /= b\nmean = a / 2.0 + a / float(b)\npath = p / 'a'\nwhole = a // 2\n"
    (tmp_path / "old.py").write_text(text)
    (tmp_path / "future.py").write_text(f"from __future__ import (print_function,\n    division)\n{text}")
    (tmp_path / "beside.py").write_text("half = a / 2\n")
    (tmp_path / "new.py").write_text("half: float = a / 2\n")
    multilang("migrate", "--fix", tmp_path)
    found = [(each.path.removeprefix(f"{tmp_path}/"), each.line, each.stops) for each in findings(str(tmp_path))]
    assert found == [("beside.py", 1, False), ("old.py", 2, False), ("old.py", 3, False)]


EMPTY = {
    "nothing": {},
    "another program": {"a.py": "import json\nstorm = 'import storm'\n", "config.json": "{}", "parts.yaml": "a: 1\n"},
    "an environment": {"env/bin/activate": "", "env/lib/streamparse.py": "from streamparse import Bolt\n"},
    "a copy of the library": {"site-packages/streamparse.py": "import pystorm\n"},
}
PROGRAMS = {
    "streamparse": {"a/b.py": "import os\nfrom streamparse.bolt import Bolt\n"},
    "storm.py": {"b.py": "import sys, storm\n"},
    "pystorm": {"b.py": "try:\n    import pystorm as p\nexcept ImportError:\n    pass\n"},
    "Petrel in Python 2": {"b.py": "from petrel.emitter import Bolt\nprint 1\n"},
    "one that was moved": {"b.py": "from multilang.component import Bolt\n"},
    "Clojure": {"topologies/a.clj": "(ns a)"},
    "Flux": {"a.yaml": "name: a\nspouts:\n  - id: a\n    className: a.B\n"},
    "Pyleus": {"pyleus_topology.yaml": "name: a\n"},
}


def laid_out(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", EMPTY)
def test_a_folder_without_a_program_is_no_success(name: str, tmp_path: Path) -> None:
    folder = laid_out(tmp_path, EMPTY[name])
    assert not has_program(str(folder))
    with pytest.raises(click.ClickException) as told:
        migrate.main([str(folder)], standalone_mode=False)
    files = "no Python file that imports one of them, among 1" if "a.py" in EMPTY[name] else "no Python file"
    assert told.value.exit_code == 2
    assert str(told.value) == (
        f"{folder} has no program written for petrel, pystorm, pyleus, storm (storm.py) or streamparse, so there is nothing to "
        f"move: it has {files}, no topologies/*.clj, and no topology of Flux's in YAML; name the folder of the project"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_a_library_is_found(name: str, tmp_path: Path) -> None:
    assert has_program(str(laid_out(tmp_path, PROGRAMS[name])))


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("import storm\n")
    done = multilang("migrate", tmp_path / "notes.txt")
    assert done.returncode == 2
    assert "notes.txt is no program written for" in done.stderr
    assert "to mend" not in done.stderr


def test_a_setting_is_found_in_the_lines_of_its_own_environment(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"use_ssh_for_nimbus": "prod",\n"serializer": "msgpack",\n"envs": {\n"prod": {"ssh_port": 22},\n"beta": {\n'
        '"options": {"install_virtualenv": true}, "serializer": "pickle"},\n"größe": 1}}\n',
        "utf-8",
    )
    assert {(each.line, each.what.partition(",")[0]) for each in findings(str(tmp_path))} == {
        (2, "the environment 'prod' has the serializer 'msgpack'"),
        (4, "ssh_port of the environment 'prod' means nothing here"),
        (6, "the environment 'beta' has the serializer 'pickle'"),
        (6, "install_virtualenv of the environment 'beta' means nothing here"),
        (7, "the environment 'größe' is not a JSON object"),
    }
