"""Requests over HTTP are read within bounds, and each gets an answer that says what is wrong with it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from multilang.listening.accepting import bind
from multilang.listening.checks import asks_for, is_from_elsewhere, is_secret
from multilang.listening.http import HttpServer, Request, answer

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 60.0
MOST = 100  # bytes of a body


async def respond(request: Request) -> bytes:
    if request.head.path == "/broken":
        raise ZeroDivisionError
    return answer(HTTPStatus.OK, await request.body(request.head.size(MOST)))


@pytest.fixture
def port() -> Iterator[int]:
    server = HttpServer(bind("127.0.0.1", 0), respond, connections=4, secs=LIMIT, name="echo")
    yield server.port
    server.close()
    server.close()  # the second time, nothing is left to do


def said(port: int, request: bytes) -> tuple[int, bytes]:
    """Return the status of the answer to a request after which the client says no more, and the answer's body."""
    with socket.create_connection(("127.0.0.1", port), LIMIT) as wire:
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        with wire.makefile("rb") as whole:
            head, _, body = whole.read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\ncontent-LENGTH: \t3 \r\n\r\nabc", 200),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 411),
        (b"POST / HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\nabc", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 3", 400),
        (b"\x16\x03\x01\x02\r\n\r\n", 400),
        (b"POST /broken HTTP/1.1\r\n\r\n", 500),
    ],
)
def test_a_request_that_can_not_be_read_or_done_gets_the_status_that_says_why(
    port: int, request_: bytes, status: int
) -> None:
    assert said(port, request_)[0] == status
    assert said(port, b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx") == (200, b"x")


def test_an_answer_reaches_a_client_whose_request_is_refused_while_it_still_sends(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), LIMIT) as wire:
        wire.sendall(b"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n" + b"x" * 500_000)
        assert b" 413 " in wire.recv(1 << 16)


def test_the_first_free_one_of_some_ports_is_taken() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(bind("127.0.0.1", 0))
        port = first.getsockname()[1]
        assert port < stack.enter_context(bind("127.0.0.1", port, 100)).getsockname()[1] < port + 100
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)
    with pytest.raises(OSError, match="70000 is no port"):
        bind("127.0.0.1", 70_000)


@pytest.mark.parametrize("host", ["localhost:80", "LOCALHOST", "127.0.0.1:80", "[::1]:80", "10.0.0.1"])
def test_an_address_and_a_name_of_the_server_are_asked_for_here(host: str) -> None:
    assert asks_for({"host": host}, {"localhost"})


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "localhost@evil.example", "[::1", "[x]"]
)
def test_no_other_name_is(host: str) -> None:
    assert not asks_for({"host": host}, {"localhost"})
    assert not asks_for({}, {"localhost"})


@pytest.mark.parametrize(
    ("fields", "elsewhere"),
    [
        ({}, False),
        ({"host": "a:1", "origin": "http://a:1", "sec-fetch-site": "same-origin"}, False),
        ({"host": "a:1", "origin": "http://a:2"}, True),
        ({"host": "a:1", "origin": "null"}, True),
        ({"host": "", "origin": ""}, True),
        ({"origin": "http://[a"}, True),
        ({"sec-fetch-site": "same-site"}, True),
    ],
)
def test_what_the_page_of_another_site_sends_is_reported_by_its_fields(fields: dict[str, str], elsewhere: bool) -> None:
    assert is_from_elsewhere(fields) == elsewhere


def test_a_secret_may_be_any_text() -> None:
    assert is_secret("word", "word")
    assert not is_secret("w\u00f6rd", "word")
    assert not is_secret("w\u2603rd", "w?rd\u2603")
    assert not is_secret("", "word")
