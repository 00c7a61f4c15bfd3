"""State as Storm defines it: org.apache.storm.state's State, KeyValueState and StateProvider."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.errors import StateError
from multilang.state.names import SPOUT, TASKS_KEY, namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Generic, TypeVar

    from multilang.state.owner import OwnedPlace, Ownership
    from multilang.state.stored import Store, StoredState

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

    None is no value: it is what ``get`` returns for a key that is not there, so ``put`` refuses it, and ``delete`` removes a key.
    A value that is changed in place (a list, a dict) is saved when it is put again.
    """

    @abstractmethod
    def get(self, key: K, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of ``key``. TypeError or ValueError for what can't be saved, such as None.

        Nobody else sees it, and nothing of it is stored, before ``prepare_commit``.
        """

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

    Each task makes a provider of its own; who only looks (``multilang state ls``) makes one, too. docs/state-providers.md says of
    each method what it must guarantee.

    Attributes:
        config: The object in ``topology.state.provider.config``.
        conf: The whole conf, with ``topology.name``.
    """

    requires: Mapping[str, str] = {}
    """Packages that it needs on workers; see Component's."""

    durable: bool = True
    """Whether a task that is started again finds what it saved."""

    local: bool = False
    """Whether only this machine gets at what is stored, as with files, so that no executor of a Spark cluster does."""

    _owned: Ownership | None = None

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.conf = dict(conf)

    @abstractmethod
    def new_state(self, namespace: str) -> State:
        """The state of a namespace, as it was saved last; what was prepared and not committed included.

        Nothing is read before the state is claimed or, by somebody who only looks, first asked.
        """

    def stored(self, namespace: str, store: Store) -> StoredState:
        """Return the mapping in front of a store, with the serializers of the config and the cache of the conf."""
        from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
        from multilang.state.settings import cached_keys
        from multilang.state.stored import StoredState

        keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        return StoredState(namespace, store, keys, values, cached_keys(self.conf))

    def place(self) -> OwnedPlace | None:
        """Return where the owner of what is stored is written down. None: this provider can't tell of owners."""
        return None

    def namespaces(self) -> list[str]:
        """The namespaces that hold anything; unless overridden, those of all tasks that the topology was last started with."""
        state: Any = self.new_state(namespace(SPOUT, 0))
        try:
            tasks = state.get(TASKS_KEY) or {}
        finally:
            state.close()
        return [namespace(component, index) for component, count in tasks.items() for index in range(count)]

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Give these namespaces these committed contents (none: remove it), all of them or, after a crash, none.

        After ``claim``: FencedError when somebody else has claimed what is stored since.
        """
        raise StateError(f"{type(self).__name__} can't replace what it stores: define replace(self, states)")

    def adopt(self) -> int:
        """Give this topology's name to what is stored under another, or by an older version under none; the number of namespaces."""
        return 0

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        """The transactions that were committed and prepared last; (None, None) when that is not known."""
        return None, None

    def claim(self) -> int:
        """Become the owner of what is stored, and return the owner's epoch, which is larger than all before it.

        Unless overridden, the owner of ``place``. 0: this provider can't tell of owners, and nothing protects what it stores from
        a second topology.

        Raises:
            InUseError: Another run's owner is there.
        """
        if self._owned is None:
            from multilang.state.checked import place_of

            place = place_of(self)
            if place is None:
                return 0
            from multilang.state.owner import claim_for

            self._owned = claim_for(self.conf, place)
        return self._owned.epoch

    def check_free(self) -> None:
        """Called once where a topology is about to start: InUseError when another run's owner is there. Claims nothing."""
        from multilang.state.checked import place_of

        place = place_of(self)
        if place is not None:
            from multilang.state.owner import check_free_for

            check_free_for(self.conf, place)

    def check(self) -> None:  # noqa: B027  # not every provider can tell
        """Called once where a topology is about to start, or a command: StateError when nothing can be stored now."""

    def describe(self) -> str:
        """Where it stores, for people."""
        return type(self).__name__

    @property
    def epoch(self) -> int:
        """The epoch under which this provider has claimed ``place``; 0 when it has not."""
        return 0 if self._owned is None else self._owned.epoch

    def close(self) -> None:
        """The task ends: what was claimed is let go. Call ``super().close()`` in your own."""
        if self._owned is not None:
            self._owned.release()
            self._owned = None
