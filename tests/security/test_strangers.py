"""Whoever connects in a loop, to any server of this library, neither stalls nor ends those who have a right to it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from threading import Event, Thread
from typing import TYPE_CHECKING
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from multilang.component.prometheus import ANSWER_SECS, MAX_CONNECTIONS
from multilang.connectors.webhooks import WebhookSpout
from multilang.drpc import DRPCClient, DRPCServer
from multilang.engine.status import RunStatus
from multilang.listening.accepting import bind
from multilang.listening.http import HttpServer, answer
from multilang.page import RunPage
from multilang.testing import run_spout
from tests.drpc.test_server import LIMIT, answering
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

ROUNDS, ATTACKERS = 3, 2
ATTACK = """
import socket, sys
from collections import deque
port, said = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
held, ended = deque(), 0
while True:
    try:
        held.append(socket.create_connection(("127.0.0.1", port)))
        held[-1].sendall(said)
    except ConnectionError:
        pass
    while len(held) > 300:  # as fast as they are accepted: more at once would overflow the kernel's queue
        with held.popleft() as oldest:
            try:
                oldest.recv(1)  # until the server ends it
            except ConnectionError:
                pass
        ended += 1
        if ended == 100:
            print("attacks", flush=True)
"""


@contextmanager
def drpc() -> Iterator[tuple[int, Callable[[], object]]]:
    """A client of a DRPC server: its own connection of before, and a new one for each call."""
    with (
        DRPCServer(port=0, invocations_port=0, max_connections=64, timeout_secs=LIMIT) as server,
        answering(server),
        DRPCClient(port=server.port, timeout=LIMIT) as known,
    ):
        assert known.execute("double", "a") == "aa"

        def use() -> None:
            assert known.execute("double", "b") == "bb"
            with DRPCClient(port=server.port, timeout=LIMIT) as client:
                assert client.execute("double", "c") == "cc"

        yield server.port, use


@contextmanager
def topology() -> Iterator[tuple[int, Callable[[], object]]]:
    """A topology that answers a DRPC server's calls, while its own port is attacked."""
    with DRPCServer(port=0, invocations_port=0, max_connections=64, timeout_secs=LIMIT) as server, answering(server):

        def use() -> None:
            with DRPCClient(port=server.port, timeout=LIMIT) as client:
                assert client.execute("double", "c") == "cc"

        yield server.invocations_port, use


def posted(port: int, **head: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    try:
        connection.request("POST", "/", "1", head)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def webhook(secret: str | None = "hunter2") -> Iterator[tuple[int, Callable[[], object]]]:
    port, over = free_port(), Event()
    run = run_spout(WebhookSpout(port, most=4, secret=secret))

    def work() -> None:
        while not over.wait(0.001):
            run.next()
            for each in list(run.pending):
                run.ack(each)

    thread = Thread(target=work)
    thread.start()
    head = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    yield port, lambda: posted(port, **head) == 200 or pytest.fail("it was not taken")
    over.set()
    thread.join()
    run.close()


@contextmanager
def open_webhook() -> Iterator[tuple[int, Callable[[], object]]]:
    with webhook(None) as found:
        yield found


@contextmanager
def page() -> Iterator[tuple[int, Callable[[], object]]]:
    status = RunStatus(topology="t", engine="process", state="active", seconds=1.0)
    with RunPage(lambda: status, 0) as shown:
        port = int(shown.url.split(":")[2].split("/")[0])

        def use() -> None:
            opener = build_opener(HTTPCookieProcessor())
            with opener.open(Request(shown.url), timeout=LIMIT) as answer:
                assert b"<html" in answer.read()

        use()
        yield port, use


@contextmanager
def metrics() -> Iterator[tuple[int, Callable[[], object]]]:
    async def respond(_request: object) -> bytes:
        return answer(HTTPStatus.OK, "ok")

    server = HttpServer(bind("127.0.0.1", 0), respond, connections=MAX_CONNECTIONS, secs=ANSWER_SECS, name="metrics")
    yield server.port, lambda: posted(server.port) == 200 or pytest.fail("it was not answered")
    server.close()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        *((each, b"") for each in (drpc, topology, webhook, open_webhook, page, metrics)),
        *((each, b"POST / HTTP/1.1\r\n") for each in (drpc, webhook, page)),
        (open_webhook, b"POST / HTTP/1.1\r\nContent-Length: 9\r\nContent-Length: 0\r\n\r\n1"),
    ],
)
def test_whoever_connects_in_a_loop_stalls_nobody(
    server: Callable[[], AbstractContextManager[tuple[int, Callable[[], object]]]], said: bytes
) -> None:
    with ExitStack() as stack:
        port, use = stack.enter_context(server())
        for _ in range(ATTACKERS):
            command = [sys.executable, "-c", ATTACK, str(port), said.hex()]
            attacker = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(attacker.kill)
            assert attacker.stdout is not None
            assert attacker.stdout.readline(), "it attacks"
        for _ in range(ROUNDS):
            use()
