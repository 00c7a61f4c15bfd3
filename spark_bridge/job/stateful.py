"""A stateful bolt's task inside a Spark task, which reads committed state and sends its changes to the driver.

An executor writes nothing, so a task that Spark runs twice, or gives up, has changed nothing. The driver commits the
changes of the attempt that Spark kept.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, NamedTuple

from multilang.errors import SparkJobError
from multilang.state.api import KeyValueState
from multilang.state.bolt import promise_state
from multilang.state.checked import state_of, txids_of
from multilang.state.names import namespace
from multilang.state.providers import provider_from
from multilang.state.serializers import Serializer
from multilang.state.stored import Saved, StoredState
from multilang.store.opening import carry
from spark_bridge.job.tasks import StageBolt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from multilang.state import StateProvider
    from multilang.store import Store
    from spark_bridge.job.tuples import FailedRoots

    Rows = Sequence[tuple[bytes, bytes | None]]


class Saving(NamedTuple):
    """The transaction to come, in the form that tasks get.

    ``txid``: its number. ``committed``: namespace -> the transaction whose state the task begins with. ``kind``: the
    class of the provider, and ``store`` that of a user's store, which are sent because an executor may not be able to import them.
    """

    txid: int
    committed: Mapping[str, int | None]
    kind: type[StateProvider]
    store: type[Store] | None = None

    @property
    def kinds(self) -> list[type[StateProvider | Store]]:
        """The classes."""
        return [self.kind] if self.store is None else [self.kind, self.store]


def split(payload: bytes) -> tuple[bytes, Rows]:
    """Split what ``StatefulTask.state`` returned into the bolt's other attributes and the changes of its state."""
    # Written by a task of this very job and carried by Spark's own shuffle, which pickles as well.
    return pickle.loads(payload)  # type: ignore[no-any-return]  # noqa: S301


def joined(attributes: bytes, rows: Rows) -> bytes:
    """Join what ``split`` takes apart."""
    return pickle.dumps((attributes, rows), 5)


def open_state(provider: StateProvider, name: str) -> StoredState:
    """Open the state of a namespace, as one that can tell its changes."""
    state: Any = state_of(provider, name, KeyValueState)
    if isinstance(state, StoredState):
        return state
    pickled = _Pickled()
    return StoredState(
        name, _Behind(provider, name, state), pickled, pickled, 0
    )  # it has its own ways to keep keys in memory


class _Pickled(Serializer):
    """Pickling between the tasks of a job and its driver, as Spark's own shuffle does it."""

    def encode(self, value: Any) -> bytes:
        return pickle.dumps(value, 5)

    def decode(self, data: bytes) -> Any:
        return pickle.loads(data)  # noqa: S301


class _Behind(Saved):
    """A provider's own key-value state as a store. A task only reads it; the driver writes the tasks' changes to it."""

    def __init__(self, provider: StateProvider, name: str, state: KeyValueState[Any, Any]) -> None:
        self._provider = provider
        self._name = name
        self._state = state

    def claim(self, epoch: int) -> None:
        self._state.claim(epoch)

    def txids(self) -> tuple[int | None, int | None]:
        return txids_of(self._provider, self._name)

    def load(self, key: bytes) -> bytes | None:
        value = self._state.get(pickle.loads(key))  # noqa: S301
        return None if value is None else pickle.dumps(value, 5)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._state.items():
            yield pickle.dumps(key, 5), pickle.dumps(value, 5)

    def prepare(self, txid: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._put(rows)
        self.trace("write")
        self._state.prepare_commit(txid)
        self.trace("synced")

    def commit(self, txid: int) -> None:
        self.trace("write")
        self._state.commit(txid)
        self.trace("synced")

    def write(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._put(rows)
        self.trace("write")
        self._state.commit()
        self.trace("synced")

    def rollback(self) -> None:
        self._state.rollback()

    def close(self) -> None:
        self._state.close()

    def _put(self, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        for raw, data in rows:
            key = pickle.loads(raw)  # noqa: S301
            if data is None:
                self._state.delete(key)
            else:
                self._state.put(key, pickle.loads(data))  # noqa: S301


class StatefulTask(StageBolt):
    """A StageBolt with a state."""

    saved: StoredState

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots, saving: Saving) -> None:
        super().__init__(plan, links, failed, anchored=True)
        self._saving = saving

    def start(self, state: bytes | None) -> None:
        """Start as StageBolt does; ``state`` also has the changes of earlier rounds."""
        attributes, rows = (None, ()) if state is None else split(state)
        name = namespace(self.plan.component, self.plan.context.task_index)
        if self._saving.store is not None:
            carry(self._saving.store)
        self._provider = provider_from(self._saving.kind, self.plan.conf)
        self.saved = open_state(self._provider, name)
        before, (now, prepared) = self._saving.committed.get(name), self.saved.store.txids()
        if now != before:
            raise SparkJobError(
                f"{self.plan}: its state was to be that of transaction {before}, and is that of {now}: what is computed now "
                "would be of another state; read a batch's outputs before it is committed"
            )
        if prepared not in (None, now):
            raise SparkJobError(
                f"{self.plan}: somebody else prepares transaction {prepared} in its state, upon which nothing can be computed: "
                "end the other topology, query or job, and begin again"
            )
        self.saved.apply_changes(rows)
        super().start(attributes)

    def started(self, component: Any, collector: Any) -> Callable[[Any], object]:
        promise_state(component)
        execute = super().started(component, collector)
        component.init_state(self.saved)
        return execute

    def finish(self) -> None:
        """Call the bolt's ``pre_prepare``, when all tuples of the round are processed."""
        self.must(lambda: self._component.pre_prepare(self._saving.txid), "in pre_prepare")

    def state(self) -> bytes:
        """Return the bolt's attributes, and the changes of its state."""
        return joined(super().state() or b"", self.saved.changes())

    def close(self) -> None:
        super().close()
        self.saved.close()
        self._provider.close()
