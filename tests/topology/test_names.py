"""Scripts of one process, compared in another one: by what code finds by name, and not by what arguments remember."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest

from multilang.component.errors import ConfigError
from multilang.topology import load_topology
from multilang.topology.identity import check_found
from multilang.topology.uses import varies

HERE = Path(__file__).parent
TOPOLOGY = """

topology = build(Plus({made}))
if IS_MAIN:
    {then}
    from multilang.topology.identity import submission

    print(json.JSONEncoder().encode(submission(topology, [])))
"""
# Scripts one after the other, each in a process that has what it needs already.
SCRIPTS = """
import os, runpy, sys
import collections, dataclasses, enum, functools, heapq, json, logging, multilang.topology.identity, numpy, socket, ujson
for file in sys.argv[1:]:
    child = os.fork()
    if not child:
        sys.path.insert(0, os.path.dirname(file))
        sys.stdout = open(file + ".json", "w")
        runpy.run_path(file, run_name="__main__")
        sys.stdout.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, file
"""
# The part that differs, then what Plus is made with, or what the script does before it submits the topology.
OTHER = {
    "FACTOR = 2": "what 'FACTOR' is in",
    "for FACTOR in (1, 2, 3): pass": "what 'FACTOR' is in",
    "globals().update(FACTOR=2)": "what 'FACTOR' is in",
    "_HIDDEN = 2": "what '_HIDDEN' is in",
    "TABLE = {'a': 2}": "what 'TABLE' is in",
    "TABLE['a'] = 2": "what 'TABLE' is in",
    "NAMES.append('b')": "what 'NAMES' is in",
    "NESTED['a'].append(5)": "what 'NESTED' is in",
    "START = 0": "what 'START' is in",
    "PATTERN = re.compile('b')": "what 'PATTERN' is in",
    "CONFIG = SimpleNamespace(factor=2)": "what 'CONFIG' is in",
    "CONFIG.factor = 2": "what 'CONFIG' is in",
    "DATA.factor = 2": "what 'DATA' is in",
    "def main():\n        CONFIG.factor = 2\n    main()": "what 'CONFIG' is in",
    "def main():\n        global START\n        START = 2\n    main()": "what 'START' is in",
    "helper = lambda x: 5": "what 'helper' is in",
    "memo = lambda n: 0": "what 'memo' is in",
    "cached = functools.lru_cache(lambda n: 7)": "what 'cached' is in",
    "wrapped = logged(lambda x: 5)": "what 'wrapped' is in",
    "LIMIT = 2": "what 'LIMIT' is in",
    "named_beside.DEEP = 2": "what 'DEEP' is in named_beside",
    "named_beside.ONE = 2": "what 'ONE' is in named_beside",
    "named_beside.change = lambda x: 7": "what 'change' is in named_beside",
    "named_beside.plus_one.__code__ = (lambda x: 7 * x).__code__": "what 'plus_one' is in",
    "json.dumps = lambda x: 'x'": "what 'dumps' is in json",
    "time.time = lambda: 5": "what 'time' is in time",
    "time.time = __import__('unittest.mock').mock.Mock()": "what 'time' is in time",
    "named_beside = type(os)('other')": "what 'named_beside' is in",
    "len = lambda x: 5": "what 'len' is in",
    "PLAIN['a'] = 2": "what 'PLAIN' is in",
    "RULES = {'a': 2}": "what 'RULES' is in",
    "Settings.factor = 2": "the attribute 'factor' of the class Settings",
    "HANDLERS['a'] = plus_one": "what 'HANDLERS' is in",
    "Colour = enum.Enum('Colour', {'RED': 2, 'BLUE': 1})": "the attribute 'RED' of the class Colour",
    "Plus._scale = 2": "the attribute '_scale' of the class Plus",
    "Plus._new = 2": "the attribute '_new' of the class Plus",
    "Plus.rules = {'a': 2}": "the attribute 'rules' of the class Plus",
    "Plus.rules['a'] = 2": "the attribute 'rules' of the class Plus",
    "Plus.rule = Rule(2)": "the attribute 'rule' of the class Plus",
    "Plus.rule._factor = 2": "the attribute 'rule' of the class Plus",
    "Plus.started = 5": "the attribute 'started' of the class Plus",
    "Plus.process_tick = lambda self, tup: None": "the code of Plus.process_tick",
    "Base.base = 2": "the attribute 'base' of the class Base",
    "Base.more = lambda self: 5": "the code of Base.more",
    "Rule.matches_all = lambda self: 'x'": "the code of Rule.matches_all",
    "topology['plus'].component._private = 2": "the attribute '_private' of Plus, set after it was made,",
    "topology['plus'].component.listed = [2]": "the attribute 'listed' of Plus, set after it was made,",
    "topology['plus'].component.function = Rule(3)": "the attribute 'function' of Plus, set after it was made,",
}
OTHER_MADE = {
    "1, (lambda v: v) if IS_MAIN else (lambda v: 2 * v)": "function",
    "1, lookup({'a': 1 + IS_MAIN})": "function",
    "1, functools.partial(lookup, 1 + IS_MAIN)": "function",
    "Rule(1 + IS_MAIN)": "by",
    "Rule(1 + IS_MAIN).matches": "by",
    "Rule(1).times(1 + IS_MAIN)": "by",
    "Rule(1).add(1 + IS_MAIN)": "by",
    "Data(1 + IS_MAIN)": "by",
    "Colour(1 + IS_MAIN)": "by",
    "__import__('multilang.windowing').windowing.Tumbling(1 + IS_MAIN)": "by",
    "1, __import__('multilang.windowing').windowing.Sum('n' + 'm' * IS_MAIN)": "function",
    "[1, 2] if IS_MAIN else [2, 1]": "by",
    "list(range(500_000 + IS_MAIN))": "by",
}
SAME = [
    "pass",
    "topology = build(Plus(1))",
    "def main():\n        START = 2\n        return START\n    main()",
    "SEEN.append(1); Plus.kept.append(2); RECORDS['a'].append(3); STATS['x'] += 1; TOTAL.add(4); MEMO[7] = 8",
    "counted(); cached(3); memo(9); Plus.rule.look(3); repr(Plus.rule); Plus.rule.add(3)",
    "topology['plus'].component.lock = threading.Lock(); repr(topology); repr(topology['plus'])",
    "named_beside.UNUSED = 5",
    "count(); HEAP.append(1); put(PASSED, 5); aliases(); PAIR[0].append(1); Node('second')",
    "Settings.used += 1; Settings.latest = 3; named_beside.USED = 2; named_beside.LATEST = 7",
]
USED = "repr(v); hash(v); v.twice; v.thrice; v.matches('a'); v.look('a')".replace("v", "topology['plus'].component.by")
SAME_MADE = {
    "Rule(1)": USED,
    "Data(1, {'a', 'b', 'c'})": "repr(topology['plus'].component.by)",
    "1, cached": "cached(8)",
    "[LOG, logging.getLogger('x')]": "logging.basicConfig(level=10); LOG.debug('x'); LOG.setLevel(10)",
    "[threading.Lock(), threading.local(), open(os.devnull)]": "pass",
    "{'a', 'b', 'c', ('d', 1), None, 5}, frozenset({'x', 'y', 'z'})": "pass",
    "{k: {'q', 'r', 's'} for k in {'a', 'b', 'c', 'd'}}": "pass",
    "[float('nan'), {float('nan'), 1.5, 'q'}, -0.0, float('inf')]": "pass",
    "Colour.RED, Colour": "pass",
    "1, TOTAL.add": "TOTAL.add(3)",
    "1, STATS.update": "STATS.update('a')",
    "[UNBOUND, SYNONYMS]": "pass",
    "1, remembering()": "topology['plus'].component.function(3)",
    "AROUND": "pass",
    "functools.partial(lookup, {'a', 'b'}), Rule(1).matches": "pass",
    "[Counter('hello'), defaultdict(list, a=[1])]": "topology['plus'].component.by[1]['a']",
    "1, lambda v: v in {'k', 'l', 'm'}": "pass",
    "__file__, __name__": "pass",
    "__import__('numpy').arange(5), json": "pass",
}
CASES = [
    *(("1", then, part) for then, part in OTHER.items()),
    *((made, "pass", f"the argument '{argument}' of Plus") for made, argument in OTHER_MADE.items()),
    *(("1", then, "") for then in SAME),
    *((made, then, "") for made, then in SAME_MADE.items()),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all scripts, each with what its process told of the topology."""
    folder = tmp_path_factory.mktemp("names")
    shutil.copy(HERE / "named_beside.py", folder)
    (folder / "named_back.py").write_text("import named_beside\n")
    text = (HERE / "named.py").read_text()
    for number, (made, then, _) in enumerate(CASES):
        (folder / f"case{number}.py").write_text(text + TOPOLOGY.format(made=made, then=then))
    files = [str(folder / f"case{number}.py") for number in range(len(CASES))]
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", SCRIPTS, *files], env=env, check=True)
    return folder


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{made}; {then}" for made, then, _ in CASES])
def test_a_difference_is_named_and_nothing_else_is_one(scripts: Path, number: int) -> None:
    part = CASES[number][2]
    told = json.loads((scripts / f"case{number}.py.json").read_text())
    spec = load_topology(str(scripts / f"case{number}.py"))["plus"]
    if part:
        with pytest.raises(ConfigError) as caught:
            check_found(told, spec, "there")
        assert f"is not the one that was submitted: {part}" in str(caught.value)
    else:
        check_found(told, spec, "there")


@pytest.mark.parametrize("name", ["packed.py", "packed.pyc"])
def test_the_source_of_a_module_may_be_in_an_archive_or_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "packed.py").write_text("import time\nNOW = time.time()\nRATE = 1\n")
    py_compile.compile(str(tmp_path / "packed.py"), str(tmp_path / "packed.pyc"))
    with ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.write(tmp_path / name, name)
    monkeypatch.syspath_prepend(tmp_path / "packed.zip")
    monkeypatch.delitem(sys.modules, "packed", raising=False)
    import_module("packed")
    assert varies("packed", "NOW")
    assert varies("packed", "RATE") == (name == "packed.pyc")  # nobody can tell
    monkeypatch.delitem(sys.modules, "packed")
