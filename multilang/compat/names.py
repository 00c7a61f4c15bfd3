"""Importing the layer by the names in programs: ``import storm``, ``from streamparse import Bolt``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec

from multilang.topology.importing import OTHER_LIBRARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_HOME = "multilang.compat"
STAND_INS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standins")
"""A folder for Python's path, with a module of each name that imports the layer by it."""


class _Aliases(MetaPathFinder, Loader):
    """A finder of the names, each of which is the layer's own module and no copy of it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, _, rest = name.partition(".")
        if top not in self.names or (PathFinder.find_spec(top) is not None if not rest else not _is_ours(top)):
            return None
        try:
            module = import_module(f"{_HOME}.{name}")
        except ModuleNotFoundError as error:
            if error.name == f"{_HOME}.{name}":
                return None  # no such module: Python's error has the name in the program
            raise
        return ModuleSpec(name, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = sys.modules[f"{_HOME}.{spec.name}"]
        self._own = (module.__spec__, module.__loader__, module.__package__)  # which import replaces by the name's
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__, module.__package__ = self._own


def provide(*names: str) -> None:
    """Let these names be imported, where no package that is installed has them.

    Args:
        names: pystorm, storm or streamparse; none means all of them.
    """
    # Before Python's own finder, which would load a second copy of each submodule from the layer's folder.
    sys.meta_path.insert(0, _Aliases(names or OTHER_LIBRARIES))


def stand_in(name: str, file: str) -> None:
    """Replace the module of this name that is being imported by the layer.

    A program on this machine that has the original library gets it: in STAND_INS, which is on the path of every program that
    the embedded cluster starts, a module gives precedence to one that is found elsewhere. A copy elsewhere never does.

    Args:
        name: pystorm, storm or streamparse.
        file: The file of the module.

    Raises:
        ImportError: The original library is installed in the same folder, and only one of the two can be.
    """
    own = os.path.dirname(os.path.abspath(file))
    original = installed_original(name, own)
    if original is not None:
        raise ImportError(
            f"{original} is installed in {own} beside storm-multilang-names, which has the same name {name!r}; uninstall one of "
            f"them: pip uninstall {name} runs programs on storm-multilang, pip uninstall storm-multilang-names and a new "
            f"pip install {name} on the original"
        )
    other = None
    if own == STAND_INS:
        other = PathFinder.find_spec(name, [path for path in sys.path if os.path.abspath(path or os.curdir) != own])
    if other is None or other.loader is None:
        sys.modules[name] = import_module(f"{_HOME}.{name}")
        provide(name)
        return
    module = sys.modules[name] = module_from_spec(other)
    other.loader.exec_module(module)


def installed_original(name: str, folder: str) -> str | None:
    """Return the name and version of the original library that is installed in a folder; None if there is none."""
    from importlib.metadata import distributions

    for found in distributions(name=name, path=[folder]):
        return f"{found.name} {found.version}"
    return None


def _is_ours(top: str) -> bool:
    """Return whether a name was imported as the layer's package."""
    return top in sys.modules and sys.modules[top] is sys.modules.get(f"{_HOME}.{top}")
