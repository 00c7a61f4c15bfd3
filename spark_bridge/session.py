"""A Spark session for programs that have none yet: on this machine alone it listens on loopback alone."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
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


class SessionError(RuntimeError):
    """Spark can't be started; the text says why, and what to install."""


@contextmanager
def session(
    master: str = "local[*]", name: str = "multilang", conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session, stopped at the end. Its executors run this very Python; ``conf`` has Spark's properties.

    Without a UI, and without Spark's own log: what a task raises is in the exception. Raises SessionError.
    """
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise SessionError("Spark needs Java, 17 or newer: install it, or say where it is in JAVA_HOME")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with TemporaryDirectory(prefix="multilang-spark-") as folder:
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
        builder = SparkSession.builder.master(master).appName(name)
        for key, value in {**settings, **(conf or {})}.items():
            builder = builder.config(key, value)
        try:
            made = builder.getOrCreate()
        except Exception as error:
            said = "\n".join(str(error).strip().splitlines()[:3])
            raise SessionError(f"Spark can't be started on {master!r}: {said}") from error
        try:
            yield made
        finally:
            made.stop()
