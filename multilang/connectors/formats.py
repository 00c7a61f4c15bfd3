"""Formats of files, by which bytes become rows, and rows bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from codecs import lookup_error
from zlib import crc32

from multilang.component.errors import ConfigError, ConnectorError, UnreadableRow
from multilang.connectors.columns import Wrong, reader_of
from multilang.connectors.records import as_text
from multilang.connectors.unreadable import readable
from multilang.helpers.extras import imported
from multilang.protocol.codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, BinaryIO

_CHUNK = 1 << 20  # bytes of one read
_FOOTER = 1 << 16  # bytes at the end of a file of columns, by which it is known again
_MAGIC = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")  # the first bytes of packed files
_ROWS = 4096  # of a file of columns, that are in memory


class Reader(ABC):
    """The rows of an open file, one after the other.

    Attributes:
        path: The file's name in messages.
        number: How many lines or rows of it were read.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file = file
        self.path = path
        self.number = 0

    @abstractmethod
    def row(self) -> list[Any] | None:
        """Return the next row; None at the end of the file.

        Raises:
            ConnectorError: The row can't be read, and the next one is that behind it.
        """

    @abstractmethod
    def wrong(self, why: str) -> ConnectorError:
        """Return the error for the row that was read last.

        Args:
            why: What is wrong with it.
        """

    @abstractmethod
    def step_back(self) -> None:
        """Make the position that before the row which was read last. Nothing is read after that."""

    @abstractmethod
    def position(self) -> Any:
        """Return the position of the next row, with checksums that identify this file."""

    @abstractmethod
    def seek(self, position: Any) -> None:
        """Resume from a position. Raises ConnectorError if the file is not the one that was read up to there."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _changed(self, how: str) -> ConnectorError:
        return ConnectorError(
            f"{self.path} is not the file that was read before: {how}. Restore the old one; or give the new one another name; or "
            "begin at the beginning: multilang state rm TOPOLOGY COMPONENT"
        )


class Format(ABC):
    """The format of a file.

    Attributes:
        fields: The fields of its rows; None: those that come to a sink.
        columns: The fields that a sink's tuples must have, in this order; None: any.
        suffix: The end of a file's name.
        requires: The packages that it needs, see Component.requires.
    """

    fields: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    suffix = ""
    requires: Mapping[str, str] = {}

    @abstractmethod
    def reader(self, file: BinaryIO, path: str) -> Reader:
        """Return the rows of a file. Raises ConnectorError if it can't have them, such as one without a column."""

    @abstractmethod
    def written(self, rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> bytes:
        """Return a whole file with these rows."""


# ---- text ----


def check_encoding(encoding: str, errors: str) -> None:
    """Raise ConfigError if text in this encoding has no lines that end with the byte 10, or Python does not know it."""
    try:
        lookup_error(errors)
        ends = b"\n".decode(encoding) == "\n"
    except UnicodeDecodeError:
        ends = False
    except (LookupError, TypeError) as problem:
        raise ConfigError(
            f"encoding is {encoding!r} and errors is {errors!r}: {problem}; use such as 'utf-8' or 'latin-1', and 'strict' or 'replace'"
        ) from None
    if not ends:
        raise ConfigError(
            f"encoding is {encoding!r}, in which no line ends with the byte 10; make it UTF-8 first, as iconv -t utf-8 does"
        )


class _ByLine(Reader):
    """Lines, with how many bytes they are and a checksum of these."""

    def __init__(self, file: BinaryIO, path: str, encoding: str, errors: str) -> None:
        super().__init__(file, path)
        self._encoding = encoding
        self._errors = errors
        self._at = 0
        self._crc = 0
        self._before = 0, 0, 0
        self._lines: list[bytes] = []  # of the row that is read

    def begin(self) -> None:
        """Note that a row begins at the next line."""
        self._before = self._at, self._crc, self.number
        self._lines.clear()

    def line(self) -> str | None:
        """Return the next line with its end; None at the end of the file."""
        data = self._file.readline()
        if not data:
            return None
        self._take(data)
        try:
            text = data.decode(self._encoding, self._errors)
        except UnicodeDecodeError as problem:
            if self._at == len(data) and data.startswith(_MAGIC):
                raise self._unreadable(
                    "is no text: the file is packed; give it a name that ends in .gz or .bz2, if that is how, or unpack it",
                    True,
                ) from problem
            raise self._unreadable(
                f"is no {self._encoding} ({problem.reason}); name its encoding, or read over it with errors='replace'"
            ) from problem
        return text.removeprefix("\ufeff") if self._at == len(data) else text

    def _take(self, data: bytes) -> None:
        self._at += len(data)
        self._crc = crc32(data, self._crc)
        self.number += 1
        self._lines.append(data)

    def wrong(self, why: str) -> ConnectorError:
        return self._unreadable(why)

    def _unreadable(self, why: str, is_rest: bool = False) -> ConnectorError:
        at, _, number = self._before
        raw = readable(b"".join(self._lines))
        place = f"line {number + 1} (byte {at}){'' if why.startswith(',') else ' '}{why}"
        return ConnectorError(f"{self.path}: {place}", UnreadableRow(self.path, number + 1, raw, is_rest))

    def step_back(self) -> None:
        self._at, self._crc, self.number = self._before

    def _again_behind_first_line(self) -> None:
        """Go back behind the line with which the row begins."""
        first = self._lines[0]
        self.step_back()
        self.begin()
        self._take(first)
        self._file.seek(self._at)

    def position(self) -> Any:
        return {"byte": self._at, "line": self.number, "crc": self._crc}

    def seek(self, position: Any) -> None:
        end, crc = position["byte"], 0
        self._file.seek(0)
        left, last = end, b"\n"
        while left:
            data = self._file.read(min(left, _CHUNK))
            if not data:
                raise self._changed(f"{end} bytes of it were read, and it has {end - left}")
            crc = crc32(data, crc)
            left -= len(data)
            last = data
        if crc != position["crc"]:
            raise self._changed(f"its first {end} bytes are others")
        if not last.endswith(b"\n") and self._file.read(1):
            raise self._changed("its last line, which had no end, has grown")
        self._file.seek(end)
        self._at, self.number, self._crc = end, position["line"], crc


class _Text(Format):
    """The base of formats of lines.

    Args:
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """

    def __init__(self, encoding: str = "utf-8", errors: str = "strict") -> None:
        check_encoding(encoding, errors)
        self.encoding = encoding
        self.errors = errors


class Lines(_Text):
    """Lines of text, each a row of one field, without its end.

    Args:
        field: The field's name.
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """

    suffix = ".txt"

    def __init__(self, field: str = "line", encoding: str = "utf-8", errors: str = "strict") -> None:
        super().__init__(encoding, errors)
        self.fields = [field]

    def reader(self, file: BinaryIO, path: str) -> Reader:
        return _PlainLines(file, path, self.encoding, self.errors)

    def written(self, rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> bytes:
        if len(fields) != 1:
            raise ConnectorError(
                f"a file of lines gets tuples of one field, not of {', '.join(fields)}; use JsonLines or Csv"
            )
        for (text,) in rows:
            if not isinstance(text, str) or "\n" in text or text.endswith("\r"):
                raise ConnectorError(
                    f"a line is a text without a line break, not {text!r:.80}; use JsonLines for other values"
                )
        return "".join(f"{text}\n" for (text,) in rows).encode(self.encoding, self.errors)


class _PlainLines(_ByLine):
    def row(self) -> list[Any] | None:
        self.begin()
        text = self.line()
        return None if text is None else [text.removesuffix("\n").removesuffix("\r")]


class JsonLines(_Text):
    """One JSON value in each line; empty lines are none.

    Args:
        fields: The members of each object that are fields; None: the whole value is the field ``value``. An object that
            lacks one is refused: take ``value``, if members may be missing. For a sink they are the tuple's.
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """

    suffix = ".jsonl"

    def __init__(self, fields: Sequence[str] | None = None, encoding: str = "utf-8", errors: str = "strict") -> None:
        super().__init__(encoding, errors)
        self.members = self.columns = _names(fields)
        self.fields = self.members or ["value"]

    def reader(self, file: BinaryIO, path: str) -> Reader:
        return _JsonRows(file, path, self.encoding, self.errors, self.members)

    def written(self, rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> bytes:
        texts = [dumps(dict(zip(fields, row, strict=True))) for row in rows]
        return "".join(f"{text}\n" for text in texts).encode(self.encoding, self.errors)


class _JsonRows(_ByLine):
    def __init__(self, file: BinaryIO, path: str, encoding: str, errors: str, members: list[str] | None) -> None:
        super().__init__(file, path, encoding, errors)
        self._members = members

    def row(self) -> list[Any] | None:
        self.begin()
        while (text := self.line()) is not None:
            if text.strip():
                return self._parsed(text)
            self.begin()
        return None

    def _parsed(self, text: str) -> list[Any]:
        try:
            value = loads(text)
        except ValueError as problem:
            raise self.wrong(f"is no JSON: {problem}") from problem
        if self._members is None:
            return [value]
        missing = [name for name in self._members if not isinstance(value, dict) or name not in value]
        if missing:
            raise self.wrong(
                f"has no {missing[0]!r}: {text.strip():.80}; name members that each object has, or give JsonLines() no fields, and "
                "take what is there from the value"
            )
        return [value[name] for name in self._members]


class Csv(_Text):
    """Comma separated values, as Python's ``csv`` reads them: all values are text. A sink writes None as nothing, and lists,
    objects and booleans as JSON.

    Args:
        fields: The columns that are fields, in any order. For a sink they are the tuple's; then it may be None.
        header: Whether the first row has the columns' names. If not, ``fields`` names all columns in their order.
        delimiter: What separates the values.
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """

    suffix = ".csv"

    def __init__(
        self,
        fields: Sequence[str] | None = None,
        header: bool = True,
        delimiter: str = ",",
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> None:
        super().__init__(encoding, errors)
        self.fields = self.columns = _names(fields)
        self.header = header
        self.delimiter = delimiter

    def reader(self, file: BinaryIO, path: str) -> Reader:
        return _CsvRows(file, path, self)

    def written(self, rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> bytes:
        import csv
        from types import SimpleNamespace

        lines: list[str] = []
        # The end is cut off again: it has both characters, so that a value that has one of them is quoted.
        file: Any = SimpleNamespace(write=lambda line: lines.append(f"{line[:-2]}\n"))
        writer = csv.writer(file, delimiter=self.delimiter, lineterminator="\r\n")
        if self.header:
            writer.writerow(fields)
        writer.writerows([_cell(value) for value in row] for row in rows)
        return "".join(lines).encode(self.encoding, self.errors)


def _cell(value: Any) -> Any:
    """Return a value as a cell has it: text and numbers as they are, None as nothing, all else as JSON."""
    return value if value is None or type(value) in (int, float) else as_text(value)


class _CsvRows(_ByLine):
    def __init__(self, file: BinaryIO, path: str, format: Csv) -> None:
        import csv

        super().__init__(file, path, format.encoding, format.errors)
        fields = format.fields or []
        self._csv: Any = csv
        self._delimiter = format.delimiter
        self._rows = self._from_here()
        names = list(fields)
        if format.header:
            try:
                names = next(self._rows, [])
            except (csv.Error, ConnectorError) as problem:
                message = f"{path} has no header that can be read: {problem}"
                raise ConnectorError(message, UnreadableRow(path, is_rest=True)) from problem
        _check_columns(path, fields, names)
        self._width = len(names)
        self._places = [names.index(name) for name in fields]

    def _from_here(self) -> Iterator[list[str]]:
        # It asks for a line when it needs one, so that what it has read ends where the row does.
        rows: Iterator[list[str]] = self._csv.reader(iter(self.line, None), delimiter=self._delimiter, strict=True)
        return rows

    def row(self) -> list[Any] | None:
        row: list[str] | None = []
        while row == []:
            self.begin()
            try:
                row = next(self._rows, None)
            except (self._csv.Error, ConnectorError) as problem:
                raise self._no_row(problem) from problem
        if row is None:
            return None
        if len(row) != self._width:
            raise self._no_row(f"has {len(row)} values for {self._width} columns: {row!r:.80}")
        return [row[place] for place in self._places]

    def _no_row(self, problem: Exception | str) -> ConnectorError:
        """Return the error. If a quotation mark was never closed, the next row begins behind the line in which it is."""
        several = len(self._lines) > 1
        if several:
            self._again_behind_first_line()
            self._rows = self._from_here()
        if isinstance(problem, str):
            return self.wrong(problem)
        if isinstance(problem, ConnectorError) and not several:
            return problem
        hint = ""
        if "field limit" in str(problem):
            hint = "; is a quotation mark never closed? If not, csv.field_size_limit(n) in your module raises the limit"
        return self.wrong(f"is no row: {problem}{hint}")


# ---- columns ----


class Parquet(Format):
    """Parquet, by pyarrow (extra ``files``). Types that JSON lacks become text: times by ISO 8601, with nanoseconds if there are
    some, bytes in base64. Maps with text as keys are objects. What has no JSON form is refused, by its file, row and column.

    Args:
        fields: The columns that are fields, in any order. For a sink they are the tuple's; then it may be None.
    """

    suffix = ".parquet"
    requires: Mapping[str, str] = {"pyarrow": "pyarrow>=18"}

    def __init__(self, fields: Sequence[str] | None = None) -> None:
        self.fields = self.columns = _names(fields)

    def reader(self, file: BinaryIO, path: str) -> Reader:
        return _ColumnRows(file, path, list(self.fields or ()))

    def written(self, rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> bytes:
        pyarrow = imported("pyarrow", "files", "a Parquet file", on_workers=True)
        parquet = imported("pyarrow.parquet", "files", "a Parquet file", on_workers=True)
        columns = [list(column) for column in zip(*rows, strict=True)]
        try:
            table = pyarrow.table(columns, names=list(fields))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as problem:
            raise ConnectorError(
                f"the tuples of {', '.join(fields)} make no columns: {problem}; send values of one type in a field"
            ) from problem
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink)
        data: bytes = sink.getvalue().to_pybytes()
        return data


class _ColumnRows(Reader):
    def __init__(self, file: BinaryIO, path: str, fields: list[str]) -> None:
        super().__init__(file, path)
        pyarrow = imported("pyarrow", "files", path, on_workers=True)
        parquet = imported("pyarrow.parquet", "files", path, on_workers=True)
        size = file.seek(0, 2)
        file.seek(max(0, size - _FOOTER))
        self._known_by = [size, crc32(file.read())]
        file.seek(0)
        try:
            self._parquet = parquet.ParquetFile(file)
        except pyarrow.ArrowInvalid as problem:
            raise ConnectorError(
                f"{path} is no Parquet file: {problem}", UnreadableRow(path, is_rest=True)
            ) from problem
        schema = self._parquet.schema_arrow
        _check_columns(path, fields, schema.names)
        try:
            self._columns = [(name, reader_of(schema.field(name).type, f"{path}: column {name!r}")) for name in fields]
        except ConfigError as problem:
            raise ConnectorError(str(problem), UnreadableRow(path, is_rest=True)) from problem
        self._problem = pyarrow.ArrowException
        self._before = 0
        self._rows = self._from(0)

    def _from(self, number: int) -> Iterator[list[Any]]:
        groups: list[int] = []
        metadata = self._parquet.metadata
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            if number >= count and not groups:
                number -= count
            else:
                groups.append(group)
        if not groups:
            return
        for batch in self._parquet.iter_batches(_ROWS, groups, [name for name, _ in self._columns]):
            if number >= batch.num_rows:
                number -= batch.num_rows
                continue
            columns = [read(batch.column(name)[number:]) for name, read in self._columns]
            number = 0
            yield from map(list, zip(*columns, strict=True))

    def row(self) -> list[Any] | None:
        self._before = self.number
        try:
            found = next(self._rows, None)
        except self._problem as problem:
            message = f"{self.path} can't be read behind row {self.number}: {problem}"
            raise ConnectorError(message, UnreadableRow(self.path, self.number + 1, is_rest=True)) from problem
        if found is None:
            return None
        self.number += 1
        self._last = found
        if Wrong in map(type, found):
            place = [type(value) for value in found].index(Wrong)
            raise self.wrong(f", column {self._columns[place][0]!r}: {found[place]}")
        return found

    def wrong(self, why: str) -> ConnectorError:
        values = {name: value for (name, _), value in zip(self._columns, self._last, strict=True)}
        message = f"{self.path}: row {self.number}{'' if why.startswith(',') else ' '}{why}"
        return ConnectorError(message, UnreadableRow(self.path, self.number, readable(repr(values))))

    def step_back(self) -> None:
        self.number = self._before

    def position(self) -> Any:
        return {"row": self.number, "file": self._known_by}

    def seek(self, position: Any) -> None:
        if position["file"] != self._known_by:
            raise self._changed("its size or its end is another")
        self.number = position["row"]
        self._rows = self._from(self.number)


def _check_columns(path: str, fields: Sequence[str], names: Sequence[str]) -> None:
    """Raise ConnectorError unless a file has each field as one column."""
    wrong = next((name for name in fields if names.count(name) != 1), None)
    if wrong is not None:
        has = f"{names.count(wrong)} columns" if wrong in names else "no column"
        message = f"{path} has {has} {wrong!r}; it has {', '.join(map(repr, names)) or 'none'}"
        raise ConnectorError(message, UnreadableRow(path, is_rest=True))


def _names(fields: Any) -> list[str] | None:
    if fields is None:
        return None
    if isinstance(fields, str) or not fields or not all(isinstance(each, str) and each for each in fields):
        raise ConfigError(f"fields is {fields!r}; give a list of names, such as ['word', 'count']")
    return list(fields)
