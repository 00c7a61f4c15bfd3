"""The Python that the executors run, in errors of jobs that did not find a module."""

from __future__ import annotations

import re

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
