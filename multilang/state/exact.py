"""Exact alignment: after a failure the state is as if each tuple had been processed once.

With Storm's at-least-once alignment, a task still processes the tuples of an input that has delivered a checkpoint, while
it waits for the other inputs. And tuples whose effect is committed are replayed when their acks were lost. Exact
alignment differs:

- A task holds back the tuples of an input that has delivered a checkpoint until all inputs have delivered it.
- Sources are part of the checkpoint: a commit holds the states together with the positions of the sources that led to
  them.
- A checkpoint is committed when every tuple before it was processed. When a tuple fails or a task dies, everything goes
  back to the last commit: states, positions, and the bolts themselves, which may hold something in memory.

Tuples are acked as soon as they are processed. By the acks, the checkpoint spout knows that nothing is lost; no source waits
for them. The price: a failed tuple undoes everything since the last checkpoint, not that tuple alone.
"""

from __future__ import annotations

from multilang.component.batching import BatchingBolt
from multilang.component.report import report_exception
from multilang.component.runner import close, start_bolt
from multilang.state.bolt import promise_state
from multilang.state.checkpointed import Checkpointed, CheckpointTupleForwarder
from multilang.state.executor import StatefulBoltExecutor
from multilang.state.names import PREPARE, ROLLBACK, STREAM
from multilang.store.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.component.wrapper import Execute
    from multilang.protocol.messages import Tuple


class Fresh(Checkpointed):
    """A wrapper that can replace the component inside it by a new instance."""

    def new_wrapped(self) -> Any:
        declared = self.__dict__.get("_declared")
        if declared is None:
            return super().new_wrapped()
        self.wrapped, before = declared, self.wrapped
        try:
            return super().new_wrapped()
        finally:
            self.wrapped = before

    def keep_declared(self) -> None:
        """Keep the declared component, and run a copy of it. Called before anything is started."""
        if "_declared" not in self.__dict__:
            self._declared = self.wrapped
            self.wrapped = self.new_wrapped()

    def replace_wrapped(self) -> None:
        """Close the wrapped component and put a new instance in its place, which is not started yet."""
        try:
            close(self.wrapped)
        except Exception as error:  # noqa: BLE001 - user code: the instance is dropped in any case
            report_exception(self, error, None, "in close, at a rollback")
        self.wrapped = self.new_wrapped()


class Aligned(Fresh):
    """The common part of both wrappers of bolts: it holds tuples back while a checkpoint is incomplete."""

    def start(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> Execute:
        self.keep_declared()
        self._blocked: set[int] = set()
        self._held: list[Tuple] = []  # tuples from blocked inputs
        self._open: list[Tuple] = []  # tuples that the bolt had neither acked nor failed when it returned
        super().start(collector, conf, context)
        blocked, held, opened = self._blocked, self._held, self._open

        def execute(tup: Tuple) -> None:
            if tup.stream == STREAM:
                self.checkpoint(tup)
            elif tup.task in blocked:
                held.append(tup)
            else:
                self._run(tup)
                if tup.unfinished:
                    opened.append(tup)

        self._execute = execute
        return execute

    def checkpoint(self, tup: Tuple) -> None:
        if tup.values[1] in (PREPARE, ROLLBACK):
            self._blocked.add(tup.task)
        super().checkpoint(tup)

    def completed(self) -> None:
        super().completed()  # first the tuples that came before the state was there
        if self._blocked:
            self._blocked.clear()
            held, self._held[:] = self._held[:], []
            for tup in held:
                self._execute(tup)

    def handle(self, txid: int, action: str) -> bool:
        if action == PREPARE:
            self._check_open()
        elif action == ROLLBACK:
            # These tuples came before the rollback on their input, so their effect is undone, too.
            for tup in [*self._open, *self._held]:
                if tup.unfinished:
                    self._fail(tup)
            self._open.clear()
            self._held.clear()
        return super().handle(txid, action)

    def _check_open(self) -> None:
        if isinstance(self.wrapped, BatchingBolt):
            self.wrapped.process_batches()
        self._open[:] = [tup for tup in self._open if tup.unfinished]
        if self._open:
            raise StateError(
                f"bolt {self.context.component!r} still holds {len(self._open)} tuples at a checkpoint, so that their results "
                "would not be part of it: with exact alignment, ack or fail each tuple in process, or write a "
                "BatchingBolt"
            )


class ExactForwarder(Aligned, CheckpointTupleForwarder):
    """The wrapper around a bolt without state."""

    def prepare(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        self._parts = (collector, conf, context)
        super().prepare(collector, conf, context)

    def handle(self, txid: int, action: str) -> bool:
        done = super().handle(txid, action)
        if action == ROLLBACK:
            self.replace_wrapped()
            self._run = start_bolt(self.wrapped, *self._parts)
        return done


class ExactExecutor(Aligned, StatefulBoltExecutor):
    """The wrapper around a stateful bolt."""

    def _start_inner(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        self._parts = (collector, conf, context)
        promise_state(self.wrapped)
        self._inner = start_bolt(self.wrapped, collector, conf, context)

    def handle(self, txid: int, action: str) -> bool:
        if action == PREPARE and not self._initialized:
            return False  # tuples are open because the state is missing, not because the bolt holds them
        done = super().handle(txid, action)
        if action == ROLLBACK:
            self._pending.clear()  # Aligned.handle has failed them as open tuples
            self.replace_wrapped()
            self._initialized = False
            self._run = self._pending.append
            self._timers.hold()
            self._start_inner(*self._parts)
        return done
