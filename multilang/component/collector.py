"""The interface between a component and its engine: emit, ack, fail, log and report.

A runner gives each task a collector, for the wire, the embedded cluster or a Spark task. What is called for every tuple
is an attribute that holds a function: a component's ``emit`` is that function itself, so that the interface costs
nothing per tuple. A wrapper gives the component inside it a collector around its own (see filters.BoltFilter).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from multilang.component.timers import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol, TypeAlias

    from multilang.component.many import Tuples
    from multilang.protocol.messages import Tuple, Values

    Anchors: TypeAlias = Sequence[Tuple | str] | None
    Settle: TypeAlias = Callable[[Tuple | str], None]
    OnTaskIds: TypeAlias = Callable[[list[int]], None]

    class Emit(Protocol):
        """A bolt's emit; see Bolt.emit."""

        def __call__(
            self,
            values: Values,
            stream: str | None = None,
            anchors: Anchors = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: OnTaskIds | None = None,
        ) -> list[int] | None: ...

    class EmitMany(Protocol):
        """A bolt's emit_many; see Bolt.emit_many."""

        def __call__(self, rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None: ...

    class SpoutEmit(Protocol):
        """A spout's emit; see Spout.emit."""

        def __call__(
            self,
            values: Values,
            tup_id: Any = None,
            stream: str | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
            on_task_ids: OnTaskIds | None = None,
        ) -> list[int] | None: ...


def _ignore(_: object) -> None:
    """Do nothing."""


class Collector(ABC):
    """The calls that every task can make.

    Attributes:
        scope: The tuple and the anchors of the moment.
        reported: Takes note of a component's exception that was reported instead of raised; a test raises it.
        to_parent: True if its calls go over the wire to another process.
    """

    to_parent = False

    def __init__(self, scope: Scope | None = None, reported: Callable[[BaseException], None] | None = None) -> None:
        self.scope = Scope() if scope is None else scope
        self.reported: Callable[[BaseException], None] = _ignore if reported is None else reported

    @abstractmethod
    def log(self, message: str, level: int = 2) -> None:
        """Write a line to the worker's log: level 0 is trace, 1 debug, 2 info, 3 warn, 4 error."""

    @abstractmethod
    def report_error(self, message: str) -> None:
        """Report an error to the log and Storm's UI; the task continues."""

    @abstractmethod
    def report_metric(self, name: str, params: Any) -> None:
        """Send a value for a metric that the Java side registered under ``name``."""


class BoltCollector(Collector):
    """A bolt's collector (Storm's OutputCollector); its maker sets the calls that are attributes.

    Attributes:
        emit: Sends a tuple; see Bolt.emit.
        emit_anchored: The same, anchored to ``scope.anchors`` unless ``anchors`` is given.
        emit_many: Sends many tuples to one stream with the same anchors.
        emit_many_anchored: The same, anchored to ``scope.anchors`` unless ``anchors`` is given.
        ack: Acks an input.
        fail: Fails an input.
        fail_acked: Fails what an acked tuple belongs to, if that is still possible, after its ``process`` raised.
        takes_threads: True if the component's own threads may call it at any time.
        knows_tasks: True if an emit gets its task ids without waiting for them.
        execute_many: Runs many tuples through a component that takes them together; None: it takes them one by one.
    """

    takes_threads = False
    knows_tasks = False

    emit: Emit
    emit_anchored: Emit
    emit_many: EmitMany
    emit_many_anchored: EmitMany
    ack: Settle
    fail: Settle
    fail_acked: Callable[[Tuple], None]

    execute_many: Callable[[Tuples], None] | None = None

    def __init__(self, scope: Scope | None = None, reported: Callable[[BaseException], None] | None = None) -> None:
        super().__init__(scope, reported)
        self.fail_acked = _ignore

    def settle_many(self, tups: Iterable[Tuple], ok: bool) -> None:
        """Ack or fail those of the inputs that are neither acked nor failed."""
        settle = self.ack if ok else self.fail
        for tup in tups:
            if tup.unfinished:
                settle(tup)

    @abstractmethod
    def received(self, tup: Tuple | str) -> Tuple:
        """Return the unfinished input that ``tup`` (or a copy, or its id) stands for, or raise the error of ``ack``."""

    def deferred_ack(self, deferred: list[Any]) -> Settle:
        """Return an ``ack`` that only adds to ``deferred`` what ``finish`` needs later; it acks a tick at once."""

        def ack(given: Tuple | str) -> None:
            tup = self.received(given) if isinstance(given, str) or not given.unfinished else given
            if tup.task < 0 and tup.is_tick:
                self.ack(tup)
                return
            tup.unfinished = False
            deferred.append(tup)

        return ack

    def finish(self, deferred: list[Any], ok: bool) -> None:
        """Ack or fail the inputs in ``deferred``, and empty it."""
        settle, tups = self.ack if ok else self.fail, deferred[:]
        deferred.clear()
        for tup in tups:
            tup.unfinished = True
            settle(tup)


def one_by_one(emit: Emit) -> EmitMany:
    """Return an ``emit_many`` that calls ``emit`` for each tuple."""

    def emit_many(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        for values in rows:
            emit(values, stream, anchors)

    return emit_many


def many_anchored(emit_many: EmitMany, scope: Scope) -> EmitMany:
    """Return ``emit_many`` with the scope's anchors unless ``anchors`` is given."""

    def emit_many_anchored(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        emit_many(rows, stream, scope.anchors if anchors is None else anchors)

    return emit_many_anchored


class SpoutCollector(Collector):
    """A spout's collector (Storm's SpoutOutputCollector).

    Attributes:
        emit: Sends a tuple; see Spout.emit.
        settles_in_rounds: True if acks and fails come only after a whole round of emits, as in a Spark job.
        keeps_position: True if the engine stores the spout's position and calls ``seek``, as in checkpoints of exact
            alignment.
        replays_by_position: True if the engine replays by ``seek``, so that no tuple need be stored for a replay.
        acks_at_once: True if an emit acks its tuple at once by ``acked``, as there are no ackers.
    """

    settles_in_rounds = False
    keeps_position = False
    replays_by_position = False
    acks_at_once = False

    emit: SpoutEmit
    acked: Callable[[Any], None]

    def emit_many(
        self,
        rows: Iterable[Values],
        tup_ids: Iterable[Any] | None = None,
        stream: str | None = None,
    ) -> None:
        """Send many tuples to one stream, each with a message id, or all without; a row is taken when those before it are sent."""
        emit = self.emit
        if tup_ids is None:
            for values in rows:
                emit(values, None, stream)
        else:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                emit(values, tup_id, stream)
