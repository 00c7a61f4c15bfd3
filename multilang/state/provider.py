"""The factory of states, Storm's StateProvider: the base of all that states can be stored in."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.calls import class_of, look_at
from multilang.state.errors import StateError, WrongProviderError
from multilang.state.names import SPOUT, TASKS_KEY, namespace
from multilang.state.serializers import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.state.api import State
    from multilang.state.calls import Calls
    from multilang.state.owner import OwnedPlace, Ownership
    from multilang.state.stored import Store, StoredState

_PLACE: Calls = {
    "owner": ((),),
    "beats": ((),),
    "replace": ((0, None),),
    "beat": ((1,),),
    "describe": ((),),
    "close": ((),),
}


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

    def portable_config(self) -> dict[str, Any]:
        """Return ``config`` in a form that names the same place in processes with another working folder or user."""
        return self.config

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
            place = place_of(self)
            if place is None:
                return 0
            from multilang.state.owner import claim_for

            self._owned = claim_for(self.conf, place)
        return self._owned.epoch

    def renew(self) -> int:
        """Raise the epoch of this provider's claim. The checkpoint spout calls it before it repeats a step that failed.

        A task may have been stopped before it heard of that step, and have been replaced. When it wakes up, it must claim
        nothing.

        Returns:
            The new epoch; 0 if this provider has not claimed ``place``: then tasks go on with the epoch that they have.

        Raises:
            FencedError: Another run or process has claimed the stored states.
        """
        return 0 if self._owned is None else self._owned.renew()

    def check_owner(self) -> None:
        """Check that the record of this provider's claim is there, if it has claimed ``place``. Called before each checkpoint.

        Raises:
            StoreGoneError: It was deleted, or put back to an older copy.
        """
        if self._owned is not None:
            self._owned.check_record()

    def check_free(self) -> None:
        """Check that no other run owns the states. Called once before a topology starts; it claims nothing.

        Raises:
            InUseError: Another run owns the states.
        """
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


def place_of(provider: StateProvider) -> OwnedPlace | None:
    """Return the place that records the owner of the stored states; None if the provider keeps no owner."""
    place: Any = provider.place()
    if place is None:
        return None
    from multilang.state.owner import OwnedPlace

    if not isinstance(place, OwnedPlace):
        raise WrongProviderError(
            f"{class_of(provider)}.place() returned {shown(place)}; return a multilang.state.OwnedPlace, or None if the provider "
            "can't tell of owners"
        )
    look_at(place, OwnedPlace, _PLACE)
    return place
