"""Files as sources and sinks, in the formats of ``formats``: by path, pattern, or URL of any file system of fsspec.

FileSpout, guarantee: **at least once**. A restarted task resumes from its position, where the conf has
``multilang.store`` or alignment is exact (then exactly once); otherwise it begins at the beginning. A file that is not
the one that was read is refused. On every engine; on Spark in the driver.

FileSink, guarantee: **at least once**: tuples are acked when their file is there as a whole, so that a file is complete or
absent, and a replayed tuple is in two files. On every engine.
"""

from __future__ import annotations

import os
import zlib
from secrets import token_hex
from time import strftime

from multilang.component.batching import LingeringBolt
from multilang.component.errors import ConfigError, ConnectorError, UnreadableRow
from multilang.connectors.formats import Format, JsonLines, Lines
from multilang.connectors.records import made_of
from multilang.connectors.unreadable import RowSpout
from multilang.connectors.urls import file_system, is_url, located, matching, move_file, opened, packages_of_url
from multilang.helpers import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from multilang.component.context import Context
    from multilang.connectors.formats import Reader
    from multilang.protocol.messages import Tuple

_UNREADABLE = (OSError, EOFError, zlib.error)  # the last two: of packed files
_ROWS = 16  # that one next_tuple emits at most


class FileSpout(RowSpout):
    """A spout of the rows of files, each at least once, in the order of the files' names; see the module.

    Tasks divide the files by a checksum of their names, so that a file has the same task however many others there are. A
    task reads the files that it found when it was started. Files that were added since its last start are read if their
    names sort behind those that it has read; otherwise the spout refuses to resume. A file that was read to its end is not
    read again.

    Args:
        paths: A path, a pattern such as ``logs/*.csv`` (``**`` for folders in folders), a URL, or several of these.
        format: The files' format: Lines(), JsonLines(), Csv(fields) or Parquet(fields).
        on_unreadable: What happens to a row, or a file, that can't be read: ``"fail"``, ``"skip"`` or ``"stream"``, see
            ``multilang.connectors.unreadable``.
    """

    needs_positions = False

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str],
        format: Format | None = None,
        on_unreadable: str = "fail",
    ) -> None:
        super().__init__(on_unreadable)
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        self.paths = [located(each) for each in given]
        if not self.paths:
            raise ConfigError("paths is empty; give a path, a pattern, a URL, or several of these")
        self.format = _format(format, Lines)
        if self.format.fields is None:
            raise ConfigError(
                f"{type(self.format).__name__}() of a source names its fields: {type(self.format).__name__}(['a', 'b'])"
            )
        self.output_fields = list(self.format.fields)  # type: ignore[misc]
        self.requires = _packages(self.format, self.paths)

    def identity(self) -> Any:
        return {"files": self.paths}

    def check_start(self, conf: dict[str, Any]) -> None:
        """Check that the files are there, and that the first one has the format, if a file without it is not left out."""
        super().check_start(conf)
        first = self._found()[0]
        if self.on_unreadable == "fail":
            self._open(first).close()

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        index, share = context.task_index, len(context.tasks(context.component))
        self._files = [file for file in self._found() if _sum(file) % share == index]
        self._number = 0  # of the file that is read, or is next
        self._reader: Reader | None = None
        self._before: Any = None  # the position, when no file is open

    def next_tuple(self) -> None:
        for _ in range(_ROWS):
            if self.stands_still() or (self._reader is None and self._number >= len(self._files)):
                return
            try:
                if self._reader is None:
                    self._reader = self._open(self._files[self._number])
                row = self._row(self._reader)
                if row is None:
                    self._finish(self._at(self._reader))
                    return  # the turn ends where the file does
                self.emit_row(row, self._reader.wrong)
            except ConnectorError as problem:
                self.leave_out(problem, self._step_back)
                if self._stands_at is not None:
                    return  # the rows before it are delivered first
                if problem.row and problem.row.is_rest:
                    self._finish({**self._file(), "at": None})
                    return

    def exhausted(self) -> bool:
        return self._stands_at is None and self._reader is None and self._number >= len(self._files)

    def position(self) -> Any:
        if self._reader is None:
            return self._before or {"number": -1}
        return self._at(self._reader)

    def seek(self, position: Any) -> None:
        self._close_reader()
        self._before, number = position, position["number"]
        if number < 0:
            self._number = 0
            return
        if self._names(number) != position["names"]:
            raise ConnectorError(
                f"the files of {', '.join(self.paths)} have changed: {position['name']} was file {number + 1} of this task by name, and files "
                "before it were added, renamed or removed since. Restore them; name new files so that they sort behind; or begin at the "
                f"beginning: multilang state rm TOPOLOGY {self.context.component}"
            )
        if position["at"] is None:  # its rest was left out
            self._number = number + 1
            return
        self._number = number
        reader = self._open(self._files[number])
        try:
            reader.seek(position["at"])
        except _UNREADABLE as problem:
            reader.close()
            raise _unreadable(reader.path, problem) from None
        except BaseException:
            reader.close()
            raise
        self._reader = reader

    def close(self) -> None:
        super().close()
        self._close_reader()

    def _close_reader(self) -> None:
        reader, self._reader = getattr(self, "_reader", None), None
        if reader is not None:
            reader.close()

    def _runner_gave_up(self) -> None:
        self._close_reader()  # as the end of a process would

    def _step_back(self) -> None:
        if self._reader is not None:
            self._reader.step_back()

    def _row(self, reader: Reader) -> list[Any] | None:
        try:
            return reader.row()
        except _UNREADABLE as problem:
            raise _unreadable(reader.path, problem, reader.number) from problem

    def _finish(self, position: dict[str, Any]) -> None:
        self._before = position
        self._close_reader()
        self._number += 1

    def _at(self, reader: Reader) -> dict[str, Any]:
        return {**self._file(), "at": reader.position()}

    def _file(self) -> dict[str, Any]:
        """Return the part of a position that names the file."""
        number = self._number
        return {"number": number, "name": self._files[number], "names": self._names(number)}

    def _names(self, number: int) -> int:
        """Return a checksum of the names of the files up to one."""
        if self._summed[0] != number:
            self._summed = number, _sum("\0".join(self._files[: number + 1]))
        return self._summed[1]

    _summed = (-1, 0)

    def _found(self) -> list[str]:
        return sorted({file for path in self.paths for file in matching(path)})

    def _open(self, path: str) -> Reader:
        try:
            file = opened(path)
            try:
                return self.format.reader(file, path)
            except BaseException:
                file.close()
                raise
        except _UNREADABLE as problem:
            raise _unreadable(path, problem) from None


def _unreadable(path: str, problem: Exception, number: int = 0) -> ConnectorError:
    """Return the error for a file of which no more can be read; without a row if it may be read later."""
    where = f" behind line or row {number}" if number else ""
    message = f"{path} can't be read{where}: {problem}"
    is_damaged = not isinstance(problem, OSError) or (
        problem.errno is None and not is_url(path)
    )  # errno: of the system
    return ConnectorError(message, UnreadableRow(path, number + 1, is_rest=True) if is_damaged else None)


def _sum(names: str) -> int:
    return zlib.crc32(names.encode("utf-8", "surrogatepass"))


class FileSink(LingeringBolt):
    """A bolt that writes tuples to files in a folder; see the module.

    A file is written under another name (``.part-...``) and then renamed. Its name has the component, the task, the time of
    the task's start, and a number: no file is ever written twice.

    Args:
        folder: The folder, or a URL of one; it is made if it is missing.
        format: The format: JsonLines() by default, Lines(), Csv() or Parquet(). Its fields, if it has some, must be those of
            the tuples.
        roll_rows: The most tuples in a file; half of ``topology.max.spout.pending``, if that is less.
        roll_secs: Seconds after which a file is written with what there is, well below the message timeout.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        format: Format | None = None,
        roll_rows: int = 10_000,
        roll_secs: float = 5.0,
    ) -> None:
        self.folder = located(folder).rstrip("/")
        self.format = _format(format, JsonLines)
        self.batch_size = roll_rows
        self.linger_secs = roll_secs
        self.requires = _packages(self.format, [self.folder])

    def check_start(self, conf: dict[str, Any]) -> None:
        """Make the folder, and check that files can be written there."""
        super().check_start(conf)
        place = _Folder(self.folder)
        place.write("check", b"")
        place.remove("check")

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self._place = _Folder(self.folder)
        self._name = f"{context.component}-{context.task_index:04}-{strftime('%Y%m%dT%H%M%S')}-{token_hex(4)}"
        self._files = 0

    def process_batch(self, key: None, tups: list[Tuple]) -> None:
        if self.format.columns is not None:
            tups, _ = made_of(self, tups, self._check_fields, self.folder)
        by_fields: dict[tuple[str, ...], list[Tuple]] = {}
        for tup in tups:
            by_fields.setdefault(tuple(tup.fields), []).append(tup)
        for fields, alike in by_fields.items():
            for data in self._files_of(alike, fields):
                self._place.write(f"{self._name}-{self._files:06}{self.format.suffix}", data)
                self._files += 1

    def _check_fields(self, tup: Tuple) -> None:
        wanted = self.format.columns
        if wanted is not None and list(tup.fields) != list(wanted):
            raise ConnectorError(
                f"the sink {self.context.component!r} is declared with the fields {', '.join(wanted)}, and gets tuples of "
                f"{', '.join(tup.fields)}"
            )

    def _files_of(self, tups: list[Tuple], fields: Sequence[str]) -> Iterator[bytes]:
        """Return files with the tuples together; fail the tuples that no file can have."""
        try:
            yield self.format.written([tup.values for tup in tups], fields)
            return
        except (ConnectorError, ValueError) as problem:
            together = problem
        alone, _ = made_of(self, tups, lambda tup: self.format.written([tup.values], fields), self.folder)
        if len(alone) < len(tups):
            parts = [alone] if alone else []
        else:  # values of different types, for example, which no column has together
            self.report_error(f"{together}; {len(tups)} tuples are written to {self.folder} in two files")
            half = len(tups) // 2
            parts = [tups[:half], tups[half:]]
        for part in parts:
            yield from self._files_of(part, fields)


class _Folder:
    """A folder in which files are complete or absent."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._fs: Any = None
        try:
            if is_url(folder):
                self._fs, self.folder = file_system(folder)
                self._fs.makedirs(self.folder, exist_ok=True)
            else:
                os.makedirs(folder, exist_ok=True)
        except OSError as problem:
            raise ConfigError(
                f"the folder {folder} can't be made: {problem}; name one in which files may be written"
            ) from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
        path = f"{self.folder}/{name}"
        try:
            if self._fs is None:
                _written(path, data)
            else:
                part = f"{self.folder}/.part-{name}"
                self._fs.pipe_file(part, data)
                move_file(self._fs, part, path)
        except OSError as problem:
            raise ConnectorError(f"{path} can't be written: {problem}") from None

    def remove(self, name: str) -> None:
        """Remove a file."""
        path = f"{self.folder}/{name}"
        os.remove(path) if self._fs is None else self._fs.rm_file(path)


def _written(path: str, data: bytes) -> None:
    def write(handle: int) -> None:
        private.write_all(handle, data)
        os.fsync(handle)

    umask = os.umask(0)
    os.umask(umask)
    private.replace_file(path, write, 0o666 & ~umask)
    private.sync_folder(os.path.dirname(path))


def _format(format: object, default: type[Lines | JsonLines]) -> Format:
    if format is None:
        return default()
    if not isinstance(format, Format):
        raise ConfigError(f"format is {format!r}; use Lines(), JsonLines(), Csv([...]) or Parquet([...])")
    return format


def _packages(format: Format, paths: Sequence[str]) -> dict[str, str]:
    found = dict(format.requires)
    for path in paths:
        found.update(packages_of_url(path))
    return found
