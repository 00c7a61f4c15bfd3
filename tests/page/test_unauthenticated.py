"""Connections without the token lock nobody out of the page, and take little memory."""

from __future__ import annotations

import os
import re
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from multilang.engine.status import RunStatus
from multilang.page import RunPage
from multilang.page.server import ANONYMOUS_SECS, MAX_ANONYMOUS

STATUS = RunStatus(topology="t", engine="process", state="active", seconds=1.0)
MANY = 400
HEAD = "GET {path} HTTP/1.1\r\nHost: {host}\r\n"
PING, PONG = b"\x89\x80\0\0\0\0", b"\x8a\x00"
UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@pytest.fixture(scope="module")
def page():
    with RunPage(lambda: STATUS, 0) as page:
        yield page


@pytest.fixture
def port(page):
    return urlsplit(page.url).port


@pytest.fixture
def browser():
    opener = build_opener(HTTPCookieProcessor())
    yield lambda url: opener.open(url, timeout=90)
    opener.close()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), 90)


def ended(wire):
    """Wait until the server has closed a connection; return what it sent before."""
    parts = []
    try:
        while part := wire.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def status_of(port, text):
    """Return the status of the answer to a request."""
    with connected(port) as wire:
        wire.sendall(text.encode())
        return int(wire.recv(1 << 16).split()[1])


def memory(port):
    """Return the bytes of memory of the process that listens on a port."""
    inode = next(
        fields[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if (fields := line.split())[1].endswith(f":{port:04X}") and fields[3] == "0A"
    )
    for each in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(each) == f"socket:[{inode}]" and each.parts[2] != str(os.getpid()):
                found = re.search(r"VmRSS:\s+(\d+)", Path("/proc", each.parts[2], "status").read_text())
                assert found
                return int(found[1]) * 1024
        except OSError:
            continue
    raise AssertionError("nobody listens there")


def test_silent_connections_keep_nobody_out(page, port, browser):
    with ExitStack() as stack:
        wires = [stack.enter_context(connected(port)) for _ in range(MANY)]
        assert "<html" in browser(page.url).read().decode()
        assert sum(ended(wire) == b"" for wire in wires[: MANY - MAX_ANONYMOUS]) == MANY - MAX_ANONYMOUS


def test_half_a_request_is_ended_by_its_time(port):
    with connected(port) as wire:
        begin = time.monotonic()
        wire.sendall(HEAD.format(path="/", host="127.0.0.1").encode())
        assert ended(wire) == b""
        assert time.monotonic() - begin > ANONYMOUS_SECS / 2, "by its time, and not at once"


def test_a_body_without_an_end_is_ended_by_its_time(port):
    with connected(port) as wire:
        head = HEAD.format(path="/", host="127.0.0.1").replace("GET", "POST")
        wire.sendall(f"{head}Content-Length: 1000000000000\r\n\r\n".encode())
        assert b"403" in ended(wire)


def test_a_head_without_an_end_takes_no_memory(port):
    before = memory(port)
    with connected(port) as wire:
        wire.sendall(HEAD.format(path="/", host="127.0.0.1").encode())
        try:
            for _ in range(3000):  # 192 MB
                wire.sendall(b"x: " + b"y" * 65000 + b"\r\n")
        except ConnectionError:
            pass
        else:
            pytest.fail("it took all")
    assert memory(port) - before < 32 << 20


def test_connections_of_who_has_the_token_outlive_strangers(page, port):
    opener = build_opener(HTTPCookieProcessor())
    answer = opener.open(page.url, timeout=90)
    cookie = Request(answer.url)
    for handler in opener.handlers:
        if isinstance(handler, HTTPCookieProcessor):
            handler.cookiejar.add_cookie_header(cookie)
    path, own = urlsplit(answer.url).path, f"127.0.0.1:{port}"
    text = f"{HEAD.format(path=path + '_nicegui_ws/socket.io/?EIO=4&transport=websocket', host=own)}Cookie: {cookie.get_header('Cookie')}\r\n"
    with connected(port) as mine, ExitStack() as stack:
        mine.sendall(f"{text}Origin: http://{own}\r\n{UPGRADE}\r\n".encode())
        assert b" 101 " in mine.recv(1 << 16)
        for _ in range(MANY):
            stack.enter_context(connected(port))
        mine.sendall(PING)
        while PONG not in (answer := mine.recv(1 << 16)):
            assert answer, "it is still there"


def test_a_websocket_of_a_stranger_or_of_another_site_is_refused(page, port, browser):
    answer = browser(page.url)
    path, own = urlsplit(answer.url).path, f"127.0.0.1:{port}"
    socket_path = f"{path}_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    for origin in (f"http://{own}", "http://elsewhere.example"):
        head = f"{HEAD.format(path=socket_path, host=own)}Origin: {origin}\r\n"
        assert status_of(port, f"{head}{UPGRADE}\r\n") == 403
        assert status_of(port, f"{head}Cookie: multilang-page=guessed\r\n{UPGRADE}\r\n") == 403
    assert status_of(port, HEAD.format(path=socket_path.replace("websocket", "polling"), host=own) + "\r\n") == 403


def test_the_page_of_another_name_for_this_machine_is_refused(page, browser):
    url = urlsplit(page.url)
    with pytest.raises(HTTPError, match="403"):
        browser(Request(page.url, headers={"Host": "rebound.example"}))
    assert "<html" in browser(page.url.replace(f"{url.hostname}", "localhost")).read().decode()


def test_what_is_no_request_fills_no_log(capfd):
    with RunPage(lambda: STATUS, 0) as page:
        for _ in range(3):
            assert status_of(urlsplit(page.url).port, "no request\r\n\r\n") == 400
    assert capfd.readouterr().err == ""
