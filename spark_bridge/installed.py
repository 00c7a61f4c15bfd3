"""The pyspark that is installed, and objects of it that topologies can't run on."""

from __future__ import annotations

import sys
from importlib import metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OLDEST = 4


def check_pyspark(package: str) -> None:
    """Check that pyspark is there, and new enough.

    Args:
        package: The package that needs it.

    Raises:
        ImportError: It is not.
    """
    try:
        # An executor has it loaded. There, to look for its metadata is to read the directory of Spark's largest jar.
        version = getattr(sys.modules.get("pyspark"), "__version__", None) or metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        from importlib.util import find_spec

        if find_spec("pyspark") is not None:
            return  # Spark's own copy, which spark-submit puts on the path
        raise ImportError(
            f"{package} needs pyspark, which is not installed: pip install 'storm-multilang[spark]'", name="pyspark"
        ) from None
    if int(version.partition(".")[0]) < _OLDEST:
        raise ImportError(
            f"{package} needs pyspark {_OLDEST} or newer, and {version} is installed: pip install 'storm-multilang[spark]'",
            name="pyspark",
        )


def unsuitable(given: Any) -> str | None:
    """Return why an object is neither a session nor a source of rows, and what to do; None if it is not known."""
    module = f"{type(given).__module__}."
    if module.startswith("pyspark.sql.connect."):
        return (
            "it belongs to Spark Connect, which has no RDDs, and those are what topologies run on: open the session on the "
            "cluster itself, with SparkSession.builder.master('spark://HOST:PORT') and no remote() or SPARK_REMOTE"
        )
    if module.startswith("pandas."):
        return "it is pandas': make a DataFrame of Spark's with spark.createDataFrame(...)"
    if module.startswith("polars."):
        return "it is polars': make a DataFrame of Spark's with spark.createDataFrame(frame.to_pandas())"
    if module.startswith("pyarrow."):
        return "it is Arrow's: make a DataFrame of Spark's with spark.createDataFrame(...)"
    return None
