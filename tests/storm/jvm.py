"""An archive of the classes of Storm's workers: their JVMs, of which tests start dozens, take a fifth less of a core's time.

The archive is made once for a virtual environment and a Java, from the classes that one worker loads.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.cluster.artifacts import java, storm_jars
from tests.spark.jvm import QUICK, archive_of

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 300.0  # seconds for an archive, on a busy machine


def archive() -> Path:
    """Return the file of the archive for this Java, which may not exist yet."""
    return archive_of("storm")


def conf() -> dict[str, str]:
    """Return entries of storm.yaml; without the archive workers read their classes from the jars."""
    options = f"{QUICK} -XX:-UsePerfData -XX:SharedArchiveFile={archive()} -Xlog:disable"
    return {
        "worker.childopts": f"-Xmx%HEAP-MEM%m {options}",
        "topology.worker.logwriter.childopts": f"-Xmx32m {options}",
    }


def make_archive(run: Callable[[dict[str, str]], None]) -> None:
    """Make the archive, unless it is there or another process makes it.

    Args:
        run: Runs a topology on one worker with a conf, until tuples have been processed.
    """
    path = archive()
    if path.exists() or not os.access(path.parent, os.W_OK):
        return
    with open(f"{path}.lock", "w") as lock, tempfile.TemporaryDirectory(dir=path.parent) as folder:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # the other one has it
            return
        lists = [Path(folder, name) for name in ("worker", "writer")]
        own, writer = (f"{QUICK} -XX:DumpLoadedClassList={each}" for each in lists)
        run({"topology.worker.childopts": own, "topology.worker.logwriter.childopts": f"-Xmx32m {writer}"})
        both = Path(folder, "both")
        both.write_text("".join(dict.fromkeys("".join(each.read_text() for each in lists).splitlines(keepends=True))))
        made = Path(folder, path.name)
        subprocess.run(
            [
                *(java() or "java", *QUICK.split(), "-Xmx512m", "-Xshare:dump", "-Xlog:disable"),
                *(f"-XX:SharedClassListFile={both}", f"-XX:SharedArchiveFile={made}"),
                *("-cp", f"{storm_jars()}/lib-worker/*"),  # not a cluster's link to it, which goes with the cluster
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=True,
        )
        made.rename(path)
