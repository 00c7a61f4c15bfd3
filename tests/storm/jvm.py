"""Archives of the classes of Storm's workers and daemons: their JVMs, of which tests start dozens, take a fifth less of a core's
time, those of daemons two fifths.

The archives are made once for Storm's jars, beside which they are, and a Java, from the classes that one worker and one cluster load.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from multilang.shipping.cluster.artifacts import STORM_VERSION, cache_folder, java, storm_jars
from tests.patience import patient
from tests.spark.jvm import QUICK, archive_of, young

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = patient(300.0)  # seconds for an archive, on a busy machine


DAEMONS = ("zookeeper", "nimbus", "supervisor", "drpc")


def archive(name: str) -> Path:
    """Return the file of the archive of ``workers`` or ``daemons`` for this Java, which may not exist yet."""
    return archive_of(f"storm-{STORM_VERSION}-{name}", cache_folder())


def conf(lists: Path | None = None) -> dict[str, str]:
    """Return entries of storm.yaml; without the archives workers and daemons read their classes from the jars.

    Args:
        lists: A folder where daemons list the classes that they load, if there is no archive of them.
    """
    options = f"{QUICK} {young(16)} -XX:-UsePerfData -XX:SharedArchiveFile={archive('workers')} -Xlog:disable"
    return {
        "worker.childopts": f"-Xmx%HEAP-MEM%m {options}",
        "topology.worker.logwriter.childopts": f"-Xmx32m {options} {young(4)}",
        **{f"{name}.childopts": daemon(name, lists) for name in DAEMONS},
    }


def daemon(name: str, lists: Path | None = None) -> str:
    """Return a daemon's entry of storm.yaml alone."""
    if lists is None or archive("daemons").exists():
        return f"{young(8)} -XX:SharedArchiveFile={archive('daemons')} -Xlog:disable".strip()
    return f"{young(8)} -XX:DumpLoadedClassList={lists / name}".strip()


def make_archives(lists: Path, run: Callable[[dict[str, str]], None]) -> None:
    """Make the archives, unless they are there or another process makes them.

    Args:
        lists: The folder where the daemons that are up list their classes.
        run: Runs a topology on one worker with a conf, until tuples have been processed.
    """
    with making("workers") as folder:
        if folder is not None:
            own, writer = (f"{QUICK} -XX:DumpLoadedClassList={folder / name}" for name in ("worker", "writer"))
            run({"topology.worker.childopts": own, "topology.worker.logwriter.childopts": f"-Xmx32m {writer}"})
            dump("workers", "lib-worker", [folder / "worker", folder / "writer"], folder)
    with making("daemons") as folder:
        if folder is not None:
            dump("daemons", "lib", sorted(lists.iterdir()), folder)


@contextmanager
def making(name: str) -> Iterator[Path | None]:
    """Yield a folder where an archive is to be made, or None if it is there, or another process makes it, or nobody can."""
    path = archive(name)
    if path.exists() or not os.access(path.parent, os.W_OK):
        yield None
        return
    with open(f"{path}.lock", "w") as lock, tempfile.TemporaryDirectory(dir=path.parent) as folder:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # the other one has it
            yield None
            return
        yield None if path.exists() else Path(folder)


def dump(name: str, jars: str, lists: list[Path], folder: Path) -> None:
    """Write an archive of the classes in some lists, and put it in its place."""
    lines = "".join(each.read_text() for each in lists).splitlines(keepends=True)
    whole, made = folder / "whole", folder / "made.jsa"
    whole.write_text(
        "".join(dict.fromkeys(each for each in lines if each.endswith("\n")))
    )  # a last line may be half a line
    subprocess.run(
        [
            *(java() or "java", *QUICK.split(), "-Xmx512m", "-Xshare:dump", "-Xlog:disable"),
            *(f"-XX:SharedClassListFile={whole}", f"-XX:SharedArchiveFile={made}"),
            *("-cp", f"{storm_jars()}/{jars}/*"),  # not a cluster's link to it, which goes with the cluster
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    made.rename(archive(name))
