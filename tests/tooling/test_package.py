"""The files that are installed, and the packages that they need."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module, metadata, resources
from pathlib import Path
from pkgutil import iter_modules

import pytest

ROOT = Path(__file__).parents[2]


def test_the_core_depends_on_ujson_alone() -> None:
    core = [name for name in metadata.requires("storm-multilang") or () if "extra ==" not in name]
    assert [re.split(r"[<>=~! ]", name)[0] for name in core] == ["ujson"]


def test_every_place_that_names_ujson_asks_for_one_that_does_not_leak() -> None:
    """5.10 lost 190 MB in 50,000 messages with long integers."""
    from multilang.shipping.run_topology import LEAST_UJSON

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    named = {}
    for file in listed:
        if file.endswith((".py", ".toml", ".sh")):
            named[file] = set(re.findall(r"""["']ujson(>=[\d.]+)["']""", (ROOT / file).read_text(encoding="utf-8")))
    assert {each for found in named.values() for each in found} == {">=5.12"}
    assert named["pyproject.toml"]
    assert LEAST_UJSON == (5, 12)


def test_the_extra_all_brings_every_other_one_that_is_for_users() -> None:
    # Read from the file, since what is installed may be older.
    extras = re.search(
        r"^\[project.optional-dependencies\]\n(.*?)^\[", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert extras is not None
    names = set(re.findall(r"^([\w-]+) = \[", extras[1], re.M))
    everything = re.search(r'^all = \["storm-multilang\[([\w,-]+)\]"\]', extras[1], re.M)
    assert everything is not None
    assert set(everything[1].split(",")) == names - {
        "all",
        "test",
        "dev",
        "docs",
        "supply",
        "kerberos",
    }  # the last is built from source
    assert len(names) > 8


@pytest.mark.parametrize("package", ["multilang", "spark_bridge"])
def test_no_method_is_replaced_on_an_instance(package: str) -> None:
    replacing = [str(file) for file in (ROOT / package).rglob("*.py") if "method-assign" in file.read_text()]
    assert replacing == []


@pytest.mark.parametrize("package", ["multilang", "spark_bridge"])
def test_the_packages_tell_type_checkers_that_they_have_types(package: str) -> None:
    assert resources.files(package).joinpath("py.typed").is_file()


def test_the_command_and_the_pytest_plugin_are_registered() -> None:
    points = {(point.group, point.name) for point in metadata.distribution("storm-multilang").entry_points}
    assert {("console_scripts", "multilang"), ("pytest11", "multilang")} <= points


def test_writing_components_and_topologies_loads_no_extra() -> None:
    program = (
        "import sys, multilang, multilang.local\n"
        "for name in multilang.__all__: getattr(multilang, name)\n"
        "print([name for name in ('click', 'rich', 'pytest', 'prometheus_client', 'pyspark') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_hooks_run_what_is_installed_here() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert set(re.findall(r"repo: (\S+)", hooks)) == {"local"}
    assert set(re.findall(r"language: (\S+)", hooks)) == {"system"}


def test_setup_cfg_has_what_pyproject_toml_has_no_place_for() -> None:
    found = ConfigParser()
    found.read(ROOT / "setup.cfg")
    assert found.sections() == ["pycodestyle"]
    ruffs = re.search(r"^\[tool\.ruff\]\n.*?^line-length = (\d+)", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert ruffs is not None
    assert found["pycodestyle"]["max-line-length"] == ruffs[1]


def test_no_name_of_a_lazy_package_is_that_of_one_of_its_modules() -> None:
    """Importing the module first would give it to who asks for the name."""
    from multilang.helpers import lazy

    for package in ("multilang", "spark_bridge"):
        for file in (ROOT / package).rglob("__init__.py"):
            if "lazily(" in file.read_text(encoding="utf-8"):
                import_module(".".join(file.parent.relative_to(ROOT).parts))
    assert len(lazy._homes) > 10
    for name, homes in lazy._homes.items():
        modules = {module.name for module in iter_modules(import_module(name).__path__)}
        assert not modules & homes.keys(), name
