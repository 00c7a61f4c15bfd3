"""The manual's page on clusters, followed on a standalone cluster whose machines have no storm-multilang."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patient
from tests.soak import soak_only
from tests.spark.job.test_cluster import ROOT, is_loopback, master

__all__ = ["master"]  # a fixture
pytestmark = [
    soak_only,
    pytest.mark.skipif(not is_loopback("127.0.0.2"), reason="127.0.0.2 is no address here (macOS)"),
]

DRIVER = """
from pyspark.sql import SparkSession
from spark_bridge.job import run_topology
from words import topology

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    rows = spark.sparkContext.parallelize(["the cow jumped over the moon"] * 1000, 4)
    with run_topology(topology, {"sentences": rows}, spark) as result:
        counts = result.dataframe("count").groupBy("word").max("count").collect()
        print("counted", result.acked, sorted(map(tuple, counts)))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    subprocess.run([sys.executable, "-m", "venv", "env"], cwd=folder, check=True)
    subprocess.run([folder / "env/bin/pip", "install", "-q", ROOT], cwd=folder, check=True)
    subprocess.run(
        [sys.executable, "-m", "multilang", "archive", "env", "-o", "env.tgz"],
        cwd=folder,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    (folder / "driver.py").write_text(DRIVER)
    (folder / "words.py").write_bytes((ROOT / "examples" / "word_count.py").read_bytes())
    (folder / "book.txt").write_text("the cow jumped over the moon\n" * 1000)
    return folder


def environment(folder: Path, python: str) -> dict[str, str]:
    """Return the variables of a machine that has Spark, Java and no Python with storm-multilang on its path."""
    import pyspark

    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "JAVA_HOME", "LANG", "TMPDIR")}
    return {
        **kept,
        "PATH": "/usr/bin:/bin",
        "SPARK_HOME": next(iter(pyspark.__path__)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_DRIVER_PYTHON": str(folder / "env/bin/python"),
        "PYSPARK_PYTHON": python,
    }


def submitted(folder: Path, master: str, *options: str, python: str) -> subprocess.CompletedProcess[str]:
    env = environment(folder, python)
    return subprocess.run(
        [
            f"{env['SPARK_HOME']}/bin/spark-submit", "--master", master, "--conf", "spark.executor.memory=512m",
            "--conf", "spark.ui.enabled=false", *options, "driver.py",
        ],
        cwd=folder, env=env, capture_output=True, text=True, timeout=patient(600), stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_environment_goes_along_in_an_archive(archive: Path, master: str) -> None:
    counts = [
        (word, 1000 * number) for word, number in (("cow", 1), ("jumped", 1), ("moon", 1), ("over", 1), ("the", 2))
    ]
    done = submitted(
        archive,
        master,
        "--archives",
        "env.tgz#environment",
        "--py-files",
        "words.py",
        python="./environment/bin/python",
    )
    assert f"counted 1000 {counts}" in done.stdout, done.stderr[-3000:]
    ours = subprocess.run(
        [
            sys.executable, "-m", "multilang", "spark", "words.py", "--source", f"sentences={archive}/book.txt",
            "--output", str(archive / "counts"), "--master", master, "--spark-conf", "spark.archives=env.tgz#environment",
            "--spark-conf", "spark.executor.memory=512m",
        ],
        cwd=archive, capture_output=True, text=True, timeout=patient(600), stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": "./environment/bin/python", "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert ours.returncode == 0, ours.stderr[-3000:]
    assert "1,000 tuples acked" in ours.stdout + ours.stderr
    assert any('{"word":"the","count":2000}' in part.read_text() for part in (archive / "counts/count").glob("part-*"))


def test_executors_without_the_library_are_told(archive: Path, master: str) -> None:
    plain = submitted(archive, master, "--py-files", "words.py", python="/usr/bin/python3")
    assert plain.returncode
    missing = (
        r"No module named '(spark_bridge|multilang)' in the executors' Python \(/usr/bin/python3\): install it there"
    )
    assert re.search(missing, plain.stdout), plain.stdout[-3000:]  # which has what the driver said
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", archive / "library.zip", "multilang", "spark_bridge"],
        cwd=ROOT,
        check=True,
    )
    zipped = submitted(archive, master, "--py-files", "words.py,library.zip", python="/usr/bin/python3")
    assert zipped.returncode
    missing = r"No module named 'ujson' in the executors' Python \(/usr/bin/python3\): install it there"
    assert re.search(missing, zipped.stdout), zipped.stdout[-3000:]
