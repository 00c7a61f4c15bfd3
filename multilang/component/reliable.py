"""A spout that replays failed tuples."""

from __future__ import annotations

from multilang.component.base import typed_as
from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.protocol.codec import SCALARS, dumps, loads, normalize
from multilang.protocol.errors import LocalProtocolError
from multilang.settings import MAX_REPLAYS, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeAlias

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.component.repeats import Repeats
    from multilang.protocol.messages import Values
    from multilang.protocol.outputs import Outputs

    _Sent: TypeAlias = tuple[Values, str | None, int | None, int]
    """A tuple in flight: its values (see ``_frozen``), its stream, the task of a direct emit, and its number of failures."""

MAX_SPOUT_PENDING = "topology.max.spout.pending"

_ID_TYPES = frozenset({str, int, float})
_MANY_FAILURES = 8  # of one tuple, from which on they are logged; with the usual pauses they take about 6 seconds
_SECOND_DELAY_SECS = 0.1  # before the second replay, at least


class ReliableSpout(Spout):
    """Stores each emitted tuple until it is acked, and replays it when it fails.

    A failed tuple is replayed at once, or after ``replay_delay_secs`` seconds. If it fails again, it is replayed after a
    pause, 0.1 seconds or twice ``replay_delay_secs``, which doubles each further time up to ``max_replay_delay_secs``,
    until it is acked. A replay has the emitted values, even if a list or dict in them was changed since. The log warns
    of a tuple that fails again and again. With ``max_replays`` it is given up after so many replays: ``gave_up`` is
    called, which reports it. A failure together with the other tuples of a block is not counted, since another one may
    be the cause; the tuple is then replayed alone.

    A task never has more than ``topology.max.spout.pending`` tuples in flight, including those that wait for their
    replay. Further tuples of the same ``next_tuple`` are held back and sent, in their order, when others are acked;
    ``next_tuple`` is not called before. Only an emit with ``need_task_ids`` is sent beyond the limit, because its
    caller waits for the answer. (In a Spark job the rounds are the bound instead.)

    All of this is in the process's memory. When the process dies, the source must redeliver what was in flight. A
    queue does so by itself. A source that is read by position is read again from where everything before was acked
    (multilang.state.PositionSpout, and PartitionSpout in spark_bridge) or, under exact alignment, committed
    (``position`` of ReplayableSpout).

    Attributes:
        max_replays: The number of replays after which a tuple is given up; None: it is replayed until it is acked.
            The default is ``multilang.max.replays`` of the conf, or None.
        replay_delay_secs: Seconds before the first replay.
        max_replay_delay_secs: The longest such delay, in seconds.
    """

    emits_again = True

    max_replays: int | None
    replay_delay_secs: float = 0.0
    max_replay_delay_secs: float = 30.0

    _sent: dict[Any, _Sent]
    _due: dict[Any, float]  # message id -> when to emit it again (monotonic seconds), in the order of the failures
    _held: dict[Any, Callable[[list[int]], None] | None]  # those of _sent that are held back, with their on_task_ids
    _outputs: Outputs | None  # checks what is held back
    _repeats: Repeats | None  # warns of tuples that fail again and again
    _serial: int
    _most: float  # the most tuples in flight
    _emits_plainly: bool  # no subclass does more in emit

    def check_conf(self, conf: dict[str, Any]) -> None:
        super().check_conf(conf)
        check_replays(self)

    def acked(self, tup_id: Any) -> None:
        """Note that the tuple of ``tup_id`` was fully processed, at its first attempt or a later one."""

    def gave_up(self, tup_id: Any, values: Values, failures: int) -> None:
        """Handle a tuple that is not replayed any more; override it to store the tuple, so that it isn't lost.

        Args:
            tup_id: Its message id.
            values: Its values.
            failures: How often it failed.
        """
        task = f"{self.context.component!r} (task {self.context.task})"
        self.report_error(f"gave up in component {task} on tuple {tup_id!r}, after {failures} failures: {values!r}")

    @typed_as(Spout.emit)
    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
        on_task_ids: Callable[[list[int]], None] | None = None,
    ) -> list[int] | None:
        """Send a tuple as Spout.emit does, and store it until it is acked; ``tup_id`` is a serial number by default."""
        if tup_id is None:
            self._serial = tup_id = self._serial + 1
        key = key_of(tup_id)
        sent = self._sent
        if key in sent:
            raise LocalProtocolError(
                f"component {self.context.component!r}: the message id {tup_id!r} is in flight already; "
                "use another id, or wait until it is acked"
            )
        if len(sent) >= self._most and (direct_task is not None or not need_task_ids):
            return self._hold(values, key, stream, direct_task, need_task_ids, on_task_ids)
        # It is stored before it is sent: without ackers Storm acks it at once, before emit returns.
        sent[key] = (_frozen(values), stream, direct_task, 0)
        try:
            return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids, on_task_ids)
        except Exception:
            sent.pop(key, None)
            raise

    def emit_many(
        self, rows: Iterable[Values], tup_ids: Iterable[Any] | None = None, stream: str | None = None
    ) -> None:
        """Send tuples as Spout.emit_many does, and store them until they are acked."""
        if tup_ids is None:
            for values in rows:
                self.emit(values, None, stream)
            return
        rows, ids = [_frozen(values) for values in rows], list(tup_ids)
        fits = len(ids) <= self._most - len(self._sent)
        if self._emits_plainly and fits and len(rows) == len(ids) and self._all_new(ids):
            self._emit_all(rows, ids, stream)
            return
        for values, tup_id in zip(rows, ids, strict=True):
            self.emit(_emitted(values), tup_id, stream)

    def _all_new(self, ids: list[Any]) -> bool:
        """Return whether these may be message ids, are all different, and none is in flight."""
        if not _ID_TYPES.issuperset(map(type, ids)):
            return False
        return len(set(ids)) == len(ids) and self._sent.keys().isdisjoint(ids)

    def _emit_all(self, rows: list[Values], ids: list[Any], stream: str | None) -> None:
        """Send tuples that stay within the limit; each is stored before it is sent, as in ``emit``."""
        sent = self._sent
        last: Any = None

        def held() -> Iterator[Values]:
            nonlocal last
            for last, values in zip(ids, rows, strict=True):
                sent[last] = (values, stream, None, 0)
                yield _emitted(values)

        try:
            self._collector.emit_many(held(), ids, stream)  # which takes a row when those before it are sent
        except Exception:
            sent.pop(last, None)
            raise

    def ack(self, tup_id: Any) -> None:
        key = tup_id if type(tup_id) in _ID_TYPES else key_of(tup_id)
        if self._held and key in self._held:
            return  # it was not sent yet: this is the ack of an earlier process
        if self._sent.pop(key, None) is not None:
            if self._due:
                self._due.pop(key, None)
            self.acked(tup_id)

    def fail(self, tup_id: Any) -> None:
        key = key_of(tup_id)
        sent = self._sent.get(key)
        if sent is None or key in self._held:
            return  # acked before, for example after a timeout that came before a late ack
        values, stream, task, failures = sent
        failures += not self.failing_together
        if self.max_replays is not None and failures > self.max_replays:
            del self._sent[key]
            self.gave_up(tup_id, _emitted(values), failures)
            return
        self._sent[key] = (values, stream, task, failures)
        delay = self.replay_delay_secs
        if failures > 1:
            delay = max(2 * delay, _SECOND_DELAY_SECS) * 2.0 ** min(failures - 2, 1000)
        self._due[key] = self.clock() + min(delay, self.max_replay_delay_secs)
        if failures >= _MANY_FAILURES:
            self._warn_of_failures(tup_id, _emitted(values), failures)

    def _warn_of_failures(self, tup_id: Any, values: Values, failures: int) -> None:
        if self._repeats is None:
            from multilang.component.repeats import Repeats

            self._repeats = Repeats(lambda _, text: self.log(text, "warn"), self.clock)
        end = "until it is acked" if self.max_replays is None else f"{self.max_replays} times at most"
        self._repeats.report(
            None,
            f"tuple {tup_id!r} of component {self.context.component!r} (task {self.context.task}) failed {failures} times, and is "
            f"emitted again {end}, with pauses of up to {self.max_replay_delay_secs:g} s; failed tuples that wait for "
            f"their replay: {len(self._due)}. Where one that can't succeed may be dropped, set max_replays, or {MAX_REPLAYS} in the conf. Its values: {values!r:.200}",
            kind=_MANY_FAILURES,
        )

    def replay(self) -> bool:
        if self._held and self.under_way < self._most:
            self._release()
            return True
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
        values, stream, task, _ = self._sent[key]
        self._collector.emit(_emitted(values), key, stream, task)
        return True

    @property
    def under_way(self) -> int:
        """The number of tuples that were sent and are neither acked nor given up, including those to be replayed."""
        return len(self._sent) - len(self._held)

    @property
    def held_back(self) -> int:
        """The number of tuples that were emitted and wait until fewer are in flight."""
        return len(self._held)

    @property
    def waiting_for_replay(self) -> int:
        """The number of tuples that failed and are to be emitted again."""
        return len(self._due)

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._sent = {}
        self._due = {}
        self._held = {}
        self._outputs = None
        self._repeats = None
        self._emits_plainly = type(self).emit is ReliableSpout.emit
        self._serial = 0
        self.max_replays = getattr(self, "max_replays", value(conf, MAX_REPLAYS))
        self._most = float("inf") if collector.settles_in_rounds else conf.get(MAX_SPOUT_PENDING) or float("inf")
        check_replays(self)

    def _hold(
        self,
        values: Values,
        key: Any,
        stream: str | None,
        task: int | None,
        need_task_ids: bool,
        on_task_ids: Callable[[list[int]], None] | None,
    ) -> list[int] | None:
        """Hold a tuple back, as it is now; an error in it is raised at once."""
        from multilang.protocol.messages import DEFAULT_STREAM

        if self._outputs is None:
            from multilang.protocol.outputs import Outputs

            self._outputs = Outputs()
            self._outputs.learn(self.context.component, self.context.task_component, self.context)
        row = normalize(values)
        self._outputs.check(DEFAULT_STREAM if stream is None else stream, row, task)
        self._sent[key] = (row, stream, task, 0)
        self._held[key] = on_task_ids
        return [task] if need_task_ids and task is not None else None

    def _release(self) -> None:
        """Send tuples that were held back, up to the limit."""
        held = self._held
        free = self._most - self.under_way
        while held and free > 0:
            key = next(iter(held))
            on_task_ids = held.pop(key)
            values, stream, task, _ = self._sent[key]
            self._collector.emit(values, key, stream, task, False, on_task_ids)
            free -= 1


class _Text(str):
    """The values of a tuple that has lists or dicts, as the JSON text that is sent, so that changes of those don't matter."""

    __slots__ = ()


def _frozen(values: Any) -> Any:
    """Return a tuple's values in an immutable form, from which ``_emitted`` returns them."""
    if not isinstance(values, (list, tuple)):  # a union is slower
        return values  # refused when it is sent: it is no list
    if SCALARS.issuperset(map(type, values)):
        return [*values]
    try:
        return _Text(dumps(values))
    except (OverflowError, TypeError, ValueError):
        return values  # refused when it is sent


def _emitted(frozen: Any) -> Any:
    return loads(frozen) if type(frozen) is _Text else frozen


def check_replays(spout: Any) -> None:
    """Raise ConfigError if one of a spout's attributes for replays has a wrong value."""
    most = getattr(spout, "max_replays", None)
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
        raise ConfigError(
            f"{type(spout).__name__}.max_replays is {most!r}; use a whole number from 0, or None to replay until it is acked"
        )
    for name in ("replay_delay_secs", "max_replay_delay_secs"):
        secs = getattr(spout, name)
        if not isinstance(secs, int | float) or isinstance(secs, bool) or not secs >= 0:
            raise ConfigError(f"{type(spout).__name__}.{name} is {secs!r}; use seconds from 0")


def key_of(tup_id: Any) -> Any:
    """Return ``tup_id`` if it can be a key of a dict: it must come back from Storm unchanged."""
    if not isinstance(tup_id, str | int | float):
        raise LocalProtocolError(
            f"the message id {tup_id!r} is a {type(tup_id).__name__}; a reliable spout's ids are strings or numbers"
        )
    return tup_id
