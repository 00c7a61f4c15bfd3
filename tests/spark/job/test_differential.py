"""Generated topologies as Spark jobs: what the simulated cluster gives, and refusals by name. See tests/differential."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from multilang.topology import load_topology
from multilang.topology.errors import TopologyError
from spark_bridge.job import run_topology
from tests.differential import components, plain
from tests.differential.local import run
from tests.differential.outcomes import Outcome, check_same, counted
from tests.differential.plain import REBOUND_SCRIPT as SCRIPT
from tests.differential.shapes import Shape, sample
from tests.soak import SOAK
from tests.streams import skewed

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
    with pytest.raises(TopologyError, match=refusal.replace("{id}", f"({ids})")):
        run_topology(topology, {}, spark)
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize("reliable", [True, False])
def test_unanchored_refused_and_aliased_tuples_give_what_plain_python_does(
    spark: SparkSession, tmp_path: Path, reliable: bool
) -> None:
    shape = {"rows": 12, "tasks": 2, "reliable": reliable, "steps": [(2, True, True), (1, False, True)]}
    with run_topology(plain.built(shape, str(tmp_path / "record")), {}, spark, max_replays=10) as result:
        assert not result.lost
    assert plain.written(tmp_path / "record") == 2 * [plain.worked_out(shape)]


def test_skewed_sources_give_what_plain_python_does(spark: SparkSession) -> None:
    shape = {
        "sources": [(2, 0.05, 0.005, 0), (1, 0.2, 0.0, 2)],
        "steps": [("fold", 2)],
        "together": [("unordered", 1), ("repartition", 2)],
        "tasks": 2,
        "window": "tumbling",
    }
    with run_topology(skewed.built(shape), {}, spark) as result:
        assert not result.rdd("lates").collect()
        found = [{"value": value} for (value,) in result.rdd("end").collect()]
    assert skewed.seen(found) == skewed.worked_out(shape)


def test_what_a_process_binds_again_is_what_runs(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rebound.py").write_text(SCRIPT.format(then=""))
    topology = load_topology(str(tmp_path / "rebound.py"))
    vars(sys.modules["rebound"])["FACTOR"] = 1000
    with run_topology(topology, {}, spark) as result:
        assert sorted(result.rdd("times").collect()) == [[1], [2001], [4001]]
