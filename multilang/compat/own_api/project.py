"""A project written over: which classes can be, the files that name them, and the new texts."""

from __future__ import annotations

import ast
import os
import stat
from dataclasses import dataclass

from multilang.compat.own_api.calls import odd_values
from multilang.compat.own_api.classes import Project
from multilang.compat.own_api.declarations import Declarations, write_petrels
from multilang.compat.own_api.imports import write_imports
from multilang.compat.own_api.libraries import function_of, is_library, kind_of
from multilang.compat.own_api.methods import Methods
from multilang.compat.own_api.source import Edits, Source
from multilang.compat.own_api.topologies import judged
from multilang.private import replace_file, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from multilang.compat.own_api.classes import Found
    from multilang.compat.own_api.topologies import Declared

_MILD = "multilang.compat.mild"
_LOG = "pystorm.log."
BUILDER = "TopologyBuilder"
"""The class that a topology becomes a program of."""

_SETTERS = {"adapted", "set_bolt", "set_spout", "setBolt", "setSpout", "spec"}


@dataclass(frozen=True)
class Kept:
    """A class that stays on the layer.

    Attributes:
        path: Its file.
        line: The line of the reason.
        name: The class.
        reason: Why.
    """

    path: str
    line: int
    name: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """The changes by which a project is written over.

    Attributes:
        written: The classes that are written over, each with its file, its line and the class that it becomes a subclass of;
            topologies with BUILDER.
        kept: Those that stay, with all reasons.
        texts: The new text of each file that changes, with its encoding.
        steps: The texts in the order in which they are written, each with its file: a run that is interrupted between two of
            them leaves a project that runs. A file may come twice.
    """

    written: list[tuple[str, int, str, str]]
    kept: list[Kept]
    texts: dict[str, tuple[str, str]]
    steps: list[tuple[str, str]]

    def write(self) -> list[str]:
        """Write the files, each at once, with the old ones beside them as ``*.bak``, and return them.

        Raises:
            OSError: One can't be written.
        """
        for path, text in self.steps:
            _, encoding = self.texts[path]
            backup = f"{path}.bak"
            if not os.path.lexists(backup):
                with open(path, "rb") as file:
                    _replace(backup, file.read(), path)
            _replace(path, text.encode(encoding), path)
        return list(self.texts)


def _replace(path: str, data: bytes, like: str) -> None:
    """Write a file at once, with the permissions of another one."""
    replace_file(path, lambda handle: write_all(handle, data), stat.S_IMODE(os.stat(like).st_mode))


def plan(paths: Iterable[str], others: Iterable[str] = ()) -> Plan:
    """Return what writing a project over means. Nothing is written, and nothing of the project is run.

    Args:
        paths: Its Python files.
        others: Its further files with settings.
    """
    sources = [source for source in map(Source.read, paths) if source is not None]
    project = Project(sources)
    settings = [*(source.text for source in sources), *_texts(others)]
    is_mild = any(_MILD in text for text in settings)
    has_log = any(_LOG in text for text in settings)
    declared = {}
    for found in project.classes.values():
        declared[found] = _judge(found, project, is_mild, has_log)
    _judge_uses(project)
    _keep_together(project)
    accepted = [found for found in project.classes.values() if not found.reasons]
    topologies = judged(project, accepted)
    built = [each for each in topologies if not each.reasons]
    texts = _texts_of(project, accepted, built)
    written = [(each.source.path, each.node.lineno, each.name, _base(each, declared)) for each in accepted]
    written += [(each.source.path, each.node.lineno, each.node.name, BUILDER) for each in built]
    kept = [
        Kept(each.source.path, line, each.name, reason)
        for each in project.classes.values()
        for line, reason in sorted(each.reasons)
    ]
    kept += [
        Kept(each.source.path, line, each.node.name, reason)
        for each in topologies
        for line, reason in sorted(each.reasons)
    ]
    return Plan(
        sorted(written),
        sorted(kept, key=lambda each: (each.path, each.line)),
        texts,
        _steps(project, accepted, texts),
    )


def _texts(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield file.read()


def _judge(found: Found, project: Project, is_mild: bool, has_log: bool) -> Declarations:
    """Judge a class by itself, and note its changes."""
    kind, source = found.kind, found.source
    declared = Declarations(found, is_mild)
    if kind.kept:
        found.keep(found.node, f"its base {kind.name} {kind.kept}")
        return declared
    if kind.library == "storm" and os.path.exists(os.path.join(os.path.dirname(source.path), "storm.py")):
        found.keep(
            found.node,
            "there is a copy of storm.py beside it, which it imports; remove the copy, and the layer takes its place",
        )
    declared.write()
    if kind.library == "petrel":
        write_petrels(found)
    if found.base is None:
        expression = next(each for each in found.node.bases if source.dotted(each) is not None and each in found.used)
        found.edits.replace(expression, f"\0{declared.base}")
        found.needs.add(declared.base)
    Methods(found, declared, project).write()
    odd = odd_values(found.node)
    if odd is not None or "decimal" in source.names:
        found.keep(
            odd or found.node,
            "it may emit bytes, Decimals or dicts with keys that are not texts, which multilang refuses",
        )
    if has_log and kind.is_pystorms:
        found.keep(
            found.node, f"the project has settings that begin with {_LOG}, which only the layer's components read"
        )
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found.keep(
                node, f"from {node.module} import * brings names that the text does not show; import them by name"
            )
    if not kind.is_pystorms:
        outside = next(_functions_outside(source), None)
        if outside is not None:
            found.keep(outside, "its file calls functions of storm outside of components, where multilang has none")
    return declared


def _functions_outside(source: Source) -> Iterator[ast.AST]:
    """Return the uses of storm.py's functions in a file that are in no class."""
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef):
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute) and function_of(source.dotted(each)) is not None:
                yield each


def _judge_uses(project: Project) -> None:
    """Keep classes that are used in ways that are not known here, and those that use functions of kept ones."""
    for source in project.sources:
        parents = {child: node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Name | ast.Attribute) or isinstance(node.ctx, ast.Store):
                continue
            found = project.resolve(node, source)
            if found is None:
                _judge_test_of_class(node, parents, project, source)
                continue
            if not _is_known_use(node, parents, found):
                where = "" if source is found.source else f" in {os.path.basename(source.path)}, line {node.lineno},"
                line = node if source is found.source else found.node
                found.keep(
                    line,
                    f"{found.name} is used{where} as something else than a component of a topology or a base class",
                )
        _judge_imports(project, source)


def _judge_test_of_class(
    node: ast.Name | ast.Attribute, parents: dict[ast.AST, ast.AST], project: Project, source: Source
) -> None:
    """Keep a library's components if a program asks whether something is one of them."""
    parent = parents.get(node)
    kind = kind_of(source.dotted(node))
    if kind is None or not isinstance(parent, ast.Call | ast.Tuple):
        return
    for found in project.classes.values():
        if found.kind.library == kind.library:
            where = f"{os.path.basename(source.path)}, line {node.lineno}"
            found.keep(
                found.node,
                f"{where}, may ask whether something is a {kind.name} of {kind.library}, which it would no longer be",
            )


def _is_known_use(node: ast.AST, parents: dict[ast.AST, ast.AST], found: Found) -> bool:
    parent = parents.get(node)
    above = parents.get(parent) if parent is not None else None
    if isinstance(parent, ast.ClassDef):
        return True
    if isinstance(parent, ast.Attribute):
        if parent.attr != "spec" or found.kind.library != "streamparse" or not isinstance(above, ast.Call):
            return False
        return above.func is parent and _is_plain_spec(above, found)
    if isinstance(parent, ast.Call) and parent.func is node:
        if parent.args or parent.keywords:
            return False
        if isinstance(above, ast.Attribute) and above.attr == "run":
            return True
        return isinstance(above, ast.Call) and _name_of(above.func) in _SETTERS
    if isinstance(parent, ast.Call):
        name = _name_of(parent.func)
        return name in _SETTERS or (name == "super" and parent.args[0] is node)
    return False


def _is_plain_spec(call: ast.Call, found: Found) -> bool:
    names = {"name", "par", "config"} | (set() if found.kind.is_spout else {"inputs"})
    most = 1 if found.kind.is_spout else 4
    return (
        {each.arg for each in call.keywords} <= names
        and len(call.args) <= most
        and not any(isinstance(each, ast.Starred) for each in call.args)
    )


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _judge_imports(project: Project, source: Source) -> None:
    """Keep classes of storm.py's that import a module of the project with functions that act for them."""
    for found in project.classes.values():
        if found.source is not source or found.kind.is_pystorms:
            continue
        for dotted in {each for each in source.names.values() if each}:
            other = project.module(dotted, source) or project.module(dotted.rpartition(".")[0] or "?", source)
            if other is not None and other is not source and next(_functions_outside(other), None) is not None:
                found.keep(
                    found.node, f"it imports {os.path.basename(other.path)}, whose functions call those of storm"
                )


def _keep_together(project: Project) -> None:
    """Keep the bases and the subclasses of what is kept: they are of one library."""
    changed = True
    while changed:
        changed = False
        for found in project.classes.values():
            base = found.base
            if base is None or bool(base.reasons) is bool(found.reasons):
                continue
            changed = True
            if found.reasons:
                base.keep(base.node, f"its subclass {found.name} stays on the layer")
            else:
                found.keep(found.node, f"its base {base.name} stays on the layer")


def _base(found: Found, declared: dict[Found, Declarations]) -> str:
    return declared[found].base if found.base is None else found.base.name


def _steps(project: Project, accepted: list[Found], texts: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the new texts in an order after each of which the project runs.

    A topology of the DSL takes components of either library once its specs are made by the function ``spec``, and a builder
    only this library's own. So topologies get that function first, then the components are written over, then the builders come.
    """
    before = _texts_of(project, accepted, [])
    classes = set(accepted)
    homes = {each.source.path for each in accepted}
    naming = [
        source.path
        for source in project.sources
        if source.path in before and any(_is_spec_of(node, source, project, classes) for node in ast.walk(source.tree))
    ]
    naming.sort(key=lambda path: path in homes)
    first = [] if set(texts) == set(naming[:1]) else [path for path in naming if before[path] != texts[path]]
    steps = [(path, before[path][0]) for path in first]
    steps += [(path, texts[path][0]) for path in naming if path not in first]
    steps += [(path, text) for path, (text, _) in texts.items() if path not in naming and path in homes]
    steps += [(path, texts[path][0]) for path in first]
    done = {path for path, _ in steps}
    return steps + [(path, text) for path, (text, _) in texts.items() if path not in done]


def _texts_of(project: Project, accepted: list[Found], built: Collection[Declared]) -> dict[str, tuple[str, str]]:
    """Return the new text of each file that changes.

    Args:
        project: The project.
        accepted: The component classes that are written over.
        built: The topologies that become programs of the builder; others name components by the function ``spec``.
    """
    texts: dict[str, tuple[str, str]] = {}
    classes = set(accepted)
    for source in project.sources:
        edits = Edits(source)
        here = [each for each in accepted if each.source is source]
        builders = [each for each in built if each.source is source]
        writers: list[Found | Declared] = [*here, *builders]
        for writer in writers:
            edits.made.update(writer.edits.made)
        gone = {call for each in builders for call in each.calls}
        specs = [
            node for node in ast.walk(source.tree) if node not in gone and _is_spec_of(node, source, project, classes)
        ]
        for call in specs:
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Attribute)
            edits.cut(source.start(call.func), source.end(call.func), "\0spec")
            opening = source.text.index("(", source.end(call.func)) + 1
            has_arguments = bool(call.args or call.keywords)
            edits.insert(opening, source.segment(call.func.value) + (", " if has_arguments else ""))
        if not here and not specs and not builders:
            continue
        needs = {name for each in writers for name in each.needs} | ({"spec"} if specs else set())
        used = {node for each in writers for node in each.used}
        write_imports(source, edits, needs, used, _imported_by_others(project, source))
        text = edits.applied()
        ast.parse(text, source.path)
        texts[source.path] = (text, source.encoding)
    return texts


def _is_spec_of(node: ast.AST, source: Source, project: Project, classes: set[Found]) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "spec"):
        return False
    return project.resolve(node.func.value, source) in classes


def _imported_by_others(project: Project, source: Source) -> set[str]:
    """Return the names that other modules import from this one, of libraries that it imports itself."""
    found = set()
    for other in project.sources:
        for dotted in other.names.values():
            module, _, name = (dotted or "").rpartition(".")
            if module and other is not source and project.module(module, other) is source:
                found.add(name)
    return {name for name in found if is_library(source.names.get(name))}
