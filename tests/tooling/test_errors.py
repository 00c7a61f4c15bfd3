"""One class is on top of the library's errors, and there are not many below it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import multilang
import spark_bridge
from multilang import MultilangError

MOST = 30
PROGRAMS = ("__main__", "run_topology", "run_command")  # which run when they are imported


def errors() -> set[type[Exception]]:
    """Return the classes of exceptions with a public name, but for those of the conformance kit, which imports nothing of ours."""
    found = set()
    for package in (multilang, spark_bridge):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] in PROGRAMS or module.name.startswith("multilang.conformance"):
                continue
            for value in vars(import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.name:
                    found.add(value)
    return {each for each in found if not each.__name__.startswith("_")}


def test_every_error_is_a_multilang_error_and_there_are_few() -> None:
    found = errors() - {MultilangError}
    assert not sorted(f"{each.__module__}.{each.__name__}" for each in found if not issubclass(each, MultilangError))
    assert len(found) <= MOST, sorted(each.__name__ for each in found)
