"""A topology as a streaming query: what it counts, over restarts and replayed batches, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang import BasicBolt, Spout, TopologyBuilder
from multilang.engine.status import RunStatus
from multilang.local import LocalCluster
from multilang.state import FencedError, StateError
from multilang.state.admin import StoredStates
from multilang.state.providers import provider_of
from multilang.topology.errors import TopologyError
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.stream import BatchProgress, stream_topology
from spark_bridge.stream.checkpoint import QueryLog, written_directly
from tests.patience import patient
from tests.servers import wait_for
from tests.spark.job.components import Count, Rows, Split, Words
from tests.spark.job.test_stateful import wider
from tests.spark.stream.conftest import Lines, state_of
from tests.state.conftest import opened
from tests.state.topologies import SENTENCES, topology, words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sentences(first: int, end: int) -> list[str]:
    return [SENTENCES[n % 5] for n in range(first, end)]


def test_each_row_counts_once_over_restarts_and_repeated_batches(
    spark: SparkSession, lines: Lines, durable, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    seen: list[tuple[int, int]] = []
    told: list[BatchProgress] = []

    def start():
        return stream_topology(
            topology,
            {"sentences": lines.stream(spark)},
            checkpoint=str(checkpoint),
            state=durable,
            each_batch=lambda result, batch: seen.append((batch, result.acked)),
            progress=told.append,
        )

    lines.put(sentences(0, 40))
    lines.put(sentences(40, 70))
    with start() as query:
        assert query.query.name == "stateful"
        assert QueryLog(spark, str(checkpoint)).query == query.query.id
        query.query.processAllAvailable()
        assert state_of(durable) == words_of(70)
        wait_for(lambda: len(told) == 2, "Spark told of both batches")
        status = query.status()
        assert (status.engine, status.state, status["sentences"].acked) == ("spark-stream", "active", 70)
        assert status["count"].executed == words_of(70).total()
        assert sum(task.executed for task in status["count"].by_task) == status["count"].executed
        assert (status.checkpoint.number, status.checkpoint.seconds > 0) == (1, True)
        assert 0 <= status["count"].capacity <= 1
        assert RunStatus.from_json(json.loads(json.dumps(status.as_json()))) == status
    assert query.status().state == "ended"
    # As after a crash between the state's commit and Spark's own: the batch comes again, and is in the state already.
    os.remove(checkpoint / "commits" / "1")
    os.remove(checkpoint / "commits" / ".1.crc")
    lines.put(sentences(70, 100))
    with start() as query:
        query.query.processAllAvailable()
        wait_for(lambda: len(told) == 4, "Spark told of two more")
    assert state_of(durable) == words_of(100)
    assert seen == [(0, 40), (1, 30), (2, 30)]
    assert [(each.batch, each.rows, each.acked, each.failed, each.replayed, each.repeated) for each in told] == [
        (0, 40, 40, 0, 0, False),
        (1, 30, 30, 0, 0, False),
        (1, 0, 0, 0, 0, True),
        (2, 30, 30, 0, 0, False),
    ]
    assert all(each.seconds > 0 and (each.process_rate > 0) is not each.repeated for each in told)
    stored = StoredStates(topology, durable)
    assert stored.position() == (2, "COMMITTED")
    stored.close()
    # The embedded cluster goes on from there, and then the query from where it was.
    with LocalCluster(mode="inprocess", conf={**durable, "test.sentences": 50}) as cluster:
        cluster.submit(topology).wait(timeout=patient(120))
    lines.put(sentences(0, 10))
    with start() as query:
        query.query.processAllAvailable()
        with pytest.raises(TimeoutError, match=r"has not ended after 0\.1 s; it continues"):
            query.wait(timeout=0.1)
    assert state_of(durable) == words_of(100) + words_of(50) + words_of(10)


def test_what_does_not_belong_together_is_refused_by_name(spark: SparkSession, lines: Lines, tmp_path: Path) -> None:
    checkpoint, place = str(tmp_path / "checkpoint"), str(tmp_path / "state")
    lines.put(sentences(0, 5))
    source = lines.stream(spark)
    with pytest.raises(StateError, match=r"can't be made"):
        stream_topology(wider(), {"sentences": source}, checkpoint=checkpoint, state="/dev/null/state")
    # Nothing was begun by that.
    with stream_topology(topology, {"sentences": source}, checkpoint=Path(checkpoint), state=place) as query:
        query.query.processAllAvailable()
        with pytest.raises(StateError, match=r"is in use by topology 'stateful'"):
            run_in_another_process(place)
    with pytest.raises(TopologyError, match=r"that of another topology: tasks of bolt 'count' was 2, and is 3"):
        stream_topology(wider(), {"sentences": source}, checkpoint=checkpoint, state=place)
    with pytest.raises(TopologyError, match=r"the source of 'sentences' is not a streaming DataFrame"):
        stream_topology(topology, {"sentences": spark.createDataFrame([("a",)], ["sentence"])}, checkpoint=checkpoint)
    with pytest.raises(TopologyError, match=r"the source of 'sentences' is a streaming DataFrame, which has no end"):
        run_topology(topology, {"sentences": source}, spark)
    with pytest.raises(TopologyError, match=r"'postgres' is no database that is known; use sqlite://") as raised:
        stream_topology(topology, {"sentences": source}, checkpoint=checkpoint, state="postgres://me:secret@h:1/x")
    assert "secret" not in str(raised.value)
    with pytest.raises(TopologyError, match=r"has no column 'sentence'"):
        stream_topology(topology, {"sentences": lines.stream(spark, "line")}, checkpoint=checkpoint)
    lines.put(sentences(5, 10))
    other = stream_topology(topology, {"sentences": source}, checkpoint=checkpoint, state=str(tmp_path / "other"))
    with pytest.raises(SparkJobError, match=r"is at batch 1, and the state in .*other has no batch of this query"):
        other.wait()


def test_a_checkpoint_that_is_an_older_copy_repeats_its_batch_and_is_refused_with_other_rows(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    checkpoint, copy, place = tmp_path / "checkpoint", tmp_path / "copy", str(tmp_path / "state")

    def run():
        source = {"sentences": lines.stream(spark)}
        stream_topology(topology, source, checkpoint=checkpoint, state=place, trigger={"availableNow": True}).wait()

    def put_back():
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)

    lines.put(sentences(0, 5))
    run()
    shutil.copytree(checkpoint, copy)
    lines.put(sentences(5, 10))
    run()
    put_back()
    run()  # Spark plans the batch again, with the same file
    assert state_of(place) == words_of(10)
    put_back()
    lines.put(sentences(10, 15))
    before = (lines.folder / "001.txt").stat().st_mtime - 1
    os.utime(lines.folder / "002.txt", (before, before))  # an older file comes first
    with pytest.raises(SparkJobError, match=r"batch 1 has other rows in this checkpoint than those that the state in"):
        run()
    assert state_of(place) == words_of(10)


def test_what_another_engine_has_prepared_and_not_committed_is_not_counted(
    spark: SparkSession, lines: Lines, durable, tmp_path: Path
) -> None:
    def start():
        return stream_topology(
            topology, {"sentences": lines.stream(spark)}, checkpoint=tmp_path / "checkpoint", state=durable
        )

    lines.put(sentences(0, 5))
    with start() as query:
        query.query.processAllAvailable()
    # Such as a driver that was taken for dead, and gets on after its successor has begun.
    provider = provider_of(durable)
    late = opened(provider, "count-0")
    word, count = next(iter(late.items()))
    late.put(word, count + 1000)
    provider.close()
    lines.put(sentences(5, 10))
    with start() as query:
        with pytest.raises(FencedError, match=r"'count-0'.* was taken over"):
            late.prepare_commit(1)
        query.query.processAllAvailable()
    assert state_of(durable) == words_of(10)


def run_in_another_process(place: str) -> None:
    import subprocess
    import sys

    script = f"""
from spark_bridge.job.state import States
from tests.state.topologies import topology
States(topology, {place!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    raise StateError(done.stderr.strip().splitlines()[-1])


class Joined(BasicBolt):
    """Both sources' rows, with where they came from, and how many there were before."""

    output_fields = ["component", "value", "before"]

    def initialize(self, conf, context):
        self.before = 0

    def process(self, tup):
        self.emit([tup.component, tup.values[0], self.before])
        self.before += 1


def test_several_sources_and_bolts_that_remember_from_batch_to_batch(
    spark: SparkSession, tmp_path: Path, lines: Lines
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_spout("rows", Rows)
    builder.set_bolt("joined", Joined).shuffle_grouping("words").shuffle_grouping("rows")
    both = builder.build("joined")
    found: dict[int, list[list[object]]] = {}

    def keep(result, batch):
        found[batch] = result.rdd("joined").collect()

    frame = lines.stream(spark, "sentence")
    other = frame.selectExpr("upper(sentence) AS key", "length(sentence) AS n")
    lines.put(["a", "b"])
    told: list[BatchProgress] = []
    with stream_topology(
        both, {"words": frame, "rows": other}, checkpoint=str(tmp_path / "c"), each_batch=keep, progress=told.append
    ) as query:
        query.query.processAllAvailable()
        lines.put(["c"])
        query.query.processAllAvailable()
    rows = [tuple(row) for batch in sorted(found) for row in found[batch]]
    assert sorted(row[:2] for row in rows) == [
        ("rows", "A"), ("rows", "B"), ("rows", "C"), ("words", "a"), ("words", "b"), ("words", "c"),
    ]  # fmt: skip
    assert sorted(row[2] for row in rows) == list(range(6))
    assert [(each.rows, each.acked) for each in told] == [(4, 4), (2, 2)]


class Numbers(Spout):
    output_fields = ["n.th"]


def test_in_which_order_sources_are_given_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    builder = TopologyBuilder()
    both = {name: Lines(tmp_path / name) for name in ("second", "first")}
    for name in both:
        builder.set_spout(name, Numbers)
    builder.set_bolt("joined", Joined).shuffle_grouping("first").shuffle_grouping("second")
    found: list[list[object]] = []
    for names in (["second", "first"], ["first", "second"]):
        for name in names:
            both[name].put([f"{name} {len(found)}"])
        query = stream_topology(
            builder.build("joined"),
            {name: both[name].stream(spark, "n.th") for name in names},
            checkpoint=tmp_path / "checkpoint",
            each_batch=lambda result, batch: found.extend(result.rdd("joined").map(lambda row: row[:2]).collect()),
            trigger={"availableNow": True},
        )
        query.wait(timeout=patient(120))
    assert sorted(map(tuple, found)) == [
        ("first", "first 0"), ("first", "first 2"), ("second", "second 0"), ("second", "second 2"),
    ]  # fmt: skip


def test_a_batch_is_identified_by_all_lists_of_files_since_the_one_before(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    log = QueryLog(spark, str(checkpoint))

    def run() -> None:
        writer = lines.stream(spark).writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(patient(120))

    def rewrite(name: str, text: str | None) -> None:
        path = checkpoint / name
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)

    for line in ("a", "b"):
        lines.put([line])
    run()
    whole = [log.rows(0), log.rows(1)]
    # As after a crash between Spark's second list of files and its plan of the batch: the batch has two lists.
    rewrite("offsets/1", None)
    rewrite("commits/1", None)
    lines.put(["c"])
    run()
    assert (checkpoint / "offsets" / "1").read_text().endswith('\n{"logOffset":2}')
    lists = [(checkpoint / "sources" / "0" / str(number)).read_text() for number in range(3)]
    both = log.rows(1)
    assert log.rows(0) == whole[0]
    assert both not in whole
    for number, text in enumerate(lists):
        rewrite(f"sources/0/{number}", text.replace("/lines/", "/other lines/"))
        assert (log.rows(1) == both) is (number == 0), number
        rewrite(f"sources/0/{number}", text)
    assert log.rows(1) == both
    for number in range(3):
        rewrite(f"sources/0/{number}", None)
    rewrite("sources/0/2.compact", "\n".join(["v1", *(line for text in lists for line in text.split("\n")[1:])]))
    assert log.rows(1) == both


class FailsTwice(BasicBolt):
    output_fields = ["word"]

    def initialize(self, conf, context):
        self.failures = 0

    def process(self, tup):
        if tup[0] == "bad" or (tup[0] == "slow" and self.failures < 2):
            self.failures += 1
            raise ValueError("not yet")
        self.emit([tup[0]])


def test_failed_rows_are_replayed_within_their_batch_and_told_of(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("fails", FailsTwice).shuffle_grouping("words")
    builder.set_bolt("count", Count).shuffle_grouping("fails")
    told: list[BatchProgress] = []
    lines.put(["good", "slow", "good", "bad"])
    query = stream_topology(
        builder.build("failing"),
        {"words": lines.stream(spark)},
        checkpoint=str(tmp_path / "c"),
        trigger={"availableNow": True},
        progress=told.append,
    )
    query.wait(timeout=patient(120))
    assert [(each.rows, each.acked, each.failed, each.replayed, each.lost) for each in told] == [(4, 3, 5, 3, 1)]
    (batch,) = told
    assert batch.process_rate <= 4 / batch.seconds * 1.1
    assert [list(each.values) for each in query.failed] == [["bad"]]


def test_a_plain_topology_counts_as_its_job_does(spark: SparkSession, lines: Lines, tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("split", Split, parallelism=2).shuffle_grouping("words")
    builder.set_bolt("count", Count, parallelism=2).fields_grouping("split", "word")
    plain = builder.build("words")
    highest: Counter[str] = Counter()

    def keep(result, _batch):
        for row in result.dataframe("count").groupBy("word").max("count").collect():
            highest[row[0]] = max(highest[row[0]], row[1])

    lines.put(sentences(0, 30))
    lines.put(sentences(30, 50))
    with stream_topology(
        plain, {"words": lines.stream(spark)}, checkpoint=str(tmp_path / "c"), each_batch=keep
    ) as query:
        query.query.processAllAvailable()
    rdd = spark.sparkContext.parallelize(sentences(0, 50), 2)
    with run_topology(plain, {"words": rdd}, spark) as result:
        assert dict(result.dataframe("count").groupBy("word").max("count").collect()) == highest == words_of(50)


def test_a_checkpoint_on_this_machine_is_written_directly_unless_the_user_says_how(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    key = "spark.sql.streaming.checkpointFileManagerClass"
    with written_directly(spark, str(tmp_path)):
        direct = spark.conf.get(key)
    assert direct.endswith("FileSystemBasedCheckpointFileManager")
    assert spark.conf.get(key, None) is None
    with written_directly(spark, "hdfs://localhost:1/checkpoint"):
        assert spark.conf.get(key, None) is None
    spark.conf.set(key, "shop.NoSuchManager")
    lines.put(sentences(0, 5))
    try:
        with pytest.raises(Exception, match=r"shop\.NoSuchManager"):
            stream_topology(
                topology, {"sentences": lines.stream(spark)}, checkpoint=tmp_path / "c", state=tmp_path / "s"
            ).query.processAllAvailable()
        assert spark.conf.get(key) == "shop.NoSuchManager"
    finally:
        spark.conf.unset(key)
