"""No modules import one another in a circle, be it inside of a function or for type checkers alone.

The contracts in pyproject.toml let imports for types be. These draw circles nevertheless: neither module can be read,
moved or tested without the other.
"""

from __future__ import annotations

import grimp
from grimp import ImportGraph

# A component, the middleware around it, and the process that runs it are one interface: Component.run() starts the
# process, Component.middleware has things that take components, and its collector holds the timers that call it.
ONE_INTERFACE = [
    ("multilang.component.base", "multilang.component.middleware"),
    ("multilang.component.base", "multilang.child.process"),
    ("multilang.component.timers", "multilang.component.base"),
    ("multilang.component.timers", "multilang.component.collector"),
]


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


def test_no_modules_import_one_another() -> None:
    graph = grimp.build_graph("multilang", "spark_bridge", exclude_type_checking_imports=False, cache_dir=None)
    for importer, imported in ONE_INTERFACE:
        assert graph.direct_import_exists(importer=importer, imported=imported), (
            f"{importer} needs no exception any more"
        )
        graph.remove_import(importer=importer, imported=imported)
    assert circles(graph) == []


def test_circles_are_found() -> None:
    graph = ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"], ["d", "e"]]
