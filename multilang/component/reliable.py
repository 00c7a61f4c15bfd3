"""A spout that replays what failed."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.protocol.errors import LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context


MAX_SPOUT_PENDING = "topology.max.spout.pending"


class _Sent:
    """One tuple under way: what to emit again, and how often it failed."""

    __slots__ = ("failures", "stream", "task", "values")

    def __init__(self, values: Sequence[Any], stream: str | None, task: int | None) -> None:
        self.values = values
        self.stream = stream
        self.task = task
        self.failures = 0


class ReliableSpout(Spout):
    """Keeps what it emitted until it is acked, and emits it again when it fails.

    A failed tuple is replayed after ``replay_delay_secs``, twice as long each further time up to
    ``max_replay_delay_secs``, at most ``max_replays`` times (None: without limit); then ``gave_up`` is told, which
    reports it.

    While ``topology.max.spout.pending`` tuples of a task are under way, those that wait for their replay included,
    ``next_tuple`` is not called; so memory is bounded, by that and by what one call of ``next_tuple`` emits. (Not in a
    Spark job, whose rounds are the bound.)

    All of this is in the process's memory: what is under way when it dies is the source's to give again. A queue does
    that by itself; a source that is read by position does it from where it was acked up to (multilang.state.PositionSpout, and
    PartitionSpout in spark_bridge) or, under exact alignment, committed (``position`` of ReplayableSpout).
    """

    max_replays: int | None = 10
    replay_delay_secs: float = 0.0
    max_replay_delay_secs: float = 30.0

    _sent: dict[Any, _Sent]
    _due: dict[Any, float]  # message id -> when to emit it again (monotonic seconds), in the order of the failures
    _serial: int
    _most: float  # under way, before next_tuple is called no more

    def acked(self, tup_id: Any) -> None:
        """The tuple of ``tup_id`` was fully processed, at its first attempt or a later one."""

    def gave_up(self, tup_id: Any, values: Sequence[Any], failures: int) -> None:
        """The tuple failed ``failures`` times and won't be replayed: keep it elsewhere, so that it isn't lost."""
        self.report_error(f"gave up tuple {tup_id!r} after {failures} failures: {values!r}")

    def clock(self) -> float:
        """Seconds on a clock that never goes back."""
        return monotonic()

    def emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """As Spout.emit, and kept until acked. Without ``tup_id`` a serial number of this task is the id."""
        if tup_id is None:
            self._serial = tup_id = self._serial + 1
        key = _key(tup_id)
        if key in self._sent:
            raise LocalProtocolError(
                f"component {self.context.component!r}: the message id {tup_id!r} is under way already; "
                "use another id, or wait until it is acked"
            )
        # Known before it is sent: with no ackers Storm acks it at once, before emit returns.
        self._sent[key] = _Sent(list(values) if isinstance(values, list | tuple) else values, stream, direct_task)
        try:
            return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)
        except Exception:
            self._sent.pop(key, None)
            raise

    def emit_many(
        self, rows: Iterable[Sequence[Any]], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        """As Spout.emit_many, and kept until acked."""
        if tup_ids is None:
            for values in rows:
                self.emit(values, None, stream)
        else:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                self.emit(values, tup_id, stream)

    def ack(self, tup_id: Any) -> None:
        key = _key(tup_id)
        if self._sent.pop(key, None) is not None:
            self._due.pop(key, None)
            self.acked(tup_id)

    def fail(self, tup_id: Any) -> None:
        key = _key(tup_id)
        sent = self._sent.get(key)
        if sent is None:
            return  # acked before, as after a timeout that was only late
        sent.failures += 1
        if self.max_replays is not None and sent.failures > self.max_replays:
            del self._sent[key]
            self.gave_up(tup_id, sent.values, sent.failures)
            return
        delay = min(self.replay_delay_secs * 2.0 ** min(sent.failures - 1, 1000), self.max_replay_delay_secs)
        self._due[key] = self.clock() + delay

    def replay(self) -> bool:
        due = self._due
        if not due:
            return len(self._sent) >= self._most
        now = self.clock()
        key = next(iter(due))
        if due[key] > now:  # the oldest failure need not be the first due
            key = min(due, key=due.__getitem__)
            if due[key] > now:
                return len(self._sent) >= self._most  # Storm does not count those that failed and wait here
        del due[key]
        sent = self._sent[key]
        self._collector.emit(sent.values, key, sent.stream, sent.task)
        return True

    @property
    def under_way(self) -> int:
        """Tuples emitted and neither acked nor given up, those that wait for their replay included."""
        return len(self._sent)

    @property
    def waiting_for_replay(self) -> int:
        """Tuples that failed and are to be emitted again."""
        return len(self._due)

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._sent = {}
        self._due = {}
        self._serial = 0
        self._most = float("inf") if collector.settles_in_rounds else conf.get(MAX_SPOUT_PENDING) or float("inf")
        for name in ("replay_delay_secs", "max_replay_delay_secs"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{type(self).__name__}.{name} is {getattr(self, name)!r}; use seconds from 0")


def _key(tup_id: Any) -> Any:
    """``tup_id`` as a key of a dict: it must come back as it went, so that it is found again."""
    if not isinstance(tup_id, str | int | float):
        raise LocalProtocolError(
            f"the message id {tup_id!r} is a {type(tup_id).__name__}; a reliable spout's ids are strings or numbers"
        )
    return tup_id
