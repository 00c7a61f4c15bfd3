"""Topologies that Flux declares in YAML run as they are."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from multilang.compat.flux import Declared
from multilang.compat.flux_file import flux_entries
from multilang.compat.yaml_file import read_yaml
from multilang.component.errors import ConfigError
from multilang.migrate import findings, from_flux
from multilang.shipping import flux_yaml, pack
from multilang.topology import ShellBolt, ShellSpout, Topology, TopologyBuilder, TopologyError, load_topology
from multilang.topology.shell import Foreign
from tests.cli.command import multilang

YAML = """\
name: "tally"
config: {topology.workers: 1}
spouts:
  - id: "lines"
    className: "org.apache.storm.flux.wrappers.spouts.FluxShellSpout"
    constructorArgs:
      - ["python", "lines.py"]
      - ["line"]
    parallelism: 1
bolts:
  - id: "split"
    className: "org.apache.storm.flux.wrappers.bolts.FluxShellBolt"
    constructorArgs:
      - ["python", "split.py"]
      - ["word"]
    parallelism: 2
  - id: "log"
    className: "org.apache.storm.flux.wrappers.bolts.LogInfoBolt"
streams:
  - {name: "a", from: "lines", to: "split", grouping: {type: SHUFFLE}}
  - {name: "b", from: "split", to: "log", grouping: {type: FIELDS, args: ["word"]}}
"""
PROGRAMS = {
    "lines.py": """\
import storm

class Lines(storm.Spout):
    def initialize(self, conf, context):
        self.left = ["red fish", "blue fish"]

    def nextTuple(self):
        if self.left:
            line = self.left.pop()
            storm.emit([line], id=line)

Lines().run()
""",
    "split.py": """\
import storm

class Split(storm.BasicBolt):
    def process(self, tup):
        for word in tup.values[0].split():
            storm.emit([word])

Split().run()
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    programs = tmp_path / "multilang" / "resources"
    programs.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "topology.yaml").write_text(YAML)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "topology.yaml"
    path.write_text(text)
    return path


def test_it_runs_with_the_programs_of_a_java_project(project: Path) -> None:
    done = multilang("run", project / "resources" / "topology.yaml", "--for", 60, "--until-drained", "-v", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "2 tuples acked" in done.stdout
    for word, number in (("red", 1), ("blue", 1), ("fish", 2)):
        assert done.stderr.count(f", [{word}]") == number


def test_a_jar_has_the_programs_and_a_module_of_the_topology(project: Path) -> None:
    topology = load_topology(str(project / "resources" / "topology.yaml"))
    shipment = pack(topology)
    assert shipment.check()
    (project / "tally.jar").write_bytes(shipment.jar())
    with zipfile.ZipFile(project / "tally.jar") as jar:
        assert {f"resources/{each}" for each in (*PROGRAMS, "tally_topology.py", "storm.py")} <= set(jar.namelist())


def test_migrate_writes_a_module_that_declares_the_same(project: Path) -> None:
    (made,) = from_flux(str(project))
    assert made == str(project / "multilang" / "resources" / "tally_topology.py")
    assert from_flux(str(project)) == []
    ours, theirs = load_topology(made), load_topology(str(project / "resources" / "topology.yaml"))
    assert shown(ours) == shown(theirs)
    assert ours.conf == theirs.conf == {"topology.workers": 1}
    for each in (ours, theirs):
        assert [
            spec.component.description for spec in each.components.values() if isinstance(spec.component, Foreign)
        ] == [
            "python lines.py",
            "python split.py",
        ]
    assert "resources" not in Path(made).read_text()


def shown(topology: Topology) -> str:
    parts = {
        spec.id: [
            spec.kind,
            spec.parallelism,
            spec.tasks,
            spec.conf,
            {name: list(stream.fields) for name, stream in spec.streams.items()},
            [[each.component, each.stream, each.grouping.to_dict()] for each in spec.inputs],
        ]
        for spec in topology.components.values()
    }
    return json.dumps([topology.name, parts], indent=1)


def test_what_this_library_writes_as_flux_is_read_back(tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("s", ShellSpout(["numbers"], ["n", "m"], {"late": ["n"]}), 2, tasks=4, conf={"a.key": 1.5})
    bolt = builder.set_bolt("b", ShellBolt(["take"]), 3, tasks=3)
    bolt.fields_grouping("s", "n", "m").shuffle_grouping("s", stream="late")
    bolt = builder.set_bolt("every", ShellBolt(["take"]), tasks=1).all_grouping("s")
    bolt.global_grouping("s", stream="late")
    near = builder.set_bolt("near", ShellBolt(["take"]), tasks=1)
    near.local_or_shuffle_grouping("s").none_grouping("s", stream="late")
    topology = builder.build("numbers", {"topology.max.spout.pending": 10, "own": {"deep": [1, None, True]}})
    topology.origin = f"{written_module(tmp_path)}:topology"
    text = flux_yaml(pack(topology))  # which starts each command by a script of the jar's
    for number in range(1, 5):
        (tmp_path / f"run_command_{number}.py").touch()
    read = load_topology(str(written(tmp_path, text)))
    assert read.conf.items() >= topology.conf.items()  # workers need some entries more
    assert shown(read) == shown(topology)


def written_module(folder: Path) -> Path:
    path = folder / "numbers_topology.py"
    path.write_text("from multilang.topology import Topology\n")
    return path


REFUSED = {
    "an object": (
        "spouts: [{id: k, className: shop.Spout, constructorArgs: [{ref: conf}]}]",
        "spout 'k' of the Java class shop.Spout is made of Java objects",
    ),
    "a source in Java": (
        "{spouts: [{id: k, className: shop.Spout}], bolts: [{id: b, className: flux.wrappers.bolts.LogInfoBolt}], streams: [{from: k, to: b}]}",
        "whose fields are not in this file",
    ),
    "a method": (
        "spouts: [{id: k, className: a.FluxShellSpout, constructorArgs: [[x]], configMethods: [{name: setEnv, args: [1]}]}]",
        "calls the Java method setEnv",
    ),
    "a stream from nowhere": (
        "spouts: [{id: k, className: a.FluxShellSpout, constructorArgs: [[x], [f]]}]\nstreams: [{from: kk, to: k}]",
        "a stream is from 'kk', and there is no such component",
    ),
    "a variable": ("name: ${NO_SUCH_VARIABLE}\nspouts: []", "set the variable 'NO_SUCH_VARIABLE'"),
    "a variable in braces": ("name: a\nconfig: {a: ${NO_SUCH_VARIABLE}}", "set the variable 'NO_SUCH_VARIABLE'"),
    "Java": ("topologySource: {className: shop.Main}", "topologySource is made in Java"),
    "nothing": ("nimbus.host: here", "it declares no spouts"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_only_java_can_make_is_refused_with_what_to_do(tmp_path: Path, what: str) -> None:
    text, said = REFUSED[what]
    with pytest.raises(TopologyError) as raised:
        Declared(str(written(tmp_path, text))).text()
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}/topology.yaml: ") or "variable" in said


def test_migrate_tells_what_only_java_can_make(tmp_path: Path) -> None:
    written(tmp_path, REFUSED["an object"][0])
    (tmp_path / "other.yml").write_text("a: b")
    (tmp_path / "broken.yml").write_text("{{{")
    (found,) = findings(str(tmp_path))
    assert (found.path, found.stops) == (str(tmp_path / "topology.yaml"), True)
    assert "made of Java objects" in found.fix


def test_files_are_included_and_variables_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLY_TASKS", "3")
    (tmp_path / "base.yaml").write_text(YAML.replace("parallelism: 2", "parallelism: ${TALLY_TASKS}"))
    for name in PROGRAMS:
        (tmp_path / name).touch()
    path = written(
        tmp_path,
        "name: mine\nconfig: {topology.workers: 2}\nincludes: [{resource: false, file: base.yaml, override: false}]\n",
    )
    topology = load_topology(str(path))
    assert (topology.name, topology.conf) == ("mine", {"topology.workers": 2})
    assert topology["split"].tasks == 3


# ---- what Flux reads ----

FLUX = "org.apache.storm.flux.wrappers"
BASE: dict[str, Any] = {
    "name": "t",
    "spouts": [{"id": "s", "className": f"{FLUX}.spouts.FluxShellSpout", "constructorArgs": [["node", "s.js"], ["word"]]}],
    "bolts": [
        {"id": "b", "className": f"{FLUX}.bolts.FluxShellBolt", "constructorArgs": [["node", "b.js"], ["word"]]},
        {"id": "j", "className": "org.example.Sink"},
        {"id": "l", "className": f"{FLUX}.bolts.LogInfoBolt"},
    ],
    "streams": [
        {"from": "s", "to": "b", "grouping": {"type": "SHUFFLE"}},
        {"from": "b", "to": "j", "grouping": {"type": "FIELDS", "args": ["word"]}},
        {"from": "b", "to": "l", "grouping": {"type": "CUSTOM", "customClass": {"className": "PartialKeyGrouping", "constructorArgs": [["word"]]}}},
    ],
}  # fmt: skip
OBJECT = {
    "className": "org.example.Other",
    "constructorArgs": [["node", "other.js"], ["other"]],
    "properties": [{"name": "a", "value": 1}],
    "configMethods": [{"name": "addComponentConfig", "args": ["own", 1]}],
    "factory": "newInstance",
    "factoryArgs": ["FOO"],
}
VERTEX = {
    **OBJECT,
    "id": "other",
    "parallelism": 3,
    "numTasks": 5,
    "onHeapMemoryLoad": 512,
    "offHeapMemoryLoad": 256,
    "cpuLoad": 50,
    "config": {"topology.tick.tuple.freq.secs": 5},
    "nonsense": 1,
}
# The setters of each class of org.apache.storm.flux.model, and one that none has, with a value that is not the default.
MODEL: list[tuple[tuple[str | int, ...], dict[str, Any]]] = [
    (
        (),
        {
            "name": "other",
            "components": [{"id": "c", "className": "org.example.Part"}],
            "config": {"topology.workers": 2},
            "topologySource": {"className": "org.example.Source"},
            "workerHooks": [{"id": "h", "className": "org.example.Hook"}],
            "nonsense": 1,
        },
    ),
    (("spouts", 0), VERTEX),
    (("bolts", 0), VERTEX),
    (("bolts", 1), {**VERTEX, "constructorArgs": ["text", 1]}),
    (("bolts", 2), VERTEX),
    (("streams", 0), {"from": "b", "to": "l", "grouping": {"type": "ALL"}, "nonsense": 1}),
    (("streams", 0, "grouping"), {"type": "ALL", "args": ["word"], "streamId": "other", "customClass": OBJECT, "nonsense": 1}),
    (("streams", 1, "grouping"), {"type": "ALL", "args": ["more"], "streamId": "other", "customClass": OBJECT, "nonsense": 1}),
    (("streams", 2, "grouping"), {"type": "ALL", "args": ["word"], "streamId": "other", "nonsense": 1}),
    (("streams", 2, "grouping", "customClass"), {**OBJECT, "constructorArgs": [["more"]], "nonsense": 1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "key", "value"), [(place, key, value) for place, keys in MODEL for key, value in keys.items()], ids=str
)
def test_each_entry_is_taken_over_or_refused_by_its_name(tmp_path: Path, place, key: str, value: Any) -> None:
    base = Declared(str(written(tmp_path, json.dumps(BASE)))).text()
    changed = json.loads(json.dumps(BASE))
    part = changed
    for each in place:
        part = part[each]
    part[key] = value
    refused, text = outcome(lambda: Declared(str(written(tmp_path, json.dumps(changed)))).text())
    if refused is None:
        assert text != base
    elif key not in ("id", "className", "type"):  # by which other entries are none any more
        assert key in refused or "addComponentConfig" in refused


def outcome(call):
    """Return why a call is refused, or what it returns."""
    try:
        return None, call()
    except ConfigError as refused:
        return str(refused), None


WRONG: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "no id": (("bolts", 0, "id"), None, "a bolt has no id"),
    "no class": (("bolts", 0, "className"), None, "bolt 'b' has no className"),
    "no list": (("bolts",), {"id": "b"}, "the bolts of the file is"),
    "no part": (("bolts", 0), "b", "a bolt is 'b'; write its entries"),
    "no grouping": (("streams", 0, "grouping"), None, "grouping of the stream from 's' has no type"),
    "no stream": (("streams", 0, "from"), ["s"], "the from of a stream is"),
    "no conf": (("config",), ["a"], "config is ['a']; write its entries"),
    "a conf of a part": (("bolts", 0, "config"), 5, "config of bolt 'b' is 5; write its entries"),
    "no tasks": (("bolts", 0, "parallelism"), 0, "parallelism of bolt 'b' is 0; use an integer from 1 on"),
    "a text": (("bolts", 0, "numTasks"), "many", "numTasks of bolt 'b' is 'many'; use an integer from 1 on"),
    "a number in a command": (("bolts", 0, "constructorArgs", 0, 1), 668, "the command of bolt 'b' has 668, which is no text"),
    "fields of an object": (("bolts", 0, "constructorArgs", 1), {"ref": "f"}, "the fields of bolt 'b' is {'ref': 'f'}"),
    "no command": (("bolts", 0, "constructorArgs"), [[]], "bolt 'b' has no command"),
    "an object in a method": (
        ("bolts", 0, "configMethods"),
        [{"name": "addComponentConfig", "args": ["a"]}],
        "the args of addComponentConfig of bolt 'b' are ['a']; write them as [key, value]",
    ),
    "a key": (("streams", 1, "grouping", "args"), "word", "the args of the grouping of the stream from 'b' is 'word'"),
    "the other kind": (("bolts", 0, "className"), f"{FLUX}.spouts.FluxShellSpout", "which is no bolt"),
    "a method's entry": (("bolts", 0, "configMethods"), [{"name": "changeChildCWD", "args": [False], "more": 1}], "'more'"),
    "an include's entry": (("includes",), [{"file": "a.yaml", "more": 1}], "an include has the entry 'more'"),
    "an include's answer": (("includes",), [{"file": "a.yaml", "override": "always"}], "override of an include is 'always'"),
    "an include that is not there": (("includes",), [{"file": "nowhere.yaml"}], "nowhere.yaml can't be read"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_has_another_form_is_refused_by_its_name(tmp_path: Path, what: str) -> None:
    (*place, last), value, said = WRONG[what]
    changed = json.loads(json.dumps(BASE))
    part = changed
    for each in place:
        part = part[each]
    part[last] = value
    with pytest.raises(ConfigError) as raised:
        Declared(str(written(tmp_path, json.dumps(changed)))).text()
    assert said in str(raised.value)


def test_a_value_that_no_conf_can_have_is_refused(tmp_path: Path) -> None:
    for text in ("2026-01-31", "!!binary aGk=", ".nan", "{ref: part}", "!!set {a}"):
        with pytest.raises(TopologyError, match=r"my\.key of config is"):
            Declared(str(written(tmp_path, f"{json.dumps(BASE)[:-1]}, config: {{my.key: {text}}}}}")))


NAMES = st.sampled_from(["A", "B", "kafka.host", "ENV_1"])
VALUES = st.sampled_from(
    ["true", "0.5", "1e3", "-1", "01234", "null", "~", "[1, a]", "{a: 1}", "yes", "", "x y", "1_000", "\u00b2", "'01'", "a: b", "# no", "&x"]
) | st.text(st.characters(codec="utf-8", exclude_characters="$\r\n", exclude_categories=("Cc", "Cs")), max_size=6)  # fmt: skip
PIECES = st.lists(
    st.one_of(NAMES.map("${{{}}}".format), NAMES.map("${{ENV-{}}}".format), st.sampled_from(list("a1:{}[], '\"-")))
)


@settings(max_examples=300, deadline=None)
@given(PIECES.map("".join), PIECES.map("".join), st.dictionaries(NAMES, VALUES))
@example("a: ${A}, b: ${B}", "c", {"A": "true", "B": "01234"})
@example('"${A}"', "${B}", {"A": "01234", "B": "my.key"})
@example("{a: ${A}}", "k", {"A": "-1"})
def test_variables_are_put_into_the_text_before_it_is_yaml(tmp_path_factory, value, key, variables) -> None:
    path = tmp_path_factory.mktemp("flux") / "a.yaml"
    text = f"name: t\nconfig:\n  k{key}: {value}\n"
    with_values = text
    for name, each in variables.items():  # as Flux does it
        with_values = with_values.replace(f"${{{name}}}", each).replace(f"${{ENV-{name}}}", each)
    path.write_text(with_values, encoding="utf-8")
    unset = re.search(r"\$\{", with_values)
    _, wanted = outcome(lambda: read_yaml(str(path)))
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("A", "B", "kafka.host", "ENV_1"):
            patch.delenv(name, raising=False)
        for name, each in variables.items():
            patch.setenv(name, each)
        refused, found = outcome(lambda: flux_entries(str(path)).given)
    if refused is None:
        assert found == wanted
    else:
        assert wanted is None or (unset and "set the variable" in refused)


AS_FLUX: dict[str, Any] = {  # what the parser of Flux 2.8.3 made of each
    "true": True, "yes": True, "on": True, "Off": False, "y": "y", "null": None, "NULL": None, "~": None,
    "-1": -1, "+1": 1, "01234": 668, "08": "08", "1_000": 1000, "1:30": 90, "0x1F": 31, "0b11": 3, "0o7": "0o7", "'01'": "01",
    "123456789012345678901234567890": 123456789012345678901234567890, "0.5": 0.5, ".5": 0.5, "1.": 1.0, "1e3": 1000.0, "1.5e3": 1500.0,
    "-.5E-2": -0.005, "12e03": 12000.0, "5.e2": 500.0, "+.5e1": 5.0, "1e": "1e", "1_0.5e1_0": "1_0.5e1_0",
    "[1, a]": [1, "a"], "{a: 1}": {"a": 1},
}  # fmt: skip


@pytest.mark.parametrize("text", AS_FLUX)
def test_values_are_those_of_flux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("VALUE", text)
    (tmp_path / "a.yaml").write_text("config: {k: ${ENV-VALUE} }")
    found = flux_entries(str(tmp_path / "a.yaml")).given["config"]["k"]
    assert (type(found), found) == (type(AS_FLUX[text]), AS_FLUX[text])


def test_an_element_of_a_list_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTS", '["one", "two"]')
    path = written(tmp_path, f"{json.dumps(BASE)[:-1]}, config: {{my.host: '${{HOSTS[1]}}'}}}}")
    assert "'my.host': 'two'" in Declared(str(path)).text()


def test_the_message_of_broken_yaml_does_not_show_what_a_variable_has(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SECRET", "hush: [hush")
    path = written(tmp_path, "name: t\nconfig:\n  a: {password: ${SECRET}}\n")
    with pytest.raises(ConfigError, match="can't be read") as raised:
        Declared(str(path))
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("override", [False, True])
@pytest.mark.parametrize("absolute", [False, True])
def test_an_include_overrides_each_part_if_it_says_so(tmp_path: Path, override: bool, absolute: bool) -> None:
    """An include is merged as TopologyDef does it: parts by their ids, conf by its keys, the name; streams are added."""
    for name in ("s.js", "b.js"):
        (tmp_path / name).touch()
    folder = tmp_path / "parts"
    folder.mkdir()
    theirs = {
        "name": "theirs",
        "config": {"a": 2, "c": 2},
        "bolts": [{**BASE["bolts"][0], "parallelism": 7}, {"id": "more", "className": "org.example.More"}],
        "streams": [{"from": "s", "to": "more", "grouping": {"type": "ALL"}}],
    }
    (folder / "base.yaml").write_text(json.dumps(theirs))
    file = str(folder / "base.yaml") if absolute else "parts/base.yaml"
    mine = {**BASE, "name": "mine", "config": {"a": 1, "b": 1}, "includes": [{"file": file, "override": override}]}
    text = Declared(str(written(tmp_path, json.dumps(mine)))).text()
    topology = load_topology(str(tmp_path / "topology.yaml"))
    assert topology.name == ("theirs" if override else "mine")
    assert topology.conf == {"a": 2 if override else 1, "b": 1, "c": 2}
    assert topology["b"].parallelism == (7 if override else 1)
    assert list(topology.components) == ["s", "b", "j", "l", "more"]
    assert text.count("_grouping(") == 4


def test_an_include_is_looked_for_where_flux_looks_and_never_guessed(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "elsewhere").mkdir()
    include = {**BASE, "includes": [{"file": "base.yaml"}]}
    path = written(tmp_path / "topologies", json.dumps(include))
    (tmp_path / "base.yaml").write_text("config: {from: current}")
    monkeypatch.chdir(tmp_path)
    assert "'from': 'current'" in Declared(str(path)).text()
    (tmp_path / "topologies" / "base.yaml").write_text("config: {from: beside}")
    with pytest.raises(TopologyError, match=r"there are two: .*topologies/base\.yaml and .*write the path from / on"):
        Declared(str(path))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "'from': 'beside'" in Declared(str(path)).text()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = multilang("show", "nowhere.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no file 'nowhere.yaml'" in done.stderr


PARTS = st.recursive(
    st.just("x"),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2),
        st.dictionaries(st.sampled_from(["a", "7", "true", "2001-01-01", "config"]), inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
SPELLINGS = {
    "a": ["a", "'a'", '"a"', "!!str a"],
    "7": ["7", "0x7", "'7'", "0b111"],
    "true": ["true", "yes", "on"],
    "2001-01-01": ["2001-01-01"],
    "config": ["config", '"config"'],
}


@given(part=st.dictionaries(st.sampled_from(["config", "a"]), PARTS, min_size=1), data=st.data(), again=st.booleans())
def test_a_key_that_comes_again_in_its_map_is_refused_with_its_lines(
    tmp_path_factory: pytest.TempPathFactory, part: dict[str, Any], data: st.DataObject, again: bool
) -> None:
    """Of all maps, at any depth, in each style and spelling: YAML says that there is one, and readers take the last."""
    maps: list[dict[str, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            maps.append(value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(each)

    collect(part)
    doubled = data.draw(st.sampled_from(maps)) if again else None
    twice = data.draw(st.sampled_from(list(doubled or [""])))
    lines: list[str] = []
    found: list[int] = []

    def write(value: Any, margin: str) -> None:
        if value == "x":
            lines[-1] += " x"
        elif isinstance(value, list):
            for each in value:
                lines.append(f"{margin}-")
                write(each, f"{margin}  ")
        else:
            for name in [*value, *([twice] if value is doubled else [])]:
                lines.append(f"{margin}{data.draw(st.sampled_from(SPELLINGS[name]))}:")
                if value is doubled and name == twice:
                    found.append(len(lines))
                write(value[name], f"{margin}  ")

    write(part, "")
    path = tmp_path_factory.mktemp("twice") / "flux.yaml"
    path.write_text("\n".join(lines))
    if not again:
        read_yaml(str(path))
        return
    with pytest.raises(TopologyError, match=f"is in line {found[0]} and again in line {found[1]}, and only the last"):
        read_yaml(str(path))


def test_a_second_config_of_a_topology_is_told_by_every_command(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(YAML + "config: {topology.debug: true}\n# ${NOT_SET}\n")
    message = f"'config' is in line 2 and again in line {YAML.count(chr(10)) + 1}"
    with pytest.raises(TopologyError, match=message):
        load_topology(str(tmp_path / "topology.yaml"))
    assert any(message in each.fix for each in findings(str(tmp_path)))
    (tmp_path / "topology.yaml").write_text(YAML.replace("config: {", "config: {topology.workers: 2, "))
    with pytest.raises(TopologyError, match="is in line 2 and again in line 2"):
        load_topology(str(tmp_path / "topology.yaml"))


def test_what_a_map_takes_from_another_one_may_be_given_anew(tmp_path: Path) -> None:
    (tmp_path / "merged.yaml").write_text(
        "a: {in: {deep: &base {<<: &first {x: 1, z: 1}, x: 2}}}\nb: {<<: *base, <<: {y: 1}, x: 3, y: 4}\nc: *first\n"
    )
    read = read_yaml(str(tmp_path / "merged.yaml"))
    assert (read["a"]["in"]["deep"], read["b"], read["c"]) == (
        {"x": 2, "z": 1}, {"x": 3, "y": 4, "z": 1}, {"x": 1, "z": 1}
    )  # fmt: skip
