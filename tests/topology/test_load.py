"""Topologies found by name, as the command line and a task's process find them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.topology import Topology, TopologyBuilder, load_object, load_topology
from tests.patience import patient

TOPOLOGY = """
from multilang import Spout, TopologyBuilder

class Words(Spout):
    output_fields = ["word"]

def declare():
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    return builder.build()

def sized(size):
    return declare()

def nothing():
    pass

topology = declare()
builder = TopologyBuilder()
number = 7
"""


class Words(Spout):
    output_fields = ["word"]


def declare():
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    return builder.build("here")


here = declare()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to be in; what is imported meanwhile is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "helpers", raising=False)  # as another test's may be called
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def file(folder):
    file = folder / "declared_words.py"
    file.write_text(TOPOLOGY)
    return file


def project(folder, its_own, name):
    """Return a new topology's file, which takes its name from another file of its folder's."""
    beside = folder / its_own
    beside.parent.mkdir(parents=True)
    beside.write_text(f"NAME = {name!r}")
    main = folder / "main.py"
    main.write_text(f"from helpers import NAME\n{TOPOLOGY}\ntopology = topology.with_conf({{}}, NAME)\n")
    return main


def refuses(text):
    return pytest.raises(ConfigError, match=text)


class TestLoading:
    def test_by_a_files_path_relative_or_not(self, file):
        assert load_topology("declared_words.py") is load_topology(f"{file}:topology")

    def test_by_a_modules_name_from_the_current_folder(self, file):
        assert load_topology("declared_words:topology").name == "declared_words"

    def test_a_function_is_called_each_time(self, file):
        first, second = load_topology("declared_words.py:declare"), load_topology("declared_words.py:declare")
        assert first is not second

    def test_a_file_sees_the_modules_beside_it(self, folder):
        other = folder / "elsewhere"
        other.mkdir()
        (other / "beside.py").write_text(TOPOLOGY)
        (other / "main.py").write_text("from beside import topology")
        assert load_topology("elsewhere/main.py").components.keys() == {"words"}

    @pytest.mark.parametrize("its_own", ["helpers.py", "helpers/__init__.py"])
    def test_each_of_two_files_sees_the_modules_beside_itself(self, folder, its_own):
        first = project(folder / "first", "helpers.py", "first")
        second = project(folder / "second", its_own, "second")
        assert [load_topology(str(each)).name for each in (first, second, first)] == ["first", "second", "first"]

    def test_a_file_sees_a_package_that_is_named_as_another_file_which_was_loaded(self, folder):
        first = project(folder / "first", "helpers.py", "first").with_name("helpers.py")
        second = project(folder / "second", "helpers/__init__.py", "second")
        assert load_object(f"{first}:NAME") == "first"
        assert load_topology(str(second)).name == "second"

    def test_two_files_of_the_same_name_are_two_topologies_that_find_themselves(self, folder):
        files = [project(folder / each, "helpers.py", each) for each in ("first", "second")]
        found = [load_topology(str(each)) for each in files]
        assert [each.name for each in found] == ["first", "second"]
        assert [each.origin for each in found] == [f"{each}:topology" for each in files]
        assert [load_object(each.require_origin()) for each in found] == found

    def test_a_file_that_is_loaded_again_finds_its_modules_as_they_were(self, folder):
        first, second = (project(folder / each, "helpers.py", each) for each in ("first", "second"))
        for each in (first, second):
            each.with_name("later.py").write_text("def name():\n    import helpers\n    return helpers.NAME, helpers\n")
        [(name, helpers), (other, _), (again, same)] = [
            load_object(f"{each.with_name('later.py')}:name")() for each in (first, second, first)
        ]
        assert (name, other, again) == ("first", "second", "first")
        assert same is helpers

    def test_a_module_that_was_forgotten_is_imported_anew(self, folder, monkeypatch):
        file = project(folder / "first", "helpers.py", "first")
        before = load_topology(str(file))
        monkeypatch.delitem(sys.modules, "main")
        assert load_topology(str(file)) is not before

    @pytest.mark.parametrize("its_own", ["helpers.py", "helpers/__init__.py"])
    def test_a_module_that_somebody_else_has_imported_is_not_taken_for_the_one_beside_the_file(
        self, folder, monkeypatch, its_own
    ):
        project(folder / "before", "helpers.py", "before")
        monkeypatch.syspath_prepend(str(folder / "before"))
        __import__("helpers")
        with refuses(r"main.py imports 'helpers', which this process has already imported from .*before/helpers.py"):
            load_topology(str(project(folder / "after", its_own, "after")))

    def test_a_file_called_as_a_module_of_python_does_not_take_its_place(self, folder):
        import random

        (folder / "random.py").write_text(TOPOLOGY)
        assert load_topology("random.py").components.keys() == {"words"}
        assert sys.modules["random"] is random

    def test_a_file_whose_name_is_no_identifier_is_loaded(self, folder):
        (folder / "word-count 2.py").write_text(TOPOLOGY)
        assert load_topology("word-count 2.py").components.keys() == {"words"}

    def test_an_error_in_the_module_comes_through_and_the_next_try_starts_anew(self, file):
        file.write_text("import no_such_module_anywhere")
        for where in ("declared_words.py", "declared_words"):
            with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
                load_topology(where)
        file.write_text(TOPOLOGY + "\n# now it is right")
        assert isinstance(load_topology("declared_words.py"), Topology)

    def test_any_object_can_be_loaded(self, file):
        assert load_object("declared_words.py:number") == 7


class TestRefusing:
    @pytest.mark.parametrize("where", ["", ":topology", "a b:c", "x:not-a-name", "some/module:x", "a..b"])
    def test_a_name_of_nothing(self, where):
        with refuses("names (nothing|no module); write "):
            load_topology(where)

    def test_a_missing_file(self, folder):
        with refuses("there is no file '.*/missing.py'"):
            load_topology("missing.py")

    def test_a_missing_module(self, folder):
        with refuses("no module 'missing_package' .* write its path, such as missing_package/words.py"):
            load_topology("missing_package.words")

    def test_a_file_that_is_no_python(self, folder):
        (folder / "book.txt").write_text("the cow\n")
        with refuses("book.txt is a file but not a Python module"):
            load_topology("book.txt")

    def test_a_missing_name_shows_the_topologies_that_are_there(self, file):
        with refuses(r"has no 'topolgy'; did you mean 'topology'\? \(as .*declared_words.py:topology\)"):
            load_topology("declared_words.py:topolgy")

    def test_a_missing_name_in_a_module_without_any_says_what_to_write(self, file):
        file.write_text("")
        with refuses(r"write topology = builder.build\(...\) in it"):
            load_topology("declared_words.py")

    def test_a_builder(self, file):
        with refuses(r"is a builder, not a topology yet; write builder = builder.build\(...\)"):
            load_topology("declared_words.py:builder")

    @pytest.mark.parametrize("attr", ["number", "Words"])
    def test_something_else(self, file, attr):
        with refuses("not a Topology; name a Topology, or a function"):
            load_topology(f"declared_words.py:{attr}")

    def test_a_function_with_arguments(self, file):
        with refuses("is a function with arguments; name one without"):
            load_topology("declared_words.py:sized")

    def test_a_function_that_returns_something_else(self, file):
        with refuses(r"nothing\(\) returned a NoneType, not a Topology; end it with return builder.build"):
            load_topology("declared_words.py:nothing")


class TestOrigin:
    def test_of_a_loaded_topology_is_its_file_however_it_was_named(self, file):
        assert load_topology("declared_words.py").origin == f"{file}:topology"
        assert load_topology("declared_words.py:declare").origin == f"{file}:declare"
        assert load_topology("declared_words:topology").origin == "declared_words:topology"

    def test_of_a_topology_with_a_name_in_its_module_is_found(self):
        assert here.origin is not None
        assert here.origin.endswith(":here")
        assert load_object(here.require_origin()).components.keys() == here.components.keys()

    def test_of_a_topology_under_other_conf_is_the_same(self):
        assert here.with_conf({"a": 1}).origin == here.origin

    def test_of_a_topology_without_a_name_is_none_and_asking_for_it_says_what_to_write(self):
        local = declare()
        assert local.origin is None
        with refuses(r"'here' can't be imported by its tasks' processes.* Assign it there .*outside of any function"):
            local.require_origin()

    def test_of_a_script_that_runs_is_its_file(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(TOPOLOGY + "\nprint(topology.origin, topology.name)")
        assert run(str(script), cwd=tmp_path) == f"{script}:topology script"

    def test_of_a_package_that_runs_as_a_module_is_its_module(self, tmp_path):
        package = tmp_path / "shop"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "words.py").write_text(TOPOLOGY + "\nprint(topology.origin)")
        assert run("-m", "shop.words", cwd=tmp_path) == "shop.words:topology"

    def test_of_a_topology_typed_at_a_prompt_is_none(self, tmp_path):
        assert run("-c", TOPOLOGY + "\nprint(topology.origin)", cwd=tmp_path) == "None"


def run(*arguments, cwd):
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=patient(60))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_declaring_loads_none_of_the_modules_that_slow_a_process_down(tmp_path):
    script = """
import sys, ujson
before = set(sys.modules)
import multilang.topology
heavy = {"typing", "dataclasses", "logging", "json", "inspect", "re", "difflib", "copy", "importlib.util"}
print(sorted(heavy & (set(sys.modules) - before)))
"""
    assert run("-c", script, cwd=tmp_path) == "[]"


@pytest.mark.parametrize(
    "line", ["from . import bolts", "from .bolts import B", "from shop.bolts import B", "import shop.bolts"]
)
@pytest.mark.parametrize("inner", ["", "eu"])
def test_a_file_of_a_package_that_is_named_by_its_path_is_told_as_a_module(tmp_path, line, inner):
    package = tmp_path / "shop"
    file = package / inner / "orders_.py"
    file.parent.mkdir(parents=True)
    for folder in {package, file.parent}:
        (folder / "__init__.py").touch()
        (folder / "bolts.py").write_text("B = 1\n")
    file.write_text(f"{line}\ntopology = None\n")
    module = ".".join(filter(None, ["shop", inner, "orders_"]))
    with pytest.raises(
        ConfigError, match=rf"package 'shop'.* name the module instead, {module}:NAME, .*PYTHONPATH={tmp_path}$"
    ):
        load_topology(str(file))


def test_a_library_that_is_missing_is_not_taken_for_the_files_own_package(tmp_path):
    (tmp_path / "__init__.py").touch()
    (tmp_path / "lone.py").write_text("import nosuchlibrary\n")
    with pytest.raises(ModuleNotFoundError, match="nosuchlibrary"):
        load_topology(str(tmp_path / "lone.py"))
