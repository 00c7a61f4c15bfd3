"""The checkpoint spout: it starts each checkpoint, and after a failure restores one state in all tasks.

It is Storm's CheckpointSpout with its CheckPointState.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.repeats import Repeats
from multilang.component.spout import Spout
from multilang.helpers.closing import close_all
from multilang.settings import ALIGNMENT, EXACT, PARENT, value
from multilang.state import settings
from multilang.state.api import KeyValueState
from multilang.state.checked import (
    check_committed,
    check_progress,
    check_provider,
    check_whole,
    epoch_of,
    noted_whole,
    position_of,
    state_of,
)
from multilang.state.names import (
    COMMIT,
    COMMITTED,
    COMMITTING,
    EVERY_KEY,
    FIELDS,
    INITSTATE,
    PREPARE,
    PREPARING,
    ROLLBACK,
    SPOUT,
    STATE_KEY,
    STREAM,
    TASKS_KEY,
    namespace,
)
from multilang.state.providers import check_config, provider_of
from multilang.state.shape import Shape, check_shape
from multilang.state.steps import Steps
from multilang.state.witness import Witness
from multilang.store.calls import is_own
from multilang.store.errors import FencedError, InUseError, StateError, StoreGoneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.state.shape import Part
    from multilang.state.witness import Elsewhere

_IN_USE_PAUSE_SECS = 10.0
_ACTIONS = {PREPARING: PREPARE, COMMITTING: COMMIT}
_RECOVERIES = {PREPARING: ROLLBACK, COMMITTING: COMMIT, COMMITTED: INITSTATE}


class CheckpointSpout(Spout):
    """The spout of the stream of checkpoints.

    ``stateful`` has the ids of the components with state, and ``parts`` has what is compared with the stored shape.
    Its progress (the transaction, and PREPARING, COMMITTING or COMMITTED) is stored before it takes effect.
    """

    output_streams = {STREAM: FIELDS}
    must_come_to = "completing a checkpoint"
    last_checkpoint: tuple[int, float, float] | None = None
    """The last committed transaction, when it was committed, by ``clock``, and the seconds that it took."""

    def __init__(self, stateful: Sequence[str], alignment: str, parts: Mapping[str, Part] | None = None) -> None:
        self.stateful = list(stateful)
        self.alignment = alignment
        self.parts = dict(parts or {})
        self.elsewhere: list[Elsewhere] = []
        """For each spout that stores its position elsewhere, the conf keys of which one must be set for that, if any, and its conf."""

    @property
    def came_to_it(self) -> bool:  # type: ignore[override]
        return self.last_checkpoint is not None

    def check_conf(self, conf: dict[str, Any]) -> None:
        self._check(conf)
        check_config(conf, self.alignment == EXACT)

    def check_start(self, conf: dict[str, Any]) -> None:
        Steps(conf, SPOUT)
        provider = provider_of(conf)
        check_provider(provider, namespace(SPOUT, 0))
        provider.check()
        provider.check_free()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._check(conf)
        self._interval = settings.interval_secs(conf)
        name = namespace(SPOUT, context.task_index)
        self._provider = provider_of(conf)
        check_provider(self._provider, name)
        self._name = name
        self._state: KeyValueState[str, Any] = state_of(self._provider, name, KeyValueState)
        self._steps = Steps(conf, name)
        self._steps.watch(self._state)
        self._witness = Witness((), conf)
        self.txid, self.state = -1, COMMITTED
        self.recovering = True
        self._running = False  # a step is in flight
        self._recovery_step = False  # the step in flight belongs to the recovery
        self._started_at = self._ended_at = float("-inf")
        self._not_before = float("-inf")
        self._failures = 0
        self._repeats = Repeats(lambda _, text: self.log(text, "warn"), self.clock)
        self._in_use = ""  # why the states can't be claimed yet; on Storm the topology runs meanwhile
        try:
            self._begin_readable()
        except InUseError as problem:
            if conf.get(PARENT) == "local":
                raise
            self._in_use = f"{problem}. This topology saves no state until then; its tuples time out"
            self.report_error(self._in_use)
        except BaseException:
            self.close()  # or the states would stay claimed while this process runs other topologies
            raise

    def begin(self) -> None:
        """Claim the stored states, and then read them."""
        self.epoch = epoch_of(self._provider)
        self._renewed = True
        if not self._provider.durable:
            # A store in memory ends with this task, while other tasks still run and know its last epoch. They fail
            # checkpoints with an older one: see ``fail``.
            self.epoch = 1
        self._steps.at("CLAIM", self.epoch)
        self._steps("claimed")
        self._state.claim(self.epoch)
        check_progress(self._provider, self._state)
        check_whole(self._provider, self._state, self.stateful)
        tasks = {component: len(self.context.tasks(component)) for component in self.stateful}
        now = Shape(self.alignment, self.parts, tasks)
        tasks = check_shape(self._provider, self._state, now, set(self.context.task_component.values()), self._warn)
        self._witness.close()  # of an earlier try
        self._witness = Witness(self.elsewhere, self.conf)
        self._witness.check(self._provider, self._state, self._warn)
        self._state.commit()
        check_committed(self._provider, self._name, self._state, TASKS_KEY, tasks)
        self.txid, self.state = position_of(self._provider, self._state) or (-1, COMMITTED)

    def _begin_readable(self) -> None:
        """Begin, and explain stored values of a wrong form, which somebody typed, in one sentence."""
        try:
            self.begin()
        except (ConfigError, StateError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            if is_own(self._provider) or is_own(getattr(self._provider, "store", self._provider)):
                raise  # it may be a fault of the user's class
            raise StateError(
                f"what is stored of topology {self.conf.get('topology.name')!r} in {self._provider.describe()} can't be understood "
                f"({type(problem).__name__}: {problem}): it was changed by hand, or damaged. Restore a whole copy, or begin "
                "anew: multilang state rm TOPOLOGY COMPONENT"
            ) from problem

    def is_owner(self) -> bool:
        """Return whether the states are claimed. While another topology owns them, try to claim them now and then."""
        if not self._in_use:
            return True
        if self.clock() < self._not_before:
            return False
        try:
            self._begin_readable()
        except InUseError:
            self._not_before = self.clock() + _IN_USE_PAUSE_SECS
            return False
        self._in_use = ""
        self.log("the states that another topology owned are free: this one continues with them")
        return True

    @staticmethod
    def step_of(stream: str, values: Sequence[Any]) -> str | None:
        """Return the step that an emitted tuple asks for, "begin" or "commit"; None: another one, or none."""
        return {PREPARE: "begin", COMMIT: "commit"}.get(values[1]) if stream == STREAM else None

    def next_tuple(self) -> None:
        self._repeats.report_due()
        if self._running or not self.is_owner():
            return
        now = self.clock()
        if now < self._not_before:
            return
        if self.recovering:
            if self._renewed or self._renew():
                self._ask(_RECOVERIES[self.state])
        elif self.state != COMMITTED:
            self._ask(_ACTIONS[self.state])
        elif now >= max(self._started_at + self._interval, self._ended_at + self._interval / 2):
            # The pause is for checkpoints that take longer than the interval: without it nothing else would be done, and
            # the topology never drained.
            self._started_at = now
            self._save(self.txid + 1, PREPARING)
            self._ask(PREPARE)

    def ack(self, tup_id: Any) -> None:
        if tup_id != self.txid:
            self.log(f"checkpoint {tup_id} was acked, but the current one is {self.txid}", "warn")
            self._running = False
            return
        self._steps("acked")
        self._running = False
        self._failures = 0
        self._not_before = float("-inf")
        if self.recovering:
            if self._recovery_step:  # otherwise the step began before the recovery, whose first step is still to come
                self.recovered()
        elif self.state == PREPARING:
            self.prepared()
        else:
            noted_whole(self._state, self.stateful)
            self._state.put(EVERY_KEY, self.txid)
            self._save(self.txid, COMMITTED)
            now = self._ended_at = self.clock()
            self.last_checkpoint = (self.txid, now, now - self._started_at)
            self.committed()

    def fail(self, tup_id: Any) -> None:
        self.recovering = True
        self._running = self._renewed = False
        # Without a pause, a bolt that can't do its step would be asked all the time.
        pause = min(self._interval / 10 * 2 ** min(self._failures, 10), max(self._interval, 1.0))
        self._failures += 1
        self._not_before = self.clock() + pause
        text = f"checkpoint {tup_id} failed ({self.state}); all tasks go back to what is committed"
        self._repeats.report(None, text, kind=self.state)
        if not self._provider.durable and self.state == COMMITTED:
            self.epoch += 1 + self.epoch // 4

    def exhausted(self) -> bool:
        """Return whether no checkpoint is in flight: then nobody need wait for this spout."""
        return self.state == COMMITTED and not self.recovering and not self._running

    def close(self) -> None:
        close_all(self._repeats.report_rest, self._witness.close, self._state.close, self._provider.close)

    def prepared(self) -> None:
        """Store that all tasks have prepared: from here on the checkpoint will be committed, whatever happens."""
        self._save(self.txid, COMMITTING)

    def committed(self) -> None:
        """React to a complete checkpoint. Nothing unless overridden."""

    def recovered(self) -> None:
        """Continue after a step of the recovery."""
        if self.state == PREPARING:
            self._save(self.txid - 1, COMMITTED)
        elif self.state == COMMITTING:
            self._save(self.txid, COMMITTED)
        else:
            self.recovering = False

    def _renew(self) -> bool:
        """Raise the epoch after a step that failed. Return False if the store is away: then it is tried again.

        A task that died may have left an instance that was stopped before its first claim, and that has the step in its
        pipe. In the same epoch it could, when it is resumed, claim the state of its successor and roll it back.
        """
        try:
            epoch = self._provider.renew()
            if epoch:
                self._state.claim(epoch)
                self.epoch = epoch
        except (FencedError, StoreGoneError):
            raise
        except StateError as problem:
            self._not_before = self.clock() + self._interval
            self._repeats.report(None, f"tasks can't go back to what is committed yet: {problem}", kind="renew")
            return False
        self._renewed = True
        return True

    def _warn(self, text: str) -> None:
        self.log(text, "warn")

    def _ask(self, action: str) -> None:
        if action == COMMIT:
            self._witness.note(self.txid, self.report_error)
        self._running = True
        self._recovery_step = self.recovering
        self._steps.at(action, self.txid)
        self._steps("emit")
        self.emit([self.txid, action, self.epoch], self.txid, STREAM)
        self._steps("emitted")

    def _save(self, txid: int, state: str) -> None:
        self._steps.at(state, txid)
        self._provider.check_owner()
        self._state.put(STATE_KEY, [txid, state])
        self._state.commit()
        self.txid, self.state = txid, state

    def _check(self, conf: dict[str, Any]) -> None:
        settings.check(conf)
        check_alignment(self.alignment, conf)


def check_alignment(built: str, conf: dict[str, Any]) -> None:
    """Raise ConfigError if the conf's alignment is not the one that the topology was built for."""
    wanted = value(conf, ALIGNMENT)
    if wanted != built:
        raise ConfigError(
            f"{ALIGNMENT} is {wanted!r}, and the topology was built for {built!r}: it can't change after build, so "
            f"give it there: build(conf={{{ALIGNMENT!r}: {wanted!r}}})"
        )
