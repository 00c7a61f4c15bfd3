"""A spout as a source of Spark: ``spark.readStream.format("storm_spout")``.

Spark runs the spout in a process on the driver's machine. Tuples are written to a log before they are acked, and
offsets are places in the log. So a batch has the same rows whenever Spark reads it, whatever the spout would emit a
second time.

Its values become columns of its schema's types; a text column takes any value as JSON. A binary column has any
value as JSON, texts included, so that ``values_of`` can restore the value.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from math import inf
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from multilang.engine.plan import storm_id
from multilang.engine.settings import DEFAULTS, Settings
from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps, loads
from multilang.settings import PARENT
from multilang.state.replayable import ReplayableSpout
from multilang.topology.errors import TopologyError
from spark_bridge.job.columns import Rows
from spark_bridge.job.spouts import SpoutFeed
from spark_bridge.stream.spout_log import SpoutLog
from spark_bridge.stream.spout_options import SpoutOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from spark_bridge.job.spouts import Emitted, SpoutTask
    from spark_bridge.stream.spout_log import Offset


try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2 has no read limits, and reads all that is available in one batch
    ReadAllAvailable = ReadMaxRows = None  # type: ignore[assignment,misc]
    SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]
_ROWS_OF_A_PARTITION = 2500
_IDLE_SECS = 0.02
_TURN_SECS = 1.0
_ORPHAN_SECS = 0.5
_MAX_SHOWN = 200  # characters of a value in a message


def register_spouts(spark: SparkSession) -> None:
    """Register the format ``storm_spout`` in a session.

    Args:
        spark: The session.
    """
    spark.dataSource.register(StormSpoutSource)


class StormSpoutSource(DataSource):
    """The format ``storm_spout``; see SpoutOptions for its options.

    Its columns are the stream's fields, of type string unless ``.schema(...)`` has others.
    """

    @classmethod
    def name(cls) -> str:
        return "storm_spout"

    def schema(self) -> str:
        fields = SpoutOptions(self.options).fields
        return ", ".join(f"`{field.replace('`', '``')}` string" for field in fields)

    def streamReader(self, schema: StructType) -> SpoutReader:  # noqa: N802  # Spark's name
        return SpoutReader(dict(self.options), schema)

    def reader(self, schema: StructType) -> Any:
        raise TopologyError(
            "storm_spout is for streams, where a crash loses nothing: spark.readStream.format('storm_spout'), with "
            ".trigger(availableNow=True) for a spout that is exhausted some time; or run_topology, which runs such a spout itself"
        )


class SpoutPartition(InputPartition):
    """Some rows of a batch, on their way to an executor."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        super().__init__(None)
        self.rows = rows


class SpoutReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of the format.

    It is used where the query is planned, where the spout runs, and, to read, on executors.
    """

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._until_exhausted = False
        self._running: RunningSpout | None = None
        declared = SpoutOptions(options)
        _rows_of(declared, schema)
        self._batch_size = declared.batch_size

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._spout.log.begin

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadMaxRows(self._batch_size)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until_exhausted = True

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
        log = self._spout.log
        whole = limit is not None and isinstance(limit, ReadAllAvailable)  # for trigger(once=True)
        most, secs = (sys.maxsize, inf) if whole else (self._batch_size, _TURN_SECS)
        waiting = 0 if start is None else log.next - log.number(start)  # logged, but in no batch yet
        if waiting < most:
            to_the_end = self._until_exhausted
            self._spout.run(most - waiting, secs, to_the_end=to_the_end, wait=to_the_end and not waiting)
        return log.end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        rows = [*map(self._spout.row_of, self._spout.log.rows(start, end))]
        return [
            SpoutPartition(rows[place : place + _ROWS_OF_A_PARTITION])
            for place in range(0, len(rows), _ROWS_OF_A_PARTITION)
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, SpoutPartition)
        return iter(partition.rows)

    def commit(self, end: Offset) -> None:
        self._spout.log.forget(end)

    def stop(self) -> None:
        if self._running is not None:
            self._running.close()

    @property
    def _spout(self) -> RunningSpout:
        if self._running is None:
            declared = SpoutOptions(self._options)
            self._running = RunningSpout(declared, self._schema)
        return self._running


class RunningSpout:
    """A spout's tasks, and the log of their tuples. The tasks start when they are first asked for tuples."""

    def __init__(self, declared: SpoutOptions, schema: StructType) -> None:
        self._declared = declared
        self.row_of = _rows_of(declared, schema)
        self.log = SpoutLog(declared.log)
        try:
            self.log.belongs_to(declared.described())
        except BaseException:
            self.log.close()
            raise
        self._feed: SpoutFeed | None = None
        threading.Thread(target=_end_with, args=(os.getppid(),), name="driver", daemon=True).start()

    def run(self, most: int, secs: float, to_the_end: bool, wait: bool) -> None:
        """Log and ack what the spout emits now, about ``most`` tuples at most, for no longer than ``secs`` seconds.

        ``to_the_end``: ask it until it is exhausted, and not afterwards; ``wait``: until there is a row.
        """
        if self._feed is None:
            self._feed = self._started()
        while not self._take(self._feed, most, secs, to_the_end) and wait and not self._feed.exhausted:
            time.sleep(_IDLE_SECS)

    def close(self) -> None:
        """Close the tasks and the log."""
        if self._feed is not None:
            self._feed.close()
        self.log.close()

    def _started(self) -> SpoutFeed:
        topology = self._declared.topology
        positions, tasks = self.log.positions(), topology.components[self._declared.id].tasks
        if positions and len(positions) != tasks:
            raise TopologyError(
                f"{self.log.name} has the positions of {len(positions)} tasks, and spout {self._declared.id!r} has "
                f"{tasks} now, which would divide what there is in another way: give it as many as before, or begin a new log "
                "and a new checkpoint"
            )
        conf = {**DEFAULTS, PARENT: "spark", **topology.conf}
        conf.update({"topology.name": topology.name, "storm.id": storm_id(topology.name)})
        return SpoutFeed(
            topology,
            topology.components[self._declared.id],
            conf,
            topology.task_ids(Settings(conf).ackers),
            limit=sys.maxsize,
            batch=0,
            report=self._report,
            positions=positions,
        )

    def _take(self, feed: SpoutFeed, most: int, secs: float, to_the_end: bool) -> int:
        """Log what the spout emits now, and return the number of rows; tuples on other streams give no row."""
        emitted = self._emitted(feed, most, secs, to_the_end)
        if not emitted:
            return 0
        stream = self._declared.stream
        rows = [values for _, (_, values, name, *_) in emitted if (name or "default") == stream]
        for values in rows:
            self.row_of(values)  # a tuple that Spark could not take must not be acked
        positions = self._positions(feed)
        self.log.append(rows, positions)
        for index, position in positions.items():
            feed.tasks[index].position = position  # type: ignore[union-attr]  # from which it resumes if it dies
        feed.settle(emitted, set())  # nothing can be lost any more
        return len(rows)

    def _emitted(self, feed: SpoutFeed, most: int, secs: float, to_the_end: bool) -> list[tuple[SpoutTask, Emitted]]:
        found: list[tuple[SpoutTask, Emitted]] = []
        share = max(1, most // len(feed.tasks))
        for task in feed.tasks:
            enough = time.monotonic() + secs / len(feed.tasks)
            while len(task.emitted) < share and not (to_the_end and task.exhausted) and task.ask():
                if time.monotonic() > enough:  # tuples of a slow spout do not wait until there are many
                    break
            found += [(task, each) for each in task.take()]
        return found

    def _positions(self, feed: SpoutFeed) -> dict[int, Any]:
        if not isinstance(self._declared.topology.components[self._declared.id].component, ReplayableSpout):
            return {}
        found = {index: task.component.position() for index, task in enumerate(feed.tasks)}  # type: ignore[union-attr]
        if None in found.values():
            raise SparkJobError(
                f"position() of spout {self._declared.id!r} returned None; return the position of the next tuple"
            )
        return found

    def _report(self, task: int, message: str) -> None:
        logging.getLogger(self._declared.id).error("task %s: %s", task, message)


def _end_with(parent: int) -> None:
    """End this process when its driver has died, whatever its spout waits for.

    Then the next query can claim the log.
    """
    while os.getppid() == parent:
        time.sleep(_ORPHAN_SECS)
    os._exit(1)


def _rows_of(declared: SpoutOptions, schema: StructType) -> Rows:
    """Return the conversion of the spout's tuples to rows of a schema, which has the stream's fields in their order."""
    if schema.names != declared.fields:
        raise TopologyError(
            f"spout {declared.id!r} emits the fields {', '.join(declared.fields)}, and the schema has {', '.join(schema.names)}"
        )
    advice = "its tuples are not lost. Give another schema: string takes anything"
    return Rows(f"spout {declared.id!r}", declared.fields, schema, advice, binary=_json)


def values_of(row: Sequence[bytes | None]) -> list[Any]:
    """Return what the spout emitted, from a row whose columns are all binary."""
    return [None if value is None else loads(value.decode()) for value in row]


def _json(value: Any) -> bytes:
    return dumps(value).encode()
