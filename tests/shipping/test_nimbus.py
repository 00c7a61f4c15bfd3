"""What keeps a client from Nimbus is said so that a person can act on it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.errors import UnreachableError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address
from tests.cli.command import ROOT, multilang

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[Address]:
    """A server that takes one connection and does with it what ``answer`` does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


def free() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Address("127.0.0.1", server.getsockname()[1])


def test_a_refused_connection_names_the_address() -> None:
    address = free()
    with pytest.raises(UnreachableError, match=f"^no Nimbus listens on {address}: connection refused$"):
        Nimbus([address])


def test_every_seed_is_tried_and_named() -> None:
    first, second = free(), free()
    with pytest.raises(UnreachableError) as caught:
        Nimbus([first, second])
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        f"no Nimbus listens on {first}",
        f"no Nimbus listens on {second}",
    ]


def test_a_server_that_closes_at_once_may_want_a_login() -> None:
    def hang_up(connection: socket.socket) -> None:
        connection.recv(4)

    said = r"broke off the connection at getClusterInfo .* Kerberos or TLS"
    with listening(hang_up) as address, Nimbus([address]) as nimbus, pytest.raises(UnreachableError, match=said):
        nimbus.summary()


def test_a_server_that_never_answers_is_given_up() -> None:
    over = threading.Event()
    with listening(lambda _: bool(over.wait())) as address, Nimbus([address], timeout=0.2) as nimbus:
        with pytest.raises(UnreachableError, match="gave no answer to getClusterInfo in time"):
            nimbus.summary()
        over.set()


def test_a_server_that_speaks_something_else_is_no_nimbus() -> None:
    def speak(connection: socket.socket) -> None:
        connection.recv(4)
        connection.sendall(b"\0\0\0\x10HTTP/1.1 400 Bad")  # a whole frame, of nonsense

    said = "it is no Nimbus"
    with listening(speak) as address, Nimbus([address]) as nimbus, pytest.raises(UnreachableError, match=said):
        nimbus.summary()


def test_the_command_says_it_in_one_line_with_a_status_of_its_own() -> None:
    address = free()
    for arguments in (["list"], ["submit", ROOT / "examples" / "word_count.py"], ["blob", "ls"], ["kill", "it"]):
        shown = multilang(*arguments, "--nimbus", address)
        assert (shown.returncode, shown.stderr) == (
            69,
            f"Error: no Nimbus listens on {address}: connection refused\n",
        )
