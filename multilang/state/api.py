"""State as Storm defines it: org.apache.storm.state's State, KeyValueState and StateProvider."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Generic, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

    class _Typed(Generic[K, V]):
        pass

else:

    class _Typed:
        """``KeyValueState[str, int]`` is for type checkers; the module ``typing`` is none of a component's process's."""

        def __class_getitem__(cls, item: Any) -> type:
            return cls


def unheard(step: str) -> None:
    """What a step is told to when nobody asks for it."""


class State(ABC):
    """What a task keeps, saved in two phases. Everything is called in the task's thread.

    ``prepare_commit`` and ``commit`` return when what they save is durable. The same transaction may be prepared again,
    and committed again: after a crash the checkpoint spout repeats what it was doing.
    """

    trace: Callable[[str], None] = staticmethod(unheard)
    """Called with the name of each step of saving; see ``multilang.state.trace``."""

    def claim(self, epoch: int) -> None:  # noqa: B027  # not every state can tell
        """Take the state over, before anything of it is read: whoever claimed it before can write no more.

        Args:
            epoch: The number of the checkpoint spout that asks for it (``StateProvider.claim``). A task that lives on claims its
                state again, with a larger one, when the checkpoint spout was started again.

        Raises:
            FencedError: The state was claimed with a newer epoch or, after this one had claimed it, by somebody else.
        """

    @abstractmethod
    def prepare_commit(self, txid: int) -> None:
        """Save what changed since the last prepare, apart from what is committed."""

    @abstractmethod
    def commit(self, txid: int | None = None) -> None:
        """Make what was prepared with ``txid`` the committed state; without ``txid``, all that changed, at once."""

    @abstractmethod
    def rollback(self) -> None:
        """Forget everything that is not committed."""

    def close(self) -> None:  # noqa: B027  # a state may have nothing to close
        """The task ends."""


class KeyValueState(State, _Typed["K", "V"]):
    """A mapping. Keys are strings, integers, or tuples of these; values are what JSON has, but None.

    A value that is changed in place (a list, a dict) is saved when it is put again.
    """

    @abstractmethod
    def get(self, key: K, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of ``key``. TypeError or ValueError for what can't be saved."""

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Remove ``key``; its value, None when there was none."""

    @abstractmethod
    def items(self) -> Iterator[tuple[K, V]]:
        """All keys with their values as they are now, in no particular order; others may be put or deleted meanwhile."""

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """As ``items``, as Storm's KeyValueState is iterated."""
        return self.items()


class StateProvider(ABC):
    """Makes states. ``topology.state.provider`` names a subclass: ``"shop.state.MyProvider"``.

    ``config``: the object in ``topology.state.provider.config``; ``conf``: the whole conf, with ``topology.name``. Each
    task makes a provider of its own. Without ``namespaces`` and ``replace``, ``multilang state`` can't serve it.
    """

    requires: Mapping[str, str] = {}
    """Packages that it needs on workers; see Component's."""

    durable: bool = True
    """Whether a task that is started again finds what it saved."""

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.conf = dict(conf)

    @abstractmethod
    def new_state(self, namespace: str) -> State:
        """The state of a namespace, as it was saved last; what was prepared and not committed included.

        Nothing is read before the state is claimed or, by somebody who only looks, first asked.
        """

    def namespaces(self) -> list[str]:
        """The namespaces that hold anything."""
        raise StateError(f"{type(self).__name__} can't list what it stores")

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Give these namespaces these committed contents (none: remove it), all of them or, after a crash, none.

        After ``claim``: FencedError when somebody else has claimed what is stored since.
        """
        raise StateError(f"{type(self).__name__} can't replace what it stores")

    def adopt(self) -> int:
        """Give this topology's name to what an older version stored under none; the number of namespaces."""
        return 0

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        """The transactions that were committed and prepared last."""
        return None, None

    def claim(self) -> int:
        """Become the owner of what is stored, and return the owner's epoch, which is larger than all before it.

        0: this provider can't tell of owners, and nothing protects what it stores from a second topology.

        Raises:
            InUseError: Another run's owner is there.
        """
        return 0

    def check_free(self) -> None:  # noqa: B027  # not every provider can tell
        """Called once where a topology is about to start: InUseError when another run's owner is there. Claims nothing."""

    def check(self) -> None:  # noqa: B027  # not every provider can tell
        """Called once where a topology is about to start, or a command: StateError when nothing can be stored now."""

    def describe(self) -> str:
        """Where it stores, for people."""
        return type(self).__name__

    def close(self) -> None:  # noqa: B027  # a provider may have nothing to close
        """The task ends."""
