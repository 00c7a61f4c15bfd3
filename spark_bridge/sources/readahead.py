"""Reads a spout's partitions ahead of it, in a thread of its own where a read may take long.

The partitions are read one after the other, a few pieces ahead, so that the memory needed does not depend on their
size. A source bounds its pieces in bytes. Failed rows are read again by offset before anything new is. While a source is unavailable, reads are retried for
``patience_secs``.
"""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from time import monotonic

from multilang.component.errors import ConnectorError, SourceUnavailable, UnrecoverableError
from spark_bridge.sources.source import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from multilang.helpers.plain import Row
    from spark_bridge.sources.source import PartitionSource
    from spark_bridge.sources.store import Resume

PIECE_ROWS = 8192  # rows of a piece at most; a source may give fewer
_AHEAD = 2  # pieces that are read ahead
_MOST_AGAIN = 64  # rows that were read again and not yet taken, at most: they may be long
_FIRST_PAUSE_SECS, _LONGEST_PAUSE_SECS = 0.05, 2.0
_TOUCH_SECS = 2.0  # pause between two messages to a source from which nothing is wanted
_LAST_WORD_SECS = 5.0  # time for the last progress to reach the source, when the spout ends


class Piece:
    """Some rows of a partition, from ``offset`` on. ``last``: the partition has ended, and there are no rows."""

    __slots__ = ("last", "offset", "partition", "rows")

    def __init__(self, partition: int, offset: int, rows: Sequence[Row], last: bool) -> None:
        self.partition = partition
        self.offset = offset
        self.rows = rows
        self.last = last


class ReadAhead:
    """The reader of a task's partitions, used by the spout's thread.

    ``todo``: partitions with the offset to begin at, in order; or the Resume that finds them.
    """

    def __init__(
        self,
        source: PartitionSource,
        todo: list[tuple[int, int]] | Resume,
        patience_secs: float,
        log: Callable[[str], None],
    ) -> None:
        self._source = source
        self._resume: Resume | None = None
        self._todo: deque[tuple[int, int]] = deque()
        if isinstance(todo, list):
            self._todo.extend(todo)
        else:
            self._resume = todo
        self._patience_secs = patience_secs
        self._log = log
        self._pieces: deque[Piece] = deque()
        self._announced: set[int] = set()  # the partition after whose first rows the next one was announced
        self._wanted: deque[tuple[int, int]] = deque()
        self._again: deque[tuple[int, int, Row]] = deque()
        self._news: dict[int, Progress] = {}
        self._messages: deque[str] = deque()
        self._failure: Exception | None = None
        self._closed = False
        self._failing_since: float | None = None
        self._pause = _FIRST_PAUSE_SECS
        self._changed = Condition()
        self._thread: Thread | None = None
        if source.waits:
            self._thread = Thread(target=self._work, name="read ahead", daemon=True)
            self._thread.start()

    # ---- for the spout ----

    def begun(self, wait_secs: float = 0.0) -> bool:
        """Return whether it is known where to begin, after at most ``wait_secs``. Raises the error that prevents it."""
        if self._thread is None:
            while self._resume is not None:
                self._begin()
        with self._changed:
            self._changed.wait_for(lambda: self._resume is None or self._failure is not None, wait_secs)
        self._log_messages()
        return self._resume is None

    def take(self) -> Piece | None:
        """Return the next rows, or None when they are not there yet.

        Raises the error for which the source can't be read.
        """
        self._log_messages()
        if self._thread is None:
            while not self._pieces and self._todo:
                self._read()
        with self._changed:
            if not self._pieces:
                return None
            piece = self._pieces.popleft()
            self._changed.notify_all()
            return piece

    def ask_again(self, partition: int, offset: int) -> None:
        """Have this row read again."""
        with self._changed:
            self._wanted.append((partition, offset))
            self._changed.notify_all()

    def take_again(self) -> tuple[int, int, Row] | None:
        """Return a row that was read again, or None."""
        self._log_messages()
        if self._thread is None and not self._again and self._wanted:
            self._read_again()
        with self._changed:
            if not self._again:
                return None
            self._changed.notify_all()
            return self._again.popleft()

    @property
    def finished(self) -> bool:
        """True if all partitions were read to their end and taken."""
        with self._changed:
            return self._resume is None and not self._todo and not self._pieces

    def report(self, progress: Sequence[Progress]) -> None:
        """Report the progress to the source as soon as the thread has time."""
        if self._thread is None:
            self._source.report(progress)
            return
        with self._changed:
            self._news.update({each.partition: each for each in progress})
            self._changed.notify_all()

    def close(self) -> None:
        """Report to the source what is not reported yet, for some seconds at most, and end."""
        if self._thread is not None:
            with self._changed:
                self._changed.wait_for(lambda: not self._news or self._failing_since is not None, _LAST_WORD_SECS)
                self._closed = True
                self._changed.notify_all()
            self._source.close()  # ends a read that is under way
            self._thread.join(_LAST_WORD_SECS)
        else:
            self._closed = True
            self._source.close()

    def _log_messages(self) -> None:
        while self._messages:
            self._log(self._messages.popleft())
        if self._failure is not None:
            raise self._failure

    # ---- the work, in the thread if there is one ----

    def _work(self) -> None:
        while True:
            with self._changed:
                idle = not self._changed.wait_for(lambda: self._closed or self._job() is not None, _TOUCH_SECS)
                job = self._job()
                if self._closed:
                    return
            if idle or job is None:
                self._touch()
                continue
            try:
                job()
            except SourceUnavailable as error:
                if not self._wait_out(error):
                    return
            except (ConnectorError, UnrecoverableError) as error:
                self._fail(error)
                return
            except Exception as error:  # noqa: BLE001  # a source may raise anything; it is for the spout
                failure = ConnectorError(f"the source can't be read: {error!r}")
                failure.__cause__ = error
                self._fail(failure)
                return
            else:
                if self._failing_since is not None:
                    self._messages.append("the source is available again")
                self._failing_since, self._pause = None, _FIRST_PAUSE_SECS

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def _touch(self) -> None:
        """Contact the source, so that it notices a restart of its driver while nothing is read."""
        try:
            self._source.keep_in_touch()
        except ConnectorError:
            pass  # the next read will raise it

    def _job(self) -> Callable[[], None] | None:
        """Return the next work. The caller has the lock."""
        if self._resume is not None:
            return self._begin
        if self._wanted and len(self._again) < _MOST_AGAIN:
            return self._read_again
        if self._news:
            return self._report
        if self._todo and len(self._pieces) < _AHEAD:
            return self._read
        return None

    def _wait_out(self, error: SourceUnavailable) -> bool:
        """Pause before the next try. Return False when the patience is exhausted, or the spout has ended."""
        now = monotonic()
        if self._failing_since is None:
            self._failing_since = now
            self._messages.append(f"{error}; trying again for {self._patience_secs:g} seconds")
        if now - self._failing_since > self._patience_secs:
            self._fail(error)
            return False
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed, self._pause)
            self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECS)
            return not self._closed

    def _begin(self) -> None:
        resume = self._resume
        assert resume is not None
        if not resume.step():
            with self._changed:
                self._todo.extend(resume.positions.items())
                self._resume = None
                self._changed.notify_all()

    def _read(self) -> None:
        partition, offset = self._todo[0]
        rows = self._source.read(partition, offset, PIECE_ROWS)
        if partition not in self._announced:  # only after rows of this partition, for which the spout waits, have come
            self._announced = {partition}
            if len(self._todo) > 1:
                self._source.soon(*self._todo[1])
        with self._changed:
            self._pieces.append(Piece(partition, offset, rows, not rows))
            if rows:
                self._todo[0] = (partition, offset + len(rows))
            else:
                self._todo.popleft()

    def _read_again(self) -> None:
        partition, offset = self._wanted[0]
        rows = self._source.read(partition, offset, 1)
        if not rows:
            raise ConnectorError(f"partition {partition} of {self._source.name!r} has no row {offset} any more")
        with self._changed:
            self._wanted.popleft()
            self._again.append((partition, offset, rows[0]))

    def _report(self) -> None:
        with self._changed:
            news = list(self._news.values())
        self._source.report(news)
        with self._changed:
            for each in news:
                if self._news.get(each.partition) is each:
                    del self._news[each.partition]
            self._changed.notify_all()
