"""``multilang spark``: runs a topology as a Spark job, with files as the sources of its spouts."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multilang.cli import exits
from multilang.cli.arguments import PROJECT_ENVIRONMENT, REPLAY, STAND_IN, conf_option
from multilang.cli.exits import fault
from multilang.cli.live import PAGE, shown_on_page
from multilang.cli.loading import load, load_replayed, load_stand_ins
from multilang.cli.settings import ProjectCommand
from multilang.cli.spark_files import (
    FORMATS,
    broken_source,
    check_folders,
    check_output,
    check_source,
    source_of,
    streaming,
    write,
    writer,
)
from multilang.cli.spark_view import SparkLine, show_result
from multilang.cli.view import console
from multilang.component.errors import ConfigError
from multilang.engine.readable import number
from multilang.errors import SparkJobError, TaskStartError
from multilang.protocol.codec import dumps
from multilang.store.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from multilang.topology import Topology
    from spark_bridge.stream import BatchProgress, TopologyQuery

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
    cls=ProjectCommand,
    epilog="A source is read by its suffix: .csv (with a header), .json, .jsonl or .ndjson (an object a line), .parquet and .orc as "
    "a DataFrame, anything else as text in UTF-8, one tuple a line; .gz and the like after it are unpacked.",
)
@click.argument("topology")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="SPOUT=FILE",
    callback=_pairs("SPOUT=FILE"),
    help="A file whose rows take the place of a spout. A spout without a file runs as it is, until it is exhausted.",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master URL.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Write the output streams there.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="json",
    show_default=True,
    help="The format of the output streams.",
)
@click.option("--overwrite", is_flag=True, help="Replace what an earlier run wrote in DIR.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COMPONENT[/STREAM]",
    help="A stream whose tuples are part of the result. Without this option: each stream that nobody subscribes to.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="SPOUT=N",
    callback=_pairs("SPOUT=N"),
    help="The number of tuples after which a spout that has no end is stopped.",
)
@click.option(
    "--max-replays",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="The number of further rounds for failed tuples.",
)
@click.option("--stream", is_flag=True, help="Run as a streaming query: a source is a folder to which files are added.")
@click.option("--checkpoint", metavar="DIR", help="With --stream: the folder where Spark records what has been read.")
@click.option(
    "--state",
    metavar="PLACE",
    help="The place from which stateful bolts load their states, and where they save them: an SQLite file or redis://HOST:PORT/DATABASE.",
)
@click.option("--once", is_flag=True, help="With --stream: read what is there, and end.")
@conf_option("A conf entry.")
@PROJECT_ENVIRONMENT
@click.option(
    "--spark-conf", multiple=True, metavar="KEY=VALUE", callback=_pairs("KEY=VALUE"), help="A property of Spark's."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")
@REPLAY
@STAND_IN
@PAGE
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
        raise fault(str(error)) from error


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
    replay: Path | None,
    stand_ins: dict[str, str],
    page: int | None,
    as_json: bool,
    quiet: bool,
    stream: bool,
    checkpoint: str | None,
    state: str | None,
    once: bool,
) -> int:
    loaded = load_stand_ins(load(topology), stand_ins)
    if replay is not None:
        loaded = _on_recording(loaded, replay, sources)
    _check_kind(stream, checkpoint, limits, once)
    bounds = {name: _number(name, text) for name, text in limits.items()}
    for name, file in sources.items():
        check_source(loaded, name, file, stream)
    if output is not None:
        # A query that continues adds to its folder. A new query would overwrite the first batches of an earlier one.
        is_continued = checkpoint is not None and ("://" in checkpoint or Path(checkpoint).exists())
        check_output(output, overwrite or is_continued)
    try:
        from spark_bridge.job import run_topology
        from spark_bridge.job.plan import as_declared, outputs_of
        from spark_bridge.job.result import check_sink
        from spark_bridge.job.sources import check_sources
        from spark_bridge.job.watch import SPARK_ERRORS, readable
    except ModuleNotFoundError as error:
        raise fault(
            f"this needs the package {error.name}; install the extra: pip install 'storm-multilang[cli,spark]'",
            exits.UNAVAILABLE,
        ) from error
    check_sources(as_declared(loaded), sources)  # before Spark starts, which takes seconds
    outputs = [(name, stream) if slash else name for name, slash, stream in (each.partition("/") for each in keep)]
    check_folders(output, outputs_of(as_declared(loaded), outputs or None))
    try:
        if stream:
            from spark_bridge.stream import stream_topology

            with _session(master, loaded.name, spark_conf) as spark:
                if output is not None:
                    check_sink(spark, form)
                return _run_stream(
                    lambda report: stream_topology(
                        loaded,
                        {name: streaming(spark, loaded, name, file) for name, file in sources.items()},
                        checkpoint=str(checkpoint),
                        state=state,
                        conf=conf,
                        outputs=outputs or (None if output is not None else []),
                        each_batch=None if output is None else writer(output, form),
                        trigger={"availableNow": True} if once else None,
                        max_replays=max_replays,
                        seed=seed,
                        progress=report,
                    ),
                    loaded.name,
                    page=page,
                    as_json=as_json,
                    quiet=quiet,
                )
        with _session(master, loaded.name, spark_conf) as spark:
            if output is not None:
                check_sink(spark, form)  # before the topology runs, which may take hours
            with (
                SparkLine(loaded.name, quiet) as shown,
                shown_on_page(page, lambda: shown.last, shown.message),
                run_topology(
                    loaded,
                    {name: source_of(spark, file) for name, file in sources.items()},
                    spark,
                    conf=conf,
                    outputs=outputs or None,
                    max_replays=max_replays,
                    limits=bounds,
                    seed=seed,
                    progress=shown.update,
                    state=state,
                ) as result,
            ):
                if output is not None:
                    shown.update_text(f"writing {output}")
                    write(result, output, form)
                shown.end()
                return show_result(result, as_json)
    except TaskStartError as error:
        raise fault(str(error), exits.NEVER_STARTED) from error
    except SparkJobError as error:
        raise fault(str(error), exits.BROKE_OFF) from error
    except SPARK_ERRORS as error:  # such as a file that Spark can't read
        raise fault(broken_source(sources) or str(readable(error)), exits.BROKE_OFF) from error


@contextmanager
def _session(master: str, name: str, conf: dict[str, Any]) -> Iterator[SparkSession]:
    """Open Spark's session; if there can't be one, the command's error has a status of its own."""
    from spark_bridge.session import session

    with ExitStack() as stack:
        try:
            spark = stack.enter_context(session(master, name, conf))
        except SparkJobError as error:
            raise fault(str(error), exits.UNAVAILABLE) from error
        yield spark


def _check_kind(stream: bool, checkpoint: str | None, limits: dict[str, str], once: bool) -> None:
    """Raise ClickException for options of the other kind of run."""
    if stream and checkpoint is None:
        raise fault(
            "--stream needs a folder in which Spark records what has been read, so that nothing counts twice; add --checkpoint DIR"
        )
    if stream and limits:
        raise fault("--limit: a streaming query has no end, and needs no bound")
    if not stream and (checkpoint or once):
        raise fault("--checkpoint and --once are for --stream")


def _on_recording(topology: Topology, file: Path, sources: dict[str, str]) -> Topology:
    if sources:
        raise fault("--replay is the source of all spouts; leave out --source")
    return load_replayed(topology, file)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise fault(f"--limit {name}={text}: {text!r} is not a number of tuples")
    return int(text)


def _run_stream(
    start: Callable[[Callable[[BatchProgress], None]], TopologyQuery],
    name: str,
    *,
    page: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run the query that ``start`` starts until it ends or a SIGINT or SIGTERM comes, and print each batch's
    progress.
    """
    shown = console(sys.stderr)
    batches = 0

    def show(text: str) -> None:
        shown.print(text, highlight=False, markup=False, soft_wrap=True)

    def report(progress: BatchProgress) -> None:
        nonlocal batches
        batches += 1
        if as_json:
            print(dumps(asdict(progress)), flush=True)
        if not quiet:
            show(f"{name} (spark) {progress}")

    asked: list[int] = []
    former = {which: signal.signal(which, lambda sent, _: asked.append(sent)) for which in _SIGNALS}
    try:
        query = start(report)
        try:
            with shown_on_page(page, query.status, show):
                while not asked:
                    try:
                        query.wait(timeout=0.2)
                        break
                    except TimeoutError:
                        pass
        finally:
            query.stop()
    finally:
        for which, handler in former.items():
            signal.signal(which, handler)
    for each in query.failed[-10:]:
        show(f"failed at every attempt: {each}")
    status = query.status()
    acked, lost = status.total("acked"), status.total("lost", None)
    if not as_json:
        print(f"{name}: {number(acked)} rows acked in {batches} batches, {number(lost)} lost")
    if asked:
        return exits.INTERRUPTED if asked[0] == signal.SIGINT else exits.TERMINATED
    return exits.FAILED_TUPLES if lost else exits.OK
