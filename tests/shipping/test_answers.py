"""Whoever answers in the place of a Nimbus takes no memory and no time by it, and every answer of a Nimbus is read."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.thrift import TPayload, TType
from thriftpy2.transport import TMemoryBuffer

from multilang.shipping.answers import MAX_BYTES, BoundedClient, check_complete, read_answer
from multilang.shipping.errors import ShippingError
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.thrift_types import types
from tests.cli.command import multilang
from tests.patience import PACE, patient
from tests.shipping.test_nimbus import listening

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = patient(60.0)
INT = struct.Struct(">i")
HEAD = INT.pack(-0x7FFEFFFE) + INT.pack(14) + b"getClusterInfo" + INT.pack(0)
SUCCESS = b"\x0c\x00\x00"  # field 0, a struct
TOPOLOGIES = SUCCESS + b"\x0f\x00\x03"  # and in it field 3, a list
ANSWERS = {
    "nested structs": lambda: HEAD + SUCCESS + b"\x0c\x00\x63" * 3_000_000,
    "nested lists": lambda: HEAD + b"\x0f\x00\x63" + b"\x0f\x00\x00\x00\x01" * 3_000_000,
    "nested maps": lambda: HEAD + b"\x0d\x00\x63" + b"\x02\x0d\x00\x00\x00\x01\x01" * 2_000_000,
    "nested, and whole": lambda: HEAD + SUCCESS + b"\x0c\x00\x63" * 1000 + bytes(1002),
    "many empty structs": lambda: HEAD + TOPOLOGIES + b"\x0c" + INT.pack(15_000_000) + bytes(15_000_000),  # 2 GB once
    "many empty texts": lambda: HEAD + TOPOLOGIES + b"\x0b" + INT.pack(4_000_000) + bytes(16_000_000),
    "many numbers": lambda: HEAD + TOPOLOGIES + b"\x02" + INT.pack(15_000_000) + bytes(15_000_000),
    "a list without an end": lambda: HEAD + TOPOLOGIES + b"\x0a" + INT.pack(2**31 - 1) + bytes(100),
    "a text without an end": lambda: HEAD + SUCCESS + b"\x0b\x00\x63" + INT.pack(2**31 - 1) + b"x",
    "a text of negative length": lambda: HEAD + SUCCESS + b"\x0b\x00\x63" + INT.pack(-5) + b"x",
    "a list of negative length": lambda: HEAD + TOPOLOGIES + b"\x0c" + INT.pack(-5) + b"x",
    "a value of no type": lambda: HEAD + SUCCESS + b"\x63\x00\x63" + b"x",
    "no text at all": lambda: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


def frame(answer: bytes) -> bytes:
    answer = answer[:MAX_BYTES]
    return INT.pack(len(answer)) + answer


FRAMES = {
    **{name: lambda answer=answer: frame(answer()) for name, answer in ANSWERS.items()},
    "a huge frame": lambda: INT.pack(2**31 - 1) + b"x",
    "a frame of negative length": lambda: INT.pack(-5) + b"x",
    "an empty frame": lambda: INT.pack(0),
}


@pytest.mark.parametrize("name", FRAMES)
def test_an_answer_that_no_nimbus_gives_is_refused_before_it_is_parsed(name: str) -> None:
    done = threading.Event()

    def speak(wire: socket.socket) -> None:
        wire.recv(1 << 16)
        with contextlib.suppress(ConnectionError):
            wire.sendall(FRAMES[name]())
            done.wait(LIMIT)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with listening(speak) as address, Nimbus([address]) as nimbus:
        begin = time.process_time()
        with pytest.raises(ShippingError, match=r"broke off the connection at getClusterInfo \(an answer "):
            nimbus.summary()
        assert time.process_time() - begin < 10 * PACE
        done.set()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB


@pytest.mark.parametrize("name", ANSWERS)
def test_without_frames_an_answer_has_the_same_bounds(name: str) -> None:
    with sent(ANSWERS[name]() + bytes(MAX_BYTES)) as wire, pytest.raises(ShippingError):
        read_answer(wire, False, LIMIT)


@pytest.mark.parametrize("framed", [True, False])
def test_an_answer_that_comes_byte_by_byte_has_no_more_time(framed: bool) -> None:
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            theirs.sendall((INT.pack(1000) if framed else b"") + HEAD)
            while not over.wait(0.02):
                theirs.sendall(b"\x0c")

    thread = threading.Thread(target=drip)
    thread.start()
    with ours, theirs:
        with pytest.raises((TimeoutError, ShippingError)):
            read_answer(ours, framed, 0.3)
        over.set()
        thread.join()


@contextlib.contextmanager
def sent(data: bytes) -> Iterator[socket.socket]:
    """The end of a connection whose other end sends this, and hangs up."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        with contextlib.suppress(OSError), theirs:
            theirs.sendall(data)

    thread = threading.Thread(target=send)
    thread.start()
    with ours:
        yield ours
    thread.join()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def answered(names: list[str], uptime: int) -> bytes:
    """A message as thriftpy2 writes it."""
    storm = types()
    topologies = [
        storm.TopologySummary(
            id=name, name=name, status="ACTIVE", num_tasks=1, num_executors=1, num_workers=1, uptime_secs=uptime
        )
        for name in names
    ]
    result = storm.Nimbus.getClusterInfo_result(
        success=storm.ClusterSummary(supervisors=[], topologies=topologies, nimbuses=[])
    )
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocolFactory().get_protocol(buffer)
    protocol.write_message_begin("getClusterInfo", 2, 0)
    result.write(protocol)
    protocol.write_message_end()
    return bytes(buffer.getvalue())


@settings(max_examples=30)
@given(st.lists(texts, max_size=5), st.integers(0, 2**31 - 1), st.booleans())
def test_an_answer_of_a_nimbus_is_read_as_it_is(names: list[str], uptime: int, framed: bool) -> None:
    message = answered(names, uptime)
    with sent((INT.pack(len(message)) if framed else b"") + message) as wire:
        assert read_answer(wire, framed, LIMIT) == message


def test_the_answer_of_a_large_cluster_is_within_the_bounds() -> None:
    message = answered([f"topology-{number}-of-a-large-cluster" for number in range(20_000)], 7)
    with sent(frame(message)) as wire:
        assert read_answer(wire, True, LIMIT) == message


@settings(max_examples=100)
@given(st.data())
def test_an_answer_that_was_changed_is_read_or_refused(data: st.DataObject) -> None:
    message = bytearray(answered(["a", "b"], 7))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message) - 1))
        message[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    with sent(frame(bytes(message))) as wire, contextlib.suppress(ShippingError, EOFError):
        read_answer(wire, True, LIMIT)


def full(of: Any) -> Any:
    """Return a value of a struct's class, with a value for each field that Storm's types require."""

    def value(kind: int, parts: Any = None) -> Any:
        if kind == TType.STRUCT:
            return full(parts)
        if kind == TType.MAP:
            return {part(parts[0]): part(parts[1])}
        if kind in (TType.LIST, TType.SET):
            return [part(parts)]
        return "x" if kind in (TType.STRING, TType.BINARY) else 1

    def part(of: Any) -> Any:
        return value(*of) if isinstance(of, tuple) else value(of)

    found = of()
    for kind, name, *parts, required in of.thrift_spec.values():
        if required:
            setattr(found, name, value(kind, *parts))
    return found


def structs(found: Any) -> Iterator[Any]:
    """Yield a struct and all those in it."""
    if isinstance(found, TPayload):
        yield found
        for each in vars(found).values():
            yield from structs(each)
    elif isinstance(found, list | dict):
        for each in found.values() if isinstance(found, dict) else found:
            yield from structs(each)


def required(of: str) -> list[tuple[int, str]]:
    """Return each field that an answer must have: the place of its struct, and its name."""
    return [
        (place, name)
        for place, each in enumerate(structs(full(getattr(types(), of))))
        for _, name, *_, is_required in each.thrift_spec.values()
        if is_required
    ]


def answer_of(call: str, success: Any, result: Any = None) -> bytes:
    """Return a message as thriftpy2 writes it, with a result, or with one that is whole."""
    result = result or getattr(types().Nimbus, f"{call}_result")(success=success)
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocolFactory().get_protocol(buffer)
    protocol.write_message_begin(call, 2, 0)
    result.write(protocol)
    protocol.write_message_end()
    return bytes(buffer.getvalue())


@pytest.mark.parametrize(("call", "of"), [("getClusterInfo", "ClusterSummary"), ("getTopologyInfo", "TopologyInfo")])
def test_an_answer_without_a_field_that_every_nimbus_sends_is_refused_by_its_name(call: str, of: str) -> None:
    wanted = required(of)
    assert len(wanted) > 10

    def speak(wire: socket.socket) -> None:
        for place, name in [*wanted, (-1, "")]:
            found = full(getattr(types(), of))
            if name:
                setattr(list(structs(found))[place], name, None)
            wire.recv(1 << 16)
            wire.sendall(frame(answer_of(call, found)))

    with listening(speak) as address, Nimbus([address]) as nimbus:
        asked = BoundedClient(types().Nimbus, nimbus._client._wire, True, LIMIT)
        arguments = ("t",) if call == "getTopologyInfo" else ()
        for _, name in wanted:
            with pytest.raises(ShippingError, match=rf"an answer without \w+\.{name}$"):
                getattr(asked, call)(*arguments)
        getattr(asked, call)(*arguments)  # a whole one


def test_the_command_tells_of_a_missing_field_in_a_sentence() -> None:
    def speak(wire: socket.socket) -> None:
        wire.recv(1 << 16)
        wire.sendall(frame(answer_of("getClusterInfo", types().ClusterSummary(supervisors=[], nimbuses=[]))))

    with listening(speak) as address:
        shown = multilang("list", "--nimbus", str(address))
    assert shown.returncode == 69
    assert "(an answer without ClusterSummary.topologies): it is no Nimbus" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_text_that_is_no_text_is_refused() -> None:
    message = answered(["name", "other"], 7).replace(b"other", b"o\xff\xfeer")
    with pytest.raises(ShippingError, match=r"TopologySummary\.\w+ is no text"):
        check_complete(parsed(message))


def parsed(message: bytes) -> Any:
    result = types().Nimbus.getClusterInfo_result()
    protocol = TBinaryProtocolFactory().get_protocol(TMemoryBuffer(message))
    protocol.read_message_begin()
    result.read(protocol)
    return result.success


def test_the_command_says_it_in_a_sentence() -> None:
    def speak(wire: socket.socket) -> None:
        wire.recv(1 << 16)
        wire.sendall(frame(HEAD + SUCCESS + b"\x0c\x00\x63" * 100_000))

    with listening(speak) as address:
        shown = multilang("list", "--nimbus", str(address))
    assert shown.returncode == 69
    assert "an answer that is nested deeper than 32 levels" in shown.stderr
    assert "Traceback" not in shown.stderr
