"""Packages whose names are imported at their first use, so that a process that needs only a few of them starts fast."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_homes: dict[str, dict[str, str]] = {}


def lazily(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    Args:
        package: The package's ``__name__``; it has an ``__all__``.
        modules: The names of each module. A module of the package itself is given as ``".name"``.
    """
    homes = _homes[package] = {
        name: f"{package}{module}" if module.startswith(".") else module
        for module, names in modules.items()
        for name in names
    }

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return list(sys.modules[package].__all__)

    return get, names


def home_of(package: str, name: str) -> str | None:
    """Return the module that has a lazy name of a package; None if the package has no such name."""
    return _homes[package].get(name)
