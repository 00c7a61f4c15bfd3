"""Things that Spark can't use as they are: each gets a sentence with what to do."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.topology.errors import TopologyError
from spark_bridge import ConnectorError, RDDSource, publish
from spark_bridge.job import SparkJobError, run_topology, worker
from spark_bridge.job.layout import Layout
from spark_bridge.job.worker import Job
from spark_bridge.session import session
from spark_bridge.stream import stream_topology
from tests.patience import patient
from tests.spark.job.test_spark_ui import topology

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def pandas_frame() -> object:
    import pandas

    return pandas.DataFrame({"n": [1]})


def arrow_table() -> object:
    import pyarrow

    return pyarrow.table({"n": [1]})


def polars_frame() -> object:
    return type("DataFrame", (), {"__module__": "polars.dataframe.frame"})()


def connect_frame() -> object:
    """Spark Connect's own classes can't be imported without its packages."""
    return type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe", "isStreaming": True})()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (pandas_frame, "pandas.*createDataFrame"),
        (arrow_table, "Arrow.*createDataFrame"),
        (polars_frame, "polars.*createDataFrame"),
        (connect_frame, "Spark Connect, which has no RDDs"),
    ],
    ids=["pandas", "arrow", "polars", "connect"],
)
def test_rows_of_another_library_are_refused_with_how_to_make_them_sparks(
    spark: SparkSession, tmp_path: Path, make: Callable[[], Any], said: str
) -> None:
    frame = make()
    ways: list[Callable[[], object]] = [
        lambda: run_topology(topology, {"numbers": frame}, spark),
        lambda: stream_topology(topology, {"numbers": frame}, checkpoint=tmp_path / "checkpoint"),
        lambda: RDDSource(frame),
        lambda: publish(frame, str(tmp_path / "published")),
    ]
    for way in ways:
        with pytest.raises((TopologyError, ConnectorError), match=said):
            way()


def test_a_session_of_spark_connect_is_refused(spark: SparkSession) -> None:
    connect: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(TopologyError, match="can't run in this session: it belongs to Spark Connect"):
        run_topology(topology, {"numbers": spark.sparkContext.parallelize([1])}, connect)


@pytest.mark.parametrize("package", ["spark_bridge.job", "spark_bridge.stream"])
@pytest.mark.parametrize(
    ("there", "said"),
    [(None, "which is not installed: pip install"), ("3.5.1", "4 or newer, and 3.5.1 is installed: pip install")],
)
def test_the_extra_is_named_where_pyspark_is_missing_or_old(
    tmp_path: Path, package: str, there: str | None, said: str
) -> None:
    if there is not None:
        (tmp_path / "pyspark-3.5.1.dist-info").mkdir()
        (tmp_path / "pyspark-3.5.1.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: pyspark\nVersion: {there}\n"
        )
    # An interpreter without site-packages, but for this folder
    code = f"import sys; sys.path[:0] = {[str(tmp_path), str(ROOT)]!r}; import {package}"
    shown = subprocess.run(
        [sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, timeout=patient(60)
    )
    assert shown.returncode == 1
    last = shown.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {package} needs pyspark"), shown.stderr
    assert said in last
    assert "storm-multilang[spark]" in last


@pytest.mark.parametrize("broken", ["missing", "old"])
def test_a_java_that_can_not_run_spark_is_named(
    spark_programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    said = f"there is no program {tmp_path}/bin/java"
    if broken == "old":
        said = "Java 17 or newer is needed, and that is 'openjdk version \"11.0.2\"'"
        (tmp_path / "bin").mkdir()
        java = tmp_path / "bin" / "java"
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\nexit 1\n")
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if broken == "missing":
        with pytest.raises(SparkJobError, match=said), session("local[1]"):
            pass
        return
    code = "from spark_bridge.session import session\nwith session('local[1]'): pass"  # there is no JVM yet
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=patient(120), env=env)
    assert said in shown.stderr.splitlines()[-1], shown.stderr


def test_another_version_on_the_executors_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(topology, topology.task_ids(1), [], move_in=False)
    job = Job(topology, {}, topology.task_ids(1), layout, [], [], seed=0, round=1, keeps_states=False)
    sent = pickle.dumps(worker.Stage(job, 0, {}))
    assert pickle.loads(sent).level == 0
    monkeypatch.setattr(worker, "__version__", "0.0.7")
    with pytest.raises(SparkJobError, match=rf"\({sys.executable}\) has storm-multilang 0.0.7, the driver's has "):
        pickle.loads(sent)


def test_the_last_traceback_is_the_only_one(spark: SparkSession) -> None:
    rows = spark.sparkContext.parallelize([[1]], 1).map(lambda _: {}[1])  # type: ignore[index]
    with pytest.raises(SparkJobError, match="KeyError: 1") as caught:
        run_topology(topology, {"numbers": rows}, spark)
    assert "Py4J" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "pythonExec",
            "./environment/bin/python",
            r"the executors have no Python './environment/bin/python'.*--archives",
        ),
        ("pythonVer", "3.1", r"the executors' Python \(.*\) is 3\.\d+, and the driver's is 3\.1: name one"),
    ],
)
def test_a_python_that_executors_do_not_have_is_named_with_what_to_do(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    rows = spark.sparkContext.parallelize([1], 1)
    monkeypatch.setattr(spark.sparkContext, name, value)
    with pytest.raises(SparkJobError, match=f"^{said}"):
        run_topology(topology, {"numbers": rows}, spark)
    with pytest.raises(ConnectorError, match=said), closing(RDDSource(rows)) as source:
        source.read(0, 0, 1)
