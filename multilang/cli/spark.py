"""``multilang spark``: runs a topology as a Spark job, with files as the sources of its spouts."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.arguments import conf_entries
from multilang.cli.loading import load
from multilang.cli.report import Outcome, write_json, write_tables
from multilang.cli.view import PLAIN_EVERY, console
from multilang.component.errors import ConfigError
from multilang.protocol.codec import dumps
from multilang.state.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from multilang.topology import Topology
    from spark_bridge.job import JobProgress, JobResult

FORMATS = ("json", "parquet", "csv")
READERS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_COMPRESSED = (".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".zst")  # Spark unpacks such files
_MAGIC = {b"PAR1": ".parquet", b"ORC": ".orc", b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_SNIFF = 8192  # bytes of a file that are checked
_NAMED = 10  # failed tuples that are shown
_KINDS = 5  # kinds of errors that are shown
_LOOK = 120  # characters of the progress line


class SparkFault(click.ClickException):
    """A topology can't run on Spark; shown without a traceback."""

    def __init__(self, message: str, status: int = exits.USAGE) -> None:
        super().__init__(message)
        self.status = status

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The command's exit status."""
        return self.status


def _pairs(what: str) -> Any:
    def read(_context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (equals and name and value):
                raise click.BadParameter(f"{text!r} is not {what}")
            pairs[name] = value
        return pairs

    return read


@click.command(
    epilog="A source is read by its suffix: .csv (with a header), .json, .jsonl or .ndjson (an object a line), .parquet and .orc as "
    "a DataFrame, anything else as text in UTF-8, one tuple a line; .gz and the like after it are unpacked."
)
@click.argument("topology")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="SPOUT=FILE",
    callback=_pairs("SPOUT=FILE"),
    help="What stands in for a spout; a spout without one runs as it is, until it is exhausted.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master URL.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Write the output streams there.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="json", show_default=True, help="How.")
@click.option("--overwrite", is_flag=True, help="Replace what an earlier run wrote in DIR.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COMPONENT[/STREAM]",
    help="A stream to keep; those that nobody subscribes to if none is given.",
)
@click.option(
    "--limit", "limits", multiple=True, metavar="SPOUT=N", callback=_pairs("SPOUT=N"), help="Bounds an endless spout."
)
@click.option(
    "--max-replays", type=click.IntRange(min=0), default=3, show_default=True, help="Further rounds for what failed."
)
@click.option("--stream", is_flag=True, help="As a streaming query: a source is a folder that files come into.")
@click.option("--checkpoint", metavar="DIR", help="With --stream: what is read is written down there.")
@click.option(
    "--state", metavar="PLACE", help="With --stream: where states are, an SQLite file or redis://HOST:PORT/DATABASE."
)
@click.option("--once", is_flag=True, help="With --stream: end when what is there is read.")
@click.option("-c", "--conf", multiple=True, metavar="KEY=VALUE", callback=conf_entries, help="A conf entry.")
@click.option(
    "--spark-conf", multiple=True, metavar="KEY=VALUE", callback=_pairs("KEY=VALUE"), help="A property of Spark's."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the result.")
def spark(**options: Any) -> int:
    """Run a topology as a Spark job, and show the result.

    \b
    Exit status: 0  every spout tuple was acked
                 1  tuples failed at every attempt
                 2  the command line, the topology or a source is wrong, or Spark can't express it
                 3  a component never started
                 4  the job broke off
                69  Spark is not installed, or there is no Java
    """  # noqa: D301 - click wants the very sign that backslash-b stands for
    try:
        return _run(**options)
    except (ConfigError, StateError, ValueError) as error:
        raise SparkFault(str(error)) from error


def _run(
    *,
    topology: str,
    sources: dict[str, str],
    master: str,
    output: Path | None,
    form: str,
    overwrite: bool,
    keep: tuple[str, ...],
    limits: dict[str, str],
    max_replays: int,
    conf: dict[str, Any],
    spark_conf: dict[str, str],
    seed: int,
    as_json: bool,
    quiet: bool,
    stream: bool,
    checkpoint: str | None,
    state: str | None,
    once: bool,
) -> int:
    loaded = load(topology)
    if stream and checkpoint is None:
        raise SparkFault(
            "--stream: what is read is written down in a folder, so that nothing counts twice; add --checkpoint DIR"
        )
    if stream and limits:
        raise SparkFault("--limit: a streaming query has no end, and needs no bound")
    if not stream and (checkpoint or state or once):
        raise SparkFault("--checkpoint, --state and --once are for --stream")
    bounds = {name: _number(name, text) for name, text in limits.items()}
    for name, file in sources.items():
        if not (stream and "*" in file):
            _check_source(loaded, name, file, stream)
    if output is not None:
        # A query that goes on adds to its folder. A new query would overwrite the first batches of an earlier one.
        goes_on = checkpoint is not None and ("://" in checkpoint or Path(checkpoint).exists())
        _check_output(output, overwrite or goes_on)
    try:
        from spark_bridge.job import ComponentStartError, SparkJobError, run_topology
        from spark_bridge.job.declared import as_declared
        from spark_bridge.job.sources import check_sources
        from spark_bridge.job.watch import SPARK_ERRORS, readable
        from spark_bridge.session import SessionError, session
    except ModuleNotFoundError as error:
        raise SparkFault(
            f"this needs the package {error.name}; install the extra: pip install 'storm-multilang[cli,spark]'",
            exits.UNAVAILABLE,
        ) from error
    check_sources(as_declared(loaded), sources)  # before Spark starts, which takes seconds
    kept = [(name, stream) if slash else name for name, slash, stream in (each.partition("/") for each in keep)]
    try:
        if stream:
            from multilang.cli.spark_stream import run_stream, streaming, writer
            from spark_bridge.stream import stream_topology

            with session(master, loaded.name, spark_conf) as spark:
                return run_stream(
                    lambda tell: stream_topology(
                        loaded,
                        {name: streaming(spark, loaded, name, file) for name, file in sources.items()},
                        checkpoint=str(checkpoint),
                        state=state,
                        conf=conf,
                        outputs=kept or (None if output is not None else []),
                        each_batch=None if output is None else writer(output, form),
                        trigger={"availableNow": True} if once else None,
                        max_replays=max_replays,
                        seed=seed,
                        progress=tell,
                    ),
                    loaded.name,
                    as_json=as_json,
                    quiet=quiet,
                )
        with (
            session(master, loaded.name, spark_conf) as spark,
            _Shown(loaded.name, quiet) as shown,
            run_topology(
                loaded,
                {name: _source(spark, file) for name, file in sources.items()},
                spark,
                conf=conf,
                outputs=kept or None,
                max_replays=max_replays,
                limits=bounds,
                seed=seed,
                progress=shown.update,
            ) as result,
        ):
            if output is not None:
                shown.say(f"writing {output}")
                _write(result, output, form)
            shown.end()
            return _tell(result, as_json)
    except SessionError as error:
        raise SparkFault(str(error), exits.UNAVAILABLE) from error
    except ComponentStartError as error:
        raise SparkFault(str(error), exits.NEVER_STARTED) from error
    except SparkJobError as error:
        raise SparkFault(str(error), exits.BROKE_OFF) from error
    except SPARK_ERRORS as error:  # such as a file that Spark can't read
        raise SparkFault(str(readable(error)), exits.BROKE_OFF) from error


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise SparkFault(f"--limit {name}={text}: {text!r} is no number of tuples")
    return int(text)


# ---- files ----


def _check_source(topology: Topology, name: str, file: str, stream: bool) -> None:
    spec = topology.components.get(name)
    if "://" not in file:
        _check_file(f"--source {name}={file}", Path(file))
    if stream and Path(file).is_file():
        raise SparkFault(
            f"--source {name}={file}: is a file; with --stream name the folder that files come into, or a pattern, {file}*"
        )
    if spec is not None and spec.kind == "spout" and reader_of(file) is None:
        fields = next(iter(spec.streams.values())).fields if spec.streams else ()
        if len(fields) != 1:
            raise SparkFault(
                f"--source {name}={file}: a line of text is one value, and the stream of {name!r} has the fields "
                f"{', '.join(fields)}; give a file with columns, such as .csv, .json or .parquet"
            )


def reader_of(file: str) -> str | None:
    """Return Spark's name for the format of a file's suffix; None: text."""
    path = Path(file)
    return READERS.get(path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix)


def _check_file(what: str, path: Path) -> None:
    """Refuse a file that does not exist, is a pipe, or has another format than its name says."""
    if not path.exists():
        raise SparkFault(f"{what}: there is no {path}")
    if not path.is_file() and not path.is_dir():
        kind = "a pipe" if path.is_fifo() else "no file"
        raise SparkFault(
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
        raise SparkFault(f"{what}: {first} can't be read: {error.strerror}") from error
    problem = _why_no_text(head)
    if problem:
        meant = next((suffix for magic, suffix in _MAGIC.items() if head.startswith(magic)), None)
        fix = (
            f"it begins as a file whose name ends in {meant}: rename it"
            if meant
            else "give text in UTF-8, or a file with columns whose name says so, such as .parquet"
        )
        raise SparkFault(f"{what}: {first.name} is no text ({problem}); {fix}")


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(("_", "."))  # as Spark sees it


def _why_no_text(head: bytes) -> str:
    if b"\0" in head:
        return f"byte 0 at offset {head.index(0)}"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.end < len(head) or error.reason != "unexpected end of data":
            return f"byte {head[error.start]:#04x} at offset {error.start} is no UTF-8"
    return ""


def _source(spark: SparkSession, file: str) -> Any:
    place = file if "://" in file else _pattern(Path(file))
    reader = reader_of(file)
    if reader is None:
        return spark.sparkContext.textFile(place, spark.sparkContext.defaultParallelism)
    options = {"header": True, "inferSchema": True} if reader == "csv" else {}
    return spark.read.format(reader).options(**options).load(place)


def _pattern(path: Path) -> str:
    """Return a file of this machine in the form that Spark reads, where a name may be a pattern."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in f"file://{path.resolve()}")


def _check_output(output: Path, overwrite: bool) -> None:
    if output.is_dir() and any(output.iterdir()) and not overwrite:
        raise SparkFault(f"--output {output}: the folder is not empty; name another, or add --overwrite")
    if output.exists() and not output.is_dir():
        raise SparkFault(f"--output {output}: is a file; name a folder")


def _write(result: JobResult, output: Path, form: str) -> None:
    """Write each output stream to a folder of its own, named after its component, and its stream unless that is
    default.
    """
    for component, stream in result.outputs:
        folder = output / (component if stream == "default" else f"{component}-{stream}")
        if folder.exists():
            shutil.rmtree(folder)
        place = f"file://{folder.resolve()}"
        write_stream(result, component, stream, place, form)


def write_stream(result: JobResult, component: str, stream: str, place: str, form: str) -> None:
    """Write one output stream to a URL that does not exist yet."""
    if form == "json":
        fields = result.topology.components[component].streams[stream].fields
        result.rdd(component, stream).map(_line(fields)).saveAsTextFile(place)
    else:
        writer = result.dataframe(component, stream).write
        (writer.option("header", True) if form == "csv" else writer).format(form).save(place)


def _line(fields: Sequence[str]) -> Callable[[list[Any]], str]:
    """Return a function that makes a JSON object of a tuple."""
    return lambda row: dumps(dict(zip(fields, row, strict=True)))


# ---- the display ----


class _Shown:
    """A line with the progress: redrawn on a terminal, printed now and then elsewhere."""

    def __init__(self, name: str, quiet: bool) -> None:
        self._name = name
        self._console = console(sys.stderr)
        self._quiet = quiet
        self._start = self._last = time.monotonic()
        self._status: Any = None

    def __enter__(self) -> _Shown:  # noqa: PYI034 - Self is not in Python 3.10
        if not self._quiet and self._console.is_terminal:
            self._status = self._console.status(f"{self._name} (spark): starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def update(self, progress: JobProgress) -> None:
        """Show the progress of the round."""
        width = 24
        done = progress.done * width // progress.tasks if progress.tasks else width
        bar = f"{'█' * done}{'░' * (width - done)}"
        if self._status is not None:
            self.say(f"{bar} {progress.done}/{progress.tasks} tasks, round {progress.round}, {progress.acked:,} acked")
        elif not self._quiet and time.monotonic() - self._last >= PLAIN_EVERY:
            self._last = time.monotonic()
            self.say(f"{progress.done}/{progress.tasks} tasks, round {progress.round}, {progress.acked:,} acked")

    def say(self, text: str) -> None:
        """Show a text."""
        line = f"{self._name} (spark) {time.monotonic() - self._start:.0f} s: {text}"
        if self._status is not None:
            self._status.update(line[:_LOOK])
        elif not self._quiet:
            self._console.print(line)

    def end(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def _reported(result: JobResult) -> list[str]:
    """Return the kinds of errors, each once, since nobody may look into the logs of executors."""
    return [f"reported: {each}".rstrip() for each in result.errors[-_KINDS:]]


def _tell(result: JobResult, as_json: bool) -> int:
    status = exits.FAILED_TUPLES if result.lost else exits.OK
    outcome = Outcome(
        result.topology.name, "spark", None, False, "drained", status, result.seconds, result.counters, result.lost
    )
    if result.lost:
        lines = [f"failed at every attempt: {each}" for each in result.failed[:_NAMED]]
        more = result.lost - len(lines)
        outcome.problem = "\n".join([*lines, *([f"and {more} more failed"] if more else []), *_reported(result)])
    elif result.errors:
        outcome.problem = "\n".join(_reported(result))
    if as_json:
        write_json(outcome)
    else:
        write_tables(outcome, console(sys.stdout))
    return status
