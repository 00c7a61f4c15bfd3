"""The steps of a protocol, traced by a function that the conf names: to watch them, or to make one fail."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.dotted import by_dotted_name
from multilang.state.settings import TRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.state.api import State


class Steps:
    """A callable that reports the steps of one namespace, as ``PREPARE write`` with the transaction.

    Args:
        conf: The conf that names the function.
        namespace: The namespace, which is the function's first argument.
        setting: The conf key that names the function.
    """

    def __init__(self, conf: Mapping[str, Any], namespace: str, setting: str = TRACE) -> None:
        self._tell = traced(conf, setting)
        self._namespace = namespace
        self._what = ""
        self._txid = -1

    def at(self, what: str, txid: int) -> None:
        """Set the action and the transaction that the next steps belong to."""
        self._what = what
        self._txid = txid

    def __call__(self, step: str) -> None:
        if self._tell is not None:
            self._tell(self._namespace, f"{self._what} {step}", self._txid)

    def watch(self, state: State) -> None:
        """Report the steps of the state and of its store, too."""
        if self._tell is not None:
            state.trace = self
            if hasattr(state, "store"):
                state.store.trace = self


def traced(conf: Mapping[str, Any], setting: str) -> Callable[[str, str, int], None] | None:
    """Return the function that the conf names; None if it names none.

    Raises:
        ConfigError: There is no function of that name.
    """
    name = conf.get(setting)
    if name is None:
        return None
    if not isinstance(name, str):
        raise ConfigError(f"{setting} is {name!r}; use a function by its dotted name")
    try:
        function: Callable[[str, str, int], None] = by_dotted_name(name)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{setting} {name!r} can't be imported: {problem}") from problem
    if not callable(function):
        raise ConfigError(f"{setting} {name!r} is {function!r}; use a function by its dotted name")
    return function
