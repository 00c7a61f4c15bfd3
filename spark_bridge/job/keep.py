"""A bolt's attributes, carried from one round to the next: a round is a Spark job of its own, with new objects."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle as _cloudpickle

from multilang.component.timers import TimerHandle

if TYPE_CHECKING:
    from multilang.state import State

_Pickler: Any = _cloudpickle.Pickler

# The attributes that the runner sets on each component, so that they are not carried.
_RUNNERS = frozenset(
    ("_collector", "_logger", "_metrics", "ack", "clock", "conf", "context", "emit", "emit_many", "fail")
)


def kept(component: object, state: State | None = None) -> tuple[bytes, list[str]]:
    """Return a component's pickled attributes, and the names of those that can't be pickled, such as a connection.

    ``state`` is saved elsewhere; references to it become references to the next component's state. An attribute that is
    a timer stays as the next component's ``initialize`` sets it.
    """
    attributes = {
        name: value
        for name, value in vars(component).items()
        if name not in _RUNNERS and not isinstance(value, TimerHandle)
    }
    try:
        return _dumped(attributes, state), []
    except Exception:  # noqa: BLE001  # the attributes' code may raise anything; the attribute is found below
        pass
    left = []
    for name, value in list(attributes.items()):
        try:
            _dumped(value, state)
        except Exception:  # noqa: BLE001
            left.append(name)
            del attributes[name]
    return _dumped(attributes, state), left


def restore(component: object, payload: bytes, state: State | None = None) -> None:
    """Set the kept attributes on a component, over those that ``initialize`` made."""
    vars(component).update(_KeptUnpickler(payload, state).load())


class _Writer(_Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, state: State | None) -> None:
        super().__init__(file)
        self._state = state

    def persistent_id(self, value: object) -> str | None:
        return "state" if value is self._state and value is not None else None


class _KeptUnpickler(pickle.Unpickler):  # reads what a task of this job's last round wrote
    def __init__(self, payload: bytes, state: State | None) -> None:
        super().__init__(io.BytesIO(payload))
        self._state = state

    def persistent_load(self, _: str) -> State | None:
        return self._state


def _dumped(value: object, state: State | None) -> bytes:
    file = io.BytesIO()
    _Writer(file, state).dump(value)
    return file.getvalue()
