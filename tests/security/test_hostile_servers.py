"""Whoever answers in the place of a server is refused within bounds: each client of the library x each kind of hostile answer.

Here each client meets the answers that its own protocol could take for something; in the soak each meets all.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.connection import ConnectionHandler

from multilang.component.errors import ConnectorError
from multilang.connectors import WebhookSink
from multilang.drpc import AsyncDRPCClient, DRPCClient, DRPCInvocationsClient, connection, thrift
from multilang.errors import MultilangError
from multilang.shipping import worker_logs
from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address
from multilang.state import StateError
from multilang.store import redis_client, zookeeper_bounds
from multilang.store.zookeeper_client import ZooKeeperClient
from spark_bridge.sources import served
from tests.servers import LIMIT
from tests.soak import chosen

if TYPE_CHECKING:
    from pathlib import Path

SECS = 0.5  # that a client waits
MOST_BYTES = 40_000_000  # of an answer that a client takes before it refuses it: Thrift's bound is 16 MB
MOST_DRIPS = 100  # to which a client listens, in each of its connections: two come in the time that it waits
LONGEST = 600  # letters of a sentence
INT = struct.Struct(">i")
Answer = Callable[[], Iterator[bytes | None]]  # None: something must be heard first
HTTP = b"HTTP/1.1 200 OK\r\n"


def endless(data: bytes, head: bytes = b"") -> Iterator[bytes | None]:
    yield head
    yield from itertools.repeat(data * (65536 // len(data)))


def dripping(head: bytes = b"", data: bytes = b"\0") -> Iterator[bytes | None]:
    """Say something before each timeout ends."""
    yield head
    while True:
        time.sleep(SECS * 0.6)
        yield data


def framed(*parts: bytes) -> bytes:
    return b"".join(INT.pack(len(part)) + part for part in parts)


SESSION = framed(struct.pack(">iiqi16s?", 0, 1000, 7, 16, b"", False))  # ZooKeeper's greeting


ANSWERS: dict[str, Answer] = {
    "silence": lambda: iter(()),
    "zeros": lambda: endless(b"\0"),
    "ones": lambda: endless(b"\xff"),
    "letters": lambda: endless(b"a"),
    "lines": lambda: endless(b"a\r\n"),
    "drip": dripping,
    "drip of letters": lambda: dripping(data=b"a"),
    **{
        f"a frame of {size} bytes": lambda size=size: endless(b"\0", INT.pack(size))
        for size in (1, 60, 16_000_000, 2**31 - 1, -1)
    },
    **{f"a drip of {size} bytes": lambda size=size: dripping(INT.pack(size)) for size in (250, 5000, 16_000_000)},
    "a long login": lambda: endless(b"\0", struct.pack(">BI", 2, 2**31)),
    "a drip of a login": lambda: dripping(struct.pack(">BI", 2, 60_000)),
    "logins again and again": lambda: endless(struct.pack(">BI", 2, 0)),
    "Redis: a text": lambda: endless(b"a", b"$400000000\r\n"),
    "Redis: a list": lambda: endless(b":1\r\n", b"*400000000\r\n"),
    "Redis: nested": lambda: endless(b"*1\r\n"),
    **{
        f"ZooKeeper: {kind}": lambda data=data: endless(data, SESSION)
        for kind, data in {
            "a huge answer": INT.pack(2**31 - 1),
            "answers to nothing": framed(struct.pack(">iqi", 1, 1, 0)),
            "errors that there are not": framed(struct.pack(">iqi", 1, 1, -9999)),
            "events": framed(struct.pack(">iqi", -1, 1, 0) + struct.pack(">iii", 1, 3, 2) + b"/a"),
            "events without an end": framed(struct.pack(">iqi", -1, 1, 0) + struct.pack(">iii", 1, 3, 2**31 - 1)),
        }.items()
    },
    **{
        f"ZooKeeper: {kind}": lambda data=data: iter((SESSION, None, framed(data)))
        for kind, data in {
            "half an answer": struct.pack(">iqii", 1, 1, 0, 100) + b"a",
            "another's answer": struct.pack(">iqi", 5, 1, 0),
            "an error that there is not": struct.pack(">iqi", 1, 1, -9999),
        }.items()
    },
    "HTTP: headers": lambda: endless(b"A: b\r\n", HTTP),
    "HTTP: a header": lambda: endless(b"a", HTTP + b"A: "),
    "HTTP: a body": lambda: endless(b"a", HTTP + b"\r\n"),
    "HTTP: lines": lambda: endless(b"a\n", HTTP + b"\r\n"),
    "HTTP: a drip of headers": lambda: dripping(HTTP, b"A: b\r\n"),
    "HTTP: a drip of a body": lambda: dripping(HTTP + b"\r\n", b"a"),
    "HTTP: a drip of lines": lambda: dripping(HTTP + b"\r\n", b"a\n"),
    "HTTP: many continues": lambda: endless(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "HTTP: a chunk": lambda: endless(b"a", HTTP + b"Transfer-Encoding: chunked\r\n\r\n7fffffffff\r\n"),
    "HTTP: a chunk's size": lambda: endless(b"1", HTTP + b"Transfer-Encoding: chunked\r\n\r\n"),
    "HTTP: trailers": lambda: endless(b"A: b\r\n", HTTP + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"),
    "HTTP: a drip of trailers": lambda: dripping(HTTP + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
}


class Hostile:
    """A server that says the same to everybody, and notes how many bytes and drips the longest conversation took."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.most_bytes = 0
        self.most_drips = 0
        self._over = threading.Event()
        self._talks: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def all_hung_up(self) -> bool:
        """Return whether all that were here left by themselves, which they have LIMIT seconds for."""
        end = time.monotonic() + LIMIT
        for talk in self._talks:
            talk.join(max(end - time.monotonic(), 0))
        return not any(talk.is_alive() for talk in self._talks)

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                talk = threading.Thread(target=self._talk, args=(self._listener.accept()[0],), daemon=True)
                talk.start()
                self._talks.append(talk)

    def _talk(self, wire: socket.socket) -> None:
        took = drips = 0
        with wire, contextlib.suppress(OSError):
            wire.settimeout(LIMIT)
            for data in self._answer():
                if self._over.is_set() or took > 2 * MOST_BYTES or drips > MOST_DRIPS:
                    return
                if data is None:
                    if not wire.recv(65536):
                        return
                    continue
                wire.sendall(data)
                took += len(data)
                drips += 0 < len(data) < 10
                self.most_bytes = max(self.most_bytes, took)
                self.most_drips = max(self.most_drips, drips)
            while not self._over.is_set() and wire.recv(65536):
                pass


def nimbus(conf: dict[str, Any]) -> Callable[[int], object]:
    def ask(port: int) -> object:
        with Nimbus([Address("127.0.0.1", port)], SECS, conf) as client:
            return client.summary()

    return ask


def drpc(
    method: str, *arguments: str, kind: Any = DRPCClient, conf: dict[str, Any] | None = None
) -> Callable[[int], object]:
    def ask(port: int) -> object:
        with kind("127.0.0.1", port, SECS, conf=conf) as client:
            return getattr(client, method)(*arguments)

    return ask


def asynchronously(port: int) -> object:
    async def ask() -> object:
        async with AsyncDRPCClient("127.0.0.1", port, SECS) as client:
            return await client.execute("f", "a")

    return asyncio.run(ask())


def redis(port: int) -> None:
    place = {"host": "127.0.0.1", "port": port, "timeout": SECS * 1000}
    client = redis_client.connect(place, "the test", SECS)
    with contextlib.closing(client), redis_client.translated_errors(redis_client.place(place)):
        client.ping()


def redis_cluster(port: int) -> None:
    redis_client.connect_cluster({"nodes": [f"127.0.0.1:{port}"], "timeout": SECS * 1000}, "the test", "the setting", 0)


def zookeeper(port: int) -> object:
    conf = {
        "transactional.zookeeper.servers": ["127.0.0.1"],
        "transactional.zookeeper.port": port,
        "storm.zookeeper.session.timeout": SECS * 1000,
    }
    client = ZooKeeperClient(conf, "/a", SECS, lambda _: None)
    with contextlib.closing(client):
        return client.call("get", "/a")


WORKER = worker_logs.WorkerPlace("127.0.0.1", 6700)


def source(port: int) -> object:
    return served.connect("127.0.0.1", port, b"x" * 40, SECS)


def webhook(port: int) -> None:
    problem = WebhookSink(f"http://127.0.0.1:{port}/", timeout_secs=SECS)
    problem._head = {}
    raise ConnectionError(problem._post(b"{}"))


DIGEST = {
    "storm.thrift.transport": "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin",
    "java.security.auth.login.config": "",
}
CLIENTS: dict[str, tuple[Callable[[int], object], type[Exception]]] = {
    "Nimbus": (nimbus({}), ShippingError),
    "Nimbus by digest": (nimbus(DIGEST), ShippingError),
    "Nimbus by TLS": (nimbus({"nimbus.thrift.client.use.tls": True}), ShippingError),
    "DRPC": (drpc("execute", "f", "a"), MultilangError),
    "DRPC by digest": (drpc("execute", "f", "a", conf=DIGEST), MultilangError),
    "DRPC for asyncio": (asynchronously, MultilangError),
    "DRPC: fetch": (drpc("fetch", "f", kind=DRPCInvocationsClient), MultilangError),
    "DRPC: result": (drpc("result", "1", "a", kind=DRPCInvocationsClient), MultilangError),
    "DRPC: fail": (drpc("fail", "1", "a", kind=DRPCInvocationsClient), MultilangError),
    "Redis": (redis, StateError),
    "Redis cluster": (redis_cluster, StateError),
    "ZooKeeper": (zookeeper, StateError),
    "logs": (lambda port: worker_logs.tail_of_logviewer(WORKER, "a-1-1", port, 10), ShippingError),
    "logs --follow": (lambda port: worker_logs.FollowedLogviewer(WORKER, "a-1-1", port).lines(), ShippingError),
    "served source": (source, ConnectorError),
    "webhook": (webhook, ConnectionError),
}


ALL = "silence", "letters", "drip"
THRIFT = "zeros", "a frame of -1 bytes", "a frame of 2147483647 bytes", "a drip of 5000 bytes"
LOGIN = "zeros", "a long login", "a drip of a login", "logins again and again"
HTTP_ANSWERS = tuple(
    f"HTTP: {kind}" for kind in ("headers", "many continues", "a drip of headers", "a drip of a body", "a chunk's size")
)
MEETS: dict[str, tuple[str, ...]] = {
    "Nimbus": THRIFT,
    "Nimbus by digest": LOGIN,
    "Nimbus by TLS": (),
    "DRPC": THRIFT,
    "DRPC by digest": LOGIN,
    "DRPC for asyncio": THRIFT,
    "DRPC: fetch": ("a drip of 5000 bytes",),
    "DRPC: result": ("a drip of 5000 bytes",),
    "DRPC: fail": ("a drip of 5000 bytes",),
    "Redis": ("lines", "Redis: a text", "Redis: a list", "Redis: nested"),
    "Redis cluster": ("Redis: a list", "Redis: nested"),
    "ZooKeeper": (
        "a drip of 5000 bytes",
        *(f"ZooKeeper: {kind}" for kind in ("a huge answer", "events", "half an answer", "another's answer")),
    ),
    "logs": (*HTTP_ANSWERS, "HTTP: trailers"),
    "logs --follow": (*HTTP_ANSWERS, "HTTP: a drip of lines"),
    "served source": ("ones", "a frame of 60 bytes", "a frame of -1 bytes", "a drip of 250 bytes"),
    "webhook": HTTP_ANSWERS,
}


@pytest.mark.parametrize("name", CLIENTS)
def test_no_client_takes_a_hostile_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "MAX_ANSWER", 1_000_000)
    monkeypatch.setattr(redis_client, "ANSWER_SECS", SECS)
    monkeypatch.setattr(worker_logs, "MAX_READ", 1_000_000)
    monkeypatch.setattr(worker_logs, "TIMEOUT", SECS)
    monkeypatch.setattr(worker_logs, "ANSWER_SECS", 2 * SECS)
    monkeypatch.setattr(connection, "CONNECT_SECS", SECS)
    jaas = tmp_path / "jaas.conf"
    jaas.write_text('StormClient { x required username="bob" password="secret"; };')
    monkeypatch.setitem(DIGEST, "java.security.auth.login.config", str(jaas))
    kinds = chosen(ANSWERS, *ALL, *MEETS[name])
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(kinds, pool.map(partial(problem_with, *CLIENTS[name]), map(ANSWERS.get, kinds)), strict=True))
    assert {kind: problem for kind, problem in found.items() if problem} == {}


def problem_with(ask: Callable[[int], object], refusal: type[Exception], answer: Answer) -> str:
    """Return what a client does with an answer; "" if it refuses it in a sentence, within bounds, and hangs up."""
    server = Hostile(answer)
    refused = Queue[str]()

    def attempt() -> None:
        try:
            refused.put(f"takes it: {ask(server.port)!r}")
        except refusal as error:
            text = str(error)
            refused.put("" if text and "\n" not in text and len(text) < LONGEST else f"says {text[:LONGEST]!r}")
        except BaseException as error:  # noqa: BLE001  # each that comes is a fault
            refused.put(f"raises {error!r}")

    threading.Thread(target=attempt, daemon=True).start()
    try:
        problem = refused.get(timeout=LIMIT)
        if not problem and not server.all_hung_up():
            return "does not hang up"
    except Empty:
        return "waits for ever"
    finally:
        server.close()
    if not problem and server.most_bytes > MOST_BYTES:
        return f"takes {server.most_bytes} bytes"
    if not problem and server.most_drips > MOST_DRIPS:
        return f"listens to {server.most_drips} drips"
    return problem


def test_a_zookeeper_that_is_silent_is_not_said_to_have_sent_something() -> None:
    server = Hostile(ANSWERS["silence"])
    with pytest.raises(StateError, match=f"^ZooKeeper 127.0.0.1:{server.port} does not answer, {SECS:g} seconds long;"):
        zookeeper(server.port)
    server.close()


def test_a_zookeeper_that_is_slow_within_its_session_is_heard_out() -> None:
    """An answer of 1 MB over a slow line is none that lasts for ever."""
    data = bytes(range(256)) * 4000
    answer = framed(struct.pack(">iqii", 1, 1, 0, len(data)) + data + bytes(68))

    def slowly() -> Iterator[bytes | None]:
        yield SESSION[:8] + INT.pack(1000 * LIMIT) + SESSION[12:]  # it grants what is asked for
        yield None
        for begin in range(0, len(answer), 50_000):
            time.sleep(SECS / 10)
            yield answer[begin : begin + 50_000]

    server = Hostile(slowly)
    conf = {"transactional.zookeeper.servers": ["127.0.0.1"], "transactional.zookeeper.port": server.port}
    client = ZooKeeperClient({**conf, "storm.zookeeper.session.timeout": 1000 * LIMIT}, "/a", LIMIT, lambda _: None)
    try:
        assert client.call("get", "/a")[0] == data
    finally:
        server.close()
        client.close()


@pytest.mark.parametrize("name", ["start", "_connect", "_read", "_read_socket", "_socket_error_handling"])
def test_a_kazoo_that_is_made_otherwise_is_refused_and_not_left_without_bounds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = KazooClient()
    assert zookeeper_bounds.bounded(client, lambda _: None) is client
    monkeypatch.delattr(ConnectionHandler, name)
    with pytest.raises(StateError, match=rf"made otherwise than 2.10 and 2.11 \({name}\).*pip install"):
        zookeeper_bounds.bounded(KazooClient(), lambda _: None)


LACKING = [{}, None, "a", 7, {1: "a"}, {2: "i"}, {1: 7, 2: "i"}, {1: "a", 2: None}, {1: {}, 2: "i"}]


@pytest.mark.parametrize("name", ["execute", "fetchRequest"])
def test_an_answer_of_drpc_is_what_it_must_be_or_is_refused(name: str) -> None:
    """A result that was missing became the text "None", and a request that was none an AttributeError."""
    for result, refusal in itertools.product(LACKING, LACKING):
        fields = {number: each for number, each in ((0, result), (1, refusal)) if each is not None}
        message = thrift.decode(thrift.encode(thrift.REPLY, name, 1, fields)[4:])
        with contextlib.suppress(MultilangError):
            found = thrift.answer_of(message, name, 1)
            assert all(isinstance(each, str) for each in (thrift.request_of(found) if name != "execute" else [found]))
