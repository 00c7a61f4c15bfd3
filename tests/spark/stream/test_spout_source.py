"""A spout as a source of Spark: every row through real queries, over restarts and kills of the spout and of the driver."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import LongType, StringType, StructField, StructType

from multilang.component.errors import ConfigError
from multilang.local import LocalCluster
from multilang.state import StateError
from multilang.topology import TopologyError, load_topology
from multilang.topology.commands import local_start
from multilang.topology.identity import submission
from spark_bridge.job import SparkJobError
from spark_bridge.stream import register_spouts, stream_topology
from spark_bridge.stream.spout_log import SpoutLog
from spark_bridge.stream.spout_options import SpoutOptions
from spark_bridge.stream.spout_source import SpoutReader, StormSpoutSource
from tests.patience import patient
from tests.servers import wait_for
from tests.soak import SOAK, chosen, soak_only
from tests.spark.stream.conftest import state_of
from tests.state.topologies import build, exact, words_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
HERE = "tests.spark.stream.spouts"
CHILD = str(ROOT / "tests" / "spark" / "job" / "spout_child.py")
KILLS = 30 if SOAK else 1


class Seen:
    """The rows of each batch, as a query gives them; a batch that comes again has to be the same."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        register_spouts(spark)
        self.spark = spark
        self.folder = folder
        self.batches: dict[int, list[list[Any]]] = {}

    def run(self, schema: str | None = None, **options: str) -> None:
        """All that there is."""
        reader = self.spark.readStream.format("storm_spout").options(log=str(self.folder / "log"), **options)
        frame = (reader.schema(schema) if schema else reader).load()
        writer = frame.writeStream.foreachBatch(self._keep).option(
            "checkpointLocation", str(self.folder / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    def _keep(self, rows, batch):
        found = sorted([list(row) for row in rows.collect()], key=repr)
        assert self.batches.setdefault(batch, found) == found

    @property
    def rows(self) -> list[list[Any]]:
        return sorted((row for batch in self.batches.values() for row in batch), key=repr)


@pytest.fixture
def seen(spark: SparkSession, tmp_path: Path) -> Seen:
    return Seen(spark, tmp_path)


def fill(queue: Path, first: int, end: int) -> list[str]:
    queue.mkdir(exist_ok=True)
    for n in range(first, end):
        (queue / f"{n:05}").touch()
    return [f"{n:05}" for n in range(end)]


def test_a_spout_without_a_source_runs_as_it_is_and_counts_once_over_a_repeated_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    place, checkpoint = tmp_path / "state", tmp_path / "c"

    def run(sentences: int) -> int:
        conf = {"test.sentences": sentences}
        with stream_topology(
            exact, {}, checkpoint=str(checkpoint), state=place, conf=conf, trigger={"availableNow": True}
        ) as query:
            query.wait()
            return query.query.lastProgress.batchId

    last = run(50)
    assert state_of(place) == words_of(50)
    # As if the driver had died before the batch was committed: Spark asks for what lies between two offsets.
    for name in (str(last), f".{last}.crc"):
        (checkpoint / "commits" / name).unlink()
    with ThreadPoolExecutor(1) as other:  # a thread of its own has no active session in Spark
        other.submit(run, 80).result()
    assert state_of(place) == words_of(80)
    (checkpoint / "spouts" / "sentences.log").unlink()
    with pytest.raises(SparkJobError, match=r"^the checkpoint is not that of the spout log .*begin a new checkpoint$"):
        run(90)
    inside = build()
    with pytest.raises(TopologyError, match=r"'sentences' has no source, and can't run as it is .*make it in a module"):
        stream_topology(inside, {}, checkpoint=str(checkpoint))
    with pytest.raises(TopologyError, match=r"http://h/c is no folder on this machine, where the log"):
        stream_topology(exact, {}, checkpoint="http://h/c")
    with pytest.raises(TopologyError, match=r'checkpoint cloud://h/c is nowhere .*for scheme "cloud"'):
        stream_topology(exact, {}, checkpoint="cloud://h/c")


def test_a_spouts_log_is_in_its_checkpoint_however_that_is_written(spark: SparkSession, tmp_path: Path) -> None:
    for n, folder in enumerate(chosen([tmp_path / "a #1?é 50%", tmp_path / "a #2?é 50%"], tmp_path / "a #1?é 50%")):
        place, conf = str(tmp_path / f"state{n}"), {"test.sentences": 10 * (n + 1)}
        for checkpoint in (str(folder), f"file://{folder}", f"file:{folder}"):
            stream_topology(
                exact, {}, checkpoint=checkpoint, state=place, conf=conf, trigger={"availableNow": True}
            ).wait()
        assert state_of(place) == words_of(10 * (n + 1))
        assert {each.name for each in folder.iterdir()} >= {"commits", "offsets", "spouts"}


@soak_only
def test_a_source_that_starts_too_slowly_for_spark_is_started_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = tmp_path / "first"
    python = tmp_path / "python"
    python.write_text(
        f"""#!/bin/sh
case "$*" in *streaming_source*) mkdir {first} 2>/dev/null && sleep 15;; esac  # Spark waits for ten seconds
exec {sys.executable} "$@"
"""
    )
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    place = str(tmp_path / "state")
    with stream_topology(
        exact,
        {},
        checkpoint=str(tmp_path / "c"),
        state=place,
        conf={"test.sentences": 20},
        trigger={"availableNow": True},
    ) as query:
        query.wait(timeout=patient(300))
    assert state_of(place) == words_of(20)
    assert first.is_dir()
    assert [each.message for each in caplog.records if "is restarted from its checkpoint" in each.message]


def test_bolts_get_the_values_that_a_spout_without_a_source_emitted(spark: SparkSession, tmp_path: Path) -> None:
    found: list[Any] = []
    topology = load_topology(str(ROOT / "tests" / "spark" / "stream" / "spouts.py") + ":echo")
    with stream_topology(
        topology,
        {},
        checkpoint=tmp_path / "c",
        each_batch=lambda result, _: found.extend(map(list, result.rdd("echo").collect())),
        trigger={"availableNow": True},
    ) as query:
        query.wait()
    assert sorted(found, key=repr) == [
        [0, "NoneType", None],
        [1, "str", "text"],
        [2, "dict", {"a": 1}],
        [3, "float", 2.5],
        [4, "bool", True],
    ]


@pytest.mark.parametrize("durable", ["sqlite", "redis"] if SOAK else ["sqlite"], indirect=True)
def test_a_spout_goes_on_where_the_embedded_cluster_left_it_and_back(
    spark: SparkSession, durable, tmp_path: Path
) -> None:
    def query(checkpoint: str, sentences: int, batch: Any = None) -> None:
        with stream_topology(
            exact,
            {},
            checkpoint=str(tmp_path / checkpoint),
            state=durable,
            conf={"test.sentences": sentences},
            each_batch=batch,
            trigger={"availableNow": True},
        ) as running:
            running.wait()

    def embedded(sentences: int) -> None:
        with LocalCluster(mode="inprocess", conf={**durable, "test.sentences": sentences}) as cluster:
            cluster.submit(exact).wait(timeout=patient(120))

    embedded(50)
    query("first", 81)
    assert state_of(durable) == words_of(81)
    query("first", 90)
    assert state_of(durable) == words_of(90)
    embedded(100)
    assert state_of(durable) == words_of(100)
    with pytest.raises(TopologyError, match=r"has advanced without this query, and spout 'sentences' .*new checkpoint"):
        query("first", 120)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    # What is in the log and in no batch that was committed is read again by whoever goes on from the state.
    with pytest.raises(ZeroDivisionError):
        query("second", 120, broken)
    embedded(110)
    with pytest.raises(TopologyError, match=r"has advanced without this query"):
        query("second", 120)
    query("third", 130)
    assert state_of(durable) == words_of(130)
    with pytest.raises(ZeroDivisionError):
        query("third", 140, broken)
    query("third", 150)
    assert state_of(durable) == words_of(150)


@pytest.mark.parametrize("where", chosen(["next_tuple", "ack"], "ack"))
def test_nothing_is_lost_when_the_spouts_process_is_killed(seen: Seen, tmp_path: Path, where: str) -> None:
    queue = tmp_path / "queue"
    items = fill(queue, 0, 100)
    conf = json.dumps({"test.queue": str(queue), "test.die": [where, str(tmp_path / "died")]})
    options = {"spout": f"{HERE}.Queue", "conf": conf, "batch_size": "30"}
    with pytest.raises(StreamingQueryException):
        seen.run(**options)
    assert any(queue.iterdir())
    seen.run(**options)
    assert not any(queue.iterdir())
    found = [row[0] for row in seen.rows]
    assert sorted(set(found)) == items
    # Emitted and not logged: comes again. Logged and not acked: comes twice.
    twice = [item for item in items if found.count(item) == 2]
    assert (len(found) - len(items), twice[:1]) == (len(twice), {"next_tuple": [], "ack": ["00055"]}[where])
    items = fill(queue, 100, 110)
    seen.run(**options)
    assert sorted({row[0] for row in seen.rows}) == items


def test_a_spout_in_another_language_and_one_without_ids(spark: SparkSession, tmp_path: Path) -> None:
    shell = Seen(spark, tmp_path / "shell")
    conf = json.dumps({"test.folder": str(tmp_path)})
    command = f"{sys.executable} {CHILD} 60 tells"
    shell.run(
        "key string, n long",
        command=command,
        spout="numbers",
        fields="key, n",
        parallelism="2",
        batch_size="25",
        conf=conf,
    )
    assert sorted(shell.rows) == sorted([f"k{n % 3}", n] for n in range(60))
    assert len(shell.batches) >= 3
    told = [line for file in tmp_path.glob("told-*") for line in file.read_text().splitlines()]
    assert sorted(told) == sorted(f"ack {n}" for n in range(60))
    odd = Seen(spark, tmp_path / "odd")
    odd.run("n int, half double", spout=f"{HERE}:plain", stream="odd")
    assert sorted(odd.rows) == [[n, n / 2] for n in range(1, 20, 2)]


def test_the_option_command_names_files_as_the_caller_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "read.py").write_text("")
    options = {"log": "log", "fields": "n", "spout": "numbers"}
    topology = SpoutOptions({**options, "command": "python3 read.py"}).topology
    assert local_start(topology["numbers"], {}) == (["python3", "read.py"], str(tmp_path))
    with pytest.raises(
        TopologyError, match=f"names 'nosuch.py', but no such file is in the topology's folder {tmp_path}"
    ):
        SpoutOptions({**options, "command": "python3 nosuch.py"})


@soak_only
@pytest.mark.timeout(600 + 150 * KILLS)
def test_a_driver_that_is_killed_loses_nothing_and_counts_nothing_twice(spark_programs: None, tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    chance = random.Random(10)
    numbers = 0

    def run(last: int) -> subprocess.Popen[bytes]:
        options = {
            "topology": f"{HERE}:topology",
            "spout": "numbers",
            "batch_size": "40",
            "conf": json.dumps({"test.numbers": numbers}),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream.killed_spout", str(tmp_path), json.dumps(options), str(last)],
            cwd=ROOT,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def end(process: subprocess.Popen[bytes]) -> str:
        try:
            return process.communicate(timeout=patient(300))[1].decode()
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def batches() -> dict[int, list[Any]]:
        """By number; those that were repeated had the same rows."""
        found: dict[int, list[Any]] = {}
        for file in (tmp_path / "seen").glob("[0-9]*"):
            rows = sorted(json.loads(file.read_text()))
            assert found.setdefault(int(file.name.partition("-")[0]), rows) == rows
        return found

    for kill in range(KILLS):
        numbers += 200
        if not kill:  # between a batch's rows and its commit
            process = run(1)
            said = end(process)
            assert process.returncode == -signal.SIGKILL, said[-3000:]
            assert sorted(batches()) == [0, 1]
        else:
            there = len(batches())
            process = run(-1)
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline and len(batches()) == there:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 2))
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            end(process)
    process = run(-1)
    said = end(process)
    assert process.returncode == 0, said[-3000:]
    assert sorted(int(row[0]) for rows in batches().values() for row in rows) == list(range(numbers))


def reader(folder: Path, schema: str | None = None, **options: str) -> SpoutReader:
    source = StormSpoutSource({"log": str(folder / "log"), **options})
    columns = [each.split() for each in (schema or source.schema()).split(", ")]
    kinds = {"long": LongType(), "string": StringType()}
    return source.streamReader(StructType([StructField(name.strip("`"), kinds[kind]) for name, kind in columns]))


def rows_of(source: SpoutReader, start: Any, end: Any) -> list[tuple[Any, ...]]:
    return [row for partition in source.partitions(start, end) for row in source.read(partition)]


def test_values_take_the_types_of_the_schema_and_others_are_json(tmp_path: Path) -> None:
    source = reader(tmp_path, "n long, value string", spout=f"{HERE}.Numbers")
    start = source.initialOffset()
    end = source.latestOffset(start)
    assert rows_of(source, start, end) == [(0, None), (1, "text"), (2, '{"a":1}'), (3, "2.5"), (4, "true")]
    assert source.partitions(end, end) == []
    source.stop()
    # What was logged and is in no batch is there for the next one, before anything new.
    again = reader(
        tmp_path, "n long, value string", spout=f"{HERE}.Numbers", conf='{"test.numbers": 8}', batch_size="3"
    )
    assert again.initialOffset() == start
    assert again.latestOffset(start) == end
    later = again.latestOffset(end)
    assert [row[0] for row in rows_of(again, end, later)] == [5, 6, 7]
    again.commit(end)
    with pytest.raises(SparkJobError, match=r"the checkpoint continues at row 0, and the spout log .* has rows 5 to 8"):
        again.partitions(start, later)
    again.stop()
    wider = reader(tmp_path, "n long, value string", spout=f"{HERE}.Numbers", parallelism="2")
    with pytest.raises(TopologyError, match=r"has the positions of 1 tasks, and spout 'Numbers' has 2 now"):
        wider.latestOffset(later)
    wider.stop()
    wrong = reader(tmp_path / "wrong", "n long, value long", spout=f"{HERE}.Numbers")
    with pytest.raises(
        SparkJobError, match=r"spout 'Numbers' emitted 'text' for the field 'value', whose column is a bigint"
    ):
        wrong.latestOffset(wrong.initialOffset())
    assert wrong.latestOffset.__self__._spout.log.next == 0
    wrong.stop()


def test_available_now_reads_to_the_end_also_behind_other_streams_and_no_further(seen: Seen) -> None:
    seen.run("n long", spout=f"{HERE}.Late", batch_size="20")
    assert seen.rows == [[n] for n in range(40, 50)]


def test_a_spout_that_dies_goes_on_at_the_position_of_what_is_logged(tmp_path: Path) -> None:
    source = reader(
        tmp_path, "n long, value string", spout=f"{HERE}.DiesBetween", batch_size="3", conf='{"test.numbers": 10}'
    )
    source.prepareForTriggerAvailableNow()
    offsets = [source.initialOffset()]
    while len(offsets) == 1 or offsets[-1] != offsets[-2]:
        offsets.append(source.latestOffset(offsets[-1]))
    assert [n for n, _ in rows_of(source, offsets[0], offsets[-1])] == [*range(10)]
    source.stop()


def test_what_a_slow_spout_has_does_not_wait_for_a_whole_batch(tmp_path: Path) -> None:
    source = reader(tmp_path, "n long", spout=f"{HERE}.Slow", batch_size="1000000000")
    source.prepareForTriggerAvailableNow()
    start = source.initialOffset()
    assert rows_of(source, start, source.latestOffset(start))
    source.stop()


def test_one_batch_of_all_that_there_is_has_also_what_a_slow_spout_has(tmp_path: Path) -> None:
    whole = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.2").ReadAllAvailable()
    source = reader(tmp_path, "n long", spout=f"{HERE}.Slow", batch_size="10", conf='{"test.numbers": 150}')
    start = source.initialOffset()
    assert len(rows_of(source, start, source.latestOffset(start, whole))) == 150
    source.stop()


@pytest.mark.parametrize("blocks", [False, True])
def test_a_spout_that_is_waited_for_ends_with_the_driver(tmp_path: Path, blocks: bool) -> None:
    asked, conf = tmp_path / "asked", json.dumps({"test.asked": str(tmp_path / "asked"), "test.blocks": blocks})
    script = f"""
from pathlib import Path
from tests.spark.stream.test_spout_source import HERE, reader
source = reader(Path({str(tmp_path)!r}), spout=f"{{HERE}}.Waiting", conf={conf!r})
source.prepareForTriggerAvailableNow()
source.latestOffset(source.initialOffset())
"""
    driver = subprocess.Popen(
        ["sh", "-c", '"$0" -c "$1" & wait', sys.executable, script], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: asked.exists() and asked.read_text(), "the spout is asked")
    finally:
        driver.kill()
        driver.wait()

    def is_free() -> bool:
        try:
            SpoutLog(str(tmp_path / "log")).close()
        except StateError:
            return False
        return True

    try:
        wait_for(is_free, "its log can be used by the next query")
    except BaseException:
        os.kill(int(asked.read_text()), signal.SIGKILL)
        raise


def test_what_can_not_be_a_source_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.js").touch()
    for options, said in (
        ({}, r"storm_spout needs a spout, by one of"),
        ({"spout": f"{HERE}.Numbers", "batch_siz": "1"}, r"has no option 'batch_siz'.*batch_size"),
        ({"spout": f"{HERE}.Numbers", "batch_size": "0"}, r"batch_size is '0'; use a whole number from 1"),
        ({"spout": f"{HERE}.Numbers", "fields": "a"}, r"fields is fixed by the spout itself"),
        ({"spout": f"{HERE}.Numbers", "conf": "[1]"}, r"conf is a JSON object"),
        ({"topology": f"{HERE}:topology", "spout": "number"}, r"'number' is no spout of 'numbers'.*numbers"),
        ({"spout": f"{HERE}:plain", "stream": "even"}, r"has no stream 'even'"),
        ({"spout": f"{HERE}.Silent"}, r"name the fields of its tuples, output_fields of Silent"),
        (
            {"command": "node orders.js"},
            r"'node' has no stream to read: name the fields of its tuples, the option fields",
        ),
    ):
        with pytest.raises(TopologyError, match=said):
            reader(tmp_path, **options)
    with pytest.raises(TopologyError, match=r"node.*gone.js.*no such file is in"):
        reader(tmp_path, command="node gone.js", fields="a")
    with pytest.raises(TopologyError, match=r"needs the option log: a file on the driver's machine"):
        StormSpoutSource({"spout": f"{HERE}.Numbers"}).schema()
    with pytest.raises(TopologyError, match=r"emits the fields n, value, and the schema has m, value"):
        reader(tmp_path, "m long, value string", spout=f"{HERE}.Numbers")
    with pytest.raises(TopologyError, match=r"readStream.format\('storm_spout'\).*run_topology"):
        StormSpoutSource({"log": "x", "spout": f"{HERE}.Numbers"}).reader(StructType())
    broken = reader(tmp_path, spout=f"{HERE}.Broken")
    start = broken.initialOffset()
    for _ in range(4):
        assert broken.latestOffset(start) == start
    with pytest.raises(SparkJobError, match=r"died 5 times without emitting a tuple: .*no more of this"):
        broken.latestOffset(start)
    one = broken.initialOffset()
    script = f"from spark_bridge.stream.spout_log import SpoutLog\nSpoutLog({str(tmp_path / 'log')!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"the spout log in the SQLite file {tmp_path}/log is in use" in done.stderr
    broken.stop()
    with pytest.raises(
        SparkJobError, match=r"the spout log .*/log is that of another spout: its id was 'Broken', and is 'Numbers'"
    ):
        reader(tmp_path, spout=f"{HERE}.Numbers").initialOffset()
    other = SpoutLog(str(tmp_path / "other"))
    with pytest.raises(SparkJobError, match=r"the checkpoint is not that of the spout log .*/other"):
        other.forget(one)
    with pytest.raises(SparkJobError, match=r"the checkpoint is not .* or of another kind of source"):
        other.number(7)  # as Spark's rate says it
    other.close()
    (tmp_path / "text").write_text("no log at all, but a text that is long enough to be read as something else" * 20)
    with pytest.raises(StateError, match=r"the SQLite file .*/text is damaged"):
        SpoutLog(str(tmp_path / "text"))


def test_processes_of_the_same_number_and_host_name_have_a_log_one_after_the_other(tmp_path: Path) -> None:
    # As in two containers. The number is that of a process that is there, so that neither owner is taken for dead.
    script = (
        f"import os, sys\nos.getpid = lambda: {os.getpid()}\n"
        f"from spark_bridge.stream.spout_log import SpoutLog\nlog = SpoutLog({str(tmp_path / 'log')!r})\n"
        "print('mine', flush=True)\nsys.stdin.read()\nlog.append([[1]], {})\nlog.close()"
    )
    command = [sys.executable, "-c", script]
    first = subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdin is not None
    assert first.stdout is not None
    assert first.stdout.readline() == "mine\n"
    second = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, input="", check=False)
    assert f"the spout log in the SQLite file {tmp_path}/log is in use by topology 'a streaming query'" in second.stderr
    first.communicate("")
    assert first.returncode == 0
    log = SpoutLog(str(tmp_path / "log"))
    again = SpoutLog(str(tmp_path / "log"))  # this process has it already
    assert (log.next, again.next) == (1, 1)
    with pytest.raises(StateError, match="taken over"):
        log.append([[2]], {})
    again.close()
    log.close()


def test_another_topology_than_the_one_that_was_submitted_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "by_arguments.py"
    file.write_text(
        "import sys\n"
        "from multilang import Spout, TopologyBuilder\n"
        "class Numbers(Spout):\n"
        "    output_fields = ['n']\n"
        "    def __init__(self, first): self.first = first\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('numbers', Numbers(sys.argv[1:]))\n"
        "topology = builder.build('numbers')\n"
    )
    own = sys.argv[:]
    topology = load_topology(str(file))
    options = {"topology": str(file), "spout": "numbers", "log": str(tmp_path / "log")}
    told = submission(topology, sys.argv, "numbers")
    assert SpoutOptions({**options, "submission": json.dumps(told)}).fields == ["n"]
    told["components"]["numbers"]["the argument 'first' of Numbers"] = "of another list"
    with pytest.raises(ConfigError, match=r"component 'numbers' of .* the argument 'first' of Numbers differs"):
        SpoutOptions({**options, "submission": json.dumps(told)})
    assert sys.argv == own
