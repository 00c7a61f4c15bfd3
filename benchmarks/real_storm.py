"""Word count under a real Storm's LocalCluster with the peers' components, on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

from . import environment

CLUSTER = environment.HERE / "cluster"
SCRIPTS = {"storm": "word_count_stormpy.py", "storm, pystorm": "word_count_pystorm.py"}
WARM_UP = 5.0  # seconds after the first progress, in which the JVM compiles its hot paths
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4")


def sentences_per_second(peer: str, seconds: float) -> float:
    """Return the acked sentences per second of a peer's word count, once it is warm. Raises environment.Missing."""
    if shutil.which("java") is None:
        raise environment.Missing("a real Storm: there is no java here")
    script = SCRIPTS[peer]
    lib, flux = environment.storm_jars()
    with tempfile.TemporaryDirectory(prefix="multilang-bench-storm-") as name:
        folder = Path(name)
        progress = folder / "progress"
        progress.touch()
        filled = (CLUSTER / "word_count.yaml").read_text().replace("@PROGRESS@", str(progress))
        filled = filled.replace("@PYTHON@", str(environment.python())).replace("@SCRIPT@", script)
        (folder / "word_count.yaml").write_text(filled)
        jar = folder / "topology.jar"
        _topology_jar(jar, flux, [CLUSTER / script, CLUSTER / "sentences.py", environment.storm_py() / "storm.py"])
        command = [
            "java", *JVM, f"-Djava.io.tmpdir={folder}", f"-Dstorm.jar={jar}", "-Dstorm.local.sleeptime=600", "-Dstorm.conf.file=",
            f"-Dlog4j.configurationFile={CLUSTER / 'log4j2.xml'}", "-cp", f"{jar}:{lib}/*", "org.apache.storm.LocalCluster",
            "org.apache.storm.flux.Flux", "--no-splash", "--no-detail", str(folder / "word_count.yaml"),
        ]  # fmt: skip
        with open(folder / "log", "wb") as log:
            jvm = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            try:
                return _rate(jvm, progress, seconds, folder / "log")
            finally:
                # The group has the JVM and its children. It exists as long as its leader is not waited for.
                os.killpg(jvm.pid, signal.SIGKILL)
                jvm.wait()


def _topology_jar(jar: Path, flux: Path, files: list[Path]) -> None:
    """Write a jar of Flux's classes and our resources/. LocalCluster unpacks only the first jar's resources."""
    with zipfile.ZipFile(jar, "w") as made:
        with zipfile.ZipFile(flux) as source:
            for entry in source.infolist():
                if not entry.is_dir() and not entry.filename.startswith("resources/"):
                    made.writestr(entry.filename, source.read(entry))
        for file in files:
            made.write(file, f"resources/{file.name}")


def _rate(jvm: subprocess.Popen[bytes], progress: Path, seconds: float, log: Path) -> float:
    begin: tuple[float, int] | None = None
    deadline = time.monotonic() + 120 + seconds
    while time.monotonic() < deadline:
        lines = progress.read_text().splitlines()
        if "failed" in lines:
            raise environment.Missing("a real Storm: sentences failed")
        if lines and len(lines[-1].split()) == 2:
            now, acked = float(lines[-1].split()[0]), int(lines[-1].split()[1])
            first = float(lines[0].split()[0])
            if begin is None and now - first >= WARM_UP:
                begin = now, acked
            elif begin and now - begin[0] >= seconds:
                return (acked - begin[1]) / (now - begin[0])
        if os.waitid(os.P_PID, jvm.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.2)
    raise environment.Missing(f"a real Storm: no progress: {log.read_text(errors='replace')[-1500:]}")
