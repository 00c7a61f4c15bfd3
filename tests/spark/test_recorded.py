"""A recording as the source of a Spark job."""

from __future__ import annotations

from collections import Counter

from multilang.recording import Recording, new_recording, replayed
from spark_bridge.job import run_topology
from tests.patience import patient
from tests.recording import topologies


def test_a_job_on_a_recording_has_its_tuples(tmp_path, spark) -> None:
    from multilang import LocalCluster

    new_recording(tmp_path / "r", topologies.failing())
    with LocalCluster("inprocess") as cluster:
        conf = {"multilang.record": {"file": str(tmp_path / "r"), "start": 0.0}}
        cluster.submit(topologies.failing(), conf=conf).wait(timeout=patient(60))
    with run_topology(
        replayed(topologies.failing(), Recording(tmp_path / "r")), {}, spark, outputs=["fails"]
    ) as result:
        assert Counter(row[0] for row in result.rdd("fails").collect()) == Counter(range(1, 41))
