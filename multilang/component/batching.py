"""Bolts that work on groups of tuples."""

from __future__ import annotations

from multilang.component.bolt import AnchoredBolt
from multilang.component.errors import ConfigError, FailedException, ReportedFailedException, UnrecoverableError
from multilang.component.report import report_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Any

    from multilang.component.collector import BoltCollector
    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple


MAX_SPOUT_PENDING = "topology.max.spout.pending"
_MOMENT_SECS = 0.25


class BatchingBolt(AnchoredBolt):
    """Collects tuples into groups by ``group_key`` and gives each group to ``process_batch``.

    A group is due when it holds ``batch_size`` tuples, or at the ``ticks_between_batches``-th tick. Emits are anchored
    to the whole group. When ``process_batch`` returns, the group's tuples are acked, except those that it failed
    itself. When it raises, the group's tuples that are not acked yet fail; the other groups are not affected. Tuples
    still collected when the process ends are neither acked nor failed: they time out and are replayed.
    """

    batch_size: int | None = 1000
    """The most tuples in one group; None for no bound, so that only ticks decide."""

    ticks_between_batches: int = 1
    """The number of ticks after which all groups are due."""

    component_conf = {"topology.tick.tuple.freq.secs": 1}

    _groups: dict[Hashable, list[Tuple]]
    _ticks: int = 0
    _by_ticks = True

    def group_key(self, tup: Tuple) -> Hashable:
        """Return the key of the group that ``tup`` belongs to; unless overridden, all tuples are one group."""
        return None

    def process_batch(self, key: Any, tups: list[Tuple]) -> None:
        """Work on a group of tuples, in the order of their arrival.

        Args:
            key: The group's key.
            tups: The group's tuples.
        """
        raise UnrecoverableError(
            f"{type(self).__name__} has no process_batch method: define process_batch(self, key, tups)"
        )

    def process(self, tup: Tuple) -> None:
        try:
            key = self.group_key(tup)
            group = self._groups.setdefault(key, [])
        except Exception as error:  # noqa: BLE001 - user code: its failure is the tuple's
            self._failed([tup], error)
            return
        group.append(tup)
        if self.batch_size is not None and len(group) >= self.batch_size:
            del self._groups[key]
            self._hand_over(key, group)

    def process_tick(self, tup: Tuple) -> None:
        self._ticks += 1
        if self._ticks >= self.ticks_between_batches:
            self._ticks = 0
            self.process_batches()

    def process_batches(self) -> None:
        """Give all groups to ``process_batch`` now."""
        groups, self._groups = self._groups, {}
        for key, group in groups.items():
            self._hand_over(key, group)

    def ack(self, tup: Tuple | str) -> None:
        self._collector.ack(tup)
        self._unanchor()

    def fail(self, tup: Tuple | str) -> None:
        self._collector.fail(tup)
        self._unanchor()

    def _unanchor(self) -> None:
        # Nothing may be anchored to a tuple after its ack or fail.
        scope = self._collector.scope
        if scope.anchors:
            scope.anchors = [tup for tup in scope.anchors if tup.unfinished]

    def _hand_over(self, key: Hashable, group: list[Tuple]) -> None:
        collector = self._collector
        collector.scope.anchors = group
        try:
            self.process_batch(key, list(group))
        except Exception as error:  # noqa: BLE001 - user code: its failure is the group's
            self._failed(group, error)
        else:
            collector.settle_many(group, True)
        finally:
            collector.scope.anchors = ()

    def _failed(self, group: list[Tuple], error: Exception) -> None:
        if not isinstance(error, FailedException) or isinstance(error, ReportedFailedException):
            report_exception(self, error, group[0], f"in a batch of {len(group)}" if len(group) > 1 else "")
        # The exception is taken to be of an unfinished tuple, if there is one: those that are acked are done.
        all_acked = not any(tup.unfinished for tup in group)
        for tup in group:
            if tup.unfinished:
                self._collector.fail(tup)
            elif all_acked:
                self._collector.fail_acked(tup)

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._groups = {}
        if self.batch_size is not None and (type(self.batch_size) is not int or self.batch_size < 1):
            raise ConfigError(f"{type(self).__name__}.batch_size is {self.batch_size!r}; use a number from 1, or None")
        if type(self.ticks_between_batches) is not int or self.ticks_between_batches < 1:
            raise ConfigError(
                f"{type(self).__name__}.ticks_between_batches is {self.ticks_between_batches!r}; use a number from 1"
            )
        if self._by_ticks and not conf.get("topology.tick.tuple.freq.secs") and self.batch_size != 1:
            raise ConfigError(
                f"{type(self).__name__} of component {context.component!r} gets no ticks, so that a group smaller than "
                "batch_size would wait for ever: set topology.tick.tuple.freq.secs in its conf"
            )


class LingeringBolt(BatchingBolt):
    """A BatchingBolt whose tuples wait for one another for a moment only: a group is due ``linger_secs`` after its first.

    At most half of ``topology.max.spout.pending`` wait, so that a spout can still emit the other half.

    Attributes:
        linger_secs: The longest time for which a tuple waits for others.
    """

    linger_secs: float = 0.05

    component_conf = {}

    @property
    def acks_by_itself(self) -> bool:  # type: ignore[override]
        """True if its tuples wait for a moment only, and not for minutes until a file is rolled."""
        return self.linger_secs <= _MOMENT_SECS

    _by_ticks = False
    _armed = False

    def process(self, tup: Tuple) -> None:
        if not self._armed:
            self._armed = True
            self.set_timer(self.linger_secs, self._flush)
        super().process(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Do nothing: the groups are due by their timer."""

    def _flush(self) -> None:
        self._armed = False
        self.process_batches()

    def _attach(self, collector: BoltCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        most = conf.get(MAX_SPOUT_PENDING)
        if most and self.batch_size is not None:
            self.batch_size = max(1, min(self.batch_size, most // 2))
        if not self.linger_secs >= 0:
            raise ConfigError(f"{type(self).__name__}.linger_secs is {self.linger_secs!r}; use seconds from 0")
        super()._attach(collector, conf, context)
