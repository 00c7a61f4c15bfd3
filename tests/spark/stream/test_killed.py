"""kill -9 of a query's driver: after it was started again, every row has counted once.

Two kills here; with MULTILANG_SOAK=full one at every named step, and a hundred at random moments, on SQLite and on Redis.
"""

from __future__ import annotations

import json
import random
import signal
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from multilang.shipping.errors import ShippingError
from multilang.shipping.maven import Artifact, fetch_jars
from tests.soak import SOAK, soak_only
from tests.spark.stream.conftest import state_of
from tests.spark.stream.drivers import driver, end, killed_at_random
from tests.state.topologies import SENTENCES, words_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import KafkaServer
    from tests.spark.stream.conftest import Lines

RANDOM_KILLS = 100 if SOAK else 1
OF_A_TASK = [f"{phase} {step}" for phase in ("PREPARE", "COMMIT") for step in ("write", "sync", "synced")]
OF_THE_BATCH = [f"{state} {step}" for state in ("PREPARING", "COMMITTING", "COMMITTED") for step in ("write", "synced")]
STEPS = [
    "count-1|COMMIT write",
    "$checkpointspout-0|PREPARING write",
    "$checkpointspout-0|COMMITTED done",
    *(f"{task}|{step}" for task in ("count-0", "count-1", "lengths-0") for step in OF_A_TASK),
    *(f"$checkpointspout-0|{step}" for step in OF_THE_BATCH),
]


def fill(lines: Lines, files: int) -> None:
    for number in range(files):
        lines.put([SENTENCES[n % 5] for n in range(100 * number, 100 * number + 100)])


@soak_only
@pytest.mark.parametrize("durable", ["sqlite", "redis"] if SOAK else ["sqlite"], indirect=True)
@pytest.mark.timeout(600 + (150 * len(STEPS) if SOAK else 0))
def test_a_driver_killed_at_steps_of_the_commit(
    spark_programs: None, lines: Lines, durable, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    steps = STEPS if SOAK else STEPS[:1]
    if "redis" in request.node.name:
        # A commit there is one step, with nothing between the script and its answer.
        steps = [each for each in steps if not each.endswith("COMMIT sync")]
    fill(lines, len(steps) + 1)
    for number, step in enumerate(steps):
        process = driver("killed_query", tmp_path, durable, CRASHES=f"{step}|1|{tmp_path / f'crash-{number}'}")
        _, said = end(process)
        assert process.returncode == -signal.SIGKILL, (step, said[-3000:])
    process = driver("killed_query", tmp_path, durable)
    found, said = end(process)
    assert process.returncode == 0, said[-3000:]
    assert json.loads(found.splitlines()[-1]) == [True, True]
    assert state_of(durable) == words_of(100 * (len(steps) + 1))


@soak_only
@pytest.mark.parametrize("durable", ["sqlite", "redis"] if SOAK else ["redis"], indirect=True)
@pytest.mark.timeout(600 + 150 * RANDOM_KILLS)
def test_a_driver_killed_at_random_moments(spark_programs: None, lines: Lines, durable, tmp_path: Path) -> None:
    chance = random.Random(10)
    kills = files = 0
    while kills < RANDOM_KILLS:
        for _ in range(3):
            lines.put([SENTENCES[n % 5] for n in range(100 * files, 100 * files + 100)])
            files += 1
        kills += killed_at_random(driver("killed_query", tmp_path, durable), tmp_path, chance, not kills % 2)
    process = driver("killed_query", tmp_path, durable)
    _, said = end(process, secs=300 + 10 * files)  # there may be nearly all of them left
    assert process.returncode == 0, said[-3000:]
    assert state_of(durable) == words_of(100 * files)


def connector_of_kafka(folder: Path) -> str:
    """The jars of Spark's connector to Kafka, by Maven."""
    version = metadata.version("pyspark")
    try:
        fetch_jars([Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", version)], folder)
    except ShippingError as problem:
        pytest.skip(
            f"Maven has no connector of Spark {version} to Kafka, which another version of pyspark has: {problem}"
        )
    needed = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
    return ",".join(str(jar) for jar in sorted(folder.iterdir()) if jar.name.startswith(needed))


@soak_only
@pytest.mark.parametrize("durable", ["sqlite", "redis"], indirect=True)
@pytest.mark.timeout(1800)
def test_a_driver_that_reads_kafka_killed_at_random_moments(
    spark_programs: None, kafka: KafkaServer, durable, tmp_path: Path
) -> None:
    jars = connector_of_kafka(tmp_path / "jars")
    chance = random.Random(11)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    if "lines" in admin.list_topics(timeout=60).topics:
        admin.delete_topics(["lines"])["lines"].result(60)
    admin.create_topics([NewTopic("lines", 3, 1)])["lines"].result(60)
    producer = Producer({"bootstrap.servers": kafka.address})
    environment = {"KAFKA": kafka.address, "KAFKA_JARS": jars}
    kills = sent = 0
    while kills < 10:
        for number in range(sent, sent + 900):
            producer.produce("lines", SENTENCES[number % 5], partition=number % 3)
        sent += 900
        assert producer.flush(60) == 0
        kills += killed_at_random(
            driver("killed_query", tmp_path, durable, **environment), tmp_path, chance, not kills % 2
        )
    process = driver("killed_query", tmp_path, durable, **environment)
    _, said = end(process, secs=900)
    assert process.returncode == 0, said[-3000:]
    assert state_of(durable) == words_of(sent)


@soak_only
def test_a_query_that_is_stopped_in_a_batch_ends_without_a_word(
    spark_programs: None, lines: Lines, tmp_path: Path
) -> None:
    lines.put(["moon"])
    process = driver("stopped_query", tmp_path, {})
    found, said = end(process)
    assert (process.returncode, found) == (0, "None\n"), said[-3000:]
    assert "\tat " not in said  # no stack of Java's


@soak_only
def test_queries_count_for_themselves_where_pyspark_pins_no_threads(
    spark_programs: None, lines: Lines, tmp_path: Path
) -> None:
    lines.put(["moon moon cow"])
    process = driver("two_queries", tmp_path, {}, PYSPARK_PIN_THREAD="false")
    _, said = end(process)
    assert process.returncode == 0, said[-3000:]
    assert state_of(str(tmp_path / "state")) == {"moon": 4, "cow": 2}
