"""The Python that the executors run, in errors of jobs that could not use it."""

from __future__ import annotations

import re

_NO_PROGRAM = re.compile(r'java\.io\.IOException: Cannot run program "([^"]+)"')
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] \D+: ([\d.]+) than that in driver: ([\d.]+),")
_NO_MODULE = re.compile(r"ModuleNotFoundError: (No module named '[^']+')")


def what_is_missing(text: str) -> str | None:
    """Return what to do when ``text``, the error of a failed job, says that a module was not found; otherwise None."""
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
    """Return what to do when ``text``, the error of a failed job, says that the executors can't run their Python; otherwise None."""
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
