"""Import the module of a topology, by its name or its file's path.

Each topology's folder may have its own ``helpers.py``, and all are imported under one name. So when a topology of another
folder is loaded in the same process, the modules of the last one are removed from ``sys.modules`` until a topology of its
folder is loaded again. A function that imports one of them only when it is called finds that of the topology that was
loaded last.
"""

from __future__ import annotations

import os
import sys

from multilang.component.errors import ConfigError
from multilang.helpers.near import nearest
from multilang.topology.importing import OTHER_LIBRARIES
from multilang.topology.search_path import add_current_folder, add_inherited_folders, last_folders, search_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from multilang.compat.project import Project


def load_module(place: str) -> ModuleType:
    """Import a module by its name, or a file by its path (with ``.py``).

    Other libraries whose names the module imports, and which are not installed, are found in ``multilang.compat``.

    Raises:
        ConfigError: There is none.
    """
    add_inherited_folders()
    if _other_names not in sys.meta_path:
        sys.meta_path.append(_other_names)
    return _from_file(place) if place.endswith(".py") else _from_module(place)


class _OtherNames:
    """A finder, asked last, of the libraries that ``multilang.compat`` replaces."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if name not in OTHER_LIBRARIES:
            return None
        from importlib.util import find_spec

        from multilang.compat.names import provide

        provide(name)
        return find_spec(name)


_other_names = _OtherNames()


def _from_module(name: str) -> ModuleType:
    add_current_folder()
    try:
        __import__(name.partition(".")[0])
        _check_hidden(name)
        __import__(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{name}.".startswith(f"{problem.name}."):
            raise  # a module that this one imports is missing
        if os.path.isfile(name):
            raise ConfigError(
                f"{name} is a file but not a Python module; write the path of a file that ends in .py"
            ) from None
        raise ConfigError(
            f"there is no module {problem.name!r} in this folder or on Python's path; for a file write its path, such as "
            f"{name.replace('.', '/')}.py"
        ) from None
    return sys.modules[name]


def _check_hidden(name: str) -> None:
    """Refuse the name of a module in a folder that is searched last if Python finds another one of that name before it.

    Raises:
        ConfigError: It does; the text names both.
    """
    top, *inner = name.split(".")
    for folder in last_folders():
        if _is_of(sys.modules[top], folder):
            return
        own = os.path.join(folder, top, *inner)
        file = next((each for each in (f"{own}.py", os.path.join(own, "__init__.py")) if os.path.isfile(each)), None)
        if file is not None:
            other = getattr(sys.modules[top], "__file__", None) or "a part of Python"
            raise ConfigError(
                f"{name!r} is not {file}, since there is another {top!r}, which comes before it: {other}; name the file "
                f"by its path, give it another name, or have its folder searched first: PYTHONPATH={folder}"
            )


def _from_file(path: str) -> ModuleType:
    """Import a file as Python runs a script, with its folder first on the path.

    It is imported once, under its own name if that is free.
    """
    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path!r}; {_near(path)}")
    path = os.path.abspath(path)
    folder, name = os.path.split(path[:-3])
    project = project_around(path)
    home = folder if project is None else project.source
    if home in _folders:
        _prefer(home, name, first=project is None)  # which restores its modules
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path and module.__name__ != "__main__":
            return module
    _prefer(home, name, first=project is None)
    if project is not None:  # as streamparse does: its components, then its topologies
        sys.path += [each for each in (folder, project.root) if each not in sys.path]
    is_package = any(os.path.isfile(os.path.join(each, name, "__init__.py")) for each in (home, folder))
    if is_package or name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier():
        name = "".join(letter if letter.isalnum() else "_" for letter in path)

    from importlib.machinery import ModuleSpec, SourceFileLoader

    loader = SourceFileLoader(name, path)
    module = type(sys)(name)
    module.__file__ = path
    module.__loader__ = loader
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    sys.modules[name] = module
    try:
        try:
            loader.exec_module(module)
        except ImportError as problem:
            _check_imports(path)
            _explain(problem, path)
            raise
        _check_imports(path)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _near(path: str) -> str:
    """Return the end of an error's text for a missing file: one with a similar name, or what to write."""
    folder, name = os.path.split(path)
    try:
        there = [each for each in os.listdir(folder) if each.endswith(".py")]
    except OSError:
        if not os.path.isdir(folder):
            return f"there is no folder {folder!r}, either"
        there = []
    near = nearest(name, there, cutoff=0.75)
    return f"did you mean {near!r}?" if near else "write the path of a Python file, or package.module for a module"


def project_around(path: str) -> Project | None:
    """Return the project of streamparse's that a topology's file is in; None if it is in none."""
    folder = os.path.dirname(path)
    for _ in range(2):
        folder = os.path.dirname(folder)
        if os.path.isdir(os.path.join(folder, "src")):
            from multilang.compat.project import project_of

            return project_of(path)
    return None


_LIBRARY = ("multilang", "spark_bridge")
_INSTALLED = {"site-packages", "dist-packages"}

_folders: list[str] = []  # from which topologies import modules, the last one first
_aside: dict[str, dict[str, ModuleType]] = {}  # folder -> its modules, while another folder's have their names


def _prefer(folder: str, own: str, *, first: bool) -> None:
    """Put a folder on Python's path before those of other topologies, and import anew what it has under their names.

    Args:
        folder: The folder.
        own: The name of the file in it that is being imported, which an older module of this name takes precedence over.
        first: Whether it is the first on the path, and not just the first of the topologies'.
    """
    if _folders[:1] == [folder]:
        return
    others = [each for each in _folders if each != folder]
    place = min(
        (sys.path.index(each) for each in [*others, *last_folders()] if each in sys.path), default=len(sys.path)
    )
    search_first(folder)
    if folder not in sys.path[:place]:
        sys.path[:] = [each for each in sys.path if each != folder]
        sys.path.insert(0 if first else place, folder)
    for name in _names_in(folder) - {own, *_LIBRARY} & sys.modules.keys():
        home = next((each for each in others if _is_of(sys.modules[name], each)), None)
        if home is not None:
            inner = [each for each in sys.modules if each.partition(".")[0] == name]
            _aside.setdefault(home, {}).update((each, sys.modules.pop(each)) for each in inner)
    sys.modules.update(_aside.pop(folder, {}))
    _folders[:] = [folder, *others]


def _names_in(folder: str) -> set[str]:
    """Return the names of the modules and packages that a folder may have."""
    return {each.removesuffix(".py") for each in os.listdir(folder)}


def _check_imports(path: str) -> None:
    """Refuse a file that imports a module beside it, if this process has imported another program's of that name.

    An installed package may also be beside the file, as a copy.

    Raises:
        ConfigError: Python gave it the other one.
    """
    folder = os.path.dirname(path)
    for name in sorted(_names_in(folder) & sys.modules.keys()):
        taken = getattr(sys.modules[name], "__file__", None)
        if (
            taken is None
            or name in (*sys.stdlib_module_names, *_LIBRARY, *OTHER_LIBRARIES)
            or not _INSTALLED.isdisjoint(taken.split(os.sep))
        ):
            continue
        for its_own in (f"{folder}/{name}.py", f"{folder}/{name}/__init__.py"):
            if (
                os.path.isfile(its_own)
                and its_own != path
                and os.path.realpath(taken) != os.path.realpath(its_own)
                and name in _imports_of(path)
            ):
                raise ConfigError(
                    f"{path} imports {name!r}, which this process has already imported from {taken}, and not from "
                    f"{its_own}: give one of the two another name, or load the topology in a process of its own"
                )


def _imports_of(path: str) -> set[str]:
    """Return the first part of each module's name that a file imports."""
    import ast

    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    found = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    found |= {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    return {each.partition(".")[0] for each in found}


def _is_of(module: ModuleType, folder: str) -> bool:
    """Return whether a module without a package is imported from the folder."""
    places = [*getattr(module, "__path__", ()), os.path.splitext(getattr(module, "__file__", None) or "")[0]]
    return os.path.join(folder, module.__name__) in places


def _raised_in(problem: BaseException) -> str | None:
    """Return the file whose line raised an exception."""
    at = problem.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return None if at is None else at.tb_frame.f_code.co_filename


def _explain(problem: ImportError, path: str) -> None:
    """Raise ConfigError when a file of a package was named by its path and its package is not found, or has the file's name."""
    own = os.path.basename(path)[:-3]
    if problem.name is not None and problem.name.startswith(f"{own}.") and str(problem).endswith("is not a package"):
        raise ConfigError(
            f"{path} imports {problem.name!r}, and has the name of that package itself: give the file another name, or put an __init__.py "
            f"into the package's folder, {own}/, which Python then finds first"
        ) from problem
    relative = problem.name is None and "no known parent package" in str(problem) and _raised_in(problem) == path
    folder, file = os.path.split(path)
    names = [file[:-3]]
    while os.path.isfile(os.path.join(folder, "__init__.py")) or (relative and len(names) == 1):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    missing = isinstance(problem, ModuleNotFoundError) and problem.name is not None and len(names) > 1
    if relative or (missing and f"{problem.name}.".startswith(f"{names[0]}.")):
        raise ConfigError(
            f"{path} is a file of the package {names[0]!r}, which is not found when the file is named by its path "
            f"({problem}): name the module instead, {'.'.join(names)}:NAME, in the folder {folder} or with "
            f"PYTHONPATH={folder}"
        ) from problem
