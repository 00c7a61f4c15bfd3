"""Kafka in plain topologies: an offset is committed when all before it is done, whatever is killed and whoever comes and goes."""

from __future__ import annotations

import copy
import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from multilang import LocalCluster
from multilang.component.errors import ConfigError
from multilang.local import TaskStartError
from multilang.queues import KafkaSpout, kafka_group
from multilang.queues import kafka as module
from multilang.state import kafka_client
from multilang.testing import run_spout
from tests.patience import paced, patient
from tests.queues.consuming import DyingKafka, orders
from tests.servers import LIMIT, KafkaServer, free_port, wait_for
from tests.soak import SOAK, soak_only

ROOT = Path(__file__).parents[2]
DEATHS = 3 if SOAK else 1
SESSION_SECS = paced(2.0)
_numbers = itertools.count()


class Queue:
    """A topic with messages ``"0"``, ``"1"``... in turn over its partitions, and what group ``shop`` has committed of it."""

    def __init__(self, server: KafkaServer, partitions: int = 1, messages: int = 0) -> None:
        self.address = server.address
        self.topic = f"orders-{next(_numbers)}"
        self.partitions = partitions
        self.filled = 0
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self.producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        self._group = Consumer(
            {"bootstrap.servers": self.address, "group.id": "shop", "enable.auto.commit": False, "log_level": 0}
        )
        self.make()
        self.fill(messages)

    def make(self) -> None:
        self.admin.create_topics([NewTopic(self.topic, self.partitions, 1)])[self.topic].result(LIMIT)
        wait_for(lambda: self._leaders() == self.partitions, "the topic is known")

    def _leaders(self) -> int:
        found = self.admin.list_topics(self.topic, timeout=LIMIT).topics[self.topic]
        return sum(each.leader >= 0 for each in found.partitions.values())

    def fill(self, count: int) -> None:
        for number in range(self.filled, self.filled + count):
            self.producer.produce(self.topic, str(number), partition=number % self.partitions)
        assert self.producer.flush(LIMIT) == 0
        self.filled += count

    def committed(self) -> list[int]:
        """For each partition the offset that is next, -1 where none is known."""
        asked = [TopicPartition(self.topic, number) for number in range(self.partitions)]
        return [max(each.offset, -1) for each in self._group.committed(asked, timeout=LIMIT)]

    def all_done(self) -> bool:
        ends = [
            self._group.get_watermark_offsets(TopicPartition(self.topic, number), timeout=LIMIT)[1]
            for number in range(self.partitions)
        ]
        return self.committed() == ends

    def remove(self, before: int) -> None:
        """Delete the first records, as retention does."""
        asked = TopicPartition(self.topic, 0, before)
        self.admin.delete_records([asked])[asked].result(LIMIT)

    def spout(self, kind: type[KafkaSpout] = KafkaSpout, **options) -> KafkaSpout:
        found = kind(self.address, self.topic, **{"group": "shop", "session_secs": SESSION_SECS, **options})
        found.commit_secs = 0.0
        return found


def until(condition, *runs) -> None:
    def asked() -> bool:
        for run in runs:
            run.next()
        return condition()

    wait_for(asked, "what the spout is asked for")


def read(count: int, *runs) -> None:
    until(lambda: sum(len(run.values) for run in runs) >= count, *runs)


def acked(*runs) -> None:
    for run in runs:
        for tup_id in list(run.pending):
            run.ack(tup_id)


def would_end(*runs) -> bool:
    """Return whether the embedded cluster would end a topology of these tasks, if they said so several times."""
    return all(run.spout.exhausted() is not False and not run.spout.under_way for run in runs)


def numbers(*runs) -> list[int]:
    return [int(values[0]) for run in runs for values in run.values]


def ids(run) -> dict[int, str]:
    """The message id of each number's last emit."""
    return {int(emitted.values[0]): emitted.tup_id for emitted in run.emitted}


def written(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()]


# ---- killed ----


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
@pytest.mark.parametrize("tasks", [1, 2] if SOAK else [2])
def test_a_spout_that_is_killed_loses_no_message(kafka, tmp_path, tasks, seed):
    queue = Queue(kafka, 4, 300)
    deaths = tuple(random.Random(seed).sample(range(20, 300), DEATHS))
    spout = DyingKafka(queue.address, queue.topic, deaths, str(tmp_path), session_secs=SESSION_SECS)
    out = tmp_path / "out"
    with LocalCluster(seed=seed) as cluster:
        run = cluster.submit(orders(spout, str(out), tasks))
        run.wait(lambda run: queue.all_done(), timeout=patient(120))
        assert sum(task.restarts for task in run.tasks if task.component == "orders") == DEATHS
    assert set(written(out)) == set(range(300))


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_a_bolt_that_is_killed_loses_no_message(kafka, tmp_path, seed):
    queue = Queue(kafka, 4, 100)
    deaths = tuple(random.Random(seed).sample(range(100), DEATHS))
    out = tmp_path / "out"
    with LocalCluster(seed=seed, conf={"topology.message.timeout.secs": paced(1)}) as cluster:
        run = cluster.submit(orders(queue.spout(), str(out), deaths=deaths))
        run.wait(lambda run: queue.all_done(), timeout=patient(120))
        assert sum(task.restarts for task in run.tasks if task.component == "written") == DEATHS
    assert set(written(out)) == set(range(100))


def test_a_broker_that_is_killed_and_started_again_loses_no_message(kafka, tmp_path):
    (tmp_path / "kafka").mkdir()
    server = KafkaServer(tmp_path / "kafka")
    server.start()
    queue = Queue(server, 4, 100)
    out = tmp_path / "out"
    try:
        with LocalCluster(conf={"topology.message.timeout.secs": paced(5)}) as cluster:
            run = cluster.submit(orders(queue.spout(session_secs=paced(10.0)), str(out), 2))
            run.wait(lambda run: out.exists() and len(written(out)) > 20, timeout=patient(120))
            server.kill()
            restarter = threading.Thread(target=server.start)
            restarter.start()
            run.wait(lambda run: not restarter.is_alive(), timeout=LIMIT)
            restarter.join()
            queue.fill(100)
            run.wait(lambda run: queue.all_done(), timeout=patient(120))
            assert not [task for task in run.tasks if task.restarts]
        assert set(written(out)) == set(range(200))
    finally:
        server.kill()


# ---- what is committed ----


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_every_message_is_committed_when_its_tree_is_done(kafka, tmp_path, mode):
    queue = Queue(kafka, 2, 50)
    with LocalCluster(
        mode=mode, conf={"multilang.exchange": "root"}
    ) as cluster:  # what fails has no others written again
        cluster.submit(orders(queue.spout(), str(tmp_path / "out"))).wait(
            timeout=36_000 if mode == "simulated" else patient(60)
        )
    assert sorted(written(tmp_path / "out")) == list(range(50))
    assert queue.all_done()


def test_an_offset_is_committed_when_all_before_it_are_done(kafka):
    queue = Queue(kafka, 1, 5)
    run = run_spout(queue.spout())
    read(5, run)
    known = ids(run)
    for number, committed in ((1, 0), (2, 0), (0, 3), (4, 3)):
        run.ack(known[number])
        until(lambda committed=committed: queue.committed() == [committed], run)
    run.close()
    assert queue.committed() == [3]
    again = run_spout(queue.spout())
    read(2, again)
    assert numbers(again) == [3, 4]
    again.close()


def test_what_was_acked_last_is_committed_at_the_end(kafka):
    queue = Queue(kafka, 1, 3)
    spout = queue.spout()
    spout.commit_secs = 3600.0
    run = run_spout(spout)
    read(3, run)
    for tup_id in list(run.pending):
        run.ack(tup_id)
    run.close()
    assert queue.committed() == [3]


def test_what_is_acked_while_the_topology_is_deactivated_is_committed(kafka):
    queue = Queue(kafka, 1, 3)
    run = run_spout(queue.spout())
    read(3, run)
    run.deactivate()
    for tup_id in list(run.pending):
        run.ack(tup_id)
    wait_for(lambda: queue.committed() == [3], "no call of next_tuple is needed")
    run.close()


def test_without_ackers_a_message_is_done_when_it_is_emitted(kafka, tmp_path):
    queue = Queue(kafka, 1, 20)
    with LocalCluster(mode="inprocess", conf={"topology.acker.executors": 0}) as cluster:
        cluster.submit(orders(queue.spout(), str(tmp_path / "out"))).wait(timeout=patient(60))
    assert queue.all_done()


def test_what_is_given_up_counts_as_done(kafka):
    queue = Queue(kafka, 1, 2)
    spout = queue.spout()
    spout.max_replays = 0
    run = run_spout(spout)
    read(2, run)
    run.fail(run.pending[0])
    assert "gave up" in run.errors[0]
    until(lambda: queue.committed() == [1], run)
    run.close()


def test_the_marks_of_a_producers_transactions_hold_nothing_back(kafka):
    queue = Queue(kafka)
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": queue.topic})
    producer.init_transactions(LIMIT)
    for text, commit in (("1", True), ("2", False)):
        producer.begin_transaction()
        producer.produce(queue.topic, text, partition=0)
        producer.flush(LIMIT)
        (producer.commit_transaction if commit else producer.abort_transaction)(LIMIT)
    run = run_spout(queue.spout())
    read(1, run)
    run.ack(run.pending[0])
    until(queue.all_done, run)
    assert numbers(run) == [1]
    other = run_spout(queue.spout())
    until(lambda: would_end(run, other), run, other)
    run.close()
    other.close()


def test_two_groups_get_all_messages_each(kafka):
    queue = Queue(kafka, 1, 3)
    for group in ("shop", "books"):
        run = run_spout(queue.spout(group=group))
        read(3, run)
        assert numbers(run) == [0, 1, 2]
        run.close()


def test_no_more_is_under_way_than_max_spout_pending_and_the_group_goes_on(kafka, monkeypatch):
    monkeypatch.setattr(module, "_LISTEN_SECS", 0.0)
    queue = Queue(kafka, 2, 20)
    full = run_spout(queue.spout(), conf={"topology.max.spout.pending": 4})
    read(4, full)
    full.next(20)
    assert full.spout.under_way == 4
    other = run_spout(queue.spout())
    until(lambda: len(other.values) >= 10, other, full)  # a partition is given away by one that has no room
    while full.spout.under_way:
        for tup_id in list(full.pending):
            full.ack(tup_id)
        full.next(20)
        assert full.spout.under_way <= 4
    for tup_id in list(other.pending):
        other.ack(tup_id)
    until(queue.all_done, full, other)
    assert set(numbers(full, other)) == set(range(20))
    full.close()
    other.close()


def test_what_waits_for_room_is_not_committed_at_the_end_of_its_partition(kafka, monkeypatch):
    monkeypatch.setattr(module, "_LISTEN_SECS", 0.0)
    queue = Queue(kafka, 4, 4)
    settings = {"bootstrap.servers": queue.address, "group.id": "shop", "enable.auto.commit": False, "log_level": 0}
    other = Consumer(
        {**settings, "partition.assignment.strategy": "cooperative-sticky", "auto.offset.reset": "earliest"}
    )
    other.subscribe([queue.topic])
    read_by_other = set()

    def other_has(count):
        message = other.poll(0.1)
        if message is not None and message.error() is None:
            read_by_other.add(message.value())
        return len(read_by_other) >= count

    wait_for(lambda: other_has(4), "the other member has all")
    other.commit(offsets=[TopicPartition(queue.topic, number, 1) for number in range(4)], asynchronous=False)
    queue.fill(8)
    full = run_spout(queue.spout(), conf={"topology.max.spout.pending": 1})
    until(lambda: other_has(99) or full.values, full)
    other.close()  # its partitions come to the spout, which has no room

    def ends_heard():
        said = [each.partition() for each in full.spout._ahead if each.error() is not None]
        return {*said, *(number for number, each in full.spout._partitions.items() if each.at_end)}

    until(lambda: len(full.spout._partitions) == 4 and full.spout._ahead and len(ends_heard()) >= 2, full)
    full.next(20)
    assert queue.committed() == [1, 1, 1, 1], "nothing is acked"
    full.close()
    assert queue.committed() == [1, 1, 1, 1]


# ---- partitions come and go ----


def test_a_task_that_joins_gets_partitions_and_a_late_ack_of_their_old_owner_commits_nothing(kafka):
    queue = Queue(kafka, 2, 20)
    old = run_spout(queue.spout())
    read(20, old)
    known = ids(old)
    new = run_spout(queue.spout())
    until(lambda: len(new.values) == 10, old, new)
    mine = numbers(new)[0] % 2  # the partition that went over
    assert numbers(new) == list(range(mine, 20, 2))
    old.fail(known[mine])
    assert old.next(20) == [], "what others have is not replayed here"
    for tup_id in list(old.pending):
        old.ack(tup_id)
    until(lambda: queue.committed()[1 - mine] == 10, old, new)
    assert queue.committed()[mine] == 0
    new.close()
    again = run_spout(queue.spout())
    until(lambda: len(again.values) + len(old.values) == 30, old, again)
    old.close()
    again.close()


def test_a_commit_that_arrives_after_the_group_went_on_is_refused_by_its_generation(kafka):
    queue = Queue(kafka, 1, 10)
    spout = queue.spout(session_secs=paced(1.0))
    spout.servers = f"127.0.0.1:{kafka.wire.port}"
    old = run_spout(spout)
    read(10, old)
    until(lambda: queue.committed() == [0], old)
    kafka.wire.cut.set()
    for tup_id in list(old.pending):
        old.ack(tup_id)  # the commit is sent, and does not arrive
    new = run_spout(queue.spout())
    read(10, new)
    known = ids(new)
    for number in range(3):
        new.ack(known[number])
    until(lambda: queue.committed() == [3], new)
    kafka.wire.cut.clear()
    until(lambda: any("can't be committed" in text for _, text in old.logged), old, new)
    assert queue.committed() == [3]
    for number in range(3, 10):
        new.ack(known[number])
    until(queue.all_done, old, new)
    old.close()
    new.close()


def test_a_task_that_was_stopped_and_wakes_up_commits_nothing_of_what_others_have(kafka):
    queue = Queue(kafka, 1, 10)
    command = [sys.executable, "-m", "tests.queues.stopped", queue.address, queue.topic, str(paced(1.0))]
    old = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(text: str) -> None:
        old.stdin.write(f"{text}\n")
        old.stdin.flush()

    try:
        ask("read 10")
        assert len(json.loads(old.stdout.readline())["values"]) == 10
        old.send_signal(signal.SIGSTOP)
        new = run_spout(queue.spout())
        read(10, new)
        known = ids(new)
        for number in range(3):
            new.ack(known[number])
        until(lambda: queue.committed() == [3], new)
        ask("ack")  # of all ten, the first thing that it does when it wakes up
        old.send_signal(signal.SIGCONT)
        answers = []
        reader = threading.Thread(target=lambda: answers.append(old.stdout.readline()))
        reader.start()
        until(lambda: not reader.is_alive(), new)
        assert json.loads(answers[0])["errors"] == []
        assert queue.committed() == [3]
        for number in range(3, 10):
            new.ack(known[number])
        until(queue.all_done, new)
        new.close()
    finally:
        old.kill()
        old.wait()
        old.stdin.close()
        old.stdout.close()


@pytest.mark.parametrize("seed", range(20 if SOAK else 1))
def test_tasks_that_come_and_go_commit_no_message_that_is_not_done(kafka, seed):
    chance = random.Random(seed)
    queue = Queue(kafka, 3, 60)
    runs = [run_spout(queue.spout())]
    done: set[int] = set()

    def check() -> None:
        for partition, offset in enumerate(queue.committed()):
            assert {3 * each + partition for each in range(offset)} <= done

    for _ in range(60):
        step = chance.choice(["next", "next", "ack", "ack", "fail", "join", "leave"])
        run = chance.choice(runs)
        if step == "join" and len(runs) < 4:
            runs.append(run_spout(queue.spout()))
        elif step == "leave" and len(runs) > 1:
            runs.remove(run)
            run.close()
        elif step in ("ack", "fail"):
            for tup_id in chance.sample(run.pending, min(3, len(run.pending))):
                if step == "ack":
                    done.update(int(each.values[0]) for each in run.emitted if each.tup_id == tup_id)
                getattr(run, step)(tup_id)
        for each in runs:
            each.next(chance.randrange(4))
        check()
        assert not would_end(*runs) or queue.all_done()

    def finished() -> bool:
        for each in runs:
            for tup_id in list(each.pending):
                done.update(int(emitted.values[0]) for emitted in each.emitted if emitted.tup_id == tup_id)
                each.ack(tup_id)
        return queue.all_done()

    until(finished, *runs)
    assert done == set(range(60))
    for each in runs:
        each.close()


class DiesOnce(KafkaSpout):
    deaths: list[str]

    def emit(self, values, *more):
        if values[0] == "7" and not self.deaths:
            self.deaths.append("7")
            raise RuntimeError("once")
        return super().emit(values, *more)

    def __deepcopy__(self, _):
        return copy.copy(self)  # with the same list of deaths


def test_a_task_that_dies_in_a_process_that_lives_on_leaves_the_group(kafka, tmp_path):
    queue = Queue(kafka, 2, 20)
    spout = queue.spout(DiesOnce, session_secs=paced(45.0))
    spout.deaths = []
    with LocalCluster(mode="inprocess") as cluster:
        cluster.submit(orders(spout, str(tmp_path / "out"))).wait(timeout=patient(30))
    assert spout.deaths
    assert set(written(tmp_path / "out")) == set(range(20))
    assert queue.all_done()


# ---- nothing more ----


def test_no_more_is_said_only_when_the_group_has_read_all_whoever_has_the_partitions(kafka):
    queue = Queue(kafka, 2, 20)
    runs = [run_spout(queue.spout())]
    read(20, *runs)
    runs += [run_spout(queue.spout()), run_spout(queue.spout())]

    def ended() -> bool:
        if len(runs[0].spout._partitions) < 2:  # what was under way of the other one is dropped
            acked(*runs)
        return would_end(*runs)

    until(ended, *runs)
    assert queue.all_done()
    for run in runs:
        run.close()


def test_what_another_member_has_and_does_not_commit_is_waited_for_then_left_to_it_and_read_when_it_leaves(kafka):
    queue = Queue(kafka, 3)
    queue.partitions = 2  # the third one stays empty
    queue.fill(4)
    settings = {"bootstrap.servers": queue.address, "group.id": "shop", "enable.auto.commit": False, "log_level": 0}
    other = Consumer({**settings, "partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 100})
    other.subscribe([queue.topic])
    wait_for(lambda: other.poll(0.1) is None and other.assignment(), "the other member has all")
    run = run_spout(queue.spout())
    run.spout._rest._wait_secs = 0.5

    def is_done() -> bool:
        if other is not None:
            other.poll(0)
        acked(run)
        return would_end(run)

    until(is_done, run)
    mine = {emitted.tup_id.partition("/")[0] for emitted in run.emitted}
    assert len(mine) < 2
    assert not queue.all_done()
    ((_, said),) = [each for each in run.logged if "are left to these" in each[1]]
    assert "are with other members of group 'shop'" in said
    other.close()
    other = None
    read(4, run)
    until(is_done, run)
    assert queue.all_done()
    run.close()


def test_no_more_is_not_said_while_the_broker_does_not_answer(kafka, monkeypatch):
    for name in ("_AGAIN_SECS", "_STALE_SECS", "_REST_SECS"):
        monkeypatch.setattr(kafka_group, name, 0.0)
    monkeypatch.setattr(kafka_group, "_PATIENCE_SECS", 0.5)
    queue = Queue(kafka, 1, 2)
    spout = queue.spout(session_secs=paced(60.0))
    spout.servers = f"127.0.0.1:{kafka.wire.port}"
    run = run_spout(spout)
    until(lambda: acked(run) or would_end(run), run)
    kafka.wire.cut.set()
    try:
        until(lambda: not would_end(run), run)
        assert "does not answer" in run.errors[-1]
    finally:
        kafka.wire.cut.clear()
    until(lambda: would_end(run), run)
    assert numbers(run) == [0, 1]
    run.close()


# ---- what is not there ----


def test_messages_that_were_removed_before_they_were_acked_are_reported(kafka):
    queue = Queue(kafka, 1, 6)
    run = run_spout(queue.spout())
    read(6, run)
    run.ack(run.pending[0])
    until(lambda: queue.committed() == [1], run)
    run.close()
    queue.remove(4)
    again = run_spout(queue.spout())
    read(2, again)
    assert numbers(again) == [4, 5]
    assert len(again.errors) == 1
    assert "messages 1 to 3 of partition 0 of topic" in again.errors[0]
    assert "were removed (retention.ms, retention.bytes) before they were acked" in again.errors[0]
    for tup_id in list(again.pending):
        again.ack(tup_id)
    until(queue.all_done, again)
    again.close()


def test_messages_of_a_group_that_never_committed_are_reported_when_they_are_removed(kafka):
    queue = Queue(kafka, 1, 6)
    run = run_spout(queue.spout())
    read(6, run)
    until(lambda: queue.committed() == [0], run)  # where it began, before anything is acked
    run.close()
    queue.remove(2)
    again = run_spout(queue.spout())
    read(4, again)
    assert "messages 0 to 1 of partition 0" in again.errors[0]
    again.close()


def test_a_topic_that_is_deleted_and_made_anew_is_read_from_its_beginning(kafka, monkeypatch):
    monkeypatch.setattr(module, "_REFRESH_SECS", 1)
    queue = Queue(kafka, 1, 3)
    run = run_spout(queue.spout())
    read(3, run)
    late = run.pending[0]
    run.ack(run.pending[1])
    queue.admin.delete_topics([queue.topic])[queue.topic].result(LIMIT)
    until(lambda: run.errors, run)
    queue.make()
    queue.fill(2)
    read(5, run)
    assert numbers(run)[3:] == [3, 4]
    run.ack(late)  # of the old topic
    run.ack(run.pending[-1])
    until(lambda: queue.committed() == [0], run)
    run.close()


def test_a_message_that_is_no_text_is_reported_and_holds_up_no_other(kafka):
    queue = Queue(kafka)
    queue.producer.produce(queue.topic, b"\xff", partition=0)
    queue.producer.produce(queue.topic, None, partition=0)
    queue.producer.flush(LIMIT)
    run = run_spout(queue.spout())
    read(1, run)
    assert run.values == [[None]]
    assert "the value of message 0, partition 0 of topic" in run.errors[0]
    assert "is not UTF-8" in run.errors[0]
    run.ack(run.pending[0])
    until(queue.all_done, run)
    run.close()


def test_the_fields_are_parts_of_the_message_and_its_id_is_its_place(kafka):
    queue = Queue(kafka)
    queue.producer.produce(queue.topic, "moon", "key", partition=0, timestamp=1_700_000_000_000)
    queue.producer.flush(LIMIT)
    run = run_spout(queue.spout(fields=["offset", "partition", "key", "value", "timestamp"]))
    read(1, run)
    assert run.values == [[0, 0, "key", "moon", 1_700_000_000_000]]
    assert run.spout.source_id(run.pending[0]) == "0/0"
    run.close()


@soak_only
def test_a_broker_that_is_away_is_reported_once_and_waited_for(kafka, tmp_path, monkeypatch):
    server = KafkaServer(tmp_path)
    server.start()
    try:
        queue = Queue(server, 1, 4)
        run = run_spout(queue.spout(session_secs=paced(60.0)))
        read(4, run)
        known = ids(run)
        run.ack(known[0])
        until(lambda: queue.committed() == [1], run)
        server.kill()
        until(lambda: run.errors, run)
        run.ack(known[1])
        run.next(10)
        server.start()
        queue.fill(2)
        read(6, run)
        assert numbers(run) == list(range(6)), "nothing comes twice"
        until(lambda: queue.committed() == [2], run)
        assert len(run.errors) <= 2, "a broker that is just starting may be lost once more"
        assert run.errors[0].startswith(f"topic {queue.topic!r} of Kafka at {server.address} ")
        assert run.errors[0].endswith("it is tried again until it works")
        server.kill()
        run.ack(known[2])
        monkeypatch.setattr(module, "PATIENCE_SECS", 0.5)
        before = time.monotonic()
        run.close()
        assert time.monotonic() - before < 20, "it waits for nobody who does not come"
    finally:
        server.kill()


def test_a_topic_that_is_made_later_is_reported_and_waited_for(kafka, monkeypatch):
    monkeypatch.setattr(module, "_REFRESH_SECS", 1)
    queue = Queue(kafka)
    queue.topic += "-later"
    run = run_spout(queue.spout())
    until(lambda: run.errors, run)
    assert "Unknown topic" in run.errors[0]
    queue.make()
    queue.fill(1)
    read(1, run)
    assert len(run.errors) == 1
    run.close()


# ---- before anything starts ----


def told(spout: KafkaSpout, tmp_path: Path) -> str:
    with LocalCluster(mode="inprocess") as cluster, pytest.raises(TaskStartError) as found:
        cluster.submit(orders(spout, str(tmp_path / "out")))
    return str(found.value)


def test_a_topic_that_is_not_there_is_reported_before_anything_starts(kafka, tmp_path):
    said = told(KafkaSpout(kafka.address, "nix", "shop"), tmp_path)
    assert "topic 'nix' of Kafka at" in said
    assert "make the topic, or name another" in said


def test_a_broker_that_is_not_there_is_reported_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECS", 0.5)
    said = told(KafkaSpout(f"127.0.0.1:{free_port()}", "orders", "shop"), tmp_path)
    assert "is a broker running there?" in said


def test_a_broker_that_is_there_and_slow_is_waited_for_before_anything_starts(kafka, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECS", 0.1)
    monkeypatch.setattr(kafka_client, "_HASTE_SECS", 0.1)
    spout = Queue(kafka).spout()
    kafka.pause(0.5)
    spout.check_start({})


def test_an_option_that_librdkafka_does_not_know_is_reported_before_anything_starts(tmp_path):
    said = told(KafkaSpout(f"127.0.0.1:{free_port()}", "orders", "shop", options={"nix": 1}), tmp_path)
    assert "does not take the options" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"servers": ""}, "servers is ''"), ({"topic": ""}, "topic is ''"), ({"group": 7}, "group is 7"),
     ({"session_secs": 0}, "session_secs is 0"), ({"fields": ["word"]}, "has no 'word'"),
     ({"options": {"group.id": "x"}}, r"'group\.id', which the spout sets")],
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong, said):
    with pytest.raises(ConfigError, match=said):
        KafkaSpout(**{"servers": "127.0.0.1:9092", "topic": "orders", "group": "shop", **wrong})
