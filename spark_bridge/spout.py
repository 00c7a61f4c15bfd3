"""A spout over a partition source, which emits every row at least once and resumes where it stopped."""

from __future__ import annotations

from time import monotonic

from multilang.component.errors import ChangedRowsError, ConfigError
from multilang.component.reliable import check_replays
from multilang.component.spout import Spout
from multilang.component.streams import declared_streams
from multilang.helpers.closing import close_all
from multilang.settings import SOURCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, ClassVar

    from multilang.component.collector import SpoutCollector
    from multilang.component.context import Context
    from multilang.component.streams import Stream
    from multilang.store.interface import Store
    from spark_bridge.sources.readahead import Piece, ReadAhead
    from spark_bridge.sources.source import PartitionSource
    from spark_bridge.sources.store import Marks, Resume

_COMPARE_SECS = 2.0  # time that a task's start waits for the comparison with the source that was read before


class OverSource:
    """The base of all spouts over a partition source.

    Args:
        source: A source, or its URL; None: the conf has the URL as ``multilang.source``.
        fields: The names of a row's values; None: those of the source, which is then asked when the topology is
            declared.
    """

    output_fields: ClassVar[Sequence[str] | Mapping[str, Any] | None] = None
    output_streams: ClassVar[Mapping[str, Sequence[str] | Mapping[str, Any] | Stream] | None] = None

    def __init__(self, source: PartitionSource | str | None = None, *, fields: Sequence[str] | None = None) -> None:
        self._given = source
        if fields is not None:
            self.output_fields = list(fields)  # type: ignore[misc]

    def declared_streams(self) -> dict[str, Stream]:
        if self.output_fields is None:
            self.output_fields = self._fields_of_source()  # type: ignore[misc]
        else:
            self._check_declared(list(self.output_fields))
        return declared_streams(self.output_fields, self.output_streams)

    def _check_declared(self, declared: Sequence[str]) -> None:
        """Refuse fields that the source does not have, if they are known here.

        For a source that has to be asked, the tasks check.
        """
        if self._given is not None and not isinstance(self._given, str) and not self._given.asks:
            try:
                check_fields(self._given, declared)
            except ChangedRowsError as error:
                raise ConfigError(str(error)) from None

    def _fields_of_source(self) -> list[str]:
        if self._given is None:
            raise ConfigError(
                f"{type(self).__name__}() takes its source from the conf, {SOURCE!r}; give its fields: fields=[...]"
            )
        source = _opened(self._given)
        try:
            return list(source.fields)
        finally:
            if source is not self._given:
                source.close()

    def source_in(self, conf: Mapping[str, Any]) -> PartitionSource:
        """Return the source, which ``conf`` may name. Nothing is asked of it yet.

        Args:
            conf: The topology's conf.

        Raises:
            ConfigError: The spout has no source, and ``conf`` names none.
        """
        given = self._given
        if given is None:
            given = conf.get(SOURCE)
            if given is None:
                raise ConfigError(f"the spout has no source; put its URL into the conf as {SOURCE!r}", is_unset=True)
            if not isinstance(given, str) or not given:
                raise ConfigError(f"{SOURCE} is {given!r}; use the URL of a source")
        return _opened(given)

    def _open(self, conf: dict[str, Any]) -> PartitionSource:
        source = self.source_in(conf)
        source.configure(conf)
        return source


def check_fields(source: PartitionSource, declared: Sequence[str]) -> None:
    """Raise ChangedRowsError unless the source has the fields that a spout declares."""
    if list(source.fields) != list(declared):
        raise ChangedRowsError(
            f"the source {source.name!r} has the fields {list(source.fields)!r}, the spout declares {list(declared)!r}: give the "
            "spout fields= as the source has them, or none where the source can be asked when the topology is built"
        )


def _checked(group: Any) -> Any:
    """Return the name of a group, which has no "/", since a "/" and its component's name follow it."""
    if isinstance(group, str) and "/" in group:
        raise ConfigError(
            f"the group {group!r} has a '/', so that its component's progress could be taken for that of another group; "
            f"write another sign, as in {group.replace('/', '-')!r}"
        )
    return group


class PartitionSpout(OverSource, Spout):
    """A spout that emits the rows of a source's partitions, which are divided among the spout's tasks.

    A message id is "PARTITION:OFFSET". A row that failed is read again by its offset: at once the first time, and then
    after ``replay_delay_secs``, which doubles with each failure up to ``max_replay_delay_secs``. After ``max_replays``
    replays ``gave_up`` is called.

    The store has the watermark of each partition, from which a restarted task resumes. A source that
    keeps progress itself, as a served one does, is asked for it, too.

    Args:
        source: A source, or its URL; None: the conf has the URL as ``multilang.source``.
        fields: The names of a row's values; None: those of the source, which is then asked when the topology is
            declared.
        store: The store of the progress, its URL, or the path of an SQLite file. None: the one that the conf names as
            ``multilang.source.store`` or ``multilang.store``, or else an SQLite file of this user.
        group: The name of the progress. By default each submission has its own; give two submissions the same group for
            the later one to resume where the earlier one stopped. Without a "/".

    Attributes:
        max_replays: The number of times that a row is replayed; None: until it is acked.
        replay_delay_secs: Seconds before the second replay of a row.
        max_replay_delay_secs: The longest delay before a replay, in seconds.
        max_pending: The number of rows in flight at most; ``topology.max.spout.pending`` if that is less.
        rows_per_next: The number of rows that one ``next_tuple`` emits at most.
        patience_secs: Seconds that a source may be unreachable before the task ends with an error.
        save_secs: Seconds between two writes of the progress.
    """

    emits_again = True

    max_replays: int | None = None
    replay_delay_secs: float = 0.1
    max_replay_delay_secs: float = 30.0
    max_pending: int = 10_000
    rows_per_next: int = 16
    patience_secs: float = 300.0
    save_secs: float = 1.0

    _piece: Piece | None
    _marks: Marks | None = None

    def __init__(
        self,
        source: PartitionSource | str | None = None,
        *,
        fields: Sequence[str] | None = None,
        store: Store | str | None = None,
        group: str | None = None,
    ) -> None:
        super().__init__(source, fields=fields)
        self._store = store
        self._group = _checked(group)

    def check_conf(self, conf: dict[str, Any]) -> None:
        super().check_conf(conf)
        check_replays(self)

    def gave_up(self, tup_id: str, failures: int) -> None:
        """Report a row that will not be replayed any more; the progress goes past it.

        Override it to do something else.

        Args:
            tup_id: The row, as "PARTITION:OFFSET".
            failures: How many times it failed.
        """
        task = f"{self.context.component!r} (task {self.context.task})"
        self.report_error(
            f"gave up in component {task} on tuple {tup_id} (partition:offset), after {failures} failures"
        )

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        check_replays(self)
        try:
            self._start(conf, context)
        except BaseException:
            self.close()  # a task that could not be started is not closed, and its group would stay in use
            raise

    def next_tuple(self) -> None:
        if not self._begun and not self._begin():
            return
        if self._replayed():
            return
        piece = self._piece
        if piece is None:
            piece = self._piece = self._reader.take()
            self._at = 0
            if piece is None:
                self._save_now_and_then()
                return
            self._sums.read(piece.partition, piece.offset, piece.rows)
            if piece.last:
                self._ended.add(piece.partition)
                self._piece = None
                if not self._pending:
                    self._save()
                return
        self._emit_from(piece)
        self._save_now_and_then()

    def ack(self, tup_id: Any) -> None:
        pending = self._pending
        if pending.pop(tup_id, None) is None:
            return  # acked before: after a timeout, a tuple and its replay may both be acked
        if self._failures:
            self._failures.pop(tup_id, None)
            self._due.pop(tup_id, None)
        if not pending and self._piece is None and self._reader.finished:
            self._save()

    def fail(self, tup_id: Any) -> None:
        if tup_id not in self._pending:
            return
        failures = self._failures[tup_id] = self._failures.get(tup_id, 0) + (not self.failing_together)
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
        closes: list[Callable[[], object]] = []
        reader = getattr(self, "_reader", None)
        if reader is not None:
            closes += [self._save, reader.close]
        if self._marks is not None:
            closes += [self._marks.release, self._opened.close]
        close_all(*closes)

    @property
    def waiting_for_replay(self) -> int:
        """The number of rows that failed and are to be emitted again."""
        return len(self._due) + self._asked

    @property
    def stored_elsewhere(self) -> tuple[str, ...]:
        """The conf keys of which one must be set for it to keep its progress; none: it always does."""
        from multilang.settings import SOURCE_GROUP

        return () if self._group else (SOURCE_GROUP,)

    # ---- inside ----

    def kept_marks(self, conf: Mapping[str, Any], component: str) -> tuple[Store, str] | None:
        """Return the store with the marks, and the place there; None if no later run resumes from them.

        Args:
            conf: The spout's conf.
            component: The spout's id.
        """
        from multilang.settings import SOURCE_GROUP
        from spark_bridge.sources.store import marks_store, place_of_group

        group = self._group or conf.get(SOURCE_GROUP)
        return None if group is None else (marks_store(self._store, conf), place_of_group(f"{group}/{component}"))

    def _attach(self, collector: SpoutCollector, conf: dict[str, Any], context: Context) -> None:  # type: ignore[override]
        super()._attach(collector, conf, context)
        self._pending: dict[str, bool] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}  # message id -> when to read it again
        self._asked = 0  # rows that are being read again
        self._begun = False
        self._piece = None
        self._at = 0
        self._next_save = monotonic() + self.save_secs

    def _start(self, conf: dict[str, Any], context: Context) -> None:
        from multilang.settings import SOURCE_GROUP
        from multilang.store.settings import owner_of
        from spark_bridge.sources.readahead import ReadAhead
        from spark_bridge.sources.store import Marks, marks_store

        source = self._source = self._open(conf)
        tasks = context.tasks(context.component)
        mine = range(context.task_index, self._patiently(lambda: source.partitions), len(tasks))
        check_fields(source, list(self.output_fields or ()))
        pending = conf.get("topology.max.spout.pending")
        self._most = min(self.max_pending, pending) if pending else self.max_pending
        run, topology = owner_of(conf)
        group = self._group or _checked(conf.get(SOURCE_GROUP))
        self._opened = marks_store(self._store, conf)
        self._marks = Marks(self._opened, f"{group or run}/{context.component}")
        self._resume = self._patiently(lambda: self._claimed(conf, mine))
        if group:
            self._check_renamed(str(group), topology, context)
        self._ended: set[int] = set()
        self._reported: dict[int, tuple[int, bool]] = {}
        self._reader: ReadAhead = ReadAhead(
            source, self._resume, self.patience_secs, lambda text: self.log(text, "warn")
        )
        self._begin(_COMPARE_SECS)

    def _emit_from(self, piece: Piece) -> None:
        rows, at, partition = piece.rows, self._at, piece.partition
        end = min(at + self.rows_per_next, len(rows), at + self._most - len(self._pending))
        emit, pending, prefix = self.emit, self._pending, f"{partition}:"
        offset = piece.offset + at
        for row in rows[at:end]:
            tup_id = f"{prefix}{offset}"
            pending[tup_id] = True  # before it is emitted: without ackers it is acked before emit returns
            emit(row, tup_id)
            offset += 1
        self._positions[partition] = offset
        self._at = end
        if end == len(rows):
            self._piece = None

    def _replayed(self) -> bool:
        """Emit a failed row that is due and was read again, and return whether there was one."""
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

    def _save_now_and_then(self) -> None:
        now = monotonic()
        if now >= self._next_save:
            self._next_save = now + self.save_secs
            self._save()

    def _save(self) -> None:
        """Write the watermark of each partition, first to the store and then to the source."""
        if not self._begun:
            return
        from spark_bridge.sources.source import Mark, Progress

        marks = dict(self._positions)
        for tup_id in self._pending:
            text, _, offset = tup_id.partition(":")
            partition, mark = int(text), int(offset)
            if mark < marks[partition]:
                marks[partition] = mark
        further = {}
        for each, mark in marks.items():
            if mark > self._saved[each]:
                at, total = self._totals[each] = self._sums.at(each, mark)
                if at > self._saved[each]:
                    further[each] = Mark(at, total, self._resume.about)
                    self._saved[each] = at
        if further:
            self._marks.save(further)  # type: ignore[union-attr]
        news = []
        for each, mark in marks.items():
            done = each in self._ended and mark == self._positions[each]
            if self._reported.get(each) != (mark, done) and (mark or done):
                self._reported[each] = (mark, done)
                at, total = self._totals[each]
                news.append(Progress(each, mark, done, total if at == mark else None))
        if news:
            self._reader.report(news)

    def _claimed(self, conf: dict[str, Any], mine: Collection[int]) -> Resume:
        from multilang.store.settings import may_return, owner_of
        from spark_bridge.sources.store import Resume

        assert self._marks is not None
        self._source.follow(self._marks.group)
        self._marks.claim(mine, *owner_of(conf), lambda text: self.log(text, "warn"), may_return(conf))
        return Resume(self._source, self._marks, mine)

    def _check_renamed(self, group: str, topology: str, context: Context) -> None:
        """Refuse to begin anew beside the progress of a component that the topology does not have any more."""
        from spark_bridge.sources.store import components

        here = set(context.task_component.values())
        removed = [each for each in components(self._opened, group, topology) if each not in here]
        if removed:
            from multilang.component.errors import ChangedRowsError

            raise ChangedRowsError(
                f"group {group!r} has the progress of {removed[0]!r}, which topology {topology!r} does not have: under another name "
                f"the component would begin at the beginning. If it was renamed: rename_progress(STORE, {group!r}, {removed[0]!r}, "
                f"NEW); if it was removed: forget_progress(STORE, {group!r}, {removed[0]!r}); or else give it its name back, or name "
                "another group"
            )

    def _begin(self, wait_secs: float = 0.0) -> bool:
        """Begin if the positions are known by now; return whether they are."""
        if not self._reader.begun(wait_secs):
            return False
        from spark_bridge.sources.source import Sums

        self._positions = dict(self._resume.positions)
        self._saved = {each: mark.watermark for each, mark in self._resume.marks.items()}
        self._totals = {each: (at, self._resume.totals[each]) for each, at in self._positions.items()}
        self._sums = Sums()
        for each, offset in self._positions.items():
            self._sums.begin(each, offset, self._resume.totals[each])
        self._begun = True
        return True

    def _patiently(self, ask: Any) -> Any:
        """Return what ``ask`` returns.

        It is retried while the source is unavailable, which may start a little after the spout.
        """
        from time import sleep

        from multilang.component.errors import SourceUnavailable

        end = monotonic() + min(self.patience_secs, 20.0)  # a task's start must not take longer
        while True:
            try:
                return ask()
            except SourceUnavailable:
                if monotonic() > end:
                    raise
                sleep(0.2)


def _opened(source: PartitionSource | str) -> PartitionSource:
    return open_source(source) if isinstance(source, str) else source


def open_source(where: str) -> PartitionSource:
    """Return the source of a URL.

    Args:
        where: ``served://HOST:PORT``, or the folder that ``publish`` wrote (``file:///...``, ``s3://...``).
    """
    if where.startswith("served://"):
        from spark_bridge.sources.served import ServedSource

        return ServedSource(where)
    from spark_bridge.sources.published import PublishedSource

    return PublishedSource(where)
