"""Coordination in a transactional topology: ids are attempts, and committers wait for the commit stream."""

from __future__ import annotations

from multilang.component.base import attach
from multilang.component.errors import FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.report import report_exception
from multilang.component.wrapper import Wrapper, innermost
from multilang.coordination import BatchCollector, CoordinatedBolt
from multilang.helpers.closing import close_all
from multilang.protocol.codec import loads
from multilang.settings import STORE, TRACE, TRANSACTIONS
from multilang.state.steps import Steps
from multilang.store.settings import own_store
from multilang.transactional.attempt import TransactionAttempt
from multilang.transactional.executors import emitter_of
from multilang.transactional.names import COMMIT_STREAM, ID
from multilang.transactional.state import OutdatedError
from multilang.transactional.stores import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.coordination.tracking import Tracking
    from multilang.protocol.messages import Tuple

_REMEMBERED = 1000  # transactions whose newest attempt is remembered


def _attempt(value: Any) -> TransactionAttempt:
    if type(value) is TransactionAttempt:  # it comes from a task of this process, so it need not be parsed
        return value
    try:
        return TransactionAttempt.parse(value)
    except (AttributeError, ValueError):
        raise TypeError(
            f"the first value of a tuple in a transactional topology is its TransactionAttempt, not {value!r}: emit "
            "[self.id, ...] in a BatchBolt, [tup[0], ...] in a BasicBolt and [attempt, ...] in a spout's emitter"
        ) from None


def refuse_foreign(values: Sequence[Any]) -> None:
    """Raise ValueError for a tuple of a batch that is not being processed here: no task would wait for it."""
    if isinstance(values, list | tuple) and values:
        attempt = _attempt(values[0])
        raise ValueError(
            f"a tuple of {attempt!r} is emitted, but no tuple of that attempt came to this task: it would be lost. Emit with the "
            "current attempt: self.id in a BatchBolt, tup[0] in a BasicBolt"
        )


class _Attempts(CoordinatedBolt):
    """A coordinated bolt whose ids are attempts. A newer attempt at a transaction means that older ones failed."""

    as_id = staticmethod(_attempt)
    untracked = staticmethod(refuse_foreign)

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._newest: dict[int, TransactionAttempt] = {}  # by txid
        self._owner = f"{conf[ID]}/" if ID in conf else ""
        return super().start(collector, conf, context)

    def _new(self, id: Any) -> Tracking:
        with self._lock:
            info = super()._new(id)
            attempt: Any = info.id
            attempt.owner = attempt.owner or self._owner
            newest = self._newest.setdefault(attempt.txid, attempt)
            if attempt.attempt > newest.attempt:
                self._newest[attempt.txid] = attempt
                if (old := self.tracked.get(newest)) is not None:
                    self._give_up(old, "there is a newer attempt")
            elif attempt.attempt < newest.attempt:
                self._give_up(info, "there is a newer attempt")
            if len(self._newest) > _REMEMBERED:
                del self._newest[next(iter(self._newest))]
            return info


class TransactionalBolt(_Attempts):
    """The wrapper around a user's bolt.

    ``early`` is set if the bolt commits, or is behind a committer. It has those sources that neither commit nor are
    behind a committer. They report in the processing phase, which must be able to end while the other sources are
    waited for. Storm's bolt holds all reports back, so there no transaction succeeds if a bolt is both behind a
    committer and beside it, as one is on Storm's own page.
    """

    opaque = False
    """Whether the spout may repeat a transaction with another batch."""

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check the bolt, and the maps that are attributes of the bolt or its class."""
        from multilang.transactional.maps.base import maps_of

        bolt = innermost(self)
        bolt.check_start(conf)
        for found in maps_of(bolt):
            if self.opaque:
                found.check_opaque()
            if own_store(conf, STORE, TRANSACTIONS) is None:
                found.backing.check()
                found.check_owner(conf.get(ID))

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        own = own_store(conf, STORE, TRANSACTIONS)
        if own is not None:
            from multilang.transactional.maps.base import move_maps

            move_maps(innermost(self), own)
        execute = super().start(collector, conf, context)
        if self.id_stream is not None and TRACE in conf:
            self._trace(conf, context)
        return execute

    def _trace(self, conf: dict[str, Any], context: Context) -> None:
        from multilang.transactional.maps.base import maps_of

        steps = Steps(conf, f"{context.component}-{context.task_index}")
        finish = self._finished_id
        for found in maps_of(innermost(self)):
            found.trace = steps

        def finished(attempt: Any) -> None:
            steps.at("COMMIT", attempt.txid)
            steps("finish")
            if finish is not None:
                finish(attempt)
            steps("finished")

        self._finished_id = finished

    def _identified(self, tup: Tuple) -> None:
        """Commit: the tuple of the commit stream has come.

        The processing phase is over, so the whole transaction has come before. If it has not, this task lost it when it
        was restarted. Then the transaction fails now; Storm's would wait for its timeout.
        """
        info = self.tracked.get(tup.values[0])
        with self._lock:
            if self.early.issuperset(self.sources) and (
                info is None or info.reports < self._due_reports or info.received < info.expected
            ):
                self._give_up(self._new(tup.values[0]), "this task lost it when it was restarted")
            if len(tup.values) > 1:  # in run_bolt there is no coordinator, which names the owner
                attempt: Any = self._new(tup.values[0]).id
                attempt.owner, attempt.opaque = tup.values[1], self.opaque
        super()._identified(tup)


class EmitterBolt(_Attempts):
    """The wrapper around the emitters, which handles the commit stream itself: "a commit is no tuple of the batch"."""

    wrapped: TransactionalSpoutBatchExecutor

    def _others(self, wants_ticks: bool) -> dict[str, Callable[[Tuple], bool]]:
        def commit(tup: Tuple) -> bool:
            settle = self._ack if self.wrapped.commit(_attempt(tup.values[0])) else self._fail
            settle(tup)
            return True

        return {**super()._others(wants_ticks), COMMIT_STREAM: commit}


class TransactionalSpoutBatchExecutor(Wrapper):
    """The bolt that runs a spout's emitter for each batch that the coordinator begins (Storm's class of this name)."""

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self._attach(collector, conf, context)
        attach(self.wrapped, collector, conf, context)
        self._active: dict[int, TransactionAttempt] = {}
        self._cleaned = 0
        self._epoch = -1  # no epoch yet
        self._state = open_state(conf)
        steps = self._steps = self._state.trace = Steps(conf, f"emitter-{context.task_index}")
        self._emitter: Any = emitter_of(self.wrapped, self._state, conf, context)
        batch_collector, scope = BatchCollector(collector), collector.scope

        def execute(tup: Tuple) -> None:
            attempt, metadata, committed = tup.values
            scope.current = tup
            try:
                if attempt.epoch != self._epoch:
                    self._enter(attempt)
                steps.at("BATCH", attempt.txid)
                steps("emit")
                self._emitter.emit_batch(attempt, loads(metadata), batch_collector)
                steps("emitted")
            except OutdatedError:
                collector.fail(tup)  # by the failure, its coordinator finds out that it was replaced
            except UnrecoverableError:
                raise
            except Exception as error:  # noqa: BLE001 - user code: if it fails, the transaction fails
                self._report(error, f"in emit_batch of {attempt!r}")
                collector.fail(tup)
            else:
                self._active[attempt.txid] = attempt
                collector.ack(tup)
            scope.current = None
            if committed is not None and committed > self._cleaned:
                self._clean(committed)

        return execute

    def commit(self, attempt: TransactionAttempt) -> bool:
        """Commit an attempt.

        Return False if this task did not emit it, as after a restart: it must be emitted again.
        """
        if self._active.get(attempt.txid) != attempt:
            return False
        self._steps.at("COMMIT", attempt.txid)
        try:
            self._emitter.commit(attempt)
        except OutdatedError:
            return False
        except UnrecoverableError:
            raise
        except Exception as error:  # noqa: BLE001 - user code: if it fails, the transaction fails
            self._report(error, f"in commit of {attempt!r}")
            return False
        del self._active[attempt.txid]
        return True

    def _enter(self, attempt: TransactionAttempt) -> None:
        """Begin another coordinator's epoch: drop earlier batches, and let the emitter read its state again."""
        if attempt.epoch < self._epoch:
            raise OutdatedError(f"{attempt!r} is of epoch {attempt.epoch}, and that of {self._epoch} has begun")
        self._active.clear()
        self._epoch = -1  # until the new epoch has begun
        self._steps.at("CLAIM", -1)
        if hasattr(self._emitter, "enter"):
            self._emitter.enter(attempt.epoch)
        self._epoch = attempt.epoch

    def _clean(self, committed: int) -> None:
        self._cleaned = committed
        for txid in [txid for txid in self._active if txid < committed]:
            del self._active[txid]
        self._emitter.cleanup_before(committed)

    def _report(self, error: Exception, where: str) -> None:
        if not isinstance(error, FailedException) or isinstance(error, ReportedFailedException):
            report_exception(self.wrapped, error, None, where)

    def close(self) -> None:
        if hasattr(self, "_emitter"):
            close_all(self._emitter.close, self._state.close)
