"""``multilang spark --stream``: the topology as a streaming query on folders to which files are added."""

from __future__ import annotations

import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.cli import exits
from multilang.cli.spark import reader_of, write_stream
from multilang.cli.view import console
from multilang.protocol.codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from multilang.topology import Topology
    from spark_bridge.job import JobResult
    from spark_bridge.stream import BatchProgress, TopologyQuery


def run_stream(
    start: Callable[[Callable[[BatchProgress], None]], TopologyQuery], name: str, *, as_json: bool, quiet: bool
) -> int:
    """Run the query that ``start`` starts until it ends or a SIGINT or SIGTERM comes, and print each batch's
    progress.
    """
    shown = console(sys.stderr)
    totals = {"batches": 0, "acked": 0, "lost": 0}

    def tell(progress: BatchProgress) -> None:
        totals["batches"] += 1
        totals["acked"] += progress.acked
        totals["lost"] += progress.lost
        if as_json:
            print(dumps(asdict(progress)), flush=True)
        if not quiet:
            shown.print(f"{name} (spark) {progress}", highlight=False, soft_wrap=True)

    asked: list[int] = []
    former = {number: signal.signal(number, lambda sent, _: asked.append(sent)) for number in _SIGNALS}
    try:
        query = start(tell)
        try:
            while not asked and not query.wait(timeout=0.2):
                pass
        finally:
            query.stop()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    for each in query.failed[-10:]:
        shown.print(f"failed at every attempt: {each}", highlight=False, soft_wrap=True)
    if not as_json:
        print(f"{name}: {totals['acked']:,} rows acked in {totals['batches']} batches, {totals['lost']:,} lost")
    if asked:
        return exits.INTERRUPTED if asked[0] == signal.SIGINT else exits.TERMINATED
    return exits.FAILED_TUPLES if totals["lost"] else exits.OK


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def writer(output: Path, form: str) -> Callable[[JobResult, int], None]:
    """Return a function that writes a batch's output streams to folders of the batch, which a repeated batch
    replaces.
    """

    def write(result: JobResult, batch: int) -> None:
        for component, stream in result.outputs:
            folder = output / (component if stream == "default" else f"{component}-{stream}") / f"batch={batch:06}"
            if folder.exists():
                shutil.rmtree(folder)
            write_stream(result, component, stream, f"file://{folder.resolve()}", form)

    return write


def streaming(spark: SparkSession, topology: Topology, name: str, place: str) -> DataFrame:
    """Return a streaming DataFrame of a folder's text files, a tuple a line, or of a pattern such as ``orders/*.json``.

    The columns are those of the files that exist at the start.
    """
    reader = reader_of(place)
    if reader is None:
        from spark_bridge.job.declared import as_declared
        from spark_bridge.job.sources import fields_of_rows

        spec = as_declared(topology).components.get(name)
        field = fields_of_rows(spec, next(iter(spec.streams)))[0] if spec is not None and spec.streams else "value"
        return spark.readStream.text(place).withColumnRenamed("value", field)
    header = {"header": "true"} if reader == "csv" else {}
    inferred = {**header, "inferSchema": "true"} if reader == "csv" else {}
    schema = spark.read.format(reader).options(**inferred).load(place).schema
    return spark.readStream.format(reader).options(**header).schema(schema).load(place)
