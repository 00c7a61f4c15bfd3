"""The interface to where a map's values are stored: two calls, each of them one round trip for a whole batch."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    Row: TypeAlias = tuple[str, str | None, str]  # a key, the value it had when it was read, the value to be put


class Backing(ABC):
    """Storage of keys and values, which are texts (Storm's IBackingMap).

    It opens what it needs at its first use, so that it can be declared with the topology and used in its tasks. If
    something can't be read or written, it raises a StateError that names the place.

    Attributes:
        requires: The packages that workers need: import names, and what to install for each; see
            ``Component.requires``.
        durable: Whether another process, and a later one, finds the values.
        local: Whether only this machine can reach the values, as with files. Executors of a Spark cluster can't use them
            then.
    """

    requires: Mapping[str, str] = {}

    durable: bool = True

    local: bool = False

    _opened: Any = None

    @abstractmethod
    def multi_get(self, keys: Sequence[str]) -> list[str | None]:
        """Return the value of each key, None if there is none.

        Args:
            keys: The keys.

        Raises:
            StateError: The values can't be read.
        """

    @abstractmethod
    def multi_put(self, rows: Sequence[Row]) -> bool:
        """Put all rows at once, if each key still has the value that was read.

        Args:
            rows: Each a key, the value that was read (None: there was none), and the new value.

        Returns:
            False if a key has another value by now; then nothing was put.

        Raises:
            StateError: The values can't be written.
        """

    def check(self) -> None:  # noqa: B027 - not every backing can be out of reach
        """Check that the backing can be used. Called before the embedded cluster starts a topology.

        Raises:
            StateError: It can't be used now.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return the place in the words of a message."""

    def close(self) -> None:
        """Close what is open. The next use opens it again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __deepcopy__(self, memo: object) -> Backing:
        """Return the backing itself: a batch bolt is copied for each batch, and all copies write to the same place."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the backing without its connection, which can't go to another process."""
        return {**self.__dict__, "_opened": None}
