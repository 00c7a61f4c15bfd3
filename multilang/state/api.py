"""State as Storm defines it: org.apache.storm.state's State, KeyValueState and StateProvider."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.component.base import overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Generic, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
    D = TypeVar("D")

    class _Typed(Generic[K, V]):
        pass

else:

    class _Typed:
        """A stand-in for ``typing.Generic``, so that a component's process need not import ``typing``."""

        def __class_getitem__(cls, item: Any) -> type:
            return cls


def ignore(step: str) -> None:
    """Ignore a step. This is the trace function when the conf names none."""


class State(ABC):
    """A task's state, which is saved in two phases. All methods are called in the task's thread.

    ``prepare_commit`` and ``commit`` return when their data is durable. A transaction may be prepared or committed more
    than once: after a crash the checkpoint spout repeats its last step.

    Attributes:
        trace: Called with the name of each step of saving; see ``multilang.trace``.
    """

    trace: Callable[[str], None] = staticmethod(ignore)

    def claim(self, epoch: int) -> None:  # noqa: B027  # a state that only its task can reach has nothing to claim
        """Take the state over before anything is read from it. From then on the previous owner can't write to it.

        Args:
            epoch: The epoch of the checkpoint spout (``StateProvider.claim``). When the checkpoint spout is restarted, a
                running task claims its state again, with a larger epoch.

        Raises:
            FencedError: The state was claimed with a newer epoch, or somebody else has claimed it since this object
                did.
        """

    @abstractmethod
    def prepare_commit(self, txid: int) -> None:
        """Save the changes since the last prepare, separately from the committed state.

        Args:
            txid: The transaction of the checkpoint.
        """

    @abstractmethod
    def commit(self, txid: int | None = None) -> None:
        """Commit the changes that were prepared with ``txid``.

        Args:
            txid: The transaction of the checkpoint; None: save and commit all changes at once.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Roll back to the committed state."""

    def close(self) -> None:  # noqa: B027  # a state may have nothing to close
        """Close connections: the task ends."""


class KeyValueState(State, _Typed["K", "V"]):
    """A state that maps keys to values.

    Keys are strings, integers, or tuples of these. Values are anything that JSON can express, except None. ``get``
    returns None for a key that is not there, so ``put`` refuses None; use ``delete`` to remove a key. ``get`` returns
    what JSON makes of a value, from its ``put`` on: a tuple comes back as a list, an IntEnum as its number. If you change
    a list or a dict in place, put it again to save it.
    """

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: V) -> V: ...

    @overload
    def get(self, key: K, default: D) -> V | D: ...

    @abstractmethod
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of ``key``.

        Args:
            key: A string, an integer, or a tuple of these.
            default: Returned when there is no such key.
        """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of ``key``. It is stored at the next ``prepare_commit``, and nobody else sees it before that.

        Args:
            key: A string, an integer, or a tuple of these.
            value: Anything that JSON can express, except None.

        Raises:
            TypeError: The key or the value has a type that can't be saved.
            ValueError: The value can't be saved: it is None, or too large.
        """

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Remove ``key``.

        Args:
            key: A string, an integer, or a tuple of these.

        Returns:
            The value that it had; None if there was none.
        """

    @abstractmethod
    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all current keys with their values, in no particular order.

        Keys may be put or deleted during the iteration.
        """

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Iterate over the items, as Storm's KeyValueState does."""
        return self.items()
