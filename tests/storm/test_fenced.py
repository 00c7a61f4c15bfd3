"""A task of a real Storm lies stopped while its worker is killed and another one takes over: it writes nothing when it wakes."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from multilang.state.providers import provider_of
from multilang.transactional import SqliteBacking, TransactionalMap
from tests.cli.command import ROOT
from tests.handover.lives import state_of
from tests.soak import SOAK, soak_only
from tests.state.topologies import stored, words_of
from tests.storm.conftest import give, wait_for
from tests.storm.test_state import redis  # noqa: F401  # a fixture
from tests.transactional.topologies import counts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus
    from tests.servers import RedisServer

OF_STATES = [("count-1", "COMMIT write")]
OF_TRANSACTIONS = [("emitter-1", "BATCH write")]
if SOAK:
    OF_STATES += [
        ("$checkpointspout-0", "COMMITTING write"),
        ("sentences-0", "PREPARE write"),
        ("count-0", "ROLLBACK write"),
    ]
    OF_TRANSACTIONS += [("coordinator", "BEGIN write"), ("update-0", "COMMIT put")]
SENTENCES = 2000
WORDS = 1500  # in each of three partitions


class Stopped:
    """A topology of which a task stops itself at a step, once; ``folder`` holds what is shipped."""

    def __init__(self, storm: Cluster, folder: Path, step: tuple[str, str]) -> None:
        self._storm = storm
        self.folder = folder / "shipped"
        self.folder.mkdir()
        self._marker = folder / "marker"
        who, name = step
        at_steps = f"{who}|{name}|3|SIGSTOP|{self._marker}"
        if name.startswith("ROLLBACK"):  # of a recovery, which something has to cause
            at_steps = f"count-1|PREPARE received|2|SIGKILL|{folder / 'cause'};{who}|{name}|1|SIGSTOP|{self._marker}"
        self.env = {"AT_STEPS": at_steps}
        shutil.copy(ROOT / "tests" / "handover" / "steps.py", self.folder)

    def ship(self, module: str, **conf: Any) -> None:
        """Submit the topology that ``module`` imports, with ``env`` set wherever it is."""
        (self.folder / "on_storm.py").write_text(
            f"import os\n\nimport steps  # shipped with it\n\nos.environ.update({self.env!r})\n{module}\n"
        )
        give(self._storm, self.folder / "on_storm.py", "stopped", "--interpreter", sys.executable, **conf)

    def is_handed_over(self, finished: Callable[[], object]) -> int:
        """The worker of the stopped task is killed, and Storm goes on without it; the number of the task's process."""
        wait_for(self._marker.exists, "a task is at the step")
        pid = int(self._marker.read_text())
        wait_for(lambda: state_of(pid) == "T", "it has stopped")
        # A supervisor kills what its workers leave, by these files. Not so one on a machine that is cut off, as here.
        for listed in self._storm.home.glob(f"data/*/workers/*/pids/{pid}"):
            listed.unlink()
        worker = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGKILL)
        wait_for(finished, "all is counted")
        assert state_of(pid) == "T", "it is still there"
        return pid


def woken(pid: int) -> None:
    """It has done what it does when it wakes."""
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: state_of(pid) in (None, "Z"), "the task that was stopped ends")


@soak_only
@pytest.mark.parametrize("step", OF_STATES, ids=" ".join)
def test_a_state_is_that_of_the_task_which_took_over(
    storm: Cluster,
    nimbus: Nimbus,
    redis: RedisServer,  # noqa: F811
    tmp_path: Path,
    step: tuple[str, str],
) -> None:
    topology = Stopped(storm, tmp_path, step)
    shutil.copy(ROOT / "tests" / "state" / "topologies.py", topology.folder / "states.py")
    conf = {
        **redis.conf,
        "multilang.trace": "steps.at_step",
        "topology.state.checkpoint.interval.ms": 200,
        "topology.message.timeout.secs": 5,
        "topology.workers": 1,
        "test.sentences": SENTENCES,
        "test.burst": 4,
    }
    topology.ship("from states import exact as topology", **conf)
    there = provider_of({**conf, "topology.name": "stopped"})
    due = words_of(SENTENCES)
    pid = topology.is_handed_over(lambda: sum(stored(there, "count", 2).values()) >= due.total())
    assert stored(there, "count", 2) == due
    woken(pid)
    assert stored(there, "count", 2) == due
    there.close()


@soak_only
@pytest.mark.parametrize("step", OF_TRANSACTIONS, ids=" ".join)
def test_transactions_are_those_of_the_task_which_took_over(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path, step: tuple[str, str]
) -> None:
    topology = Stopped(storm, tmp_path, step)
    maps = TransactionalMap(SqliteBacking(tmp_path / "maps.sqlite"))
    topology.env["HANDOVER_MAPS"] = str(tmp_path / "maps.sqlite")
    shutil.copy(ROOT / "tests" / "transactional" / "topologies.py", topology.folder / "transactions.py")
    text = (ROOT / "tests" / "handover" / "transactions.py").read_text()
    (topology.folder / "counted.py").write_text(text.replace("tests.transactional.topologies", "transactions"))
    conf = {
        "multilang.trace": "steps.at_step",
        "transactional.zookeeper.root": f"/{tmp_path.name}",
        "topology.message.timeout.secs": 5,
        "topology.max.spout.pending": 3,
        "topology.workers": 1,
        "test.words": WORDS,
        "test.take": 20,
    }
    topology.ship("from counted import transactional as topology", **conf)

    def counts() -> dict[Any, Any]:
        return maps.multi_get(counts_of(WORDS))

    due = counts_of(WORDS)
    pid = topology.is_handed_over(lambda: sum(counts().values()) >= due.total())
    assert counts() == due
    woken(pid)
    assert counts() == due
    maps.close()
