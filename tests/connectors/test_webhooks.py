"""Webhooks: 200 means done, anything else means that the sender must send it again."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from multilang import BasicBolt, FailedException, LocalCluster, TopologyBuilder
from multilang.component.errors import ConfigError
from multilang.connectors import CollectingSink, FromIterable, WebhookSink, WebhookSpout
from multilang.testing import run_bolt, run_spout
from tests.servers import free_port, wait_for


def post(port, body=b"1", path="/", method="POST", **headers):
    """Return the status of a request."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


class Picky(BasicBolt):
    """Fails odd numbers; dies of nothing."""

    output_fields = ["value"]

    def process(self, tup):
        if tup["value"] % 2:
            raise FailedException("odd")
        self.emit([tup["value"]])


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_request_is_answered_when_its_tuple_is_acked_or_fails(mode) -> None:
    port = free_port()
    builder = TopologyBuilder()
    builder.set_spout("hook", WebhookSpout(port))
    builder.set_bolt("picky", Picky()).shuffle_grouping("hook")
    with LocalCluster(mode) as cluster, ThreadPoolExecutor(8) as pool:
        run = cluster.submit(builder.build("hooks"), capture=["picky"])
        sent = [pool.submit(retried, port, n) for n in range(20)]
        run.wait(until=lambda run: all(each.done() for each in sent), timeout=60)
        assert [each.result() for each in sent] == [503 if n % 2 else 200 for n in range(20)]
        assert sorted(tup["value"] for tup in run.captured("picky")) == list(range(0, 20, 2))


def retried(port, number):
    """Return the status of a request to a server that may not listen yet, or closes connections as it dies."""
    found: list[int] = []

    def answered() -> bool:
        try:
            found.append(post(port, str(number).encode()))
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    wait_for(answered, "the server listens")
    return found[-1]


class DiesOnce(WebhookSpout):
    deaths: list[str] = []

    def emit(self, values, *more):
        if values == [7] and not self.deaths:
            self.deaths.append("7")
            raise RuntimeError("once")
        return super().emit(values, *more)


def test_a_task_that_dies_in_a_process_that_lives_on_gives_its_port_to_the_next(monkeypatch) -> None:
    monkeypatch.setattr(DiesOnce, "deaths", [])
    port = free_port()
    builder = TopologyBuilder()
    builder.set_spout("hook", DiesOnce(port, answer_secs=20))
    builder.set_bolt("takes", CollectingSink()).shuffle_grouping("hook")
    with LocalCluster("inprocess", fail_fast=False) as cluster, ThreadPoolExecutor(1) as pool:
        run = cluster.submit(builder.build("dies"))
        sent = [pool.submit(retried, port, n) for n in (7, 8)]
        run.wait(until=lambda run: all(each.done() for each in sent), timeout=60)
        assert {each.result() for each in sent} <= {503, 200}  # of the task that died, or of the next one
        last = pool.submit(retried, port, 9)
        run.wait(until=lambda run: last.done(), timeout=60)
        assert last.result() == 200
    assert DiesOnce.deaths


@pytest.fixture
def hook():
    runs = []

    def start(**settings):
        port = free_port()
        runs.append(run_spout(WebhookSpout(port, **settings)))
        return port, runs[-1]

    yield start
    for run in runs:
        run.close()


def test_there_is_room_for_so_many_and_no_more(hook) -> None:
    port, run = hook(most=2, answer_secs=60)
    with ThreadPoolExecutor(4) as pool:
        first = [pool.submit(post, port) for _ in range(2)]
        wait_for(lambda: len(run.next() or run.pending) >= 2, "both are under way")
        waiting = [pool.submit(post, port) for _ in range(2)]
        wait_for(run.spout._server.waiting.full, "two more wait")
        assert post(port) == 503
        for tup_id in list(run.pending):
            run.ack(tup_id)
        assert [each.result() for each in first] == [200, 200]
        wait_for(lambda: run.next() or len(run.pending) >= 2, "there is room")
        for tup_id in list(run.pending):
            run.fail(tup_id)
        assert [each.result() for each in waiting] == [503, 503]


def test_whoever_lacks_the_secret_ends_no_request_of_who_has_shown_it(hook) -> None:
    port, run = hook(most=2, secret="hunter2")
    with ThreadPoolExecutor(1) as pool, ExitStack() as opened:
        sent = pool.submit(post, port, Authorization="Bearer hunter2")
        wait_for(lambda: run.next() or run.pending, "it is under way")
        others = [opened.enter_context(socket.create_connection(("127.0.0.1", port), 30)) for _ in range(100)]
        assert others[0].recv(1) == b""
        run.ack(run.pending[0])
        assert sent.result() == 200


def test_who_has_shown_the_secret_may_have_so_many_connections_and_no_more(hook) -> None:
    port, run = hook(most=1, secret="hunter2")
    head = b"POST / HTTP/1.1\r\nAuthorization: Bearer hunter2\r\nContent-Length: 1\r\n\r\n"
    with ExitStack() as opened:
        wires = [opened.enter_context(socket.create_connection(("127.0.0.1", port), 30)) for _ in range(34)]
        for wire in wires:
            wire.sendall(head)
        server = run.spout._server
        wait_for(lambda: len(server.http.listener.busy) == 34, "all are admitted")
        assert post(port, Authorization="Bearer hunter2") == 503
        wires[0].sendall(b"1")
        wait_for(lambda: run.next() or run.pending, "the first one is under way")
        run.ack(run.pending[0])
        assert b" 200 " in wires[0].makefile("rb").readline()


def test_what_takes_too_long_is_answered_and_a_late_ack_is_nobody_s(hook) -> None:
    port, run = hook(answer_secs=0.2)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(post, port)
        wait_for(lambda: run.next() or run.pending, "it is under way")
        assert sent.result() == 503
    run.ack(run.pending[0])


def test_while_the_topology_is_deactivated_nobody_is_kept_waiting(hook) -> None:
    port, run = hook()
    run.deactivate()
    assert post(port) == 503


def test_what_is_under_way_at_the_end_is_answered(hook) -> None:
    port, run = hook()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(post, port)
        wait_for(lambda: run.next() or run.pending, "it is under way")
        run.close()
        assert sent.result() == 503


@pytest.mark.parametrize(
    ("settings", "request_", "status"),
    [
        ({"secret": "word"}, {}, 401),
        ({"secret": "word"}, {"Authorization": "Bearer wor"}, 401),
        ({"secret": "word"}, {"Authorization": "Bearer wörd"}, 401),
        ({"max_body": 3}, {"body": b"1234"}, 413),
        ({}, {"body": b"1234", "Content_Length": "9" * 30}, 413),
        ({}, {"body": b"{"}, 400),
        ({}, {"body": b"\xff"}, 400),
        ({}, {"path": "/other"}, 404),
        ({}, {"body": None, "method": "GET"}, 405),
        ({}, {"Origin": "http://evil.example"}, 403),
        ({}, {"Sec_Fetch_Site": "cross-site"}, 403),
    ],
)
def test_what_is_no_request_of_a_webhook_is_refused(hook, settings, request_, status) -> None:
    port, run = hook(**settings)
    assert post(port, **request_) == status
    run.next()
    assert run.values == []


@pytest.mark.parametrize(
    "body", [b"NaN", b"1e400", b"[9223372036854775808]", b'{"a": "\\ud800"}', b"[" * 1000 + b"]" * 1000]
)
def test_a_body_that_no_tuple_can_have_is_refused_and_ends_nothing(hook, body) -> None:
    port, run = hook(answer_secs=0.2)
    assert post(port, body) == 400
    run.next()
    assert not run.pending


def test_a_secret_opens(hook) -> None:
    port, run = hook(secret="word", json=False)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(post, port, "späť".encode(), Authorization="Bearer word")
        wait_for(lambda: run.next() or run.pending, "it is under way")
        run.ack(run.pending[0])
        assert sent.result() == 200
    assert run.values == [["späť"]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WebhookSpout(0), "port is 0"),
        (lambda: WebhookSpout(80, host="0.0.0.0"), "give a secret="),
        (lambda: WebhookSpout(80, path="hook"), "begins with /"),
        (
            lambda: WebhookSpout(8080, secret={"env": "NOT_SET_ANYWHERE"}).check_start({}),
            "NOT_SET_ANYWHERE, which is not set",
        ),
        (lambda: WebhookSink("ftp://host"), "begins with http:// or https://"),
        (lambda: WebhookSink("http://host", concurrency=0), "concurrency is 0"),
    ],
)
def test_what_can_not_be_is_refused(make, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_each_tuple_is_sent_until_it_is_taken(receiver) -> None:
    receiver.status = {"3": [500, 503], "4": [302, 400]}
    builder = TopologyBuilder()
    builder.set_spout("source", FromIterable(range(10)))
    builder.set_bolt("sink", WebhookSink(receiver.url, secret="word")).shuffle_grouping("source")
    with LocalCluster("simulated", seed=1) as cluster:
        run = cluster.submit(builder.build("sends"))
        run.wait(timeout=600)
        assert run.counters["source"].acked == 10
        assert "it was answered" in str(run.errors[0])
    assert sorted(receiver.got) == list(range(10))
    assert {head["Authorization"] for head in receiver.heads} == {"Bearer word"}


def test_so_many_are_under_way_at_once_and_no_more(receiver) -> None:
    receiver.meet = threading.Barrier(4)  # which none passes before four are there
    run = run_bolt(WebhookSink(receiver.url, concurrency=4), [[n, "a"] for n in range(8)], fields=["n", "letter"])
    run.advance(1.0)
    run.close()
    assert receiver.most == 4
    assert sorted(value["n"] for value in receiver.got) == list(range(8))


def test_an_answer_without_an_end_is_taken_by_its_status(receiver) -> None:
    receiver.goes_on = threading.Event()
    receiver.status = {"1": [200]}
    run = run_bolt(WebhookSink(receiver.url, timeout_secs=50), [[1]], fields=["value"])
    run.advance(1.0)
    run.close()
    assert not receiver.goes_on.is_set()
    receiver.goes_on.set()
    assert len(run.acked) == 1


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Continue\r\n\r\n" * 100], ids=["a head", "many heads"]
)
def test_an_answer_that_comes_byte_by_byte_has_no_more_time(begin) -> None:
    """Each byte gave it the whole time again, and the task waited for ever."""
    gone = threading.Event()

    def serve() -> None:
        wire, _ = listener.accept()
        with wire:
            wire.sendall(begin)
            wire.settimeout(0.05)
            while not gone.is_set():
                try:
                    wire.sendall(begin[-1:] if begin.endswith(b" ") else begin)
                    gone.wait(0.05)
                except OSError:
                    gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        sink = WebhookSink(f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_secs=0.5)
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(errors_of, sink)
            try:
                assert "timed out" in sending.result(30)[0]
            finally:
                gone.set()
                serving.join()


def errors_of(sink):
    run = run_bolt(sink, [[1]], fields=["value"])
    run.advance(1.0)
    run.close()
    assert len(run.failed) == 1
    return run.errors


def test_a_server_that_is_not_there_fails_the_tuple() -> None:
    assert "refused" in errors_of(WebhookSink(f"http://127.0.0.1:{free_port()}/"))[0]


def test_a_sink_is_for_streams_too(receiver) -> None:
    from multilang.streams import StreamBuilder

    s = StreamBuilder()
    s.source(range(5)).map(lambda n: {"number": n}).to(WebhookSink(receiver.url))
    s.source([1], name="other").to(CollectingSink)
    with LocalCluster("simulated", seed=1, fail_fast=True) as cluster:
        cluster.submit(s.build("streams")).wait(timeout=600)
    assert sorted(value["number"] for value in receiver.got) == list(range(5))
