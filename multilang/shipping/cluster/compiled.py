"""Classes of our own that Storm's daemons need, compiled once for a JDK and cached beside Storm's jars.

A compiler is a JVM that costs as much as a daemon's start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from multilang.shipping.cluster.artifacts import BRIEF_JVM, java
from multilang.shipping.errors import ShippingError

# A compiler opens each: all of Storm's jars take it three times as long.
_NEEDED = ("storm-*.jar", "slf4j-api-*.jar", "metrics-core-*.jar")


def put(source: Path, jars: Path, jar: Path) -> None:
    """Make a jar of a class, or copy the one that was made before.

    Args:
        source: The class's file, which imports what is in Storm's jars alone.
        jars: The folder of Storm's jars.
        jar: The jar to make.

    Raises:
        ShippingError: There is no JDK here, or it can't compile the class.
    """
    program = java() or "java"
    cached = _cached(source, jars, Path(program).resolve())
    jar.parent.mkdir(exist_ok=True)
    if not cached.exists():
        if not os.access(cached.parent, os.W_OK):
            _compile(source, program, jars, jar)
            return
        with tempfile.TemporaryDirectory(dir=cached.parent, prefix=f"{cached.stem}-") as folder:
            made = Path(folder, cached.name)
            _compile(source, program, jars, made)
            made.replace(cached)  # it appears complete or not at all
    shutil.copyfile(cached, jar)


def _cached(source: Path, jars: Path, program: Path) -> Path:
    """Return the file for what this Java compiles, which may not exist yet."""
    changed = program.stat().st_mtime_ns if program.exists() else 0
    key = hashlib.sha256(f"{program} {changed}\n".encode() + source.read_bytes()).hexdigest()[:16]
    return jars.parent / f"{jars.name}-{source.stem}-{key}.jar"


def _compile(source: Path, program: str, jars: Path, jar: Path) -> None:
    compiler = ("-m", "jdk.compiler/com.sun.tools.javac.Main")
    needed = os.pathsep.join(str(path) for pattern in _NEEDED for path in sorted((jars / "lib").glob(pattern)))
    with tempfile.TemporaryDirectory(prefix="multilang-java-") as folder:
        shown = subprocess.run(
            [program, *BRIEF_JVM, *compiler, "-d", folder, "-cp", needed, str(source)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if shown.returncode:
            raise ShippingError(f"{source.name} can't be compiled:\n{shown.stdout}{shown.stderr}")
        with zipfile.ZipFile(jar, "w") as archive:
            for path in Path(folder).iterdir():
                archive.write(path, path.name)
