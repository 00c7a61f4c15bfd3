"""State on a real Storm: the word count of Storm's page, in Redis, with a worker killed while it counts."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from multilang.local import LocalCluster
from multilang.state.providers import provider_of
from multilang.topology import load_topology
from tests.cli.command import ROOT
from tests.patience import patient
from tests.servers import RedisServer, running
from tests.soak import SOAK, chosen, soak_only
from tests.state.topologies import stored
from tests.store import file_store
from tests.storm.conftest import give, wait_for, workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus

LINES = ["the cow jumped over the moon", "an apple a day keeps the doctor away", "four score and seven years ago"]
# So many lines that counting takes many checkpoints: here a line is acked as soon as it is counted, there with the checkpoint.
COUNTS = {"exactly_once": 40_000 if SOAK else 10_000, "topology": 4000}
MODES = chosen(["inprocess", "process"], "inprocess")
KILLS = 3 if SOAK else 1


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    yield from running(RedisServer, folder, "redis-server")


@pytest.mark.parametrize("promise", chosen(COUNTS, "exactly_once"))
def test_words_are_counted_as_in_the_embedded_cluster_though_a_worker_is_killed(
    storm: Cluster,
    nimbus: Nimbus,
    redis: RedisServer,
    tmp_path: Path,
    promise: str,
) -> None:
    lines = [LINES[n % len(LINES)] for n in range(COUNTS[promise])]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    words = Counter(word for line in lines for word in line.split())
    shutil.copy(ROOT / "examples" / "stateful_word_count.py", tmp_path)
    conf = {
        "multilang.input.files": [str(tmp_path / "text")],
        "topology.message.timeout.secs": 15,
        "topology.max.spout.pending": 100,
        "topology.workers": 2,
    }
    counts = {}
    for mode in MODES:
        path = str(tmp_path / f"{mode}.sqlite")
        own = {"multilang.store": f"sqlite://{path}"}
        with LocalCluster(mode=mode, conf={**conf, **own, "topology.max.spout.pending": 10_000}) as cluster:
            cluster.submit(load_topology(f"{tmp_path}/stateful_word_count.py:{promise}")).wait(timeout=patient(300))
        found = provider_of(own)
        counts[mode] = stored(found, "count", 2)
        found.close()
    assert counts == dict.fromkeys(MODES, words)

    (tmp_path / "on_storm.py").write_text(f"from stateful_word_count import {promise} as topology\n")
    give(storm, tmp_path / "on_storm.py", "words", "--interpreter", sys.executable, **redis.conf, **conf)
    there = provider_of({**redis.conf, "topology.name": "words"})

    def counted() -> int:
        return sum(stored(there, "count", 2).values())

    for kill in range(1, KILLS + 1):
        enough = words.total() * kill // (KILLS + 3)
        wait_for(lambda enough=enough: counted() > enough, "some words are counted")
        victim = random.choice(workers(storm))
        os.kill(victim, signal.SIGKILL)
        assert counted() < words.total(), "it was killed in the middle"
        wait_for(lambda victim=victim: len(set(workers(storm)) - {victim}) == 2, "there are two workers again")
    if promise == "exactly_once":
        wait_for(lambda: counted() >= words.total(), "all words are counted")
        assert stored(there, "count", 2) == words
    else:

        def missing() -> Counter[str]:
            return words - Counter(stored(there, "count", 2))

        # The spout began anew if it was killed, and what was pending is replayed in any case.
        wait_for(lambda: not missing(), "all words are counted")
    there.close()


@soak_only
def test_a_provider_of_ones_own_is_shipped_and_the_counts_survive_a_worker(
    storm: Cluster, nimbus: Nimbus, tmp_path: Path
) -> None:
    lines = [LINES[n % len(LINES)] for n in range(1500)]
    words = Counter(word for line in lines for word in line.split())
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    shutil.copy(ROOT / "examples" / "stateful_word_count.py", tmp_path)
    (tmp_path / "on_storm.py").write_text("from stateful_word_count import exactly_once as topology\n")
    shutil.copy(file_store.__file__, tmp_path / "own_files.py")
    conf = {
        "multilang.store": f"own_files.FileStore:{tmp_path / 'state'}",
        "multilang.input.files": [str(tmp_path / "text")],
        "topology.message.timeout.secs": 15,
        "topology.workers": 2,
    }
    give(storm, tmp_path / "on_storm.py", "own", "--interpreter", sys.executable, **conf)
    there = provider_of(
        {"topology.name": "own", "multilang.store": f"tests.store.file_store.FileStore:{tmp_path / 'state'}"}
    )

    def counted() -> int:
        return sum(stored(there, "count", 2).values())

    wait_for(lambda: counted() > words.total() // 10, "some words are counted")
    os.kill(random.choice(workers(storm)), signal.SIGKILL)
    wait_for(lambda: counted() >= words.total(), "all words are counted")
    assert stored(there, "count", 2) == words
    there.close()
