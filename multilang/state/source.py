"""A source under exact alignment: its spout runs as a bolt, since a spout can't receive checkpoints.

The checkpoint spout sends it turns. In a turn it emits the tuples that it has, anchored to the turn.
"""

from __future__ import annotations

from multilang.component.collector import SpoutCollector
from multilang.component.errors import ConfigError
from multilang.component.runner import start_spout
from multilang.component.timers import TaskTimers
from multilang.state.api import KeyValueState
from multilang.state.checked import state_of
from multilang.state.exact import Fresh
from multilang.state.names import COMMIT, INITSTATE, MORE, PREPARE, ROLLBACK, TURN
from multilang.state.providers import provider_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.component.collector import BoltCollector, Emit
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple, Values

POSITION = "position"


class SourceExecutor(Fresh):
    """The wrapper around a ReplayableSpout."""

    def prepare(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:
        self.keep_declared()
        self._provider = provider_of(conf)
        self._state: KeyValueState[str, Any] = state_of(self._provider, self.namespace, KeyValueState)
        self.steps.watch(self._state)
        self._parts = (conf, context)
        self._turns = SourceCollector(collector, self._emit)
        self._initialized = False
        self._more = False
        self._run = self._turn
        self._start_spout()

    def _start_spout(self) -> None:
        # They run in turns alone, like all calls of a source.
        TaskTimers(self._turns.scope, self._collector.scope.timers.clock)
        self._runner = start_spout(self.wrapped, self._turns, *self._parts)

    def claim(self, epoch: int) -> None:
        self._state.claim(epoch)

    def handle(self, txid: int, action: str) -> bool:
        spout, state = self.wrapped, self._state
        if action == PREPARE:
            if not self._initialized:
                return False
            position = spout.position()
            if position is None:
                raise ConfigError(
                    f"{type(spout).__name__}.position() returned None; return where the next tuple comes from"
                )
            state.put(POSITION, position)
            state.prepare_commit(txid)
        elif action == COMMIT:
            state.commit(txid)
        elif action == ROLLBACK:
            state.rollback()
            self.replace_wrapped()
            self._initialized = False
            self._start_spout()
        elif action == INITSTATE and not self._initialized:
            position = state.get(POSITION)
            if position is not None:
                spout.seek(position)
            self._runner.activate()
            self._initialized = True
        return True

    def _turn(self, tup: Tuple) -> None:
        if tup.stream == MORE:
            # A fail means yes, so that one of several sources is enough. Nothing is anchored to the question.
            (self._fail if self._more else self._ack)(tup)
        elif tup.stream != TURN:  # a tick
            self._ack(tup)
        elif not self._initialized:
            self._fail(tup)
        else:
            turns = self._turns
            turns.turn, turns.emitted = [tup], 0
            next_tuple = self._runner.next
            before = -1
            while before < turns.emitted < tup.values[1]:
                before = turns.emitted
                next_tuple()
            turns.turn = []
            self._more = turns.emitted > 0 or self._runner.exhausted() is False
            self._ack(tup)

    def close(self) -> None:
        super().close()
        self._state.close()
        self._provider.close()


class SourceCollector(SpoutCollector):
    """A spout's collector that emits through a bolt's collector, anchored to the current turn."""

    replays_by_position = keeps_position = True

    def __init__(self, collector: BoltCollector, emit: Emit) -> None:
        super().__init__(reported=collector.reported)
        self._collector = collector
        self._emit = emit
        self.turn: list[Tuple] = []
        self.emitted = 0

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        if not self.turn:
            raise ConfigError(
                "a replayable spout emits in next_tuple alone, where its position advances with its emits"
            )
        self.emitted += 1
        return self._emit(values, stream, self.turn, direct_task, need_task_ids, on_task_ids)

    def log(self, message: str, level: int = 2) -> None:
        self._collector.log(message, level)

    def report_error(self, message: str) -> None:
        self._collector.report_error(message)

    def report_metric(self, name: str, params: Any) -> None:
        self._collector.report_metric(name, params)
