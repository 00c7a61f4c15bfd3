"""A served source: whoever has the secret reads it, nobody else, and nobody holds it up."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import socket
import time
from copy import deepcopy
from multiprocessing.connection import Connection
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import TYPE_CHECKING

import pytest

from multilang import LocalCluster, TopologyBuilder
from multilang.helpers.checksums import extended
from spark_bridge import (
    ChangedRowsError,
    ConnectorError,
    PartitionSpout,
    Progress,
    RDDSource,
    ServedSource,
    SourceUnavailable,
    TransactionalPartitionSpout,
    serve,
)
from spark_bridge.sources import serve as serve_module
from spark_bridge.sources.served import MAX_ANSWER, connect
from tests.patience import patient
from tests.soak import soak_only
from tests.spark.sources.topologies import Echo, FailsFirst, SlowAtFirst, TooMuch, through

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_bridge import Served

SECRET = "a secret of more than sixteen characters"
LIMIT = patient(60.0)


@pytest.fixture
def served(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    rdd = spark.sparkContext.parallelize(range(20_000), 3)
    with serve(RDDSource(rdd, block_rows=1000, name="numbers"), stalled_secs=2) as served:
        yield served


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT} seconds: {what}"
        time.sleep(0.02)


def test_another_process_reads_the_same_rows(served: Served) -> None:
    source = pickle.loads(pickle.dumps(served.source))
    assert (source.name, source.fields, source.partitions) == ("numbers", ("value",), 3)
    for partition in range(3):
        assert source.read(partition, 1500, 3) == served.rdd_source.read(partition, 1500, 3)
    assert not source.read(0, 10**6, 1)
    source.close()


def test_neither_the_secret_nor_a_connection_is_pickled(served: Served) -> None:
    assert SECRET.encode() not in pickle.dumps(served.source)
    assert SECRET not in served.url


def test_a_secret_is_made_for_the_processes_that_are_started_here(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", "")
    with serve(spark.sparkContext.parallelize([1], 1)) as served:
        assert len(os.environ["MULTILANG_SOURCE_SECRET"]) == 64
        assert served.source.read(0, 0, 1) == [(1,)]


def test_the_wrong_secret_is_refused_and_the_right_one_served_still(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", "another secret of the same length, nearly")
    with pytest.raises(ConnectorError, match="do not have the same secret"):
        served.source.read(0, 0, 1)
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    assert served.source.read(0, 0, 1) == [(0,)]


@pytest.mark.parametrize(("secret", "said"), [(None, "has no secret"), ("short", "has 5 characters only")])
def test_no_secret_and_a_short_one_are_refused_by_the_variables_name(
    served: Served, monkeypatch: pytest.MonkeyPatch, secret: str | None, said: str
) -> None:
    if secret is None:
        monkeypatch.delenv("MULTILANG_SOURCE_SECRET")
    else:
        monkeypatch.setenv("MULTILANG_SOURCE_SECRET", secret)
    with pytest.raises(ConnectorError, match=f"MULTILANG_SOURCE_SECRET {said}"):
        served.source.read(0, 0, 1)


@pytest.mark.parametrize("named_by", ["conf", "source"])
def test_the_secret_may_be_in_a_file_that_the_conf_or_the_source_names(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named_by: str
) -> None:
    monkeypatch.delenv("MULTILANG_SOURCE_SECRET", raising=False)
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    with serve(spark.sparkContext.parallelize(range(30), 3), secret_file=str(file)) as served:
        if named_by == "conf":
            spout = PartitionSpout(served.url, fields=["value"])
            conf = {"multilang.source": served.url, "multilang.source.secret.file": str(file)}
        else:
            spout, conf = PartitionSpout(served.source), {}
        with LocalCluster() as cluster:
            cluster.submit(through(spout), conf=conf)
            served.wait(timeout=LIMIT)
        assert served.acked == 30
    assert "MULTILANG_SOURCE_SECRET" not in os.environ


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            None,
            "can't be read from the file .*secret', which multilang.source.secret.file or secret_file= names: .*No such file",
        ),
        ("short\n", "the file .*secret', .* has 5 characters only; set it to the serving driver's"),
        (
            "another secret of the same length, nearly",
            "do not have the same secret; put the serving driver's into the file .*secret', which .*secret_file= names$",
        ),
    ],
)
def test_a_file_without_the_secret_is_refused_by_its_name(
    served: Served, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    source = ServedSource(served.url)
    source.configure({"multilang.source.secret.file": str(file)})
    with pytest.raises(ConnectorError, match=said):
        assert source.partitions
    with pytest.raises(ConnectorError, match=r"multilang\.source\.secret\.file is 7; write the path"):
        source.configure({"multilang.source.secret.file": 7})
    source.configure({})  # the next topology's: what is in the environment
    assert source.partitions == 3
    source.close()


def echo(proof: bytes) -> bytes:
    """The client's own proof, sent back."""
    return proof[32:]


@pytest.mark.parametrize("answer", [echo, lambda _: bytes(32), lambda _: b""])
def test_a_server_without_the_secret_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def impostor() -> None:
            sock, _ = listener.accept()
            connection = Connection(sock.detach())
            connection.send_bytes(b"#multilang served 3#" + bytes(32))
            connection.send_bytes(answer(connection.recv_bytes(256)))
            connection.close()

        thread = Thread(target=impostor)
        thread.start()
        source = ServedSource(f"served://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(ConnectorError, match="do not have the same secret"):
            source.read(0, 0, 1)
        thread.join(LIMIT)


def test_a_byte_now_and_then_gives_a_stranger_no_more_time(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=LIMIT) as stranger:
        stranger.settimeout(0.2)
        stranger.sendall(b"\0\0\0\x80")  # 128 bytes are to come
        deadline = time.monotonic() + LIMIT
        while True:  # it went on for ever
            assert time.monotonic() < deadline
            try:
                stranger.sendall(b"x")
                if not stranger.recv(4096):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        until(lambda: not served._listener.anonymous, "it is forgotten")


def test_strangers_take_no_place_of_those_who_know_the_secret(served: Served) -> None:
    strangers = [socket.create_connection(("127.0.0.1", served.port), timeout=LIMIT) for _ in range(400)]
    try:
        assert served.source.read(0, 0, 1) == [(0,)]
        assert len(served._listener.anonymous) <= 64
        assert len(served._listener.busy) <= 1
    finally:
        for stranger in strangers:
            stranger.close()


@pytest.mark.parametrize("noise", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x00\x00\x00\x05ab"])
def test_a_client_of_another_kind_is_hung_up_on(served: Served, noise: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=LIMIT) as stranger:
        stranger.sendall(noise)
        while stranger.recv(4096):
            pass  # its challenge; then the end
    assert served.source.read(0, 0, 1) == [(0,)]


def test_a_client_that_never_reads_is_hung_up_on_and_holds_nobody_up(served: Served) -> None:
    silent = connect("127.0.0.1", served.port, SECRET.encode())
    for _ in range(4000):  # asks for more than what fits on the way, and never takes an answer
        try:
            silent.send({"op": "block", "partition": 0, "offset": 0})
        except SourceUnavailable:
            break  # already
    assert served.source.read(1, 0, 1) == [(6666,)]
    until(lambda: len(served._listener.busy) <= 1, "it is hung up on")
    silent.release()


def test_a_request_that_is_none_gets_an_error_and_harms_nobody(served: Served) -> None:
    channel = connect("127.0.0.1", served.port, SECRET.encode())
    for request in (
        {},
        {"op": "exec"},
        {"op": "block"},
        {"op": "block", "partition": 9, "offset": 0},
        {"op": "report", "progress": [[7, 1, True]]},
        {"op": "report", "progress": [[0, 1, True], [1, 1, True], [0.5, 1, True]]},
        b'{"op": "block", "partition": 0, "offset": 1e999}\n',
    ):
        if isinstance(request, bytes):
            channel._connection.send_bytes(request)
        else:
            channel.send(request)
        answer, _ = channel.receive(MAX_ANSWER, LIMIT)
        assert "error" in answer
    channel.send({"op": "block", "partition": 0, "offset": 0})
    while (answer := channel.receive(MAX_ANSWER, LIMIT)[0]).get("wait"):
        pass  # the machine is busy
    assert answer["rows"] == 1000
    channel.release()
    assert not served.done


def test_wait_returns_when_every_row_was_acked(served: Served) -> None:
    with pytest.raises(TimeoutError, match="0 of 3 partitions are done, 0 rows acked"):
        served.wait(timeout=0.1)
    with LocalCluster() as cluster:
        run = cluster.submit(through(PartitionSpout(served.source), FailsFirst, tasks=2), capture=["echo"])
        served.wait(timeout=patient(120), progress=False)
        got = {tup["row"][0] for tup in run.captured("echo")}
    assert got == set(range(20_000))
    assert served.acked == 20_000
    assert served.done


def test_wait_shows_how_far_it_is(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.source.report([Progress(each, 5, True) for each in range(3)])
    served.wait(timeout=LIMIT, progress=True)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "15 rows acked" in shown


def test_wait_ends_when_the_source_turns_out_to_be_none(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    with serve(spark.sparkContext.parallelize([0], 1).map(lambda n: 1 / n)) as served:
        with pytest.raises(ConnectorError, match="ZeroDivisionError"):
            served.source.read(0, 0, 1)
        with pytest.raises(ConnectorError, match="ZeroDivisionError"):
            served.wait(timeout=LIMIT)


def test_a_spout_process_that_is_killed_goes_on_where_it_stopped(served: Served, tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        spout = PartitionSpout(served.source)
        spout.save_secs = 0.05
        run = cluster.submit(
            through(spout, TooMuch, multilang_source_store=str(tmp_path / "kept")), capture=["rows", "echo"]
        )
        for part in (1000, 2500, 4000):
            until(lambda part=part: served.acked > part, "some are acked")  # type: ignore[misc]
            pid = next(task.pid for task in run.tasks if task.component == "rows")
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: pid not in [task.pid for task in run.tasks], "it is started again")  # type: ignore[misc]
        served.wait(timeout=patient(120))
        got = [tup["row"][0] for tup in run.captured("echo")]
        emitted = len(run.captured("rows"))
    assert set(got) == set(range(20_000))
    assert 20_000 <= emitted < 20_000 + 3 * 1500  # not all over again each time


def test_closing_ends_whoever_waits(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    served = serve(spark.sparkContext.parallelize(range(10), 1))
    source = served.source
    assert source.partitions == 1
    served.close()
    served.close()
    with pytest.raises(SourceUnavailable, match=r"served://127\.0\.0\.1"):
        source.read(0, 0, 1)
    with pytest.raises(ConnectorError, match="closed before every row was acked"):
        served.wait()


def test_clients_in_the_middle_of_reading_hear_of_the_close(served: Served) -> None:
    reads = [0] * 4
    ends: list[Exception] = []

    def read(client: int) -> None:
        source = served.source
        try:
            while True:
                source.read(client % 3, 1000 * (reads[client] % 6), 1)
                reads[client] += 1
                if client == 3:
                    source.close()  # and connects again
        except ConnectorError as error:
            ends.append(error)

    clients = [Thread(target=read, args=(client,)) for client in range(len(reads))]
    for client in clients:
        client.start()
    until(lambda: min(reads) > 20, "all of them read")
    served.close()
    for client in clients:
        client.join(LIMIT)
    assert [type(end) for end in ends] == [SourceUnavailable] * len(clients), ends
    until(lambda: "clients" not in {each.name for each in enumerate_threads()}, "the threads have ended")


def test_a_client_for_whom_no_file_descriptor_is_left_is_hung_up_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: socket.socket) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "dup", none_left)
        with socket.create_connection(("127.0.0.1", served.port), timeout=LIMIT) as stranger:
            assert stranger.recv(1) == b""
    assert served.source.read(0, 0, 1) == [(0,)]


def test_a_url_that_is_none_says_how_to_write_one() -> None:
    with pytest.raises(ConnectorError, match="write served://HOST:PORT"):
        ServedSource("served://nowhere")


@pytest.mark.parametrize("seen", [True, False], ids=["blocks that were read", "what was reported alone"])
def test_a_driver_that_is_started_anew_with_other_rows_is_told_of_no_acks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    monkeypatch.setenv("MULTILANG_SOURCE_SECRET", SECRET)
    rows = list(range(100))
    port = 0

    def serving(now: list[int]) -> Served:
        rdd = spark.sparkContext.parallelize(now, 1)
        return serve(RDDSource(rdd, block_rows=10, name="numbers"), port=port)

    with serving(rows) as first:
        port = first.port
        source = ServedSource(first.url)
        while seen and source.read(0, first.acked, 10):
            source.report([Progress(0, first.acked + 10, first.acked == 90)])
        source.report([Progress(0, 100, True, extended(0, [[row] for row in rows]))])
        assert first.done
    with pytest.raises(SourceUnavailable):
        source.progress()
    for now in ([*rows[:98], 99, 98], rows[:99], rows[:90], [*rows, 100]):
        with serving(now) as other, pytest.raises(ChangedRowsError, match="partition 0 of"):
            source.progress()
        assert not other.done
        assert other.acked == 0
    with serving(rows) as same:
        source.progress()
        assert same.acked == 100
    source.close()


def test_what_one_group_has_acked_is_not_taken_from_another(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = served.source, served.source
    first.follow("run/fast")
    second.follow("run/slow")
    assert (first.progress(), second.progress()) == ({}, {})
    first.report([Progress(each, 100, True) for each in range(3)])
    assert first.progress() == {0: 100, 1: 100, 2: 100}
    assert second.progress() == {}
    assert served.watermarks == {0: 100, 1: 100, 2: 100}
    assert not served.done  # the other reads on
    second.report([Progress(0, 7, False), Progress(1, 9, True)])
    assert second.progress() == {0: 7, 1: 9}
    monkeypatch.setattr(serve_module, "GRACE_SECS", 3600.0)
    second.close()
    assert not served.done  # its worker may be started again
    monkeypatch.setattr(serve_module, "GRACE_SECS", 0.0)
    until(lambda: served.done, "nobody reads any more who has not acked all")
    first.close()


def test_a_reader_that_reconnects_before_it_has_anything_to_report_is_waited_for(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "GRACE_SECS", 0.0)
    fast, slow = served.source, served.source
    fast.follow("run/fast")
    slow.follow("run/slow")
    assert (fast.progress(), slow.progress()) == ({}, {})
    fast.report([Progress(each, 100, True) for each in range(3)])
    slow._channel.close()
    until(lambda: served.done, "the connection of the slow reader is lost")
    with pytest.raises(SourceUnavailable):
        slow.keep_in_touch()
    slow.keep_in_touch()
    assert not served.done
    slow.report([Progress(each, 100, True) for each in range(3)])
    assert served.done
    fast.close()
    slow.close()


def test_two_transactional_topologies_each_get_every_row(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_module, "GRACE_SECS", 3600.0)
    spout = TransactionalPartitionSpout(served.source, fields=["value"])
    runs = [("one", "fast"), ("two", "slow"), ("three", "slow")]  # the last two have stores of their own
    confs = [{"storm.id": run, "topology.transactional.id": id} for run, id in runs]
    coordinators = [deepcopy(spout).open(conf) for conf in confs]
    for each in coordinators:
        each.resume({})
    part = {each: coordinators[0].read(each, coordinators[0].first(each), 100)[1] for each in range(3)}
    ends = {each: coordinators[0].read(each, position, 20_000)[1] for each, position in part.items()}
    for number, conf in enumerate(confs):
        coordinators[number].committed(part)
        coordinators[number].close()
        again = deepcopy(spout).open(conf)  # its worker was started again: this is the same group
        again.resume(part)
        assert not any(again.has_more(*each) for each in ends.items())
        assert not served.done
        again.committed(ends)
        again.close()
    assert served.done
    assert served.acked == 20_000


def test_rows_that_several_have_acked_among_them_are_not_all_acked(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_module, "GRACE_SECS", 0.0)
    readers = [served.source, served.source]
    for partitions, reader in zip(([0, 1], [2]), readers, strict=True):
        reader.follow(f"run/{partitions}")
        reader.report([Progress(each, 100, True) for each in partitions])
        reader.close()
    with pytest.raises(TimeoutError, match="2 of 3 partitions are done"):
        served.wait(timeout=1)


@soak_only
def test_two_spouts_and_two_topologies_each_get_every_row_whatever_is_killed(served: Served, tmp_path: Path) -> None:
    builder = TopologyBuilder()
    for name in ("fast", "slow"):
        builder.set_spout(name, PartitionSpout(served.source))
        builder.set_bolt(f"{name} echo", Echo if name == "fast" else SlowAtFirst).shuffle_grouping(name)
    topology = builder.build(
        "two", conf={"topology.max.spout.pending": 500, "multilang.source.store": str(tmp_path / "kept")}
    )
    captured = ["fast echo", "slow echo"]
    with LocalCluster() as cluster:
        run = cluster.submit(topology, capture=captured)
        run.wait(lambda it: len(it.captured("fast echo")) > len(it.captured("slow echo")) + 2000 > 2020, timeout=120)
        until(lambda: served.acked > 2000, "the driver knows of the fast one")
        pid = next(task.pid for task in run.tasks if task.component == "slow")
        os.kill(pid, signal.SIGKILL)
        served.wait(timeout=patient(120))
        run.wait(timeout=patient(120))
        for each in captured:
            assert {tup["row"][0] for tup in run.captured(each)} == set(range(20_000)), each
    with LocalCluster("inprocess") as cluster:
        run = cluster.submit(through(PartitionSpout(served.source), Echo), name="later", capture=["echo"])
        run.wait(timeout=patient(120))
        assert {tup["row"][0] for tup in run.captured("echo")} == set(range(20_000))
