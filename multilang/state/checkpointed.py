"""The wrapper around each bolt of a stateful topology: it receives checkpoints in order and passes them on."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError
from multilang.component.filters import BoltFilter
from multilang.component.report import report_exception
from multilang.component.runner import start_bolt
from multilang.component.wrapper import Wrapper
from multilang.protocol.errors import LocalProtocolError
from multilang.state import settings
from multilang.state.names import INITSTATE, ROLLBACK, STREAM, STREAMS, namespace
from multilang.state.steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.component.collector import Anchors, BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple, Values

_BEFORE_ALL = -(2**63)  # before the first transaction; Storm also begins with its "minimum long"


class Barrier:
    """The last checkpoint tuple from each task that sends checkpoints to this one.

    "Each bolt waits for the checkpoint to arrive on all its input streams before it saves its state." Storm counts the
    arrivals and acks each one at once. This class remembers which task each tuple came from, so that a repeated
    checkpoint is never taken for complete one tuple too early. And no tuple is acked before all have arrived. Otherwise
    a task that dies between two arrivals would have acked both, and the checkpoint would count as saved.

    Tuples that arrived from a failed checkpoint count for its repetition. The repetition's own tuple then comes too
    late, so a task acks at once a tuple that repeats a checkpoint it has already passed on. If it held that tuple, each
    repetition would wait for the next one.
    """

    def __init__(self, context: Context) -> None:
        sources = [component for component, streams in context.sources.items() if STREAM in streams]
        self.inputs = sum(len(context.tasks(component)) for component in sources)
        self._arrived: dict[int, Tuple] = {}

    def arrive(self, tup: Tuple) -> tuple[Tuple | None, list[Tuple]]:
        """Note a checkpoint tuple.

        Returns:
            The tuple that this one makes obsolete, and all tuples of the checkpoint if it is complete.
        """
        arrived = self._arrived
        obsolete = arrived.pop(tup.task, None)
        arrived[tup.task] = tup
        mark = tup.values
        if len(arrived) < self.inputs or any(each.values != mark for each in arrived.values()):
            return obsolete, []
        whole = list(arrived.values())
        arrived.clear()
        return obsolete, whole


class Checkpointed(Wrapper):
    """A wrapper that passes checkpoints on. A subclass handles them in ``handle``.

    A tuple that is no checkpoint goes to ``self._run``. That costs one comparison of its stream and nothing else.
    """

    own_streams = STREAMS

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        settings.check(conf)
        self._attach(collector, conf, context)
        self._last = _BEFORE_ALL
        self.epoch = -1  # the epoch of the newest checkpoint spout seen so far
        self._done: list[Any] = []  # the values of the checkpoint that was passed on last
        self._barrier = Barrier(context)
        self.namespace = namespace(context.component, context.task_index)
        self.steps = Steps(conf, self.namespace)
        self._emit, self._ack, self._fail = collector.emit, collector.ack, collector.fail
        self._run: Execute
        self.prepare(anchored_only(collector, context), conf, context)

        def execute(tup: Tuple) -> None:
            if tup.stream == STREAM:
                self.checkpoint(tup)
            else:
                self._run(tup)

        return execute

    def prepare(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        """Start the wrapped bolt, and set ``self._run``, which gets every tuple that is no checkpoint."""
        self._run = start_bolt(self.wrapped, collector, conf, context)

    def handle(self, txid: int, action: str) -> bool:
        """Take the step of a complete checkpoint. Return False if that is impossible, which fails the checkpoint."""
        return True

    def completed(self) -> None:
        """React to a checkpoint that had arrived on all inputs and was passed on, or failed."""

    def checkpoint(self, tup: Tuple) -> None:
        """Process a checkpoint tuple."""
        obsolete, whole = self._barrier.arrive(tup)
        if obsolete is not None and obsolete.unfinished:
            self._fail(obsolete)  # it belongs to a checkpoint that has failed
        if not whole:
            if tup.values == self._done:
                self._ack(tup)  # a repetition of a checkpoint that this task has passed on: nothing is left to do
            return
        txid, action, epoch = tup.values
        if epoch > self.epoch:
            self._last = _BEFORE_ALL  # a checkpoint spout that stores in memory counts from the beginning again
        if epoch < self.epoch:
            end = self._fail  # it comes from a checkpoint spout that was replaced
        elif txid < self._last:
            # A spout whose store is in memory begins with an old epoch; it learns from the failure that tasks are ahead.
            end = self._fail if action == INITSTATE else self._ack
        elif not self._handled(txid, action, epoch):
            end = self._fail
        else:
            self.steps("forward")
            self._emit(tup.values, STREAM, [tup])
            self.steps("forwarded")
            self._last = txid - 1 if action == ROLLBACK else txid
            self._done = tup.values
            end = self._ack
        for each in whole:
            if each.unfinished:
                end(each)
        self.steps("acked")
        self.completed()

    def claim(self, epoch: int) -> None:
        """Claim the state for ``epoch``. Called first at the first checkpoint of a new checkpoint spout."""

    def _handled(self, txid: int, action: str, epoch: int) -> bool:
        self.steps.at(action, txid)
        self.steps("received")
        try:
            if epoch > self.epoch:
                self.claim(epoch)
                self.epoch = epoch
                self.steps("claimed")
            return self.handle(txid, action)
        except UnrecoverableError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the checkpoint fails and is repeated
            report_exception(self, error, None, f"at {action} {txid}")
            return False


class CheckpointTupleForwarder(Checkpointed):
    """The wrapper around a bolt without state, which only passes checkpoints on (Storm's CheckpointTupleForwarder)."""


def anchored_only(collector: BoltCollector, context: Context) -> BoltCollector:
    """Return a collector that refuses emits without anchors. ``anchors=[]`` is allowed; basic bolts always anchor.

    "All bolts in a stateful topology are expected to anchor the tuples while emitting."
    """
    emit, emit_many = collector.emit, collector.emit_many

    def anchored(
        values: Values,
        stream: str | None = None,
        anchors: Anchors = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        if anchors is None:
            raise _unanchored(context)
        return emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def many_anchored(rows: Iterable[Values], stream: str | None = None, anchors: Anchors = None) -> None:
        if anchors is None:
            raise _unanchored(context)
        emit_many(rows, stream, anchors)

    return BoltFilter(collector, emit=anchored, emit_anchored=collector.emit_anchored, emit_many=many_anchored)


def _unanchored(context: Context) -> LocalProtocolError:
    return LocalProtocolError(
        f"bolt {context.component!r} emits a tuple that is anchored to nothing, in a stateful topology, which could not "
        "know that it was lost; write emit(values, anchors=[tup]), or anchors=[] if that may be"
    )
