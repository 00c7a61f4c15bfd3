"""The same emits are allowed on Spark as on the embedded cluster: see tests.local.routing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_bridge.job import run_topology
from tests.local import routing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEARD = ["heard", "shuffled", "directed"]


def test_every_emit_is_sent_or_refused_as_elsewhere(spark: SparkSession) -> None:
    with run_topology(routing.python, {}, spark, outputs=HEARD) as result:
        rows = {name: result.rdd(name).collect() for name in HEARD}
        assert result.errors == []
    routing.check("says", rows)
    routing.check("speaks", rows)


def test_a_program_in_another_language_is_refused_with_the_same_words(spark: SparkSession) -> None:
    with run_topology(routing.shell, {}, spark, outputs=HEARD) as result:
        rows = {name: result.rdd(name).collect() for name in HEARD}
        routing.check("speaks", rows, [error.message for error in result.errors])
