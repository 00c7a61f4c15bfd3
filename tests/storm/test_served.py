"""An RDD that a Spark driver serves to a real Storm: components and workers are killed, and no row is lost, or counted twice."""

from __future__ import annotations

import gzip
import json
import os
import random
import secrets
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.transactional import OpaqueMap, SqliteBacking, TransactionalMap
from tests.cli.command import ROOT
from tests.patience import patient
from tests.soak import SOAK, soak_only
from tests.storm.conftest import SHIPPED, give, wait_for, workers
from tests.storm.shipped.served import TENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

ROWS = 100_000 if SOAK else 6000
SEED = os.environ.get("MULTILANG_SEED", "served")
KILLS = ["component", "worker"] * (5 if SOAK else 1)  # of each topology
LIMIT = patient(900 if SOAK else 300)


class Running:
    """One of the topologies, by the name that it has among those that are shipped."""

    def __init__(self, storm: Cluster, name: str, folder: Path, url: str, secret: Path) -> None:
        self._storm = storm
        self.name = name
        self.folder = folder
        folder.mkdir()
        conf = {"multilang.source": url, "multilang.source.secret.file": str(secret), "test.folder": str(folder)}
        kept = {"multilang.source.store": str(folder / "watermarks.sqlite")}
        give(storm, Path(f"{SHIPPED / 'served.py'}:{name}"), name, "--interpreter", sys.executable, **conf, **kept)

    def counted(self) -> int:
        if self.name == "plain":
            return len(self.written())
        return sum(self._map(f"all-{task}" for task in range(2)).values())

    def written(self) -> set[int]:
        """The numbers of whole lines: the last may be half written."""
        return {int(line) for path in self.folder.glob("written-*") for line in path.read_text().split("\n")[:-1]}

    def is_right(self) -> bool:
        if self.name == "plain":
            return self.written() == set(range(ROWS))
        return self._map(range(ROWS // TENS)) == dict.fromkeys(range(ROWS // TENS), TENS)

    def worker(self) -> int | None:
        return next((pid for pid in workers(self._storm) if f"\0{self.name}-" in command_of(pid)), None)

    def components(self) -> set[int]:
        """The processes of its worker."""
        parent = self.worker()
        return {pid for pid in self._storm.processes() if parent is not None and parent_of(pid) == parent}

    def kill(self, victim: str, chance: random.Random) -> None:
        wait_for(lambda: self._killed(victim, chance), f"{self.name} has a {victim} that could be killed")

    def _killed(self, victim: str, chance: random.Random) -> bool:
        """False where it has no such process at the moment, or that ended by itself meanwhile."""
        worker = self.worker()
        found = [worker] if victim == "worker" and worker is not None else sorted(self.components())
        if not found:
            return False
        try:
            os.kill(chance.choice(found), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _map(self, keys: Any) -> dict[Any, int]:
        path = self.folder / "counts.sqlite"
        if not path.exists():
            return {}
        kind = TransactionalMap if self.name == "transactional" else OpaqueMap
        map = kind(SqliteBacking(path))
        try:
            return {key: value or 0 for key, value in map.multi_get(keys).items()}
        finally:
            map.close()


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""  # it has just ended


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it has just ended


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(secrets.token_hex(32))
    return path


@pytest.fixture
def driver(secret: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Spark, which serves the rows three times."""
    environment = {key: value for key, value in os.environ.items() if key != "MULTILANG_SOURCE_SECRET"}
    with (tmp_path / "driver.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.storm.serving", str(secret), str(ROWS), "3", str(tmp_path)],
            cwd=ROOT,
            env={**environment, "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield process
    finally:
        process.communicate(timeout=LIMIT)  # at the end of its input it stops Spark


@soak_only
@pytest.mark.timeout(1200 if SOAK else 600)
def test_rows_of_an_rdd_reach_storm_whatever_dies(
    storm: Cluster, nimbus: Nimbus, driver: subprocess.Popen[str], secret: Path, tmp_path: Path
) -> None:
    urls = json.loads(driver.stdout.readline())
    names = ("plain", "transactional", "opaque")

    def survives(name: str, url: str) -> None:
        each = Running(storm, name, tmp_path / name, url, secret)
        chance = random.Random(f"{SEED} {each.name}")
        for number, victim in enumerate(KILLS):
            enough = ROWS * (number + 1) // (len(KILLS) + 2)
            wait_for(lambda enough=enough: each.counted() > enough, f"{each.name} has counted {enough}", LIMIT)
            assert each.counted() < ROWS, "it is killed in the middle"
            each.kill(victim, chance)
        wait_for(each.is_right, f"{each.name} has all rows", LIMIT)

    with ThreadPoolExecutor(len(names)) as threads:
        for each in [threads.submit(survives, *named) for named in zip(names, urls, strict=True)]:
            each.result()
    assert json.loads(driver.stdout.readline()) == [ROWS] * 3
    # Whoever may read the topology, its logs or the processes has not seen the secret.
    text = secret.read_text()
    confs = [gzip.decompress(path.read_bytes()).decode() for path in storm.home.rglob("stormconf.ser")]
    assert [json.loads(conf).get("multilang.source.secret.file") for conf in confs].count(str(secret)) == len(names)
    assert not any(text in conf for conf in confs)
    logs = [path for path in storm.logs.rglob("*.log") if text in path.read_text(errors="replace")]
    assert logs == []
    assert not [pid for pid in storm.processes() if text in environment_of(pid)]


def environment_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it has just ended
