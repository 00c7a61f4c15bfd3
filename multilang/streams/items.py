"""The spout of a Python iterable."""

from __future__ import annotations

from itertools import islice

from multilang.component.errors import ConfigError
from multilang.state.replayable import ReplayableSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from multilang.component.context import Context


class Items(ReplayableSpout):
    """Emits the items of an iterable, each task its share of them, and emits them again when they fail.

    A task that is started again begins with the first item again, except with exact alignment, where it goes on from the
    last checkpoint.

    Args:
        items: The iterable, or a function that returns one; each task goes through it by itself.
    """

    output_fields = ["value"]

    def __init__(self, items: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._items = items

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._index = context.task_index
        self._step = len(context.tasks(context.component))
        self._done = False
        self._begin(self._index)

    def next_tuple(self) -> None:
        for item in self._left:
            number = self._next
            self._next += self._step
            self.emit([item], number)
            return
        self._done = True

    def exhausted(self) -> bool:
        return self._done

    def position(self) -> int:
        return self._next

    def seek(self, position: int) -> None:
        self._begin(position)

    def _begin(self, number: int) -> None:
        items = self._items() if callable(self._items) else self._items
        self._next = number
        self._left: Iterator[Any] = islice(iter(items), number, None, self._step)
        self._done = False

    def __deepcopy__(self, _: object) -> Items:
        return Items(self._items)  # which is only read


def check_items(items: object) -> None:
    """Raise ConfigError unless ``items`` can be gone through more than once."""
    if callable(items):
        return
    try:
        iterator = iter(items)  # type: ignore[call-overload]
    except TypeError:
        raise ConfigError(
            f"a source is a spout, its class, an iterable, or a function that returns one, not {items!r:.80}"
        ) from None
    if iterator is items:
        raise ConfigError(
            f"the source {items!r:.80} can be gone through only once, and a task that is started again begins anew; give a "
            "function that makes it, such as lambda: open(path)"
        )
