"""The interface between a component and its engine: emit, ack, fail, log and report.

A runner gives each task a collector, for the wire, the embedded cluster or a Spark task. A component's ``emit`` is the
collector's own bound method, so that the interface costs nothing per tuple.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.protocol.messages import Tuple, Values


class Collector(ABC):
    """The calls that every task can make."""

    current: Tuple | None = None
    """The tuple that user code works on at the moment; None between tuples."""

    @abstractmethod
    def log(self, message: str, level: int = 2) -> None:
        """Write a line to the worker's log: level 0 is trace, 1 debug, 2 info, 3 warn, 4 error."""

    @abstractmethod
    def report_error(self, message: str) -> None:
        """Report an error to the log and Storm's UI; the task goes on."""

    @abstractmethod
    def report_metric(self, name: str, params: Any) -> None:
        """Send a value for a metric that the Java side registered under ``name``."""

    def reported(self, error: BaseException) -> None:  # noqa: B027 - most have nothing to do here
        """Take note of a component's exception that was reported instead of raised; a test raises it."""


class BoltCollector(Collector):
    """A bolt's collector (Storm's OutputCollector)."""

    anchors: Sequence[Tuple] = ()
    """The anchors of ``emit_anchored``: the tuple, or the batch, in process."""

    takes_threads = False
    """True if the component's own threads may call it at any time."""

    knows_tasks = False
    """True if an emit gets its task ids without waiting for them."""

    @abstractmethod
    def emit(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple; see Bolt.emit."""

    def emit_anchored(
        self,
        values: Values,
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple that is anchored to ``self.anchors`` unless ``anchors`` is given."""
        return self.emit(
            values, stream, self.anchors if anchors is None else anchors, direct_task, need_task_ids, on_task_ids
        )

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples to one stream with the same anchors."""
        emit = self.emit
        for values in rows:
            emit(values, stream, anchors)

    def emit_many_anchored(
        self,
        rows: Iterable[Values],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
    ) -> None:
        """Send many tuples that are anchored to ``self.anchors`` unless ``anchors`` is given."""
        self.emit_many(rows, stream, self.anchors if anchors is None else anchors)

    @abstractmethod
    def received(self, tup: Tuple | str) -> Tuple:
        """Return the unfinished input that ``tup`` (or a copy, or its id) stands for, or raise the error of ``ack``."""

    @abstractmethod
    def ack(self, tup: Tuple | str) -> None:
        """Ack an input."""

    @abstractmethod
    def fail(self, tup: Tuple | str) -> None:
        """Fail an input."""

    def fail_acked(self, tup: Tuple) -> None:
        """Fail what an acked tuple belongs to, if that is still possible, after its ``process`` raised."""

    @abstractmethod
    def deferred_ack(self, kept: list[Any]) -> Callable[[Tuple | str], None]:
        """Return an ``ack`` that only adds to ``kept`` what ``finish`` needs later; it acks a tick at once."""

    @abstractmethod
    def finish(self, kept: list[Any], ok: bool) -> None:
        """Ack or fail the inputs that a deferred ack kept, and empty ``kept``."""


class SpoutCollector(Collector):
    """A spout's collector (Storm's SpoutOutputCollector)."""

    settles_in_rounds = False
    """True if acks and fails come only after a whole round of emits, as in a Spark job."""

    keeps_position = False
    """True if the engine stores the spout's position and calls ``seek``, as in checkpoints of exact alignment."""

    @abstractmethod
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple; see Spout.emit."""

    def emit_many(
        self,
        rows: Iterable[Values],
        tup_ids: Iterable[Any] | None = None,
        stream: str | None = None,
    ) -> None:
        """Send many tuples to one stream, each with a message id, or all without."""
        emit = self.emit
        if tup_ids is None:
            for values in rows:
                emit(values, None, stream)
        else:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                emit(values, tup_id, stream)
