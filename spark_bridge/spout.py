"""A spout over a partition source: every row at least once, from wherever it stopped."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ConfigError
from multilang.component.spout import Spout
from multilang.component.streams import declared_streams
from spark_bridge.sources.errors import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, ClassVar

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from spark_bridge.sources.readahead import Piece, ReadAhead
    from spark_bridge.sources.source import PartitionSource
    from spark_bridge.sources.store import WatermarkStore

SOURCE = "multilang.source"
GROUP = "multilang.source.group"
STORE = "multilang.source.store"


class OverSource:
    """A spout of any kind over a partition source.

    ``source``: a source, or the URL of one; None: the URL is in the conf, ``multilang.source``. ``fields``: the names of
    a row's values; the source's own if None, which is then asked when the topology is declared.
    """

    output_fields: ClassVar[Sequence[str] | None] = None
    output_streams: ClassVar[Mapping[str, Sequence[str] | Stream] | None] = None

    def __init__(self, source: PartitionSource | str | None = None, *, fields: Sequence[str] | None = None) -> None:
        self._given = source
        if fields is not None:
            self.output_fields = list(fields)  # type: ignore[misc]

    def declared_streams(self) -> dict[str, Stream]:
        if self.output_fields is None:
            self.output_fields = self._fields_of_source()  # type: ignore[misc]
        return declared_streams(self.output_fields, self.output_streams)

    def _fields_of_source(self) -> list[str]:
        if self._given is None:
            raise ConfigError(
                f"{type(self).__name__}() takes its source from the conf, {SOURCE!r}; say its fields: fields=[...]"
            )
        source = _opened(self._given)
        try:
            return list(source.fields)
        finally:
            if source is not self._given:
                source.close()

    def _open(self, conf: dict[str, Any]) -> PartitionSource:
        """The source, which the conf may name."""
        given = self._given
        if given is None:
            given = conf.get(SOURCE)
            if not isinstance(given, str) or not given:
                raise SourceError(f"the spout has no source; put its URL into the conf as {SOURCE!r}")
        return _opened(given)

    def _check_fields(self, source: PartitionSource) -> None:
        declared = list(self.output_fields or ())
        if list(source.fields) != declared:
            raise SourceError(f"the source has the fields {list(source.fields)!r}, the spout declares {declared!r}")


class PartitionSpout(OverSource, Spout):
    """Emits the rows of a source's partitions, which are dealt over the spout's tasks. ``source`` and ``fields``: see OverSource.

    A message id is "PARTITION:OFFSET". A row that failed is read again by its offset, at once the first time and then
    after ``replay_delay_secs``, doubled each time up to ``max_replay_delay_secs``; at most ``max_replays`` times (None:
    until it is acked), then ``gave_up`` is told. At most ``max_pending`` rows are under way, or
    ``topology.max.spout.pending`` if that is less.

    How far each partition is acked is kept in ``store`` (a SQLiteStore unless given) under ``group``, by default one
    submission's: a task that was started again goes on there. For a later submission to go on where this one stopped, give
    both the same group. A source that keeps account itself, as a served one does, is asked too.
    """

    max_replays: int | None = None
    replay_delay_secs: float = 0.1
    max_replay_delay_secs: float = 30.0
    max_pending: int = 10_000
    rows_per_next: int = 16
    patience_secs: float = 300.0
    """Seconds that a source may be out of reach before the task ends with an error."""
    save_secs: float = 1.0
    """Seconds between two times that the progress is kept."""

    _piece: Piece | None
    _store: WatermarkStore | None

    def __init__(
        self,
        source: PartitionSource | str | None = None,
        *,
        fields: Sequence[str] | None = None,
        store: WatermarkStore | None = None,
        group: str | None = None,
    ) -> None:
        super().__init__(source, fields=fields)
        self._store = store
        self._group = group

    def gave_up(self, tup_id: str, failures: int) -> None:
        """The row failed ``failures`` times and won't be read again; the progress goes past it."""
        self.report_error(f"gave up row {tup_id} (partition:offset) after {failures} failures")

    def clock(self) -> float:
        """Seconds on a clock that never goes back; in a simulated run, virtual ones."""
        return monotonic()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        from spark_bridge.sources.readahead import ReadAhead

        source = self._source = self._open(conf)
        tasks = context.tasks(context.component)
        mine = range(context.task_index, self._patiently(lambda: source.partitions), len(tasks))
        self._check_fields(source)
        pending = conf.get("topology.max.spout.pending")
        self._most = min(self.max_pending, pending) if pending else self.max_pending
        self._open_store(conf, context)
        known = self._patiently(source.progress)
        kept = self._store.load(self._key)  # type: ignore[union-attr]
        # Up to there everything was acked, as far as either knows.
        self._positions = {each: max(kept.get(each, 0), known.get(each, 0)) for each in mine}
        self._saved = dict(kept)
        self._ended: set[int] = set()
        self._told: dict[int, tuple[int, bool]] = {}
        self._reader: ReadAhead = ReadAhead(
            source, list(self._positions.items()), self.patience_secs, lambda text: self.log(text, "warn")
        )

    def next_tuple(self) -> None:
        if self._replayed():
            return
        piece = self._piece
        if piece is None:
            piece = self._piece = self._reader.take()
            self._at = 0
            if piece is None:
                self._keep_now_and_then()
                return
            if piece.last:
                self._ended.add(piece.partition)
                self._piece = None
                if not self._pending:
                    self._keep()
                return
        self._emit_from(piece)
        self._keep_now_and_then()

    def ack(self, tup_id: Any) -> None:
        pending = self._pending
        if pending.pop(tup_id, None) is None:
            return  # acked before, as after a timeout that was only late
        if self._failures:
            self._failures.pop(tup_id, None)
            self._due.pop(tup_id, None)
        if not pending and self._piece is None and self._reader.finished:
            self._keep()

    def fail(self, tup_id: Any) -> None:
        if tup_id not in self._pending:
            return
        failures = self._failures[tup_id] = self._failures.get(tup_id, 0) + 1
        if self.max_replays is not None and failures > self.max_replays:
            del self._pending[tup_id], self._failures[tup_id]
            self.gave_up(tup_id, failures)
            return
        delay = 0.0
        if failures > 1:
            delay = min(self.replay_delay_secs * 2 ** min(failures - 2, 60), self.max_replay_delay_secs)
        self._due[tup_id] = self.clock() + delay

    def exhausted(self) -> bool:
        return not self._pending and self._piece is None and self._reader.finished

    def close(self) -> None:
        reader = getattr(self, "_reader", None)
        if reader is not None:
            try:
                self._keep()
            finally:
                reader.close()
        if self._store is not None:
            self._store.close()

    @property
    def waiting_for_replay(self) -> int:
        """Rows that failed and are to be emitted again."""
        return len(self._due) + self._asked

    # ---- inside ----

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._pending: dict[str, bool] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}  # message id -> when to read it again
        self._asked = 0  # rows that are being read again
        self._piece = None
        self._at = 0
        self._next_keep = monotonic() + self.save_secs

    def _emit_from(self, piece: Piece) -> None:
        rows, at, partition = piece.rows, self._at, piece.partition
        end = min(at + self.rows_per_next, len(rows), at + self._most - len(self._pending))
        emit, pending, prefix = self.emit, self._pending, f"{partition}:"
        offset = piece.offset + at
        for row in rows[at:end]:
            tup_id = f"{prefix}{offset}"
            pending[tup_id] = True  # known before it is sent: with no ackers it is acked before emit returns
            emit(row, tup_id)
            offset += 1
        self._positions[partition] = offset
        self._at = end
        if end == len(rows):
            self._piece = None

    def _replayed(self) -> bool:
        """Emit a row that failed, if there is one that is due and read again."""
        due = self._due
        if due:
            now = self.clock()
            for tup_id in [each for each, when in due.items() if when <= now]:
                del due[tup_id]
                partition, _, offset = tup_id.partition(":")
                self._asked += 1
                self._reader.ask_again(int(partition), int(offset))
        while self._asked:
            again = self._reader.take_again()
            if again is None:
                return False
            self._asked -= 1
            number, position, row = again
            tup_id = f"{number}:{position}"
            if tup_id in self._pending and tup_id not in due:  # else it was acked after all, or failed once more
                self.emit(row, tup_id)
                return True
        return False

    def _keep_now_and_then(self) -> None:
        now = monotonic()
        if now >= self._next_keep:
            self._next_keep = now + self.save_secs
            self._keep()

    def _keep(self) -> None:
        """Keep how far each partition is acked: first in the store, then at the source."""
        from spark_bridge.sources.source import Progress

        marks = dict(self._positions)
        for tup_id in self._pending:
            text, _, offset = tup_id.partition(":")
            partition, mark = int(text), int(offset)
            if mark < marks[partition]:
                marks[partition] = mark
        further = {each: mark for each, mark in marks.items() if mark > self._saved.get(each, 0)}
        if further:
            self._store.save(self._key, further)  # type: ignore[union-attr]
            self._saved.update(further)
        news = []
        for each, mark in marks.items():
            done = each in self._ended and mark == self._positions[each]
            if self._told.get(each) != (mark, done) and (mark or done):
                self._told[each] = (mark, done)
                news.append(Progress(each, mark, done))
        if news:
            self._reader.report(news)

    def _open_store(self, conf: dict[str, Any], context: Context) -> None:
        from spark_bridge.sources.store import SQLiteStore

        if self._store is None:
            self._store = SQLiteStore(conf.get(STORE))
        group = self._group or conf.get(GROUP) or f"{conf.get('storm.id')}"
        self._key = f"{group}/{context.component}/{self._source.name}"

    def _patiently(self, ask: Any) -> Any:
        """An answer of the source, which may be started a little later than the spout."""
        from time import sleep

        from spark_bridge.sources.errors import SourceUnavailable

        end = monotonic() + min(self.patience_secs, 20.0)  # initialize may not take for ever
        while True:
            try:
                return ask()
            except SourceUnavailable:
                if monotonic() > end:
                    raise
                sleep(0.2)


def _opened(source: PartitionSource | str) -> PartitionSource:
    if isinstance(source, str):
        from spark_bridge.sources.source import open_source

        return open_source(source)
    return source
