"""Writes the partitions of an RDD or DataFrame to files, for spouts to read without Spark.

Each executor writes its partitions itself; the driver writes the manifest, which names the valid files.
"""

from __future__ import annotations

import uuid
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, cast

from multilang.component.errors import ConnectorError
from multilang.protocol.codec import dumps
from spark_bridge.executors import freeze_once, source_error
from spark_bridge.sources.blocks import RowText
from spark_bridge.sources.live import names_and_kinds
from spark_bridge.sources.published import (
    FORMAT,
    JSON,
    MANIFEST,
    Folder,
    PublishedSource,
    checksum,
    sealed,
    stored_manifest,
)
from spark_bridge.sources.values import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    import pyarrow
    from pyspark import RDD
    from pyspark.sql import DataFrame

GROUP_ROWS = 8192
GROUP_BYTES = 4 << 20  # of a row group in memory, unless one row is longer: readers hold a few groups


def publish(
    rows: RDD[Any] | DataFrame,
    url: str,
    *,
    fields: Sequence[str] | None = None,
    group_rows: int = GROUP_ROWS,
    overwrite: bool = False,
) -> PublishedSource:
    """Write each partition to a folder as Parquet, and return the source to read it.

    The executors write the files. The publication becomes valid with the manifest, which is written last.

    Args:
        rows: The RDD or DataFrame. A DataFrame keeps its columns' types; the values of an RDD's rows are written as
            JSON texts.
        url: The folder, on any file system of fsspec that all executors share.
        fields: The names of a row's values. A DataFrame has its own; by default a row of an RDD is one value, "value".
        group_rows: The number of rows of a row group at most, which is the least that is read for one row. A group of long rows
            has fewer, in 4 MiB.
        overwrite: Whether to replace an earlier publication in this folder; its readers fail then.

    Returns:
        The published source.

    Raises:
        ConnectorError: A column's type has no JSON form, there is no column, or something is published at ``url`` already.
    """
    if group_rows < 1:
        raise ConnectorError(f"group_rows={group_rows}: a row group has at least one row")
    names, kinds = names_and_kinds(rows, fields)
    if not names:
        raise ConnectorError(
            "the DataFrame has no columns, and a file of Parquet's no rows then: select a column, such as lit(1)"
        )
    folder = Folder(url)
    before: dict[str, Any] | None = None
    if MANIFEST in folder.names():
        if not overwrite:
            raise ConnectorError(f"something is published at {url} already; publish elsewhere, or with overwrite=True")
        before = stored_manifest(folder)  # if it was altered, its files are unknown, so they stay
    try:
        folder.fs.makedirs(folder.path, exist_ok=True)
    except OSError as error:
        raise ConnectorError(f"{url} can't be made a folder: {error}") from None
    name = uuid.uuid4().hex
    try:
        if kinds is None:
            write = _RowsWritten(url, name, group_rows, RowText(names, None))
            files = cast("RDD[Any]", rows).mapPartitionsWithIndex(write)
        else:
            files = _in_batches(cast("DataFrame", rows), _BatchesWritten(url, name, group_rows, names))
        written = [tuple(each) for each in files.collect()]
    except Exception as error:
        _sweep(folder, name, keep=())
        raise source_error(error, f"Spark could not publish to {url}") from error
    there = folder.names()
    for _, file, *_ in written:
        if file not in there:
            _sweep(folder, name, keep=())
            raise ConnectorError(
                f"{url} is not one folder for all: an executor wrote {file} there, and the driver does not see it; publish to "
                "a file system that all machines and processes share"
            )
    partitions: list[dict[str, Any]] = [{"rows": 0} for _ in range(files.getNumPartitions())]
    for partition, file, rows_, size, seal in written:
        partitions[partition] = {"rows": rows_, "file": file, "bytes": size, "index": seal}
    manifest = {
        "format": FORMAT,
        "name": name,
        "fields": list(names),
        "kinds": [JSON] * len(names) if kinds is None else kinds,
        "rows": sum(each["rows"] for each in partitions),
        "partitions": partitions,
    }
    folder.write(MANIFEST, sealed(manifest))
    _sweep(folder, name, keep=[each["file"] for each in partitions if each["rows"]])
    if before is not None:
        _sweep(folder, before["name"], keep=())
    return PublishedSource(url)


_WRITTEN = "partition int, file string, rows long, bytes long, index string"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def _in_batches(frame: DataFrame, write: _BatchesWritten) -> RDD[Any]:
    """Return what ``write`` returns for each partition, in as many partitions, of which it may not be called for empty ones.

    The batches that it gets are no larger than a row group: otherwise Spark's would fill the memory of an executor.
    """
    conf = frame.sparkSession.conf
    before = conf.get(_BATCH_BYTES, None)
    conf.set(_BATCH_BYTES, str(GROUP_BYTES))
    try:
        return checked(frame).mapInArrow(write, _WRITTEN).rdd  # which has the session's conf of this moment
    finally:
        if before is None:
            conf.unset(_BATCH_BYTES)
        else:
            conf.set(_BATCH_BYTES, before)


def _sweep(folder: Folder, name: str, keep: Sequence[str]) -> None:
    """Remove the files of a publication that its manifest does not name, which are those of lost attempts."""
    stems = {file.rpartition(".")[0] for file in keep}
    for file in folder.names():
        if file.startswith(f"part-{name}-") and file.rpartition(".")[0] not in stems:
            try:
                folder.fs.rm_file(folder.place(file))
            except FileNotFoundError:
                pass  # another process has removed it


# ---- in the executors ----


class _RowsWritten:
    """Writes a partition of an RDD, and returns its number, file, rows, bytes and the index's checksum."""

    def __init__(self, url: str, name: str, group_rows: int, text_of: RowText) -> None:
        self._url = url
        self._name = name
        self._group_rows = group_rows
        self._text_of = text_of

    def __call__(self, partition: int, rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        freeze_once()
        return iter(_written(self._url, self._name, partition, self._groups(partition, rows)))

    def _groups(self, partition: int, rows: Iterable[Any]) -> Iterator[pyarrow.Table]:
        import pyarrow

        fields = self._text_of.fields
        group: list[list[str]] = []  # the texts of each row's values
        size = 0
        for offset, row in enumerate(rows):
            try:
                texts = list(map(dumps, self._text_of.values(row)))
            except ConnectorError as error:
                raise ConnectorError(f"partition {partition}, offset {offset}: {error}") from None
            length = sum(map(len, texts))
            if group and (len(group) == self._group_rows or size + length > GROUP_BYTES):
                yield pyarrow.table(list(zip(*group, strict=True)), names=list(fields))
                group, size = [], 0
            group.append(texts)
            size += length
        if group:
            yield pyarrow.table(list(zip(*group, strict=True)), names=list(fields))


class _BatchesWritten:
    """Writes a partition of a DataFrame, which arrives as Arrow batches.

    For an empty partition it may not be called at all.
    """

    def __init__(self, url: str, name: str, group_rows: int, fields: Sequence[str]) -> None:
        self._url = url
        self._name = name
        self._group_rows = group_rows
        self._fields = list(fields)

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        freeze_once()
        context = TaskContext.get()
        assert context is not None
        written = _written(self._url, self._name, context.partitionId(), self._groups(batches))
        for partition, file, rows, size, seal in written:
            columns = [
                pyarrow.array([partition], pyarrow.int32()),
                pyarrow.array([file]),
                pyarrow.array([rows], pyarrow.int64()),
                pyarrow.array([size], pyarrow.int64()),
                pyarrow.array([seal]),
            ]
            yield pyarrow.RecordBatch.from_arrays(columns, names=["partition", "file", "rows", "bytes", "index"])

    def _groups(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
        """Return the batches cut anew: a row group has ``group_rows`` rows, or fewer if they are long."""
        waiting: list[pyarrow.RecordBatch] = []
        count = size = 0
        for batch in batches:
            at = 0
            while batch.num_rows - at:
                part = batch.slice(at, self._group_rows - count)
                while size + part.nbytes > GROUP_BYTES and part.num_rows > 1:
                    part = part.slice(0, part.num_rows // 2)
                if waiting and size + part.nbytes > GROUP_BYTES:
                    yield self._table(waiting)
                    waiting, count, size = [], 0, 0
                    continue
                waiting.append(part)
                count, size, at = count + part.num_rows, size + part.nbytes, at + part.num_rows
                if count == self._group_rows:
                    yield self._table(waiting)
                    waiting, count, size = [], 0, 0
        if waiting:
            yield self._table(waiting)

    def _table(self, batches: Sequence[pyarrow.RecordBatch]) -> pyarrow.Table:
        import pyarrow

        table = pyarrow.Table.from_batches(batches).rename_columns(self._fields)
        return table.cast(pyarrow.schema([_nullable(field) for field in table.schema]))


def _nullable(field: pyarrow.Field) -> pyarrow.Field:
    """Return the field, and all that is nested in it, as such that can be null.

    Spark declares a struct's members by themselves; where the struct is null, so are they, which Parquet's writer refuses.
    """
    import pyarrow

    kind = field.type
    if pyarrow.types.is_struct(kind):
        kind = pyarrow.struct([_nullable(kind.field(index)) for index in range(kind.num_fields)])
    elif pyarrow.types.is_map(kind):
        kind = pyarrow.map_(kind.key_type, _nullable(kind.item_field))
    elif pyarrow.types.is_list(kind):
        kind = pyarrow.list_(_nullable(kind.value_field))
    elif pyarrow.types.is_large_list(kind):
        kind = pyarrow.large_list(_nullable(kind.value_field))
    elif pyarrow.types.is_timestamp(kind) and kind.tz is not None:
        kind = pyarrow.timestamp(kind.unit, "UTC")  # the session's zone may not have the first and last hours
    return field.with_type(kind).with_nullable(True)


def _written(url: str, name: str, partition: int, groups: Iterator[pyarrow.Table]) -> list[tuple[Any, ...]]:
    """Write one partition's two files; write nothing for an empty partition."""
    import pyarrow.parquet

    first = next(groups, None)
    if first is None:
        return []
    folder = Folder(url)
    stem = f"part-{name}-{partition:05d}-{uuid.uuid4().hex[:12]}"
    index: list[tuple[int, int, int, str]] = []  # rows, start, size, checksum
    count = 0
    with folder.fs.open(folder.place(f"{stem}.parquet"), "wb") as file:
        sink = _Hashed(file.write)
        with pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(sink, "w"), first.schema) as writer:
            for group in chain((first,), groups):
                writer.write_table(group, row_group_size=group.num_rows)
                index.append((group.num_rows, *sink.cut()))
                count += group.num_rows
        footer = sink.cut()
    text = dumps({"groups": index, "footer": footer}).encode()
    folder.write(f"{stem}.json", text)
    return [(partition, f"{stem}.parquet", count, footer[0] + footer[1], checksum(text))]


class _Hashed:
    """A file to write to, which knows the checksum of what was written since the last cut."""

    closed = False

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self._write = write
        self._hash = sha256()
        self._start = self._at = 0

    def write(self, data: Any) -> int:
        self._write(data)
        self._hash.update(data)
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Do nothing: the file's own buffer is flushed when it is closed."""

    def close(self) -> None:
        """Do nothing: the caller who opened the file closes it."""

    def cut(self) -> tuple[int, int, str]:
        """Return start, size and checksum of what was written since the last cut."""
        part = (self._start, self._at - self._start, self._hash.hexdigest())
        self._start = self._at
        self._hash = sha256()
        return part
