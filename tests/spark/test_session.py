"""The Spark that the tests beside this one run on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.topology import load_topology
from spark_bridge import RDDSource, SourceError
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.session import MasterError, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_job_runs_in_python_processes_of_this_very_interpreter(spark: SparkSession) -> None:
    def executable(_rows: object) -> list[str]:
        return [sys.executable]

    found = spark.sparkContext.parallelize([1, 2], 2).mapPartitions(executable).collect()
    assert found == [sys.executable] * 2


def test_it_listens_on_loopback_alone(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.parametrize("master", ["local[x]", "locl[2]", "local[0]", "local[2", "spark://", "sc://there", ""])
def test_a_master_that_spark_does_not_know_is_refused_before_anything_starts(master: str) -> None:
    with pytest.raises(MasterError, match=r"is no master of Spark's: use local\[2\]"), session(master):
        pass


def test_a_session_of_ours_has_its_python_workers_when_it_is_up_and_others_may_come_after_it(
    spark_programs: None,
) -> None:
    code = """
import os
import socket
import struct
from pyspark.sql import SparkSession
from spark_bridge.session import session
from tests.spark.sources.test_chaos import python_workers

def said(port):
    # One request of Spark's RPC: length of the frame, kind 3, number, length of the body, body.
    body = b"evil"
    with socket.create_connection(("127.0.0.1", port), 60) as wire:
        wire.sendall(struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), 3, 1, len(body)) + body)
        return wire.recv(65536)


os.environ["SPARK_SECRET"] = "of the environment"
for conf in ({}, {"spark.authenticate.secret": '{"env": "SPARK_SECRET"}', "spark.network.crypto.enabled": "true"}):
    with session("local[2]", conf=conf) as spark:
        conf = spark.sparkContext.getConf()
        answer = said(int(conf.get("spark.driver.port")))
        assert b"StreamCorrupted" not in answer, "it read an object of somebody without its secret"
        assert b"challenge" in answer or b"SASL" in answer.upper() or not answer, answer
        folder = conf.get("spark.python.unix.domain.socket.dir")
        assert [name for name in os.listdir(folder) if name.endswith(".sock")], "no sockets there"
        print(len(python_workers(os.getpid())))
assert conf.get("spark.authenticate.secret") == "of the environment"
spark = SparkSession.builder.master("local[2]").getOrCreate()  # in the same JVM, which has our settings
assert spark.sparkContext.parallelize(range(10)).map(lambda n: 2 * n).sum() == 90
spark.stop()
print(folder)
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    assert shown.returncode == 0, shown.stderr
    first, second, folder = shown.stdout.splitlines()
    assert min(int(first), int(second)) >= 2  # the process that forks them, and one at least
    assert not Path(folder).exists()


def test_executors_whose_python_lacks_the_library_are_named_with_what_to_do(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    due = rf"No module named '\w+' in the executors' Python \({bare}\): install it there, or name another .* PYSPARK_PYTHON"
    rdd = spark.sparkContext.parallelize(["a b"], 1)
    with pytest.raises(SourceError, match=due):
        RDDSource(rdd).read(0, 0, 1)
    topology = load_topology(str(Path(__file__).parents[2] / "examples/word_count.py"))
    with pytest.raises(SparkJobError, match=f"^{due}") as caught:
        run_topology(topology, {"sentences": rdd}, spark)
    assert "\n" not in str(caught.value)
