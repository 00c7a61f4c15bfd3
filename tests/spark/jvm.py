"""Spark's processes of tests: JVMs compile quickly, and take their classes from an archive when there is one.

A driver starts in half the time that way. The archive is made once for a virtual environment and a Java, by
``python -m tests.spark.jvm``, beside the first tests with Spark. Python workers find pyspark in a folder, and not in an
archive, where it would be compiled anew for each of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.cluster.artifacts import java
from tests.patience import PACE, SLOW, patient

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# Most of a test's JVM is its start: code that is compiled well costs more there than it saves.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LIMIT = patient(300.0)  # seconds for an archive, on a busy machine
# Spark's own limits, in seconds, by the speed of this machine.
LIMITS = {
    "spark.network.timeout": patient(120),
    "spark.executor.heartbeatInterval": patient(10),
    "spark.python.authenticate.socketTimeout": patient(15),  # between a JVM and its Pythons
}


def young(mb: int) -> str:
    """Return options with which a JVM on a slow machine uses the same memory for its new objects again, and not fresh one until a third
    of its heap is full: more than a quarter of all pages that a daemon touches as it starts are these.
    """
    return f"-Xmn{mb}m" if PACE >= SLOW else ""


def archive_of(name: str, folder: Path = Path(sys.prefix)) -> Path:
    """Return the file of the archive of this name for this Java, by default of this virtual environment; it may not exist yet."""
    program = Path(java() or "java").resolve()
    changed = program.stat().st_mtime_ns if program.exists() else 0
    key = hashlib.sha256(f"{program} {changed}".encode()).hexdigest()[:12]
    return folder / f"{name}-{key}.jsa"


def archive() -> Path:
    """Return the file of the archive for this Spark and this Java."""
    return archive_of("spark")


def home(folder: Path) -> Path:
    """Make a SPARK_HOME in a folder: that of the installed pyspark, whose own Python packages are folders and no zip files.

    Python keeps nothing of what it compiles from a zip file: a worker would take half a second of a core's time to start.
    """
    (spec,) = find_spec("pyspark").submodule_search_locations  # type: ignore[union-attr,misc]
    installed = Path(spec)
    for each in installed.iterdir():
        if each.name in ("bin", "jars", "sbin"):
            (folder / each.name).symlink_to(each)
    for packages in (installed / "python" / "lib").glob("*.zip"):
        name = packages.name.partition("-")[0].removesuffix(".zip")
        at = folder / "python" / "lib" / packages.name
        at.mkdir(parents=True)
        (at / name).symlink_to(installed.parent / name)
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{key} {secs}s\n" for key, secs in LIMITS.items() if PACE > 1)
    )
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return what makes Spark start its processes so; without the archive JVMs read their classes from the jars.

    Args:
        folder: An empty folder, which it needs.
    """
    return {
        "SPARK_HOME": str(home(folder)),
        "SPARK_LAUNCHER_OPTS": QUICK,
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_SUBMIT_OPTS": f"{QUICK} {young(24)} -XX:SharedArchiveFile={archive()} -Xlog:disable",
    }


@contextmanager
def archived() -> Iterator[None]:
    """Have the archive made beside what is done meanwhile, unless it is there or another process makes it."""
    path = archive()
    if path.exists() or not os.access(path.parent, os.W_OK):
        yield
        return
    with open(f"{path}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # the other one has it
            yield
            return
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder, path.name)
            options = f"{QUICK} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.jvm", folder, path],
                cwd=ROOT,
                env={**os.environ, "SPARK_SUBMIT_OPTS": options, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                yield
            finally:
                try:
                    process.wait(LIMIT)
                finally:
                    process.kill()
                    process.wait()


def main() -> None:
    """Use a bit of everything that tests use, so that its classes are in the archive, and put that in its place."""
    folder, path = sys.argv[1:]
    from pyspark import SparkContext

    from spark_bridge.session import session

    settings = {"spark.driver.memory": "512m", "spark.local.dir": folder, "spark.sql.warehouse.dir": f"{folder}/tables"}
    lines = Path(folder, "lines")
    lines.mkdir()
    (lines / "one.txt").write_text("a b\nc\n")
    with session("local[2]", "archive", settings) as spark:
        pairs = spark.read.text(str(lines)).rdd.map(lambda row: (len(row[0]), 1))
        assert pairs.reduceByKey(lambda a, b: a + b).count() == 2
        query = (
            spark.readStream.text(str(lines))
            .writeStream.foreachBatch(lambda batch, _: batch.rdd.count())
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # it writes the archive as it ends
    made = Path(folder, Path(path).name)
    made.rename(path)


if __name__ == "__main__":
    main()
