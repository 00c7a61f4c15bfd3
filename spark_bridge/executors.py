"""The Python processes of Spark's executors, and the errors that come from there in Spark's texts."""

from __future__ import annotations

import gc
import re

from multilang.component.errors import ConnectorError, SourceUnavailable

_NO_PROGRAM = re.compile(r'java\.io\.IOException: Cannot run program "([^"]+)"')
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] \D+: ([\d.]+) than that in driver: ([\d.]+),")
_NO_MODULE = re.compile(r"ModuleNotFoundError: (No module named '[^']+')")
_BEHIND = re.compile(r"\n\n?\tat |(?:\s+SQLSTATE: [0-9A-Z]{5})+(?=\s*(?:\n|$))")
# Parts of Spark's messages when a task failed, too often in a row, for a reason other than its rows.
_PASSING = (
    "Python worker exited unexpectedly",
    "Python worker failed to connect",
    "pyspark.daemon's stdout",
    "java.io.EOFException",
    "java.net.SocketException",
    "ExecutorLostFailure",
    "TaskResultLost",
)


def what_is_missing(text: str) -> str | None:
    """Return what to do when ``text``, the error of a failed job, is about a missing module; otherwise None."""
    missing = _NO_MODULE.search(text)
    if missing is None:
        return None
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    python = "the executors' Python" if active is None else f"the executors' Python ({active.pythonExec})"
    return (
        f"{missing[1]} in {python}: install it there, or name another Python in PYSPARK_PYTHON before the session "
        "starts (the executors take the first python3 of the path otherwise)"
    )


def why_none_runs(text: str) -> str | None:
    """Return what to do when ``text``, the error of a failed job, is about executors that can't run their Python; otherwise None."""
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    program = None if active is None else active.pythonExec
    missing = _NO_PROGRAM.search(text)
    if missing is not None and missing[1] == program:
        return (
            f"the executors have no Python {program!r}, which PYSPARK_PYTHON names: install it there, or send it with "
            "--archives env.tgz#environment (spark.archives), which is PYSPARK_PYTHON=./environment/bin/python"
        )
    other = _OTHER_PYTHON.search(text)
    if other is not None:
        named = "" if program is None else f" ({program})"
        return (
            f"the executors' Python{named} is {other[1]}, and the driver's is {other[2]}: name one of the driver's version in "
            "PYSPARK_PYTHON, or the executors' in PYSPARK_DRIVER_PYTHON"
        )
    return None


_frozen = False


def freeze_once() -> None:
    """Have the garbage collector leave alone what is alive at the first call in this process, which is mostly modules.

    Spark's Python workers collect garbage behind each task: to look through all loaded modules takes 15 ms of a core, more than
    most tasks of a small job. To be called in executors alone, where a task begins.
    """
    global _frozen
    if not _frozen:
        _frozen = True
        gc.freeze()


def without_traces(text: str) -> str:
    """Return the text of an error without the traces and the code that Spark has behind it."""
    return _BEHIND.split(text, maxsplit=1)[0].rstrip()


def source_error(error: Exception, what: str) -> ConnectorError:
    """Return the error of a failed job, without Java's and Spark's traces. ``what``: what failed."""
    text = str(error)
    _, ours, message = text.rpartition("multilang.component.errors.ConnectorError: ")
    if ours:
        return ConnectorError(without_traces(message))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if "Error: " in line or "Exception: " in line]
    if any(word in text for word in _PASSING):
        return SourceUnavailable(f"{what}: an executor or its Python was lost")
    why = why_none_runs(text) or what_is_missing(text) or (python or lines or [repr(error)])[-1 if python else 0]
    return ConnectorError(f"{what}: {why[:500]}")
