"""No modules import one another in a circle, be it inside of a function, for type checkers alone, or by a name in a string.

The contracts in pyproject.toml let imports for types be, and see no strings. These draw circles nevertheless: neither module can
be read, moved or tested without the other.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import grimp
import pytest
from grimp import ImportGraph

_BY_NAME = ("import_module", "__import__", "lazily")


def circles(graph: ImportGraph) -> list[list[str]]:
    """Return the modules that can be reached from themselves, each group of them once."""
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    reached = {module: _reached(module, imported) for module in imported}
    found = {frozenset(other for other in reached[each] if each in reached[other]) for each in imported}
    return sorted(sorted(each) for each in found if each)


def _reached(start: str, imported: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    left = [start]
    while left:
        new = imported[left.pop()] - reached
        reached |= new
        left += new
    return reached


def imported_by_name(module: str, source: str, modules: set[str]) -> set[str]:
    """Return the modules that a module imports by their names in strings, or that its package imports at first use."""
    calls = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)) in _BY_NAME
    ]
    names = {each.value for call in calls for each in ast.walk(call) if isinstance(each, ast.Constant)}
    found = {f"{module}{name}" if name.startswith(".") else name for name in names if isinstance(name, str)}
    return (found & modules) - {module}


def test_no_modules_import_one_another() -> None:
    graph = grimp.build_graph("multilang", "spark_bridge", exclude_type_checking_imports=False, cache_dir=None)
    for module in graph.modules:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        for imported in imported_by_name(module, Path(spec.origin).read_text(encoding="utf-8"), graph.modules):
            graph.add_import(importer=module, imported=imported)
    assert circles(graph) == []


def test_circles_are_found() -> None:
    graph = ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]


@pytest.mark.parametrize(
    "source",
    [
        "import_module('a.b')",
        "def late():\n    from importlib import import_module\n    return import_module('a.b').name",
        "importlib.import_module('a.b')",
        "__import__('a.b')",
        "__getattr__, __dir__ = lazily(__name__, {'a.b': ('name',)})",
        "__getattr__, __dir__ = lazily(__name__, {'.b': ('name',)})",
    ],
)
def test_names_in_strings_are_imports(source: str) -> None:
    assert imported_by_name("a", source, {"a", "a.b", "a.c"}) == {"a.b"}
