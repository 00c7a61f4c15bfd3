"""The files that a topology's module needs, found by following the imports in its source into the user's own files.

Nothing is executed. Code that can't run on a worker is ignored: ``if TYPE_CHECKING``, ``if __name__ == "__main__"``, branches for
another Python or platform, and ``except ImportError`` behind an import that succeeds there. Where something else decides whether a
branch runs, its own modules are shipped, and a package that is not here is reported and stops nothing.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import dataclass, field
from enum import IntEnum
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import multilang
from multilang.shipping.conditions import HERE, Conditions, WorkersPython
from multilang.shipping.errors import ShippingError
from multilang.topology.importing import OTHER_LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec

    from multilang.shipping.named import Named

OURS = {"multilang", "spark_bridge"}
PROVIDED = {*OURS, "ujson"}  # packages that every jar has
_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError"}
_ALL_ERRORS = {"Exception", "BaseException"}
_TEST = "test"  # how runners of tests find them: their functions never run on a worker
_STAR = "*"


class Need(IntEnum):
    """An import's need on a worker, from one that may fail to one that must not."""

    TRIED = 0  # a failure is expected
    PERHAPS = 1  # it depends on what is not known here
    SURE = 2


@dataclass(frozen=True)
class Import:
    """An import statement: ``module``, and the names taken ``from`` it.

    ``deferred``: it is in a function.
    """

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    need: Need
    deferred: bool


@dataclass
class Found:
    """The imported files and packages.

    ``files``: name in the jar -> (file, reason). ``foreign``: installed package -> reason. ``missing``: a package that is not
    here, and may not be imported -> reason. ``multilang``: the imported modules and names of this project.
    """

    files: dict[str, tuple[Path, str]] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    multilang: set[str] = field(default_factory=set)


def follow(
    start: str,
    file: Path,
    leave_out: Sequence[str] = (),
    named: Sequence[Named] = (),
    python: WorkersPython = HERE,
    brought: Callable[[str], bool] = lambda _: False,
) -> Found:
    """Return everything that the module ``start`` in ``file`` imports, directly or not, and the code that a conf names.

    ``leave_out``: top-level names to skip. ``python``: the workers' Python, which decides what branches by version or platform
    import. ``brought``: whether a requirement brings a top-level module. Raises ShippingError for a module that is not found,
    hides one of Python's, or has no source code.
    """
    root = file.parents[start.count(".") + (file.name == "__init__.py" and "." in start)]
    follower = _Follower(set(leave_out), root, python, brought)
    follower.start(start, file)
    for each in named:
        follower.name(each)
    while follower.queue:
        follower.read(*follower.queue.pop())
    return follower.found


def imports_of(source: bytes, name: str) -> list[Import]:
    """Return the import statements that can run on a worker when ``source`` is imported and used.

    Raises:
        ShippingError: It is not valid Python.
    """
    tree = _parsed(source, name)
    return list(_Statements(Conditions(tree, HERE.facts), lambda _: None).of(tree))


def _parsed(source: bytes, name: str) -> ast.Module:
    try:
        return ast.parse(source, name)
    except SyntaxError as error:
        raise ShippingError(f"{name}, line {error.lineno} is not valid Python: {error.msg}") from None
    except ValueError as error:  # a null byte
        raise ShippingError(f"{name} is not valid Python: {error}") from None


def _names_of_ours(tree: ast.Module, conditions: Conditions) -> set[str]:
    """Return the dotted names of this package that a module uses, such as ``tx.Map`` after ``import ... as tx``."""
    nodes = list(_nodes(tree, conditions))
    bound: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                bound.update({alias.asname: alias.name} if alias.asname else {top: top})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            bound.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    ours = {name: path for name, path in bound.items() if path.partition(".")[0] in OURS}
    found = set()
    for node in nodes:
        taken: list[str] = []
        while isinstance(node, ast.Attribute):
            taken.insert(0, node.attr)
            node = node.value  # down to the first name of the chain
        if taken and isinstance(node, ast.Name) and node.id in ours:
            found.add(".".join([ours[node.id], *taken]))
    return found


def is_installed(path: str) -> bool:
    """Return whether pip or the system installed it, so that a requirement provides it and its files are not copied."""
    return bool({"site-packages", "dist-packages"}.intersection(Path(path).parts))


class _Follower:
    def __init__(self, leave_out: set[str], root: Path, python: WorkersPython, brought: Callable[[str], bool]) -> None:
        self.found = Found()
        self.queue: list[tuple[str, Path, bool, Need]] = []
        self._leave_out = leave_out
        self._root = root
        self._python = python
        self._brought = brought
        self._seen: dict[str, Need] = {}

    def start(self, name: str, file: Path) -> None:
        if "." in name:  # the packages around it are needed, too
            self._find(name, f"the topology's module {name}", Need.SURE)
        else:
            package = file.name == "__init__.py"
            if package or not _is_hidden(file):
                self._seen[name] = Need.SURE
            self._take(name, file, package, "the topology's module", Need.SURE)

    def name(self, named: Named) -> None:
        """Add something that a conf names."""
        if not all(part.isidentifier() for part in (*named.module.split("."), named.attribute)):
            raise ShippingError(f"{named.dotted!r}, {named.why}, is not a name of code; write 'package.module.Name'")
        if named.reader is not None:
            self.found.multilang.add(named.reader)  # the module that reads it is needed on a worker, too
        if named.module.partition(".")[0] in OURS:
            self.found.multilang.update([named.module, named.dotted])
        elif self._find(named.module, named.why, Need.SURE) and named.module not in self._seen:
            raise ShippingError(
                f"there is no module {named.module!r}, {named.why}, although there is a {named.module.rpartition('.')[0]!r}; "
                "write 'package.module.Name'"
            )

    def read(self, module: str, file: Path, package: bool, need: Need) -> None:
        """Read one module's own imports."""
        try:
            tree = _parsed(file.read_bytes(), str(file))
        except ShippingError:
            if need == Need.SURE:
                raise
            return  # for another Python
        conditions = Conditions(tree, self._python.facts)
        self.found.multilang.update(_names_of_ours(tree, conditions))
        for each in _Statements(conditions, self._is_available).of(tree):
            base = each.module
            if each.level:
                parts = module.split(".") if package else module.split(".")[:-1]
                parts = parts[: len(parts) - each.level + 1]
                base = ".".join([*parts, each.module] if each.module else parts)
            if not base:
                continue
            why = f"imported by {file.name}, line {each.line}"
            if base.partition(".")[0] in OURS:
                self.found.multilang.update([base, *(f"{base}.{name}" for name in each.names)])
                continue
            needed = min(each.need, need)
            if needed == Need.PERHAPS and not each.deferred and base not in sys.modules:
                needed = (
                    Need.TRIED if self._exists(base) else needed
                )  # the branch was not taken when the topology was loaded
            if self._find(base, why, needed):
                names, needed = self._all_of(base, needed) if _STAR in each.names else (each.names, needed)
                for name in names:  # a name taken from a package may be a module in it
                    self._find(f"{base}.{name}", why, needed)

    def _exists(self, module: str) -> bool:
        return _top_level(module.partition(".")[0]) is not None

    def _all_of(self, package: str, need: Need) -> tuple[Sequence[str], Need]:
        """Return the names that ``import *`` takes from a package, of which it imports those that are modules."""
        spec = _spec_of(package)
        if spec is None or spec.submodule_search_locations is None or spec.origin is None:
            return (), need
        try:
            names = _literal_all(ast.parse(Path(spec.origin).read_bytes()))
        except (OSError, SyntaxError, ValueError):
            return (), need
        if names is not None:
            return names, need
        return [each.name for each in iter_modules(spec.submodule_search_locations)], min(need, Need.PERHAPS)

    def _is_available(self, each: Import) -> bool | None:
        """Return whether an import succeeds on a worker; None if that is not known."""
        top = each.module.partition(".")[0]
        if each.level or top in self._leave_out:
            return None
        if top in PROVIDED or self._brought(top):
            return True
        if top not in self._python.modules:
            return None if _top_level(top) is not None and top not in sys.stdlib_module_names else False
        if self._python.version != sys.version_info[:2] or self._python.platform != sys.platform:
            return None if each.names else True
        module = sys.modules.get(each.module)
        if module is None and each.names:
            return None
        found = [_spec_of(each.module)] + [
            hasattr(module, name) or _spec_of(f"{each.module}.{name}") for name in each.names if name != _STAR
        ]
        return all(found)

    def _find(self, name: str, why: str, need: Need) -> bool:
        """Return whether ``name`` is one of the user's own modules; queue it and the packages that it is in."""
        top, *rest = name.split(".")
        if top in PROVIDED or top in self._leave_out or top in self.found.foreign:
            return False
        if top in self._python.modules:
            if (self._root / f"{top}.py").is_file():
                raise ShippingError(f"{self._root / top}.py, {why}, would hide Python's own module {top!r}; rename it")
            return False
        spec = _top_level(top)
        if is_layer(top, spec):
            self.found.multilang.add(f"multilang.compat.{top}")
            return False
        if spec is None or top in sys.stdlib_module_names:
            if need and not self._brought(top):
                self._miss(top, why, need)
            return False
        where = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if where in ("built-in", "frozen"):
            return False
        if is_installed(where):
            if need:
                self.found.foreign.setdefault(top, why)
            return False
        self._visit(top, spec, why, need)
        dotted = top
        for part in rest:
            if spec.submodule_search_locations is None:
                return True  # an attribute of a module
            dotted = f"{dotted}.{part}"
            inner = PathFinder.find_spec(dotted, list(spec.submodule_search_locations))
            if inner is None:
                return True
            spec = inner
            self._visit(dotted, spec, why, need)
        return True

    def _miss(self, top: str, why: str, need: Need) -> None:
        """Note a module that is not here; raise ShippingError if a worker imports it."""
        if need < Need.SURE:
            self.found.missing.setdefault(top, why)
        elif top in sys.stdlib_module_names:
            raise ShippingError(
                f"the workers' Python, {'.'.join(map(str, self._python.version))}, has no module {top!r}, {why}; import it under a test of "
                f"sys.version_info, or name what brings it in a file for --requirements"
            )
        else:
            raise ShippingError(
                f"there is no module {top!r}, {why}; install it or add its folder to PYTHONPATH, or, if the workers "
                f"never import it, give --leave-out {top}"
            )

    def _visit(self, name: str, spec: ModuleSpec, why: str, need: Need) -> None:
        seen = self._seen.get(name)
        if seen is not None and need <= seen:
            return
        self._seen[name] = need
        if spec.origin is not None:  # a namespace package has no file
            self._take(name, Path(spec.origin), spec.submodule_search_locations is not None, why, need)

    def _take(self, name: str, file: Path, package: bool, why: str, need: Need) -> None:
        if not file.is_file():
            raise ShippingError(f"the module {name!r}, {why}, is at {file}, which is no file; unpack it first")
        if name in sys.stdlib_module_names:
            raise ShippingError(f"{file} would hide Python's own module {name!r} from everything else; rename it")
        place = name.replace(".", "/")
        if "." not in name and not package and not name.isidentifier():
            place = name
        if file.suffix == ".py":
            self.found.files.setdefault(f"{place}/__init__.py" if package else f"{place}.py", (file, why))
            self.queue.append((name, file, package, need))
        elif any(file.name.endswith(suffix) for suffix in EXTENSION_SUFFIXES):
            self.found.files.setdefault(f"{place.rpartition('/')[0]}/{file.name}".lstrip("/"), (file, why))
        else:
            raise ShippingError(f"the module {name!r}, {why}, is {file.name}, without its source; ship the .py file")


def is_layer(top: str, spec: ModuleSpec | None) -> bool:
    """Return whether a top-level module is one that ``multilang.compat`` stands in for."""
    if top not in OTHER_LIBRARIES:
        return False
    return spec is None or spec.origin is None or spec.name != top or is_stand_in(spec.origin)  # imported: its own name


def is_stand_in(file: str) -> bool:
    """Return whether a file is a module that stands in for another library's, or a copy of one."""
    try:
        return file.endswith(".py") and b"import stand_in" in Path(file).read_bytes()
    except OSError:
        return False


def _is_hidden(file: Path) -> bool:
    """Return whether a package has the name of a topology's file, and is what an import of that name finds."""
    spec = _top_level(file.stem)
    return spec is not None and spec.submodule_search_locations is not None and spec.origin not in (None, str(file))


def _top_level(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _spec_of(name: str) -> ModuleSpec | None:
    """Return a module's spec, also where another module has its place in this process."""
    spec: ModuleSpec | None = None
    path: list[str] | None = None
    for end, part in enumerate(name.split(".")):
        dotted = ".".join(name.split(".")[: end + 1])
        spec = _top_level(part) if path is None else PathFinder.find_spec(dotted, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return spec


def _literal_all(tree: ast.Module) -> list[str] | None:
    """Return the names in ``__all__`` of a package; None if they are computed."""
    names: list[str] = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Name) and node.id == "__all__"):
            continue
        statement = next((each for each in tree.body if node in ast.walk(each)), None)
        given: ast.expr | None = None
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            given = statement.value
        elif (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and len(statement.value.args) == 1
        ):
            given = statement.value.args[0]  # of append and extend
        try:
            found = ast.literal_eval(given) if given is not None else None
        except ValueError:
            found = None
        if isinstance(found, str):
            found = [found]
        if not isinstance(found, list | tuple | set) or not all(isinstance(each, str) for each in found):
            return None
        names += found
    return names


def _nodes(node: ast.AST, conditions: Conditions) -> Iterator[ast.AST]:
    """Return all nodes but those that can't run on a worker."""
    if isinstance(node, ast.If):
        holds = conditions.holds(node.test)
        for inner in (node.body if holds else node.orelse) if holds is not None else (*node.body, *node.orelse):
            yield from _nodes(inner, conditions)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, conditions)


class _Statements:
    """The import statements of a module that can run on a worker.

    Args:
        conditions: Its tests.
        available: Returns whether an import succeeds on a worker; None if that is not known.
    """

    def __init__(self, conditions: Conditions, available: Callable[[Import], bool | None]) -> None:
        self._conditions = conditions
        self._available = available

    def of(self, node: ast.AST, need: Need = Need.SURE, deferred: bool = False) -> Iterator[Import]:
        """Yield those in a node."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), 0, node.lineno, need, deferred)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            if node.module == "multilang" and _STAR in names:
                names = tuple(multilang.__all__)  # a star import takes all of these
            yield Import(node.module or "", names, node.level, node.lineno, need, deferred)
        elif isinstance(node, ast.If):
            holds = self._conditions.holds(node.test)
            unsure = need if holds is not None else min(need, Need.PERHAPS)
            yield from self._block(node.body if holds is not False else (), unsure, deferred)
            yield from self._block(node.orelse if not holds else (), unsure, deferred)
        elif isinstance(node, ast.Try):
            yield from self._tried(node, need, deferred)
        elif isinstance(node, ast.With) and any(_suppresses(item.context_expr) for item in node.items):
            yield from self._block(node.body, Need.TRIED, deferred)
        else:
            name = _called_import(node)
            if name is not None:
                own = name.lstrip(".")
                yield Import(own, (), len(name) - len(own), node.lineno, need, deferred)  # type: ignore[attr-defined]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                deferred = True
            if isinstance(node, ast.FunctionDef) and node.name.startswith(_TEST):
                need = Need.TRIED
            for _, value in ast.iter_fields(node):
                block = value if isinstance(value, list) else [value]
                yield from self._block([each for each in block if isinstance(each, ast.AST)], need, deferred)

    def _block(self, nodes: Sequence[ast.AST], need: Need, deferred: bool) -> Iterator[Import]:
        for node in nodes:
            yield from self.of(node, need, deferred)
            leaves = self._leaves(node)
            if leaves:
                return
            if leaves is None:
                need = min(need, Need.PERHAPS)

    def _leaves(self, node: ast.AST) -> bool | None:
        """Return whether what follows a statement in its block never runs; None if that is not known."""
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return True
        if not isinstance(node, ast.If):
            return False
        holds = self._conditions.holds(node.test)
        body, orelse = (any(self._leaves(each) for each in block) for block in (node.body, node.orelse))
        if holds is None:
            return True if body and orelse else None if body or orelse else False
        return body if holds else orelse

    def _tried(self, node: ast.Try, need: Need, deferred: bool) -> Iterator[Import]:
        expecting = [_expects_import_error(handler) for handler in node.handlers]
        tried = list(self._block(node.body, Need.TRIED if any(expecting) else need, deferred))
        yield from tried
        found = {self._available(each) for each in tried}
        calls = [part for each in node.body for part in ast.walk(each) if isinstance(part, ast.Call)]
        imports_more = any(_called_import(each) is None for each in calls)  # what it calls may import, too
        is_only_imports = all(isinstance(each, ast.Import | ast.ImportFrom) for each in node.body)
        for handler, expects in zip(node.handlers, expecting, strict=True):
            rest = need
            if tried and expects and (is_only_imports or not _expects_more(handler)) and False not in found:
                if None not in found and not imports_more:
                    continue  # it never runs
                rest = min(need, Need.PERHAPS)
            yield from self._block(handler.body, rest, deferred)
        if not (any(expecting) and False in found):
            yield from self._block(node.orelse, min(need, Need.PERHAPS) if None in found else need, deferred)
        yield from self._block(node.finalbody, need, deferred)


def _called_import(node: ast.AST) -> str | None:
    """Return the module that a call of ``import_module`` or ``__import__`` names; None if it is no such call, or computes the name."""
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
        return None
    if ast.unparse(node.func) not in ("import_module", "importlib.import_module", "__import__"):
        return None
    name = node.args[0].value
    packages = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    is_own = all(ast.unparse(each) in ("__package__", "__name__") for each in packages)
    return name if isinstance(name, str) and (is_own or not name.startswith(".")) else None


def _names_in(node: ast.expr | None) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if node is not None else _ALL_ERRORS


def _expects_import_error(handler: ast.ExceptHandler) -> bool:
    return bool(_names_in(handler.type) & (_IMPORT_ERRORS | _ALL_ERRORS))


def _expects_more(handler: ast.ExceptHandler) -> bool:
    return not _names_in(handler.type) <= _IMPORT_ERRORS


def _suppresses(call: ast.expr) -> bool:
    """Return whether it is ``contextlib.suppress`` of an import's failure."""
    if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] != "suppress":
        return False
    return any(_names_in(each) & (_IMPORT_ERRORS | _ALL_ERRORS) for each in call.args)
