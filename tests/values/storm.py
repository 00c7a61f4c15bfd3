"""One JVM with Storm's own classes at the other end of a pipe: see Storm.java."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster import missing_programs
from multilang.shipping.cluster.artifacts import java, runs_sources, storm_jars
from multilang.shipping.conf import KRYO_CLASSES
from tests.patience import patient

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).with_name("Storm.java")
TASKS = 2**31 - 1  # among which a fields grouping chooses there
_READ = 1 << 20


class Storm:
    """The running JVM. ``ask`` is given the bytes of messages, and gives those of their answers."""

    def __init__(self, folder: Path) -> None:
        missing = missing_programs()
        if not missing and not runs_sources():
            missing = ["javac, as a JDK has it"]
        if missing:
            reason = f"no {' and no '.join(missing)} here, which Storm's own parser needs"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        jars = storm_jars() / "lib-worker" / "*"
        self._errors = (folder / "stderr").open("w+")
        self._process = subprocess.Popen(
            [str(java()), "-Xmx512m", "-cp", str(jars), str(SOURCE), *KRYO_CLASSES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )

    def ask(self, messages: bytes, hear: Callable[[bytes], bool]) -> None:
        """Write ``messages``, and give ``hear`` what comes until it has all that it wants and returns True."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        writer = threading.Thread(target=self._write, args=(messages,))
        writer.start()
        while True:
            data = self._process.stdout.read(_READ)
            if not data:
                writer.join()
                self._errors.seek(0)
                pytest.fail(f"Storm's classes ended: {self._errors.read()[:5000]}")
            if hear(data):
                break
        writer.join()

    def _write(self, messages: bytes) -> None:
        assert self._process.stdin is not None
        left = memoryview(messages)
        try:
            while left:
                left = left[self._process.stdin.write(left) :]
        except BrokenPipeError:
            pass  # the reader says so

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(patient(30))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
