"""What stands around each bolt of a stateful topology: checkpoints go through it, one after the other, and on."""

from __future__ import annotations

from multilang.component.errors import UnrecoverableError
from multilang.component.report import report_exception
from multilang.component.runner import start_bolt
from multilang.component.wrapper import Wrapper
from multilang.state import settings
from multilang.state.barrier import Barrier
from multilang.state.errors import UnanchoredEmitError
from multilang.state.names import INITSTATE, ROLLBACK, STREAM, STREAMS, namespace
from multilang.state.steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple

_BEFORE_ALL = -(2**63)  # "start: minimum long"


class Checkpointed(Wrapper):
    """A wrapper that passes checkpoints on; ``handle`` says what else happens at one.

    A tuple that is no checkpoint goes to ``self._run`` with one comparison of its stream and nothing else.
    """

    own_streams = STREAMS

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        settings.check(conf)
        self._attach(collector, conf, context)
        self._last = _BEFORE_ALL
        self.epoch = -1  # of the newest checkpoint spout that was heard of
        self._done: list[Any] = []  # the checkpoint that was passed on last
        self._barrier = Barrier(context)
        self.namespace = namespace(context.component, context.task_index)
        self.steps = Steps(conf, self.namespace)
        self._emit, self._ack, self._fail = collector.emit, collector.ack, collector.fail
        anchored_only(collector, context)
        self._run: Execute
        self.prepare(collector, conf, context)

        def execute(tup: Tuple) -> None:
            if tup.stream == STREAM:
                self.checkpoint(tup)
            else:
                self._run(tup)

        return execute

    def prepare(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        """Start the wrapped bolt and set ``self._run``, which gets every tuple that is no checkpoint."""
        self._run = start_bolt(self.wrapped, collector, conf, context)

    def handle(self, txid: int, action: str) -> bool:
        """Do what a complete checkpoint asks for; False: it can't be done, and the checkpoint fails."""
        return True

    def completed(self) -> None:
        """Called when a checkpoint that had come from all inputs has been passed on, or failed."""

    def checkpoint(self, tup: Tuple) -> None:
        """A checkpoint tuple came."""
        obsolete, whole = self._barrier.arrive(tup)
        if obsolete is not None and obsolete.unfinished:
            self._fail(obsolete)  # of a checkpoint that failed before
        if not whole:
            if tup.values == self._done:
                self._ack(tup)  # repeated, and nothing is left to do here: the last to arrive goes on as all of them
            return
        txid, action, epoch = tup.values
        if epoch > self.epoch:
            self._last = _BEFORE_ALL  # where nothing is stored, transactions begin anew
        if epoch < self.epoch:
            end = self._fail  # of a checkpoint spout that is no longer the topology's
        elif txid < self._last:
            # A spout that stores nothing begins anew, with an epoch that is none: it learns of that by the failure.
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
        """Called at the first checkpoint of a new checkpoint spout, before anything else of it is done."""

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
    """Stands around a bolt without state, and passes checkpoints on (Storm's CheckpointTupleForwarder)."""


def anchored_only(collector: BoltCollector, context: Context) -> None:
    """Refuse emits that are anchored to nothing without saying so; what a basic bolt emits is anchored in any case.

    "All bolts in a stateful topology are expected to anchor the tuples while emitting."
    """
    emit, emit_many = collector.emit, collector.emit_many

    def anchored(
        values: Sequence[Any],
        stream: str | None = None,
        anchors: Sequence[Tuple | str] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        if anchors is None:
            raise _unanchored(context)
        return emit(values, stream, anchors, direct_task, need_task_ids, on_task_ids)

    def many_anchored(
        rows: Iterable[Sequence[Any]], stream: str | None = None, anchors: Sequence[Tuple | str] | None = None
    ) -> None:
        if anchors is None:
            raise _unanchored(context)
        emit_many(rows, stream, anchors)

    collector.emit = anchored  # type: ignore[method-assign]
    collector.emit_many = many_anchored  # type: ignore[method-assign]


def _unanchored(context: Context) -> UnanchoredEmitError:
    return UnanchoredEmitError(
        f"bolt {context.component!r} emits a tuple that is anchored to nothing, in a stateful topology, which could not "
        "know that it was lost; write emit(values, anchors=[tup]), or anchors=[] if that may be"
    )
