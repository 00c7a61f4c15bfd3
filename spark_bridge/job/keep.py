"""What a bolt knows, carried from one round to the next: a round is a Spark job of its own, with new objects."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from pyspark import cloudpickle

if TYPE_CHECKING:
    from typing import Any

# What the runner puts on a component, and will put on the next.
_RUNNERS = frozenset(("_collector", "_logger", "_metrics", "ack", "conf", "context", "emit", "emit_many", "fail"))


def kept(component: object) -> tuple[bytes, list[str]]:
    """A component's attributes, and the names of those that can't be pickled (a connection, a lock, an iterator)."""
    attributes = {name: value for name, value in vars(component).items() if name not in _RUNNERS}
    try:
        return _dumped(attributes), []
    except Exception:  # noqa: BLE001  # whatever the attributes' own code raises: then which ones is found out
        pass
    left = []
    for name, value in list(attributes.items()):
        try:
            _dumped(value)
        except Exception:  # noqa: BLE001
            left.append(name)
            del attributes[name]
    return _dumped(attributes), left


def restore(component: object, payload: bytes) -> None:
    """Lay them over what ``initialize`` made."""
    attributes: dict[str, Any] = pickle.loads(payload)  # noqa: S301  # written by a task of this job's last round
    vars(component).update(attributes)


def _dumped(value: object) -> bytes:
    pickler: Any = cloudpickle
    return pickler.dumps(value)  # type: ignore[no-any-return]
