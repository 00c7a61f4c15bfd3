"""Storm's jars, fetched once through Maven and arranged in folders as in a release."""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from multilang.helpers import private
from multilang.shipping.errors import ShippingError
from multilang.shipping.maven import Artifact, fetch_jars

STORM_VERSION = "2.8.3"
# For a JVM that ends soon, such as a compiler's: code that is compiled well costs more there than it saves.
BRIEF_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# The jars on a worker's class path, which a release has in lib-worker.
_WORKER_JARS = (
    *("storm-client-*", "storm-shaded-deps-*", "slf4j-api-*", "log4j-*", "kryo-*", "reflectasm-*", "minlog-*"),
    *("objenesis-*", "asm-*", "metrics-*", "commons-codec-*", "commons-lang3-*", "jackson-*", "snakeyaml-*"),
    *("jakarta.xml.bind-api-*", "jakarta.activation-*"),
)


def cache_folder() -> Path:
    """Return the folder for downloads: ``MULTILANG_CACHE``, else ``storm-multilang`` in the user's cache folder."""
    own = os.environ.get("MULTILANG_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "storm-multilang").absolute()


def missing_programs() -> list[str]:
    """Return the names of programs that a cluster needs and that are not installed."""
    needed = ["java"] if _complete(_folder()) else ["java", "mvn"]
    return [name for name in needed if (java() is None if name == "java" else shutil.which(name) is None)]


def java() -> str | None:
    """Return the program ``java``: that of ``JAVA_HOME``, else the first on the path, or None."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return os.path.join(home, "bin", "java")
    return shutil.which("java")


def runs_sources() -> bool:
    """Return whether the Java here runs a program from its source. A JDK does; a runtime alone has no compiler."""
    program = java()
    return program is not None and _has_compiler(program)


@cache  # one question starts a JVM, and each cluster asks three times
def _has_compiler(program: str) -> bool:
    shown = subprocess.run([program, "--list-modules"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return any(line.startswith("jdk.compiler@") for line in shown.stdout.splitlines())


def storm_jars() -> Path:
    """Return a folder with ``lib`` and ``lib-worker``, and fetch the jars if they are not there.

    Raises ShippingError.
    """
    folder = _folder()
    check_owners(folder)
    if not _complete(folder):
        _fetch(folder)
    check_owners(folder, must_exist=True)
    return folder


def _fetch(folder: Path) -> None:
    missing = missing_programs()
    if missing:
        raise ShippingError(
            f"{' and '.join(missing)} not found: Storm needs a Java runtime (17 or newer) and, to fetch it once, Maven "
            "(Debian, Ubuntu: apt-get install default-jre-headless maven; macOS: brew install openjdk maven)"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ShippingError(
            f"{folder.parent} can't hold Storm's jars: {error.strerror}; name a folder for downloads in $MULTILANG_CACHE"
        ) from None
    check_owners(folder.parent, must_exist=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-") as name:
        part = Path(name, "storm")
        fetch_jars([Artifact("org.apache.storm", "storm-server", STORM_VERSION)], part / "lib")
        (part / "lib-worker").mkdir()
        for jar in sorted((part / "lib").iterdir()):
            if any(fnmatch.fnmatch(jar.name, pattern) for pattern in _WORKER_JARS):
                (part / "lib-worker" / jar.name).symlink_to(Path("..", "lib", jar.name))
        try:
            part.rename(folder)  # the folder appears complete or not at all
        except OSError:
            if not _complete(folder):  # otherwise another process was quicker
                raise


def check_owners(folder: Path, must_exist: bool = False) -> None:
    """Refuse a folder that is, or is in, one that another account put where everybody may, such as in /tmp.

    What is in it runs as this user.

    Args:
        folder: The folder.
        must_exist: Whether it is about to be used: a file of another account may be missing at the check, and there at the use.

    Raises:
        ShippingError: It is; or it is missing, and must not be.
    """
    try:
        private.check_owners(folder, must_exist)
    except FileNotFoundError as error:
        raise ShippingError(f"{error.filename} was there a moment ago, and is missing now") from None
    except PermissionError as error:
        raise ShippingError(
            f"{folder} is not used: {error}, and what is in it would run as you; name a folder of your own in $MULTILANG_CACHE or "
            "$MULTILANG_CLUSTER_HOME"
        ) from None


def _folder() -> Path:
    return cache_folder() / f"storm-{STORM_VERSION}"


def _complete(folder: Path) -> bool:
    return (folder / "lib-worker").is_dir()
