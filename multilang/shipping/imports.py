"""The files that a topology's module needs, found by following the imports in its source into the user's own files.

Nothing is executed. Code that can't run on a worker is ignored: ``if TYPE_CHECKING`` and ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

import multilang
from multilang.shipping.errors import ShippingError
from multilang.topology.importing import OTHER_LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec

    from multilang.shipping.named import Named

OURS = {"multilang", "spark_bridge"}
PROVIDED = {*OURS, "ujson"}  # packages that every jar has
_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_TEST = "test"  # how runners of tests find them: their functions never run on a worker


@dataclass(frozen=True)
class Import:
    """An import statement: ``module``, and the names taken ``from`` it.

    ``optional``: it is in a try that expects a failure.
    """

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    optional: bool


@dataclass
class Found:
    """The imported files and packages.

    ``files``: name in the jar -> (file, reason). ``foreign``: installed package -> reason. ``multilang``: the imported
    modules and names of this project.
    """

    files: dict[str, tuple[Path, str]] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    multilang: set[str] = field(default_factory=set)


def follow(start: str, file: Path, leave_out: Sequence[str] = (), named: Sequence[Named] = ()) -> Found:
    """Return everything that the module ``start`` in ``file`` imports, directly or not, and the code that a conf names.

    ``leave_out``: top-level names to skip. Raises ShippingError for a module that is not found, hides one of Python's,
    or has no source code.
    """
    follower = _Follower(set(leave_out), file.parents[start.count(".") + (file.name == "__init__.py" and "." in start)])
    follower.start(start, file)
    for each in named:
        follower.name(each)
    while follower.queue:
        follower.read(*follower.queue.pop())
    return follower.found


def imports_of(source: str, name: str) -> list[Import]:
    """Return the import statements that can run when ``source`` is imported and used."""
    try:
        tree = ast.parse(source, name)
    except SyntaxError as error:
        raise ShippingError(f"{name}, line {error.lineno} is not valid Python: {error.msg}") from None
    return list(_statements(tree, False))


def names_of_ours(source: str) -> set[str]:
    """Return the dotted names of this package that ``source`` uses, such as ``tx.Map`` after ``import ... as tx``."""
    nodes = list(_nodes(ast.parse(source)))
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
    def __init__(self, leave_out: set[str], root: Path) -> None:
        self.found = Found()
        self.queue: list[tuple[str, Path, bool]] = []
        self._leave_out = leave_out
        self._root = root
        self._seen: set[str] = set()

    def start(self, name: str, file: Path) -> None:
        if "." in name:  # the packages around it are needed, too
            self._find(name, f"the topology's module {name}", optional=False)
        else:
            self._seen.add(name)
            self._take(name, file, file.name == "__init__.py", "the topology's module")

    def name(self, named: Named) -> None:
        """Add something that a conf names."""
        if not all(part.isidentifier() for part in (*named.module.split("."), named.attribute)):
            raise ShippingError(f"{named.dotted!r}, {named.why}, is not a name of code; write 'package.module.Name'")
        if named.reader is not None:
            self.found.multilang.add(named.reader)  # the module that reads it is needed on a worker, too
        if named.module.partition(".")[0] in OURS:
            self.found.multilang.update([named.module, named.dotted])
        elif self._find(named.module, named.why, optional=False) and named.module not in self._seen:
            raise ShippingError(
                f"there is no module {named.module!r}, {named.why}, although there is a {named.module.rpartition('.')[0]!r}; "
                "write 'package.module.Name'"
            )

    def read(self, module: str, file: Path, package: bool) -> None:
        """Read one module's own imports."""
        source = importlib.util.decode_source(file.read_bytes())
        self.found.multilang.update(names_of_ours(source))
        for each in imports_of(source, str(file)):
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
            if self._find(base, why, each.optional):
                for name in each.names:  # a name taken from a package may be a module in it
                    self._find(f"{base}.{name}", why, optional=True)

    def _find(self, name: str, why: str, optional: bool) -> bool:
        """Return whether ``name`` is one of the user's own modules; queue it and the packages that it is in."""
        top, *rest = name.split(".")
        if top in PROVIDED or top in self._leave_out or top in self.found.foreign:
            return False
        if top in sys.stdlib_module_names:
            if (self._root / f"{top}.py").is_file():
                raise ShippingError(f"{self._root / top}.py, {why}, would hide Python's own module {top!r}; rename it")
            return False
        spec = _top_level(top)
        if is_layer(top, spec):
            self.found.multilang.add(f"multilang.compat.{top}")
            return False
        if spec is None:
            if not optional:
                raise ShippingError(
                    f"there is no module {top!r}, {why}; install it or add its folder to PYTHONPATH, or, if the workers "
                    f"never import it, give --leave-out {top}"
                )
            return False
        where = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
        if where in ("built-in", "frozen"):
            return False
        if is_installed(where):
            if not optional:
                self.found.foreign.setdefault(top, why)
            return False
        self._visit(top, spec, why)
        dotted = top
        for part in rest:
            if spec.submodule_search_locations is None:
                return True  # an attribute of a module
            dotted = f"{dotted}.{part}"
            inner = PathFinder.find_spec(dotted, list(spec.submodule_search_locations))
            if inner is None:
                return True
            spec = inner
            self._visit(dotted, spec, why)
        return True

    def _visit(self, name: str, spec: ModuleSpec, why: str) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        if spec.origin is not None:  # a namespace package has no file
            self._take(name, Path(spec.origin), spec.submodule_search_locations is not None, why)

    def _take(self, name: str, file: Path, package: bool, why: str) -> None:
        if not file.is_file():
            raise ShippingError(f"the module {name!r}, {why}, is at {file}, which is no file; unpack it first")
        if name in sys.stdlib_module_names:
            raise ShippingError(f"{file} would hide Python's own module {name!r} from everything else; rename it")
        place = name.replace(".", "/")
        if "." not in name and not package and not name.isidentifier():
            place = name
        if file.suffix == ".py":
            self.found.files[f"{place}/__init__.py" if package else f"{place}.py"] = (file, why)
            self.queue.append((name, file, package))
        elif any(file.name.endswith(suffix) for suffix in EXTENSION_SUFFIXES):
            self.found.files[f"{place.rpartition('/')[0]}/{file.name}".lstrip("/")] = (file, why)
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


def _top_level(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return all nodes but those that can't run on a worker."""
    if isinstance(node, ast.If) and _never_on_a_worker(node.test):
        for inner in node.orelse:
            yield from _nodes(inner)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child)


def _statements(node: ast.AST, optional: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, (), 0, node.lineno, optional)
    elif isinstance(node, ast.ImportFrom):
        names = tuple(alias.name for alias in node.names if alias.name != "*")
        if node.module == "multilang" and not names:
            names = tuple(multilang.__all__)  # a star import takes all of these
        yield Import(node.module or "", names, node.level, node.lineno, optional)
    elif isinstance(node, ast.If) and _never_on_a_worker(node.test):
        for inner in node.orelse:
            yield from _statements(inner, optional)
    elif isinstance(node, ast.Try):
        tried = optional or any(_expects_import_error(handler) for handler in node.handlers)
        for inner in node.body:
            yield from _statements(inner, tried)
        for rest in (*node.handlers, *node.orelse, *node.finalbody):
            yield from _statements(rest, optional)
    else:
        if isinstance(node, ast.FunctionDef) and node.name.startswith(_TEST):
            optional = True
        for child in ast.iter_child_nodes(node):
            yield from _statements(child, optional)


def _never_on_a_worker(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return text in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'", "'__main__' == __name__")


def _expects_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(part, ast.Name) and part.id in _IMPORT_ERRORS for part in ast.walk(handler.type))
