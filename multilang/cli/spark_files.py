"""The files that ``multilang spark`` reads as sources and writes as results, and the error of those that it can't."""

from __future__ import annotations

import shutil
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multilang.cli.exits import fault
from multilang.protocol.codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology import Topology
    from spark_bridge.job import JobResult

FORMATS = ("json", "parquet", "orc", "csv", "delta", "iceberg")  # those of spark_bridge.job.result
READERS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_COMPRESSED = (".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".zst")  # Spark unpacks such files
_MAGIC = {b"PAR1": ".parquet", b"ORC": ".orc", b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_STRICT: dict[str, Any] = {"mode": "FAILFAST"}  # otherwise Spark makes nulls of what it can't read
# Otherwise a file whose columns stand in another order than those of the first one has its values in the wrong columns.
_CSV: dict[str, Any] = {"header": True, "enforceSchema": False, **_STRICT}
_INFERRED: dict[str, Any] = {**_CSV, "inferSchema": True}
_ESCAPED = {letter: f"\\{letter}" for letter in "{}[]*?\\"} | {",": r"{\,}"}  # within braces no comma separates
_SNIFF = 8192  # bytes of a file that are checked


def check_source(topology: Topology, name: str, file: str, stream: bool) -> None:
    """Raise ClickException for a file that can't be the source of the spout ``name``."""
    spec = topology.components.get(name)
    if stream and has_magic(file) and not Path(file).exists():
        return  # a pattern
    if "://" not in file:
        _check_file(f"--source {name}={file}", Path(file))
    if stream and Path(file).is_file():
        raise fault(
            f"--source {name}={file}: is a file; with --stream name the folder that files come into, or a pattern, {file}*"
        )
    if spec is not None and spec.kind == "spout" and reader_of(file) is None:
        fields = next(iter(spec.streams.values())).fields if spec.streams else ()
        if len(fields) != 1:
            raise fault(
                f"--source {name}={file}: a line of text is one value, and the stream of {name!r} has the fields "
                f"{', '.join(fields)}; give a file with columns, such as .csv, .json or .parquet"
            )


def reader_of(file: str) -> str | None:
    """Return Spark's name for the format of a file's suffix; None: text."""
    path = Path(file)
    return READERS.get(path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix)


def _check_file(what: str, path: Path) -> None:
    """Refuse a file that does not exist, is a pipe, or has another format than its suffix names."""
    if not path.exists():
        raise fault(f"{what}: there is no {path}")
    if not path.is_file() and not path.is_dir():
        kind = "a pipe" if path.is_fifo() else "no file"
        raise fault(
            f"{what}: is {kind}, which can be read once, by one process; Spark reads a source in processes of its own, and again for "
            "what failed: write it into a file first, and name that"
        )
    reader = reader_of(str(path))
    first = path if path.is_file() else next((each for each in sorted(path.iterdir()) if _is_data(each)), None)
    if first is None or reader in ("parquet", "orc") or first.suffix in _COMPRESSED:
        return
    try:
        with first.open("rb") as file:
            head = file.read(_SNIFF)
    except OSError as error:
        raise fault(f"{what}: {first} can't be read: {error.strerror}") from error
    problem = _why_no_text(head)
    if problem:
        meant = next((suffix for magic, suffix in _MAGIC.items() if head.startswith(magic)), None)
        fix = (
            f"it begins as a file whose name ends in {meant}: rename it"
            if meant
            else "give text in UTF-8, or a file with columns whose name shows it, such as .parquet"
        )
        raise fault(f"{what}: {first.name} is not text ({problem}); {fix}")


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(("_", "."))  # as Spark sees it


def _why_no_text(head: bytes) -> str:
    if b"\0" in head:
        return f"byte 0 at offset {head.index(0)}"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.end < len(head) or error.reason != "unexpected end of data":
            return f"byte {head[error.start]:#04x} at offset {error.start} is not UTF-8"
    return ""


def source_of(spark: SparkSession, file: str) -> Any:
    """Return the RDD of a text file's lines, or the DataFrame of a file with columns."""
    place = _place(spark, file)
    reader = reader_of(file)
    if reader is None:
        return spark.sparkContext.textFile(place, spark.sparkContext.defaultParallelism)
    options = _INFERRED if reader == "csv" else _STRICT if reader == "json" else {}
    return spark.read.format(reader).options(**options).load(place)


def broken_source(sources: dict[str, str]) -> str | None:
    """Return the sentence about the first line of a JSON source that is no object; None if there is none, or none here.

    It is asked for after Spark has refused a source, because Spark does not name the line.
    """
    for name, file in sources.items():
        broken = _broken_line(file)
        if broken is not None:
            return f"--source {name}={file}: {broken}"
    return None


def _broken_line(file: str) -> str | None:
    if reader_of(file) != "json" or "://" in file:
        return None
    path = Path(file)
    for each in sorted(path.iterdir()) if path.is_dir() else [path]:
        if not _is_data(each) or each.suffix not in READERS:
            continue
        with each.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                reason = _why_no_object(line)
                if reason:
                    return f"line {number} of {each} is no JSON object: {reason}; mend the line, or take it out"
    return None


def _why_no_object(line: bytes) -> str:
    if not line.strip():
        return ""
    try:
        found = loads(line)
    except ValueError as error:
        return str(error)
    return "" if isinstance(found, dict | list) else f"it is {dumps(found)[:80]}"


def _place(spark: SparkSession, file: str) -> str:
    """Return a file, a folder or a pattern in the form that Spark reads. An existing name is a name, and no pattern."""
    java: Any = spark.sparkContext
    place = named = file if "://" in file else f"file://{Path(file).resolve()}"
    while not _ESCAPED.keys().isdisjoint(named):
        path = java._jvm.org.apache.hadoop.fs.Path(named)
        if path.getFileSystem(java._jsc.hadoopConfiguration()).exists(path):
            break
        named = named.rpartition("/")[0]
    return _named(named) + place[len(named) :]


def _named(place: str) -> str:
    """Return a name in the form that Spark reads, where a name may be a pattern, or several separated by commas."""
    return "".join(_ESCAPED.get(letter, letter) for letter in place)


def check_output(output: Path, overwrite: bool) -> None:
    """Raise ClickException for a folder that results can't be written to."""
    if output.is_dir() and any(output.iterdir()) and not overwrite:
        raise fault(f"--output {output}: the folder is not empty; name another, or add --overwrite")
    if output.exists() and not output.is_dir():
        raise fault(f"--output {output}: is a file; name a folder")


def check_folders(output: Path | None, outputs: Iterable[tuple[str, str]]) -> None:
    """Raise ClickException for two streams that would be written to one folder, the second in the place of the first.

    ``output``: None if nothing is written.
    """
    found: dict[str, tuple[str, str]] = {}
    for key in outputs if output is not None else ():
        name = _folder_of(*key)
        if name in found:
            (first, its), (second, other) = found[name], key
            raise fault(
                f"--output {output}: stream {its!r} of {first!r} and stream {other!r} of {second!r} would both be written to "
                f"{output}/{name}; rename one, or run once for each, with --keep {first}/{its} and --keep {second}/{other}"
            )
        found[name] = key


def _folder_of(component: str, stream: str) -> str:
    """Return the name of a stream's folder: its component's, and its own unless that is default."""
    name = (component if stream == "default" else f"{component}-{stream}").replace("/", "%2F")
    return name.replace(".", "%2E") if name in (".", "..") else name


def write(result: JobResult, output: Path, form: str) -> None:
    """Write each output stream to a folder of its own."""
    for component, stream in result.outputs:
        folder = output / _folder_of(component, stream)
        if folder.exists():
            shutil.rmtree(folder)
        place = f"file://{folder.resolve()}"
        result.write(component, place, format=form, stream=stream)


def writer(output: Path, form: str) -> Callable[[JobResult, int], None]:
    """Return a function that writes a batch's output streams to folders of the batch, which a repeated batch
    replaces.
    """

    def write(result: JobResult, batch: int) -> None:
        for component, stream in result.outputs:
            folder = output / _folder_of(component, stream) / f"batch={batch:06}"
            if folder.exists():
                shutil.rmtree(folder)
            result.write(component, f"file://{folder.resolve()}", format=form, stream=stream)

    return write


def streaming(spark: SparkSession, topology: Topology, name: str, place: str) -> DataFrame:
    """Return a streaming DataFrame of a folder's text files, a tuple a line, or of a pattern such as ``orders/*.json``.

    The columns are those of the files that exist at the start.
    """
    reader, place = reader_of(place), _place(spark, place)
    if reader is None:
        from spark_bridge.job.plan import as_declared
        from spark_bridge.job.sources import fields_of_rows

        spec = as_declared(topology).components.get(name)
        field = fields_of_rows(spec, next(iter(spec.streams)))[0] if spec is not None and spec.streams else "value"
        return spark.readStream.text(place).withColumnRenamed("value", field)
    options = _CSV if reader == "csv" else _STRICT if reader == "json" else {}
    inferred = _INFERRED if reader == "csv" else options
    schema = spark.read.format(reader).options(**inferred).load(place).schema
    return spark.readStream.format(reader).options(**options).schema(schema).load(place)
