"""Failures on the way to Nimbus are reported so that the user knows what to do."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from multilang.shipping.errors import UNREACHABLE, ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.storm_yaml import Address
from tests.cli.command import ROOT, multilang
from tests.shipping.nimbus_server import NimbusServer, serving

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


@contextmanager
def unreachable(match: str = "^no Nimbus listens on") -> Iterator[pytest.ExceptionInfo[ShippingError]]:
    with pytest.raises(ShippingError, match=match) as caught:
        yield caught
    assert caught.value.kind == UNREACHABLE


def test_a_refused_connection_names_the_address() -> None:
    address = free()
    with unreachable(match=f"^no Nimbus listens on {address}: connection refused$"):
        Nimbus([address])


def test_every_seed_is_tried_and_named() -> None:
    first, second = free(), free()
    with unreachable() as caught:
        Nimbus([first, second])
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        f"no Nimbus listens on {first}",
        f"no Nimbus listens on {second}",
    ]


def test_a_server_that_closes_at_once_may_want_a_login() -> None:
    def hang_up(connection: socket.socket) -> None:
        connection.recv(4)

    said = r"broke off the connection at getClusterInfo .* another login or TLS"
    with listening(hang_up) as address, Nimbus([address]) as nimbus, unreachable(match=said):
        nimbus.summary()


def test_a_server_that_never_answers_is_given_up() -> None:
    over = threading.Event()
    with listening(lambda _: bool(over.wait())) as address, Nimbus([address], timeout=0.2) as nimbus:
        with unreachable(match="gave no answer to getClusterInfo in time"):
            nimbus.summary()
        over.set()


def test_a_server_that_speaks_something_else_is_no_nimbus() -> None:
    def speak(connection: socket.socket) -> None:
        connection.recv(4)
        connection.sendall(b"\0\0\0\x10HTTP/1.1 400 Bad")  # a whole frame, of nonsense

    said = "it is no Nimbus"
    with listening(speak) as address, Nimbus([address]) as nimbus, unreachable(match=said):
        nimbus.summary()


def test_the_command_says_it_in_one_line_with_a_status_of_its_own() -> None:
    address = free()
    for arguments in (["list"], ["submit", ROOT / "examples" / "word_count.py"], ["blob", "ls"], ["kill", "it"]):
        shown = multilang(*arguments, "--nimbus", address)
        assert (shown.returncode, shown.stderr) == (
            69,
            f"Error: no Nimbus listens on {address}: connection refused\n",
        )


@pytest.mark.parametrize(
    ("version", "options", "said"),
    [
        (
            "2.5.0",
            (),
            "is Storm 2.5.0, and the oldest that is supported is 2.6.0: workers before that lack the classes",
        ),
        ("1.2.4", (), "is Storm 1.2.4, and the oldest that is supported is 2.6.0"),
        ("2.5.0", ("-c", "topology.skip.missing.kryo.registrations=true"), "a topology 'word-count' runs already"),
        ("2.6.0", (), "a topology 'word-count' runs already"),
        ("3.0.0-SNAPSHOT", (), "a topology 'word-count' runs already"),
    ],
)
def test_a_storm_that_is_too_old_is_refused_before_anything_is_sent(
    version: str, options: tuple[str, ...], said: str
) -> None:
    """The topology that runs already is what is looked at next."""
    server = NimbusServer()
    server.version = version
    server.topologies["word-count"] = {"id": "w-1", "status": "ACTIVE"}
    with serving(server) as address:
        shown = multilang("submit", ROOT / "examples" / "word_count.py", "--nimbus", address, *options)
    assert shown.returncode == 2
    assert said in shown.stderr
