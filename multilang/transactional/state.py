"""Where transactions are remembered, so that a coordinator or emitter that is started again goes on (Storm's TransactionalState)."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class TransactionalState(ABC):
    """A tree of JSON values by path, that of one topology: ``coordinator/currtx``, ``user/3/17``.

    ``conf``: the component's; ``id``: the topology's transactional id. Paths are relative to what is that topology's own.
    What was set is there when the call returns, whatever is killed then. Each task has one of its own.
    """

    def __init__(self, conf: Mapping[str, Any], id: str) -> None:
        self.conf = conf
        self.id = id

    @classmethod
    def check(cls, conf: Mapping[str, Any], id: str) -> None:
        """Called once where the embedded cluster is about to start a topology: StateError when it can't be opened now."""
        cls(conf, id).close()

    def claim(self) -> None:  # noqa: B027 - a store need not be able to tell
        """Called by the coordinator: no other topology may use this state meanwhile. Raises StateError when one does."""

    @abstractmethod
    def get_data(self, path: str) -> Any:
        """The value, or None."""

    @abstractmethod
    def set_data(self, path: str, value: Any) -> None:
        """Set or overwrite, parents included."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove the value; nothing happens when there is none."""

    @abstractmethod
    def list(self, path: str) -> Sequence[str]:
        """The names of what is directly below ``path``, in no order; none when there is no such path."""

    @abstractmethod
    def close(self) -> None:
        """The task ends."""
