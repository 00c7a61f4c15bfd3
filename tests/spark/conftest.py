"""One Spark for the tests of each folder here: a session of this process, on two cores, that listens on loopback alone."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.patience import patient
from tests.soak import SOAK, chosen
from tests.spark.jvm import archived, environment
from tests.state.conftest import conf_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
# Spark starts processes, and the machine may be busy; at full numbers one test makes hundreds of jobs.
LIMIT_SECS = 3600 if SOAK else 600
# Those that share a session run in one process: one JVM.
SPOUTS = "test_spout_source.py"


def group(path: Path) -> str:
    """Return the group of the tests in a file."""
    return "spark sources" if path.parent.name == "sources" or path.name == SPOUTS else "spark job"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leaves_sockets = metadata.version("pyspark").startswith(("4.0.", "4.1."))  # to the garbage collector
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(LIMIT_SECS))
            if leaves_sockets:
                item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
                # The exceptions of these warnings would keep what the jobs brought.
                item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            if "spark" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(group(item.path)))


@pytest.fixture(params=chosen(["sqlite", "redis"], "redis"))
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, object]:
    """A topology's conf that names a state provider."""
    return conf_of(request.param, request, tmp_path)


@pytest.fixture(scope="session")
def spark_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        reason = "no java here, which Spark needs (17 or newer)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch, archived():
        for name, value in environment(tmp_path_factory.mktemp("spark-home")).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark(spark_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    former = dict(os.environ)
    os.environ.update(
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(folder),
    )
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.task.maxFailures": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2, 4]").appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        jvm = session.sparkContext._gateway.proc
        session.stop()
        session.sparkContext._gateway.shutdown()
        jvm.stdin.close()
        jvm.wait(patient(60))
        os.environ.clear()
        os.environ.update(former)
