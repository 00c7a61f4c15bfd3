"""Where transactions are remembered, so that a coordinator or emitter that is started again goes on (Storm's TransactionalState)."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
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

    def update(self, values: Mapping[str, Any], deleted: Iterable[str] = ()) -> None:
        """Set values by their paths, and then remove others. A store that can does it all at once, which takes less time."""
        for path, value in values.items():
            self.set_data(path, value)
        for path in deleted:
            self.delete(path)

    @abstractmethod
    def list(self, path: str) -> Sequence[str]:
        """The names of what is directly below ``path``, in no order; none when there is no such path."""

    def last_of_each(self, path: str, last_txid: float = float("inf")) -> dict[str, Any]:
        """By the name of what is directly below ``path``, the value of the last of the transactions below that, to ``last_txid``."""
        last = {}
        for name in self.list(path):
            txids = [txid for txid in map(int, self.list(f"{path}/{name}")) if txid <= last_txid]
            if txids:
                last[name] = self.get_data(f"{path}/{name}/{max(txids)}")
        return last

    @abstractmethod
    def close(self) -> None:
        """The task ends."""
