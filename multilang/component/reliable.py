"""A spout that replays failed tuples."""

from __future__ import annotations

from multilang.component.base import overload
from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.protocol.errors import LocalProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Values


MAX_SPOUT_PENDING = "topology.max.spout.pending"


class _Sent:
    """A tuple in flight: what to emit again, and how often it failed."""

    __slots__ = ("failures", "stream", "task", "values")

    def __init__(self, values: Values, stream: str | None, task: int | None) -> None:
        self.values = values
        self.stream = stream
        self.task = task
        self.failures = 0


class ReliableSpout(Spout):
    """Keeps what it emitted until it is acked, and emits it again when it fails.

    A failed tuple is replayed after ``replay_delay_secs`` seconds, twice as long each further time up to
    ``max_replay_delay_secs``, at most ``max_replays`` times (None: without limit). After that ``gave_up`` is called,
    which reports it.

    While a task has ``topology.max.spout.pending`` tuples in flight, including those that wait for their replay,
    ``next_tuple`` is not called. This bounds the memory, together with the number of tuples that one call of
    ``next_tuple`` emits. (In a Spark job the rounds are the bound instead.)

    All of this is in the process's memory. When the process dies, the source must deliver again what was in flight. A
    queue does so by itself. A source that is read by position is read again from where everything before was acked
    (multilang.state.PositionSpout, and PartitionSpout in spark_bridge) or, under exact alignment, committed
    (``position`` of ReplayableSpout).

    Attributes:
        max_replays: How often a tuple is replayed at most; None for no limit.
        replay_delay_secs: Seconds before the first replay.
        max_replay_delay_secs: The longest such delay, in seconds.
    """

    max_replays: int | None = 10
    replay_delay_secs: float = 0.0
    max_replay_delay_secs: float = 30.0

    _sent: dict[Any, _Sent]
    _due: dict[Any, float]  # message id -> when to emit it again (monotonic seconds), in the order of the failures
    _serial: int
    _most: float  # the number of tuples in flight from which next_tuple is not called

    def acked(self, tup_id: Any) -> None:
        """Note that the tuple of ``tup_id`` was fully processed, at its first attempt or a later one."""

    def gave_up(self, tup_id: Any, values: Values, failures: int) -> None:
        """Handle a tuple that is not replayed any more; override it to keep the tuple, so that it isn't lost.

        Args:
            tup_id: Its message id.
            values: Its values.
            failures: How often it failed.
        """
        self.report_error(f"gave up tuple {tup_id!r} after {failures} failures: {values!r}")

    @overload
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        *,
        need_task_ids: Literal[True],
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int]: ...

    @overload
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None: ...

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple as Spout.emit does, and keep it until it is acked; ``tup_id`` is a serial number by default."""
        if tup_id is None:
            self._serial = tup_id = self._serial + 1
        key = key_of(tup_id)
        if key in self._sent:
            raise LocalProtocolError(
                f"component {self.context.component!r}: the message id {tup_id!r} is under way already; "
                "use another id, or wait until it is acked"
            )
        # It is kept before it is sent: without ackers Storm acks it at once, before emit returns.
        kept = list(values) if isinstance(values, list | tuple) else values  # type: ignore[redundant-expr]  # refused below
        self._sent[key] = _Sent(kept, stream, direct_task)
        try:
            return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)
        except Exception:
            self._sent.pop(key, None)
            raise

    def emit_many(
        self, rows: Iterable[Values], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        """Send tuples as Spout.emit_many does, and keep them until they are acked."""
        if tup_ids is None:
            for values in rows:
                self.emit(values, None, stream)
        else:
            for values, tup_id in zip(rows, tup_ids, strict=True):
                self.emit(values, tup_id, stream)

    def ack(self, tup_id: Any) -> None:
        key = key_of(tup_id)
        if self._sent.pop(key, None) is not None:
            self._due.pop(key, None)
            self.acked(tup_id)

    def fail(self, tup_id: Any) -> None:
        key = key_of(tup_id)
        sent = self._sent.get(key)
        if sent is None:
            return  # acked before, for example after a timeout that came before a late ack
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
        if due[key] > now:  # the oldest failure is not always the first that is due
            key = min(due, key=due.__getitem__)
            if due[key] > now:
                return len(self._sent) >= self._most  # Storm does not count those that failed and wait here
        del due[key]
        sent = self._sent[key]
        self._collector.emit(sent.values, key, sent.stream, sent.task)
        return True

    @property
    def under_way(self) -> int:
        """The number of tuples that are neither acked nor given up, including those that wait for a replay."""
        return len(self._sent)

    @property
    def waiting_for_replay(self) -> int:
        """The number of tuples that failed and are to be emitted again."""
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


def key_of(tup_id: Any) -> Any:
    """Return ``tup_id`` as a key of a dict: it must come back unchanged, so that it is found again."""
    if not isinstance(tup_id, str | int | float):
        raise LocalProtocolError(
            f"the message id {tup_id!r} is a {type(tup_id).__name__}; a reliable spout's ids are strings or numbers"
        )
    return tup_id
