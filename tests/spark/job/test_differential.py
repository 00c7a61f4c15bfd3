"""Generated topologies as Spark jobs: what the simulated cluster gives, and refusals by name. See tests/differential."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from spark_bridge.job import NotOnSparkError, run_topology
from tests.differential import components
from tests.differential.local import run
from tests.differential.outcomes import Outcome, check_same, counted
from tests.differential.shapes import Shape, sample
from tests.soak import SOAK

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SHAPES = 300 if SOAK else 4
CYCLES, COORDINATED = {"loops"}, {"spreads", "sums"}


def kinds(shape: Shape) -> set[str]:
    return {part["kind"] for part in shape["components"]}


def can_run(shape: Shape) -> bool:
    """Return whether Spark can express it. Without ackers a spout's tuple is acked at once, and Spark can't do that."""
    told = all(part.get("tells", True) for part in shape["components"])
    return told and shape["ackers"] and shape["forget"] is None and not kinds(shape) & (CYCLES | COORDINATED)


@pytest.mark.soak
def test_a_spark_job_gives_what_the_embedded_cluster_gives(spark: SparkSession, tmp_path: Path) -> None:
    given = (
        [json.loads(os.environ["MULTILANG_SHAPE"])] if "MULTILANG_SHAPE" in os.environ else sample(SHAPES, 0, can_run)
    )
    for number, shape in enumerate(given):
        record = tmp_path / str(number)
        topology = components.built(shape, str(record), 1, components.SHELL)
        with run_topology(topology, {}, spark, max_replays=10) as result:
            errors = [str(error) for error in result.errors]
            figures = {
                part["id"]: (counters.acked, counters.failed, 0)
                for part in shape["components"]
                if part["kind"] in components.SPOUTS and part["kind"] != "plain"
                for counters in [result.counters[part["id"]]]
            }
        lines = [json.loads(line) for line in record.read_text().splitlines()]
        due = run(shape, "simulated", number)
        assert due.figures is not None
        due.figures = {id: due.figures[id] for id in figures}
        check_same(shape, due, Outcome("Spark", counted(shape, lines), "\n".join(["drained", *errors]), figures))


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [("loops", r"has a cycle through '{id}'"), ("spreads", r"bolt '{id}' \(Spreads\) works on one id after the other")],
)
def test_what_spark_cannot_express_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, wanted: str, refusal: str
) -> None:
    [shape] = sample(1, 0, lambda shape: wanted in kinds(shape) and len(kinds(shape) & (CYCLES | COORDINATED)) < 3)
    if wanted == "spreads":
        [shape] = sample(1, 0, lambda shape: wanted in kinds(shape) and not kinds(shape) & CYCLES)
    ids = "|".join(re.escape(part["id"]) for part in shape["components"] if part["kind"] == wanted)
    topology = components.built(shape, str(tmp_path / "record"), 1, components.SHELL)
    with pytest.raises(NotOnSparkError, match=refusal.replace("{id}", f"({ids})")):
        run_topology(topology, {}, spark)
    assert not (tmp_path / "record").exists()
