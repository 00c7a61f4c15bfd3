"""The coordinator, which begins transactions and commits them in order (Storm's TransactionalSpoutCoordinator).

Up to ``topology.max.spout.pending`` transactions (1 unless set) are processed at once, and the first of the processed
ones is committed. When one fails, it and all after it begin again, as other attempts with the same metadata.

It differs from Storm's, which in these cases loses an attempt or stops:

- The failure of an attempt that was replaced already is ignored.
- The numbers of attempts grow, so that a bolt drops replaced attempts.
- Transactions begin in order: if the first is not ready, those after it are not asked.
- A transaction that fails again and again is tried again after a pause.
- A coordinator that was replaced stores nothing, and begins and commits nothing more. On Storm its worker would restart
  it again and again, so there it stays, and checks now and then whether the transactions are free.
"""

from __future__ import annotations

from multilang.component.errors import ConfigError, FailedException, ReportedFailedException
from multilang.component.report import report_exception
from multilang.component.spout import Spout
from multilang.helpers.closing import close_all
from multilang.protocol.codec import dumps
from multilang.settings import PARENT
from multilang.state.steps import Steps, traced
from multilang.store.errors import FencedError, InUseError, UnusableStateError
from multilang.transactional.api import OpaquePartitionedTransactionalSpout, PartitionedTransactionalSpout
from multilang.transactional.attempt import TransactionAttempt
from multilang.transactional.executors import coordinator_of
from multilang.transactional.names import BATCH_STREAM, COMMIT_STREAM, CURRENT, KIND, METADATA, STREAMS, USER
from multilang.transactional.rotating import Changes, RotatingTransactionalState
from multilang.transactional.runs import check_runs
from multilang.transactional.stores import check_state, open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from multilang.component.context import Context
    from multilang.transactional.api import AnySpout
    from multilang.transactional.state import TransactionalState

COORDINATOR = "coordinator"
MAX_PENDING = "topology.max.spout.pending"
ACKERS = "topology.acker.executors"

PROCESSING, PROCESSED, COMMITTING = range(3)
_ASK_SECS = 5.0  # until a passive coordinator checks again
_REPORT_SECS = 30.0  # how long another run may take to end before it is reported that it owns the transactions
_LONGEST_PAUSE_SECS = 1.0
_SHORTEST_PAUSE_SECS = 0.01

WHOLE = "TransactionalSpout"
PARTITIONED = "PartitionedTransactionalSpout"
OPAQUE = "OpaquePartitionedTransactionalSpout"


def kind_of(spout: AnySpout) -> str:
    """Return the kind of a spout, as it is stored."""
    if isinstance(spout, PartitionedTransactionalSpout):
        return PARTITIONED
    return OPAQUE if isinstance(spout, OpaquePartitionedTransactionalSpout) else WHOLE


def check_kind(state: TransactionalState, spout: AnySpout) -> str | None:
    """Check that a spout may continue with stored transactions.

    A spout with partitions stores its progress by partition, and any other one in the metadata of its transactions. So a
    spout of the one kind does not find the progress of the other: it would begin at the beginning, unnoticed.

    Args:
        state: The transactions.
        spout: The topology's spout.

    Returns:
        The kind of the spout that had them; None: none had.

    Raises:
        UnusableStateError: That spout had partitions and this one has none, or the reverse.
    """
    before: str | None = state.get_data(KIND)
    now = kind_of(spout)
    if before is not None and (before == WHOLE) != (now == WHOLE):
        raise UnusableStateError(
            f"{state.describe()}: these transactions were begun by a {before}, and {type(spout).__name__} is a {now}, which does not find "
            "what the other has read: it would begin at the beginning, and all would be counted again. Give the topology the kind of "
            "spout that it had; or begin anew: give TransactionalTopologyBuilder another id, and its maps other names"
        )
    return before


class _Active:
    """A transaction in flight."""

    __slots__ = ("attempt", "status")

    def __init__(self, attempt: TransactionAttempt) -> None:
        self.attempt = attempt
        self.status = PROCESSING


class TransactionalSpoutCoordinator(Spout):
    """The spout that begins and commits transactions; see the module. ``spout`` is the user's transactional spout."""

    output_streams = STREAMS

    def __init__(self, spout: AnySpout) -> None:
        self.spout = spout

    def check_start(self, conf: dict[str, Any]) -> None:
        traced(conf)
        check_state(conf)  # first, since another run's transactions need no further check
        state = open_state(conf)
        try:
            check_runs(state, state.get_data(CURRENT) or 1)
            check_kind(state, self.spout)
        finally:
            state.close()
        self.spout.check_start(conf)

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self._window = pending(conf)
        self._can_end = conf.get(PARENT) == "local"  # on Storm a topology runs until it is killed
        self._active: dict[int, _Active] = {}
        self._report_at: float | None = None  # when to report why it is passive
        self._state = open_state(conf)
        self._steps = self._state.trace = Steps(conf, COORDINATOR)
        try:
            self._claim()
        except BaseException:
            self._state.close()  # which releases the claim
            raise

    def _claim(self, again: bool = False) -> None:
        """Claim the transactions, and read their state. On Storm this task is passive while it can't claim them."""
        self._is_owner = False
        self._steps.at("CLAIM", -1)
        try:
            epoch = self._state.claim(waits=self._can_end, again=again)
        except InUseError as problem:
            if self._can_end:
                raise
            self._wait(str(problem), _REPORT_SECS)
            return
        self._owner = self._state.owner_name()
        self._start(epoch, self.conf, self.context)
        self._is_owner = True
        self._report_at = None

    def _wait(self, why: str, patience: float) -> None:
        """Be passive while another coordinator owns the transactions."""
        now = self.clock()
        if self._report_at is None:
            self._report_at = now + patience
        if now >= self._report_at:
            self.report_error(f"{why}. This coordinator waits until the transactions are free")
            self._report_at = float("inf")  # report it once
        self._ask_at = now + _ASK_SECS

    def _step_down(self, problem: FencedError) -> None:
        """Stop: another coordinator owns the transactions now."""
        self._is_owner = False  # so that pending changes are never stored
        if self._can_end:
            raise problem
        self._coordinator.close()
        del self._coordinator
        self._active.clear()
        self._wait(str(problem), 0)

    def _start(self, epoch: int, conf: dict[str, Any], context: Context) -> None:
        self._changes = Changes(self._state)
        self._metadata = RotatingTransactionalState(self._changes, METADATA)
        self._current: int = self._state.get_data(CURRENT) or 1
        check_runs(self._state, self._current)
        before, kind = check_kind(self._state, self.spout), kind_of(self.spout)
        if before != kind:
            self._changes.set_data(KIND, kind)
        if kind == PARTITIONED and before == OPAQUE:
            self._forget_opaque()
        self._last_attempt = TransactionAttempt.first_of(epoch)
        self._active.clear()
        self._failures = 0
        self._in_doubt = False
        self._not_before = float("-inf")
        self._coordinator = coordinator_of(self.spout, self._state, conf, context)
        if hasattr(self._coordinator, "resume"):
            self._coordinator.resume()

    def _forget_opaque(self) -> None:
        """Drop the transactions that an opaque spout began and did not commit: they begin anew, with a number of partitions.

        Their rows are not fixed. Some tasks may have stored the ends of their partitions, and one that read nothing stored the
        previous batch: as the progress of the transaction, these would leave rows out, or repeat some.
        """
        self._metadata.forget_from(self._current)
        for partition in self._state.list(USER):
            RotatingTransactionalState(self._changes, f"{USER}/{partition}").forget_from(self._current)
        self._changes.write()  # since the spout's own coordinator reads the store

    def next_tuple(self) -> None:
        """Begin the transactions that may begin, and commit the one that may be committed."""
        if not self._is_owner:
            if self.clock() >= self._ask_at:
                self._claim(again=True)
            return
        if self.clock() < self._not_before:
            return
        try:
            self._go_on()
        except FencedError as problem:
            self._step_down(problem)

    def _go_on(self) -> None:
        begins = []
        for txid in range(self._current, self._current + self._window):
            if txid not in self._active:
                if txid not in self._metadata and not self._initialize(txid):
                    break
                begins.append(txid)
        # Store a transaction before it begins, and the last commit before the next one. Otherwise, after a crash, a
        # transaction could get another batch, or be committed again after its successor.
        self._steps.at("BEGIN", self._current)
        self._changes.write(verify=self._in_doubt)
        self._in_doubt = False
        first = self._active.get(self._current)
        if first is not None and first.status == PROCESSED:
            first.status = COMMITTING
            self._steps.at("COMMIT", self._current)
            self._steps("emit")
            self.emit([first.attempt, self._owner], first.attempt, COMMIT_STREAM)
            self._steps("emitted")
        for txid in begins:
            self._begin(txid)

    def ack(self, tup_id: Any) -> None:
        active = self._active_of(tup_id)
        if active is None:
            return
        txid = active.attempt.txid
        self._steps.at("BEGIN" if active.status == PROCESSING else "COMMIT", txid)
        self._steps("acked")
        if active.status == PROCESSING:
            active.status = PROCESSED
        elif active.status == COMMITTING:
            del self._active[txid]
            self._current = txid + 1
            self._changes.set_data(CURRENT, self._current)
            self._metadata.cleanup_before(txid)
            self._failures = 0
            self._not_before = float("-inf")

    def fail(self, tup_id: Any) -> None:
        active = self._active_of(tup_id)
        if active is None:
            return
        for txid in [txid for txid in self._active if txid >= active.attempt.txid]:
            del self._active[txid]
        if self._failures:
            pause = min(_SHORTEST_PAUSE_SECS * 2.0 ** min(self._failures, 10), _LONGEST_PAUSE_SECS)
            self._not_before = self.clock() + pause
        self._failures += 1
        self._in_doubt = True  # another coordinator may be the cause

    def source_id(self, tup_id: Any) -> int:
        return TransactionAttempt.parse(tup_id).txid

    def exhausted(self) -> bool | None:
        self._steps.at("BEGIN", self._current)
        try:
            self._changes.write()  # a source may ask the store what is committed
        except FencedError as problem:
            self._step_down(problem)
        begun = self._current in self._metadata  # it will be committed, whatever has become of its attempts
        return False if begun else self._has_ended()

    def close(self) -> None:
        closes: list[Callable[[], object]] = []
        if hasattr(self, "_coordinator"):
            closes.append(self._coordinator.close)
            if self._is_owner:
                closes.append(self._changes.write)
        if hasattr(self, "_state"):
            closes.append(self._state.close)
        close_all(*closes)

    def _active_of(self, tup_id: str) -> _Active | None:
        """Return the transaction in flight whose current attempt this is; None if the attempt was replaced."""
        active = self._active.get(TransactionAttempt.parse(tup_id).txid)
        return active if active is not None and active.attempt == tup_id else None

    def _begin(self, txid: int) -> None:
        self._last_attempt += 1
        attempt = TransactionAttempt(txid, self._last_attempt)
        self._active[txid] = _Active(attempt)
        # As text: Storm can't send lists and objects from one worker to another.
        values = [attempt, dumps(self._metadata[txid]), self._current - 1 or None]
        self._steps.at("BEGIN", txid)
        self._steps("emit")
        self.emit(values, attempt, BATCH_STREAM)
        self._steps("emitted")

    def _initialize(self, txid: int) -> bool:
        """Get the metadata of a new transaction. Return False if there is none to begin now."""
        try:
            if not self._coordinator.is_ready() or (self._can_end and self._has_ended()):
                return False
            self._metadata[txid] = self._coordinator.initialize_transaction(txid, self._metadata.before(txid))
        except FailedException as error:
            if isinstance(error, ReportedFailedException):
                report_exception(self, error, None, f"at the beginning of transaction {txid}")
            return False
        return True

    def _has_ended(self) -> bool | None:
        """Return whether no new transaction will come; None if that is unknown."""
        last = max(self._metadata, default=0)
        ended: bool | None = self._coordinator.exhausted(self._metadata[last] if last else None)
        return ended


def pending(conf: dict[str, Any]) -> int:
    """Return the number of transactions that may be in flight at once.

    Raises:
        ConfigError: With these settings no transaction could be committed.
    """
    if conf.get(ACKERS) == 0:
        raise ConfigError(
            f"{ACKERS} is 0: without ackers it is unknown when a transaction is done; leave it out, or give a number from 1"
        )
    value = conf.get(MAX_PENDING)
    if value is None:
        return 1
    if type(value) is not int or value < 1:
        raise ConfigError(f"{MAX_PENDING} is {value!r}; use the largest number of transactions in flight, from 1")
    return value
