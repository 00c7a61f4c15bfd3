"""The login by digest answers as RFC 2831 says, and believes no server that does not know the password."""

from __future__ import annotations

import re
import socket
import threading
from hashlib import md5
from struct import pack, unpack
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.transport.digest import DigestMd5, parse
from multilang.transport.sasl import BAD, COMPLETE, OK, START, Sasl

if TYPE_CHECKING:
    from collections.abc import Callable

# RFC 2831, section 4
CHALLENGE = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
PROOF = b"rspauth=ea40f60335c427b5527b84dbabcdfffd"
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


def of_rfc() -> DigestMd5:
    return DigestMd5("chris", "secret", "imap", nonce="OA6MHXh6VqTrRk")


def test_the_example_of_the_rfc() -> None:
    """The digest-uri's host is the realm, as Storm's server wants it, which is the example's host, too."""
    login = of_rfc()
    assert login.start() == b""
    assert parse(login.step(CHALLENGE)) == {
        "username": "chris",
        "realm": "elwood.innosoft.com",
        "nonce": "OA6MG9tEQGm2hh",
        "nc": "00000001",
        "cnonce": "OA6MHXh6VqTrRk",
        "digest-uri": "imap/elwood.innosoft.com",
        "response": "d388dad90d4bbd760a152321f2143af7",
        "charset": "utf-8",
        "qop": "auth",
    }
    login.finish(PROOF)


@pytest.mark.parametrize("proof", [b"", b"rspauth=", b"rspauth=ea40f60335c427b5527b84dbabcdfff0", b'rspauth="\xff"'])
def test_a_server_that_does_not_know_the_password_is_not_believed(proof: bytes) -> None:
    login = of_rfc()
    login.step(CHALLENGE)
    with pytest.raises(PermissionError, match=r"does not know the password of 'chris'|can't be read"):
        login.finish(proof)


def test_a_server_that_asks_for_nothing_is_not_believed() -> None:
    with pytest.raises(PermissionError):
        of_rfc().finish(PROOF)


@pytest.mark.parametrize(
    ("challenge", "problem"),
    [
        (b'realm="x",qop="auth"', "no|not of DIGEST-MD5"),
        (b'nonce="x",algorithm=SHA-256', "not of DIGEST-MD5"),
        (b'nonce="x",qop="auth-int,auth-conf"', "sign or encrypt"),
        (b"\x00\xff", "can't be read"),
        (b'nonce="x', "can't be read"),
    ],
)
def test_a_challenge_that_can_not_be_met_is_refused(challenge: bytes, problem: str) -> None:
    with pytest.raises(PermissionError, match=problem):
        of_rfc().step(challenge)


def test_a_user_that_the_server_can_not_spell_is_refused_without_showing_the_password() -> None:
    with pytest.raises(PermissionError, match="Latin-1") as caught:
        DigestMd5("漢", "geheim", "s").step(b'nonce="x"')
    assert "geheim" not in str(caught.value)


@given(user=TEXT, password=TEXT, realm=TEXT)
def test_a_server_with_the_same_password_agrees_whatever_the_letters(user: str, password: str, realm: str) -> None:
    login = DigestMd5(user, password, "storm_thrift_server")
    quoted = re.sub(r'(["\\])', r"\\\1", realm)
    answer = parse(login.step(f'realm="{quoted}",nonce="n",qop="auth",charset=utf-8'.encode()))
    assert (answer["username"], answer["realm"]) == (user, realm)
    whole = f"{user}:{realm}:{password}"
    try:
        secret = md5(whole.encode("latin-1")).digest()
    except UnicodeEncodeError:
        secret = md5(whole.encode()).digest()
    first = md5(secret + f":n:{answer['cnonce']}".encode()).hexdigest()

    def digest(method: str) -> str:
        second = md5(f"{method}:{answer['digest-uri']}".encode()).hexdigest()
        return md5(f"{first}:n:00000001:{answer['cnonce']}:auth:{second}".encode()).hexdigest()

    assert answer["response"] == digest("AUTHENTICATE")
    login.finish(f"rspauth={digest('')}".encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_a_challenge_or_are_refused(data: bytes) -> None:
    try:
        of_rfc().step(data)
    except PermissionError:
        pass


# ---- over a socket ----


def logged_in(serve: Callable[[socket.socket], object]) -> None:
    """Log in at a server that does what ``serve`` does."""
    here, there = socket.socketpair()
    thread = threading.Thread(target=lambda: (serve(there), there.close()))
    thread.start()
    try:
        with here:
            here.settimeout(30)
            assert Sasl(lambda _: of_rfc()).open(here, "h") is here
    finally:
        thread.join()


def receive(wire: socket.socket) -> tuple[int, bytes]:
    status, length = unpack(">BI", wire.recv(5, socket.MSG_WAITALL))
    return status, wire.recv(length, socket.MSG_WAITALL) if length else b""


def test_a_login_begins_with_its_name_and_ends_when_the_server_is_content() -> None:
    seen = []

    def serve(wire: socket.socket) -> None:
        seen.extend([receive(wire), receive(wire)])
        wire.sendall(pack(">BI", OK, len(CHALLENGE)) + CHALLENGE)
        seen.append(receive(wire))
        for at in range(len(PROOF) + 5):  # byte by byte
            wire.sendall((pack(">BI", COMPLETE, len(PROOF)) + PROOF)[at : at + 1])

    logged_in(serve)
    assert seen[:2] == [(START, b"DIGEST-MD5"), (OK, b"")]
    assert seen[2][0] == OK


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (pack(">BI", BAD, 3) + b"no!", r"refused the login by DIGEST-MD5 of 'chris': no!$"),
        (pack(">BI", COMPLETE, 0), "does not know the password"),
        (pack(">BI", OK, 2**31), "does not speak SASL"),
        (b"HTTP/1.1 400 Bad", "does not speak SASL"),
        (b"", "hung up during the login"),
        (b"\x02\x00", "hung up during the login"),
    ],
)
def test_a_server_that_does_something_else_is_said(answer: bytes, problem: str) -> None:
    def serve(wire: socket.socket) -> None:
        receive(wire)
        receive(wire)
        wire.sendall(answer)

    with pytest.raises(PermissionError, match=problem):
        logged_in(serve)
