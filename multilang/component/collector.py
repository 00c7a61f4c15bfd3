"""The seam between a component and where it runs: what stands behind emit, ack, fail, log and report.

A runner gives each task a collector: over the wire, in the embedded cluster, in a Spark task. A component's ``emit``
is the collector's own bound method, so that the seam costs nothing per tuple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple


class Collector(ABC):
    """What every task can say."""

    current: Tuple | None = None
    """The tuple that user code works on at the moment, None between tuples."""

    @abstractmethod
    def log(self, message: str, level: int = 2) -> None:
        """A line for the worker's log: 0 trace, 1 debug, 2 info, 3 warn, 4 error."""

    @abstractmethod
    def report_error(self, message: str) -> None:
        """An error for the log and Storm's UI; the task lives on."""

    @abstractmethod
    def report_metric(self, name: str, params: Any) -> None:
        """A value for a metric registered on the Java side under ``name``."""

    def reported(self, error: BaseException) -> None:  # noqa: B027 - most have nothing to do with it
        """Called after an exception of the component's was reported in place of being raised; a test raises it."""


class BoltCollector(Collector):
    """A bolt's collector (Storm's OutputCollector)."""

    anchors: Sequence[Tuple] = ()
    """What ``emit_anchored`` anchors to: the tuple, or the batch, in process."""

    takes_threads = False
    """Whether threads of the component's own may speak to it at any time."""

    knows_tasks = False
    """Whether an emit has its task ids without waiting for them."""

    @abstractmethod
    def emit(
        self,
        values: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple; see Bolt.emit."""

    def emit_anchored(
        self,
        values: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """The same, anchored to ``self.anchors`` unless ``anchors`` says otherwise."""
        return self.emit(
            values, stream, self.anchors if anchors is None else anchors, direct_task, need_task_ids, on_task_ids
        )

    def emit_many(
        self,
        rows: Iterable[Sequence[Any]],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream with the same anchors."""
        emit = self.emit
        for values in rows:
            emit(values, stream, anchors)

    def emit_many_anchored(
        self,
        rows: Iterable[Sequence[Any]],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """The same, anchored to ``self.anchors`` unless ``anchors`` says otherwise."""
        self.emit_many(rows, stream, self.anchors if anchors is None else anchors)

    @abstractmethod
    def received(self, tup: Tuple | str) -> Tuple:
        """The unfinished input that ``tup`` (itself, a copy, or its id) stands for; raises what ``ack`` would."""

    @abstractmethod
    def ack(self, tup: Tuple | str) -> None:
        """This input is done."""

    @abstractmethod
    def fail(self, tup: Tuple | str) -> None:
        """This input failed."""

    def fail_acked(self, tup: Tuple) -> None:
        """Called after an exception out of ``process`` of a tuple that it had acked: who still can fails what the tuple is of."""

    @abstractmethod
    def deferred_ack(self, kept: list[Any]) -> Callable[[Tuple | str], None]:
        """An ``ack`` that tells nobody yet: it adds to ``kept`` what ``finish`` needs. A tick is acked at once."""

    @abstractmethod
    def finish(self, kept: list[Any], ok: bool) -> None:
        """Ack, or fail, what a deferred ack kept, and empty ``kept``."""


class SpoutCollector(Collector):
    """A spout's collector (Storm's SpoutOutputCollector)."""

    settles_in_rounds = False
    """Whether the spout hears of what it emitted only when it has emitted a whole round, as in a Spark job."""

    keeps_position = False
    """Whether who runs the spout keeps its position and has it ``seek``, as in checkpoints of exact alignment."""

    @abstractmethod
    def emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple; see Spout.emit."""

    def emit_many(
        self,
        rows: Iterable[Sequence[Any]],
        tup_ids: Iterable[Any] | None = None,
        stream: str | None = None,
    ) -> None:
        """Send many tuples to one stream, with a message id each or none."""
        emit = self.emit
        if tup_ids is None:
            for values in rows:
                emit(values, None, stream)
        else:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                emit(values, tup_id, stream)
