"""Components in Java beside ours in one topology, on the real Storm: both get what the others emit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.shipping.cluster.artifacts import runs_sources
from tests.storm.conftest import SHIPPED, acked, give, wait_for
from tests.storm.shipped.with_java import WORDS

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def test_tuples_go_through_classes_of_java_and_back(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> None:
    if not runs_sources():
        pytest.skip("there is no JDK here")
    told = tmp_path / "told"
    told.touch()
    conf = {"test.told": str(told), "executor.metrics.frequency.secs": 1, "topology.stats.sample.rate": 1.0}
    give(storm, SHIPPED / "with_java.py", "with-java", **conf)

    def by(component: str) -> list[str]:
        lines = told.read_text().split("\n")[:-1]
        return [line.split()[1] for line in lines if line.split()[0] == component]

    wait_for(
        lambda: len(by("number")) >= WORDS and len(by("same")) >= WORDS and by("some"), "all tuples came through Java"
    )
    assert sorted(by("same")) == sorted(f"word-{n}" for n in range(WORDS))
    assert sorted(map(int, by("number"))) == list(range(1, WORDS + 1))
    assert set(by("some")) <= {"nathan", "mike", "jackson", "golda", "bertels"}
    wait_for(lambda: acked(nimbus, "with-java", "words") == (WORDS, 0), "the trees through Java are acked")
