"""The folder in which a topology's files are found, and the names that workers know them by."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any

RESOURCES = "resources"
_OURS = ("multilang", "spark_bridge")


class Home:
    """A topology's own folder.

    ``root``: the folder that imports start from, and that names in a jar start from; ``own``: the folder of the topology's
    module, which is another one in a package. A folder ``resources/`` in either is, as Java projects have it, what becomes
    ``resources/`` of the jar, together with the other files.
    """

    __slots__ = ("own", "root")

    def __init__(self, root: str, own: str | None = None) -> None:
        self.root = os.path.abspath(root)
        self.own = self.root if own is None else os.path.abspath(own)

    @property
    def folders(self) -> tuple[str, ...]:
        """``root``, and ``own`` where it is another."""
        return (self.root,) if self.own == self.root else (self.root, self.own)

    @property
    def resources(self) -> list[str]:
        """The folders ``resources/``. One that is a Python package is none of them: its modules are imported by that name."""
        found = (os.path.join(folder, RESOURCES) for folder in self.folders)
        return [each for each in found if os.path.isdir(each) and not os.path.exists(os.path.join(each, "__init__.py"))]

    def find(self, word: str) -> str | None:
        """The path of the file or folder that a word of a command names, None when there is none."""
        if not word.strip("./"):
            return None
        for path in self._places(os.path.normpath(word)):
            if os.path.exists(path):
                return path
        return None

    def _places(self, word: str) -> Iterator[str]:
        if os.path.isabs(word):
            yield word
            return
        for folder in (*self.resources, *self.folders):
            yield os.path.normpath(os.path.join(folder, word))
        first, _, rest = word.partition(os.sep)
        if first == RESOURCES and rest:  # how workers name them; here they may lie beside the topology
            for folder in self.folders:
                yield os.path.join(folder, rest)

    def name(self, path: str) -> str | None:
        """The name below a worker's ``resources/`` of a file or folder; None for one outside of ``root``."""
        for folder in (*self.resources, self.root):
            name = _name_in(folder, path)
            if name is not None:
                return name.replace(os.sep, "/")
        return None

    def spelt(self, path: str) -> str:
        """A path below ``root`` by its name from there, which is another one where the folder is reached by a link."""
        name = _name_in(self.root, path)
        return path if name is None else os.path.normpath(os.path.join(self.root, name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Home) and (self.root, self.own) == (other.root, other.own)

    def __hash__(self) -> int:
        return hash((self.root, self.own))

    def __repr__(self) -> str:
        return f"Home({self.root!r}, {self.own!r})"


def _name_in(folder: str, path: str) -> str | None:
    """The name of ``path`` in ``folder``, whichever links either is reached by; links below the folder keep their names."""
    if is_below(path, folder):
        return os.path.relpath(path, folder)
    real, above = os.path.realpath(folder), path
    while os.path.realpath(above) != real:
        above, below = os.path.dirname(above), above
        if above == below:
            return None
    return os.path.relpath(path, above)


def is_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it, by their names alone."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def home_of_module(name: str, file: str) -> Home:
    """The home of a topology in the module ``name``, whose file this is."""
    file = os.path.abspath(file)
    own = os.path.dirname(file)
    root = own
    for _ in range(name.count(".") + (os.path.basename(file) == "__init__.py")):
        root = os.path.dirname(root)
    return Home(root, own)


def home_of_place(place: str) -> Home:
    """The home of the topology at ``"package.module"`` or ``"/path/file.py"``, which is imported."""
    if place.endswith(".py"):
        return Home(os.path.dirname(place))
    file = getattr(sys.modules.get(place), "__file__", None)
    return Home(os.getcwd()) if file is None else home_of_module(place, file)


def homes_on_stack(frame: FrameType | None) -> list[Home]:
    """The homes of the modules that are being run, the nearest first; the current folder for what is typed at a prompt."""
    homes: dict[Home, None] = {}
    files = set()
    while frame is not None:
        module = frame.f_globals
        if module.get("__name__", "").partition(".")[0] not in _OURS:
            file = module.get("__file__")
            if file and file not in files:
                files.add(file)
                homes[_home_of(module, file)] = None
            elif not homes:
                homes[Home(os.getcwd())] = None
        frame = frame.f_back
    return list(homes) or [Home(os.getcwd())]


def _home_of(module: Mapping[str, Any], file: str) -> Home:
    spec = module.get("__spec__")
    name = module.get("__name__", "") if spec is None else spec.name  # python -m package.module is called __main__
    return home_of_module(name, file)
