"""The split bolt under Storm's own ShellBolt: all children in one JVM, one after the other, round by round."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import environment, real_storm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .driver import Child

PROGRAM = environment.HERE / "cluster" / "SplitUnderShellBolt.java"
SENTENCES = 1000  # number of different sentences, of ten words each


def sentences_per_second(
    children: Sequence[Child], rounds: int, warm_up: float, seconds: float
) -> Iterator[tuple[str, float]]:
    """Yield a child's name and its acked sentences per second, for each child and round. Raises environment.Missing."""
    if shutil.which("java") is None:
        raise environment.Missing("a real Storm: there is no java here")
    lib, _ = environment.storm_jars()
    classes = environment.java_classes(PROGRAM, lib)
    with tempfile.TemporaryDirectory(prefix="multilang-bench-shellbolt-") as name:
        folder = Path(name)
        lines = ["\t".join([child.name, child.python_path, *child.argv("split")]) for child in children]
        (folder / "children").write_text("".join(f"{line}\n" for line in lines))
        (folder / "sentences").write_text("".join(f"{_sentence(n)}\n" for n in range(SENTENCES)))
        command = [
            "java", *real_storm.JVM, f"-Djava.io.tmpdir={folder}", "-Dstorm.conf.file=",
            f"-Dlog4j.configurationFile={real_storm.CLUSTER / 'log4j2.xml'}", "-cp", f"{classes}:{lib}/*", PROGRAM.stem,
            str(rounds), str(warm_up), str(seconds), "children", "sentences",
        ]  # fmt: skip
        with open(folder / "log", "wb") as log:
            jvm = subprocess.Popen(
                command, cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                text=True, start_new_session=True,
            )  # fmt: skip
        try:
            assert jvm.stdout is not None
            for line in jvm.stdout:
                child, rate = line.split("\t")
                yield child, float(rate)
            if jvm.wait():
                raise environment.Missing(f"a real Storm: {(folder / 'log').read_text(errors='replace')[-1500:]}")
        finally:
            if jvm.poll() is None:
                os.killpg(jvm.pid, signal.SIGKILL)
            jvm.wait()


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE"))}


def _sentence(n: int) -> str:
    sys.path.insert(0, str(real_storm.CLUSTER))  # the components of other benchmarks import it from there, too
    try:
        from sentences import sentence
    finally:
        sys.path.pop(0)
    return str(sentence(n))
