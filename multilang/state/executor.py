"""The wrapper around a stateful bolt: it saves the state at checkpoints, and acks tuples when it is committed.

It is Storm's StatefulBoltExecutor.
"""

from __future__ import annotations

from multilang.component.filters import BoltFilter
from multilang.component.runner import start_bolt
from multilang.helpers.closing import close_all
from multilang.state.bolt import promise_state
from multilang.state.checked import state_of
from multilang.state.checkpointed import Checkpointed
from multilang.state.names import COMMIT, INITSTATE, PREPARE, ROLLBACK
from multilang.state.providers import provider_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple
    from multilang.state.api import State


class StatefulBoltExecutor(Checkpointed):
    """The wrapper around a stateful bolt.

    ``state`` is the task's state. ``_acked`` has what the bolt acked since the last prepare, ``_prepared`` what it
    acked before that. Of an acked tuple only the parts that its real ack needs are held, since there may be the tuples
    of a second. Nobody waits for the ack of a tuple that is anchored to nothing: ``uncommitted`` covers its effect.
    """

    commits = True

    _changed = False  # since the last prepare
    _committing = False  # what changed before it is not committed yet

    def prepare(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        self._provider = provider_of(conf)
        self.state: State = state_of(self._provider, self.namespace)
        self.steps.watch(self.state)
        self._acked: list[Any] = []
        self._prepared: list[Any] = []
        self._pending: list[Tuple] = []  # tuples that came before the state was there
        self._initialized = False
        self._run = self._pending.append
        self._finish = collector.finish
        self._timers = collector.scope.timers
        self._timers.hold()  # until the state is there
        self._start_inner(collector, conf, context)

    def _start_inner(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        promise_state(self.wrapped)
        inner = BoltFilter(collector, ack=collector.deferred_ack(self._acked))
        self._inner: Execute = start_bolt(self.wrapped, inner, conf, context)

    def claim(self, epoch: int) -> None:
        self.state.claim(epoch)

    def handle(self, txid: int, action: str) -> bool:
        bolt, state = self.wrapped, self.state
        if action == PREPARE:
            if not self._initialized:
                return False
            bolt.pre_prepare(txid)
            state.prepare_commit(txid)
            self._prepared += self._acked
            self._acked.clear()
            self._committing |= self._changed
            self._changed = False
            self._run = self._first
        elif action == COMMIT:
            bolt.pre_commit(txid)
            state.commit(txid)
            self._committing = False
            self.steps("acks")
            self._finish(self._prepared, ok=True)
            self.steps("acks done")
        elif action == ROLLBACK:
            bolt.pre_rollback()
            state.rollback()
            self._changed = self._committing = False
            if self._initialized:
                self._run = self._first
            self.steps("fails")
            self._finish(self._prepared, ok=False)
            self._finish(self._acked, ok=False)
            self.steps("fails done")
        elif action == INITSTATE and not self._initialized:
            bolt.init_state(state)
            self._initialized = True
            self._run = self._first
            self._timers.release()
        return True

    @property
    def uncommitted(self) -> bool:
        """True while an effect of tuples, or of awaited timers, may be missing in the committed state."""
        return self._changed or self._committing or bool(self._pending)

    def worked(self) -> None:
        """Note that the state may have changed since the last prepare."""
        self._changed = True
        if self._initialized:
            self._run = self._inner

    def _first(self, tup: Tuple) -> None:
        """Process a tuple while nothing has changed the state since the last prepare."""
        if not self._timers.is_idle(tup):
            self.worked()
        self._inner(tup)

    def completed(self) -> None:
        if self._initialized and self._pending:
            pending, self._pending[:] = self._pending[:], []
            for tup in pending:
                self._run(tup)
        super().completed()

    def close(self) -> None:
        close_all(super().close, self.state.close, self._provider.close)
