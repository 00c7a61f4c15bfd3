"""Whoever may read the counters may not hold the process that has them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from multilang.component import prometheus
from multilang.component.prometheus import MAX_CONNECTIONS, Endpoint
from multilang.listening.accepting import bind
from multilang.listening.http import MAX_HEAD, HttpServer, Request, answer
from tests.cli.command import ROOT
from tests.soak import SOAK

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 60.0


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), LIMIT)


def ended(wire: socket.socket) -> bool:
    """Return whether the server ends the connection, whatever it says before."""
    try:
        while wire.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def scraped(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT) as answer:
        return int(answer.status)


SERVER = """
import os, sys, threading
from multilang.component.prometheus import Endpoint
endpoint = Endpoint(lambda: iter(()), 0, "127.0.0.1")
print(endpoint._server.port, flush=True)
for line in sys.stdin:
    print(threading.active_count(), len(os.listdir("/proc/self/fd")), flush=True)
"""


def test_many_that_ask_nothing_take_few_threads_and_descriptors() -> None:
    """Each of 1,500 connections had a thread and a descriptor for ever, until the run had none for its components."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        port = int(child.stdout.readline())
        idle = [connect(port) for _ in range(300 if SOAK else 6 * MAX_CONNECTIONS)]
        for wire in idle:
            try:
                wire.sendall(b"\0garbage\xff")
            except ConnectionError:
                continue
        for wire in idle[: -2 * MAX_CONNECTIONS]:
            assert ended(wire)
        assert scraped(port) == 200
        print("?", file=child.stdin, flush=True)
        threads, descriptors = map(int, child.stdout.readline().split())
        assert threads <= 3 * MAX_CONNECTIONS
        assert descriptors <= 3 * MAX_CONNECTIONS + 10
        for wire in idle:
            wire.close()
        _, said = child.communicate(timeout=LIMIT)
        assert said == ""


@contextmanager
def serving(answer_secs: float) -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prometheus, "ANSWER_SECS", answer_secs)
        endpoint = Endpoint(lambda: iter(()), 0, "127.0.0.1")
    yield endpoint._server.port
    endpoint.close()


def test_a_request_that_comes_byte_by_byte_has_no_more_time() -> None:
    over = threading.Event()
    with serving(0.3) as port, connect(port) as wire:

        def drip() -> None:
            try:
                while not over.wait(0.02):
                    wire.sendall(b"G")
            except OSError:
                pass

        thread = threading.Thread(target=drip)
        thread.start()
        assert ended(wire)
        over.set()
        thread.join()
        assert scraped(port) == 200


def test_an_endpoint_serves_by_ipv6_and_frees_its_port() -> None:
    if not os.path.exists("/proc/net/if_inet6"):
        return
    endpoint = Endpoint(lambda: iter(()), 0, "::1")
    port = endpoint._server.port
    with urllib.request.urlopen(f"http://[::1]:{port}/metrics", timeout=LIMIT) as answer:
        assert answer.status == 200
    endpoint.close()
    socket.create_server(("::1", port), family=socket.AF_INET6).close()


@pytest.mark.parametrize("lines", [1, 90, 200])
def test_a_head_of_a_request_is_held_within_bounds(lines: int) -> None:
    """A hundred lines of 64 KB were held for each connection: those of a webhook's strangers took 1 GB of its process."""
    with serving(LIMIT) as port, connect(port) as wire:
        wire.sendall(b"GET /metrics HTTP/1.1\r\n")
        for number in range(lines):
            wire.sendall(f"x-{number}: {'a' * (2 * MAX_HEAD // lines)}\r\n".encode())
        with wire.makefile("rb") as answer:
            assert answer.readline().startswith(b"HTTP/1.1 431 ")
        assert scraped(port) == 200


def test_a_body_is_no_part_of_the_head() -> None:
    async def respond(request: Request) -> bytes:
        body = await request.body(request.head.size(4 * MAX_HEAD))
        return answer(HTTPStatus.OK, str(len(body)))

    server = HttpServer(bind("127.0.0.1", 0), respond, connections=MAX_CONNECTIONS, secs=LIMIT, name="counts")
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/", b"a" * 4 * MAX_HEAD)
    with urllib.request.urlopen(request, timeout=LIMIT) as found:
        assert found.read() == str(4 * MAX_HEAD).encode()
    server.close()
