"""The Spark that the tests beside this one run on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from multilang.component.errors import ConfigError
from multilang.topology import load_topology
from spark_bridge import ConnectorError, RDDSource
from spark_bridge.job import SparkJobError, run_topology
from spark_bridge.session import session
from tests.patience import patient

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
    with pytest.raises(ConfigError, match=r"is no master of Spark's: use local\[2\]"), session(master):
        pass


def test_a_session_of_ours_has_its_python_workers_when_it_is_up_and_others_may_come_after_it(
    spark_programs: None, tmp_path: Path
) -> None:
    code = """
import os
import socket
import stat
import struct
import tempfile
from pathlib import Path
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from spark_bridge.session import session
from tests.spark.sources.test_chaos import python_workers

def said(port):
    # One request of Spark's RPC: length of the frame, kind 3, number, length of the body, body.
    body = b"evil"
    with socket.create_connection(("127.0.0.1", port), 60) as wire:
        wire.sendall(struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), 3, 1, len(body)) + body)
        return wire.recv(65536)


def command_lines():
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield process.read_bytes().replace(b"\\0", b" ")
        except OSError:
            pass  # it ended


def open_to_all(folder):
    # The files that another account may read: no folder on the way to them is this user's alone.
    for path in folder.iterdir():
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            if mode & 0o077:
                yield from open_to_all(path)
        elif mode & 0o077 and not stat.S_ISLNK(mode):
            yield path


os.umask(0o022)
os.environ["SPARK_SECRET"] = "of the environment"
for conf in (
    {
        "spark.authenticate.secret": '{"env": "SPARK_SECRET"}',
        "spark.ssl.keyPassword": "of the conf",
        "spark.network.crypto.enabled": "true",
        "spark.driver.extraJavaOptions": "-Dours=here",
    },
    {},
):
    with session("local[2]", conf=conf) as spark:
        conf = spark.sparkContext.getConf()
        if conf.get("spark.authenticate.secret") == "of the environment":
            lines = list(command_lines())
            assert any(b"-Dours=here" in line for line in lines)
            assert not [line for line in lines if b"of the environment" in line or b"of the conf" in line]
        rows = spark.sparkContext.parallelize(["precious"] * 1000, 2).persist(StorageLevel.DISK_ONLY)
        assert rows.map(lambda row: (row, 1)).reduceByKey(lambda a, b: a + b).collect() == [("precious", 1000)]
        own = Path(tempfile.gettempdir())
        assert [path for path in own.rglob("*") if path.is_file() and b"precious" in path.read_bytes()], "none is cached"
        assert list(open_to_all(own)) == []
        answer = said(int(conf.get("spark.driver.port")))
        assert b"StreamCorrupted" not in answer, "it read an object of somebody without its secret"
        assert b"challenge" in answer or b"SASL" in answer.upper() or not answer, answer
        folder = conf.get("spark.python.unix.domain.socket.dir")
        assert [name for name in os.listdir(folder) if name.endswith(".sock")], "no sockets there"
        print(len(python_workers(os.getpid())))
assert not any(own.rglob("blockmgr-*"))
spark = SparkSession.builder.master("local[2]").getOrCreate()  # in the same JVM, which has our settings
assert spark.sparkContext.parallelize(range(10)).map(lambda n: 2 * n).sum() == 90
spark.stop()
print(folder)
"""
    root, file = Path(__file__).parents[2], tmp_path / "code.py"
    file.write_text(code, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
    with TemporaryDirectory(dir="/tmp") as place:  # short, for sockets
        Path(place).chmod(0o1777)
        shown = subprocess.run(
            [sys.executable, file],
            cwd=root,
            env={**inherited, "TMPDIR": place, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            timeout=patient(300),
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
    with pytest.raises(ConnectorError, match=due):
        RDDSource(rdd).read(0, 0, 1)
    topology = load_topology(str(Path(__file__).parents[2] / "examples/word_count.py"))
    with pytest.raises(SparkJobError, match=f"^{due}") as caught:
        run_topology(topology, {"sentences": rdd}, spark)
    assert "\n" not in str(caught.value)
