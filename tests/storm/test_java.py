"""Components in Java beside ours in one topology, on the real Storm: both get what the others emit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang import JavaBolt, JavaObject, TopologyBuilder
from multilang.shipping.cluster.artifacts import runs_sources
from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import Shipment
from multilang.shipping.java_objects import with_java
from multilang.shipping.wheels import WheelTarget
from multilang.testing import FixedTupleSpout
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


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            [JavaObject("org.apache.storm.testing.Nothing"), JavaObject("org.apache.storm.testing.TestWordSpout", "a")],
            ["class Nothing", "String cannot be converted to boolean"],
        ),
        (
            [JavaObject("org.apache.storm.tuple.Fields", "a")],
            ["bolt 'it-0': org.apache.storm.tuple.Fields is no org.apache.storm.task.IBolt"],
        ),
    ],
    ids=["does not compile", "is no bolt"],
)
def test_what_java_can_not_make_is_told_before_anything_is_sent(
    storm_programs: None, made: list[JavaObject], said: list[str]
) -> None:
    if not runs_sources():
        pytest.skip("there is no JDK here")
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout(["word"], [["a"]]))
    for number, each in enumerate(made):
        builder.set_bolt(f"it-{number}", JavaBolt(each)).shuffle_grouping("words")
    whole = Shipment(builder.build("it"), WheelTarget.of(None, None), [], {}, [])  # type: ignore[arg-type]
    with pytest.raises(ShippingError, match=r"Java can't make 'it-0'.* of topology 'it' as declared") as caught:
        with_java(whole, [])
    assert [each for each in said if each not in str(caught.value)] == []
    assert "\tat " not in str(caught.value)
