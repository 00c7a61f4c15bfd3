"""The result of a topology that ran as a Spark job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import types

from multilang.errors import SparkJobError
from multilang.protocol.codec import dumps
from multilang.topology.errors import TopologyError, did_you_mean
from spark_bridge.job.blocks import OUTPUT, unpacked
from spark_bridge.job.columns import Rows, declared_schema, in_memory
from spark_bridge.job.watch import SPARK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from multilang.engine.counters import Counters
    from multilang.engine.status import RunStatus
    from multilang.topology.model import Topology
    from spark_bridge.job.rounds import Unchanged

FORMATS = ("json", "parquet", "orc", "csv", "delta", "iceberg")
MODES = ("error", "append", "overwrite", "ignore")
# What a session needs that Spark does not bring: the package for a Spark of this version, and the settings.
_PACKAGES = {
    "delta": (
        "io.delta:delta-spark_{spark}_2.13:VERSION",
        (
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
        ),
    ),
    "iceberg": (
        "org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13:VERSION",
        (
            "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions and a catalog, "
            "spark.sql.catalog.NAME=org.apache.iceberg.spark.SparkCatalog with its type and warehouse; then write to NAME.DB.TABLE"
        ),
    ),
}


def check_sink(spark: SparkSession, form: str, mode: str = "error") -> None:
    """Check that a session can write a format.

    Args:
        spark: The session.
        form: The format's name.
        mode: What to do if there is something already.

    Raises:
        TopologyError: The format or the mode is unknown, or the session lacks the format's package.
    """
    if form not in FORMATS:
        raise TopologyError(
            f"format {form!r} is none of {', '.join(FORMATS)}; for others use Spark's own writer, "
            "result.dataframe(...).write.format(...)"
        )
    if mode not in MODES:
        raise TopologyError(f"mode {mode!r} is none of {', '.join(MODES)}")
    if form not in _PACKAGES:
        return
    try:
        spark.read.format(form).load()  # looks for the package first, and then misses a path
    except SPARK_ERRORS as error:
        if "[DATA_SOURCE_NOT_FOUND]" in str(error):
            package, settings = _PACKAGES[form]
            package = package.format(spark=".".join(spark.version.split(".")[:2]))
            raise TopologyError(
                f"this session can't write the format {form!r}: start it with spark.jars.packages={package}, if there is one for "
                f"Spark {spark.version}, and with {settings}"
            ) from None


@dataclass(frozen=True)
class FailedTuple:
    """A spout tuple that failed at every attempt.

    Attributes:
        component: The spout's id.
        id: The message id. Of an RDD's row it is (partition, offset) as it was read: where partitions were put together
            for the tasks of the first bolt, the partition is the one that they form.
        values: The tuple's values.
    """

    component: str
    id: Any
    values: Sequence[Any]

    def __str__(self) -> str:
        return f"{self.component!r} {self.id!r}: {list(self.values)!r}"


@dataclass(frozen=True)
class ReportedError:
    """An error that a component reported, or an exception that it raised.

    Exceptions of one type that were raised at one place count as one error.

    Attributes:
        component: The component's id.
        task: The task that had the error first.
        round: The round in which it was first, from 1.
        message: The text of the first one.
        times: How often it happened, in all rounds and tasks.
    """

    component: str
    task: int
    round: int
    message: str
    times: int = 1

    def __str__(self) -> str:
        times = f", {self.times:,} times" if self.times > 1 else ""
        return f"{self.component!r} (task {self.task}){times}: {self.message}"


class JobResult:
    """The outcome of a job, and its output streams.

    Attributes:
        topology: The topology that ran.
        acked: The number of spout tuples whose whole tree was acked.
        lost: The number of spout tuples that failed at the last attempt.
        failed: These lost tuples, at most a thousand.
        rounds: 1, and one more for each round of replays.
        seconds: The duration of the job.
        counters: Component id -> its counters.
        errors: The errors that were reported last, each with the number of times.
        outputs: The output streams, as (component, stream).
    """

    def __init__(self, topology: Topology, spark: SparkSession, outputs: Sequence[tuple[str, str]]) -> None:
        self.topology = topology
        self.acked = 0
        self.lost = 0
        self.failed: list[FailedTuple] = []
        self.rounds = 0
        self.seconds = 0.0
        self.counters: Mapping[str, Counters] = {}
        self.errors: list[ReportedError] = []
        self.outputs = list(outputs)
        self._status: RunStatus | None = None
        self._spark = spark
        self._parts: list[tuple[RDD[Any], Unchanged]] = []
        self._kinds: dict[tuple[str, str], list[set[str]]] = {}
        self._token: Any = None  # a broadcast that every use of the outputs needs; it is destroyed with them
        self._given_back = False

    def status(self) -> RunStatus:
        """Return the status at the end of the job, with rates and capacities over the whole job."""
        assert self._status is not None  # a result is given only when its job has ended
        return self._status

    def ended(self, seconds: float, status: RunStatus) -> None:
        """Note the end of the job. Called by the job.

        Args:
            seconds: Its duration.
            status: The status at its end.
        """
        self.seconds = seconds
        self._status = status

    def rdd(self, component: str, stream: str = "default") -> RDD[list[Any]]:
        """Return the tuples that were emitted on an output stream.

        Args:
            component: The component's id.
            stream: The stream's name.

        Returns:
            An RDD in which each tuple is a list of values. As on Storm, tuples that replays emitted again are in it,
            too.

        Raises:
            SparkJobError: The stream is no output, or the outputs were given back.
        """
        key = self._key(component, stream)
        if self._token is None:
            self._token = self._spark.sparkContext.broadcast(self.topology.name)
        token = self._token

        def rows(record: Any) -> list[list[Any]]:
            assert token  # Spark refuses a destroyed broadcast; otherwise it would run the whole topology again
            return unpacked(record[-1], record[-2])[0]

        def wanted(record: Any) -> bool:
            return record[0] == OUTPUT and record[6] == key  # type: ignore[no-any-return]

        parts: Any = [part.mapPartitions(unchanged).filter(wanted).flatMap(rows) for part, unchanged in self._parts]
        return parts[0] if len(parts) == 1 else self._spark.sparkContext.union(parts)

    def dataframe(self, component: str, stream: str = "default", schema: StructType | str | None = None) -> DataFrame:
        """Return the tuples that were emitted on an output stream, with the declared fields as columns.

        Args:
            component: The component's id.
            stream: The stream's name.
            schema: The columns' types, also as text, ``"word string, count bigint"``. By default they are those that the
                stream declares. Otherwise they are text, long, double or boolean, as the values are; lists and dicts
                become JSON text.

        Raises:
            SparkJobError: The values of one field have types that no column can have together (give ``schema`` then),
                the stream is no output, or the outputs were given back.
            TopologyError: The schema has a type that no value of a tuple is, or another number of columns.
        """
        key = self._key(component, stream)
        declared = self.topology.components[component].streams[stream]
        fields = declared.fields
        if isinstance(schema, str):
            parsed = types.DataType.fromDDL(schema)
            if not isinstance(parsed, types.StructType):
                raise TopologyError(f"schema={schema!r} names no columns; write {f'{fields[0]} {schema}'!r}")
            schema = parsed
        if schema is None and declared.types is not None:
            schema = declared_schema(fields, declared.types)
        converted = schema is not None
        if schema is None:
            kinds = self._kinds.get(key) or [set() for _ in fields]
            columns = [
                _column(f"field {field!r} of {component!r}", found) for field, found in zip(fields, kinds, strict=True)
            ]
            converted = any(convert for _, convert in columns)
            schema = types.StructType(
                [
                    types.StructField(field, getattr(types, kind)())
                    for field, (kind, _) in zip(fields, columns, strict=True)
                ]
            )
        rows: Any = self.rdd(component, stream).map(Rows(repr(component), fields, schema) if converted else tuple)
        # What was not converted has the types that were seen.
        return self._spark.createDataFrame(rows, in_memory(schema), verifySchema=False)

    def write(
        self,
        component: str,
        place: str,
        *,
        format: str = "parquet",
        mode: str = "error",
        stream: str = "default",
        schema: StructType | str | None = None,
    ) -> None:
        """Write the tuples that were emitted on an output stream. For everything else: ``dataframe(...).write``.

        Args:
            component: The component's id.
            place: The folder, or its URL; for Iceberg a table in a catalog of the session's, ``NAME.DB.TABLE``.
            format: "parquet", "orc", "csv" (with a header), "delta", "iceberg", or "json": a JSON object a line, with
                the values as they were emitted, or as the columns of ``schema`` have them.
            mode: Spark's: "error" if there is something already, "append", "overwrite", "ignore".
            stream: The stream's name.
            schema: The columns' types, as in ``dataframe``.

        Raises:
            SparkJobError: As ``dataframe`` does.
            TopologyError: The format or mode is unknown, or the session lacks the format's package.
        """
        check_sink(self._spark, format, mode)
        if format == "json" and schema is None:
            self._key(component, stream)
            line = _Line(self.topology.components[component].streams[stream].fields)
            lines: Any = self.rdd(component, stream).map(line)
            self._spark.createDataFrame(lines, "value string", verifySchema=False).write.mode(mode).text(place)
            return
        writer = self.dataframe(component, stream, schema).write.format(format).mode(mode)
        (writer.option("header", True) if format == "csv" else writer).save(place)

    def unpersist(self) -> None:
        """Free the disk space of the outputs. Neither they nor what was made of them can be read afterwards."""
        self._given_back = True
        for part, _ in self._parts:
            part.unpersist()
        if self._token is not None:
            self._token.destroy()
            self._token = None

    def add(self, part: RDD[Any], kinds: Mapping[tuple[str, str], Sequence[set[str]]], unchanged: Unchanged) -> None:
        """Add what a round emitted. Called by the job.

        Args:
            part: The records of the round.
            kinds: The kinds of values that each stream's columns have.
            unchanged: Passes the records on if they are still those that the round reported.
        """
        self._parts.append((part, unchanged))
        for key, columns in kinds.items():
            known = self._kinds.setdefault(key, [set() for _ in columns])
            for seen, more in zip(known, columns, strict=True):
                seen |= more

    def _key(self, component: str, stream: str) -> tuple[str, str]:
        if self._given_back:
            raise SparkJobError(
                f"the outputs of {self.topology.name!r} were given back, by unpersist() or at the end of their `with`, and "
                "reading them would run the topology again: read, or save, what you need of them before"
            )
        if (component, stream) not in self.outputs:
            there = ", ".join(f"{name!r} stream {stream!r}" for name, stream in self.outputs) or "none"
            hint = ""
            if component not in self.topology.components:
                hint = f" ({did_you_mean(component, self.topology.components)})"
            raise SparkJobError(
                f"stream {stream!r} of {component!r} is no output{hint}: the outputs are {there}; "
                f"name it, run_topology(..., outputs=[({component!r}, {stream!r})])"
            )
        return component, stream

    def __enter__(self) -> JobResult:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()

    def __repr__(self) -> str:
        return f"<JobResult of {self.topology.name!r}: {self.acked} acked, {self.lost} lost, {self.rounds} rounds>"


class _Line:
    """Makes a JSON object of a tuple, as a row of one column."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields

    def __call__(self, row: Sequence[Any]) -> tuple[str]:
        return (dumps(dict(zip(self._fields, row, strict=True))),)


# What a column is whose values have these types, and whether they have to be converted.
_COLUMNS: dict[frozenset[str], tuple[str, bool]] = {
    frozenset(): ("StringType", False),
    frozenset(("str",)): ("StringType", False),
    frozenset(("int",)): ("LongType", False),
    frozenset(("float",)): ("DoubleType", False),
    frozenset(("int", "float")): ("DoubleType", True),
    frozenset(("bool",)): ("BooleanType", False),
    frozenset(("list",)): ("StringType", True),
    frozenset(("dict",)): ("StringType", True),
    frozenset(("list", "dict")): ("StringType", True),
}


def _column(what: str, kinds: set[str]) -> tuple[str, bool]:
    found = _COLUMNS.get(frozenset(kinds - {"NoneType"}))
    if found is None:
        raise SparkJobError(
            f"{what} has values of types {', '.join(sorted(kinds))}, which no column can have together: "
            "give the schema, result.dataframe(..., schema=StructType([...])), declare the field's type, or use result.rdd(...)"
        )
    return found
