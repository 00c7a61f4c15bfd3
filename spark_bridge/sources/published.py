"""Published rows, read without Spark: row group by row group, each checked before it is decoded.

The files in the folder of a published source:

``manifest.json``   the source's name, fields and the kinds of its columns; for each partition its rows and the names and
                    checksums of its two files. It is written last: a folder without it has nothing published
``part-*.parquet``  the rows of one partition, in row groups
``part-*.json``     its index: rows, place and checksum of each row group, and of the file's end (Parquet's footer)

Each attempt to write a file gives it another random name, so that a file of a lost attempt is never mistaken for one
that the manifest names. Everything is read and written through fsspec.
"""

from __future__ import annotations

import io
from hashlib import sha256

from multilang.component.errors import ConnectorError, SourceUnavailable
from multilang.connectors.urls import move_file, packages_of_url
from multilang.connectors.values import plain
from multilang.helpers.extras import imported
from multilang.protocol.codec import dumps, loads
from spark_bridge.sources.source import PartitionSource
from spark_bridge.sources.values import converter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from multilang.helpers.plain import Row
    from spark_bridge.sources.values import Kind

MANIFEST = "manifest.json"
FORMAT = "storm-multilang partitions 1"
JSON = "json"  # the kind of a column that holds JSON texts


_CACHED_GROUPS = 3  # decoded row groups in memory: the present one, and some in which failed rows are
_CACHED_PARTS = 16  # partitions whose index and footer are in memory


def packages_for(url: str) -> dict[str, str]:
    """Return the packages for reading this URL, as in a component's ``requires``, such as s3fs for s3://."""
    return {"fsspec": "fsspec>=2024.6", "pyarrow": "pyarrow>=18", **packages_of_url(url)}


class Folder:
    """A folder on any file system that fsspec knows, by its URL. Raises ConnectorError for an unknown file system."""

    def __init__(self, url: str) -> None:
        core = imported("fsspec.core", "spark", "a published source", error=ConnectorError)
        self.url = url
        try:
            self.fs, path = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConnectorError(f"{url!r} can't be opened: {error}") from None
        self.path = path.rstrip("/")

    def place(self, name: str) -> str:
        """Return the path of a file in this folder."""
        return f"{self.path}/{name}"

    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return a file, or a part of it.

        Raises ConnectorError when it does not exist, SourceUnavailable for other failures.
        """
        data = self.find(name, start, end)
        if data is None:
            raise ConnectorError(f"{self.url} has no {name}: it was removed, or published anew since")
        return data

    def find(self, name: str, start: int | None = None, end: int | None = None) -> bytes | None:
        """Return a file, or a part of it; None if it does not exist. Raises SourceUnavailable for other failures."""
        try:
            return self.fs.cat_file(self.place(name), start=start, end=end)  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnavailable(f"{name} of {self.url} can't be read: {error}") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file. A reader finds no file, the old one, or the whole new one."""
        import uuid

        part = self.place(f".{name}.{uuid.uuid4().hex}")
        self.fs.pipe_file(part, data)
        move_file(self.fs, part, self.place(name))

    def names(self) -> list[str]:
        """Return the names of all files that are in the folder now."""
        self.fs.invalidate_cache(self.path)
        try:
            return [path.rpartition("/")[2] for path in self.fs.ls(self.path, detail=False)]
        except FileNotFoundError:
            return []


def checksum(data: bytes) -> str:
    """Return the checksum of a file, or of a part of one."""
    return sha256(data).hexdigest()


def verified(folder: Folder, name: str, start: int, size: int, due: str) -> bytes:
    """Return a part of a file. Raises ConnectorError unless it is what was written."""
    data = folder.read(name, start, start + size)
    if len(data) != size:
        raise ConnectorError(
            f"{name} of {folder.url} is cut short: {start + len(data)} bytes, of {start + size} at least"
        )
    if checksum(data) != due:
        raise ConnectorError(
            f"{name} of {folder.url} was altered: bytes {start} to {start + size} have another checksum"
        )
    return data


def manifest_of(folder: Folder) -> dict[str, Any]:
    """Return the manifest. Raises ConnectorError when nothing was published there, or it was altered."""
    manifest = stored_manifest(folder)
    if manifest is None:
        raise ConnectorError(
            f"{MANIFEST} of {folder.url} was altered: it is no manifest, or does not have its own checksum"
        )
    return manifest


def stored_manifest(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest; None if it was altered. Raises ConnectorError when nothing was published there."""
    data = folder.find(MANIFEST)
    if data is None:
        raise ConnectorError(f"nothing was published at {folder.url}: it has no {MANIFEST}")
    try:
        manifest: dict[str, Any] = loads(data)
        seal = manifest.pop("checksum")
        if manifest["format"] != FORMAT:
            raise ConnectorError(f"{folder.url} has the format {manifest['format']!r}; this is for {FORMAT!r}")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if seal == checksum(dumps(manifest).encode()) else None


def sealed(manifest: dict[str, Any]) -> bytes:
    """Return the manifest's text, with its checksum."""
    return dumps({**manifest, "checksum": checksum(dumps(manifest).encode())}).encode()


class PublishedSource(PartitionSource):
    """The rows that were published at ``url``. Needs pyarrow and fsspec, and neither Spark nor Java.

    Args:
        url: The folder, on any file system of fsspec.
    """

    asks = True

    def __init__(self, url: str) -> None:
        self.url = url
        self.requires = packages_for(url)
        self._folder: Folder | None = None
        self._manifest: dict[str, Any] | None = None
        self._parts: dict[int, _PublishedPart] = {}
        self._groups: dict[tuple[int, int], Sequence[Row]] = {}

    @property
    def name(self) -> str:
        return self.url

    @property
    def identity(self) -> str | None:
        return f"published {self._about()['name']}"  # files that are not those of this publication are refused

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self._about()["fields"])

    @property
    def partitions(self) -> int:
        return len(self._about()["partitions"])

    @property
    def rows(self) -> int:
        """The number of rows, over all partitions."""
        return self._about()["rows"]  # type: ignore[no-any-return]

    def count(self, partition: int) -> int:
        return self._about()["partitions"][partition]["rows"]  # type: ignore[no-any-return]

    def read(self, partition: int, offset: int, limit: int) -> Sequence[Row]:
        about = self._about()["partitions"]
        if not 0 <= partition < len(about):
            raise ConnectorError(f"{self.url} has no partition {partition}, only 0 to {len(about) - 1}")
        if offset >= about[partition]["rows"]:
            return ()
        part = self._part(partition)
        group, start = part.find(offset)
        rows = self._groups.get((partition, group))
        if rows is None:
            rows = part.rows(group)
            _evict(self._groups, _CACHED_GROUPS)
            self._groups[partition, group] = rows
        first = offset - start
        return rows[first : first + limit] if first or limit < len(rows) else rows

    def close(self) -> None:
        self._parts.clear()
        self._groups.clear()

    def __deepcopy__(self, memo: object) -> PublishedSource:
        return PublishedSource(self.url)

    def __reduce__(self) -> Any:
        return PublishedSource, (self.url,)

    def _about(self) -> dict[str, Any]:
        if self._manifest is None:
            self._folder = Folder(self.url)
            self._manifest = manifest_of(self._folder)
        return self._manifest

    def _part(self, partition: int) -> _PublishedPart:
        part = self._parts.get(partition)
        if part is None:
            about = self._about()
            assert self._folder is not None
            part = _PublishedPart(self._folder, about["partitions"][partition], about["kinds"])
            _evict(self._parts, _CACHED_PARTS)
            self._parts[partition] = part
        return part


def _evict(cache: dict[Any, Any], most: int) -> None:
    while len(cache) >= most:
        del cache[next(iter(cache))]


class _PublishedPart:
    """One partition's file: its index, and Parquet's footer once it is needed."""

    def __init__(self, folder: Folder, about: dict[str, Any], kinds: list[Kind]) -> None:
        self._folder = folder
        self._file: str = about["file"]
        self._kinds = kinds
        name = f"{self._file.rpartition('.')[0]}.json"
        text = folder.read(name)
        if checksum(text) != about["index"]:
            raise ConnectorError(f"{name} of {folder.url} was altered: it has another checksum than in the manifest")
        index = loads(text)
        self._groups: list[list[Any]] = index["groups"]
        self._footer: list[Any] = index["footer"]
        self._starts = [0]
        for rows, *_ in self._groups:
            self._starts.append(self._starts[-1] + rows)
        self._metadata: Any = None

    def find(self, offset: int) -> tuple[int, int]:
        """Return the row group that has a row, and the offset of the group's first row."""
        from bisect import bisect_right

        group = bisect_right(self._starts, offset) - 1
        return group, self._starts[group]

    def rows(self, group: int) -> Sequence[Row]:
        """Return the rows of a group. Raises ConnectorError unless the file is what was written."""
        parquet = _parquet()
        if self._metadata is None:
            start, size, seal = self._footer
            footer = verified(self._folder, self._file, start, size, seal)
            # A file of Parquet's magic number and the footer is enough: the data that the footer describes isn't read
            # here.
            self._metadata = parquet.read_metadata(io.BytesIO(b"PAR1" + footer))
        _, start, size, seal = self._groups[group]
        data = verified(self._folder, self._file, start, size, seal)
        file = parquet.ParquetFile(_Sparse(start, data, self._footer[0]), metadata=self._metadata)
        table = file.read_row_group(group, use_threads=False)
        columns = [_values(table.column(number), kind) for number, kind in enumerate(self._kinds)]
        return list(zip(*columns, strict=True))


def _values(column: Any, kind: Kind) -> Sequence[Any]:
    """Return a column's values as JSON has them."""
    values: list[Any] = column.to_pylist()
    if kind == JSON:
        return loads(f"[{','.join(values)}]")  # type: ignore[no-any-return]
    convert = converter(kind)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    if _has_floats(column.type) and not all(_finite(value) for value in values):
        return [plain(value) for value in values]
    return values


def _has_floats(kind: Any) -> bool:
    return any(name in str(kind) for name in ("float", "double"))


def _finite(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value - value == 0.0)


class _Sparse(io.RawIOBase):
    """A file of ``size`` bytes with only ``data``, the bytes from ``start`` on; nothing else is read."""

    def __init__(self, start: int, data: bytes, size: int) -> None:
        self._start = start
        self._data = data
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        """Return the file's size, which pyarrow asks for."""
        return self._size

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if not self._start <= self._at <= end <= self._start + len(self._data):
            raise OSError(f"bytes {self._at} to {end} are not here")
        data = self._data[self._at - self._start : end - self._start]
        self._at = end
        return data


def _parquet() -> Any:
    return imported("pyarrow.parquet", "spark", "a published source", error=ConnectorError)
