"""Whatever is killed or moved while a topology runs, every spout tuple is acked in the end."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.soak import SOAK
from tests.storm.conftest import SHIPPED, give, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from multilang.shipping.cluster import Cluster

ROUNDS = 5 if SOAK else 1
PROGRESS = 300 if SOAK else 150  # numbers to be acked between two faults


class Survivor:
    """The running topology, and what can be done to it."""

    def __init__(self, storm: Cluster, folder: Path) -> None:
        self.storm = storm
        self.folder = folder

    def journal(self, kind: str) -> set[int]:
        lines = (self.folder / "journal").read_text().splitlines()
        return {int(line.partition(" ")[2]) for line in lines if line.startswith(kind)}

    def process(self, task: str) -> int:
        return int((self.folder / task).read_text().split()[0])

    def worker(self, task: str) -> int:
        return int((self.folder / task).read_text().split()[1])

    def workers(self) -> set[int]:
        return {self.worker(task) for task in ("numbers-0", "pass-0", "pass-1", "sum-0", "sum-1")}

    def go_on(self, after: str) -> None:
        """More is acked than was under way."""
        path = self.folder / "journal"
        wait_for(path.exists, f"the spout is there {after}")
        before = len(self.journal("acked"))
        wait_for(lambda: len(self.journal("acked")) >= before + PROGRESS, f"{PROGRESS} more are acked {after}")

    def kill_child(self) -> None:
        child = self.process("sum-0")
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: self.process("sum-0") != child, "the bolt has another process")

    def kill_worker(self) -> None:
        worker = self.worker("numbers-0")
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: self.worker("numbers-0") != worker, "the spout is in another worker")

    def kill_supervisor(self) -> None:
        self.storm.kill("supervisor-1")
        self.go_on("without a supervisor")
        workers = self.workers()
        assert self.storm.up()
        self.go_on("with another supervisor")
        assert self.workers() == workers, "it goes on with the workers that it finds"

    def kill_nimbus(self) -> None:
        self.storm.kill("nimbus")
        self.go_on("without Nimbus")
        assert self.storm.up()
        with self.storm.client() as nimbus:
            wait_for(lambda: nimbus.topology("survivor").status == "ACTIVE", "the next Nimbus knows the topology")

    def rebalance(self) -> None:
        before = self.workers()
        wanted = 1 if len(before) == 2 else 2
        with self.storm.client() as nimbus:

            def assigned() -> bool:
                """A Nimbus that has not yet heard of all workers forgets a request without a word: ask it again."""
                info = nimbus.topology("survivor")
                if info.status != "ACTIVE":
                    return False
                if len({(executor.host, executor.port) for executor in info.executors}) == wanted:
                    return True
                nimbus.rebalance("survivor", wait=0, workers=wanted)
                return False

            wait_for(assigned, f"Nimbus assigns the tasks to {wanted} workers")
        wait_for(lambda: not before & self.workers(), "all tasks are in new workers")


@pytest.fixture
def survivor(storm: Cluster, nimbus: object, tmp_path: Path) -> Survivor:
    give(storm, SHIPPED / "survivor.py", "survivor", **{"test.folder": str(tmp_path)})
    return Survivor(storm, tmp_path)


def test_every_tuple_is_acked_whatever_is_killed(survivor: Survivor) -> None:
    faults: list[Callable[[], None]] = [
        survivor.kill_child,
        survivor.kill_worker,
        survivor.kill_supervisor,
        survivor.rebalance,
    ]
    if SOAK:  # no tuple passes Nimbus; and the next one waits until ZooKeeper has forgotten this one
        faults.append(survivor.kill_nimbus)
    survivor.go_on("at the start")
    for fault in faults * ROUNDS:
        fault()
        survivor.go_on(f"after {fault.__name__}")
    (survivor.folder / "stop").touch()
    wait_for(lambda: survivor.journal("emitted") == survivor.journal("acked"), "all that was emitted is acked")
    emitted = survivor.journal("emitted")
    assert emitted == set(range(len(emitted)))
    assert len(emitted) > PROGRESS * len(faults)
