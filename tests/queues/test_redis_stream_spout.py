"""Redis Streams in plain topologies: an entry is acked to its group when its tree is done, whatever is killed."""

from __future__ import annotations

import random
import socket
import threading
from typing import TYPE_CHECKING

import pytest
import redis as redis_py

from multilang import LocalCluster
from multilang.component.errors import ConfigError
from multilang.local import TaskStartError
from multilang.queues import RedisStreamSpout
from multilang.queues import redis as module
from multilang.testing import run_spout
from tests.patience import patient
from tests.queues.consuming import DyingRedis, orders
from tests.servers import RedisServer, Wire, free_port, wait_for
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def queue(redis) -> Iterator[redis_py.Redis]:
    client = redis_py.Redis(port=redis.port)
    yield client
    client.close()


def fill(queue: redis_py.Redis, count: int) -> None:
    with queue.pipeline() as pipeline:
        for number in range(count):
            pipeline.xadd("orders", {"number": number})
        pipeline.execute()


def unacked(queue: redis_py.Redis) -> int:
    (group,) = queue.xinfo_groups("orders")
    return group["pending"] + (group["lag"] or 0)


def spout_of(redis: RedisServer, **options) -> RedisStreamSpout:
    return RedisStreamSpout("orders", ["number"], "shop", port=redis.port, **options)


def until(run, condition) -> None:
    def asked() -> bool:
        run.next()
        return condition()

    wait_for(asked, "what the spout is asked for")


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_spout_that_is_killed_loses_no_entry(redis, queue, tmp_path, tasks, seed):
    fill(queue, 300)
    deaths = tuple(random.Random(seed).sample(range(20, 300), 3))
    out = tmp_path / "out"
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(orders(DyingRedis(redis.port, deaths, str(tmp_path), take=30), str(out), tasks))
        run.wait(lambda run: unacked(queue) == 0, timeout=patient(120))
        assert sum(task.restarts for task in run.tasks if task.component == "orders") == 3
    found = [int(line) for line in out.read_text().splitlines()]
    assert set(found) == set(range(300))
    assert len(found) <= 300 + 3 * 30 * tasks


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_every_entry_is_acked_to_the_queue_when_its_tree_is_done(redis, queue, tmp_path, mode):
    fill(queue, 50)
    with LocalCluster(
        mode=mode, conf={"multilang.exchange": "root"}
    ) as cluster:  # what fails has no others written again
        cluster.submit(orders(spout_of(redis), str(tmp_path / "out"))).wait(timeout=patient(60))
    assert sorted(map(int, (tmp_path / "out").read_text().split())) == list(range(50))
    assert unacked(queue) == 0


def test_an_entry_is_acked_to_the_queue_only_when_its_tree_is_done(redis, queue):
    fill(queue, 3)
    run = run_spout(spout_of(redis), 3)
    run.ack(run.pending[0])
    run.close()
    assert unacked(queue) == 2
    again = run_spout(spout_of(redis), 4)
    assert again.values == [["1"], ["2"]]
    again.close()


def test_without_ackers_an_entry_is_acked_when_it_is_emitted(redis, queue, tmp_path):
    fill(queue, 20)
    with LocalCluster(mode="inprocess", conf={"topology.acker.executors": 0}) as cluster:
        cluster.submit(orders(spout_of(redis), str(tmp_path / "out"))).wait(timeout=patient(60))
    assert unacked(queue) == 0


def test_what_a_consumer_had_that_is_no_more_is_taken_over(redis, queue):
    fill(queue, 5)
    dead = run_spout(spout_of(redis), 5, component="gone")
    run = run_spout(spout_of(redis, claim_idle_secs=0.05))
    until(run, lambda: len(run.pending) == 5)
    assert run.values == [[str(number)] for number in range(5)]
    for id in list(run.pending):
        run.ack(id)
        dead.ack(id)  # it was only stopped, wakes up, and says the truth
    run.close()
    dead.close()
    assert unacked(queue) == 0


@pytest.mark.parametrize("deleted", [[0], [0, 1, 2]])
def test_an_entry_of_a_consumer_that_is_no_more_that_was_deleted_before_it_was_acked_is_reported(redis, queue, deleted):
    fill(queue, 3)
    dead = run_spout(spout_of(redis), 3, component="gone")
    queue.xdel("orders", *(dead.pending[number] for number in deleted))
    run = run_spout(spout_of(redis, claim_idle_secs=0.05))
    until(run, lambda: len(run.values) + len(run.errors) == 3)
    assert run.values == [[str(number)] for number in range(3) if number not in deleted]
    assert all("was trimmed or deleted before it was acked: it is lost" in text for text in run.errors)
    for id in list(run.pending):
        run.ack(id)
    run.close()
    dead.close()
    assert queue.xinfo_groups("orders")[0]["pending"] == 0


def test_what_a_consumer_had_that_is_no_more_is_taken_over_also_while_new_entries_come(redis, queue):
    fill(queue, 2)
    dead = run_spout(spout_of(redis), 2, component="gone")
    run = run_spout(spout_of(redis, claim_idle_secs=0.05, take=1))

    def taken() -> bool:
        fill(queue, 1)
        return {"0", "1"} <= {number for (number,) in run.values[-5:]}

    until(run, taken)
    assert any("are taken over from consumer" in text for _, text in run.logged)
    run.close()
    dead.close()


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_run_does_not_end_before_what_a_consumer_had_that_is_no_more_is_taken_over(redis, queue, tmp_path, mode):
    fill(queue, 5)
    gone = run_spout(spout_of(redis), 5, component="gone")
    with LocalCluster(mode=mode) as cluster:
        cluster.submit(orders(spout_of(redis, claim_idle_secs=0.3), str(tmp_path / "out"), 2)).wait(timeout=patient(60))
    assert {int(line) for line in (tmp_path / "out").read_text().split()} == set(range(5))
    assert unacked(queue) == 0
    gone.close()


def test_a_consumer_that_is_there_is_not_waited_for(redis, queue, monkeypatch):
    monkeypatch.setattr(module, "_NOTED_MS", 0.0)
    fill(queue, 5)
    other = run_spout(spout_of(redis), 5, component="other")
    run = run_spout(spout_of(redis))

    def waits() -> bool:
        assert run.spout.exhausted() is False
        return any("/other/0', which asks for nothing" in text for _, text in run.logged)

    until(run, waits)
    until(run, lambda: other.next(1) or run.spout.exhausted() is None)
    assert unacked(queue) == 5
    other.close()
    run.close()


def test_two_groups_get_all_entries_each(redis, queue):
    fill(queue, 3)
    for group in ("shop", "books"):
        run = run_spout(RedisStreamSpout("orders", ["number"], group, port=redis.port), 3)
        assert run.values == [["0"], ["1"], ["2"]]
        run.close()


def test_what_is_given_up_is_acked(redis, queue):
    fill(queue, 1)
    spout = spout_of(redis)
    spout.max_replays = 0
    run = run_spout(spout, 1)
    run.fail(run.pending[0])
    assert "gave up" in run.errors[0]
    run.close()
    assert unacked(queue) == 0


def test_an_entry_that_was_trimmed_before_it_was_acked_is_reported(redis, queue):
    fill(queue, 2)
    run_spout(spout_of(redis), 2).close()
    queue.xtrim("orders", maxlen=1, approximate=False)
    again = run_spout(spout_of(redis), 2)
    assert again.values == [["1"]]
    assert [text for text in again.errors if "was trimmed or deleted before it was acked" in text]
    again.close()


@pytest.mark.parametrize("left", [0, 2])
def test_entries_that_were_trimmed_before_they_were_read_are_reported_once(redis, queue, left):
    fill(queue, 5)
    run = run_spout(spout_of(redis, take=3), 3)
    queue.xtrim("orders", maxlen=2, approximate=False)
    run.next(3)
    assert len(run.values) == 5
    assert not run.errors  # nothing is lost by a trim of what was read
    fill(queue, 7)
    queue.xtrim("orders", maxlen=left, approximate=False)
    run.next(left + 3)
    assert len(run.values) == 5 + left
    assert [text for text in run.errors if f"{7 - left} entries of stream 'orders'" in text and "they are lost" in text]
    fill(queue, 3)
    run.next(5)
    assert len(run.values) == 5 + left + 3
    assert len(run.errors) == 1
    run.close()


def test_entries_that_were_trimmed_are_reported_also_of_a_stream_that_is_made_anew(redis, queue, monkeypatch):
    monkeypatch.setattr("multilang.queues.redis._REST_SECS", 0.0)
    fill(queue, 2)
    run = run_spout(spout_of(redis, take=2), 2)
    for told in (1, 2):
        fill(queue, 7)
        queue.xtrim("orders", maxlen=0, approximate=False)
        until(run, lambda told=told: sum("they are lost" in text for text in run.errors) == told)
        queue.delete("orders")
        until(run, lambda told=told: sum("NOGROUP" in text for text in run.errors) == told)
        fill(queue, 2)
        until(run, lambda told=told: len(run.values) == 2 + 2 * told)
    run.close()


def test_entries_that_were_deleted_before_they_were_read_are_reported_once(redis, queue):
    fill(queue, 6)
    run = run_spout(spout_of(redis, take=2), 2)
    first, *_, fifth, _ = [id for id, _ in queue.xrange("orders")]
    queue.xdel("orders", first)
    run.next(1)
    assert not run.errors
    queue.xdel("orders", fifth)
    run.next(6)
    assert [values[0] for values in run.values] == ["0", "1", "2", "3", "5"]
    assert [text for text in run.errors if f"up to {fifth.decode()} were deleted before group 'shop'" in text]
    queue.xtrim("orders", maxlen=0)
    fill(queue, 3)
    run.next(5)
    assert len(run.values) == 8
    assert len(run.errors) == 1
    run.close()


def test_an_entry_that_is_no_text_is_reported_and_holds_up_no_other(redis, queue):
    queue.xadd("orders", {"number": b"\xff"})
    queue.xadd("orders", {"other": "x"})
    run = run_spout(spout_of(redis), 2)
    assert run.values == [[None]]
    assert [text for text in run.errors if "is not UTF-8" in text]
    run.close()
    assert unacked(queue) == 2


def test_a_redis_that_is_killed_and_started_again_is_waited_for(tmp_path, redis_server, monkeypatch):
    monkeypatch.setattr("multilang.queues.redis._REST_SECS", 0.01)
    server = RedisServer(tmp_path)
    server.start()
    queue = redis_py.Redis(port=server.port)
    fill(queue, 4)
    run = run_spout(spout_of(server, take=2), 2)
    run.ack(run.pending[0])
    server.kill()
    until(run, lambda: run.errors)
    run.ack(run.pending[0])
    assert run.spout.exhausted() is False
    restarter = threading.Timer(0.1, server.start)
    restarter.start()
    until(run, lambda: len(run.values) == 4)
    restarter.join()
    assert run.values == [["0"], ["1"], ["2"], ["3"]]
    assert len(run.errors) == 1
    run.close()
    assert unacked(queue) == 2
    queue.close()
    server.kill()


class RedisWire(Wire):
    def _frame(self, source: socket.socket) -> bytes:
        return source.recv(65536)


def test_entries_that_were_given_in_a_lost_answer_are_asked_for_again(redis, queue, monkeypatch):
    monkeypatch.setattr("multilang.queues.redis._REST_SECS", 0.0)
    fill(queue, 4)
    wire = RedisWire(redis.port)
    run = run_spout(RedisStreamSpout("orders", ["number"], "shop", take=2, port=wire.port), 2)
    wire.lose_answer = 0  # the next one
    until(run, lambda: len(run.values) == 4)
    assert wire.lost == 1
    assert run.values == [["0"], ["1"], ["2"], ["3"]]
    run.close()
    wire.close()


def test_a_stream_that_is_deleted_and_made_anew_is_read_from_its_beginning(redis, queue, monkeypatch):
    monkeypatch.setattr("multilang.queues.redis._REST_SECS", 0.0)
    fill(queue, 1)
    run = run_spout(spout_of(redis), 1)
    run.ack(run.pending[0])
    queue.delete("orders")
    fill(queue, 2)
    until(run, lambda: len(run.values) == 3)
    run.close()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"stream": ""}, "stream is ''"), ({"group": 7}, "group is 7"), ({"take": 0}, "take is 0"),
     ({"claim_idle_secs": 0}, "claim_idle_secs is 0")],
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong, said):
    with pytest.raises(ConfigError, match=said):
        RedisStreamSpout(**{"stream": "orders", "fields": ["number"], "group": "shop", **wrong})


def test_a_redis_that_is_not_there_is_reported_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr("multilang.queues.redis.HASTE_SECS", 0.1)
    spout = RedisStreamSpout("orders", ["number"], "shop", port=free_port())
    with LocalCluster(mode="inprocess") as cluster, pytest.raises(TaskStartError, match="start it, or name another"):
        cluster.submit(orders(spout, str(tmp_path / "out")))
