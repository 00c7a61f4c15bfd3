"""A transactional topology's bolt inside a Spark task. A worker sees one attempt at one transaction, and its end.

Nothing is counted, since a stage ends when it has read all its input. A failure fails the attempt: the workers that
read from this one are told, and finish nothing. Committers come after everything else, so that none of them finishes if
anything failed in the processing phase.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import TaskContext

from multilang.component.base import collector_of
from multilang.component.errors import FailedException, ReportedFailedException
from multilang.component.filters import BoltFilter
from multilang.component.report import describe, report_exception
from multilang.component.wrapper import Wrapper
from multilang.errors import SparkJobError
from multilang.transactional.attempt import TransactionAttempt
from multilang.transactional.bolts import refuse_foreign
from spark_bridge.job.tasks import StageBolt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pyspark import SparkContext

    from multilang.component.collector import Anchors, BoltCollector, Emit, OnTaskIds
    from multilang.component.timers import TimerHandle
    from multilang.protocol.messages import Values
    from multilang.runtime.links import Links
    from multilang.runtime.plan import TaskPlan
    from spark_bridge.job.tuples import FailedRoots


_RUNNING = "multilang.transaction"  # Spark's local property for the present attempt


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
