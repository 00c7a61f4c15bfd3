"""Importing the layer by the names that programs write: ``import storm``, ``from streamparse import Bolt``."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_HOME = "multilang.compat"
NAMES = ("pystorm", "storm", "streamparse")


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
                return None  # no such module: Python says so with the name that the program wrote
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
    sys.meta_path.insert(0, _Aliases(names or NAMES))


def _is_ours(top: str) -> bool:
    """Return whether a name was imported as the layer's package."""
    return top in sys.modules and sys.modules[top] is sys.modules.get(f"{_HOME}.{top}")
