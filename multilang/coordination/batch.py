"""Batch bolts: one object for each id, which gets only the tuples of that id, and then its end (Storm's IBatchBolt)."""

from __future__ import annotations

from copy import deepcopy

from multilang.component.base import Component, attach, overload
from multilang.component.errors import FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.report import report_exception
from multilang.component.wrapper import Wrapper
from multilang.protocol.messages import SYSTEM_COMPONENT, TICK_STREAM
from multilang.settings import MIDDLEWARE
from multilang.topology.errors import TopologyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any, Literal

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.metrics import MetricsRegistry
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple, Values


class BatchCollector:
    """The collector of a batch bolt. Its emits have no anchors: the coordination tracks the id as a whole."""

    def __init__(self, collector: BoltCollector) -> None:
        self._emit = collector.emit
        self.emit_many = collector.emit_many
        self.report_error = collector.report_error
        self.log = collector.log
        self.scope = collector.scope

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int]: ...

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None: ...

    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple whose first value is the id; otherwise the same as Bolt.emit."""
        return self._emit(values, stream, None, direct_task, need_task_ids, on_task_ids)


class BatchBolt(Component):
    """Gets the tuples of one id (a request, a batch), and then learns that no more of them will come.

    For each id that comes to a task, a new one is made as the topology declares it: ``initialize`` is called, then
    ``process`` for each tuple, then ``finish_batch``, even if no tuple of the id came. The first value of each input
    and of each emitted tuple is the id. Emits need no anchors, and tuples are acked automatically. An exception fails
    the whole id; it is reported, unless it is a FailedException. Timers end with the id. (Storm's IBatchBolt.)
    """

    id: Any
    """The id: the first value of all its tuples."""

    _home: BatchBolt | None = None
    _executor: BatchBoltExecutor

    def initialize(self, conf: dict[str, Any], context: Context, collector: BatchCollector, id: Any) -> None:
        """Open what the bolt needs: called once, before anything else.

        Args:
            conf: The topology's conf, merged with the component's own.
            context: The task's place in the topology.
            collector: The collector that ``emit`` uses.
            id: The id.
        """

    def process(self, tup: Tuple) -> None:
        """Work on one tuple of the id."""
        raise TypeError(f"{type(self).__name__} has no process method: define process(self, tup)")

    def finish_batch(self) -> None:
        """Finish the id: all its tuples have been processed at this task. Tuples emitted here still belong to it."""

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int]: ...

    @overload
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None: ...

    def emit(
        self,
        values: Values,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple whose first value is the id; otherwise the same as Bolt.emit, without anchors.

        Args:
            values: The values, one per field of the stream; the first is the id.
            stream: The stream's name; the default stream if it is None.
            direct_task: The only task that it goes to, on a stream that is direct.
            need_task_ids: Wait for the ids of the tasks that the tuple goes to.
            on_task_ids: Is called with these ids when they arrive; ``emit`` does not wait for them.

        Returns:
            The task ids with ``need_task_ids``, otherwise None.

        Raises:
            UnserializableValue: JSON does not have one of the values; nothing is sent.
            LocalProtocolError: The stream, the number of values or the task is wrong; nothing is sent.
        """
        return self._collector.emit(values, stream, direct_task, need_task_ids, on_task_ids)  # type: ignore[attr-defined,no-any-return]

    def emit_many(self, rows: Iterable[Values], stream: str | None = None) -> None:
        """Send many tuples to one stream, each with the id as its first value."""
        self._collector.emit_many(rows, stream)  # type: ignore[attr-defined]

    def _run_timer(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except UnrecoverableError:
            raise
        except Exception as error:  # noqa: BLE001 - user code: its failure is the id's
            assert self._home is not None
            self._home._executor.timer_failed(self, error)

    @property
    def metrics(self) -> MetricsRegistry:
        """The metrics, shared by all ids of the task."""
        return super().metrics if self._home is None else self._home.metrics


class BatchBoltExecutor(Wrapper):
    """Makes a bolt of a batch bolt: it holds one for each id that is not finished (Storm's BatchBoltExecutor)."""

    def __init__(self, wrapped: BatchBolt, factory: type[Component] | None = None) -> None:
        if not isinstance(wrapped, BatchBolt):
            raise TopologyError(
                f"BatchBoltExecutor stands around a BatchBolt, not {wrapped!r}: a Bolt or a ShellBolt needs none"
            )
        super().__init__(wrapped, factory)

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._attach(collector, conf, context)
        self._new = _maker(self.new_wrapped(), self.factory)
        attach(self.wrapped, collector, conf, context)  # it works on no id itself, but has the metrics of all ids
        self.wrapped._executor = self
        self._timers = collector.scope.timers
        self.batches: dict[Hashable, BatchBolt] = {}
        self._batch_collector = BatchCollector(collector)
        process: Callable[[Tuple], None] = self._process
        if self.wrapped.middleware or conf.get(MIDDLEWARE):
            from multilang.component.middleware import all_middleware

            for middleware in reversed(all_middleware(self.wrapped.middleware, conf)):
                process = middleware.process(self.wrapped, process)
        ack, fail, scope = collector.ack, collector.fail, collector.scope
        plain = process == self._process
        batches = self.batches

        def execute(tup: Tuple) -> None:
            if tup.stream == TICK_STREAM and tup.component == SYSTEM_COMPONENT:
                ack(tup)
                return
            scope.current = tup
            try:
                if plain and (batch := batches.get(tup.values[0])) is not None:
                    batch.process(tup)
                else:
                    process(tup)
            except Exception as error:  # noqa: BLE001 - user code: its failure is the id's
                self._report_failure(error, tup, "")
                fail(tup)
            else:
                ack(tup)
            scope.current = None

        return execute

    def finished_id(self, id: Hashable) -> None:
        """Call the batch bolt's ``finish_batch`` and end it, since all tuples of ``id`` have come."""
        batch = self.batches.get(id)
        try:
            if batch is None:
                batch = self._begin(id)
            batch.finish_batch()
        except UnrecoverableError:
            raise
        except Exception as error:
            self._report_failure(error, None, f"in finish_batch of {id!r}")
            raise FailedException(str(error)) from error
        finally:
            self._drop(id)

    def timeout_id(self, id: Hashable) -> None:
        """Drop the batch bolt of ``id``, which will not be finished."""
        self._drop(id)

    def timer_failed(self, batch: BatchBolt, error: Exception) -> None:
        """Let the id of ``batch`` fail at its next tuple or at its end, since a timer raised ``error``."""
        self._report_failure(error, None, f"in a timer of {batch.id!r}")
        self._drop(batch.id)
        self.batches[batch.id] = _FailedBatch()

    def _drop(self, id: Hashable) -> None:
        batch = self.batches.pop(id, None)
        if batch is not None and self._timers.heap:
            self._timers.cancel_all(batch)

    def _process(self, tup: Tuple) -> None:
        id = tup.values[0]
        batch = self.batches.get(id)
        if batch is None:
            batch = self._begin(id)
        batch.process(tup)

    def _begin(self, id: Any) -> BatchBolt:
        batch: BatchBolt = self._new()
        batch.id = id
        batch._home = self.wrapped
        attach(batch, self._batch_collector, self.conf, self.context)
        batch.initialize(self.conf, self.context, self._batch_collector, id)
        self.batches[id] = batch
        return batch

    def close(self) -> None:
        for batch in self.batches.values():
            batch.close()

    def _report_failure(self, error: Exception, tup: Tuple | None, where: str) -> None:
        if not isinstance(error, FailedException) or isinstance(error, ReportedFailedException):
            report_exception(self.wrapped, error, tup, where)


class _FailedBatch(BatchBolt):
    """Stands for the batch bolt of an id that has failed in a timer."""

    def process(self, tup: Tuple) -> None:
        raise FailedException("a timer of the id has failed")

    def finish_batch(self) -> None:
        raise FailedException("a timer of the id has failed")


def _maker(template: BatchBolt, factory: Callable[[], Any] | None) -> Callable[[], Any]:
    """Return the function that makes a batch bolt as its topology declares it."""
    if factory is not None:
        return factory
    if template.__dict__:
        return lambda: deepcopy(template)
    kind = type(template)  # it has no attributes to copy
    return lambda: kind.__new__(kind)
