"""A map's values in this process: for tests, and for values that need not survive it."""

from __future__ import annotations

from multilang.transactional.maps.backing import Backing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from multilang.transactional.maps.backing import Row


class MemoryBacking(Backing):
    """A dict, which only tasks of this process can share."""

    durable = False

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def multi_get(self, keys: Sequence[str]) -> list[str | None]:
        return [self._values.get(key) for key in keys]

    def multi_put(self, rows: Sequence[Row]) -> bool:
        if any(self._values.get(key) != before for key, before, _ in rows):
            return False
        self._values.update((key, value) for key, _, value in rows)
        return True

    def describe(self) -> str:
        return "memory of this process"
