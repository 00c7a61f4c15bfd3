"""A Spark session for programs that have none yet. A local master listens on the loopback interface only."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from multilang.component.errors import ConfigError
from multilang.errors import SparkJobError
from multilang.helpers.masked import is_reference, is_secret
from multilang.helpers.secret import Secret
from multilang.protocol.codec import loads

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
# The masters that pyspark accepts. The address behind :// is not checked here, because only the cluster can judge it.
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*(,\s*\d+\s*){2}\]|yarn|(spark|k8s)://.+"
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_MAX_SOCKET_FOLDER = 60  # a socket's whole path has at most 108 bytes, of which Spark's names take up to 45


@contextmanager
def session(
    master: str = "local[*]", name: str = "multilang", conf: Mapping[str, Any] | None = None
) -> Iterator[SparkSession]:
    """Open a Spark session, warm it up, and stop it at the end.

    The executors run the same Python as this process. The session has no UI and writes no log of Spark's own: what a
    task raises is in the exception.

    Args:
        master: The cluster, as Spark names it: ``local[2]``, ``spark://HOST:PORT``, ``yarn``, ...
        name: The application's name.
        conf: Further properties of Spark; one that is secret may name its place: ``{"file": PATH}`` or ``{"env": NAME}``, as
            JSON, too.

    Raises:
        ConfigError: A secret can't be read.
        SparkJobError: Java is missing, or Spark can't be started on ``master``.
        ConfigError: ``master`` is not one that Spark knows.
    """
    program = _java()
    if not _MASTER.fullmatch(master):
        raise ConfigError(
            f"{master!r} is no master of Spark's: use local[2] (two cores of this machine), local[*] (all of them), "
            "spark://HOST:PORT, yarn or k8s://https://HOST:PORT"
        )
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = _folder()
    log4j = Path(folder, "log4j2.properties")
    log4j.write_text(_LOG4J, encoding="utf-8")
    settings = {
        # Rows that Spark caches or shuffles are in files that every account may read, in folders that every account may enter.
        _JAVA_OPTIONS: f'-Dlog4j2.configurationFile={log4j.as_uri()} "-Djava.io.tmpdir={folder}"',
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if not master.startswith("local-cluster"):
            # The driver's ports read Java's objects: they first ask for a secret, which Spark makes for itself here.
            settings["spark.authenticate"] = "true"
        if len(folder) <= _MAX_SOCKET_FOLDER:
            # Spark's TCP connections to its Python workers wait 40 ms in each stage, for a delayed ACK
            settings |= {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": folder,
            }
    given = dict(conf or {})
    if given.get(_JAVA_OPTIONS):
        given[_JAVA_OPTIONS] = f"{settings[_JAVA_OPTIONS]} {given[_JAVA_OPTIONS]}"
    open_ones, secrets = _revealed({"spark.master": master, "spark.app.name": name, **settings, **given})
    builder = SparkSession.builder
    for key, value in (*open_ones.items(), *secrets.items()):
        builder = builder.config(key, value)
    try:
        if secrets:
            _start_jvm(open_ones)
        made = builder.getOrCreate()
    except Exception as error:
        lines = [
            line.removeprefix(": ") for line in str(error).splitlines() if not line.startswith("An error occurred")
        ]
        reason = next((line.strip() for line in lines if line.strip()), repr(error))
        if "gateway" in reason:  # Java wrote the reason to standard error, or nothing
            reason = f"{program} can't run it: Java 17 or newer is needed, and that is {_version(program)}"
        if "stopped SparkContext" in reason:  # how Spark's driver ends when it has waited for a master in vain
            reason = "no such cluster answers there, or it refused"
        raise SparkJobError(f"Spark can't be started on {master!r}: {reason}") from error
    try:
        warm_up(made)
        yield made
    finally:
        made.stop()


def _java() -> str:
    """Return the program ``java`` that Spark's scripts start. Raises SparkJobError if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None:
        raise SparkJobError("Spark needs Java, 17 or newer: install it, or set JAVA_HOME to its folder")
    if not os.access(program, os.X_OK):
        raise SparkJobError(
            f"JAVA_HOME is {home!r}, and there is no program {program}: set it to the folder of a Java, 17 or newer, or "
            "leave it unset for the first java on the path"
        )
    return program


def _version(program: str) -> str:
    shown = subprocess.run([program, "-version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return repr((shown.stderr or shown.stdout).partition("\n")[0])


def _start_jvm(settings: Mapping[str, Any]) -> None:
    """Start Spark's JVM, if there is none, with these settings alone on its command line, which every account sees."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf().setAll([(key, str(value)) for key, value in settings.items()]))


def _revealed(conf: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the properties that everybody may see, and those that are secret; of these, what is in their places."""
    open_ones: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    for key, value in conf.items():
        place = _place(value)
        if place is not None:
            secrets[key] = Secret(place, key).reveal()
        else:
            (secrets if is_secret(key) else open_ones)[key] = value
    return open_ones, secrets


def _place(value: Any) -> Any:
    """Return the place of a secret that a property names, as an object or its JSON; None if it names none."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = loads(value)
        except ValueError:
            return None
    return value if isinstance(value, Secret) or is_reference(value) else None


@cache
def _folder() -> str:
    """Return the folder for the files of sessions.
    It is removed when this process ends, not with a session: Spark's JVM outlives a session and keeps its settings.
    """
    folder = TemporaryDirectory(prefix="multilang-spark-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return folder.name


def warm_up(spark: SparkSession) -> None:
    """Have every executor start its Python processes, one for each core, and import what sources and topologies need.

    Otherwise the first job of the session does that, and takes a second or two longer.
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
