"""The server and its clients, over real sockets; Thrift as thriftpy2 reads our interface definition."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import thriftpy2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.transport import TFramedTransportFactory

from multilang.drpc import (
    AsyncDRPCClient,
    DRPCClient,
    DRPCConnectionError,
    DRPCExecutionException,
    DRPCInvocationsClient,
    DRPCServer,
    DRPCTimeoutError,
    LocalDRPC,
)
from multilang.drpc.thrift import CALL, EXCEPTION, MAX_TEXT, UNKNOWN_METHOD, decode, encode, frame_size
from tests.cli.command import ROOT, multilang
from tests.patience import patient
from tests.soak import SOAK

LIMIT = patient(60.0)
IDL = thriftpy2.load(str(Path(ROOT) / "multilang/drpc/drpc.thrift"), module_name="multilang_drpc_test_thrift")


@contextmanager
def thrift(service, port):
    client = make_client(
        service,
        "127.0.0.1",
        port,
        proto_factory=TBinaryProtocolFactory(),
        trans_factory=TFramedTransportFactory(),
        timeout=60_000,
    )
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def server():
    with DRPCServer(port=0, invocations_port=0, http_port=0, timeout_secs=LIMIT) as server:
        yield server


@contextmanager
def answering(server, function="double", answer=lambda text: text * 2):
    """Something in the place of a topology."""
    stop = threading.Event()

    def work():
        place = DRPCInvocationsClient(port=server.invocations_port)
        while not stop.is_set():
            found = place.fetch(function)
            if found is None:
                time.sleep(0.002)
            elif found[1] == "fail":
                place.fail(found[0])
            else:
                place.result(found[0], answer(found[1]))
        place.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def fetched(requests, function):
    deadline = time.monotonic() + LIMIT
    while (found := requests(function)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def test_a_call_is_answered(server):
    with answering(server), DRPCClient(port=server.port) as client:
        assert client.execute("double", "ab") == "abab"
        assert client.execute("double", "é✓𝄞") == "é✓𝄞é✓𝄞"
        assert client.execute("double", "x" * 1_000_000) == "x" * 2_000_000


def test_a_failed_request_is_an_error_of_its_kind_and_the_next_one_answers(server):
    with answering(server), DRPCClient(port=server.port) as client:
        with pytest.raises(DRPCExecutionException) as caught:
            client.execute("double", "fail")
        assert caught.value.kind == "FAILED_REQUEST"
        assert client.execute("double", "a") == "aa"


def test_another_thrift_library_is_understood_on_both_ports(server):
    results = []
    with thrift(IDL.DistributedRPCInvocations, server.invocations_port) as topology:

        def ask():
            with thrift(IDL.DistributedRPC, server.port) as client:
                results.append(client.execute("f", "é"))
                try:
                    client.execute("f", "b")
                except IDL.DRPCExecutionException as error:
                    results.append((error.msg, error.type))

        asking = threading.Thread(target=ask)
        asking.start()

        def request(function):
            found = topology.fetchRequest(function)
            return found if found.request_id else None

        assert topology.fetchRequest("g").request_id == topology.fetchRequest("g").func_args == ""
        one = fetched(request, "f")
        assert one.func_args == "é"
        topology.result(one.request_id, "ö")
        topology.result(one.request_id, "again")  # of a request that is over
        problem = IDL.DRPCExecutionException(msg="no", type=IDL.DRPCExceptionType.INTERNAL_ERROR)
        topology.failRequestV2(fetched(request, "f").request_id, problem)
        asking.join(LIMIT)
    assert results == ["ö", ("no", IDL.DRPCExceptionType.INTERNAL_ERROR)]


def test_many_functions_and_many_calls_at_once_from_asyncio(server):
    async def ask():
        async with AsyncDRPCClient(port=server.port, connections=50) as client:
            calls = [(name, str(n)) for n in range(300) for name in ("twice", "thrice")]
            return calls, await asyncio.gather(*(client.execute(*call) for call in calls))

    with answering(server, "twice"), answering(server, "thrice", lambda text: text * 3):
        calls, results = asyncio.run(ask())
    assert results == [text * (2 if name == "twice" else 3) for name, text in calls]
    assert len(server.requests) == 0


def http(server, path, data=None):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}{path}", data, timeout=LIMIT) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_http_answers_a_post(server):
    with answering(server):
        assert http(server, "/drpc/double", b"body") == (200, "bodybody")
        assert http(server, "/drpc/double", b"fail")[0] == 500
        assert http(server, "/other", b"")[0] == 404
        assert http(server, "/drpc/double/a", b"")[0] == 404


def said(server, request):
    """Return what the HTTP port answers to these bytes: its status, and the text."""
    with socket.create_connection(("127.0.0.1", server.http_port), LIMIT) as wire:
        wire.sendall(request)
        answer = b""
        while part := wire.recv(1 << 16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


def test_a_path_may_be_utf8_as_it_is_or_percent_encoded(server):
    with answering(server, "h\u00e9\u2603"):
        for path in ("h\u00e9\u2603".encode(), b"h%C3%A9%E2%98%83", b"h\xc3\xa9%E2%98%83"):
            request = b"POST /drpc/" + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
            assert said(server, request) == ("HTTP/1.1 200 OK", "xx")


def test_a_length_of_thousands_of_digits_is_refused_as_any_that_is_too_much(server, caplog):
    for length in (b"16384001", b"9" * 5000):
        status, text = said(
            server, b"POST /drpc/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + b"\r\n\r\n"
        )
        assert (status.split()[1], text) == ("413", "at most 16384000 bytes")
    assert not caplog.records


def test_a_request_that_takes_too_long_is_an_error():
    with (
        DRPCServer(port=0, invocations_port=0, http_port=0, timeout_secs=0.3) as server,
        DRPCClient(port=server.port) as client,
    ):
        with pytest.raises(DRPCExecutionException, match=r"0\.3 seconds") as caught:
            client.execute("nobody", "a")
        assert caught.value.kind == "SERVER_TIMEOUT"
        assert http(server, "/drpc/nobody", b"a")[0] == 504
        assert server.requests.waiting == {}


def test_a_queue_that_nobody_empties_is_bounded():
    async def ask(port):
        async with AsyncDRPCClient(port=port) as client:
            return await asyncio.gather(*(client.execute("f", str(n)) for n in range(5)), return_exceptions=True)

    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=1, max_waiting=3) as server:
        kinds = sorted(error.kind for error in asyncio.run(ask(server.port)))
    assert kinds == ["INTERNAL_ERROR"] * 2 + ["SERVER_TIMEOUT"] * 3


def test_the_end_of_the_server_is_reported():
    server = DRPCServer(port=0, invocations_port=0, http_port=None).start()
    errors = []

    def ask():
        with DRPCClient(port=server.port) as client, pytest.raises(DRPCExecutionException) as caught:
            client.execute("f", "a")
        errors.append(caught.value.kind)

    asking = threading.Thread(target=ask)
    asking.start()
    fetched(lambda _: len(server.requests) or None, "f")
    server.close()
    asking.join(LIMIT)
    assert errors == ["SERVER_SHUTDOWN"]


def test_a_client_that_is_gone_is_forgotten(server):
    client = DRPCClient(port=server.port, timeout=0.3)
    with pytest.raises(DRPCTimeoutError, match=r"0\.3 seconds"):
        client.execute("f", "a")
    fetched(lambda _: True if not len(server.requests) else None, "f")
    assert server.requests.waiting == {}


def test_an_http_client_that_hangs_up_is_forgotten(server):
    for fetched_before in (False, True):
        with socket.create_connection(("127.0.0.1", server.http_port), LIMIT) as wire:
            wire.sendall(b"POST /drpc/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na")
            fetched(lambda _: len(server.requests) or None, "f")
            if fetched_before:
                fetched(server.requests.fetch, "f")
        fetched(lambda _: True if not len(server.requests) else None, "f")
        assert server.requests.waiting == {}


def call(server, *calls):
    """Threads that ask, and what they get."""
    ends = []

    def ask(function, arguments):
        with DRPCClient(port=server.port) as client:
            try:
                ends.append(client.execute(function, arguments))
            except DRPCExecutionException as error:
                ends.append((error.kind, error.message))

    threads = [threading.Thread(target=ask, args=each) for each in calls]
    for thread in threads:
        thread.start()
    return threads, ends


def test_what_a_spout_fetched_that_is_gone_fails_soon_unless_its_result_comes():
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=LIMIT, orphan_secs=0.5) as server:
        threads, ends = call(server, ("f", "lost"), ("f", "answered"))
        with DRPCInvocationsClient(port=server.invocations_port) as spout:
            ids = {arguments: id for id, arguments in (fetched(spout.fetch, "f"), fetched(spout.fetch, "f"))}
        with DRPCInvocationsClient(port=server.invocations_port) as bolt:
            bolt.result(ids["answered"], "in time")
            for thread in threads:
                thread.join(LIMIT)
            bolt.result(ids["lost"], "too late")  # of a request that is over
            assert bolt.fetch("f") is None
        assert ends[0] == "in time"
        kind, message = ends[1]
        assert kind == "FAILED_REQUEST"
        assert message == "'f' failed: the spout that fetched the request is gone, and no result came; ask again"
        assert len(server.requests) == len(server.requests._orphans) == len(server.requests._owned) == 0


def test_a_failure_without_a_cause_names_its_function_and_one_with_a_cause_says_it(server):
    threads, ends = call(server, ("f", "mute"), ("f", "told"), ("f", "kind"))
    with DRPCInvocationsClient(port=server.invocations_port) as topology:
        for _ in threads:
            id, arguments = fetched(topology.fetch, "f")
            cause = {"mute": None, "told": "no such user", "kind": DRPCExecutionException("full", 0)}[arguments]
            topology.fail(id, cause)
        for thread in threads:
            thread.join(LIMIT)
    assert set(ends) == {
        ("FAILED_REQUEST", "the topology failed the request of 'f' and gave no cause"),
        ("FAILED_REQUEST", "no such user"),
        ("INTERNAL_ERROR", "full"),
    }


def test_a_client_that_reads_nothing_keeps_nobody_from_an_answer(server):
    with answering(server, answer=lambda text: text * 1_000_000), ExitStack() as stack:
        frame = encode(CALL, "execute", 1, {1: "double", 2: "abcdefgh"})
        for _ in range(20):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), LIMIT))
            wire.sendall(frame)
        with DRPCClient(port=server.port) as client:
            assert client.execute("double", "a") == "a" * 1_000_000
        fetched(lambda _: True if not len(server.requests) else None, "double")


def test_a_server_that_was_started_anew_is_found_by_the_next_call_and_mixes_nothing_up(server):
    ports = {"port": server.port, "invocations_port": server.invocations_port, "http_port": None}

    async def calls(client):
        return await asyncio.gather(*(client.execute("double", str(n)) for n in range(5)))

    async def over_a_restart():
        async with AsyncDRPCClient(port=ports["port"]) as many:
            with answering(server):
                before = await calls(many)
            await asyncio.to_thread(server.close)
            with DRPCServer(**ports) as another, answering(another):
                return before, await calls(many)

    with DRPCClient(port=server.port) as client:
        with answering(server):
            assert client.execute("double", "a") == "aa"
        stale = server.requests.add("late", "", lambda *_: None)
        before, after = asyncio.run(over_a_restart())
        assert before == after == [str(n) * 2 for n in range(5)]
        with DRPCServer(**ports) as another, answering(another):
            assert client.execute("double", "b") == "bb"
            assert another.requests.add("later", "", lambda *_: None) != stale


def test_what_is_too_long_for_thrift_is_refused_and_what_just_fits_is_not(server):
    text = "x" * (MAX_TEXT + 1)
    with answering(server, answer=lambda text: text), DRPCClient(port=server.port) as client:
        assert client.execute("double", text[1:]) == text[1:]
        with pytest.raises(DRPCExecutionException, match=f"{MAX_TEXT + 1} bytes") as caught:
            client.execute("double", text)
        assert caught.value.kind == "INTERNAL_ERROR"
        assert http(server, "/drpc/double", text.encode())[0] == 500
    with (
        answering(server, answer=lambda _: text),
        DRPCClient(port=server.port) as client,
        pytest.raises(DRPCExecutionException, match=f"the result of {MAX_TEXT + 1} bytes"),
    ):
        client.execute("double", "a")


def test_arguments_are_text(server):
    with DRPCClient(port=server.port) as client, pytest.raises(TypeError, match="arguments are text, not int"):
        client.execute("double", 5)
    with pytest.raises(TypeError, match="named by text, not NoneType"):
        asyncio.run(AsyncDRPCClient(port=server.port).execute(None, "a"))
    with LocalDRPC("inprocess") as drpc, pytest.raises(ValueError, match=r"which '\\ud800' has not"):
        drpc.execute("double", "a\ud800")


VALUES = st.recursive(
    st.one_of(st.text(max_size=5), st.integers(-(2**31), 2**31 - 1)),
    lambda inner: st.dictionaries(st.integers(0, 5), inner, max_size=4),
    max_leaves=6,
)
CALLS = st.sampled_from(["execute", "fetchRequest", "result", "failRequest", "failRequestV2", "", "other"])


@given(CALLS, st.dictionaries(st.integers(0, 4), VALUES, max_size=4), st.integers(0, 40), st.binary(max_size=3))
@settings(max_examples=2000 if SOAK else 150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_fields_of_any_kind_are_an_answer_or_the_end_of_the_connection(server, caplog, name, fields, at, bytes):
    frame = bytearray(encode(CALL, name, 7, fields))
    frame[4 + at : 4 + at + len(bytes)] = bytes[: max(0, len(frame) - 4 - at)]
    for port in (server.port, server.invocations_port):
        with socket.create_connection(("127.0.0.1", port), LIMIT) as wire:
            wire.sendall(frame)
            wire.shutdown(socket.SHUT_WR)
            while wire.recv(1 << 16):
                pass
    fetched(lambda _: True if not len(server.requests) else None, "nothing is left")
    assert not caplog.records  # asyncio's, of an exception that nobody expected


def test_a_method_of_any_name_is_answered_under_that_name(server):
    name = "\u00e9\u2603"
    for port in (server.port, server.invocations_port):
        with socket.create_connection(("127.0.0.1", port), LIMIT) as wire, wire.makefile("rb") as answer:
            wire.sendall(encode(CALL, name, 7, {}))
            message = decode(answer.read(frame_size(answer.read(4))))
        assert (message.kind, message.name, message.serial) == (EXCEPTION, name, 7)
        assert message.fields == {1: f"this port has no method {name!r}", 2: UNKNOWN_METHOD}


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\x05hello", b"\0\0\0\x01"])
def test_what_is_no_thrift_ends_its_connection_and_nothing_else(server, data):
    for port in (server.port, server.invocations_port):
        with socket.create_connection(("127.0.0.1", port), LIMIT) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            assert wire.recv(100) == b""
    with answering(server), DRPCClient(port=server.port) as client:
        assert client.execute("double", "a") == "aa"


def test_nobody_there_is_said_in_one_line():
    with DRPCServer(port=0, invocations_port=0, http_port=None) as server:
        port = server.port
    with pytest.raises(DRPCConnectionError, match=f"127.0.0.1:{port}: Connection refused; does a DRPC server run"):
        DRPCClient(port=port).execute("f", "a")
    with pytest.raises(DRPCConnectionError, match="does a DRPC server run"):
        asyncio.run(AsyncDRPCClient(port=port).execute("f", "a"))
    shown = multilang("drpc", "call", "f", "a", "--port", port)
    assert shown.returncode == 69
    assert "Traceback" not in shown.stderr


def test_no_result_in_time_is_a_status_of_its_own_by_whoevers_time():
    with DRPCServer(port=0, invocations_port=0, http_port=None, timeout_secs=1) as server:
        mine = multilang("drpc", "call", "f", "a", "--port", server.port, "--timeout", "0.2")
        its = multilang("drpc", "call", "f", "a", "--port", server.port)
    assert (mine.returncode, its.returncode) == (124, 124)
    assert mine.stderr == f"Error: no answer of 127.0.0.1:{server.port} within 0.2 seconds\n"
    assert its.stderr == "Error: SERVER_TIMEOUT: no result of 'f' within 1 seconds\n"


def test_a_port_that_is_taken_is_named(server):
    with pytest.raises(DRPCConnectionError, match=f"can't listen on 127.0.0.1:{server.port}"):
        DRPCServer(port=server.port, invocations_port=0, http_port=None).start()


def test_the_command_calls(server):
    with answering(server):
        shown = multilang("drpc", "call", "double", "ab", "--port", server.port)
        assert (shown.returncode, shown.stdout) == (0, "abab\n")
        shown = multilang("drpc", "call", "double", "fail", "--port", server.port)
        assert (shown.returncode, shown.stdout) == (1, "")
        assert "FAILED_REQUEST" in shown.stderr


def test_arguments_that_are_no_text_are_a_wrong_command_line():
    shown = multilang("drpc", "call", "f", os.fsdecode(b"\xff"))
    assert shown.returncode == 2
    assert "which '\\udcff' has not" in shown.stderr
    assert "Traceback" not in shown.stderr


PORTS = ("--port", 0, "--invocations-port", 0, "--no-http")


def test_serving_a_topology_that_cannot_start_ends_with_its_error():
    wrong = "drpc.invocations.thrift.transport=org.example.Own"
    shown = multilang("drpc", "serve", "examples/exclamation.py", *PORTS, "-c", wrong)
    assert shown.returncode == 3
    assert "drpc.invocations.thrift.transport is 'org.example.Own', which is not known here" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_wrong_setting_is_refused_before_the_server_starts():
    shown = multilang("drpc", "serve", "examples/exclamation.py", *PORTS, "-c", "drpc.invocations.port=abc")
    assert shown.returncode == 2
    assert "drpc.invocations.port is 'abc'; use a port number from 1 to 65535" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_serving_two_topologies_of_one_name_is_a_wrong_command_line():
    shown = multilang("drpc", "serve", "examples/exclamation.py", "examples/exclamation.py", *PORTS)
    assert shown.returncode == 2
    assert "a topology 'exclamation' runs already" in shown.stderr
    assert "Traceback" not in shown.stderr
