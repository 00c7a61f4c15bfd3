"""The states of a topology's stateful bolts, in the form that Storm's checkpoints have.

An executor writes nothing: a task reads the committed state and sends its changes to the driver, which commits those of the attempt
that Spark counts. So a task that Spark runs twice, or gives up, has changed nothing.

The namespaces, the transactions and the checkpoint spout's own entry are those of ``multilang.state``. So a topology
that ran on Storm or on the embedded cluster continues here from the same store, and back; a commit that was cut short by
one engine is completed by the other.
"""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

from multilang.component.errors import ConfigError
from multilang.errors import SparkJobError
from multilang.settings import STORE
from multilang.state.admin import COORDINATOR, StoredStates
from multilang.state.api import KeyValueState
from multilang.state.bolt import Stateful, promise_state
from multilang.state.checked import check_whole, noted_whole, state_of, txids_of
from multilang.state.databases import MemoryStateProvider
from multilang.state.names import (
    COMMITTED,
    COMMITTING,
    PREPARING,
    SPOUT,
    STATE_KEY,
    TASKS_KEY,
    namespace,
    split_namespace,
)
from multilang.state.provider import StateProvider
from multilang.state.providers import MEMORY, provider_from, provider_of
from multilang.state.serializers import Serializer
from multilang.state.settings import CONFIG, PROVIDER, divided_otherwise
from multilang.state.source import POSITION, SourceExecutor
from multilang.state.steps import Steps
from multilang.state.stored import Saved, StoredState
from multilang.store.calls import is_own
from multilang.store.errors import StateError
from multilang.store.interface import Store
from multilang.store.opening import carry, is_url, open_store
from multilang.topology.errors import TopologyError
from spark_bridge.job.bolts import StageBolt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from multilang.engine.links import Links
    from multilang.engine.plan import TaskPlan
    from multilang.topology.model import Topology
    from spark_bridge.job.routes import FailedRoots

    Where = str | os.PathLike[str] | Mapping[str, Any]
    LogPlace = tuple[str, int]  # a log's id, and the row where a batch ends
    Rows = Sequence[tuple[bytes, bytes | None]]

QUERIES_KEY = "__queries"  # beside the checkpoint spout's state: query -> its last batch that is in the states
ROWS_KEY = "__rows"  # beside it: query -> that batch, and what identifies its rows
LOGS_KEY = "__logs"  # beside it: spout -> id of its log, the row in the log, the transaction that has the position


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
    # It has its own ways to keep keys in memory.
    return StoredState(name, _Behind(provider, name, state), pickled, pickled, 0)


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


def is_stateful(topology: Topology) -> bool:
    """Return whether the topology's builder added checkpoints."""
    return SPOUT in topology.components


def conf_of(where: Where) -> dict[str, Any]:
    """Return the conf entries of a place: an SQLite file's path, the URL of a store, or the entries themselves."""
    if not isinstance(where, str | os.PathLike):
        return dict(where)
    text = os.fspath(where)
    url = text if is_url(text) else f"sqlite://{os.path.abspath(os.path.expanduser(text))}"
    try:
        open_store(url, setting="state").close()
    except ConfigError as problem:
        raise TopologyError(str(problem)) from None
    return {PROVIDER: None, CONFIG: {}, STORE: url}


def check_next(batch: int, last: int | None, where: str) -> None:
    """Raise SparkJobError unless ``batch`` follows the query's last batch that ``where`` has (None: it has none)."""
    if batch != (0 if last is None else last + 1):
        seen = "no batch of this query" if last is None else f"its batches up to {last}"
        raise SparkJobError(
            f"the checkpoint is at batch {batch}, and {where} has {seen}: they don't belong together. Name the place that the "
            "query had; or begin a new checkpoint, which reads its sources from their beginning, and with it an empty place"
        )


def check_rows(batch: int, rows: object, known: object, where: str) -> None:
    """Raise SparkJobError if a batch that ``where`` has was planned anew, with other ``rows`` than the ``known`` ones."""
    if None not in (rows, known) and rows != known:
        raise SparkJobError(
            f"batch {batch} has other rows in this checkpoint than those that {where} has of it, so that some would be counted twice or "
            "not at all: the checkpoint is an older copy, or lost its last files with its machine, and Spark has planned the batch "
            "anew. Give the query the checkpoint as it was; or begin a new checkpoint, which reads its sources from their "
            "beginning, and with it an empty place"
        )


class _Begun:
    """The states with which a run begins.

    ``provider``: of the states; ``conf``: the entries with which a task reads them.
    """

    def __init__(self, provider: StateProvider) -> None:
        self.provider = provider
        self._open: dict[str, StoredState] = {}

    def moved(self, positions: Mapping[str, Sequence[Any]]) -> dict[str, Rows]:
        """Return the changes, by namespace, that set the positions of spouts, as ``save`` and ``fill`` take them."""
        changes: dict[str, Rows] = {}
        for spout, each in positions.items():
            for index, position in enumerate(each):
                state = self._state(namespace(spout, index))
                state.put(POSITION, position)
                changes[state.namespace] = state.changes()
        return changes

    def _state(self, name: str) -> StoredState:
        if name not in self._open:
            self._open[name] = open_state(self.provider, name)
        return self._open[name]


class NoStates(_Begun):
    """Empty states. ``after``: the place for the states at the job's end, which have the form that this place needs."""

    saving = Saving(0, {}, MemoryStateProvider)

    def __init__(self, after: States | None = None) -> None:
        config = {} if after is None else after.provider.config
        form = {name: config[name] for name in ("keySerializerClass", "valueSerializerClass") if name in config}
        self.conf: dict[str, Any] = {PROVIDER: MEMORY, CONFIG: form}
        super().__init__(provider_of(self.conf))


class States(_Begun):
    """The states of ``topology`` in one place: settled, and claimed until ``close``.

    ``where``: None for the place in the conf.

    ``conf``: the entries with which a task reads them. Raises StateError for a store that can't be used,
    TopologyError for states of another topology.
    """

    def __init__(self, topology: Topology, where: Where | None) -> None:
        self.topology = topology
        self._stored = stored = StoredStates(topology, {} if where is None else conf_of(where))
        super().__init__(stored.provider)
        self._names = [
            namespace(id, index)
            for id, spec in topology.components.items()
            if isinstance(getattr(spec.component, "wrapped", None), Stateful)
            for index in range(spec.tasks)
        ]
        self._steps = Steps(stored.conf, COORDINATOR)
        try:
            stored.settle()
            self.epoch = stored.claim()
            self._coordinator = open_state(self.provider, COORDINATOR)
            self._coordinator.claim(self.epoch)
            self._steps.watch(self._coordinator)
            check_whole(self.provider, self._coordinator, self._tasks())
            self._check_tasks()
        except BaseException:
            stored.close()
            raise

    @property
    def conf(self) -> dict[str, Any]:
        """The entries that name this place, on whatever machine a task runs."""
        return self.provider.portable()

    @property
    def is_local(self) -> bool:
        """True if other machines can't read it."""
        return self.provider.local

    @property
    def txid(self) -> int:
        """The last transaction; -1 when there was none."""
        return (self._coordinator.get(STATE_KEY) or [-1, COMMITTED])[0]  # type: ignore[no-any-return]

    @property
    def saving(self) -> Saving:
        """The next transaction, in the form that tasks get."""
        store = getattr(self.provider, "store", None)
        return Saving(
            self.txid + 1,
            {name: self._state(name).store.txids()[0] for name in self._names},
            type(self.provider),
            type(store) if isinstance(store, Store) and is_own(store) else None,
        )

    @property
    def is_empty(self) -> bool:
        """True if nothing was ever stored."""
        return not self._stored.namespaces() and self._coordinator.get(STATE_KEY) is None

    def begin(self, query: str, batch: int, rows: str | None = None) -> int | None:
        """Return the transaction that a streaming query's batch will be, or None if these states have the batch
        already.

        ``rows``: what identifies the batch's rows, if that is known.

        Raises SparkJobError when it is neither the query's last batch nor the one after it, and when the states have it with
        other rows.
        """
        queries = self._coordinator.get(QUERIES_KEY) or {}
        last = queries.get(query)
        where = f"the state in {self.describe()}"
        if last == batch:
            noted, known = (self._coordinator.get(ROWS_KEY) or {}).get(query, (None, None))
            check_rows(batch, rows, known if noted == batch else None, where)
            return None
        check_next(batch, last, where)
        return self.txid + 1

    def followed(self, spout: str, log: str) -> int | None:
        """Return the row of the spout's log where the last transaction ended.

        None: its position comes from another log.
        """
        found, row, txid = (self._coordinator.get(LOGS_KEY) or {}).get(spout, (None, 0, 0))
        return row if (found, txid) == (log, self.txid) else None

    def follow(self, spout: str, place: LogPlace) -> None:
        """Store that this spout resumes at this place of its log, which is where the states are."""
        self._coordinator.put(LOGS_KEY, {**(self._coordinator.get(LOGS_KEY) or {}), spout: [*place, self.txid]})
        self._coordinator.commit()

    def save(
        self,
        changes: Mapping[str, Rows],
        query: str | None = None,
        batch: int = 0,
        logs: Mapping[str, LogPlace] | None = None,
        rows: str | None = None,
    ) -> None:
        """Commit the changes of the states, by namespace, and the number of this batch: all of it, or nothing.

        ``logs``: spout -> the place in its log of the position that is among the changes. ``rows``: what identifies the
        batch's rows.

        These are Storm's three phases. From the moment when COMMITTING is stored, the next owner commits the
        transaction. Raises FencedError when another run has taken the states over.
        """
        txid = self.txid + 1
        self._remember(txid, PREPARING)
        names = list(dict.fromkeys([*self._names, *changes]))
        for name in names:
            state = self._traced(name, "PREPARE", txid)
            state.store.prepare(txid, changes.get(name, ()))
        if query is not None:
            queries = self._coordinator.get(QUERIES_KEY) or {}
            self._coordinator.put(QUERIES_KEY, {**queries, query: batch})
            if rows is not None:
                noted = self._coordinator.get(ROWS_KEY) or {}
                self._coordinator.put(ROWS_KEY, {**noted, query: [batch, rows]})
        if logs:
            self._coordinator.put(LOGS_KEY, {spout: [*place, txid] for spout, place in logs.items()})
        self._remember(txid, COMMITTING)
        for name in names:
            self._traced(name, "COMMIT", txid).store.commit(txid)
        written = {split[0] for name in self._names if (split := split_namespace(name))}
        noted_whole(self._coordinator, written, self._tasks())
        self._remember(txid, COMMITTED)
        self._steps("done")

    def fill(self, before: States | NoStates, changes: Mapping[str, Rows]) -> None:
        """Store the states of ``before`` with ``changes`` in this empty place: all of it, or nothing."""
        contents: dict[str, dict[Any, Any]] = {}
        others = before._stored.namespaces() if isinstance(before, States) else []  # such as the positions of sources
        for name in dict.fromkeys([*self._names, *others, *changes]):
            state = open_state(before.provider, name)
            try:
                state.apply_changes(changes.get(name, ()))
                contents[name] = dict(state.items())
            finally:
                state.close()
        txid = before.saving.txid
        contents[COORDINATOR] = {TASKS_KEY: self._tasks(), STATE_KEY: [txid, COMMITTED]}
        self.close_states()
        self.provider.replace(contents)
        self._coordinator.close()
        self._coordinator = open_state(self.provider, COORDINATOR)
        self._coordinator.claim(self.epoch)

    def positions(self, spout: str) -> list[Any]:
        """Return the position of each task of a spout; None: it is at its beginning."""
        found = []
        for index in range(self.topology[spout].tasks):
            state = open_state(self.provider, namespace(spout, index))
            found.append(state.get(POSITION))
            state.close()
        return found

    def items(self, component: str) -> Iterator[tuple[Any, Any]]:
        """Return all keys and values of a component's tasks."""
        for index in range(self.topology[component].tasks):
            state = open_state(self.provider, namespace(component, index))
            try:
                yield from state.items()
            finally:
                state.close()

    def describe(self) -> str:
        """Return the place of the states, for messages."""
        return self.provider.describe()

    def close_states(self) -> None:
        """Close the stored states, and keep the place claimed."""
        for state in self._open.values():
            state.close()
        self._open.clear()

    def close(self) -> None:
        """Release the place, so that another owner may claim it."""
        self.close_states()
        self._coordinator.close()
        self._stored.close()

    def _state(self, name: str) -> StoredState:
        if name not in self._open:
            super()._state(name).claim(self.epoch)
        return self._open[name]

    def _traced(self, name: str, action: str, txid: int) -> StoredState:
        state = self._state(name)
        steps = Steps(self._stored.conf, name)
        steps.watch(state)
        steps.at(action, txid)
        return state

    def _remember(self, txid: int, how: str) -> None:
        self._steps.at(how, txid)
        self._coordinator.put(STATE_KEY, [txid, how])
        self._coordinator.commit()

    def _tasks(self) -> dict[str, int]:
        spout: Any = self.topology.components[SPOUT].component
        return {id: self.topology[id].tasks for id in spout.stateful}

    def _check_tasks(self) -> None:
        """Refuse states that were divided among another number of tasks, as the checkpoint spout does."""
        stored: dict[str, int] = self._coordinator.get(TASKS_KEY) or {}
        for component, tasks in self._tasks().items():
            before = stored.get(component, tasks)
            if before != tasks:
                is_source = isinstance(self.topology[component].component, SourceExecutor)
                raise TopologyError(divided_otherwise(component, before, tasks, self.describe(), is_source))
        self._coordinator.put(TASKS_KEY, {**stored, **self._tasks()})


def initial_and_saved(
    topology: Topology, initial: Where | None, save: Where | None
) -> tuple[States | None, States | None]:
    """Return the places that ``run_topology`` reads and writes, which is one object if they are the same."""
    if not is_stateful(topology):
        if initial is None and save is None:
            return None, None
        raise TopologyError(
            f"topology {topology.name!r} has no stateful bolt, whose state could be read or saved: leave out state, initial_state and save_state"
        )
    same = initial is not None and save is not None and conf_of(initial) == conf_of(save)
    before = None if initial is None else States(topology, initial)
    try:
        if same:
            return before, before
        after = None if save is None else States(topology, save)
    except BaseException:
        if before is not None:
            before.close()
        raise
    if after is not None and (why := _why_not_filled(after)):
        for states in (before, after):
            if states is not None:
                states.close()
        raise StateError(f"save_state: {why}")
    return before, after


def _why_not_filled(place: States) -> str | None:
    """Return the reason why a job's states can't be put there all at once, or None."""
    if not place.is_empty:
        return f"{place.describe()} holds state already; name an empty place, or give this one as state to continue from it"
    kind = type(place.provider)
    if kind.replace is StateProvider.replace:
        return (
            f"{place.describe()} can't take the whole state at once: {kind.__module__}.{kind.__qualname__} has no replace(states); "
            "define it, or give the place as state, instead of save_state: the job then begins with what is there, which may be nothing"
        )
    return None


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
