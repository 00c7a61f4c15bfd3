"""A run fails unless what was sent is what was received. There is no Spark here; its tasks are run by hand."""

from __future__ import annotations

import random

import pytest

from multilang import BasicBolt, TopologyBuilder
from multilang.engine.settings import DEFAULTS
from multilang.errors import SparkJobError
from spark_bridge.job.blocks import LIMIT_BYTES, OUTPUT, REPORT, ROWS
from spark_bridge.job.layout import Layout, StageSource
from spark_bridge.job.rounds import RoundReport, Unchanged
from spark_bridge.job.sources import SourceReader
from spark_bridge.job.worker import Job, Stage
from tests.spark.job.components import Count, Split, Words

SENTENCES = ["the cow jumped over the moon", "an apple a day", "the moon"]


class Dice(BasicBolt):
    """Does not do the same again."""

    output_fields = ["word"]

    def process(self, tup):
        self.emit([str(random.random())])


class Thrown(Count):
    """Counts, and says something else each time."""

    def process(self, tup):
        self.emit([tup[0], random.getrandbits(60)])


def job(split: type, count: type = Count):
    builder = TopologyBuilder()
    builder.set_spout("sentences", Words)
    builder.set_bolt("split", split, parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", count, parallelism=2).fields_grouping("split", "word")
    topology = builder.build("ledger")
    assignment = topology.task_ids(1)
    layout = Layout(topology, assignment, [StageSource("sentences", "default", 2)], move_in=True)
    reader = SourceReader("sentences", ("sentence",), None)
    return Job(
        topology, DEFAULTS, assignment, layout, [reader], [("count", "default")], seed=0, round=1, keeps_states=False
    )


def first(made: Job, worker: int):
    return list(Stage(made, 0, {})(worker, SENTENCES))


def second(made: Job, worker: int, sent):
    return list(Stage(made, 1, {})(worker, [(key, record) for key, record in sent if key == worker]))


def report(made: Job, records) -> RoundReport:
    described = {task: f"{name!r} (task {task})" for task, name in made.assignment.items()}
    return RoundReport(made.layout, [record for _, record in records if record.kind == REPORT], described)


def test_an_attempt_that_did_the_same_again_changes_nothing() -> None:
    made = job(Split)
    attempts = first(made, 0) + first(made, 1), first(made, 0) + first(made, 1)
    found = report(made, second(made, 0, attempts[0]) + second(made, 1, attempts[1]))
    assert found.rows == [6]
    assert found.failed == [[]]


def test_blocks_may_come_in_any_order() -> None:
    made = job(Split)
    sent = first(made, 0) + first(made, 1)
    out = [
        [record.payload for _, record in second(made, 0, order) if record.kind == OUTPUT]
        for order in (sent, sent[::-1])
    ]
    assert out[0]
    assert out[0] == out[1]


def test_an_attempt_that_did_something_else_is_refused_by_name() -> None:
    made = job(Dice)
    attempts = first(made, 0) + first(made, 1), first(made, 0) + first(made, 1)
    with pytest.raises(SparkJobError, match=r"what .*'split' \(task \d\) sent differs from what was received"):
        report(made, second(made, 0, attempts[0]) + second(made, 1, attempts[1]))


class Repeats(BasicBolt):
    """Makes a long word of a number."""

    output_fields = ["word"]

    def process(self, tup):
        self.emit([f"{tup[0]}{'x' * LONG}"])
        self.emit(["short"])


LONG = 300_000


@pytest.mark.parametrize(
    ("split", "rows"),
    [
        (Split, [f"{n}{'x' * LONG}" for n in range(60)]),
        (Repeats, [str(n) for n in range(60)]),
        (Split, [*(str(n) for n in range(2000)), *(f"{n}{'x' * LONG}" for n in range(40)), "x" * (10 << 20), "1"]),
    ],
    ids=["long rows", "rows that become long", "some long rows"],
)
def test_blocks_are_bounded_in_bytes(split: type, rows: list[str]) -> None:
    made = job(split)
    sent = list(Stage(made, 0, {})(0, rows))
    sizes = [(record.rows, len(record.payload)) for _, record in sent if record.kind == ROWS]
    assert sum(count for count, _ in sizes) == len(rows) * (1 + (split is Repeats))
    assert all(count == 1 or size <= 2 * LIMIT_BYTES for count, size in sizes)
    assert len(sizes) <= 6 + sum(size for _, size in sizes) // (LIMIT_BYTES // 4)
    received = [record for worker in (0, 1) for _, record in second(made, worker, sent) if record.kind == REPORT]
    assert report(made, [(0, record) for record in received]).rows == [len(rows)]


@pytest.mark.parametrize(("count", "same"), [(Count, True), (Thrown, False)])
def test_what_a_lost_disk_had_is_read_again_only_as_it_was_counted(count: type, same: bool) -> None:
    made = job(Split, count)
    sent = first(made, 0) + first(made, 1)
    counted = second(made, 0, sent) + second(made, 1, sent)
    unchanged = Unchanged("ledger", report(made, counted).digests)
    assert list(unchanged(record for _, record in counted)) == [record for _, record in counted]
    again = [record for _, record in second(made, 0, sent)]  # of one worker, as one machine is lost
    if same:
        assert [each.payload for each in unchanged(again) if each.kind == OUTPUT]
    else:
        with pytest.raises(SparkJobError, match="what 'ledger' emitted is not there any more as it was counted"):
            list(unchanged(again))
