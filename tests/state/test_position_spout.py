"""A spout whose position outlives it loses nothing, whatever is killed, and goes on where it was."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster, StatefulBolt, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.local import Faults, TaskStartError
from multilang.state import FencedError, InUseError, StoreGoneError
from multilang.state.positions import open_positions, saved_positions
from multilang.testing import run_spout
from tests.patience import patient
from tests.servers import RedisServer
from tests.soak import SOAK
from tests.state.positioned import Numbers, numbers

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "redis"])
def positions(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "positions.sqlite")
    return f"redis://127.0.0.1:{request.getfixturevalue('redis').port}/1"


def conf_of(positions: str, run: str = "run-1") -> dict[str, object]:
    return {"multilang.positions": positions, "storm.id": run, "topology.name": "numbers"}


def written(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()]


# ---- killed ----


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_a_spout_that_is_killed_loses_nothing_and_goes_on_near_where_it_was(seed, positions, tmp_path):
    chance = random.Random(seed)
    deaths = tuple(sorted(chance.sample(range(40, 400), 3)))
    out = tmp_path / "out"
    with LocalCluster(conf={"multilang.positions": positions}, seed=seed) as cluster:
        run = cluster.submit(numbers(Numbers(400, 3, deaths, str(tmp_path)), str(out)))
        run.wait(timeout=patient(120))
        restarts = {task.component: task.restarts for task in run.tasks}
    assert restarts["numbers"] == 3
    found = written(out)
    assert set(found) == set(range(400))
    assert len(found) <= 400 + 3 * 40, "each time, what is under way and little more comes again"


@pytest.mark.parametrize("seed", range(200 if SOAK else 10))
def test_spouts_bolts_and_ackers_that_die_at_random_lose_nothing(seed, tmp_path):
    out = tmp_path / "out"
    faults = Faults(crash=0.02, acker_crash=0.01, spouts=True)
    with LocalCluster(mode="simulated", faults=faults, seed=seed) as cluster:
        conf = {"multilang.positions": str(tmp_path / "positions.sqlite")}
        run = cluster.submit(numbers(Numbers(150, 1 + seed % 4), str(out), tasks=2, fails=7), conf=conf)
        run.wait(timeout=36_000)  # virtual seconds
    assert set(written(out)) == set(range(150))


def test_a_topology_that_is_killed_goes_on_where_it_was_when_it_is_started_again(positions, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.state.positioned", "200", str(out), positions, "120"]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=patient(120))
    assert first.returncode == -9, first.stderr.decode()
    before = written(out)
    second = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=patient(120))
    assert second.returncode == 0, second.stderr.decode()
    after = written(out)[len(before) :]
    assert set(before) | set(after) == set(range(200))
    assert min(after) >= 120 - 40
    subprocess.run(command, cwd=ROOT, check=True, timeout=patient(120))
    assert written(out) == [*before, *after], "all was acked and saved: nothing comes again"


# ---- the law of the position ----


@settings(max_examples=1000 if SOAK else 20)
@given(st.lists(st.sampled_from(["next", "ack", "fail", "die"]), max_size=60), st.integers(1, 4), st.randoms())
def test_whatever_was_not_acked_when_a_spout_died_is_emitted_again(tmp_path_factory, steps, each, chance):
    conf = conf_of(str(tmp_path_factory.mktemp("law") / "positions.sqlite"))
    acked: set[int] = set()
    run = run_spout(Numbers(30, each), conf=conf)
    try:
        for step in steps:
            if step == "die":
                run = run_spout(Numbers(30, each), conf=conf)  # the old one is not closed: it was killed
                first = run.spout.at
                assert set(range(first)) <= acked
            elif step == "next":
                run.next()
            elif run.pending:
                number = chance.choice(run.pending)
                if step == "ack":
                    acked.add(number)
                getattr(run, step)(number)
        for _ in range(200):
            run.advance(30)  # the longest pause before what failed is emitted again
            run.next()
            for number in list(run.pending):
                acked.add(number)
                run.ack(number)
        assert acked == set(range(30))
    finally:
        run.close()
    last = run_spout(Numbers(30, each), 5, conf=conf)
    assert last.values == []
    last.close()


def test_a_late_ack_of_an_early_tuple_holds_the_position_back(positions):
    run = run_spout(Numbers(10), 3, conf=conf_of(positions))
    run.ack(2)
    run.ack(1)
    run.next()
    run.close()
    again = run_spout(Numbers(10), 1, conf=conf_of(positions))
    assert again.values == [[0]]
    again.close()


def test_without_ackers_the_position_follows_the_emits(positions, tmp_path):
    with LocalCluster(mode="inprocess") as cluster:
        conf = {"multilang.positions": positions, "topology.acker.executors": 0}
        cluster.submit(numbers(Numbers(50, 3), str(tmp_path / "out")), conf=conf).wait(timeout=patient(60))
    run = run_spout(Numbers(50), 2, conf=conf_of(positions), component="numbers")
    assert run.values == []
    run.close()


class Skipping(Numbers):
    """Emits none but the first ten."""

    def next_tuple(self):
        if self.at < 10:
            super().next_tuple()
        elif self.at < self.count:
            self.at += 1


def test_what_is_skipped_without_an_emit_is_skipped_for_ever(positions):
    run = run_spout(Skipping(1000), 10, conf=conf_of(positions))
    for number in range(10):
        run.ack(number)
    run.next(100)
    run.close()
    again = run_spout(Skipping(1000), conf=conf_of(positions))
    assert 100 <= again.spout.at <= 110
    again.close()


def test_what_is_given_up_counts_as_done(positions):
    class Brief(Numbers):
        max_replays = 0

    run = run_spout(Brief(10), 2, conf=conf_of(positions))
    run.fail(0)
    run.ack(1)
    run.next()
    run.ack(2)
    run.next()
    run.close()
    again = run_spout(Brief(10), 1, conf=conf_of(positions))
    assert again.values == [[3]]
    again.close()


# ---- the owner ----


def test_a_spout_that_was_stopped_and_wakes_up_moves_the_position_nowhere(positions):
    old = run_spout(Numbers(10), 4, conf=conf_of(positions))
    new = run_spout(Numbers(10), 2, conf=conf_of(positions))  # the same task, started again
    new.ack(0)
    new.next()
    for number in range(4):
        old.ack(number)
    with pytest.raises(FencedError, match="taken over"):
        old.next()
    with pytest.raises(FencedError, match="taken over"):
        old.close()
    new.close()
    last = run_spout(Numbers(10), 1, conf=conf_of(positions))
    assert last.values == [[1]]
    last.close()


def test_another_run_is_refused_while_the_first_one_reads(positions, monkeypatch):
    monkeypatch.setattr("multilang.store.claims.CLAIM_SECS", 0.5)
    run = run_spout(Numbers(10), 1, conf=conf_of(positions))
    with pytest.raises(InUseError, match=r"in use by topology 'numbers'.*multilang\.positions"):
        run_spout(Numbers(10), conf=conf_of(positions, "run-2"))
    run.close()
    run_spout(Numbers(10), conf=conf_of(positions, "run-2")).close()


def test_another_number_of_tasks_is_refused(positions, tmp_path):
    conf = {"multilang.positions": positions}
    with LocalCluster(mode="inprocess", conf=conf) as cluster:
        cluster.submit(numbers(Numbers(20), str(tmp_path / "out"), tasks=2)).wait(timeout=patient(60))
        cluster.kill("numbers")
        with pytest.raises(TaskStartError, match=r"one of 2 tasks.*has 3 now"):
            cluster.submit(numbers(Numbers(20), str(tmp_path / "out"), tasks=3))


# ---- a store that goes away ----


def test_a_redis_that_is_away_for_a_while_is_no_reason_to_end(tmp_path, redis_server, monkeypatch):
    monkeypatch.setattr("multilang.store.redis.HASTE_SECS", 0.2)
    server = RedisServer(tmp_path)
    server.start()
    conf = conf_of(f"redis://127.0.0.1:{server.port}")
    run = run_spout(Numbers(10), 2, conf=conf)
    run.ack(0)
    server.kill()
    run.next(2)
    assert [text for text in run.errors if "can't be saved now" in text]
    assert len(run.errors) == 1
    server.start()
    run.next()
    run.close()
    again = run_spout(Numbers(10), 1, conf=conf)
    assert again.values == [[1]]
    again.close()
    server.kill()


class Recorder:
    """A relay to a server, which keeps what its clients send."""

    def __init__(self, port: int) -> None:
        self.sent: list[bytes] = []
        self._server = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            threading.Thread(target=self._relay, args=(client, server, self.sent), daemon=True).start()
            threading.Thread(target=self._relay, args=(server, client, []), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, kept: list[bytes]) -> None:
        try:
            while data := source.recv(65536):
                kept.append(data)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            each.close()

    def send_again(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._server)) as connection:
            connection.sendall(data)
            return connection.recv(65536)

    def close(self) -> None:
        self._listening.close()


def test_a_copy_of_a_save_that_comes_late_moves_the_position_nowhere(redis):
    recorder = Recorder(redis.port)
    try:
        conf = conf_of(f"redis://127.0.0.1:{recorder.port}/0")
        last = None
        for owner in ("first", "second"):  # the second goes on from the first one's position
            store = open_positions(conf, "numbers-0")
            assert store.claim() == last
            store.save(f"{owner}: 1")
            copy = next(data for data in recorder.sent if f"{owner}: 1".encode() in data)
            last = f"{owner}: 2"
            store.save(last)
            recorder.send_again(copy)
            store.close()
        store = open_positions(conf, "numbers-0")
        assert store.claim() == last
        store.close()
    finally:
        recorder.close()


def test_a_position_file_that_is_deleted_is_reported(tmp_path):
    path = tmp_path / "positions.sqlite"
    run = run_spout(Numbers(10), 2, conf=conf_of(str(path)))
    run.ack(0)
    for each in tmp_path.glob("positions.sqlite*"):
        each.unlink()
    with pytest.raises(StoreGoneError, match="deleted, renamed, emptied or replaced"):
        run.next()
    with pytest.raises(StoreGoneError):
        run.close()


# ---- settings ----


@pytest.mark.parametrize(
    "wrong", [7, "", "http://127.0.0.1/0", "redis://:secret@127.0.0.1/0", "redis://127.0.0.1/x", "redis:///1"]
)
def test_a_wrong_place_is_refused_before_anything_starts(wrong, tmp_path):
    refused = pytest.raises((TaskStartError, ConfigError), match=r"multilang\.positions is ")
    with LocalCluster(mode="inprocess", conf={"multilang.positions": wrong}) as cluster, refused:
        cluster.submit(numbers(Numbers(20), str(tmp_path / "out")))


def test_on_storm_a_place_has_to_be_named():
    with pytest.raises(ConfigError, match=r"set multilang\.store"):
        run_spout(Numbers(10), conf={"multilang.parent": "storm"})


def test_a_place_of_the_topology_s_own_where_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    run = run_spout(Numbers(10), 1, conf={"topology.name": "shop"})
    run.ack(0)
    run.close()
    assert (tmp_path / "shop.sqlite").exists()
    [(name, text)] = saved_positions({"topology.name": "shop", "multilang.parent": "local"}).items()
    assert name == "spout/0"
    assert json.loads(text)["position"] == {"at": 1}


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("multilang.store", "sqlite:kept.sqlite"),
        ("multilang.positions", "sqlite:kept.sqlite"),
        ("multilang.positions", "kept.sqlite"),
        ("multilang.positions", "./kept.sqlite"),
        ("multilang.positions", "sqlite://{here}/kept.sqlite"),
        ("multilang.positions", "{here}/kept.sqlite"),
        ("multilang.positions", "{here}/also:kept.sqlite"),
    ],
)
def test_a_place_is_a_url_or_a_path(setting, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    conf = {"topology.name": "numbers", "multilang.parent": "storm", setting: given.replace("{here}", str(tmp_path))}
    if setting == "multilang.positions":
        conf["multilang.store"] = "redis://127.0.0.1:1"  # which is not asked for it
    run = run_spout(Numbers(10), 1, conf=conf)
    run.ack(0)
    run.close()
    assert (tmp_path / ("also:kept.sqlite" if "also" in given else "kept.sqlite")).exists()
    again = run_spout(Numbers(10), 1, conf=conf)
    assert again.values == [[1]]
    again.close()


@pytest.mark.parametrize("wrong", [None, {1, 2}])
def test_a_position_that_can_not_be_kept_is_reported(wrong, positions):
    class Wrong(Numbers):
        def position(self):
            return wrong

    with pytest.raises(ConfigError, match=r"Wrong\.position\(\) returned"):
        run_spout(Wrong(10), 1, conf=conf_of(positions)).close()


# ---- checkpoints instead ----


class Sum(StatefulBolt):
    output_fields = ["number"]

    def init_state(self, state):
        self.state = state

    def process(self, tup):
        self.state.put("sum", self.state.get("sum", 0) + tup["number"])
        self.ack(tup)


def test_under_exact_alignment_the_checkpoints_keep_the_position(tmp_path):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20))
    builder.set_bolt("sum", Sum()).shuffle_grouping("numbers")
    path = tmp_path / "positions.sqlite"
    conf = {
        "multilang.state.alignment": "exact",
        "multilang.positions": str(path),
        "topology.state.provider": "sqlite",
        "topology.state.provider.config": {"path": str(tmp_path / "state.sqlite")},
        "topology.state.checkpoint.interval.ms": 100,
    }
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(builder.build(name="numbers", conf=conf)).wait(timeout=patient(60))
    assert not path.exists()
    with LocalCluster(mode="inprocess") as cluster:
        again = cluster.submit(builder.build(name="numbers", conf=conf), capture=["numbers"])
        again.wait(timeout=patient(60))
        assert again.captured("numbers") == []
