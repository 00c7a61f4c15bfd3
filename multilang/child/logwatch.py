"""Attach Storm's log to Python's logging when the latter is first imported.

Logging costs a process 2 MB and 10 ms, so that this library does not import it. Once user code does, no record may be
lost.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from multilang.protocol import ChildConnection


def watch_logging(connection: ChildConnection, level: int) -> None:
    """Send logging's records from ``level`` (logging's number) up to ``connection``, now or when it is imported."""

    def attach() -> None:
        from multilang.component.logs import install

        install(connection, level)

    if "logging" in sys.modules:
        attach()
    else:
        sys.meta_path.insert(0, _Watch(attach))


class _Watch:
    """A finder that finds only logging, and only once."""

    def __init__(self, attach: Callable[[], None]) -> None:
        self._attach = attach

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        if name != "logging":
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._attach)  # type: ignore[assignment]  # duck-typed, so that importlib.abc is not loaded
        return spec


class _Loader:
    def __init__(self, inner: Loader, attach: Callable[[], None]) -> None:
        self._inner = inner
        self._attach = attach

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """See importlib.abc.Loader."""
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """See importlib.abc.Loader."""
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        self._attach()
