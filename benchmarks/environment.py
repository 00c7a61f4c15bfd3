"""Programs that the measurements need, made in a cache: the peers' environment, storm.py, the native programs."""

from __future__ import annotations

import compileall
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = HERE.parent
STORM_VERSION = "2.8.3"
PEERS = ("ujson", "pystorm==3.1.4", "streamparse")
SPARK = ("ujson>=5.12", "pyspark>=4", "pyarrow>=18")
STATE = ("ujson>=5.12", "redis>=5")


class Missing(Exception):
    """Something that a measurement needs is not available here; the text says what."""


def cache_folder() -> Path:
    """Return the folder of downloads and builds: $MULTILANG_BENCH_CACHE, else one in the user's cache folder."""
    root = os.environ.get("MULTILANG_BENCH_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "storm-multilang", "benchmarks"
    )
    Path(root).mkdir(parents=True, exist_ok=True)
    return Path(root)


def run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise Missing(f"{what}: there is no {command[0]} here") from None
    if done.returncode:
        raise Missing(f"{what}: {' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-600:]}")


def python() -> Path:
    """Return the Python of an environment that has the peers and ujson."""
    wanted = "\n".join([sys.version, *PEERS])
    venv = cache_folder() / f"venv-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    interpreter = venv / "bin" / "python"
    if not (venv / "complete").exists():
        shutil.rmtree(venv, ignore_errors=True)
        base = getattr(sys, "_base_executable", sys.executable)
        run([base, "-m", "venv", str(venv)], "the peers' environment")
        run([str(interpreter), "-m", "pip", "install", "--quiet", *PEERS], "the peers")
        # setuptools adds a .pth file that would make every start of this Python slower.
        run([str(interpreter), "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], "the peers")
        (venv / "complete").touch()
    return interpreter


def spark_python() -> Path:
    """Return the Python of an environment that has Spark and what our package needs for it."""
    if shutil.which("java") is None:
        raise Missing("Spark: there is no java here (17 or newer)")
    return own_python(SPARK, "Spark")


def state_python() -> Path:
    """Return the Python of an environment that has the client of Redis."""
    return own_python(STATE, "redis-py")


def own_python(packages: tuple[str, ...], what: str) -> Path:
    wanted = "\n".join([sys.version, *packages])
    venv = cache_folder() / f"venv-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    interpreter = venv / "bin" / "python"
    if not (venv / "complete").exists():
        shutil.rmtree(venv, ignore_errors=True)
        run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(venv)], f"the environment of {what}")
        run([str(interpreter), "-m", "pip", "install", "--quiet", *packages], what)
        (venv / "complete").touch()
    return interpreter


def lay(source: Path, folder: Path) -> Path:
    """Copy our package from a checkout, compiled, for this run alone. Work may go on in the checkout meanwhile."""
    for package in ("multilang", "spark_bridge"):
        if (source / package).exists():
            shutil.copytree(source / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(folder / package, quiet=2)
    return folder


def maven(goal: str, *settings: str) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress"]
    run([*command, f"org.apache.maven.plugins:maven-dependency-plugin:{goal}", *settings], "an artifact of Storm")


def storm_py() -> Path:
    """Return the folder of Storm's own storm.py, taken from its Maven artifact."""
    folder = cache_folder() / f"storm-{STORM_VERSION}"
    if not (folder / "storm.py").exists():
        artifact = f"org.apache.storm:multilang-python:{STORM_VERSION}:jar"
        maven("3.6.1:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
        with zipfile.ZipFile(folder / f"multilang-python-{STORM_VERSION}.jar") as jar:
            (folder / "storm.py").write_bytes(jar.read("resources/storm.py"))
    return folder


def storm_jars() -> tuple[Path, Path]:
    """Return the folder of Storm's jars with all that they need, and Flux's jar, from Maven.

    A LocalCluster needs both.
    """
    folder = cache_folder() / f"storm-{STORM_VERSION}"
    flux = folder / f"flux-core-{STORM_VERSION}.jar"
    if not (folder / "lib" / f"storm-server-{STORM_VERSION}.jar").exists():
        pom = folder / "pom.xml"
        folder.mkdir(exist_ok=True)
        pom.write_text((HERE / "cluster" / "pom.xml").read_text().replace("@STORM_VERSION@", STORM_VERSION))
        maven(
            "3.6.1:copy-dependencies", "-f", str(pom), "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"
        )
    if not flux.exists():
        # flux-core's parent pom is not on Maven Central. 3.6.1 reads the pom and fails; 2.10 takes only the jar.
        maven("2.10:copy", f"-Dartifact=org.apache.storm:flux-core:{STORM_VERSION}:jar", f"-DoutputDirectory={folder}")
    return folder / "lib", flux


def java_classes(source: Path, lib: Path) -> Path:
    """Return the folder of a Java program's classes.

    They are compiled with Storm's jars when the source has changed.
    """
    folder = cache_folder() / f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        run(["javac", "-nowarn", "-d", str(part), "-cp", f"{lib}/*", str(source)], f"a JDK, for {source.name}")
        part.rename(folder)
    return folder


def native(name: str) -> Path:
    """Return a program of native/, compiled by the system's compiler, and again when its source has changed."""
    source = HERE / "native" / f"{name}.c"
    program = cache_folder() / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not program.exists():
        run([os.environ.get("CC", "cc"), "-O2", "-o", str(program), str(source)], f"the compiler, for {source.name}")
    return program
