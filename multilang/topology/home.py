"""The folder with a topology's files, and the names of the files on workers."""

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

    A folder ``resources/`` in ``root`` or ``own``, as in Java projects, becomes the jar's ``resources/``, together with
    the other files.

    Attributes:
        root: The root of imports and of names in a jar.
        own: The folder of the topology's module, which is another one when the module is in a package.
        plain: Whether a folder ``resources/`` is one like any other.
    """

    __slots__ = ("own", "plain", "root")

    def __init__(self, root: str, own: str | None = None, plain: bool = False) -> None:
        self.plain = plain
        self.root = os.path.abspath(root)
        self.own = self.root if own is None else os.path.abspath(own)

    @property
    def folders(self) -> tuple[str, ...]:
        """``root``, and ``own`` if it is another folder."""
        return (self.root,) if self.own == self.root else (self.root, self.own)

    @property
    def resources(self) -> list[str]:
        """The folders ``resources/``, except Python packages of that name, whose modules are imported."""
        if self.plain:
            return []
        found = (os.path.join(folder, RESOURCES) for folder in self.folders)
        return [each for each in found if os.path.isdir(each) and not os.path.exists(os.path.join(each, "__init__.py"))]

    def find(self, word: str) -> str | None:
        """Return the path of the file or folder that a word of a command names, or None when there is none."""
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
        if first == RESOURCES and rest:  # this is their name on workers; here the files may be beside the topology
            for folder in self.folders:
                yield os.path.join(folder, rest)

    def name(self, path: str) -> str | None:
        """Return the name of a file or folder below a worker's ``resources/``, or None for one outside of ``root``."""
        for folder in (*self.resources, self.root):
            name = _name_in(folder, path)
            if name is not None:
                return name.replace(os.sep, "/")
        return None

    def spelt(self, path: str) -> str:
        """Return the path below ``root`` as ``root`` spells it; it differs when the folder is reached by a link."""
        name = _name_in(self.root, path)
        return path if name is None else os.path.normpath(os.path.join(self.root, name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Home) and (self.root, self.own, self.plain) == (other.root, other.own, other.plain)

    def __hash__(self) -> int:
        return hash((self.root, self.own))

    def __repr__(self) -> str:
        return f"Home({self.root!r}, {self.own!r})"


def _name_in(folder: str, path: str) -> str | None:
    """Return the name of ``path`` in ``folder``, also through links; links below the folder keep their names."""
    if is_below(path, folder):
        return os.path.relpath(path, folder)
    real, above = os.path.realpath(folder), path
    while os.path.realpath(above) != real:
        above, below = os.path.dirname(above), above
        if above == below:
            return None
    return os.path.relpath(path, above)


def is_below(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or in it, comparing only their names."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def home_of_module(name: str, file: str) -> Home:
    """Return the home of a topology in the module ``name``, which was loaded from ``file``."""
    file = os.path.abspath(file)
    own = os.path.dirname(file)
    root = own
    for _ in range(name.count(".") + (os.path.basename(file) == "__init__.py")):
        root = os.path.dirname(root)
    return Home(root, own)


def home_of_place(place: str) -> Home:
    """Return the home of the topology at ``"package.module"`` or ``"/path/file.py"``, which has been imported."""
    if place.endswith(".py"):
        return Home(os.path.dirname(place))
    file = getattr(sys.modules.get(place), "__file__", None)
    return Home(os.getcwd()) if file is None else home_of_module(place, file)


def homes_on_stack(frame: FrameType | None) -> list[Home]:
    """Return the homes of the running modules, the nearest first; the current folder for code typed at a prompt."""
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
    # the module that python -m package.module runs is called __main__
    name = module.get("__name__", "") if spec is None else spec.name
    return home_of_module(name, file)
