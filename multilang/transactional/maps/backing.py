"""Where the values of a map are kept: a seam of two calls, each of them one round trip for a whole batch."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    Row: TypeAlias = tuple[str, str | None, str]  # a key, the value it had when it was read, the value to be put


class Backing(ABC):
    """Keys and values are texts (Storm's IBackingMap). What can't be read or written is a StateError that names the place.

    A backing opens what it needs at its first use, so that it can be declared with the topology and used in its tasks.
    """

    requires: Mapping[str, str] = {}
    """Packages that it needs on workers; see Component's."""

    _opened: Any = None

    @abstractmethod
    def multi_get(self, keys: Sequence[str]) -> list[str | None]:
        """The value of each key, None where there is none."""

    @abstractmethod
    def multi_put(self, rows: Sequence[Row]) -> bool:
        """Put all rows at once if each key still has the value that was read; else none of them, and False."""

    def check(self) -> None:  # noqa: B027 - not every backing can be out of reach
        """Called where the embedded cluster is about to start a topology: StateError when it can't be used now."""

    @abstractmethod
    def describe(self) -> str:
        """Where it is, for people."""

    def close(self) -> None:
        """Let go of what is open; the next use opens it again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __deepcopy__(self, memo: object) -> Backing:
        """Itself: a batch bolt is copied for each batch, and what it writes to is the same."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process is closed there."""
        return {**self.__dict__, "_opened": None}
