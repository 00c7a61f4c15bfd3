"""One state, several engines: Storm counts, is killed; Spark goes on, as a job and as a query; and Storm again. Each row counts once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from multilang.state.providers import provider_of
from tests.cli.command import ROOT
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.state.conftest import conf_of
from tests.state.topologies import stored
from tests.storm.conftest import SHIPPED, give, wait_for, workers
from tests.storm.shipped.handover import ROWS, SENTENCES
from tests.storm.test_state import redis  # noqa: F401  # a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


@pytest.fixture(params=["sqlite", "redis"] if SOAK else ["redis"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    conf = conf_of(request.param, request, tmp_path)
    return {key: value for key, value in conf.items() if key.startswith("topology.state.provider")}


def on_spark(folder: Path, conf: dict[str, Any]) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.storm.counted_on_spark", str(folder), json.dumps(conf)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=patient(300),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def words(rows: int) -> Counter[str]:
    return Counter(word for n in range(rows) for word in SENTENCES[n % 3].split())


@soak_only
def test_storm_then_spark_then_storm_again_count_each_row_once(
    storm: Cluster, nimbus: Nimbus, durable: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "text").write_text("".join(f"{SENTENCES[n % 3]}\n" for n in range(99)))
    there = provider_of({**durable, "topology.name": "handover"})

    def counted() -> int:
        return sum(stored(there, "count", 2).values())

    def submit(**more: object) -> None:
        give(storm, SHIPPED / "handover.py", "handover", "--interpreter", sys.executable, **durable, **more)

    submit(**{"test.pause": 0.002})
    wait_for(lambda: counted() > words(ROWS // 20).total(), "Storm has counted some")
    nimbus.kill("handover", 0)
    wait_for(lambda: not nimbus.summary().topologies and not workers(storm), "Storm has killed it")
    by_storm, by_job, by_query = on_spark(tmp_path, durable)
    assert 0 < by_storm < ROWS
    assert 0 < by_job < ROWS - by_storm
    assert by_query == 99
    assert counted() < words(ROWS).total()
    submit()
    due = words(ROWS) + words(99)
    wait_for(lambda: counted() >= due.total(), "Storm has counted the rest")
    assert stored(there, "count", 2) == due
    there.close()
