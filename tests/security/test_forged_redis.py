"""Whoever answers in the place of a Redis makes nobody wait or gather without end."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, contextmanager, suppress
from time import sleep
from typing import TYPE_CHECKING

import pytest

from multilang.state import StateError
from multilang.store import redis_client
from tests.servers import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDLESS = {
    "a text": (b"$400000000\r\n", b"a" * 65536, "has more than 1000000 bytes"),
    "a line": (b"+", b"a" * 65536, "has more than 1000000 bytes"),
    "a list": (b"*400000000\r\n", b":1\r\n" * 16384, "has more than 1000000 bytes"),
    "nested": (b"", b"*1\r\n" * 16384, "nested too deep|recursion depth"),
}


@contextmanager
def forged(head: bytes, more: bytes) -> Iterator[int]:
    """Answer everybody without end, and yield the port."""

    def talk(wire: socket.socket) -> None:
        with wire, suppress(OSError):
            wire.recv(65536)
            wire.sendall(head)
            while True:
                wire.sendall(more)
                if len(more) == 1:
                    sleep(0.01)  # it drips

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def connect_to_one(port: int) -> None:
    place = {"host": "127.0.0.1", "port": port}
    client = redis_client.connect(place, "the test", LIMIT)
    with closing(client), redis_client.translated_errors(redis_client.place(place)):
        client.ping()


def connect_to_cluster(port: int) -> None:
    redis_client.connect_cluster({"nodes": [f"127.0.0.1:{port}"]}, "the test", "the setting", 0)


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("connect", [connect_to_one, connect_to_cluster])
def test_an_answer_without_end_is_refused(
    kind: str, connect: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, more, refusal = ENDLESS[kind]
    monkeypatch.setattr(redis_client, "MAX_ANSWER", 1_000_000)
    with forged(head, more) as port, pytest.raises(StateError, match=refusal):
        connect(port)


@pytest.mark.parametrize("connect", [connect_to_one, connect_to_cluster])
def test_an_answer_that_drips_is_refused(connect: Callable[[int], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then is no silence, so that no timeout of a read ended it."""
    monkeypatch.setattr(redis_client, "ANSWER_SECS", 0.1)
    with forged(b"+", b"a") as port, pytest.raises(StateError, match=r"takes longer than 0\.1 seconds"):
        connect(port)
