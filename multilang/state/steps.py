"""The steps of a protocol, traced by a function that the conf names: to watch them, or to make one fail."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.dotted import by_dotted_name
from multilang.settings import TRACE, value

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
    """

    def __init__(self, conf: Mapping[str, Any], namespace: str) -> None:
        self._tell = traced(conf)
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


def traced(conf: Mapping[str, Any]) -> Callable[[str, str, int], None] | None:
    """Return the function that the conf names; None if it names none.

    Raises:
        ConfigError: There is no function of that name.
    """
    name = value(conf, TRACE)
    if name is None:
        return None
    try:
        function: Callable[[str, str, int], None] = by_dotted_name(name)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{TRACE} {name!r} can't be imported: {problem}") from problem
    if not callable(function):
        raise ConfigError(f"{TRACE} {name!r} is {function!r}; use a function by its dotted name")
    return function
