"""Folders of text files as sources: a partition is a file, a position the byte that is read next.

The coordinator notes the order in which files were found in ``.partitions`` in the folder, so that a file never changes its
number.

Files may grow, and new ones may come. The last line is read when its end is there. A file that shrinks, vanishes or
can't be decoded is reported.
"""

from __future__ import annotations

import fcntl
import os
from fnmatch import fnmatch
from itertools import islice

from multilang.component.errors import ConfigError, SourceUnavailable
from multilang.helpers import private
from multilang.protocol.codec import dumps, loads
from multilang.transactional.spouts.source import (
    OpaqueTransactionalSourceSpout,
    Source,
    SourceSpout,
    TransactionalSourceSpout,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

INDEX = ".partitions"


class _Files(SourceSpout):
    def __init__(
        self,
        folder: str | os.PathLike[str],
        batch_size: int = 1000,
        pattern: str = "*",
        field: str = "line",
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> None:
        super().__init__([field], batch_size)
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.pattern = pattern
        self.encoding = encoding
        self.errors = errors

    def open(self, conf: Mapping[str, Any]) -> FileSource:
        return FileSource(self.folder, self.pattern, self.encoding, self.errors)


class TransactionalFileSpout(_Files, TransactionalSourceSpout):
    """Lines of files, the same in each replay.

    Args:
        folder: The folder. All tasks must see it, and the coordinator must be able to write in it.
        batch_size: The largest number of lines of a file in one batch.
        pattern: A pattern for the files' names. Files whose names begin with a dot are never read.
        field: The name of the field, which is the line without its end.
        encoding: The encoding, one in which a line ends with the byte 10.
        errors: The treatment of bytes that can't be decoded, as for ``bytes.decode``.
    """


class OpaqueTransactionalFileSpout(_Files, OpaqueTransactionalSourceSpout):
    """Lines of files; a file that can't be read holds up none of the others.

    Its arguments are those of TransactionalFileSpout.
    """


class FileSource(Source):
    """The source of both spouts of files."""

    def __init__(self, folder: str, pattern: str, encoding: str, errors: str) -> None:
        if not os.path.isdir(folder):
            raise ConfigError(
                f"there is no folder {folder}, whose files the spout is to read; make it, or name another"
            )
        self._folder = folder
        self._pattern = pattern
        self._encoding = encoding
        self._errors = errors
        self._names: list[str] = []

    def discover(self) -> None:
        try:
            with os.scandir(self._folder) as entries:
                found = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_file() and not entry.name.startswith(".") and fnmatch(entry.name, self._pattern)
                )
            if set(found) <= set(self._names):
                return
            handle = private.open_file(os.path.join(self._folder, INDEX), os.O_RDWR | os.O_CREAT | os.O_APPEND)
            with open(handle, "a+b") as index:
                fcntl.flock(index, fcntl.LOCK_EX)
                self._names = _names(index)
                new = [name for name in found if name not in set(self._names)]
                index.write("".join(f"{dumps(name)}\n" for name in new).encode())
                index.flush()
                os.fsync(index.fileno())
            self._names += new
        except OSError as problem:
            raise SourceUnavailable(
                f"the files of {self._folder} can't be listed in {INDEX} there: {problem}; the coordinator must be able to "
                "read and write that"
            ) from problem

    def num_partitions(self) -> int:
        try:
            with open(private.open_file(os.path.join(self._folder, INDEX), os.O_RDONLY), "rb") as index:
                self._names = _names(index)
        except FileNotFoundError:
            return 0
        except OSError as problem:
            raise SourceUnavailable(f"the folder {self._folder} can't be read: {problem}") from problem
        return len(self._names)

    def first(self, partition: int) -> int:
        return 0

    def describe(self) -> str:
        return f"folder {self._folder} ({INDEX} there has the numbers of its files)"

    def identity(self, partition: int) -> dict[str, str]:
        return {"file": self._name(partition)}

    def stamp(self, partition: int) -> tuple[int, int] | None:
        try:
            found = os.stat(os.path.join(self._folder, self._name(partition)))
        except (OSError, SourceUnavailable):
            return None  # the read will raise the reason
        return found.st_dev, found.st_ino

    def read(self, partition: int, position: int, most: int) -> tuple[list[list[str]], int]:
        end = position
        rows = []
        with self._at(partition, position) as file:
            for line in islice(file, most):
                if not line.endswith(b"\n"):
                    break
                rows.append([self._decoded(line, file, end)])
                end += len(line)
        return rows, end

    def read_again(self, partition: int, start: int, end: int) -> list[list[str]]:
        at = start
        rows = []
        with self._at(partition, end) as file:
            file.seek(start)
            for line in file.read(end - start).split(b"\n")[:-1]:
                rows.append([self._decoded(line, file, at)])
                at += len(line) + 1
        return rows

    def has_more(self, partition: int, position: int) -> bool:
        with self._at(partition, position) as file:
            return file.readline().endswith(b"\n")

    def _name(self, partition: int) -> str:
        if partition >= len(self._names) and partition >= self.num_partitions():
            raise SourceUnavailable(
                f"{self._folder}/{INDEX} does not name file {partition} yet; is it the same folder for all tasks?"
            )
        return self._names[partition]

    def _at(self, partition: int, position: int) -> BinaryIO:
        path = os.path.join(self._folder, self._name(partition))
        try:
            file = open(path, "rb")  # noqa: SIM115 - the caller closes it
        except OSError as problem:
            raise SourceUnavailable(
                f"{path}, of which {position} bytes were read, can't be read any more: {problem}; restore it, and leave files "
                "where they are until the topology needs them no longer"
            ) from problem
        size = os.fstat(file.fileno()).st_size
        if size < position:
            file.close()
            raise SourceUnavailable(
                f"{path} has shrunk: {position} bytes of it were read, and it has {size}; restore it. Files may grow, "
                "and new ones may come"
            )
        file.seek(position)
        return file

    def _decoded(self, line: bytes, file: BinaryIO, at: int) -> str:
        try:
            return line.removesuffix(b"\n").removesuffix(b"\r").decode(self._encoding, self._errors)
        except UnicodeDecodeError as problem:
            raise SourceUnavailable(
                f"{file.name}: the line at byte {at} is no {self._encoding}: {problem.reason}; name its encoding, or read over "
                'it with errors="replace"'
            ) from problem


def _names(index: BinaryIO) -> list[str]:
    """Return the names that the index has, without a line that a crash cut short."""
    index.seek(0)
    text = index.read()
    whole = text[: text.rfind(b"\n") + 1]
    if index.writable():
        index.truncate(len(whole))
    return [loads(line) for line in whole.splitlines()]
