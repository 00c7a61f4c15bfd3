"""kill -9 at every named step of the protocol: what is counted afterwards is the input's.

A tenth of the steps here, and each five times, on SQLite and on Redis and in both alignments, with MULTILANG_SOAK=full.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import ujson

from multilang.local import LocalCluster
from multilang.state.providers import provider_of
from tests.patience import patient
from tests.servers import wait_for
from tests.soak import SOAK, chosen
from tests.state.conftest import conf_of
from tests.state.topologies import exact, stored, topology, words_of

ROOT = Path(__file__).parents[2]
SENTENCES = 300
ALL, KILLS = (3000, 4) if SOAK else (1000, 2)  # sentences and kills of everything at once
WRITE = ["write", "sync", "synced"]
PASS = ["forward", "forwarded", "acked"]
OF_A_BOLT = [
    *(f"PREPARE {step}" for step in ("received", *WRITE, *PASS)),
    *(f"COMMIT {step}" for step in ("received", *WRITE, "acks", "acks done", *PASS)),
    *(f"ROLLBACK {step}" for step in ("received", *WRITE, "fails", "fails done", *PASS)),
    *(f"INITSTATE {step}" for step in ("received", *PASS)),
]
OF_A_SOURCE = [step for step in OF_A_BOLT if "acks" not in step and "fails" not in step]
OF_A_FORWARDER = [f"{action} {step}" for action in ("PREPARE", "COMMIT") for step in ("received", *PASS)]
OF_THE_SPOUT = [
    *(f"{state} {step}" for state in ("PREPARING", "COMMITTING", "COMMITTED") for step in WRITE),
    *(
        f"{action} {step}"
        for action in ("PREPARE", "COMMIT", "ROLLBACK", "INITSTATE")
        for step in ("emit", "emitted", "acked")
    ),
]
STEPS = [
    *(("count-1", step) for step in OF_A_BOLT),
    *(("sentences-0", step) for step in OF_A_SOURCE),
    *(("split-1", step) for step in OF_A_FORWARDER),
    *(("$checkpointspout-0", step) for step in OF_THE_SPOUT),
]


def has(alignment: str, store: str, namespace: str, step: str) -> bool:
    """Return whether there is such a step at all."""
    if namespace.startswith("sentences") and alignment != "exact":
        return False
    if step.endswith(" sync"):  # in Redis there is nothing between the script and its answer
        return store == "sqlite" or (step == "PREPARE sync" and not namespace.startswith("$"))
    return True


def cases() -> list[tuple[str, str, str, str, int]]:
    every = [
        (alignment, store, namespace, step)
        for namespace, step in STEPS
        for alignment in ("exact", "at-least-once")
        for store in ("sqlite", "redis")
        if has(alignment, store, namespace, step)
    ]
    if SOAK:
        return [(*case, seed) for case in every for seed in range(5)]
    chosen = []  # of the four there are of most steps, one, and another one for the next step
    for number, (namespace, step) in enumerate(STEPS[::10]):
        mine = [case for case in every if case[2:] == (namespace, step)]
        chosen.append((*mine[number % len(mine)], number))
    return chosen


@pytest.mark.parametrize(("alignment", "store", "namespace", "step", "seed"), cases())
def test_a_task_that_is_killed_at_a_step(alignment, store, namespace, step, seed, tmp_path, request, monkeypatch):
    chance = random.Random(seed)
    conf = {
        **conf_of(store, request, tmp_path),
        "multilang.trace": "tests.state.crashing.at_step",
        "topology.message.timeout.secs": 2,
        "topology.max.spout.pending": 30,
        "test.sentences": SENTENCES,
        "test.burst": 4,
    }
    crashes = []
    rare = step.startswith(("ROLLBACK", "INITSTATE")) or (namespace.startswith("$") and "ROLLBACK" in step)
    if rare:  # of a recovery, which something has to cause
        crashes.append(f"count-0|PREPARE received|2|{tmp_path / 'first'}")
    occurrence = 1 if rare else chance.randint(1, 3)
    crashes.append(f"{namespace}|{step}|{occurrence}|{tmp_path / 'crash'}")
    monkeypatch.setenv("CRASHES", ";".join(crashes))
    with LocalCluster(conf=conf, seed=seed) as cluster:
        run = cluster.submit(exact if alignment == "exact" else topology, capture=["sentences"])
        run.wait(timeout=patient(150))
        died = {(task.component, task.restarts) for task in run.tasks if task.restarts}
        emitted = Counter(word for tup in run.captured("sentences") for word in tup["sentence"].split())
    assert (tmp_path / "crash").exists(), "it was never at that step"
    assert namespace.rpartition("-")[0] in {component for component, _ in died}
    found = provider_of(conf)
    counted, least = stored(found, "count", 2), words_of(SENTENCES)
    lengths = sum(stored(found, "lengths", 1).values())
    found.close()
    if alignment == "exact":
        assert counted == least
        assert lengths == sum(least.values())
    else:
        assert {word: count for word, count in least.items() if counted.get(word, 0) < count} == {}
        assert {word: count for word, count in counted.items() if count > emitted[word]} == {}
        assert lengths >= sum(least.values())


@pytest.mark.parametrize("seed", range(5 if SOAK else 1))
@pytest.mark.parametrize("step", chosen(["PREPARE sync", "COMMIT write", "COMMIT synced"], "COMMIT synced"))
def test_redis_that_is_killed_at_a_step_and_started_again(step, seed, tmp_path, redis_server, monkeypatch):
    server = type(redis_server)(tmp_path)
    server.start()
    try:
        conf = {
            **server.conf,
            "topology.name": "stateful",
            "topology.state.checkpoint.interval.ms": 100,
            "multilang.trace": "tests.state.crashing.at_step",
            "topology.message.timeout.secs": 5,
            "test.sentences": SENTENCES,
            "test.burst": 4,
        }
        pid = server.process.pid
        monkeypatch.setenv("CRASHES", f"count-1|{step}|{random.Random(seed).randint(1, 3)}|{tmp_path / 'crash'}|{pid}")
        with LocalCluster(conf=conf, seed=seed) as cluster:
            run = cluster.submit(exact)
            wait_for(lambda: server.process.poll() is not None, "Redis is killed")
            server.start()
            run.wait(timeout=patient(150))
        found = provider_of(conf)
        assert stored(found, "count", 2) == words_of(SENTENCES)
        found.close()
    finally:
        server.kill()


WHOLE = """
import sys, ujson
from multilang.local import LocalCluster
from tests.state.topologies import exact

with LocalCluster(conf=ujson.loads(sys.argv[1])) as cluster:
    cluster.submit(exact).wait(timeout=150)
"""


@pytest.mark.parametrize("durable", ["sqlite", "redis", "files"] if SOAK else ["redis"], indirect=True)
@pytest.mark.parametrize("seed", range(5 if SOAK else 1))
def test_everything_killed_at_once_again_and_again_goes_on_where_it_was(durable, seed):
    chance = random.Random(seed)
    conf = {**durable, "test.sentences": ALL, "test.burst": 4}
    found = provider_of(conf)

    def committed() -> int:
        return sum(stored(found, "count", 2).values())

    def gone_on(process: subprocess.Popen[bytes], enough: int) -> bool:
        return committed() >= enough or process.poll() is not None

    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", WHOLE, ujson.dumps(conf)], start_new_session=True, cwd=ROOT)
        enough = committed() + chance.randint(1, ALL)
        wait_for(partial(gone_on, process, enough), "it gets on")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run([sys.executable, "-c", WHOLE, ujson.dumps(conf)], cwd=ROOT).returncode == 0
    assert stored(found, "count", 2) == words_of(ALL)
    found.close()
