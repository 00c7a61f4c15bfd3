"""A task's memory of each key, in the process or in its state."""

from __future__ import annotations

from multilang.helpers.copies import copied
from multilang.streams.keys import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from multilang.state.api import KeyValueState


class Memory:
    """The accumulators of a task's keys.

    The changes by a batch of tuples are separate until the batch is done, so that a failed one changes nothing.

    Attributes:
        state: The task's state, if it has one. A value is wrapped in a list there, since a state takes no None.
    """

    def __init__(self) -> None:
        self.state: KeyValueState[Any, list[Any]] | None = None
        self._values: dict[Any, Any] = {}
        self._changed: dict[Any, Any] = {}

    def get(self, key: Any, init: Callable[[], Any]) -> Any:
        """Return the accumulator of a key, or a new one. It may be changed: nothing is stored until ``put_all``."""
        values = self._changed if key in self._changed else self._values
        if key in values:
            value = values[key]
            return value if type(value) is int else copied(value)  # most are counts
        if self.state is not None:
            stored = self.state.get(encode(key))
            if stored is not None:
                return copied(stored[0])
        return init()

    def put_all(self, changed: Mapping[Any, Any]) -> None:
        """Set the accumulators of some keys, if the batch succeeds."""
        self._changed.update(changed)

    def commit(self) -> None:
        """Commit the batch's changes."""
        changed = self._changed
        if not changed:
            return
        if self.state is None:
            self._values.update(changed)
        else:
            for key, value in changed.items():
                self.state.put(encode(key), [value])
        changed.clear()

    def discard(self) -> None:
        """Discard the batch's changes."""
        self._changed.clear()
