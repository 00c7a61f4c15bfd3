"""The formats in which a result's streams are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.topology.errors import TopologyError
from spark_bridge.job.watch import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("json", "parquet", "orc", "csv", "delta", "iceberg")
MODES = ("error", "append", "overwrite", "ignore")

# What a session needs that Spark does not bring: the package for a Spark of this version, and the settings.
_PACKAGES = {
    "delta": (
        "io.delta:delta-spark_{spark}_2.13:VERSION",
        (
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
        ),
    ),
    "iceberg": (
        "org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13:VERSION",
        (
            "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions and a catalog, "
            "spark.sql.catalog.NAME=org.apache.iceberg.spark.SparkCatalog with its type and warehouse; then write to NAME.DB.TABLE"
        ),
    ),
}


def check_sink(spark: SparkSession, form: str, mode: str = "error") -> None:
    """Check that a session can write a format.

    Args:
        spark: The session.
        form: The format's name.
        mode: What to do if there is something already.

    Raises:
        TopologyError: The format or the mode is unknown, or the session lacks the format's package.
    """
    if form not in FORMATS:
        raise TopologyError(
            f"format {form!r} is none of {', '.join(FORMATS)}; for others use Spark's own writer, "
            "result.dataframe(...).write.format(...)"
        )
    if mode not in MODES:
        raise TopologyError(f"mode {mode!r} is none of {', '.join(MODES)}")
    if form not in _PACKAGES:
        return
    try:
        spark.read.format(form).load()  # looks for the package first, and then misses a path
    except SPARK_ERRORS as error:
        if "[DATA_SOURCE_NOT_FOUND]" in str(error):
            package, settings = _PACKAGES[form]
            package = package.format(spark=".".join(spark.version.split(".")[:2]))
            raise TopologyError(
                f"this session can't write the format {form!r}: start it with spark.jars.packages={package}, if there is one for "
                f"Spark {spark.version}, and with {settings}"
            ) from None
