"""The Python that executors run, where it is not the one that it ought to be."""

from __future__ import annotations

import re

_NO_MODULE = re.compile(r"ModuleNotFoundError: (No module named '[^']+')")


def what_is_missing(text: str) -> str | None:
    """What to do where ``text``, of a job that failed, says that a module was not found; None where it does not."""
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
