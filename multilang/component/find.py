"""Find the object that ``MODULE:NAME`` or ``path/file.py:NAME`` stands for."""

from __future__ import annotations

import os
import sys

from multilang.component.base import Component
from multilang.component.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from multilang.component.context import Context


TOPOLOGY = "topology"
"""The name of the topology in its module, unless another one is given."""

YAML = (".yaml", ".yml")
"""The ends of the names of files that declare a topology in YAML, as Storm's Flux has them."""

OTHER_LIBRARIES = ("petrel", "pystorm", "storm", "streamparse")
"""The libraries that ``multilang.compat`` stands in for."""

_CREATE = "create"  # the usual name of Petrel's function that declares a topology

is_finding = False  # set while a task's process imports the topology, whose module must not start another cluster


def find_component(target: str, context: Context) -> Component:
    """Return the component that this task runs.

    It is ``target`` itself, or the component with the task's id in the topology that ``target`` names.

    Raises:
        ConfigError: There is no such object, or it is no component that runs in Python.
    """
    global is_finding
    is_finding = True
    try:
        found = find_object(target)
        if is_foreign(found):
            found = from_foreign(found, module_name(split_target(target)[0]))
        if callable(found) and not isinstance(found, type | Component) and not hasattr(found, "components"):
            found = found()
    finally:
        is_finding = False
    if isinstance(found, type) and issubclass(found, Component):
        found = found()
    if isinstance(found, Component):
        return found
    components = getattr(found, "components", None)
    if components is None:
        raise ConfigError(
            f"{target} is a {type(found).__name__}; name a Topology, a function that returns one, or a component"
        )
    try:
        component = components[context.component].component
    except KeyError:
        raise ConfigError(
            f"the topology {target} has no component {context.component!r}; it has "
            f"{', '.join(map(repr, components))}: is this the code that was submitted?"
        ) from None
    if not isinstance(component, Component):
        raise ConfigError(
            f"component {context.component!r} of {target} is a {type(component).__name__}, which runs by its own command"
        )
    return component


def find_object(target: str) -> Any:
    """Return the object that ``target`` names.

    Raises:
        ConfigError: There is no such file, module or name in it.
    """
    place, name = split_target(target)
    module = load_module(place)
    try:
        return getattr(module, name)
    except AttributeError:
        its_own = [n for n, value in vars(module).items() if _may_be_meant(n, value, module.__name__)]
        raise ConfigError(
            f"{place} has no {name!r}; name a topology or component that it has, as {place}:NAME "
            f"(it has {', '.join(its_own[:20]) or 'none'})"
        ) from None


def _may_be_meant(name: str, value: object, module: str) -> bool:
    """Return whether it is a topology, or a component or function that the module itself defines."""
    if name.startswith("_"):
        return False
    own = getattr(value, "__module__", None) == module and callable(value)
    return own or isinstance(value, Component) or (hasattr(value, "components") and not isinstance(value, type))


def split_target(target: str) -> tuple[str, str]:
    """Split ``"module:attr"``; the name is ``topology`` if it is missing, and a file's path is made absolute.

    Raises:
        ConfigError: The target has another form.
    """
    place, _, name = target.rpartition(":") if ":" in target else (target, "", TOPOLOGY)
    if not place or not name.isidentifier():
        raise ConfigError(f"{target!r} names nothing; write 'module:attr' or 'path/file.py:attr'")
    if place.endswith(".py"):
        return os.path.abspath(place), name
    if os.sep in place or not all(part.isidentifier() for part in place.split(".")):
        raise ConfigError(f"{target!r} names no module; write 'package.module:attr', or a file's path with its .py")
    return place, name


def is_foreign(found: object) -> bool:
    """Return whether it is a topology of another library's: streamparse's class, or Petrel's function of a builder."""
    if isinstance(found, type):
        return hasattr(found, "__multilang_topology__")
    code = getattr(found, "__code__", None)
    if code is None or code.co_argcount != 1 or code.co_kwonlyargcount or hasattr(found, "__self__"):
        return False
    return not getattr(found, "__defaults__", None) and (found.__name__ == _CREATE or code.co_varnames[0] == "builder")  # type: ignore[attr-defined]


def from_foreign(found: Any, name: str) -> Any:
    """Return a topology of another library's as one of this library.

    Args:
        found: What ``is_foreign`` says this of.
        name: The topology's name.
    """
    if isinstance(found, type):
        return found.__multilang_topology__(name)  # type: ignore[attr-defined]
    from importlib import import_module

    return import_module("multilang.compat.petrel.own").own_topology(found, name)  # a package above this one


def from_yaml(path: str) -> Any:
    """Return the topology that a file of Flux's declares as one of this library.

    Raises:
        ConfigError: It is not there, or has something that only Java can make.
    """
    from importlib import import_module

    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {path!r}; write the path of a file of Flux's")
    return import_module("multilang.compat.flux").own_topology(path)  # a package above this one


def foreign_in(module: ModuleType) -> Any:
    """Return the first topology of another library's that a module defines; None if it defines none."""
    for name, value in vars(module).items():
        if is_foreign(value) and value.__module__ == module.__name__ and (isinstance(value, type) or name == _CREATE):
            return value
    return None


def module_name(place: str) -> str:
    """Return the last part of a module's name, or the name of a file without its ``.py``."""
    return os.path.basename(place)[:-3] if place.endswith(".py") else place.rpartition(".")[2]


def load_module(place: str) -> ModuleType:
    """Import a module by its name, or a file by its path (with ``.py``).

    Other libraries whose names the module imports, and which are not installed, are found in ``multilang.compat``.

    Raises:
        ConfigError: There is none.
    """
    if _other_names not in sys.meta_path:
        sys.meta_path.append(_other_names)
    return _from_file(place) if place.endswith(".py") else _from_module(place)


class _OtherNames:
    """A finder, asked last, of the libraries that ``multilang.compat`` stands in for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if name not in OTHER_LIBRARIES:
            return None
        from importlib import import_module
        from importlib.util import find_spec

        import_module("multilang.compat.names").provide(name)  # a package above this one
        return find_spec(name)


_other_names = _OtherNames()


def _from_module(name: str) -> ModuleType:
    if name not in sys.modules and not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())  # a console command's path starts with its own folder, not the user's
    try:
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


def _near(path: str) -> str:
    """Return the question whether a file of Python's was meant that has nearly this name; empty: there is none."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        there = [each for each in os.listdir(folder) if each.endswith(".py")]
    except OSError:
        return f"there is no folder {folder!r}, either" if not os.path.isdir(folder) else ""
    near = get_close_matches(name, there, n=1, cutoff=0.75)
    return f"did you mean {near[0]!r}?" if near else ""


def _from_file(path: str) -> ModuleType:
    """Import a file as Python runs a script, with its folder first on the path.

    It is imported once, under its own name if that is free.
    """
    if not os.path.isfile(path):
        raise ConfigError(
            f"there is no file {path!r}; {_near(path) or 'write the path of a Python file, or package.module for a module'}"
        )
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path and module.__name__ != "__main__":
            return module
    folder, name = os.path.split(path[:-3])
    project = _project_around(path)
    if project is not None:
        _take_project(project.source, folder, project.root)
    elif folder not in sys.path:
        sys.path.insert(0, folder)
    if name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier():
        name = "".join(letter if letter.isalnum() else "_" for letter in path)

    from importlib.machinery import ModuleSpec, SourceFileLoader

    loader = SourceFileLoader(name, path)
    module = type(sys)(name)
    module.__file__ = path
    module.__loader__ = loader
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException as problem:
        del sys.modules[name]
        if isinstance(problem, ImportError):
            _explain(problem, path)
        raise
    return module


def _project_around(path: str) -> Any:
    """Return the project of streamparse's that a topology's file is in; None if it is in none."""
    folder = os.path.dirname(path)
    for _ in range(2):
        folder = os.path.dirname(folder)
        if os.path.isdir(os.path.join(folder, "src")):
            from importlib import import_module

            return import_module("multilang.compat.project").project_of(path)  # a package above this one
    return None


_sources: list[str] = []  # of the projects that were loaded in this process, the last one first


def _take_project(source: str, folder: str, root: str) -> None:
    """Put a project on Python's path as streamparse does, its components before its topologies, and before other projects.

    Each project may have its own ``bolts``: modules of another one's that have the names of this one's are imported anew.
    """
    if _sources[:1] != [source]:
        last = min([sys.path.index(each) for each in _sources if each in sys.path], default=len(sys.path))
        mine = {each.removesuffix(".py") for each in os.listdir(source)}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in mine and _is_in(module, _sources):
                del sys.modules[name]
        sys.path[:] = (
            [each for each in sys.path[:last] if each != source]
            + [source]
            + [each for each in sys.path[last:] if each != source]
        )
        _sources[:] = [source, *(each for each in _sources if each != source)]
    sys.path += [each for each in (folder, root) if each not in sys.path]


def _is_in(module: ModuleType, folders: Sequence[str]) -> bool:
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    return any(file.startswith(f"{each}{os.sep}") for each in folders)


def _explain(problem: ImportError, path: str) -> None:
    """Raise ConfigError when a file of a package was named by its path and its package is not found."""
    relative = problem.name is None and "no known parent package" in str(problem)
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
