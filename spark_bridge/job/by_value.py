"""Pickling of code that executors can't import: the topology's module and the modules in its folder are sent whole."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle as _cloudpickle

from multilang.component.wrapper import innermost
from multilang.topology.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from multilang.state import StateProvider
    from multilang.store import Store
    from multilang.topology.model import Topology

cloudpickle: Any = _cloudpickle
_INSTALLED_ALWAYS = frozenset(("multilang", "spark_bridge", "pyspark"))
_users: Counter[str] = Counter()  # module -> the number of current runs that use it: a session may have several
_USERS = Lock()


@contextmanager
def by_value(topology: Topology, *kinds: type[StateProvider | Store]) -> Iterator[None]:
    """Pickle the modules of the topology, and of its state provider and store, whole in this context, unless they are installed.

    Raises TopologyError, with the component's id or the class, when one can't be pickled.
    """
    taken: list[ModuleType] = []
    try:
        taken.extend(module for module in _modules(topology, kinds) if _take(module))
        for spec in topology.components.values():
            try:
                cloudpickle.dumps(spec)
            except Exception as error:
                raise TopologyError(
                    f"{spec.kind} {spec.id!r} can't be sent to Spark's executors ({error}): make in initialize() what "
                    "can't be pickled, such as connections, files and locks"
                ) from error
        try:
            cloudpickle.dumps(kinds)
        except Exception as error:
            raise TopologyError(
                f"{' and '.join(map(str, kinds))} can't be sent to Spark's executors ({error}): make in its methods what can't be "
                "pickled, such as connections and locks, not in its module"
            ) from error
        yield
    finally:
        for module in taken:
            _let_go(module)


def _take(module: ModuleType) -> bool:
    """Register the module to be pickled whole. Return False if somebody else has registered it already."""
    with _USERS:
        if not _users[module.__name__]:
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                return False
            cloudpickle.register_pickle_by_value(module)
        _users[module.__name__] += 1
    return True


def _let_go(module: ModuleType) -> None:
    with _USERS:
        _users[module.__name__] -= 1
        if not _users[module.__name__]:
            cloudpickle.unregister_pickle_by_value(module)


def _modules(topology: Topology, kinds: Iterable[type]) -> Iterator[ModuleType]:
    """Return the modules that are not installed: those of the topology, its components, and its provider and store,
    and in their folders.
    """
    named: set[Any] = {topology.module}
    named.update(each.__module__ for kind in kinds for each in kind.__mro__)
    for spec in topology.components.values():
        inner = innermost(spec.component)
        named.update(each.__module__ for each in type(inner).__mro__)
        given = getattr(inner, "given", None)  # a component of another library's, in an adapter of this one
        named.update(each.__module__ for each in getattr(given, "__mro__", type(given).__mro__))
        for input_ in spec.inputs:
            named.update(type(each).__module__ for each in (input_.grouping, input_.grouping.custom) if each)
    folders = {folder for name in named if (folder := _folder(sys.modules.get(name)))}
    home = None if topology.home is None else topology.home.root + os.sep
    for name, module in list(sys.modules.items()):
        if name == "__main__" or getattr(module, "__name__", None) != name:
            continue
        folder = _folder(module)
        if folder in folders or (home is not None and folder is not None and f"{folder}{os.sep}".startswith(home)):
            yield module


def _folder(module: ModuleType | None) -> str | None:
    """Return the folder of a module that is not installed."""
    file = getattr(module, "__file__", None)
    if module is None or not file or module.__name__.partition(".")[0] in _INSTALLED_ALWAYS:
        return None
    folder = os.path.dirname(os.path.abspath(file))
    return None if any(folder == path or folder.startswith(path + os.sep) for path in _libraries()) else folder


@cache
def _libraries() -> frozenset[str]:
    """Return the folders of installed packages.

    The answer is cached, because Python computes the paths anew at each call.
    """
    paths = sysconfig.get_paths()
    return frozenset(paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))
