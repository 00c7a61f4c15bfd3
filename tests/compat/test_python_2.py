"""Programs for Python 2: each shape of theirs means the same after ``multilang migrate --fix``, or is reported with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from multilang.migrate import findings, to_rewrite
from multilang.migrate.python2 import rewrite
from tests.cli.command import multilang
from tests.compat.test_migrate import laid_out

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.migrate import Finding

pytestmark = pytest.mark.xdist_group("python 2")  # in one process, which rewrites all shapes at once

# Each shape sets r; beside it is the value that Python 2.7.18 gives to r.
CERTAIN: list[tuple[str, Any]] = [
    ('d = {"b": 2, "a": 1}; r = sorted(d.items() + d.items())', [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
    ('d = {"b": 2, "a": 1}; k = d.keys(); k.sort(); r = k', ["a", "b"]),
    ('d = {"b": 2, "a": 1}; d.keys().sort(); r = 1', 1),
    ('d = {"a": 1}; r = d.keys()[0]', "a"),
    ('d = {"a": 1}; r = d.values()[0] + d.items()[0][1]', 2),
    ("r = filter(None, [0, 1, 2])[0]", 1),
    ("x = filter(lambda n: n > 1, [1, 2, 3]); r = (len(x), x[0], list(x), list(x))", (2, 2, [2, 3], [2, 3])),
    ("x = map(str, [1, 2]); r = (len(x), x)", (2, ["1", "2"])),
    ("r = map(None, [1, 2], [3, 4])", [(1, 3), (2, 4)]),
    ("r = map(lambda a, b: (a, b), [1, 2], [3])", [(1, 3), (2, None)]),
    ("r = zip([1, 2], [3, 4])[0]", (1, 3)),
    ('def f():\n    return map(int, "12")\nr = f() + f()', [1, 2, 1, 2]),
    ('class A(object):\n    def __init__(self):\n        self.w = filter(None, ["a", ""])\nr = len(A().w)', 1),
    ('try:\n    raise ValueError("bad")\nexcept ValueError as e:\n    r = e.message', "bad"),
    ('try:\n    raise ValueError("bad")\nexcept ValueError, e:\n    r = e.message', "bad"),
    ("it = iter([1, 2]); r = it.next()", 1),
    (
        "class It(object):\n    def __iter__(self):\n        return self\n    def next(self):\n        return 4\nr = It().next()",
        4,
    ),
    (
        "class It(object):\n    n = 0\n    def __iter__(self):\n        return self\n    def next(self):\n        self.n += 1\n        if self.n > 2: raise StopIteration\n        return self.n\nr = list(It())",
        [1, 2],
    ),
    ('import md5\nr = md5.new("a").hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ('import md5\nr = md5.md5("a").hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ('import sha\nr = sha.new("a").hexdigest()', "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    ('import hashlib\nr = hashlib.md5("a").hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ('import hashlib\nw = "a"; r = hashlib.md5(w).hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ('from hashlib import md5\nw = u"a"; r = md5(w).hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ('import hashlib\nm = hashlib.md5(); m.update("a"); r = m.hexdigest()', "0cc175b9c0f1b6a831c399e269772661"),
    ("r = sorted([3, 1], cmp=lambda a, b: b - a)", [3, 1]),
    ("r = sorted([3, 1], lambda a, b: b - a)", [3, 1]),
    ("x = [3, 1]; x.sort(lambda a, b: b - a); r = x", [3, 1]),
    ("x = [3, 1]; x.sort(cmp=lambda a, b: b - a); r = x", [3, 1]),
    ("r = cmp(1, 2)", -1),
    ("class B(object):\n    def __nonzero__(self): return False\nr = bool(B())", False),
    (
        "class D(object):\n    def __init__(self, n): self.n = n\n    def __cmp__(self, o): return cmp(self.n, o.n)\nr = D(1) < D(2)",
        True,
    ),
    ("import string\nr = string.letters[:3]", "abc"),
    ('import string\nr = string.join(["a", "b"], "-")', "a-b"),
    ('import string\nr = string.split("a b")', ["a", "b"]),
    ('import string\nr = string.upper("a")', "A"),
    ('import string\nr = string.atoi("3")', 3),
    ('import string\nr = string.replace("aa", "a", "b")', "bb"),
    ('from string import join\nr = join(["a", "b"])', "a b"),
    ('import string\nr = "abc".translate(string.maketrans("a", "b"))', "bbc"),
    ('r = "a".encode("hex")', "61"),
    ('r = "61".decode("hex")', "a"),
    ('r = "a".encode("base64")', "YQ==\n"),
    ("import sys\nr = sys.maxint > 5", True),
    ("r = reduce(lambda a, b: a + b, [1, 2])", 3),
    ("r = None < 1", True),
    ("r = round(2.675, 2)", 2.67),
    ('exec "r = 3"', 3),
    ('import os\nr = type(os.getcwdu()).__name__ in ("unicode", "str")', True),
    ('import sys\nreload(sys)\nsys.setdefaultencoding("utf-8")\nr = 1', 1),
    ('import sys\nprint >>sys.stderr, "x"; r = 1', 1),
    ("print\nr = 1", 1),
    ('print ("a") % (); r = 1', 1),
    ('print "%s" % 3; r = 1', 1),
    ("r = 1 <> 2", True),
    ("r = `3`", "3"),
    ('r = ur"\\d"', "\\d"),
    ("r = 0777", 511),
    ("r = 10L", 10),
    ("r = 0xFFL", 255),
    ('try:\n    raise ValueError, "x"\nexcept ValueError as e:\n    r = str(e)', "x"),
    ('r = {"a": 1}.has_key("a")', True),
    ('r = [k for k in {"a": 1}.iterkeys()]', ["a"]),
    ('r = unicode("a")', "a"),
    ("r = xrange(3)[1]", 1),
    ("r = list(xrange(3))", [0, 1, 2]),
    ("r = unichr(97)", "a"),
    ('r = isinstance("a", basestring)', True),
    ("import Queue\nq = Queue.Queue(); q.put(1); r = q.get()", 1),
    ('import StringIO\ns = StringIO.StringIO(); s.write("a"); r = s.getvalue()', "a"),
    ('from cStringIO import StringIO\ns = StringIO(); s.write("a"); r = s.getvalue()', "a"),
    ('import urllib\nr = urllib.quote("a b")', "a%20b"),
    ('import urllib2, urlparse\nr = urlparse.urlparse("http://a/b").netloc', "a"),
    ("import cPickle as pickle\nr = pickle.loads(pickle.dumps(1))", 1),
    ("import ConfigParser\nr = ConfigParser.ConfigParser().sections()", []),
    ("from itertools import imap, izip, ifilter\nr = list(izip(imap(str, [1]), ifilter(None, [2])))", [("1", 2)]),
    ("import itertools\nr = list(itertools.izip_longest([1], []))", [(1, None)]),
    ("r = map(lambda (a, b): a + b, [(1, 2)])", [3]),
    ('r = sorted({"a": 2}.items(), key=lambda (k, v): v)', [("a", 2)]),
    ("r = apply(max, [1, 2])", 2),
    ("r = long(3)", 3),
    ('r = intern("a")', "a"),
    ("r = isinstance(3, (int, long))", True),
    ('import types\nr = isinstance("a", types.StringTypes)', True),
    ('import types\nr = isinstance("a", types.StringType)', True),
    ("import types\nr = isinstance({}, types.DictType)", True),
    ("x = [i for i in range(3)]; r = i", 2),
    ("r = range(3) + [4]", [0, 1, 2, 4]),
    ("x = range(3); x.append(4); r = x", [0, 1, 2, 4]),
    ("import random\nx = range(3); random.shuffle(x); r = sorted(x)", [0, 1, 2]),
    ('r = "a" < 1', False),
    ('r = "a".decode("utf-8")', "a"),
    ("def g():\n    raise StopIteration\n    yield 1\nr = list(g())", []),
    ("def g():\n    yield 1\n    raise StopIteration\nr = list(g())", [1]),
    ('import commands\nr = commands.getoutput("echo a")', "a"),
    ("import time\nr = time.clock() >= 0", True),
    ("class E(object):\n    def __getslice__(self, a, b): return a\nr = E()[1:2]", 1),
    ("class F(object):\n    def __div__(self, o): return 5\nr = F() / 2", 5),
    ('class G(object):\n    def __unicode__(self): return u"a"\nr = unicode(G())', "a"),
    ("def f(): pass\nr = f.func_name", "f"),
    ("r = dict([(1, 2)]).iteritems().next()", (1, 2)),
    ("import operator\nr = operator.isCallable(max)", True),
    ("import sys\nr = sys.exc_type", None),
    ('r = "a" in {"a": 1}.viewkeys()', True),
    ("d = {1: 2}; r = d.viewitems() == d.viewitems()", True),
    ("r = [1, 2, 3][len([1, 2, 3]) / 2]", 2),
    ("def f():\n    async = 1\n    return async\nr = f()", 1),
    ("r = coerce(1, 2.0)", (1.0, 2.0)),
    ('try:\n    raise IOError("a")\nexcept StandardError:\n    r = 1', 1),
    ('try:\n    raise "abc"\nexcept TypeError:\n    r = 1', 1),
    ("import itertools\nx = zip(*[[1, 2], [3, 4]]); r = x[1]", (2, 4)),
    ('r = {"a": 1}.items() == [("a", 1)]', True),
    ('r = {"a": 1}.keys() == ["a"]', True),
    ('r = {"a": 1}.values() + [2]', [1, 2]),
    ('d = {"a": 1}\nfor k in d.keys():\n    del d[k]\nr = d', {}),
    ('d = {"a": 1}\nfor k, v in d.items():\n    d.pop(k)\nr = d', {}),
    ('import random\nr = random.choice({"a": 1}.keys())', "a"),
    ('import json\nr = json.dumps({"a": 1}.keys())', '["a"]'),
    ("from collections import Mapping\nr = isinstance({}, Mapping)", True),
    ("from collections import OrderedDict\nr = OrderedDict([(1, 2)]).items()[0]", (1, 2)),
    ("import collections\nr = isinstance({}, collections.Mapping)", True),
    ("import inspect\ndef f(a): pass\nr = inspect.getargspec(f).args", ["a"]),
    (
        "import string\nr = string.letters + string.lowercase",
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    ),
    ('import string\nr = string.strip(" a ")', "a"),
    ('r = "abc".decode("ascii").encode("utf-8")', "abc"),
    ("l = [3, 1]\nl.sort(cmp)\nr = l", [1, 3]),
    ("x = map(str, range(3))\nfor a in x: pass\nr = [a for a in x]", ["0", "1", "2"]),
    ("r = map(str, [1]) + filter(None, [2])", ["1", 2]),
    ('r = ",".join(map(str, [1, 2]))', "1,2"),
    ('d = {"a": 1, "b": 2}\nfor key in d.keys():\n    d.pop(key)\nr = d', {}),
    ("x = filter(None, [0, 1])\ndef last():\n    return x[-1]\nr = last()", 1),
    ("x = zip([1], [2])\nif not x:\n    r = 0\nelse:\n    r = x + x", [(1, 2), (1, 2)]),
    ("seen = []\nmap(seen.append, [1, 2])\nr = seen", [1, 2]),
    ('r = sorted(map(int, "21")) + range(2)', [1, 2, 0, 1]),
    ("r = (filter(None, []) or [7])[0]", 7),
    ('r = filter(str.isdigit, "a1b2")', "12"),
    ('r = filter(lambda c: c.isalpha(), "a1b2")', "ab"),
    ('from types import StringType\nr = isinstance("a", StringType)', True),
    ('try:\n    raise KeyError("a")\nexcept (KeyError, ValueError), error:\n    r = error.message', "a"),
    (
        'import hashlib\nm = hashlib.sha1()\nm.update("%s" % 1)\nr = m.hexdigest()',
        "356a192b7913b04c54574d18c28d46e6395428ab",
    ),
    ("r = range(7 / 2)", [0, 1, 2]),
    ("class A(object):\n    def next(self):\n        return 5\nr = A().next()", 5),
    ("x = map(lambda n: n * 2, [1, 2])\nr = [n for n in x]", [2, 4]),
    ('r = [str(n) for n in map(int, "12")]', ["1", "2"]),
    ("a, b = zip([1, 2], [3, 4])\nr = b", (2, 4)),
    ("class M(type):\n    x = 3\nclass C(object):\n    __metaclass__ = M\nr = C.x", 3),
    ('r = filter(None, "a0b")', "a0b"),
    ('r = filter(lambda c: c != "0", (1, 2))', (1, 2)),
    ("r = filter(lambda n: n, [0, 1])", [1]),
]
DEPENDING: list[tuple[str, Any]] = [
    ("r = 3 / 2", 1),
    ('r = len("abc") / 2', 1),
    ("r = round(2.5)", 3.0),
    ("r = range(3)", [0, 1, 2]),
    ('import subprocess\nr = subprocess.Popen(["echo", "a"], stdout=subprocess.PIPE).communicate()[0]', "a\n"),
    ('import subprocess\nr = subprocess.check_output(["echo", "a"])', "a\n"),
    ('import base64\nr = base64.b64encode("a")', "YQ=="),
    ('import zlib\nr = zlib.decompress(zlib.compress("a"))', "a"),
    ('import struct\nr = struct.pack(">i", 1)', "\x00\x00\x00\x01"),
    ("class H(object):\n    def __eq__(self, o): return True\nr = len(set([H()]))", 1),
    ('r = dict(zip("ab", [1, 2])).items()', [("a", 1), ("b", 2)]),
    ('r = dict.fromkeys(["a"]).keys()', ["a"]),
    ("best = None\nfor n in [1, 3, 2]:\n    if n > best:\n        best = n\nr = best", 3),
]


class Shape(NamedTuple):
    alone: list[Finding]
    text: str
    left: list[Finding]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shape]:
    """The shapes: alone, and rewritten in a project whose other file shows that it is Python 2."""
    pytest.importorskip("fissix")
    folder = tmp_path_factory.mktemp("shapes")
    alone, paths = {}, {}
    for index, (text, _) in enumerate(CERTAIN + DEPENDING):
        home = laid_out(folder / str(index), {"shape.py": f"{text}\n"})
        paths[text] = home / "shape.py"
        alone[text] = findings(str(home))
        laid_out(home, {"other.py": "import Queue\n"})
    old, new = to_rewrite(str(folder))
    assert new == []
    assert set(map(str, paths.values())) <= set(old)
    rewrite(old)
    return {
        text: Shape(
            alone[text], path.read_text(), [each for each in findings(str(path.parent), rewritten=True) if each.line]
        )
        for text, path in paths.items()
    }


def value_of(text: str) -> Any:
    """Return the value of r, or the exception."""
    names: dict[str, Any] = {"__name__": "shape"}
    try:
        exec(compile(text, "shape.py", "exec"), names)
    except Exception as error:  # noqa: BLE001 - whatever Python 3 makes of it
        return error
    return names["r"]


def is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "value"), CERTAIN + DEPENDING)
def test_a_shape_means_the_same_when_it_is_rewritten_or_is_reported(
    text: str, value: Any, shapes: dict[str, Shape]
) -> None:
    assert shapes[text].left or is_same(value_of(shapes[text].text), value), shapes[text].text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "value"), CERTAIN)
def test_a_shape_that_changes_is_reported_before(text: str, value: Any, shapes: dict[str, Shape]) -> None:
    found = value_of(text)
    assert shapes[text].alone or is_same(found, value), found
    if isinstance(found, SyntaxError):
        assert [each.python2 for each in shapes[text].alone] == [True]


def test_one_file_of_python_2_makes_all_of_the_project_be_rewritten_once(tmp_path: Path) -> None:
    both = "import streamparse\nwords = filter(None, ['a'])\ndef last():\n    return words\nprint ('a', 1)\n"
    new = "from queue import Queue\ndef ask() -> str:\n    return input(dict().items())\n"
    laid_out(tmp_path, {"src/both.py": both, "src/new.py": new})
    assert to_rewrite(str(tmp_path)) == ([], [])
    laid_out(tmp_path, {"tasks.py": "print 'a'\nr = cmp(1, 2)\nbad = 'a' 1\n"})
    first = multilang("migrate", tmp_path, "--fix")
    rewritten = (tmp_path / "src/both.py").read_text()
    assert "list(filter" in rewritten or "[_f for _f" in rewritten, first.stderr
    assert (tmp_path / "src/new.py").read_text() == new
    (tmp_path / "tasks.py").write_text("print 'a'\nr = cmp(1, 2)\n")
    second = multilang("migrate", tmp_path, "--fix")
    assert second.stderr == f"rewritten: {tmp_path}/tasks.py\n1 to mend, 0 to know\n"
    assert second.stdout.startswith(f"{tmp_path}/tasks.py:2: Python 3 has no cmp")
    assert (tmp_path / "src/both.py").read_text() == rewritten
    assert (tmp_path / "src/both.py.bak").read_text() == both


def test_a_method_next_may_be_the_programs_own(tmp_path: Path) -> None:
    laid_out(tmp_path, {"a.py": "def step(runner):\n    runner.next()\n"})
    assert [(each.line, each.stops, each.python2) for each in findings(str(tmp_path))] == [(2, False, False)]


@pytest.mark.parametrize(
    "text",
    [
        "for key, value in d.items():\n    print(key, value)\nkeys = d.keys()\nlast = list(d.items())[0]\n",
        "x = map(str, [1])\nprint(*x)\nfor a, b in zip('a', 'b'):\n    print(a + b)\nn = sum(map(int, '1'))\n",
        "for key in d.keys():\n    del d[key]\n    break\nif d.keys():\n    r = len(d.keys()) + range(3)[0]\n",
        "class Pages:\n    def next(self):\n        return 1\n    def __iter__(self):\n        return iter([1])\n    __next__ = next\n",
        "try:\n    pass\nexcept Exception as error:\n    print(getattr(error, 'message', None) or error.message)\n",
        "class M:\n    message = 1\n    def __lt__(self, other):\n        return True\n    def __cmp__(self, other):\n        return 0\n",
        "import array\narray.array('b', [1]).sort\n[].sort(key=len)\nsorted([], key=len)\nx.sort(1)\n",
        "b'a'.decode('utf-8')\n'a'.encode('utf-8')\nimport hashlib\nhashlib.md5('a'.encode()).update(b'a')\n",
        "total = [n for n in range(3)]\nfor n in total:\n    print(n)\nprint(n)\nhalf = total[len(total) // 2] / 2\n",
        "import commands\ncommands.start()\n",
        "def filter(a):\n    return [a]\nfilter(1)[0]\nself.filter(1)[0]\nqueue.range(1) + [1]\n",
    ],
)
def test_python_3_is_not_taken_for_python_2(text: str, tmp_path: Path) -> None:
    laid_out(tmp_path, {"new.py": text, "commands.py": "def start():\n    pass\n"})
    assert [(each.line, each.what) for each in findings(str(tmp_path))] == []


BOLT = "from streamparse import Bolt, Stream\nclass Base(Bolt):\n    pass\nclass Count(Base):\n    {}\n    def process(self, tup):\n        self.emit({})\n"


@pytest.mark.parametrize(
    ("outputs", "emitted", "line", "told"),
    [
        ("pass", "[1]", 4, "Count emits, and declares no outputs"),
        ("outputs = None", "[1]", 4, "Count emits, and declares no outputs"),
        (
            "outputs = ['a']",
            "[1, 2]",
            7,
            "Count emits 2 values to the stream 'default', for which its outputs declare 1",
        ),
        ("outputs = ['a']", "[1], stream='b'", 7, "Count emits to the stream 'b', which its outputs do not declare"),
        (
            "outputs = [Stream(['a'], name='b')]",
            "[1]",
            7,
            "Count emits to the stream 'default', which its outputs do not declare",
        ),
        (
            "outputs: list = [Stream(['a'], name='b')]",
            "(1, 2), stream='b'",
            7,
            "Count emits 2 values to the stream 'b', for which its outputs declare 1",
        ),
        ("outputs = ['a']", "[1]", 0, ""),
        ("outputs = ['a', Stream(fields=['a', 'b'], name='b')]", "[1, 2], stream='b'", 0, ""),
        ("outputs = ['a']", "[*tup.values]", 0, ""),
        ("outputs = ['a']", "[1, 2], stream=self.name", 0, ""),
        ("outputs = FIELDS", "[1, 2]", 0, ""),
    ],
)
def test_what_a_component_emits_and_does_not_declare_is_to_mend(
    outputs: str, emitted: str, line: int, told: str, tmp_path: Path
) -> None:
    laid_out(tmp_path, {"count.py": BOLT.format(outputs, emitted)})
    found = [(each.line, each.what, each.stops) for each in findings(str(tmp_path))]
    assert found == ([(line, told, True)] if told else [])


@pytest.mark.parametrize("library", ["pystorm", "storm", "petrel.emitter", "multilang.compat.pystorm", "multilang"])
def test_outputs_that_a_topology_declares_are_not_asked_for(library: str, tmp_path: Path) -> None:
    laid_out(tmp_path, {"count.py": BOLT.format("pass", "[1]").replace("streamparse", library)})
    assert not [each for each in findings(str(tmp_path)) if "emits" in each.what]


PROJECT = {
    "config.json": '{"envs": {"prod": {}}}',
    "topologies/words.py": (
        "from bolts.count import Count\nfrom spouts.words import Words\nfrom streamparse import Topology\n\n\n"
        "class WordCount(Topology):\n    words = Words.spec()\n    count = Count.spec(inputs=[words])\n"
    ),
    "src/spouts/__init__.py": "",
    "src/spouts/words.py": (
        "from streamparse import Spout\n\n\nclass Words(Spout):\n    outputs = ['word']\n\n"
        "    def initialize(self, conf, context):\n        self.left = ['a']\n\n"
        "    def next_tuple(self):\n        if self.left:\n            self.emit([self.left.pop()])\n"
    ),
    "src/bolts/__init__.py": "",
    "src/bolts/helpers.py": "",
    "src/bolts/count.py": "",
}
COUNT = "from streamparse import Bolt\n\n\nclass Count(Bolt):\n    outputs = ['word']\n\n    def process(self, tup):\n        {}\n"


@pytest.mark.parametrize(
    ("head", "body", "line", "told"),
    [
        ("", "print 'a'", 9, "not valid in Python 3: "),
        ("", "try: pass\n        except ValueError, error: pass", 10, "not valid in Python 3: "),
        ("import Queue", "pass", 1, "Python 3 has no module Queue"),
        ("import urllib2", "pass", 1, "Python 3 has no module urllib2"),
        ("import helpers", "pass", 1, "Python 3 looks for 'helpers' from the top, not beside this file"),
        ("TEXT = unicode", "pass", 1, "Python 3 has no unicode"),
        ("LAST = {1: 2}.keys()[0]", "pass", 1, "keys() gives no list in Python 3, and one is needed here"),
    ],
)
def test_a_project_of_python_2_that_can_not_be_loaded_is_told_of_migrate(
    head: str, body: str, line: int, told: str, tmp_path: Path
) -> None:
    laid_out(tmp_path, {**PROJECT, "src/bolts/count.py": f"{head}\n{COUNT.format(body)}"})
    shown = multilang("show", "topologies/words.py", cwd=tmp_path)
    assert shown.returncode == 2
    (error,) = shown.stderr.splitlines()
    assert error.startswith(f"Error: {tmp_path}/src/bolts/count.py, line {line}: {told}")
    assert error.endswith(
        "; the program was written for Python 2: multilang migrate . shows all that it needs, and multilang migrate . --fix rewrites it"
    )


def test_a_project_of_python_2_that_fails_only_when_it_runs_is_told_of_migrate(tmp_path: Path) -> None:
    laid_out(tmp_path, {**PROJECT, "src/bolts/count.py": COUNT.format("self.emit([unicode(tup.values[0])])")})
    ran = multilang("run", "words", "--mode", "inprocess", cwd=tmp_path)
    assert "NameError" in ran.stderr
    assert ran.stderr.startswith(
        f"note: {tmp_path}/src/bolts/count.py, line 8: Python 3 has no unicode; the program was written"
    )
    assert multilang("migrate", ".", "--fix", cwd=tmp_path).returncode == 0
    mended = multilang("run", "words", "--mode", "inprocess", cwd=tmp_path)
    assert mended.returncode == 0, mended.stderr
    assert "Python 2" not in mended.stderr


def test_a_program_of_flux_in_python_2_is_told_of_migrate(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    spout = "className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout\n    constructorArgs: [[python2.7, words.py], [word]]"
    laid_out(
        tmp_path,
        {"words.yaml": f"name: words\nspouts:\n  - id: words\n    {spout}\n", "words.py": "import storm\nprint 'a'\n"},
    )
    shown = multilang("show", "words.yaml", cwd=tmp_path)
    assert f"note: {tmp_path}/words.py, line 2: not valid in Python 3" in shown.stderr
    assert "multilang migrate . --fix" in shown.stderr
    assert [(each.line, each.what) for each in findings(str(tmp_path)) if each.path.endswith("yaml")] == [
        (5, "it names the program python2.7, on which nothing of this library runs")
    ]


def test_a_program_of_petrel_that_can_not_be_loaded_is_told_of_migrate(tmp_path: Path) -> None:
    laid_out(tmp_path, {"create.py": "from petrel.emitter import BasicBolt\n"})
    shown = multilang("show", "create.py", cwd=tmp_path)
    assert "its programs do not run here as they are: multilang migrate . shows what to write" in shown.stderr
