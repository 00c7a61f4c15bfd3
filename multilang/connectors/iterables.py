"""Python iterables as sources, and a sink that collects.

FromIterable, guarantee: **at least once**: an item that fails is replayed until it is acked. A restarted task
resumes from its position, where the conf has ``multilang.store`` or alignment is exact (then exactly once); otherwise it
begins with the first item. On every engine; on Spark in the driver.

CollectingSink, guarantee: at least once, in this process alone.
"""

from __future__ import annotations

from copy import copy
from itertools import islice

from multilang.component.bolt import BasicBolt
from multilang.component.errors import ConfigError
from multilang.component.reliable import MAX_SPOUT_PENDING
from multilang.state.position_spout import PositionSpout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from typing_extensions import Self

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


_ITEMS = 64  # that one next_tuple emits at most


class FromIterable(PositionSpout):
    """A spout of the items of an iterable, each task its share of them; see the module.

    Args:
        items: The iterable, or a function that returns one; each task goes through it by itself, and gets the same items
            each time.
        field: The name of the field.

    Raises:
        ConfigError: It can be iterated only once, or has no order.
    """

    needs_positions = False

    _collector: SpoutCollector
    _next: int  # the number of the next item

    def __init__(self, items: Iterable[Any] | Callable[[], Iterable[Any]], field: str = "value") -> None:
        _check(items)
        self._items = items
        self.output_fields = [field]  # type: ignore[misc]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._index = context.task_index
        self._step = len(context.tasks(context.component))
        self._ended = False
        self._at_once = min(_ITEMS, conf.get(MAX_SPOUT_PENDING) or _ITEMS) if self._gives_several(conf) else 1
        self._begin(self._index)

    def _gives_several(self, conf: dict[str, Any]) -> bool:
        """Return whether it emits several items at once: all are there already, and no position of each is stored."""
        at_hand = isinstance(self._items, list | tuple | range)
        return at_hand and not self._collector.replays_by_position and not self.keeps_position(conf)

    def next_tuple(self) -> None:
        items = list(islice(self._rest, self._at_once))
        if not items:
            self._ended = True
            return
        first = self._next
        self._next = end = first + len(items) * self._step
        self.emit_many([[item] for item in items], range(first, end, self._step))

    def exhausted(self) -> bool:
        return self._ended

    def position(self) -> int:
        return self._next

    def seek(self, position: int) -> None:
        self._begin(position)

    def _begin(self, number: int) -> None:
        items = self._items() if callable(self._items) else self._items
        self._next = number
        self._rest: Iterator[Any] = islice(iter(items), number, None, self._step)
        self._ended = False

    def __deepcopy__(self, _: object) -> Self:
        return copy(self)  # the items are only read


def _check(items: object) -> None:
    if callable(items):
        return
    try:
        iterator = iter(items)  # type: ignore[call-overload]
    except TypeError:
        raise ConfigError(
            f"a source is a spout, its class, an iterable, or a function that returns one, not {items!r:.80}"
        ) from None
    if isinstance(items, set | frozenset):
        raise ConfigError(
            f"the source {items!r:.80} is a set, whose order differs from process to process, so that tasks would leave items out; give "
            "a list, such as sorted(...)"
        )
    if iterator is items:
        raise ConfigError(
            f"the source {items!r:.80} can be iterated only once, and a restarted task begins anew; give a "
            "function that makes it, such as lambda: open(path)"
        )


class CollectingSink(BasicBolt):
    """A bolt for tests that collects its tuples in ``sink.rows``, in the embedded cluster's modes without processes.

    Attributes:
        rows: The values of each tuple, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    @property
    def values(self) -> list[Any]:
        """The first value of each tuple."""
        return [row[0] for row in self.rows]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        if self._collector.to_parent:
            raise ConfigError(
                f"the CollectingSink {context.component!r} runs in a process of its own, where nobody sees what it collects; run the "
                "topology with mode='inprocess' or 'simulated', or read run.captured() of the component before it"
            )

    def process(self, tup: Tuple) -> None:
        self.rows.append(list(tup.values))

    def __deepcopy__(self, _: object) -> Self:
        return copy(self)  # all tasks collect in one list, that of the declared sink
