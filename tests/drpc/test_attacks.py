"""Whoever can reach the server's ports, and whoever has another account of the machine, attacks it."""

import asyncio
import contextlib
import os
import resource
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from multilang.drpc import (
    AsyncDRPCClient,
    DRPCClient,
    DRPCConnectionError,
    DRPCExecutionException,
    DRPCInvocationsClient,
    DRPCServer,
    thrift,
)
from multilang.drpc.requests import MAX_NAME, Requests
from multilang.drpc.thrift import MAX_FRAME, decode
from tests.cli.command import ROOT
from tests.drpc.test_server import LIMIT, answering, fetched
from tests.patience import PACE

INT = struct.Struct(">i")


@pytest.fixture
def server():
    with DRPCServer(port=0, invocations_port=0, http_port=0, timeout_secs=LIMIT) as server:
        yield server


def connect(port):
    return socket.create_connection(("127.0.0.1", port), LIMIT)


def ends(wire):
    """Return whether the server ends the connection, and does so in time."""
    wire.settimeout(LIMIT)
    try:
        while wire.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_an_id_tells_nothing_of_the_next(server):
    """An attacker asked for a request of his own, and gave the result of the next one."""
    results = []

    def ask():
        with DRPCClient(port=server.port) as client:
            results.append(client.execute("victim", "a"))

    ids = [server.requests.add("mine", "", lambda *_: None) for _ in range(20)]
    asking = threading.Thread(target=ask)
    asking.start()
    victim, _ = fetched(server.requests.fetch, "victim")
    with DRPCInvocationsClient(port=server.invocations_port) as attacker:
        for id in ids:
            for radix in (10, 16):
                with contextlib.suppress(ValueError):
                    for step in range(-40, 41):
                        attacker.result(format(int(id, radix) + step, "d" if radix == 10 else "x"), "forged")
    server.requests.result(victim, "true")
    asking.join(LIMIT)
    assert results == ["true"]
    assert len({victim, *ids}) == 21


def hostile(element, count, kind=15):
    """A frame of a call with a list of what nobody asked for."""
    body = INT.pack(-0x7FFEFFFF) + INT.pack(7) + b"execute" + INT.pack(1)
    return body + bytes([kind]) + b"\x00\x09" + bytes([element]) + INT.pack(count)


FRAMES = {
    "empty structs": hostile(12, 15_000_000) + bytes(15_000_000),
    "empty texts": hostile(11, 4_000_000) + bytes(16_000_000),
    "lists of lists": hostile(15, 3_000_000) + (b"\x02" + INT.pack(0)) * 3_000_000,
    "fields": hostile(12, 1) + b"\x02\x00\x01\x01" * 4_000_000,
    "numbers": hostile(10, 2_000_000) + bytes(16_000_000),
}


@pytest.mark.parametrize("name", FRAMES)
def test_one_frame_does_not_stall_everybody(name):
    frame = FRAMES[name][:MAX_FRAME]
    begin = time.process_time()
    with contextlib.suppress(DRPCConnectionError):
        decode(frame)
    assert time.process_time() - begin < 0.5 * PACE  # it took 3 to 11 seconds


def test_a_frame_that_does_not_end_is_given_up(caplog):
    with DRPCServer(port=0, invocations_port=0, frame_secs=0.3, max_bytes=50_000_000) as server:
        for port in (server.port, server.invocations_port):
            with connect(port) as wire:
                wire.sendall(INT.pack(MAX_FRAME) + b"x")
                assert ends(wire)
        with answering(server), DRPCClient(port=server.port) as client:
            assert client.execute("double", "a") == "aa"
    assert not caplog.records


def test_an_answer_that_nobody_reads_is_given_up():
    with (
        DRPCServer(port=0, invocations_port=0, frame_secs=0.3 * PACE) as server,
        answering(server, answer=lambda _: "x" * 16_000_000),
        connect(server.port) as wire,
    ):
        call = b"".join([INT.pack(-0x7FFEFFFF), INT.pack(7), b"execute", INT.pack(1)])
        call += b"\x0b\x00\x01" + INT.pack(6) + b"double" + b"\x0b\x00\x02" + INT.pack(1) + b"a" + b"\x00"
        wire.sendall(INT.pack(len(call)) + call)
        fetched(lambda _: server._bounds.held > 1_000_000 or None, "")
        fetched(lambda _: server._bounds.held == 0 or None, "")


def test_the_bytes_of_all_frames_are_bounded():
    with DRPCServer(port=0, invocations_port=0, max_bytes=40_000_000) as server:
        wires = [connect(server.port) for _ in range(3)]
        try:
            for wire in wires[:2]:
                wire.sendall(INT.pack(MAX_FRAME))
            fetched(lambda _: server._bounds.held == 2 * MAX_FRAME or None, "")
            wires[2].sendall(INT.pack(MAX_FRAME))
            assert ends(wires[2])
        finally:
            for wire in wires:
                wire.close()
        fetched(lambda _: server._bounds.held == 0 or None, "")


def test_the_bytes_of_all_requests_are_bounded():
    requests = Requests(max_bytes=100_000)
    ids = []
    for number in range(1000):
        with contextlib.suppress(DRPCExecutionException):
            ids.append(requests.add(f"f{number}", "x" * 1000, lambda *_: None))
    assert 40 <= len(ids) <= 100
    with pytest.raises(DRPCExecutionException, match="of 100000 bytes already; ask again later"):
        requests.add("g", "x" * 1000, lambda *_: None)
    assert len(requests.waiting) == len(ids)
    for id in ids:
        requests.forget(id)
    requests.add("g", "x" * 90_000, lambda *_: None)
    for number in range(20_000):
        requests.fetch(f"nobody asked {number}")
    assert len(requests.fetched_for) <= 20_000


def test_the_names_of_functions_that_are_asked_for_take_little():
    """Ten thousand of them were kept, each as long as a frame: 160 GB."""
    requests = Requests()
    for number in range(1000):
        for character in ("x", "\U0001f600"):
            requests.fetch(f"{number}{character * 1000}")
    for long in ("x" * (MAX_NAME + 1), "\U0001f600" * (MAX_NAME // 4 + 1)):
        requests.fetch(long)
        assert long not in requests.fetched_for
        with pytest.raises(DRPCExecutionException, match="name has at most 4096 bytes"):
            requests.add(long, "", lambda *_: None)
    assert sum(map(sys.getsizeof, requests.fetched_for)) <= 1_000_000


def resident(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


SIZE = 1_500_000  # characters, which take four bytes each in memory beside one that is no ASCII
BOUNDED = """
import sys
from multilang.drpc import DRPCServer
with DRPCServer(port=0, invocations_port=0, max_bytes=10_000_000) as server:
    print(server.port, server.invocations_port, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("what", ["function", "arguments", "more", "other method", "fetched", "result", "cause"])
def test_what_a_stranger_said_is_not_kept(what):
    """The last message of each connection was: 1.3 GB by twenty of them."""
    text = "x" * SIZE + "\U0001f600"
    name, words = {
        "function": ("execute", [text, ""]),
        "arguments": ("execute", ["f", text]),
        "more": ("execute", ["f", "", text]),
        "other method": (text, []),
        "fetched": ("fetchRequest", [text]),
        "result": ("result", ["id", text]),
        "cause": ("failRequest", [text]),
    }[what]
    call = thrift.encode(thrift.CALL, name, 1, dict(enumerate(words, 1)))
    with subprocess.Popen(
        [sys.executable, "-c", BOUNDED], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        ports = dict(zip(("client", "topology"), map(int, child.stdout.readline().split()), strict=True))
        port = ports["client" if what in ("function", "arguments", "more", "other method") else "topology"]
        before = resident(child)
        with contextlib.ExitStack() as stack:
            for _ in range(40):
                wire = stack.enter_context(connect(port))
                wire.sendall(call)
                if what not in ("arguments", "more"):  # those wait to be fetched, and are counted
                    assert wire.recv(1 << 10)
            assert resident(child) - before < 60_000_000
        child.stdin.close()


def test_a_request_counts_with_the_memory_that_its_texts_take():
    requests = Requests(max_bytes=100_000)
    requests.add("f", "x" * 30_000, lambda *_: None)
    requests.forget(next(iter(requests._open)))
    with pytest.raises(DRPCExecutionException, match="bytes already; ask again later"):
        requests.add("f", "x" * 30_000 + "\U0001f600", lambda *_: None)
    assert requests._bytes == 0


def talking(server):
    """A connection to the port for clients that has said something."""
    wire = connect(server.port)
    call = b"".join([INT.pack(-0x7FFEFFFF), INT.pack(2), b"no", INT.pack(1), b"\x00"])
    wire.sendall(INT.pack(len(call)) + call)
    assert wire.recv(1 << 16), "it has no such method"
    return wire


def test_connections_that_wait_for_an_answer_are_bounded_and_the_one_too_many_is_reported(caplog):
    with DRPCServer(port=0, invocations_port=0, max_connections=5, timeout_secs=LIMIT) as server:
        calls = [connect(server.port) for _ in range(5)]
        for wire in calls:
            wire.sendall(thrift.encode(thrift.CALL, "execute", 1, thrift.request("double", "a")))
        fetched(lambda _: len(server.requests) == 5 or None, "")
        for _ in range(3):
            with connect(server.port) as one_more:
                assert ends(one_more)
        with DRPCInvocationsClient(port=server.invocations_port) as topology:
            assert topology.fetch("f") is None
        with answering(server):
            for wire in calls:
                assert wire.recv(1 << 10)
                wire.close()
    assert [each.getMessage() for each in caplog.records] == [
        "the DRPC server on 127.0.0.1 can't accept connections for now: for each of 5 something is done already"
    ]


@pytest.mark.parametrize("port", ["port", "invocations_port", "http_port"])
def test_whoever_has_called_once_and_rests_keeps_out_nobody(port):
    """One frame made a connection known, for ever: as many as may be locked everybody out."""
    with DRPCServer(port=0, invocations_port=0, http_port=0, max_connections=5, timeout_secs=LIMIT) as server:
        call = thrift.encode(thrift.CALL, "no", 1, {})
        if port == "http_port":
            call = b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\n" + HEAD + b"\r\n"  # whose body does not come
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                wire = stack.enter_context(connect(getattr(server, port)))
                wire.sendall(call)
                if port != "http_port":
                    assert wire.recv(1 << 10), "it has no such method"
            with answering(server), DRPCClient(port=server.port, timeout=LIMIT) as client:
                assert client.execute("double", "a") == "aa"
                with connect(server.http_port) as http:
                    http.sendall(b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\n" + HEAD + b"\r\na")
                    assert http.recv(1 << 16).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("said", [b"", b"\x00", INT.pack(MAX_FRAME) + b"x"])
def test_whoever_only_connects_keeps_out_nobody(said):
    """A thousand connections that asked for nothing were all that there could be."""
    with DRPCServer(port=0, invocations_port=0, http_port=0, max_connections=5, timeout_secs=LIMIT) as server:
        known = talking(server)
        ports = (server.port, server.invocations_port, server.http_port)
        idle = [connect(port) for port in ports for _ in range(20)]
        for wire in idle:
            with contextlib.suppress(ConnectionError):
                wire.sendall(said)
        with (
            answering(server),
            DRPCClient(port=server.port, timeout=LIMIT) as client,
            connect(server.http_port) as http,
        ):
            assert client.execute("double", "a") == "aa"
            http.sendall(b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\n" + HEAD + b"\r\na")
            assert http.recv(1 << 16).startswith(b"HTTP/1.1 200")
        known.settimeout(0)
        with pytest.raises(BlockingIOError):
            known.recv(1)
        for wire in (known, *idle):
            wire.close()


@pytest.mark.parametrize("said", [b"\x00", b"\x00\x00\x00"])
def test_the_length_of_a_frame_that_does_not_end_is_given_up(said):
    with DRPCServer(port=0, invocations_port=0, frame_secs=0.3) as server, talking(server) as known:
        for port in (server.port, server.invocations_port):
            with connect(port) as wire:
                wire.sendall(said)
                assert ends(wire)
        known.settimeout(0)
        with pytest.raises(BlockingIOError):  # between two frames there is time
            known.recv(1)


def asked(ask):
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return ask()
        except DRPCConnectionError:  # the places of those that left are not free yet
            assert time.monotonic() < deadline


EXHAUSTED = """
import logging, resource, socket, sys, time
logging.basicConfig(stream=sys.stderr)
from multilang.drpc import DRPCServer
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
with DRPCServer(port=0, invocations_port=0) as server:
    print(server.port, server.invocations_port, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def exhausted():
    """A server in a process with few descriptors, with its two ports, which ends well and says little by the end."""
    with subprocess.Popen(
        [sys.executable, "-c", EXHAUSTED],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        yield child, *map(int, child.stdout.readline().split())
        child.stdin.close()
        said = child.stderr.read().decode()
        assert child.wait(LIMIT) == 0
    assert said.count("\n") <= 10


def test_the_end_of_descriptors_is_said_once_and_over_when_there_are_some_again():
    """It was said by 23,512 tracebacks."""
    with exhausted() as (child, port, topologies):
        call = thrift.encode(thrift.CALL, "execute", 1, thrift.request("f", "a"))
        wires = []
        for _ in range(40):
            wires.append(connect(port))
            wires[-1].sendall(call)
        wires += [connect(port) for _ in range(160)]
        first = child.stderr.readline().decode()
        for wire in wires:
            wire.close()
        with DRPCInvocationsClient(port=topologies, timeout=LIMIT) as topology:
            while asked(lambda: topology.fetch("f")) is not None:
                pass  # the call of a client whose end the server has not seen yet
    assert "can't accept connections for now: [Errno 24] Too many open files" in first


def test_who_holds_all_descriptors_and_says_nothing_keeps_nobody_out():
    """A process may have fewer descriptors than connections, so that the bound on those was never reached."""
    with exhausted() as (_, port, topologies):
        wires = [connect(each) for _ in range(100) for each in (port, topologies)]
        with DRPCInvocationsClient(port=topologies, timeout=LIMIT) as topology:
            assert asked(lambda: topology.fetch("f")) is None
    for wire in wires:
        wire.close()


HEAD = b"Content-Length: 1\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /drpc/double/a HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"GET /drpc/double HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"HEAD /drpc/double HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"POST /drpc/double HTTP/1.1\r\nHost: evil.example\r\n" + HEAD, 421),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost.evil.example:3774\r\n" + HEAD, 421),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost@evil.example\r\n" + HEAD, 421),
        (b"POST /drpc/double HTTP/1.1\r\n" + HEAD, 421),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + HEAD, 421),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:99\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: http://[localhost\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: http://]\xe2\x84\x80\xff\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nOrigin: \r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-site\r\n" + HEAD, 403),
        (b"POST /drpc/double HTTP/1.1\r\nHost: 127.0.0.1:3774\r\n" + HEAD, 200),
        (b"POST /drpc/double HTTP/1.1\r\nHost: [::1]:3774\r\nSec-Fetch-Site: same-origin\r\n" + HEAD, 200),
        (b"POST /drpc/double HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n" + HEAD, 200),
    ],
)
def test_no_page_of_another_site_calls_a_function(server, request_, status):
    calls = []
    with answering(server, answer=lambda text: calls.append(text) or text), connect(server.http_port) as wire:
        wire.sendall(request_ + b"\r\n" + b"x" * request_.endswith(HEAD))
        assert int(wire.recv(1 << 16).split()[1]) == status
    assert calls == ["x"] * (status == 200)


def test_http_is_served_only_where_it_is_wanted():
    with DRPCServer(port=0, invocations_port=0) as server:
        assert server.http_port is None


def test_a_server_on_unix_sockets_serves_its_user_and_leaves_no_file(tmp_path):
    folder = tmp_path / "drpc"
    with DRPCServer(f"unix:{folder}") as server, pytest.raises(DRPCConnectionError, match="can't listen"):
        DRPCServer(f"unix:{folder}").start()
    assert list(folder.iterdir()) == []
    with DRPCServer(f"unix:{folder}") as server:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        place = server.conf["drpc.servers"][0]
        with DRPCInvocationsClient(place) as topology, DRPCClient(place, timeout=LIMIT) as client:
            thread = threading.Thread(target=lambda: topology.result(fetched(topology.fetch, "f")[0], "b"))
            thread.start()
            assert client.execute("f", "a") == "b"
            thread.join()
    with pytest.raises(DRPCConnectionError, match="does a DRPC server run there"):
        DRPCClient(f"unix:{folder}").execute("f", "a")


def test_a_folder_that_others_may_enter_protects_nothing(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(DRPCConnectionError, match="no folder of this user's alone"):
        DRPCServer(f"unix:{tmp_path}").start()
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(DRPCConnectionError, match="no folder of this user's alone"):
        DRPCServer(f"unix:{link}").start()


@pytest.mark.parametrize("squatted", ["open to others", "a link", "another's"])
def test_no_client_asks_who_listens_in_a_folder_of_others(tmp_path, squatted):
    """Whoever made the folder before its user did read the arguments, and forged the results."""
    real, place = tmp_path / "real", tmp_path / "drpc"
    real.mkdir(mode=0o700)
    if squatted == "a link":
        place.symlink_to(real)
    else:
        real.rename(place)
        place.chmod(0o777 if squatted == "open to others" else 0o700)
        if squatted == "another's":
            if os.geteuid() != 0:
                pytest.skip("only root can be somebody else")
            os.chown(place, 65534, 65534)
    host = f"unix:{place}"
    with socket.socket(socket.AF_UNIX) as forger:
        forger.bind(str(place / "3772"))
        forger.listen()
        forger.settimeout(0)
        with pytest.raises(DRPCConnectionError, match="no folder of this user's alone"):
            DRPCClient(host, timeout=LIMIT).execute("f", "secret")
        with pytest.raises(DRPCConnectionError, match="no folder of this user's alone"):
            asyncio.run(AsyncDRPCClient(host, timeout=LIMIT).execute("f", "secret"))
        with pytest.raises(BlockingIOError):
            forger.accept()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_account_reaches_no_unix_socket(tmp_path):
    for each in [tmp_path, *tmp_path.parents]:  # pytest's own folders are closed; only the socket's own may count
        with contextlib.suppress(PermissionError):
            each.chmod(each.stat().st_mode | 0o055)
    folder = tmp_path / "drpc"
    with DRPCServer(f"unix:{folder}"):
        code = (
            "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "wire = socket.socket(socket.AF_UNIX)\n"
            "try: wire.connect(sys.argv[1])\n"
            "except PermissionError: print('refused')\n"
        )
        for port in (3772, 3773):
            path = str(folder / str(port))
            shown = subprocess.run(
                [sys.executable, "-S", "-c", code, path], capture_output=True, text=True, timeout=LIMIT
            )
            assert shown.stdout == "refused\n", shown.stderr


def reply(result):
    """A frame of an answer to the first call, with this in the place of its result."""
    body = INT.pack(-0x7FFEFFFE) + INT.pack(7) + b"execute" + INT.pack(1) + result
    return INT.pack(len(body)) + body


NESTED = b"\x0c\x00\x00"  # a struct in a struct
ANSWERS = {  # made by their test, as they are large
    "huge": lambda: INT.pack(2**31 - 1) + b"x",
    "negative": lambda: INT.pack(-5) + b"x",
    "just too large": lambda: INT.pack(MAX_FRAME + 1),
    "endlessly nested": lambda: reply(NESTED * 5_000_000),
    "nested and whole": lambda: reply(NESTED * 1000 + bytes(1001)),
    "a text longer than the frame": lambda: reply(b"\x0b\x00\x00" + INT.pack(2**31 - 1) + b"x"),
    "a list longer than the frame": lambda: reply(b"\x0f\x00\x00\x0c" + INT.pack(2**31 - 1) + bytes(10)),
    "many empty values": lambda: reply(b"\x0f\x00\x00\x0c" + INT.pack(15_000_000) + bytes(15_000_000)),
    "no text at all": lambda: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@contextlib.contextmanager
def malicious(answer):
    """A server that takes a call and answers this."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            for _ in range(2):
                wire, _ = listener.accept()
                with wire, contextlib.suppress(ConnectionError):
                    wire.recv(1 << 16)
                    wire.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_malicious_servers_answer_is_refused_by_bound(name):
    async def ask(port):
        async with AsyncDRPCClient(port=port, timeout=LIMIT) as client:
            await client.execute("f", "a")

    with malicious(ANSWERS[name]()) as port:
        begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(DRPCConnectionError), DRPCClient(port=port, timeout=LIMIT) as client:
            client.execute("f", "a")
        with pytest.raises(DRPCConnectionError):
            asyncio.run(ask(port))
        assert time.process_time() - begin < 2.0 * PACE
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
