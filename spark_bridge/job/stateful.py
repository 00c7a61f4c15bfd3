"""A stateful bolt's task inside a Spark task: reads what is committed, and sends what changed to who commits it.

An executor writes nothing. So a task that Spark runs twice, or gives up, has changed nothing: of all attempts the changes of
the one that Spark kept reach the driver.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, NamedTuple

from multilang.component.report import describe
from multilang.state.names import namespace
from multilang.state.providers import provider_of
from multilang.state.stored import StoredState
from spark_bridge.job.errors import SparkJobError
from spark_bridge.job.tasks import BoltTask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from multilang.local.links import Links
    from multilang.local.plan import TaskPlan
    from multilang.state import StateProvider

    Rows = Sequence[tuple[bytes, bytes | None]]


class Saving(NamedTuple):
    """``txid``: of what is being processed; ``committed``: namespace -> the transaction that it begins with."""

    txid: int
    committed: Mapping[str, int | None]


def split(payload: bytes) -> tuple[bytes, Rows]:
    """Of what ``StatefulTask.state`` gave: the bolt's other attributes, and what changed in its state."""
    # Written by a task of this very job and carried by Spark's own shuffle, which pickles as well.
    return pickle.loads(payload)  # type: ignore[no-any-return]  # noqa: S301


def joined(attributes: bytes, rows: Rows) -> bytes:
    """What ``split`` takes apart."""
    return pickle.dumps((attributes, rows), 5)


def open_state(provider: StateProvider, name: str) -> StoredState:
    """The state of a namespace; SparkJobError for one that can't tell what changed in it."""
    state = provider.new_state(name)
    if not isinstance(state, StoredState):
        raise SparkJobError(
            f"the state {name!r} of {provider.describe()} is a {type(state).__name__}: on Spark what changed in a state is "
            "saved by the driver, which takes a provider that makes multilang.state.stored.StoredState"
        )
    return state


class StatefulTask(BoltTask):
    """As BoltTask, with a state."""

    saved: StoredState

    def __init__(self, plan: TaskPlan, links: Links, failed: set[int], saving: Saving) -> None:
        super().__init__(plan, links, failed, anchored=True)
        self._saving = saving

    def start(self, state: bytes | None) -> None:
        """As BoltTask.start; ``state`` has what changed in earlier rounds, too."""
        attributes, rows = (None, ()) if state is None else split(state)
        name = namespace(self.plan.component, self.plan.context.task_index)
        self._provider = provider_of(self.plan.conf)
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
        self.saved.lay(rows)
        super().start(attributes)

    def started(self, component: Any, collector: Any) -> Callable[[Any], object]:
        component._has_state = True
        execute = super().started(component, collector)
        component.init_state(self.saved)
        return execute

    def finish(self) -> None:
        """All tuples of the round are processed."""
        component = self._component
        component._collector.current = None
        component._collector.anchors = ()
        try:
            component.pre_prepare(self._saving.txid)
        except (Exception, SystemExit) as error:
            raise SparkJobError(f"{self.plan}: {describe(error, component, None, 'in pre_prepare')}") from error

    def state(self) -> bytes:
        """What it knows, and what changed in its state."""
        return joined(super().state() or b"", self.saved.changes())

    def close(self) -> None:
        super().close()
        self.saved.close()
        self._provider.close()
