"""Tables of SQL databases as sources and sinks, by SQLAlchemy (extra ``sql``) and the database's own driver.

SqlSpout, guarantee: **at least once** for each row whose key is larger than all keys that were there when it became
visible. A restarted task resumes from its position, where the conf has ``multilang.store`` or alignment is exact (then
exactly once); otherwise it begins at the beginning. A key that is smaller than one that was read before (two
transactions that commit in another order than they began) is not seen: read a view that holds back the newest rows then. A
table that is emptied, numbered anew or replaced has such keys: this is reported if it can be seen. On Storm and the embedded
cluster; it has no end, so not in a Spark job.

SqlSink, guarantee: **at least once** by plain inserts; with ``key`` a replayed tuple writes the same row again, so that the
table is right when all are acked. Tuples are acked after the commit. On every engine.

A database of SQLite is opened anew for each transaction, so that a file that was deleted or replaced is not written or read on.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import timezone
from itertools import groupby, pairwise
from time import monotonic
from zlib import crc32

from multilang.component.batching import LingeringBolt
from multilang.component.errors import ConfigError, ConnectorError, UnreadableRow
from multilang.connectors.records import made_of, record
from multilang.connectors.unreadable import RowSpout, readable
from multilang.connectors.values import as_type
from multilang.helpers.extras import imported
from multilang.helpers.masked import is_reference, masked_text
from multilang.helpers.secret import Secret
from multilang.protocol.codec import dumps
from multilang.protocol.errors import UnserializableValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.protocol.messages import Tuple

REQUIRES = {"sqlalchemy": "sqlalchemy>=2"}
_QUIET_SECS = 10.0  # before the same error is reported again
_ROWS = 64  # that one next_tuple emits at most
_UNKNOWN = object()
_UNIQUE = "UniqueConstraint"
_REFUSAL_SECS = 1.0  # in which a row is refused; a database that is locked or away takes longer


class _Database:
    """A database and one table of it.

    Args:
        url: SQLAlchemy's URL, as text or the place of a secret.
        table: The table's name, ``schema.table`` for one in another schema.
        columns: The columns that must be there.
    """

    def __init__(self, url: str | Secret | Mapping[str, str], table: str, columns: Sequence[str]) -> None:
        self.sa = imported("sqlalchemy", "sql", f"the table {table!r}", on_workers=True)
        text = Secret(url, "the URL of the database").reveal()
        self.where = f"table {table!r} of {masked_text(text)}"
        errors = imported("sqlalchemy.exc", "sql", self.where, on_workers=True)
        self.errors = errors
        try:
            self._file = _sqlite_file(self.sa.make_url(text))
            # A connection that stays open still uses a file that has no name any more.
            options = {} if self._file is None else {"poolclass": self.sa.pool.NullPool}
            self._check_there()
            self.engine = self.sa.create_engine(text, **options)
        except (errors.NoSuchModuleError, ImportError) as problem:
            raise ConfigError(f"{self.where} needs the database's driver: {problem}; install it with pip") from problem
        except ConnectorError as problem:
            raise ConfigError(f"there is no {self.where}: {problem}; make it, or name another") from None
        except errors.ArgumentError:
            raise ConfigError(
                f"{masked_text(text)!r} is no URL of a database; write one such as sqlite:////path/to/file or "
                "postgresql+psycopg://user@host/database"
            ) from None
        schema, _, name = table.rpartition(".")
        try:
            self.table = self.sa.Table(name, self.sa.MetaData(), schema=schema or None, autoload_with=self.engine)
        except errors.NoSuchTableError:
            self.engine.dispose()
            raise ConfigError(f"there is no {self.where}; make it, or name another") from None
        except errors.SQLAlchemyError as problem:
            self.engine.dispose()
            raise ConnectorError(f"{self.where} can't be read: {_short(problem)}") from None
        missing = [column for column in columns if column not in self.table.c]
        if missing:
            self.engine.dispose()
            raise ConfigError(
                f"{self.where} has no column {missing[0]!r}; it has {', '.join(map(repr, self.table.c.keys()))}"
            )

        self._kinds = {name: _kind(column) for name, column in self.table.c.items()}

    def value(self, column: str, value: Any) -> Any:
        """Return a value as the driver takes it: times and the like come as text, as SqlSpout sends them."""
        kind = self._kinds[column] if isinstance(value, str) else None
        if kind is None:
            return value
        found = as_type(value, kind)
        if getattr(found, "tzinfo", None) is not None and not self.table.c[column].type.timezone:
            found = found.astimezone(timezone.utc).replace(tzinfo=None)
        return found

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Yield a connection, whose transaction is committed at the end of the block.

        Raises:
            ConnectorError: The file of the database is not there, or is another one at the end than at the beginning.
        """
        before = self._check_there()
        with self.engine.begin() as connection:
            yield connection
        if self._check_there() != before:
            raise ConnectorError(f"its file {self._file} was replaced by another one meanwhile")

    def file(self) -> tuple[int, int] | None:
        """Return the identity of the database's file; None: it is not in one file, or is not there now."""
        try:
            return self._check_there()
        except ConnectorError:
            return None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _check_there(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        try:
            found = os.stat(self._file)
        except OSError as problem:
            raise ConnectorError(f"its file {self._file} is not there: {problem.strerror}") from None
        return found.st_dev, found.st_ino


class SqlSpout(RowSpout):
    """A spout of a table's rows in the order of a key that grows, such as an autoincrement; see the module.

    Several tasks divide the rows by the remainder of a whole-number key.

    Args:
        url: SQLAlchemy's URL, such as ``sqlite:////path`` or ``postgresql+psycopg://user:word@host/shop``; with a password
            better its place, ``{"env": NAME}`` or ``{"file": PATH}``.
        table: The table or view, ``schema.table`` for one in another schema.
        key: The column that grows, with another value in each row: whole numbers or text.
        fields: The columns that are fields. Types that JSON lacks become text: decimals and times; bytes in base64.
        take: The most rows of one query.
        poll_secs: Seconds until it is asked again, when there was nothing new.
        on_unreadable: What happens to a row that no tuple can have: ``"fail"``, ``"skip"`` or ``"stream"``, see
            ``multilang.connectors.unreadable``.
    """

    needs_positions = False
    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        url: str | Secret | Mapping[str, str],
        table: str,
        key: str,
        fields: Sequence[str],
        take: int = 1000,
        poll_secs: float = 1.0,
        on_unreadable: str = "fail",
    ) -> None:
        super().__init__(on_unreadable)
        self._url_secret = _checked_url(url)
        _check_names(table=table, key=key)
        if type(take) is not int or take < 1:
            raise ConfigError(f"take is {take!r}; use the most rows of one query, from 1")
        if not poll_secs > 0:
            raise ConfigError(f"poll_secs is {poll_secs!r}; use seconds above 0")
        self.table = table
        self.key = key
        self.output_fields = _columns(fields)  # type: ignore[misc]
        self.take = take
        self.poll_secs = poll_secs

    def identity(self) -> Any:
        return {"table": self.table, "key": self.key}

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the table and its columns are there."""
        super().check_start(conf)
        self._open().close()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._database = self._open()
        self._index, self._share = context.task_index, len(context.tasks(context.component))
        column = self._database.table.c[self.key]
        if self._share > 1 and not isinstance(column.type, self._database.sa.Integer):
            raise ConfigError(
                f"spout {context.component!r} has {self._share} tasks, and they divide rows by a key of whole numbers alone; "
                f"{self.key!r} is {column.type!s}: give it one task, or another key"
            )
        self._last: int | str | None = None
        self._row: Any = None  # the values of the last row; a checksum of them, if another task read it
        self._recognizes = False  # whether to see if the last row is the one that was read
        self._file = self._database.file()
        self._below: Any = _UNKNOWN  # the largest key below the last one, while that row is missing
        self._is_loss_reported = False
        self._rows: Iterator[Any] = iter(())
        self._poll_at = self._quiet_until = 0.0
        self._idle = False

    def next_tuple(self) -> None:
        for _ in range(_ROWS):
            row = None if self.stands_still() else next(self._rows, None)
            if row is None:
                if self._stands_at is None and self.clock() >= self._poll_at:
                    self._poll()
                return
            before = self._last, self._row
            self._last, values = row
            self._row = None
            try:
                self._row = self._plain(values)
                self.emit_row(list(self._row), self._wrong)
            except ConnectorError as problem:
                self._row = None
                self.leave_out(problem, lambda before=before: self._go_to(*before))  # type: ignore[misc]
                if self._stands_at is not None:
                    return  # the rows before it are delivered first

    def exhausted(self) -> bool | None:
        return None if self._idle else False

    def position(self) -> Any:
        return {"last": self._last, "row": _sum(self._row)}

    def seek(self, position: Any) -> None:
        self._last, self._row = position["last"], position.get("row")
        self._recognizes = self._row is not None
        self._below, self._is_loss_reported = _UNKNOWN, False
        self._rows = iter(())

    def close(self) -> None:
        super().close()
        if hasattr(self, "_database"):
            self._database.close()

    def _open(self) -> _Database:
        return _Database(self._url_secret, self.table, [self.key, *(self.output_fields or ())])

    def _poll(self) -> None:
        database = self._database
        columns = database.table.c
        key = columns[self.key]
        sa = database.sa
        new = sa.literal(1) if self._last is None else sa.case((key > self._last, 1), else_=0)
        query = sa.select(key, new, *(columns[each] for each in self.output_fields or ()))
        if self._last is not None:
            # With the last one again: there may be another row of its key by now.
            query = query.where(key >= self._last)
        query = self._of_this_task(query)
        if (file := database.file()) != self._file:
            self._file, self._recognizes = file, self._last is not None
        below = None
        try:
            with database.connected() as connection:
                # The last one and another of its key; and one more than is taken, which may have the same key as the last of these.
                found = connection.execute(query.order_by(key).limit(self.take + 3)).fetchall()
                if key.nullable and not key.primary_key and not any(row[1] for row in found):
                    found += connection.execute(sa.select(key, sa.literal(1)).where(key.is_(None)).limit(1)).fetchall()
                if self._last is not None and not found:
                    below = connection.execute(
                        self._of_this_task(sa.select(sa.func.max(key)).where(key < self._last))
                    ).scalar()
        except (ConnectorError, database.errors.SQLAlchemyError) as problem:
            self._poll_at = self.clock() + self.poll_secs
            self._idle = False  # there may be more by now
            if self.clock() >= self._quiet_until:
                self._quiet_until = self.clock() + _QUIET_SECS
                self.report_error(f"{database.where} can't be read now, and is tried again: {_short(problem)}")
            return
        wrong = next((row[0] for row in found if type(row[0]) not in (int, str)), self)
        if wrong is not self:
            raise ConnectorError(
                f"the key {self.key!r} of {database.where} is {wrong!r} ({type(wrong).__name__}) in a row; name a column of whole "
                "numbers or text that is never NULL"
            )
        last = next((row for row in found if not row[1]), None)
        if last is not None:
            self._recognize(last)
        elif self._last is not None:
            self._recognizes = True  # a row that has the key later may be another one
        self._look_below(below if not found else _UNKNOWN)
        read = [row[0] for row in found if not row[1]]
        found = [row for row in found if row[1]]
        # A task that resumes behind a key that is there twice would leave the second row out.
        twice = read[1:] or [key for key, following in pairwise(row[0] for row in found) if key == following]
        if twice:
            raise ConnectorError(
                f"{database.where} has several rows whose {self.key!r} is {twice[0]!r}, so that some could be left out: name a "
                "column whose values are unique"
            )
        del found[self.take :]
        self._idle = not found
        if not found:
            self._poll_at = self.clock() + self.poll_secs
        self._rows = iter([(row[0], list(row[2:])) for row in found])

    def _plain(self, values: list[Any]) -> list[Any]:
        from multilang.connectors.values import plain

        self._values = values
        try:
            return [plain(value) for value in values]
        except UnserializableValue as problem:
            raise self._wrong(f" can't be a tuple: {problem.reason}") from problem

    def _wrong(self, why: str) -> ConnectorError:
        where = self._database.where
        row = self._last if isinstance(self._last, int) else None
        message = f"{where}: the row whose {self.key!r} is {self._last!r}{why}"
        raw = readable(repr(dict(zip(self.output_fields or (), self._values, strict=True))))
        return ConnectorError(message, UnreadableRow(where, row, raw))

    def _go_to(self, last: int | str | None, row: Any) -> None:
        self._last, self._row = last, row

    def _of_this_task(self, query: Any) -> Any:
        if self._share == 1:
            return query
        # An SQL remainder has the sign of its number.
        key = self._database.table.c[self.key]
        return query.where((key % self._share + self._share) % self._share == self._index)

    def _recognize(self, row: Any) -> None:
        """Check once after a start, another file or a missing row whether the last row is still the one that was read."""
        if not self._recognizes:
            return
        self._recognizes = False
        if self._row is None:  # it could not be read
            return
        try:
            found = _sum(self._plain(row[2:]))
        except ConnectorError:
            found = None
        if found != _sum(self._row):
            self.log(
                f"the row of {self._database.where} whose {self.key!r} is {self._last!r} has other values than when it was read. If it was "
                f"updated, all is well. {self._if_another()}",
                "warn",
            )

    def _look_below(self, below: Any) -> None:
        """Report rows that are left out, if they can be seen: those that come below the last row, when that one is missing.

        Args:
            below: The largest key below the last one; None: there is none; _UNKNOWN: the last row is there, or rows behind it.
        """
        before, self._below = self._below, below
        if below is _UNKNOWN or below is None:
            return
        if before is not _UNKNOWN and (before is None or (type(before) is type(below) and before < below)):
            if self.clock() >= self._quiet_until:
                self._quiet_until = self.clock() + _QUIET_SECS
                self.report_error(
                    f"{self._database.where} gets rows whose {self.key!r} is below {self._last!r}, up to which it was read, such as "
                    f"{below!r}: they are left out. {self._if_another()}"
                )
        elif not self._is_loss_reported:
            self._is_loss_reported = True
            self.log(
                f"the row of {self._database.where} whose {self.key!r} is {self._last!r}, which was read last, is missing, and the largest one "
                f"left is {below!r}. If rows are deleted when they are done, all is well. {self._if_another()}",
                "warn",
            )

    def _if_another(self) -> str:
        return (
            f"If the table was numbered anew, or is another one, its rows up to {self._last!r} are not read: give the spout another name, "
            f"or begin at the beginning (multilang state rm TOPOLOGY {self.context.component})"
        )


class SqlSink(LingeringBolt):
    """A bolt that writes each tuple as a row of a table, many in one transaction; see the module.

    Text becomes what the column has, where JSON lacks the type: times, decimals, bytes in base64, as SqlSpout sends them.
    If a row is refused, such as by a constraint, only its tuple fails; if the database is away or locked, all do.

    Args:
        url: See SqlSpout.
        table: The table, ``schema.table`` for one in another schema.
        fields: The tuple's fields that are written, to the columns of the same names; None: all of them.
        key: The columns of a primary key or unique constraint: a row that is there already is updated (SQLite, PostgreSQL,
            MySQL, MariaDB). None: each tuple is inserted.
        rows: The most rows of a transaction.
        linger_secs: Seconds that a tuple waits for others.
    """

    requires: Mapping[str, str] = REQUIRES

    def __init__(
        self,
        url: str | Secret | Mapping[str, str],
        table: str,
        fields: Sequence[str] | None = None,
        key: Sequence[str] | None = None,
        rows: int = 1000,
        linger_secs: float = 0.05,
    ) -> None:
        self._url_secret = _checked_url(url)
        _check_names(table=table)
        self.table = table
        self.fields = None if fields is None else _columns(fields)
        self.key = None if key is None else _columns([key] if isinstance(key, str) else key)
        if self.fields is not None and self.key is not None:
            lacking = [each for each in self.key if each not in self.fields]
            if lacking:
                raise ConfigError(
                    f"the key's column {lacking[0]!r} is none of the fields {', '.join(self.fields)}; add it"
                )
        self.batch_size = rows
        self.linger_secs = linger_secs

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the table and its columns are there."""
        super().check_start(conf)
        self._open().close()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._database = self._open()

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        tups, rows = made_of(self, tups, self._row, self._database.where)
        if not rows:
            return
        try:
            self._write(rows)
        except Exception as problem:  # noqa: BLE001 - drivers let some pass of what a value raises
            if len(tups) == 1 or self._is_away(problem):
                raise self._unwritten(problem) from None
            self._write_alone(tups, rows)

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    def _open(self) -> _Database:
        database = _Database(self._url_secret, self.table, [*(self.fields or ()), *(self.key or ())])
        if self.key is not None and database.engine.dialect.name not in _UPSERTS:
            database.close()
            raise ConfigError(
                f"{database.where} is of {database.engine.dialect.name}, for which no upsert is known; leave key= out, and let the "
                "table take a row twice"
            )
        reason = None if self.key is None else unfit_key(database.table, self.key, database.engine.dialect.name)
        if reason is not None:
            database.close()
            raise ConfigError(f"{database.where} {reason}")
        return database

    def _write_alone(self, tups: list[Tuple], rows: list[dict[str, Any]]) -> None:
        """Write each row in a transaction of its own; fail those that are refused."""
        for tup, row in zip(tups, rows, strict=True):
            begun = monotonic()
            try:
                self._write([row])
            except Exception as problem:  # noqa: BLE001 - see process_batch
                if self._is_away(problem) or monotonic() - begun > _REFUSAL_SECS:
                    raise self._unwritten(problem) from None
                self.report_error(f"{self._database.where} refuses {row!r:.200}: {_short(problem)}")
                self.fail(tup)
            else:
                self.ack(tup)

    def _is_away(self, problem: Any) -> bool:
        """Return whether it is not the rows that are wrong: there is no connection."""
        errors = self._database.errors
        if not isinstance(problem, errors.StatementError):
            return isinstance(problem, errors.SQLAlchemyError | ConnectorError)
        return isinstance(problem, errors.DBAPIError) and (problem.connection_invalidated or problem.statement is None)

    def _unwritten(self, problem: Exception) -> ConnectorError:
        return ConnectorError(f"{self._database.where} can't be written: {_short(problem)}")

    def _row(self, tup: Tuple) -> dict[str, Any]:
        row = record(tup, self.fields)
        columns = self._database.table.c
        for field in row:
            if field not in columns:
                raise ConnectorError(
                    f"it has no column {field!r}; it has {', '.join(map(repr, columns.keys()))}: name the fields= to write"
                )
        lacking = [each for each in self.key or () if each not in row]
        if lacking:
            raise ConnectorError(
                f"it is written by its key, and a tuple of {tup.component!r} has no {lacking[0]!r}; it has {', '.join(map(repr, row))}"
            )
        if any(row[each] is None for each in self.key or ()):  # no row is like one with NULL
            raise ConnectorError(
                f"it is written by its key, and {row!r:.200} has NULL there: each replay would insert it again"
            )
        return {column: self._database.value(column, value) for column, value in row.items()}

    def _write(self, rows: list[dict[str, Any]]) -> None:
        """Write rows in one transaction, in their order. All rows of a statement have the columns of its first."""
        with self._database.connected() as connection:
            for columns, alike in groupby(rows, list):
                statement, some = self._statement(columns, list(alike))
                connection.execute(statement, some)

    def _statement(self, columns: list[str], rows: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
        database = self._database
        if self.key is None:
            return database.table.insert(), rows
        # The last row of a key counts. It goes to the end: the database may take keys for equal that differ in Python.
        last: dict[Any, dict[str, Any]] = {}
        for row in rows:
            key = tuple((type(row[each]), row[each]) for each in self.key)  # 1, 1.0 and True may also differ there
            last.pop(key, None)
            last[key] = row
        return _UPSERTS[database.engine.dialect.name](database.table, self.key, columns), list(last.values())


def unfit_key(table: Any, key: Sequence[str], dialect: str) -> str | None:
    """Return the reason why rows of this key can't replace those that are there; None: they can."""
    found = [[column.name for column in table.primary_key.columns]]
    found += [[column.name for column in each.columns] for each in table.constraints if type(each).__name__ == _UNIQUE]
    found += [
        [column.name for column in each.columns]
        for each in table.indexes
        if each.unique
        and not any(name.endswith("_where") and value is not None for name, value in each.dialect_kwargs.items())
    ]
    unique = {tuple(sorted(columns)) for columns in found if columns}
    mine = tuple(sorted(key))
    if mine not in unique:
        has = ", or ".join(map("+".join, sorted(unique))) or "none"
        return f"has no primary key or unique constraint of {'+'.join(mine)}, so that a replayed tuple would be another row; it has {has}"
    others = sorted(unique - {mine})
    if others and dialect in ("mysql", "mariadb"):  # ON DUPLICATE KEY takes any of them
        return (
            f"has a unique constraint of {'+'.join(others[0])} besides the key {'+'.join(mine)}, and {dialect} would update the row of "
            "another key that has the same value there: drop that constraint, or leave key= out"
        )
    return None


def _on_conflict(dialect: str) -> Any:
    def upsert(table: Any, key: Sequence[str], columns: Sequence[str]) -> Any:
        insert = imported(f"sqlalchemy.dialects.{dialect}", "sql", f"table {table.name!r}", on_workers=True).insert(
            table
        )
        changed = {each: insert.excluded[each] for each in columns if each not in key}
        if not changed:
            return insert.on_conflict_do_nothing(index_elements=list(key))
        return insert.on_conflict_do_update(index_elements=list(key), set_=changed)

    return upsert


def _on_duplicate(table: Any, key: Sequence[str], columns: Sequence[str]) -> Any:
    insert = imported("sqlalchemy.dialects.mysql", "sql", f"table {table.name!r}", on_workers=True).insert(table)
    changed = [each for each in columns if each not in key] or list(key)
    return insert.on_duplicate_key_update({each: insert.inserted[each] for each in changed})


_UPSERTS: dict[str, Any] = {
    "sqlite": _on_conflict("sqlite"),
    "postgresql": _on_conflict("postgresql"),
    "mysql": _on_duplicate,
    "mariadb": _on_duplicate,
}


def _kind(column: Any) -> type | None:
    """Return the type of Python's that a column's values have; None: it is not known, or text."""
    try:
        kind: type = column.type.python_type
    except NotImplementedError:
        return None
    return None if kind is str else kind


def _sqlite_file(url: Any) -> str | None:
    """Return the file of a database of SQLite; None if it is another database, or in memory."""
    name = url.database
    if url.get_backend_name() != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return None
    path: str = os.path.abspath(name)
    return path


def _sum(row: Any) -> Any:
    """Return the checksum of a row's values; what is a checksum already, as it is."""
    return crc32(dumps(row).encode("utf-8", "surrogatepass")) if isinstance(row, list) else row


def _checked_url(url: Any) -> Secret:
    if not isinstance(url, str | Secret) and not is_reference(url):
        raise ConfigError(f"url is {url!r:.80}; give SQLAlchemy's URL, or where it is: {{'env': NAME}}")
    return Secret(url, "the URL of the database")


def _check_names(**names: Any) -> None:
    for name, value in names.items():
        if type(value) is not str or not value:
            raise ConfigError(f"{name} is {value!r}; use its name, as text")


def _columns(names: Any) -> list[str]:
    if isinstance(names, str) or not names or not all(type(each) is str and each for each in names):
        raise ConfigError(f"{names!r} are no columns; give a list of their names")
    return list(names)


def _short(problem: BaseException) -> str:
    """Return the driver's message, without the statement and its parameters."""
    return " ".join(str(getattr(problem, "orig", None) or problem).split())[:500]
