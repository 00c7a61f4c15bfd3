"""A folder of files that are the batches of a query, and what is in the states."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from multilang.state.providers import provider_of
from spark_bridge.job.state import conf_of
from tests.state.topologies import stored

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


class Lines:
    """Each file that is put into ``folder`` is a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.files = 0

    def put(self, lines: list[str]) -> None:
        part = self.folder / f".{self.files}"
        part.write_text("".join(f"{line}\n" for line in lines))
        part.rename(self.folder / f"{self.files:03}.txt")
        self.files += 1

    def stream(self, spark: SparkSession, column: str = "sentence") -> DataFrame:
        return (
            spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.folder)).withColumnRenamed("value", column)
        )


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path / "lines")


def state_of(where: Any, component: str = "count", tasks: int = 2) -> dict[Any, Any]:
    """Everything that the tasks of a component have in a place."""
    with closing(provider_of(conf_of(where))) as found:
        return stored(found, component, tasks)
