"""Writes to places in ZooKeeper: each is one request that begins with its checks, and is done once."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from multilang.store.claims import OWNER
from multilang.store.errors import StateError
from multilang.store.zookeeper_nodes import WRITERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Sequence
    from typing import Any, TypeAlias

    from multilang.store.interface import Rows
    from multilang.store.zookeeper_nodes import Node, Nodes

    Row: TypeAlias = tuple[str, bytes]
    """Its table and key."""

MOST_BYTES = 1_000_000  # of a request: ZooKeeper takes a little more (jute.maxbuffer)
_OTHER_BYTES = 200  # of an operation, beside its path and data
_MOST_EMPTIED = MOST_BYTES // 2  # of the rows of tables that are emptied, in the last request
_MOST_REMEMBERED = 100_000  # rows
_TRIES = 100  # of a write whose rows others change
_CHANGED = ("BadVersionError", "NoNodeError", "NodeExistsError", "NotEmptyError")


class Write(NamedTuple):
    """The arguments of ``Store.compare_and_write``."""

    expected: Rows
    changes: Rows
    cleared: Collection[str]
    merged: tuple[str, str] | None


class Writer:
    """A part of a store that makes one write to a place after the other.

    Args:
        nodes: The nodes of all places.
        place: The place.

    Attributes:
        place: The place.
        mark: The path of this writer's node; empty if there is none yet.
        version: The version of that node.
        removals: By table, the version of the node that counts its removals, at which rows were read.
        known: Rows that were expected, with their data and versions.
        there: Whether there is such a row, as it was seen last.
    """

    def __init__(self, nodes: Nodes, place: str) -> None:
        self.nodes = nodes
        self.place = place
        self._at = nodes.at(place)
        self._number = 0
        self._forget()

    def _forget(self) -> None:
        """Forget the place: it may have been deleted, and made again."""
        self.mark = ""
        self.version = 0
        self.removals: dict[str, int] = {}
        self.known: dict[Row, Node] = {}
        self.there: dict[Row, bool] = {}
        self._tables: set[str] = set()  # that are there

    def path(self, row: Row) -> str:
        """Return the path of a row's node."""
        return self.nodes.path(self.place, *row)

    def path_of_removals(self, table: str) -> str:
        """Return the path of the node that counts the steps that removed rows of a table."""
        above, _, name = self.nodes.at(self.place, table).rpartition("/")
        return f"{above}/${name}"

    def write(self, write: Write, trace: Callable[[str], None]) -> tuple[bool, bool]:
        """Write once.

        Returns:
            Whether it was done, and whether there is more to be removed or merged.
        """
        self._number += 1
        number = b"%d" % self._number
        lost: list[bool] = []
        for _ in range(_TRIES):
            if not self.mark:
                if lost and self._is_as_wanted(write.changes):
                    return True, False
                if not self._is_expected(write.expected):
                    return False, False
                if lost:
                    raise StateError(
                        f"{self._at} in ZooKeeper {self.nodes.servers}: the answer to a write was lost, and so was the proof that it was "
                        "done. Restart the topology, from what is stored"
                    )
                self._enter()
            if not self._is_expected(write.expected):
                return False, False
            tables = {*write.expected, *write.changes, *write.cleared, *(write.merged or ())}
            if not self._make_tables(tables):
                self._forget()
                continue
            request = _Request(self, write, number)
            trace("sync")
            failed = request.send(lambda: lost.append(True))
            if failed is None:
                self.version += 1
            elif failed[0] != self.mark or not self._was_done(number):
                self._look_again(request, *failed)
                if self.mark and failed[0] != self.mark:
                    lost.clear()  # no copy was done: the version of this writer's node was the expected one
                continue
            request.note(is_known=failed is None)
            trace("synced")
            return True, request.is_part
        raise StateError(
            f"{self._at} in ZooKeeper {self.nodes.servers}: rows come and go there; is it used by something else, too?"
        )

    def look_up(self, rows: Collection[Row]) -> None:
        """See which rows are there."""
        found = self.nodes.are_there(self.place, [self.path(row) for row in rows])
        self.there.update(zip(rows, found, strict=True))

    def see_removals(self, table: str) -> None:
        """Read how many removals there were in a table."""
        (found,) = self.nodes.read(self.place, [self.path_of_removals(table)])
        self.note_removals(table, None if found is None else found[1])

    def note_removals(self, table: str, version: int | None) -> None:
        """Note the version of the node that counts removals. Rows that were read at another one may have been removed."""
        if version is None or self.removals.get(table) != version:
            self.known = {row: found for row, found in self.known.items() if row[0] != table}
            self.removals.pop(table, None)
        if version is not None:
            self.removals[table] = version

    def is_counted(self, table: str) -> bool:
        """Return whether a removal in a table would be seen from now on."""
        return table == OWNER or table in self.removals

    def _enter(self) -> None:
        """Make this writer's node. What is read from now on was there after it."""
        mark = self.nodes.new_mark(self.place)
        paths = [self._at, f"{self._at}/{WRITERS}", mark]
        if not self.nodes.make(paths):
            self.nodes.make_root()
            self.nodes.make(paths)
        self.nodes.are_there(self.place, [mark])  # with a login it is refused if another one made the place
        self._forget()
        self.mark = mark

    def _is_expected(self, expected: Rows) -> bool:
        """Return whether rows are as expected, as far as that is known without asking again."""
        rows = _flat(expected).items()
        absent = [row for row, value in rows if value is None and self.there.get(row)]
        if absent:
            self.look_up(absent)
            if any(self.there[row] for row in absent):
                return False
        unknown = {row: value for row, value in rows if value is not None and self._value(row) != value}
        if not unknown:
            return True
        tables = [*dict.fromkeys(table for table, _ in unknown if table != OWNER)]
        # The removals are read first, so that each one after the reading of a row is seen by them. A removal of rows of an
        # owner removes the nodes of other writers, so that these need not look for it.
        paths = [*map(self.path_of_removals, tables), *map(self.path, unknown)]
        found = self.nodes.read(self.place, paths)
        for table, removals in zip(tables, found, strict=False):
            self.note_removals(table, None if removals is None else removals[1])
        for (row, value), node in zip(unknown.items(), found[len(tables) :], strict=True):
            if node is None or node[0] != value or not self.is_counted(row[0]):
                return False
            self.known[row] = node
        # A removal that was seen now may be of a row that was known before.
        return all(self._value(row) == value for row, value in rows if value is not None) or self._is_expected(expected)

    def _value(self, row: Row) -> bytes | None:
        node = self.known.get(row)
        return None if node is None else node[0]

    def _make_tables(self, tables: Iterable[str]) -> bool:
        """Make the nodes of tables; return False if the place was removed."""
        new = [table for table in tables if table not in self._tables]
        paths = [self.nodes.at(self.place, table) for table in new]
        paths += [self.path_of_removals(table) for table in new if table != OWNER]
        if not self.nodes.make(paths):
            return False
        self._tables.update(new)
        return True

    def _was_done(self, number: bytes) -> bool:
        """Return whether the last write of this writer was that of the number."""
        self.nodes.distrust(self.place)
        (found,) = self.nodes.read(self.place, [self.mark])
        if found is None:
            self._forget()
            return False
        last, self.version = found
        return last == number  # else an earlier one, which was given up, was done after all

    def _is_as_wanted(self, changes: Rows) -> bool:
        wanted = _flat(changes)
        found = self.nodes.read(self.place, [self.path(row) for row in wanted])
        return bool(wanted) and [None if node is None else node[0] for node in found] == [*wanted.values()]

    def _look_again(self, request: _Request, path: str, problem: Exception) -> None:
        """Read the nodes again that a request has found otherwise than this writer knows them."""
        if type(problem).__name__ not in _CHANGED:
            raise self.nodes.client.unusable(path, problem) from None
        self.nodes.distrust(self.place)  # a server that lags behind would give the old versions for ever
        if path in request.checked:
            self.note_removals(request.checked[path], None)
        elif self.mark and path != self.mark:
            self._tables.clear()
            self.look_up(request.rows)


class _Operation(NamedTuple):
    """A part of a request.

    Attributes:
        name: That of a method of kazoo's ``TransactionRequest``.
        path: The node.
        arguments: The data and version, as that method wants them.
        row: The row that is set or removed.
        counts: The table of which the removals are counted.
    """

    name: str
    path: str
    arguments: tuple[Any, ...] = ()
    row: Row | None = None
    counts: str | None = None


class _Request:
    """The operations of one write.

    Args:
        writer: The writer, which knows the rows that are expected.
        write: The arguments of the write.
        number: The write's number.

    Attributes:
        checked: The tables of the rows that are expected to have a value, and of what counts their removals, by path.
        rows: The rows of which it matters whether they are there.
        is_part: Whether there is more to be removed or merged.
    """

    def __init__(self, writer: Writer, write: Write, number: bytes) -> None:
        self.checked: dict[str, str] = {}
        self.is_part = False
        self._writer = writer
        self._write = write
        self._expected = _flat(write.expected)
        self._changes = _flat(write.changes)
        self.rows = [*self._changes, *(row for row, value in self._expected.items() if value is None)]
        self._results: Sequence[Any] = ()
        head = [_Operation("set_data", writer.mark, (number, writer.version)), *self._checks()]
        emptied = {table: writer.nodes.keys(writer.place, table) for table in write.cleared}
        emptying = [
            each for table, keys in emptied.items() for each in self._emptied(table, [(key, -1) for key in keys])
        ]
        first = [each for each in emptying if each.row is not None and each.row not in self._expected]
        self.is_part = _size(first) > _MOST_EMPTIED
        if self.is_part:
            merging = _beginning(first, _MOST_EMPTIED)
            puts = []
        elif write.merged is None or write.merged[0] in emptied:
            merging = []
            puts = self._puts(emptied)
        else:
            puts = self._puts({*emptied, write.merged[0]})
            merging = self._merging(*write.merged, emptied, _size(head), _size([*emptying, *puts]))
        body = merging if self.is_part else [*emptying, *merging, *puts]
        self._operations = [*head, *body, *self._counts(body)]
        if _size(self._operations) > MOST_BYTES:
            raise self._too_much()

    def send(self, again: Callable[[], object]) -> tuple[str, Exception] | None:
        """Send it.

        Args:
            again: Called before it is sent again, since its answer was lost.

        Returns:
            The path of the operation that failed, and its error; those of the others only follow from it. None if it was done.
        """
        from kazoo.exceptions import RolledBackError, RuntimeInconsistency

        client = self._writer.nodes.client
        request = client.request(each[:3] for each in self._operations)
        self._results = client.commit(request, again)
        for each, result in zip(self._operations, self._results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                return each.path, result
        return None

    def note(self, is_known: bool) -> None:
        """Update the writer's view of the nodes.

        Args:
            is_known: Whether the answer came, with the new versions.
        """
        writer = self._writer
        for each, result in zip(self._operations, self._results, strict=True):
            if each.counts is not None and each.counts in writer.removals:
                if is_known and result.version == writer.removals[each.counts] + 1:
                    writer.removals[each.counts] = result.version
                else:  # there were others meanwhile
                    writer.note_removals(each.counts, None)
            elif each.row is not None:
                writer.known.pop(each.row, None)
                writer.there.pop(each.row, None)
                if each.name != "delete":
                    writer.there[each.row] = True
                    if is_known and each.row in self._expected and writer.is_counted(each.row[0]):
                        writer.known[each.row] = each.arguments[0], getattr(result, "version", 0)
        for remembered in (writer.there, writer.known):
            if len(remembered) > _MOST_REMEMBERED:
                remembered.clear()

    def _checks(self) -> list[_Operation]:
        found = []
        for row, value in self._expected.items():
            path = self._writer.path(row)
            if value is None:
                found += _absent(path)
            else:
                found += self._check_removals(row[0])
                found.append(_Operation("check", path, (self._writer.known[row][1],)))
                self.checked[path] = row[0]
        return found

    def _check_removals(self, table: str) -> list[_Operation]:
        path = self._writer.path_of_removals(table)
        if path in self.checked or table == OWNER:
            return []
        self.checked[path] = table
        return [_Operation("check", path, (self._writer.removals[table],))]

    def _puts(self, emptied: Container[str]) -> list[_Operation]:
        return [
            operation for row, value in self._changes.items() for operation in self._put(row, value, row[0] in emptied)
        ]

    def _put(self, row: Row, value: bytes | None, is_emptied: bool) -> list[_Operation]:
        """Return the operation that sets or removes a row."""
        path = self._writer.path(row)
        is_there = self._writer.there.get(row)
        if is_emptied or row in self._expected:
            is_there = not is_emptied and self._expected[row] is not None
        if value is not None:
            return [_Operation("set_data" if is_there else "create", path, (value,), row)]
        if is_emptied:
            return []
        return _absent(path) if is_there is False else [_Operation("delete", path, (), row)]

    def _emptied(self, table: str, rows: Iterable[tuple[bytes, int]]) -> list[_Operation]:
        """Return the operations that remove all rows of a table, of these versions, and fail if there is another one."""
        writer = self._writer
        at = writer.nodes.at(writer.place, table)
        deletes = [_Operation("delete", writer.path((table, key)), (version,), (table, key)) for key, version in rows]
        return [*deletes, _Operation("delete", at), _Operation("create", at)]

    def _merging(self, source: str, target: str, emptied: Container[str], before: int, others: int) -> list[_Operation]:
        """Return the operations that merge the source's rows, or as many of them as one request takes.

        Args:
            source: The table whose rows are merged.
            target: The table that they are merged into.
            emptied: The tables that are emptied before.
            before: The bytes of the operations of each part.
            others: The bytes of the operations of the last part.
        """
        writer = self._writer
        writer.see_removals(source)
        checks = self._check_removals(source)
        free = (
            MOST_BYTES
            - before
            - _size(checks)
            - 5 * (_OTHER_BYTES + len(writer.path_of_removals(source)) + len(writer.path_of_removals(target)))
        )
        rows: list[tuple[bytes, bytes, int]] = []
        last = []  # rows that are expected, until the last part
        size = 0
        for key, (value, version) in writer.nodes.listed(writer.place, source):
            paths = len(writer.path((source, key))) + 2 * len(writer.path((target, key)))
            more = len(value) + paths + 3 * _OTHER_BYTES
            if self._expected.keys() & {(source, key), (target, key)}:
                last.append((key, value, version))
                others += more
                continue
            size += more
            if size > free:
                self.is_part = True
                break
            rows.append((key, value, version))
        self.is_part |= size + others > free
        if self.is_part and (not rows or others > free or target in emptied):
            raise self._too_much()
        if not self.is_part:
            rows += last
        targets = [(target, key) for key, _, _ in rows]
        if target not in emptied:
            writer.look_up([row for row in targets if row not in writer.there])
            self.rows += targets
        if not self.is_part:
            targets = [row for row in targets if row not in self._changes]
        values = {(target, key): value or None for key, value, _ in rows}
        puts = [each for row in targets for each in self._put(row, values[row], target in emptied)]
        removed = self._emptied(source, [(key, version) for key, _, version in rows])
        return [*checks, *puts, *(removed[:-2] if self.is_part else removed)]

    def _counts(self, operations: Iterable[_Operation]) -> list[_Operation]:
        """Return the operations that count the removals among these ones."""
        writer = self._writer
        tables = dict.fromkeys(each.row[0] for each in operations if each.row is not None and each.name == "delete")
        marks = writer.nodes.other_marks(writer.place, writer.mark) if OWNER in {*tables, *self._write.cleared} else ()
        counts = [
            _Operation("set_data", writer.path_of_removals(table), (b"",), counts=table)
            for table in tables
            if table != OWNER
        ]
        return [*counts, *(_Operation("delete", mark) for mark in marks)]

    def _too_much(self) -> StateError:
        writer = self._writer
        return StateError(
            f"{writer.nodes.at(writer.place)} in ZooKeeper {writer.nodes.servers}: {len(self._changes)} changed rows of "
            f"{sum(len(key) + len(value or b'') for (_, key), value in self._changes.items())} bytes, with all that belongs to them, are more "
            f"than ZooKeeper takes in one step, {MOST_BYTES} bytes, and nothing was written: write less at once, or keep it in another "
            "database"
        )


def _absent(path: str) -> list[_Operation]:
    """Return the operations that fail if there is such a node."""
    return [_Operation("create", path), _Operation("delete", path)]


def _flat(rows: Rows) -> dict[Row, bytes | None]:
    return {(table, key): value for table, each in rows.items() for key, value in each.items()}


def _beginning(operations: Sequence[_Operation], most: int) -> Sequence[_Operation]:
    """Return the first operations, up to a size; at least one."""
    sizes = accumulate(_size([each]) for each in operations)
    return operations[: max(1, sum(size <= most for size in sizes))]


def _size(operations: Iterable[_Operation]) -> int:
    return sum(
        len(each.path) + sum(len(data) for data in each.arguments if isinstance(data, bytes)) + _OTHER_BYTES
        for each in operations
    )
