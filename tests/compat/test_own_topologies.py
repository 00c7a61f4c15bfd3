"""Topologies in streamparse's DSL that are written over to the builder build the same topology."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from random import Random
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

from multilang.compat.migrate import python_files
from multilang.compat.names import provide
from multilang.compat.own_api import plan
from multilang.component.errors import ConfigError
from multilang.testing import complete_topology
from multilang.topology import JavaBolt, JavaSpout, load_topology
from tests.compat.test_projects import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.compat.own_api import Plan
    from multilang.topology import Topology

PARTS = """\
from streamparse import BatchingBolt, Bolt, ReliableSpout, Spout, Stream


class Lines(Spout):
    outputs = ["line"]
    par = 2

    def next_tuple(self):
        self.emit(["a line"])


class Again(ReliableSpout):
    outputs = ["line", Stream(["n"], name="numbers")]
    config = {"again.by": "config"}

    def next_tuple(self):
        self.emit(["a line"], tup_id=1)


class Split(Bolt):
    outputs = ["word", Stream(["letter", "n"], "letters"), Stream(["n"], name="chosen", direct=True)]

    def process(self, tup):
        self.emit([tup.values[0]])


class Count(Bolt):
    outputs = ["word", "count"]
    config = {"topology.tick.tuple.freq.secs": 5}
    par = {"prod": 3}

    def process(self, tup):
        self.emit([tup.values[0], 1])


class Groups(BatchingBolt):
    outputs = ["n"]
    config = {"topology.tick.tuple.freq.secs": 1, "groups": [1, None, {"a": "b"}]}

    def process_batch(self, key, tups):
        self.emit([len(tups)])


class Told(Bolt):
    outputs = [Stream(["n"], direct=True)]

    def process(self, tup):
        self.emit([1], direct_task=1)


class Upper(Count):
    pass


class End(Groups):
    outputs = None


class Mixin:
    par = 5


class Mixed(Mixin, Split):
    pass


class Typed(Split):
    if True:
        par: int = 7


class Set(Split):
    pass


Set.config = {"a": 1}
"""
BUILT = {
    "plain": """\
lines = Lines.spec()
split = Split.spec(inputs=[lines], par=4)
count = Count.spec(inputs={split: Grouping.fields("word")})
""",
    "all_groupings": """\
lines = Lines.spec(par=1)
again = Again.spec(name="once-more", par={"prod": 2})
split = Split.spec("splitter", (lines, again), 4)
all_ = Count.spec(inputs={split: Grouping.ALL, split["letters"]: Grouping.fields(["letter", "n"])}, par=1)
direct = Upper.spec(inputs={split["chosen"]: Grouping.DIRECT, again["numbers"]: Grouping.NONE})
local = Groups.spec(inputs={split: Grouping.LOCAL_OR_SHUFFLE, lines: Grouping.SHUFFLE}, par=2)
one = End.spec(inputs={local: Grouping.GLOBAL, direct: Grouping.fields("word", "count")})
""",
    "default_groupings": """\
lines = Lines.spec()
told = Told.spec(inputs=lines)
end = End.spec(inputs=[told, lines])
more = End.spec(inputs=[told["default"]]) if False else End.spec(inputs=[lines])
""".rpartition("more")[0],
    "configs": """\
config = {
    "topology.max.spout.pending": 100,  # a few
    "topology.debug": not True,
}
lines = Again.spec(config={"again.by": "topology", "more": 1.5})
count = Count.spec(inputs=[lines], config={"topology.tick.tuple.freq.secs": LATE})
groups = Groups.spec(inputs=[count], config=None, par=None)
split = Split.spec(inputs=[count], config={"of.split": [1, 2]})
""",
    "twice_the_same": """\
lines = Lines.spec()
split = Split.spec(inputs=[lines, lines])
count = Count.spec(inputs={split: Grouping.SHUFFLE, split["default"]: Grouping.GLOBAL}, par=NUMBER)
""",
    "comments": '''\
"""Counts words.

In two lines.
"""

# first the lines
lines = Lines.spec()  # from nowhere

split = Split.spec(
    inputs=[lines],  # all of them
    # not too many
    par=4,
)
pass
# that was all
print("made")  # shown
count = Count.spec(inputs=[split])  # the end

# old = Count(
#     inputs=[lines])
''',
    "constants": """\
tasks = 3  # for all
by_environment = {"prod": 2}
config = {"topology.workers": tasks}
lines = Lines.spec(par=tasks)
split = Split.spec(inputs=[lines], par=by_environment)
""",
    "in_java": """\
clicks = JavaSpout.spec(
    full_class_name="shop.Clicks",
    args_list=["/clicks", 1, -2, 1.5, True, b"x"],
    outputs=["page", Stream(["n"], name="counts", direct=True)],
    par=3,
)
told = JavaSpout.spec("told", None, "shop.Told", [], 1, {"a": 1}, [Stream(["n"], direct=True)])
enrich = JavaBolt.spec(full_class_name="shop.Enrich", args_list=(), inputs=[clicks, told], outputs=("page", "place"))
end = JavaBolt.spec(full_class_name="shop.End", args_list=[], inputs={enrich: Grouping.fields("page"), clicks["counts"]: Grouping.DIRECT})
count = Count.spec(inputs=[enrich])
""",
    "odd_names": """\
lines = Lines.spec(name='it"s\\\\')
split = Split.spec(name="größe", inputs=[lines])
""",
}
KEPT = {
    "count = Count.spec(inputs=[lines], par={'prod': 2, 'beta': 3})": "par of 'count' has a number for each environment",
    "count = Count.spec(inputs=[lines], par=len('ab'))": "par of 'count' is not written as a number",
    "count = Count.spec(inputs=[lines], config={})": "the config of 'count' replaces that of its class",
    "count = Count.spec(inputs={lines: Grouping.custom_object('a.B', [])})": "'count' subscribes by a grouping in Java",
    "count = Count.spec(inputs={lines: SHUFFLE})": "the grouping of 'count' is not written",
    "count = Count.spec(inputs={lines: Grouping.fields(*['line'])})": "the fields by which 'count' subscribes",
    "count = Count.spec(inputs=list([lines]))": "the inputs of 'count' are not written",
    "count = Count.spec(inputs=[Lines.spec()])": "the input Lines.spec() of 'count' is no component",
    "count = Count.spec(**{'inputs': [lines]})": "the spec of 'count' has arguments",
    "count = JavaBolt.spec(serialized_java=b'', inputs=[lines])": "'count' is a serialized Java object",
    "count = JavaBolt.spec(full_class_name=NAME, args_list=[], inputs=[lines])": "its full_class_name is not written",
    "count = JavaBolt.spec(full_class_name='a.B', args_list=[NAME], inputs=[lines])": "its args_list is not written",
    "count = JavaBolt.spec(full_class_name='a.B', args_list=[], outputs=[NAME], inputs=[lines])": "its outputs are not",
    "count = ShellBolt.spec(command='sh', script='a', inputs=[lines])": "'count' is a command",
    "count = Counter.spec(inputs=[lines])": "the class of 'count' is in none of the project's files",
    "count = [Count.spec(inputs=[lines])][0]": "count is neither a spec nor config",
    "print(lines)": "an expression in its class uses the name 'lines'",
    "for _ in range(2):\n        count = Count.spec(inputs=[lines])": "a statement in its class is neither",
    "count = Mixed.spec(inputs=[lines])": "the class of 'count' has several base classes",
    "count = Typed.spec(inputs=[lines])": "the class of 'count' gives par a value in another way",
    "count = Set.spec(inputs=[lines])": "the class of 'count' gets its config outside of the class, in line",
    "number = len('ab')": "number is neither a spec nor config nor a plain value",
    "number = NAME": "number is neither a spec nor config nor a plain value",
    "NAME = 2": "the file already has something else with the name 'NAME'",
    "number = 2; other = 3": "two statements of its class are on one line",
    "lines = Lines.spec()": "lines is assigned twice",
    "count = Count.spec(name='lines', inputs=[lines])": "there are two components with the name 'lines'",
    "count = Count.spec(name=NAME, inputs=[lines])": "the name of 'count' is not written as a text",
}
AROUND = {
    "builder = 1\n{}": "something else with the name 'builder'",
    "from os import path as topology\n{}": "something else with the name 'topology'",
    "{}\nprint(Words.specs)\n": "the file uses Words as a class",
    "{}\n__all__ = ['Words']\n": "the file uses Words as a class",
    "@print\n{}": "a second base class, a keyword or a decorator",
}


def written(folder: Path, **topologies: str) -> Path:
    """A project with these texts of topologies' files."""
    for name, text in {"src/parts": PARTS, **{f"topologies/{name}": text for name, text in topologies.items()}}.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "config.json").write_text('{"envs": {"prod": {"options": {"topology.workers": 3, "of.prod": 1}}}}')
    return folder


def of(body: str, name: str = "Words", before: str = "") -> str:
    """A file with a topology whose class has this body."""
    imports = "from parts import Again, Count, End, Groups, Lines, Mixed, Set, Split, Told, Typed, Upper\nfrom streamparse import Grouping, Topology\n"
    return f"{imports}{before}\n\nclass {name}(Topology):\n{indent(body, '    ')}"


def described(topology: Topology) -> Any:
    """All of a topology that engines read."""
    home = topology.home
    java = [(spec.id, spec.component.args, list(map(type, spec.component.args))) for spec in in_java(topology)]
    return json.loads(topology.to_json()), java, None if home is None else Path(home.root).name


def in_java(topology: Topology) -> list[Any]:
    """The components in Java."""
    return [spec for spec in topology.components.values() if isinstance(spec.component, JavaBolt | JavaSpout)]


def planned(folder: Path) -> Plan:
    return plan(python_files(str(folder)))


@pytest.fixture(autouse=True)
def _names() -> Iterator[None]:
    provide()
    yield
    del sys.meta_path[0]


@pytest.mark.parametrize("name", BUILT)
def test_a_topology_of_the_builder_is_the_same_as_that_of_the_dsl(name: str, tmp_path: Path) -> None:
    java = "from streamparse import JavaBolt, JavaSpout, Stream\n" if name == "in_java" else ""
    text = of(BUILT[name], before=f"{java}LATE = 7\nNUMBER = 2\n")
    before = load_topology(f"{written(tmp_path / 'before', words=text)}/topologies/words.py")
    folder = written(tmp_path / "after", words=text)
    found = planned(folder)
    assert not [each for each in found.kept if each.name == "Words"]
    found.write()
    new = (folder / "topologies" / "words.py").read_text()
    assert "spec(" not in new
    assert "streamparse import J" not in new
    assert "Grouping, Topology" not in new
    assert ("Grouping" in new) is ("Grouping" not in BUILT[name])  # an import that was not used before stays
    assert described(load_topology(f"{folder}/topologies/words.py")) == described(before)
    assert not planned(folder).texts
    comments = {each.strip(" #") for line in text.splitlines() for each in line.split("#")[1:]}
    assert comments <= {each.strip(" #") for line in new.splitlines() for each in line.split("#")[1:]}


def test_topologies_at_random_are_the_same(tmp_path: Path) -> None:
    """Topologies of any shape: their parts, streams, groupings, numbers and confs are drawn."""
    dice = Random("topologies")
    texts = {f"drawn{number}": of(drawn(dice)) for number in range(25)}
    old, new = written(tmp_path / "old", **texts), written(tmp_path / "new", **texts)
    found = planned(new)
    assert not [each for each in found.kept if each.name == "Words"]
    found.write()
    for name in texts:
        before, after = (load_topology(f"{folder}/topologies/{name}.py") for folder in (old, new))
        assert described(after) == described(before), texts[name]


STREAMS: dict[str, dict[str, list[str]]] = {
    "Lines": {},
    "Again": {"numbers": ["n"]},
    "Split": {"letters": ["letter", "n"]},
    "Count": {},
    "Groups": {},
}
FIELDS = {"Lines": ["line"], "Again": ["line"], "Split": ["word"], "Count": ["word", "count"], "Groups": ["n"]}


def drawn(dice: Random) -> str:
    kinds: dict[str, str] = {}
    lines = []
    for number in range(dice.randint(2, 7)):
        kind = dice.choice(["Lines", "Again"] if not number else list(FIELDS))
        given = []
        if kind not in ("Lines", "Again"):
            given.append(f"inputs={inputs_drawn(dice, kinds)}")
        if dice.random() < 0.5:
            given.append(f"par={dice.choice([1, 3, {'prod': 2}])}")
        if dice.random() < 0.3:
            given.append(f"name={f'part {number}'!r}")
        if dice.random() < 0.3:
            given.append(f"config={{**{{}}, 'x': {number}}}" if kind in ("Lines", "Split") else "config=None")
        kinds[f"part{number}"] = kind
        lines.append(f"part{number} = {kind}.spec({', '.join(given)})\n")
    if dice.random() < 0.5:
        lines.insert(dice.randrange(len(lines)), f"config = {{'topology.workers': {dice.randint(1, 4)}}}\n")
    return "".join(lines)


def inputs_drawn(dice: Random, kinds: dict[str, str]) -> str:
    sources = []
    for part in dice.sample(sorted(kinds), dice.randint(1, len(kinds))):
        kind = kinds[part]
        stream = dice.choice(["", *STREAMS[kind]])
        fields = STREAMS[kind].get(stream, FIELDS[kind])
        plain = dice.choice(["ALL", "GLOBAL", "LOCAL_OR_SHUFFLE", "NONE", "SHUFFLE"])
        grouping = dice.choice(
            [plain, f"fields({', '.join(map(repr, dice.sample(fields, dice.randint(1, len(fields)))))})"]
        )
        sources.append((f"{part}[{stream!r}]" if stream else part, f"Grouping.{grouping}"))
    if dice.random() < 0.5:
        return f"[{', '.join(source for source, _ in sources)}]"
    return f"{{{', '.join(f'{source}: {grouping}' for source, grouping in sources)}}}"


@pytest.mark.parametrize("line", KEPT)
def test_what_a_builder_can_not_say_stays_with_the_reason(line: str, tmp_path: Path) -> None:
    names = "from collections import Counter\nfrom streamparse import JavaBolt, ShellBolt\nSHUFFLE = Grouping.SHUFFLE\nNAME = 'a'\n"
    found = planned(written(tmp_path, words=of(f"lines = Lines.spec()\n{line}\n", before=names)))
    assert any(KEPT[line] in each.reason for each in found.kept if each.name == "Words"), found.kept
    assert "TopologyBuilder" not in found.texts[str(tmp_path / "topologies" / "words.py")][0]


@pytest.mark.parametrize("text", AROUND)
def test_a_topology_whose_class_is_used_stays(text: str, tmp_path: Path) -> None:
    declared = of("lines = Lines.spec()\n")
    head, _, body = declared.partition("\n\n\n")
    found = planned(written(tmp_path, words=f"{head}\n{text.format(body)}"))
    assert any(AROUND[text] in each.reason for each in found.kept if each.name == "Words"), found.kept


def test_a_topology_whose_base_is_imported_with_everything_stays(tmp_path: Path) -> None:
    text = of("lines = Lines.spec()\n").replace("import Grouping, Topology", "import *")
    folder = written(tmp_path, words=text)
    assert [each.reason for each in planned(folder).kept if each.name == "Words"] == [
        "its base comes by from streamparse import *; import what the file uses by name"
    ]


def test_a_topology_that_another_file_imports_stays(tmp_path: Path) -> None:
    folder = written(tmp_path, words=of("lines = Lines.spec()\n"), other="from words import Words\n")
    assert [each.reason for each in planned(folder).kept if each.name == "Words"] == [
        "other.py imports Words, as a class"
    ]


def test_the_first_topology_of_a_file_is_still_the_one_that_the_file_names(tmp_path: Path) -> None:
    text = of("lines = Lines.spec()\n", "One") + "\n\nclass Two(Topology):\n    again = Again.spec()\n"
    folder = written(tmp_path, words=text)
    planned(folder).write()
    assert [*load_topology(f"{folder}/topologies/words.py").components] == ["lines"]
    assert [*load_topology(f"{folder}/topologies/words.py:Two").components] == ["again"]
    text = (
        of("number = [len('a')]\nlines = Lines.spec()\n", "One")
        + "\n\nclass Two(Topology):\n    again = Again.spec()\n"
    )
    folder = written(tmp_path / "kept", words=text)
    planned(folder).write()
    assert [*load_topology(f"{folder}/topologies/words.py").components] == ["lines"]
    assert [*load_topology(f"{folder}/topologies/words.py:Two").components] == ["again"]


@pytest.mark.parametrize(
    "heading", ["class Words(Topology):  # the words", "class Words(\n    Topology,  # the words\n):"]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_heading_of_a_class_may_have_any_layout(heading: str, newline: str, tmp_path: Path) -> None:
    text = of("lines = Lines.spec()\n\n# said at the end\n").replace("class Words(Topology):", heading)
    folder = written(tmp_path)
    file = tmp_path / "topologies" / "words.py"
    file.parent.mkdir()
    file.write_bytes(text.replace("\n", newline).encode())
    planned(folder).write()
    new = file.read_bytes().decode()
    assert new.count("\r\n") == (new.count("\n") if newline == "\r\n" else 0)
    assert f"builder = TopologyBuilder(){newline}# the words{newline}builder.set_spout" in new
    assert f"# said at the end{newline}topology = builder" in new
    assert [*load_topology(str(file)).components] == ["lines"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of words, with one number of tasks for all environments."""
    folder = Path(shutil.copytree(WORDS, tmp_path / "words", ignore=shutil.ignore_patterns("__pycache__")))
    file = folder / "topologies" / "words.py"
    text = file.read_text()
    assert 'par={"prod": 2, "beta": 3}' in text
    file.write_text(text.replace('par={"prod": 2, "beta": 3}', "par=2"))
    return folder


def test_a_project_keeps_its_environments_and_the_folder_of_its_components(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "topologies" / "words.py"
    before = []
    for environment in ("prod", "beta"):
        monkeypatch.setenv("MULTILANG_ENVIRONMENT", environment)
        before.append(described(load_topology(str(file))))
    assert before[0][0]["conf"] != before[1][0]["conf"]
    after = Path(shutil.copytree(project, project.parent / "after" / "words"))
    planned(after).write()
    assert "TopologyBuilder" in (after / "topologies" / "words.py").read_text()
    for environment, expected in zip(("prod", "beta"), before, strict=True):
        monkeypatch.setenv("MULTILANG_ENVIRONMENT", environment)
        assert described(load_topology(f"{after}/topologies/words.py")) == expected
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    ran = complete_topology(load_topology(f"{after}/topologies/words.py"), {"lines": [["the cow"], ["the moon"]]})
    assert Counter(map(tuple, ran.values("count"))) == {("the", 1): 1, ("the", 2): 1, ("cow", 1): 1, ("moon", 1): 1}


def test_settings_of_multilang_toml_take_the_place_of_config_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, words=of("lines = Lines.spec()\n"))
    planned(folder).write()
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "dev")
    with pytest.raises(ConfigError, match=r"config\.json has no environment 'dev'"):
        load_topology(f"{folder}/topologies/words.py")
    (folder / "multilang.toml").write_text("[environments.dev]\n")
    topology = load_topology(f"{folder}/topologies/words.py")
    assert topology.conf == {}
    assert topology.home is not None
    assert topology.home.root == str(folder / "src")


def test_after_any_step_the_project_builds_the_same_topology(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILANG_ENVIRONMENT", "prod")
    expected = described(load_topology(str(project / "topologies" / "words.py")))
    found = planned(project)
    assert len(found.steps) == 4
    assert dict(found.steps) == {path: text for path, (text, _) in found.texts.items()}
    for number in range(5):
        folder = Path(shutil.copytree(project, project.parent / str(number) / "words"))
        for path, text in found.steps[:number]:
            (folder / Path(path).relative_to(project)).write_text(text)
        assert described(load_topology(f"{folder}/topologies/words.py")) == expected


def test_a_program_in_one_file_is_written_once(tmp_path: Path) -> None:
    body = indent(BUILT["plain"].replace('"word")}', '"word")}, par=2'), "    ")
    text = f"{PARTS}from streamparse import Grouping, Topology\n\n\nclass Words(Topology):\n{body}"
    (tmp_path / "one.py").write_text(text)
    before = load_topology(str(tmp_path / "one.py")).to_text()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "one.py").write_text(text)
    found = plan([str(tmp_path / "new" / "one.py")])
    assert len(found.steps) == 1
    found.write()
    assert load_topology(str(tmp_path / "new" / "one.py")).to_text() == before
