"""A task's process runs the component that was submitted, or says what differs in the one that it found."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import BasicBolt
from multilang.component.errors import ConfigError
from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import pack
from multilang.topology import TopologyBuilder, load_topology
from multilang.topology.identity import check_found, digest, parts_of, submission

ROOT = Path(__file__).parents[2]
MODULE = """
import os, random, sys, threading
from multilang import BasicBolt, LocalCluster, Spout, TopologyBuilder

class Numbers(Spout):
    output_fields = ["n"]
    def initialize(self, conf, context):
        self.left = list(range(3))
    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop(0)], tup_id=1)
    def exhausted(self):
        return not self.left

class Plus(BasicBolt):
    output_fields = ["n"]
    scale = 1
    def __init__(self, by=1, rules=(), function=None):
        self.by, self.rules, self.function = by, list(rules), function
        self.random, self.lock, self.pid = random.Random(), threading.Lock(), os.getpid()
    def __deepcopy__(self, memo):
        return Plus(self.by, self.rules, self.function)
    def process(self, tup):
        self.emit([tup["n"] + self.by])

def build(plus, **conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("plus", plus, conf=conf).shuffle_grouping("numbers")
    return builder.build("plus")

def adding(number):
    return lambda value: value + number

RULES = ["a"]
topology = build(Plus(1, RULES, adding(1)))
"""
SAME = {
    "as it is": "",
    "built again in the same way": "topology = build(Plus(1, ['a'], adding(1)))",
    "with a conf, which the process gets": "topology = build(Plus(1, ['a'], adding(1)), level=2)",
    "what each process makes for itself": "topology['plus'].component.lock = threading.Lock()",
}
OTHER = {
    "the argument 'by' of Plus": "topology = build(Plus(1000, ['a'], adding(1)))",
    "the argument 'rules' of Plus": "RULES.append('b')",
    "the argument 'function' of Plus": "topology = build(Plus(1, ['a'], adding(2)))",
    "its class": "class Other(Plus): pass\ntopology = build(Other(1, ['a'], adding(1)))",
    "the attribute 'scale' of the class Plus": "Plus.scale = 2",
    "the code of Plus.process": "Plus.process = lambda self, tup: self.emit([0])",
    "the attribute 'by' of Plus, set after it was made,": "topology['plus'].component.by = 7",
    "its stream 'default'": "Plus.output_fields = ['m']\ntopology = build(Plus(1, ['a'], adding(1)))",
    "the argument 'function' of Plus ": "for number in (1, 2, 3): topology = build(Plus(1, ['a'], lambda v: v * number))",
}


def submitted(folder: Path, then: str, name: str = "plus_topology") -> tuple[Path, ModuleType]:
    """Return the file of a topology, and its module as it is in the process that submits it, which does more behind it."""
    file = folder / f"{name}.py"
    file.write_text(MODULE)
    load_topology(str(file))
    module = ModuleType(name)
    module.__file__ = str(file)
    exec(compile(MODULE + then, str(file), "exec"), vars(module))
    return file, module


@pytest.mark.parametrize("then", SAME.values(), ids=SAME)
def test_a_topology_that_is_built_in_the_same_way_is_the_same(tmp_path: Path, then: str) -> None:
    file, module = submitted(tmp_path, then)
    check_found(submission(module.topology, []), load_topology(str(file))["plus"], "there")


@pytest.mark.parametrize(("part", "then"), OTHER.items(), ids=OTHER)
def test_another_one_is_refused_and_the_difference_is_named(tmp_path: Path, part: str, then: str) -> None:
    file, module = submitted(tmp_path, then)
    with pytest.raises(
        ConfigError, match=rf"component 'plus' of there is not the one .* {part.strip()} differs\. A task's"
    ):
        check_found(submission(module.topology, []), load_topology(str(file))["plus"], "there")


DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


class Kept(BasicBolt):
    output_fields = ("x",)

    def __init__(self, value: object) -> None:
        self.value = value


def kept(value: object) -> dict[str, str]:
    builder = TopologyBuilder()
    builder.set_bolt("kept", Kept(value))
    return parts_of(builder.specs["kept"])


@given(DATA, DATA)
def test_arguments_are_the_same_if_and_only_if_they_read_the_same(one: object, other: object) -> None:
    again = eval(repr(one))
    assert kept(one) == kept(again)
    assert (kept(one) == kept(other)) == (in_order(one) == in_order(other))


def in_order(value: Any) -> str:
    """Return a value's text, whatever the order of dicts, which may have been made of sets."""
    if isinstance(value, dict):
        return f"{sorted((in_order(key), in_order(each)) for key, each in value.items())} in a dict"
    return (
        f"{value!r}" if not isinstance(value, list | tuple) else f"{type(value)} {[in_order(each) for each in value]}"
    )


VALUES = """
import datetime, decimal, enum, fractions, functools, json, re
from dataclasses import dataclass

class Colour(enum.Enum):
    RED = 1

@dataclass
class Rule:
    names: set
    colour: Colour

def made(value):
    def inner(other, *, third={"a": {1, 2, 3}}):
        return {"x", "y", "z"} & {value, other}
    return inner

VALUES = [
    {"one", "two", "three", "four"}, frozenset({b"x", b"y", b"z"}), {"b": 1, "a": [2, (3,)]}, made("q"), lambda v: v in {"k", "l", "m"},
    functools.partial(made, 5), re.compile("a+"), datetime.timedelta(1), decimal.Decimal("1.5"), fractions.Fraction(1, 3),
    Rule({"r", "s", "t"}, Colour.RED), json, len, [].append, Colour, range(5), 1 + 2j,
]
"""


def test_values_of_every_kind_are_the_same_in_every_process(tmp_path: Path) -> None:
    program = tmp_path / "values.py"
    program.write_text(
        VALUES + "from multilang.topology.identity import digest\nprint([digest(value) for value in VALUES])\n"
    )
    shown = {
        subprocess.run(
            [sys.executable, program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(shown) == 1
    [text] = shown
    assert len(set(text.split())) == 17


def remembered(function: Any, memory: dict[Any, Any] = {}) -> Any:  # noqa: B006
    seen: dict[Any, Any] = {}

    def call(value: Any, known: dict[Any, Any] = {}) -> Any:  # noqa: B006
        assert value not in memory
        if value not in seen:
            seen[value] = known[value] = function(value)
        return seen[value]

    return call


twice = remembered(lambda value: 2 * value)


def test_what_is_remembered_between_calls_and_what_a_tool_has_rewritten_is_the_same() -> None:
    plain = spec_from_file_location("test_identity", __file__)
    assert plain is not None
    assert plain.loader is not None
    module = module_from_spec(plain)
    plain.loader.exec_module(module)
    assert twice.__code__.co_code != module.twice.__code__.co_code  # pytest has rewritten this module
    assert twice(4) == 8
    assert digest(twice) == digest(module.twice)
    assert digest(twice) != digest(remembered(lambda value: 3 * value))


def test_the_main_module_has_the_name_by_which_it_is_imported(tmp_path: Path) -> None:
    program = tmp_path / "named.py"
    program.write_text(
        "import logging\nfrom multilang.topology.identity import digest\n"
        "print(digest(__name__), digest([logging.getLogger(__name__)]), digest(__file__ + '/../named.py'))\n"
    )
    shown = {
        subprocess.run(
            [sys.executable, *how],
            env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
            cwd=tmp_path,
            capture_output=True,
            check=True,
        ).stdout
        for how in (["named.py"], ["./named.py"], ["-m", "named"], ["-c", "import named"])
    }
    assert len(shown) == 1


def script(folder: Path, then: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a file as a user's script, which runs its topology with processes."""
    run = """
    with LocalCluster("process") as cluster:
        run = cluster.submit(topology, capture=["plus"])
        run.wait(timeout=300)
        print(sorted(tup["n"] for tup in run.captured("plus")))
"""
    file = folder / "plus_script.py"
    file.write_text(f"{MODULE}{then}\nif __name__ == '__main__':{run}")
    return subprocess.run([sys.executable, file, *arguments], capture_output=True, text=True)


def test_a_script_that_builds_its_topology_again_under_its_guard_is_refused(tmp_path: Path) -> None:
    shown = script(tmp_path, "if __name__ == '__main__':\n    topology = build(Plus(1000))")
    assert shown.returncode != 0
    assert "is not the one that was submitted: the argument 'by' of Plus differs" in shown.stderr
    assert shown.stdout == ""


def test_the_tasks_of_a_script_have_its_arguments(tmp_path: Path) -> None:
    shown = script(tmp_path, "topology = build(Plus(int(sys.argv[1])))", "1000")
    assert (shown.stdout, shown.returncode) == ("[1000, 1001, 1002]\n", 0), shown.stderr


def test_a_jar_with_another_topology_is_refused(tmp_path: Path) -> None:
    file, module = submitted(tmp_path, "topology = build(Plus(1000))")
    module.topology.origin = f"{file}:topology"
    with pytest.raises(ShippingError, match="is not the one that was submitted: the argument 'by' of Plus differs"):
        pack(module.topology, leave_out=["ujson"]).check()


def test_a_worker_refuses_a_jar_s_topology_that_is_built_otherwise_there(tmp_path: Path) -> None:
    then = "topology = build(Plus(int(os.environ.get('PLUS_BY', 1))))"
    (tmp_path / "elsewhere.py").write_text(MODULE + then)
    shipment = pack(load_topology(str(tmp_path / "elsewhere.py")))
    shipment.check()
    shipment.unpack(tmp_path / "resources")
    context = {"taskid": 2, "componentid": "plus", "task->component": {"1": "numbers", "2": "plus"}}
    setup = json.dumps({"conf": {}, "pidDir": str(tmp_path), "context": context}) + "\nend\n"
    shown = subprocess.run(
        [sys.executable, "run_topology.py"],
        cwd=tmp_path / "resources",
        input=setup,
        capture_output=True,
        text=True,
        env={"PLUS_BY": "1000"},
    )
    assert shown.returncode == 78
    assert "component 'plus' of" in shown.stdout
    assert "the argument 'by' of Plus differs" in shown.stdout


def test_paths_beside_the_topology_s_file_are_the_same_on_a_worker(tmp_path: Path) -> None:
    (tmp_path / "with_paths.py").write_text(
        MODULE + "from pathlib import Path\nHERE = Path(__file__).resolve().parent\n"
        "topology = build(Plus(1, [str(HERE / 'data.csv'), HERE / 'more' / 'data.csv']))"
    )
    pack(load_topology(str(tmp_path / "with_paths.py"))).check()


def test_under_another_python_only_what_does_not_depend_on_it_is_compared(tmp_path: Path) -> None:
    file, module = submitted(tmp_path, "")
    told = submission(module.topology, [])
    parts = told["components"]["plus"]
    parts["python"] = "cpython-310-0"
    for part, value in parts.items():
        if value.startswith("~"):
            parts[part] = "~of that Python"
    spec = load_topology(str(file))["plus"]
    check_found(told, spec, "there")
    parts["the argument 'by' of Plus"] = "another number"
    with pytest.raises(ConfigError, match="the argument 'by' of Plus differs"):
        check_found(told, spec, "there")
