"""State as Storm defines it: org.apache.storm.state's State, KeyValueState and StateProvider."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.component.base import overload
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
    D = TypeVar("D")

    class _Typed(Generic[K, V]):
        pass

else:

    class _Typed:
        """A stand-in for ``typing.Generic``, so that a component's process need not import ``typing``."""

        def __class_getitem__(cls, item: Any) -> type:
            return cls


def unheard(step: str) -> None:
    """Ignore a step. This is the trace function when the conf names none."""


class State(ABC):
    """A task's state, which is saved in two phases. All methods are called in the task's thread.

    ``prepare_commit`` and ``commit`` return when their data is durable. A transaction may be prepared or committed more
    than once: after a crash the checkpoint spout repeats its last step.

    Attributes:
        trace: Called with the name of each step of saving; see ``multilang.state.trace``.
    """

    trace: Callable[[str], None] = staticmethod(unheard)

    def claim(self, epoch: int) -> None:  # noqa: B027  # a state that only its task can reach has nothing to claim
        """Take the state over before anything is read from it. From then on the previous owner can't write to it.

        Args:
            epoch: The epoch of the checkpoint spout (``StateProvider.claim``). When the checkpoint spout is started
                again, a task that is still alive claims its state again, with a larger epoch.

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
        """Forget everything that is not committed."""

    def close(self) -> None:  # noqa: B027  # a state may have nothing to close
        """Close connections: the task ends."""


class KeyValueState(State, _Typed["K", "V"]):
    """A state that maps keys to values.

    Keys are strings, integers, or tuples of these. Values are anything that JSON can express, except None. ``get``
    returns None for a key that is not there, so ``put`` refuses None; use ``delete`` to remove a key. If you change a
    list or a dict in place, put it again to save it.
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
            ValueError: The value can't be saved, as None or what is too large.
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


class StateProvider(ABC):
    """A factory of states. ``topology.state.provider`` names a subclass: ``"shop.state.MyProvider"``.

    Each task makes a provider of its own, and so does a command that only reads (``multilang state ls``).
    docs/state-providers.md says what each method must guarantee.

    Attributes:
        config: The object in ``topology.state.provider.config``.
        conf: The whole conf, with ``topology.name``.
        requires: The packages that workers need: import names, and what to install for each; see
            ``Component.requires``.
        durable: Whether a task that is started again finds the state that it saved.
        local: Whether only this machine can reach the stored states, as with files. Executors of a Spark cluster can't
            use them then.
    """

    requires: Mapping[str, str] = {}

    durable: bool = True

    local: bool = False

    _owned: Ownership | None = None

    def __init__(self, config: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.conf = dict(conf)

    @abstractmethod
    def new_state(self, namespace: str) -> State:
        """Return the state of a namespace as it was saved last, including what was prepared and not committed.

        Nothing may be read before the state is claimed or, when it is only inspected, before the first question.

        Args:
            namespace: ``COMPONENT-INDEX``, where INDEX is the task's index within its component.
        """

    def stored(self, namespace: str, store: Store) -> StoredState:
        """Return a KeyValueState in front of a store.

        It uses the serializers of ``config`` and the cache size of ``conf``.

        Args:
            namespace: The namespace, for messages.
            store: The store of that namespace's bytes.
        """
        from multilang.state.serializers import JsonKeySerializer, JsonSerializer, serializer
        from multilang.state.settings import cached_keys
        from multilang.state.stored import StoredState

        keys = serializer(self.config, "keySerializerClass", JsonKeySerializer)
        values = serializer(self.config, "valueSerializerClass", JsonSerializer)
        return StoredState(namespace, store, keys, values, cached_keys(self.conf))

    def place(self) -> OwnedPlace | None:
        """Return the place that records the owner of the stored states; None if this provider keeps no owner."""
        return None

    def namespaces(self) -> list[str]:
        """Return the namespaces that hold anything.

        Unless overridden, these are the namespaces of all tasks that the topology had at its last start.
        """
        state: Any = self.new_state(namespace(SPOUT, 0))
        try:
            tasks = state.get(TASKS_KEY) or {}
        finally:
            state.close()
        return [namespace(component, index) for component, count in tasks.items() for index in range(count)]

    def replace(self, states: Mapping[str, Mapping[Any, Any]]) -> None:
        """Replace the committed contents of these namespaces: all of them or, after a crash, none.

        Call ``claim`` first.

        Args:
            states: The new contents by namespace; empty contents remove the namespace.

        Raises:
            FencedError: Somebody else has claimed the stored states since.
            StateError: This provider can't replace what it stores.
        """
        raise StateError(f"{type(self).__name__} can't replace what it stores: define replace(self, states)")

    def adopt(self) -> int:
        """Give this topology's name to states that are stored under another name, or by an older version under none.

        Returns:
            The number of namespaces.
        """
        return 0

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        """Return the transactions that were committed and prepared last; (None, None) if they are not known.

        Args:
            namespace: The namespace.
        """
        return None, None

    def claim(self) -> int:
        """Become the owner of the stored states.

        Unless overridden, this claims ``place``.

        Returns:
            The owner's epoch, which is larger than all before it. 0 if the provider keeps no owner: then nothing
            protects the states from a second topology.

        Raises:
            InUseError: Another run owns the states.
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
        """Check that no other run owns the states. Called once before a topology starts; it claims nothing.

        Raises:
            InUseError: Another run owns the states.
        """
        from multilang.state.checked import place_of

        place = place_of(self)
        if place is not None:
            from multilang.state.owner import check_free_for

            check_free_for(self.conf, place)

    def check(self) -> None:  # noqa: B027  # by default nothing is checked
        """Check that states can be stored now. Called once before a topology or a command starts.

        Raises:
            StateError: Nothing can be stored now.
        """

    def describe(self) -> str:
        """Return the place of the states in the words of a message: "SQLite file /var/lib/shop/state.sqlite"."""
        return type(self).__name__

    @property
    def epoch(self) -> int:
        """The epoch under which this provider has claimed ``place``; 0 if it has not claimed it."""
        return 0 if self._owned is None else self._owned.epoch

    def close(self) -> None:
        """Release what was claimed: the task ends. A subclass that overrides this calls ``super().close()``."""
        if self._owned is not None:
            self._owned.release()
            self._owned = None
