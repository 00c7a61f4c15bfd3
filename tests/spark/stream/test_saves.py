"""kill -9 at every named step of a batch's commit: every batch counts once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from multilang.errors import SparkJobError
from multilang.state import FencedError, InUseError
from multilang.store import claims
from multilang.topology import load_topology
from spark_bridge.job.states import States
from spark_bridge.job.transactions import Transactions
from tests.state.topologies import topology

ROOT = Path(__file__).parents[3]


def test_a_driver_killed_at_every_step_of_a_commit_counts_each_batch_once(durable) -> None:
    command = [sys.executable, "-m", "tests.spark.stream.killed_saves", json.dumps(durable)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    names = [f"{task}|{phase} {step}" for task in ("count-0", "count-1", "lengths-0") for phase in ("PREPARE", "COMMIT") for step in ("write", "synced")]  # fmt: skip
    names += [f"$checkpointspout-0|{state} write" for state in ("PREPARING", "COMMITTING", "COMMITTED")]
    assert set(names) <= set(steps)


def test_a_second_one_is_refused_while_the_first_has_the_states(durable, monkeypatch) -> None:
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.5)
    first = States(topology, durable)  # one session may have two queries
    with pytest.raises(InUseError, match=r"is in use by topology 'stateful' \(process \d+ on .*, since \d+-"):
        States(topology, durable)
    for batch in range(2):
        assert first.begin("one", batch) == batch
        first.save({"count-0": [(b'"moon"', b"%d" % batch)]}, "one", batch)
    first.close()
    now = States(topology, durable)
    assert (dict(now.items("count")), now.begin("one", 1), now.begin("two", 0)) == ({"moon": 1}, None, 2)
    now.close()


def test_a_batch_that_was_planned_anew_with_other_rows_is_refused(durable) -> None:
    states = States(topology, durable)
    assert states.begin("one", 0, "first rows") == 0
    states.save({}, "one", 0, rows="first rows")
    states.close()
    states = States(topology, durable)
    assert (states.begin("one", 0, "first rows"), states.begin("one", 0)) == (None, None)
    with pytest.raises(SparkJobError, match=r"batch 0 has other rows in this checkpoint than those that the state in"):
        states.begin("one", 0, "other rows")
    assert states.begin("one", 1, "other rows") == 1
    states.save({}, "one", 1)  # as an older version does
    assert states.begin("one", 1, "whatever rows") is None
    states.close()


def test_a_transaction_that_was_begun_with_other_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    log = Transactions(load_topology(str(ROOT / "examples" / "global_count.py")))
    said = r"batch {} has other rows in this checkpoint than those that the store of the transactions of"
    assert log.begin("one", 0, "first rows") == log.begin("one", 0, "first rows") == 1
    with pytest.raises(SparkJobError, match=said.format(0)):  # it was not committed, but some may be in the maps
        log.begin("one", 0, "other rows")
    log.commit()
    assert log.begin("one", 0, "first rows") is None
    with pytest.raises(SparkJobError, match=said.format(0)):
        log.begin("one", 0, "other rows")
    assert log.begin("one", 1) == 2
    assert log.begin("one", 1, "any rows, as the first time none were known") == 2
    log.close()


def test_one_that_was_taken_over_from_saves_nothing(durable, monkeypatch) -> None:
    first = States(topology, durable)
    assert first.begin("one", 0) == 0
    monkeypatch.setattr(claims, "BEAT_SECS", 3600)  # it was stopped, as far as anybody can tell
    monkeypatch.setattr(claims, "LEASE_SECS", 1.5)
    second = States(topology, durable)
    assert second.begin("two", 0) == 0
    with pytest.raises(FencedError, match=r"was taken over"):
        first.save({"count-0": [(b'"moon"', b"1")]}, "one", 0)
    second.save({"count-0": [(b'"moon"', b"2")]}, "two", 0)
    first.close()
    second.close()
    now = States(topology, durable)
    assert (dict(now.items("count")), now.begin("one", 0), now.begin("two", 0)) == ({"moon": 2}, 1, None)
    now.close()


def test_of_two_that_begin_at_once_one_does(durable, monkeypatch) -> None:
    monkeypatch.setattr(claims, "CLAIM_SECS", 0.5)
    monkeypatch.setattr(claims, "BEAT_SECS", 0.1)
    for turn in range(10):
        together = threading.Barrier(2)
        done = threading.Barrier(2)

        def save(number: int, turn: int = turn, together: Any = together, done: Any = done) -> bool:
            query = f"{turn} {number}"
            together.wait()
            try:
                mine = States(topology, durable)
            except InUseError:
                done.wait()
                return False
            assert mine.begin(query, 0) == turn
            mine.save({"count-0": [(b'"moon"', b"%d" % (2 * turn + number))]}, query, 0)
            done.wait()
            mine.close()
            return True

        with ThreadPoolExecutor(2) as pool:
            saved = [*pool.map(save, range(2))]
        assert sorted(saved) == [False, True]
        now = States(topology, durable)
        assert (dict(now.items("count")), now.txid) == ({"moon": 2 * turn + saved.index(True)}, turn)
        now.close()
