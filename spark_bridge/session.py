"""A Spark session for programs that have none yet: on this machine alone it listens on loopback alone."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_LOG4J = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
# What pyspark can be the driver of, as Spark reads it; what is behind :// is judged by whoever is asked there.
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*(,\s*\d+\s*){2}\]|yarn|(spark|k8s)://.+"
)
_MAX_SOCKET_FOLDER = 60  # a socket's whole path has at most 108 bytes, of which Spark's names take up to 45


class SessionError(RuntimeError):
    """Spark can't be started; the text says why, and what to install."""


class MasterError(ValueError):
    """What was given as Spark's master is none."""


@contextmanager
def session(
    master: str = "local[*]", name: str = "multilang", conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session, warmed up, and stopped at the end. Its executors run this very Python; ``conf`` has Spark's properties.

    Without a UI, and without Spark's own log: what a task raises is in the exception. Raises SessionError, and
    MasterError for a ``master`` that Spark does not know.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SessionError("Spark needs Java, 17 or newer: install it, or say where it is in JAVA_HOME")
    if not _MASTER.fullmatch(master):
        raise MasterError(
            f"{master!r} is no master of Spark's: use local[2] (two cores of this machine), local[*] (all of them), "
            "spark://HOST:PORT, yarn or k8s://https://HOST:PORT"
        )
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = _folder()
    log4j = Path(folder, "log4j2.properties")
    log4j.write_text(_LOG4J, encoding="utf-8")
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if len(folder) <= _MAX_SOCKET_FOLDER:
            # Spark's TCP connections to its Python workers wait 40 ms in each stage, for a delayed ACK
            settings |= {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": folder,
            }
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    try:
        made = builder.getOrCreate()
    except Exception as error:
        lines = [
            line.removeprefix(": ") for line in str(error).splitlines() if not line.startswith("An error occurred")
        ]
        said = next((line.strip() for line in lines if line.strip()), repr(error))
        if "stopped SparkContext" in said:  # how Spark's driver ends when it has waited for a master in vain
            said = "no such cluster answers there, or it refused"
        raise SessionError(f"Spark can't be started on {master!r}: {said}") from error
    try:
        warm_up(made)
        yield made
    finally:
        made.stop()


@cache
def _folder() -> str:
    """What sessions have on the disk, until this process ends: as long as Spark's JVM, which outlives a session, and keeps its settings."""
    folder = TemporaryDirectory(prefix="multilang-spark-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return folder.name


def warm_up(spark: SparkSession) -> None:
    """Have the executors start their Python, a process for each core, with all that sources and topologies need.

    The first job of a session does so else, and takes a second or two for it.
    """
    from spark_bridge.sources.live import RDDSource

    sc = spark.sparkContext
    cores = sc.defaultParallelism
    source = RDDSource(sc.range(cores, numSlices=cores), block_rows=1)
    try:
        for core in range(cores):
            source.soon(core, 0)
        for core in range(cores):
            source.read(core, 0, 1)
    finally:
        source.close()
