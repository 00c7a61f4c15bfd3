"""The windows of a bolt without state in a job that has several rounds, each with new objects."""

from __future__ import annotations

from multilang.state.api import KeyValueState
from multilang.windowing.keys import from_json, outer
from multilang.windowing.saved import SavedTask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.windowing.batches import Batch
    from multilang.windowing.declared import DeclaredWindows
    from multilang.windowing.settings import Settings

EXPIRED = "$window.expired"


class Carried(KeyValueState["Any", "Any"]):
    """The values that one round carries to the next: a dict, which is not stored."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        return self._values.get(key, default)

    def put(self, key: Any, value: Any) -> None:
        self._values[key] = value

    def delete(self, key: Any) -> Any:
        return self._values.pop(key, None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        yield from list(self._values.items())

    def prepare_commit(self, txid: int) -> None: ...

    def commit(self, txid: int | None = None) -> None: ...

    def rollback(self) -> None: ...


class CarriedTask(SavedTask):
    """The windows of a started bolt without state, of which each round has a part of the tuples.

    A tuple is acked when it is in its windows: a job whose driver ends is run again as a whole.

    Args:
        bolt: The bolt.
        settings: Its settings.
        collector: Its collector.
        context: Its task's context.
        batch: The batch that is its input.
        carried: Returns the carried values, once the bolt has them.
    """

    def __init__(
        self,
        bolt: DeclaredWindows,
        settings: Settings,
        collector: BoltCollector,
        context: Context,
        batch: Batch,
        carried: Callable[[], Carried],
    ) -> None:
        self._carried = carried
        super().__init__(bolt, settings, collector, context, batch)

    def _refresh(self) -> None:
        if self._state is None:  # not earlier, since the bolt gets the carried values after its start
            self.load(self._carried())

    def no_expired(self) -> str:
        return "window.expired is not kept for windows with key_by; set keep_expired = True in the bolt's class"

    def save(self) -> None:
        """Write the changes, and the tuples that expired since the last window, to the carried values."""
        super().save()
        expired = [[outer(key), self._tuples.save(tuples)] for key, tuples in self._expired.items()]
        self._carried().put(EXPIRED, expired)

    def load(self, state: KeyValueState[Any, Any]) -> None:
        super().load(state)
        self._expired = {from_json(key): self._tuples.load(tuples) for key, tuples in state.get(EXPIRED, ())}
