"""The steps of a protocol, told to whom the conf names: to see what happens, or to make it fail there."""

from __future__ import annotations

from importlib import import_module

from multilang.component.errors import ConfigError
from multilang.state.settings import TRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.state.api import State


class Steps:
    """Called with each step of one namespace; tells of it as ``PREPARE write``, with the transaction.

    ``setting``: the conf key that names who is told.
    """

    def __init__(self, conf: Mapping[str, Any], namespace: str, setting: str = TRACE) -> None:
        self._tell = traced(conf, setting)
        self._namespace = namespace
        self._what = ""
        self._txid = -1

    def at(self, what: str, txid: int) -> None:
        """What the steps that follow are part of."""
        self._what = what
        self._txid = txid

    def __call__(self, step: str) -> None:
        if self._tell is not None:
            self._tell(self._namespace, f"{self._what} {step}", self._txid)

    def watch(self, state: State) -> None:
        """Hear of the state's own steps, and of its store's."""
        if self._tell is not None:
            state.trace = self
            if hasattr(state, "store"):
                state.store.trace = self


def traced(conf: Mapping[str, Any], setting: str) -> Callable[[str, str, int], None] | None:
    """The function that the conf names to be told, if any. Raises ConfigError when there is none of that name."""
    name = conf.get(setting)
    if name is None:
        return None
    if not isinstance(name, str):
        raise ConfigError(f"{setting} is {name!r}; use a function by its dotted name")
    module, _, attribute = name.rpartition(".")
    try:
        function: Callable[[str, str, int], None] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(f"{setting} {name!r} can't be imported: {problem}") from problem
    if not callable(function):
        raise ConfigError(f"{setting} {name!r} is {function!r}; use a function by its dotted name")
    return function
