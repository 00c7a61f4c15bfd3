"""The factory of states, Storm's StateProvider: the base class for each kind of storage."""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.state.names import SPOUT, TASKS_KEY, namespace
from multilang.state.settings import CONFIG, PROVIDER
from multilang.store.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.state.api import State


class StateProvider(ABC):
    """A factory of states. ``topology.state.provider`` names a subclass: ``"shop.state.MyProvider"``.

    Each task makes a provider of its own, and so does a command that only reads (``multilang state ls``).
    docs/state-providers.md has the guarantees of each method.

    Attributes:
        config: The object in ``topology.state.provider.config``.
        conf: The whole conf, with ``topology.name``.
        requires: The packages that workers need: import names, and what to install for each; see
            ``Component.requires``.
        durable: Whether a restarted task finds the state that it saved.
        local: Whether only this machine can reach the stored states, as with files. Executors of a Spark cluster can't
            use them then.
    """

    requires: Mapping[str, str] = {}

    durable: bool = True

    local: bool = False

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

    def portable(self) -> dict[str, Any]:
        """Return the conf entries that name the same place in processes with another working folder or user."""
        return {PROVIDER: self.conf.get(PROVIDER), CONFIG: self.config}

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

    def txids(self, namespace: str) -> tuple[int | None, int | None]:
        """Return the transactions that were committed and prepared last; (None, None) if they are not known.

        Args:
            namespace: The namespace.
        """
        return None, None

    def claim(self) -> int:
        """Become the owner of the stored states, before anything is read. Repeated, it returns the same epoch.

        Returns:
            The owner's epoch, which is larger than all before it. 0, unless overridden: the provider stores no owner, and
            nothing protects the states from a second topology.

        Raises:
            InUseError: Another run owns the states.
        """
        return 0

    def renew(self) -> int:
        """Raise the epoch of this provider's claim. The checkpoint spout calls it before it repeats a step that failed.

        A task may have been stopped before it got that step, and have been replaced. When it is resumed, it must claim
        nothing.

        Returns:
            The new epoch; 0 if the provider stores no owner: then tasks continue with their present epoch.

        Raises:
            FencedError: Another run or process has claimed the stored states.
        """
        return 0

    def check_owner(self) -> None:  # noqa: B027  # by default there is no owner
        """Check that this provider still owns the stored states, if it has claimed them. Called before each checkpoint.

        Raises:
            FencedError: Another run or process has claimed them.
            StoreGoneError: They were deleted, or restored from an older copy.
        """

    def check_free(self) -> None:  # noqa: B027  # by default there is no owner
        """Check that no other run owns the states. Called once before a topology starts; it claims nothing.

        Raises:
            InUseError: Another run owns the states.
        """

    def check(self) -> None:  # noqa: B027  # by default nothing is checked
        """Check that states can be stored now. Called once before a topology or a command starts.

        Raises:
            StateError: Nothing can be stored now.
        """

    def describe(self) -> str:
        """Return the place of the states in the words of a message: "SQLite file /var/lib/shop/state.sqlite"."""
        return type(self).__name__

    def close(self) -> None:  # noqa: B027  # by default nothing is open
        """Release the claim: the task ends."""
