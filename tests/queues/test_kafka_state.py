"""A state whose source is a topic: an older copy of it is refused, and nothing else is, whatever happens to the group."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from multilang import LocalCluster
from multilang.local import LocalClusterError
from multilang.state.admin import StoredStates
from tests.patience import patient
from tests.queues.counting import conf_in, counting
from tests.queues.test_kafka_spout import Queue
from tests.servers import LIMIT
from tests.soak import SOAK

ROOT = Path(__file__).parents[2]


class Counted:
    """A topic, and the state of the topology that counts its messages."""

    def __init__(self, queue: Queue, folder: Path) -> None:
        self.queue, self.folder = queue, folder
        self.conf = conf_in(str(folder))
        (folder / "state").mkdir()

    def topology(self, group: str = "shop", tasks: int = 1):
        return counting(self.queue.spout(group=group), tasks)

    def run(self, group: str = "shop", tasks: int = 1) -> dict[int, int]:
        with LocalCluster("inprocess", conf=self.conf) as cluster:
            cluster.submit(self.topology(group, tasks)).wait(timeout=patient(60))
        return self.tally()

    def tally(self) -> dict[int, int]:
        """Return how often each message was counted."""
        stored = StoredStates(self.topology(), self.conf)
        try:
            return {
                int(line["key"]): line["value"] for line in list(stored.export())[1:] if line["namespace"] == "tally-0"
            }
        finally:
            stored.close()

    def accept(self) -> list[str]:
        stored = StoredStates(self.topology(), self.conf)
        try:
            return stored.accept()
        finally:
            stored.close()

    def put_back(self, copy: Path | None) -> None:
        shutil.rmtree(self.folder / "state")
        if copy is None:
            (self.folder / "state").mkdir()
        else:
            shutil.copytree(copy, self.folder / "state")


def test_an_older_copy_is_refused_by_name_until_it_is_accepted(kafka, tmp_path):
    queue = Queue(kafka, 2, 20)
    counted = Counted(queue, tmp_path)
    assert counted.run().keys() == set(range(20))
    older = shutil.copytree(tmp_path / "state", tmp_path / "older")
    queue.fill(20)
    # What is under way when a partition goes over to the second task is emitted again.
    assert counted.run(tasks=2).keys() == set(range(40))
    counted.put_back(older)
    with pytest.raises(
        LocalClusterError,
        match=r"is older than the positions in .* state accept TOPOLOGY",
    ):
        counted.run()
    assert "lacks the tuples up to transaction" in "".join(counted.accept())
    queue.fill(20)
    assert counted.run(tasks=2).keys() == {*range(20), *range(40, 60)}, (
        "what came between is missing, as the user has accepted"
    )


def test_a_state_of_another_group_is_refused_and_what_is_meant_is_not(kafka, tmp_path):
    queue = Queue(kafka, 2, 20)
    counted = Counted(queue, tmp_path)
    assert counted.run().keys() == set(range(20))
    newest = shutil.copytree(tmp_path / "state", tmp_path / "newest")
    # Another group begins at the beginning, as is meant.
    assert min(counted.run("books").values()) >= 2
    counted.put_back(None)
    assert len(counted.accept()) == 1
    assert counted.run("new").keys() == set(range(20))
    # Offsets that are set back by hand.
    parts = [TopicPartition(queue.topic, number, offset) for number, offset in ((0, 5), (1, 10))]
    asked = queue.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("new", parts)])
    asked["new"].result(LIMIT)
    again = counted.run("new")
    assert {number for number, times in again.items() if times > 1} >= set(range(10, 20, 2))
    # A topic that is made anew.
    queue.admin.delete_topics([queue.topic])[queue.topic].result(LIMIT)
    queue.make()
    queue.fill(4)
    assert counted.run("new").keys() == set(range(24))
    # A state that was removed beside a group that went on.
    counted.put_back(None)
    queue.fill(2)
    with pytest.raises(LocalClusterError, match=r"is not the one to which .*: it has nothing of this topology"):
        counted.run("new")
    assert len(counted.accept()) == 1
    assert counted.run("new").keys() == {24, 25}
    # The state of the first group is another one.
    counted.put_back(newest)
    with pytest.raises(LocalClusterError, match=r"is not the one to which"):
        counted.run("new")


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_what_is_killed_at_any_moment_starts_again_without_a_refusal(kafka, tmp_path, seed):
    chance = random.Random(seed)
    queue = Queue(kafka, 2, 60)
    counted = Counted(queue, tmp_path)
    command = [sys.executable, "-m", "tests.queues.counting", queue.address, queue.topic, str(tmp_path)]
    killed = 0
    kills = [chance.randint(20, 200) for _ in range(8 if SOAK else 3)]
    for kill_at in (*kills, 0):
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "KILL_AT": str(kill_at)},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=patient(120),
            check=False,
        )
        assert "older than" not in done.stderr
        killed += done.returncode != 0
        assert done.returncode in ((0, -signal.SIGKILL) if kill_at else (0,)), done.stderr
    assert killed, "each run ended before the step at which it was to be killed"
    assert counted.tally().keys() == set(range(60)), "nothing is lost"
    assert queue.all_done()
