"""Transactional topologies on Spark: the number of a run in the topology's own store, and a bolt's part in one attempt.

The number is stored as Storm and the embedded cluster store it, so that a transaction that was committed on Spark is followed by the
next one elsewhere, and back. It is stored before a run begins, so that a batch that is repeated after a crash is the same
transaction again. A map that has this transaction already is not updated twice.

A worker sees one attempt at one transaction, and its end. Nothing is counted, since a stage ends when it has read all its
input. A failure fails the attempt: the workers that read from this one get a record of it, and finish nothing. Committers run after
everything else, so that none of them finishes if anything failed in the processing phase.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import TaskContext

from multilang.component.base import collector_of
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException
from multilang.component.filters import BoltFilter
from multilang.component.report import describe, report_exception
from multilang.component.wrapper import Wrapper
from multilang.engine.plan import storm_id
from multilang.errors import SparkJobError
from multilang.settings import PARENT
from multilang.store.errors import StateError
from multilang.transactional.attempt import TransactionAttempt
from multilang.transactional.bolts import refuse_foreign
from multilang.transactional.names import CURRENT, METADATA, RUNS
from multilang.transactional.parts import coordinator_in
from multilang.transactional.runs import check_runs
from multilang.transactional.stores import open_state
from spark_bridge.job.bolts import StageBolt
from spark_bridge.job.state import check_next, check_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from pyspark import SparkContext

    from multilang.component.collector import Anchors, BoltCollector, Emit, OnTaskIds
    from multilang.component.timers import TimerHandle
    from multilang.engine.links import Links
    from multilang.engine.plan import TaskPlan
    from multilang.protocol.messages import Values
    from multilang.topology.model import Topology
    from spark_bridge.job.routes import FailedRoots

JOB = "job"
_RUNNING = "multilang.transaction"  # Spark's local property for the present attempt


class Transactions:
    """The transactions of ``topology``, claimed until ``close``.

    Raises InUseError while another run has them, and StateError for a store that can't be used. Every write raises
    FencedError when another run has taken them over.
    """

    def __init__(self, topology: Topology) -> None:
        spec = coordinator_in(topology)
        if spec is None:
            raise ConfigError(f"topology {topology.name!r} is not transactional")
        own = {PARENT: "spark", "storm.id": storm_id(topology.name), "topology.name": topology.name}
        self._state = open_state({**topology.conf, **spec.conf, **own})
        try:
            self._last_attempt = TransactionAttempt.first_of(self._state.claim())
            self._owner = self._state.owner_name()
        except BaseException:
            self._state.close()
            raise

    @property
    def current(self) -> int:
        """The transaction that is to be committed next."""
        return self._state.get_data(CURRENT) or 1

    def begin(self, run: str = JOB, batch: int = 0, rows: Mapping[str, Any] | str | None = None) -> int | None:
        """Return the txid of a batch of this run, the same one if the batch was begun before.

        None: it is committed already.

        ``rows``: what identifies the rows of a job, or of a query's batch if that is known.

        Raises SparkJobError when this is neither the run's last batch nor the one after it, and when the batch, or a job that
        broke off, had other rows; StateError when the next txid belongs to something that was begun elsewhere.
        """
        current = self.current
        path = f"{RUNS}/{run}"
        last, txid, *before = self._state.get_data(path) or (None, 0)
        where = f"the store of the transactions of {self._state.id!r}"
        if run != JOB and last == batch:
            check_rows(batch, rows, before[0] if before else None, where)
            if txid < current:
                return None
        if last == batch and txid == current:
            if run == JOB and before and rows != before[0]:
                raise SparkJobError(
                    f"transaction {current} of {self._state.id!r} was begun by a job that broke off, and that had other rows "
                    f"({_counted(before[0])}; now {_counted(rows or {})}), some of which may be in the maps already. Under the same number, "
                    "these would be left out there: run that job again with its rows first"
                )
            self._state.set_data(path, [batch, current, *([rows] if rows else [])])
            return current
        if run != JOB:
            check_next(batch, last, where)
        check_runs(self._state, current, run)
        begun = self._state.list(METADATA)
        if str(current) in begun:
            raise StateError(
                f"transaction {current} of {self._state.id!r} was begun by the topology's own spout and is not committed yet, "
                "so that its number can't be given to other rows: run the topology where it ran until it is committed"
            )
        self._state.set_data(path, [batch, current, *([rows] if rows else [])])
        return current

    def free_rows(self) -> None:
        """Let the next job have other rows: this one is given up, and has updated no map."""
        path = f"{RUNS}/{JOB}"
        batch, txid, *_ = self._state.get_data(path) or (0, 0)
        if txid == self.current:
            self._state.set_data(path, [batch, txid])

    def attempt(self) -> TransactionAttempt:
        """Return one more attempt at the transaction that was begun, with a number that no earlier attempt had."""
        self._last_attempt += 1
        return TransactionAttempt(self.current, self._last_attempt, self._owner)

    def commit(self) -> None:
        """Store that the transaction is committed."""
        self._state.set_data(CURRENT, self.current + 1)

    def close(self) -> None:
        """Release the transactions, so that another run may claim them."""
        self._state.close()


def _counted(rows: Any) -> str:
    return ", ".join(f"{count:,} of {source}" for source, (count, _) in sorted(rows.items())) or "unknown"


@contextmanager
def running(sc: SparkContext, attempt: TransactionAttempt | None) -> Iterator[None]:
    """Let workers run this attempt in this context."""
    if attempt is not None:
        sc.setLocalProperty(_RUNNING, str(attempt))
    try:
        yield
    finally:
        if attempt is not None:
            sc.setLocalProperty(_RUNNING, None)  # type: ignore[arg-type]  # which takes it away


class Batch:
    """The state that the tasks of a worker share.

    ``failed``: the attempt has failed, and will be replaced by another.
    """

    __slots__ = ("attempt", "failed")

    def __init__(self, attempt: TransactionAttempt) -> None:
        """Raise SparkJobError when the attempt is over, and Spark runs this task only to restore lost outputs."""
        self.attempt = TransactionAttempt(attempt.txid, attempt.attempt, attempt.owner)  # no map is updated yet
        self.failed = False
        task = TaskContext.get()
        if task is not None and task.getLocalProperty(_RUNNING) != attempt:
            raise SparkJobError(
                f"outputs of {attempt!r} are not there any more, and it can't be run again, since committers have written: read "
                "them before they are given back (unpersist), in each_batch; an executor that is lost takes them along"
            )


class TransactionalTask(StageBolt):
    """A StageBolt for one attempt; ``finish`` is the end of the batch."""

    def __init__(self, plan: TaskPlan, links: Links, failed: FailedRoots, batch: Batch) -> None:
        super().__init__(plan, links, failed)
        self._batch = batch

    def started(self, component: Any, collector: Any) -> Callable[[Any], object]:
        batch = self._batch
        ways = {name for name, route in self.plan.routes.items() if route.boxes}  # type: ignore[attr-defined]
        inner = self._inner = super().started(component, _of_batch(collector, batch, ways))

        def execute(tup: Any) -> None:
            if batch.failed:
                tup.unfinished = False
            else:
                tup.values[0] = batch.attempt  # it was sent as text
                inner(tup)

        return execute

    def died(self, error: BaseException, tup: Any) -> None:
        super().died(error, tup)
        self._batch.failed = True

    def _fire(self, handle: TimerHandle) -> None:
        if not self._batch.failed:
            super()._fire(handle)

    def timer_died(self, error: BaseException) -> None:
        super().timer_died(error)
        self._batch.failed = True

    def tick(self) -> None:
        execute, self.execute = self.execute, self._inner
        super().tick()
        self.execute = execute

    def finish(self) -> None:
        """Call the bolt's ``finished_id``, since the whole batch has come, unless the attempt has failed."""
        component, batch = self._component, self._batch
        finished = getattr(component, "finished_id", None)
        if finished is None or batch.failed:
            return
        collector_of(component).scope.anchors = ()
        try:
            finished(batch.attempt)
        except FailedException as error:
            batch.failed = True
            if isinstance(error, ReportedFailedException):
                report_exception(component, error, None, f"in finished_id of {batch.attempt!r}")
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            batch.failed = True
            self._links.report(self.plan, describe(error, component, None, f"in finished_id of {batch.attempt!r}"))

    def state(self) -> bytes | None:
        """Return what a BasicBolt knows. A batch bolt has nothing to keep, because each batch has a bolt of its own."""
        return None if isinstance(self._component, Wrapper) else super().state()


def _of_batch(collector: BoltCollector, batch: Batch, ways: set[str]) -> BoltCollector:
    """Return a collector for which, on ``ways``, the streams that are read, a tuple must begin with the attempt."""
    text = str(batch.attempt)

    def checked(emit: Emit) -> Emit:
        def emitted(
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: OnTaskIds | None = None,
        ) -> list[int] | None:
            kind = type(values)
            if (kind is list or kind is tuple) and values:
                if values[0] == text:
                    values = [text, *values[1:]]  # plain text is checked and packed faster
                elif (stream or "default") in ways:
                    refuse_foreign(values)
            return emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

        return emitted

    fail = collector.fail

    def failed(tup: Any) -> None:
        batch.failed = True
        fail(tup)

    return BoltFilter(
        collector, emit=checked(collector.emit), emit_anchored=checked(collector.emit_anchored), fail=failed
    )
