"""A spout's tuples that Spark has not committed, in a store, so that a batch has the same rows after a crash.

Under exact alignment, a spout's log also has its position at each row where a batch may end. It may be ahead of the states by
rows that are in no batch yet. The position at a batch's end is saved with the batch, and with the states.
"""

from __future__ import annotations

import os
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps, loads
from multilang.store.opening import open_store
from multilang.store.settings import url_of
from multilang.topology.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from multilang.store.interface import Store
    from spark_bridge.job.state import LogPlace, Rows, States

    Offset = dict[str, str | int]


_PLACE = "log"
_ABOUT = "ends"  # the table with the log's ends, and with the spout that it belongs to
_ENDS, _SPOUT = b"ends", b"spout"
_POSITIONS = "positions"  # number of a row -> task index -> the spout's position there, where a batch may end
_ROWS = "rows"  # number -> row


def _open(log: str) -> Store:
    return open_store(url_of(log), setting="the option log")


def positions_in(log: str, row: int) -> dict[int, Any]:
    """Return task index -> the spout's position at this row, where a batch ends.

    Another process may have claimed the log.
    """
    with closing(_open(log)) as store:
        return _positions(store, row)


def _positions(store: Store, row: int) -> dict[int, Any]:
    (found,) = store.get(_PLACE, _POSITIONS, [b"%d" % row])
    return {} if found is None else dict(loads(found))


@cache
def _drawn(process: int) -> str:
    return f"{process} {uuid4().hex}"


def _run() -> str:
    """Return a name for this process, under which a source that is opened again in it can claim the log once more.

    It is drawn at random: the numbers of processes, and the names of hosts, are used more than once.
    """
    return _drawn(os.getpid())


class SpoutLog:
    """The rows from ``first`` to ``next``, numbered from 0. One process has the log at a time.

    An offset is the log's own id and the number of the next row. Raises StateError for a log that is in use, or that can't be
    read.

    Args:
        log: The path of the log's SQLite file, or the URL of its store.
    """

    def __init__(self, log: str) -> None:
        self._store = _open(log)
        self.name = f"the spout log in {self._store.describe()}"
        try:
            self._claim = self._store.claim(_PLACE, _run(), "a streaming query", what="the spout log")
        except BaseException:
            self._store.close()
            raise
        try:
            (found,) = self._store.get(_PLACE, _ABOUT, [_ENDS])
            self.id: str
            self.first: int
            self.next: int
            self.id, self.first, self.next = (uuid4().hex, 0, 0) if found is None else loads(found)
            if found is None:
                self._claim.write({_ABOUT: {_ENDS: self._ends(0, 0)}})
        except BaseException:
            self.close()
            raise

    def belongs_to(self, spout: Mapping[str, Any]) -> None:
        """Store which spout's log this is, or compare it with what is stored.

        Raises SparkJobError for another spout.
        """
        (found,) = self._store.get(_PLACE, _ABOUT, [_SPOUT])
        if found is None:
            self._claim.write({_ABOUT: {_SPOUT: dumps(spout).encode()}})
            return
        before = loads(found)
        for key, value in spout.items():
            if before.get(key) != value:
                raise SparkJobError(
                    f"{self.name} is that of another spout: its {key} was {before.get(key)!r}, and is {value!r}. What "
                    "the log has, and where that spout was, belong together: continue with the spout as it was, or begin a new log "
                    "and a new checkpoint"
                )

    @property
    def begin(self) -> Offset:
        """The offset of the first row that no query has committed."""
        return self._offset(self.first)

    @property
    def end(self) -> Offset:
        """The offset behind the last row."""
        return self._offset(self.next)

    def positions(self) -> dict[int, Any]:
        """Return task index -> the spout's position behind the last row, if the spout has positions."""
        return _positions(self._store, self.next)

    def append(self, rows: Sequence[Sequence[Any]], positions: Mapping[int, Any]) -> None:
        """Write rows and positions to the disk: all of them or, after a crash, nothing."""
        following = self.next + len(rows)
        about = {_ABOUT: {_ENDS: self._ends(self.first, following)}}
        if positions:
            about[_POSITIONS] = {b"%d" % following: dumps(list(positions.items())).encode()}
        self._write(((b"%d" % number, dumps(row).encode()) for number, row in enumerate(rows, self.next)), about)
        self.next = following

    def rows(self, start: Offset, end: Offset) -> list[list[Any]]:
        """Return the rows between two offsets, in their order."""
        numbers = range(self.number(start), self.number(end))
        found = self._store.get(_PLACE, _ROWS, [b"%d" % number for number in numbers])
        if None in found:
            raise SparkJobError(
                f"{self.name} has no row {numbers[found.index(None)]}, and its rows are {self.first} to {self.next}: it was changed "
                "by another program; begin a new log and a new checkpoint"
            )
        return [loads(row) for row in found if row is not None]

    def forget(self, end: Offset) -> None:
        """Delete the rows before ``end``, which will not be read again."""
        number = self.number(end)
        passed = [key for key, _ in self._store.list(_PLACE, _POSITIONS) if int(key) < number]
        ends = {_ENDS: self._ends(number, self.next)}
        passed_rows = ((b"%d" % row, None) for row in range(self.first, number))
        self._write(passed_rows, {_ABOUT: ends, _POSITIONS: dict.fromkeys(passed)})
        self.first = number

    def _write(
        self, rows: Iterable[tuple[bytes, bytes | None]], about: Mapping[str, Mapping[bytes, bytes | None]]
    ) -> None:
        """Write rows and what is stored about them.

        If they are too many for one step, the rest is written before: rows outside of the ends are not read, and are written
        again after a crash.
        """
        last: Mapping[bytes, bytes | None] = {}
        for part in self._store.portions(rows):
            if last:
                self._claim.write({_ROWS: last})
            last = part
        self._claim.write({_ROWS: last, **about})

    def number(self, offset: Any) -> int:
        """Return the number of an offset's row. Raises SparkJobError for an offset that is not in this log."""
        if not isinstance(offset, dict) or offset.get("log") != self.id:
            raise SparkJobError(
                f"the checkpoint is not that of {self.name}, but of another one, or of another kind of source: "
                "name what this query read, or begin a new checkpoint"
            )
        number = int(offset["row"])
        if not self.first <= number <= self.next:
            raise SparkJobError(
                f"the checkpoint continues at row {number}, and {self.name} has rows {self.first} to {self.next}: "
                "one of them is an older copy, or another query reads this log, too; begin a new checkpoint"
            )
        return number

    def close(self) -> None:
        """Release the log, so that another process may claim it."""
        self._claim.release()
        self._store.close()

    def _ends(self, first: int, following: int) -> bytes:
        return dumps([self.id, first, following]).encode()

    def _offset(self, number: int) -> Offset:
        return {"log": self.id, "row": number}


class Handover:
    """The positions of a query's spouts. ``logs``: spout -> its log, which no process has opened yet.

    Raises TopologyError when the states have changed without this query.
    """

    def __init__(self, states: States, logs: Mapping[str, str]) -> None:
        self._states = states
        self._paths = dict(logs)
        self._places = {spout: self._begun(spout, path) for spout, path in logs.items()}

    def moved(self, rows: Mapping[str, int]) -> tuple[dict[str, Rows], dict[str, LogPlace]]:
        """Return the changes of the spouts' states, and the places in their logs, after a batch with so many rows of
        each.

        They have the form that ``States.save`` takes.
        """
        for spout, (log, row) in self._places.items():
            self._places[spout] = (log, row + rows[spout])
        positions = {
            spout: list(positions_in(path, self._places[spout][1]).values()) for spout, path in self._paths.items()
        }
        return self._states.moved(positions), self._places

    def _begun(self, spout: str, path: str) -> LogPlace:
        log = SpoutLog(path)
        try:
            if not log.next:
                positions = self._states.positions(spout)
                log.append((), {task: each for task, each in enumerate(positions) if each is not None})
                self._states.follow(spout, (log.id, 0))
            row = self._states.followed(spout, log.id)
            if row is None:
                raise TopologyError(
                    f"the state in {self._states.describe()} has advanced without this query, and spout {spout!r} with it, so that "
                    f"what is in the query's log ({log.name}) may be counted there already: begin a new checkpoint, whose "
                    "spouts resume where the state is"
                )
            return log.id, row
        finally:
            log.close()
