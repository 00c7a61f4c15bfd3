"""The decisions of a deployment, against a Nimbus of the tests' own: wherever it is broken off, the next one puts things in order."""

from __future__ import annotations

import io
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from multilang import BasicBolt, TopologyBuilder, Tuple
from multilang.shipping.deploy import Deployed, deploy
from multilang.shipping.deployment_record import keys, stored_former
from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import Shipment
from multilang.shipping.nimbus import Nimbus
from multilang.shipping.submit import submit
from multilang.shipping.wheels import WheelTarget
from multilang.testing import FixedTupleSpout
from tests.cli.command import COMMAND, LIMIT, multilang
from tests.shipping.nimbus_server import BROKEN, Gone, NimbusServer, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from multilang.shipping.storm_yaml import Address

NAME = "shop"


class Count(BasicBolt):
    def process(self, tup: Tuple) -> None: ...


@pytest.fixture
def server() -> NimbusServer:
    return NimbusServer()


@pytest.fixture
def address(server: NimbusServer) -> Iterator[Address]:
    with serving(server) as where:
        yield where


def shipment(version: str, **conf: Any) -> Shipment:
    """A topology of a version, which brings no files."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout(["n"], [[1]]))
    builder.set_bolt("count", Count).shuffle_grouping("numbers")
    topology = builder.build(NAME, conf={"test.version": version, **conf})
    commands = dict.fromkeys(topology.components, ("python3", "run_topology.py"))
    return Shipment(topology, WheelTarget.of(None, None), [], commands, [])  # type: ignore[arg-type]


def put(address: Address, version: str, *, said: list[str] | None = None, **how: Any) -> Deployed:
    conf = {BROKEN: "ValueError: it does not start"} if version.startswith("broken") else {}
    options: dict[str, Any] = {"drain": 0, "settled": 0, "timeout": 5, **how}
    with Nimbus([address], timeout=10) as nimbus:
        return deploy(
            nimbus,
            shipment(version, **conf),
            say=(lambda text: None) if said is None else said.append,
            **options,
        )


def forgotten(server: NimbusServer) -> bool:
    return not set(keys(NAME)) & set(server.blobs)


def test_the_first_is_submitted_and_the_second_takes_its_place(server: NimbusServer, address: Address) -> None:
    assert put(address, "one").former is None
    jar = next(iter(server.blobs.values()))
    done = put(address, "two")
    assert done.new.runs
    assert done.former is not None
    assert done.former.conf["test.version"] == "one"
    assert done.former.jar == jar
    assert server.versions() == [(NAME, "two", "ACTIVE")]
    assert forgotten(server)


def test_what_does_not_run_is_replaced_by_the_former_one_as_it_was(server: NimbusServer, address: Address) -> None:
    put(address, "one")
    before = server.topologies[NAME]["structure"]
    done = put(address, "broken")
    assert (done.new.runs, done.rolled_back) == (False, True)
    assert done.new.status.errors[0].message.startswith("ValueError: it does not start")
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    assert server.topologies[NAME]["structure"] == before
    assert forgotten(server)


def test_a_topology_keeps_being_inactive_unless_it_is_said_otherwise(server: NimbusServer, address: Address) -> None:
    put(address, "one")
    server.topologies[NAME]["status"] = "INACTIVE"
    put(address, "two")
    assert server.versions() == [(NAME, "two", "INACTIVE")]
    put(address, "three", active=True)
    assert server.versions() == [(NAME, "three", "ACTIVE")]


def test_green_takes_over_from_blue_and_blue_from_green(server: NimbusServer, address: Address) -> None:
    put(address, "one")
    server.calls.clear()
    assert put(address, "two", beside=True).name == "shop-green"
    assert server.versions() == [("shop-green", "two", "ACTIVE")]
    assert server.topologies["shop-green"]["conf"]["multilang.state.name"] == NAME
    steps = ("submitTopologyWithOpts", "deactivate", "killTopologyWithOpts", "activate")
    assert [each for each in server.calls if each in steps] == list(steps)
    with Nimbus([address]) as nimbus, pytest.raises(ShippingError, match=r"'shop' runs already on .*, as 'shop-green'"):
        submit(nimbus, shipment("three"))
    assert put(address, "three", beside=True).name == NAME
    assert server.versions() == [(NAME, "three", "ACTIVE")]
    put(address, "four", beside=True)
    assert put(address, "five").name == NAME
    assert server.versions() == [(NAME, "five", "ACTIVE")]
    assert forgotten(server)


def test_a_topology_that_only_has_such_a_name_is_another_one(server: NimbusServer, address: Address) -> None:
    with Nimbus([address]) as nimbus:
        other = shipment("other")
        submit(nimbus, replace(other, topology=other.topology.with_conf({}, "shop-green")))
    put(address, "one")
    assert server.versions() == [(NAME, "one", "ACTIVE"), ("shop-green", "other", "ACTIVE")]


def test_blue_comes_back_where_green_does_not_run(server: NimbusServer, address: Address) -> None:
    put(address, "one")
    done = put(address, "broken", beside=True)
    assert (done.new.runs, done.rolled_back) == (False, True)
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    assert forgotten(server)


class _Killed(BaseException):
    """The command was killed."""


@pytest.mark.parametrize("signal", [KeyboardInterrupt, _Killed])
@pytest.mark.parametrize("beside", [False, True], ids=["in place", "beside"])
@pytest.mark.parametrize("version", ["two", "broken"])
@pytest.mark.parametrize("following", ["three", "broken again"])
def test_wherever_it_is_broken_off_one_topology_runs_after_the_next(
    server: NimbusServer, address: Address, signal: type[BaseException], beside: bool, version: str, following: str
) -> None:
    """At each step that it tells of."""
    step = 0
    while True:
        server.topologies.clear()
        server.blobs.clear()
        put(address, "one")
        told: list[str] = []

        class Stop(list[str]):
            def append(self, text: str, step: int = step, told: list[str] = told) -> None:
                told.append(text)
                if len(told) == step + 1:
                    raise signal

        try:
            put(address, version, beside=beside, said=Stop())
        except signal:
            broken_off = True
        else:
            broken_off = False
        if not broken_off:
            break
        known = {"one", version}
        assert {each for _, each, _ in server.versions()} <= known, told
        put(address, following, beside=beside)
        ((_, runs, status),) = server.versions()
        assert status == "ACTIVE", told
        assert runs in ({"three"} if following == "three" else {"one", "two"}), told
        assert forgotten(server), told
        step += 1
    assert step >= 2


@pytest.mark.parametrize("beside", [False, True], ids=["in place", "beside"])
@pytest.mark.parametrize("version", ["two", "broken"])
@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_wherever_it_is_stopped_it_does_nothing_more_when_it_wakes_up_and_another_one_began(
    server: NimbusServer, address: Address, beside: bool, version: str, how: str
) -> None:
    """At each step that it tells of. The other one takes it for broken off, as one that is stopped beyond its limit is."""

    class Sleep(list[str]):
        def __init__(self, step: int, awake: Callable[[], None]) -> None:
            self.step, self.awake = step, awake

        def append(self, text: str) -> None:
            super().append(text)
            if len(self) == self.step + 1:
                self.awake()

    class Die(list[str]):
        def append(self, text: str) -> None:
            if "submitted" in text:
                raise _Killed

    def other() -> None:
        with suppress(_Killed):
            put(address, "three", said=Die() if how == "is killed" else None)

    refusals: list[str] = []
    for step in itertools.count():
        server.topologies.clear()
        server.blobs.clear()
        put(address, "one")
        told = Sleep(step, other)
        try:
            put(address, version, beside=beside, said=told)
        except ShippingError as error:
            refusals.append(str(error))
        if len(told) <= step:
            break
        if how == "is killed":
            put(address, "four")
        assert server.versions() == [(NAME, "three" if how == "ends" else "four", "ACTIVE")], told
        assert forgotten(server), told
    assert len(refusals) >= 2
    assert all("changes nothing more" in each for each in refusals), refusals


@pytest.mark.parametrize("beside", [False, True], ids=["in place", "beside"])
def test_a_nimbus_that_goes_away_at_any_call_leaves_what_the_next_one_understands(
    server: NimbusServer, address: Address, beside: bool
) -> None:
    """For the cluster, the command was killed there."""
    put(address, "one")
    server.calls.clear()
    put(address, "two", beside=beside)
    for number in range(1, len(server.calls)):
        server.left = None
        server.topologies.clear()
        server.blobs.clear()
        put(address, "one")
        server.left = number
        with pytest.raises(ShippingError):
            put(address, "two", beside=beside)
        server.left = None
        with suppress(ShippingError):  # both run and nobody noted which is the new one: that is for a person
            put(address, "broken", beside=beside)
            ((_, runs, status),) = server.versions()
            assert (runs, status) in (("one", "ACTIVE"), ("two", "ACTIVE")), server.calls[-1]
            assert forgotten(server)
            continue
        assert len(server.topologies) == 2


def test_the_former_one_comes_back_where_the_answer_to_the_submission_does_not_come(
    server: NimbusServer, address: Address
) -> None:
    """The new one may be there all the same, and the connection is of no use any more."""
    put(address, "one")
    submit_topology = server.submitTopologyWithOpts

    def submitted(*arguments: Any) -> None:
        submit_topology(*arguments)
        server.submitTopologyWithOpts = submit_topology  # type: ignore[method-assign]
        raise Gone

    server.submitTopologyWithOpts = submitted  # type: ignore[method-assign]
    with pytest.raises(ShippingError, match="submitTopologyWithOpts"):
        put(address, "two")
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    assert forgotten(server)


@pytest.mark.parametrize(
    ("beside", "step", "when", "said"),
    [
        (False, "deactivate", "after", "another topology 'shop' was submitted to .* meanwhile"),
        (False, "killTopologyWithOpts", "after", "another topology 'shop' was submitted to .* meanwhile"),
        (False, "submitTopologyWithOpts", "before", "another topology 'shop' was submitted to .* meanwhile"),
        (True, "submitTopologyWithOpts", "before", "a topology 'shop-green' runs already on .*; replace it"),
    ],
)
def test_a_topology_that_somebody_else_submits_meanwhile_is_left_alone(
    server: NimbusServer, address: Address, beside: bool, step: str, when: str, said: str
) -> None:
    """It has the name of the one that this deployment ends, or of the one that it would submit."""
    put(address, "one")
    theirs = {"id": "theirs-9-9", "status": "ACTIVE", "conf": {"test.version": "theirs"}, "structure": None}
    name = "shop-green" if step == "submitTopologyWithOpts" and beside else NAME
    real = getattr(server, step)

    def called(*arguments: Any) -> None:
        setattr(server, step, real)
        if when == "before":
            server.topologies[name] = {**theirs, "name": name}
        real(*arguments)
        if when == "after":
            server.topologies[name] = {**theirs, "name": name}

    setattr(server, step, called)
    with pytest.raises(ShippingError, match=said):
        put(address, "two", beside=beside)
    assert (name, "theirs", "ACTIVE") in server.versions()
    assert len(server.versions()) == (2 if beside else 1)
    assert forgotten(server)


def test_a_submission_that_comes_late_says_what_to_do(server: NimbusServer, address: Address) -> None:
    """Another one of its name was submitted while its jar was uploaded."""
    real = server.finishFileUpload

    def called(location: str) -> None:
        real(location)
        server.topologies[NAME] = {"id": "theirs-9-9", "name": NAME, "status": "ACTIVE", "conf": {}, "structure": None}

    server.finishFileUpload = called  # type: ignore[method-assign]
    with Nimbus([address]) as nimbus, pytest.raises(ShippingError, match=r"'shop' runs already on .*; replace it"):
        submit(nimbus, shipment("two"))


def test_a_deployment_that_is_under_way_is_left_alone(server: NimbusServer, address: Address) -> None:
    put(address, "one")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    facts = {"former": "x", "active": True, "new": None, "host": socket.gethostname(), "pid": other.pid}
    facts |= {"began": time.time(), "until": time.time() + 100}
    server.blobs[keys(NAME)[0]] = json.dumps(facts).encode()
    try:
        with pytest.raises(
            ShippingError, match=f"that process {other.pid} on .* began . s ago is under way: wait until"
        ):
            put(address, "two")
    finally:
        other.communicate(b"\n")
    put(address, "two")
    assert server.versions() == [(NAME, "two", "ACTIVE")]
    server.blobs[keys(NAME)[0]] = json.dumps({**facts, "host": "elsewhere", "pid": os.getpid()}).encode()
    with pytest.raises(ShippingError, match="on elsewhere began"):
        put(address, "three")
    server.blobs[keys(NAME)[0]] = json.dumps({**facts, "processes": "another container's"}).encode()
    with pytest.raises(ShippingError, match="is under way"):
        put(address, "three")
    server.blobs[keys(NAME)[0]] = b"what is this"
    with pytest.raises(
        ShippingError, match=r"missing or not what multilang writes: .*multilang blob rm multilang-deploy-shop\.json"
    ):
        put(address, "three")
    assert server.versions() == [(NAME, "two", "ACTIVE")]


def test_of_two_deployments_that_begin_at_once_one_goes_on(address: Address, server: NimbusServer) -> None:
    """Each has looked whether another is under way before the first of them wrote that it is."""
    put(address, "one")
    facts = {
        "former": server.topologies[NAME]["id"],
        "active": True,
        "new": None,
        "host": "elsewhere",
        "pid": os.getpid(),
    }
    facts |= {"began": time.time(), "until": time.time() + 100}
    called = server.called

    def other_begins(name: str) -> None:
        called(name)
        if name == "getUserTopology":  # when the former one is read, and before it is stored
            server.blobs[keys(NAME)[0]] = json.dumps(facts).encode()

    server.called = other_begins  # type: ignore[method-assign]
    with pytest.raises(ShippingError, match=r"on elsewhere began . s ago is under way: wait until"):
        put(address, "two")
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    assert json.loads(server.blobs[keys(NAME)[0]]) == facts


def test_a_job_that_is_broken_off_puts_the_former_one_back(
    server: NimbusServer, address: Address, tmp_path: Path
) -> None:
    """SIGTERM comes while Nimbus answers; that answer is none to what is asked then."""
    put(address, "one")
    (tmp_path / "shop.py").write_text(
        "from multilang import TopologyBuilder\n"
        "from multilang.testing import FixedTupleSpout\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('numbers', FixedTupleSpout(['n'], [[1]]))\n"
        "topology = builder.build('shop', conf={'test.version': 'two'})\n"
    )
    submit_topology, called, goes_on = server.submitTopologyWithOpts, server.called, threading.Event()

    def submitted(*arguments: Any) -> None:
        server.submitTopologyWithOpts = submit_topology  # type: ignore[method-assign]
        submit_topology(*arguments)
        server.called = asked  # type: ignore[method-assign]
        command.terminate()
        goes_on.wait(LIMIT)

    def asked(name: str) -> None:
        called(name)
        goes_on.set()

    server.submitTopologyWithOpts = submitted  # type: ignore[method-assign]
    line = [COMMAND, "deploy", "shop.py", "--nimbus", str(address), "--drain", "0", "--settled", "0"]
    with subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as command:
        _, said = command.communicate(timeout=LIMIT)
    assert (command.returncode, "the former one was submitted again" in said) == (143, True), said
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    assert forgotten(server)


def test_the_command_line_tells_how_it_ended(server: NimbusServer, address: Address, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from multilang import TopologyBuilder\n"
        "from multilang.testing import FixedTupleSpout\n"
        "builder = TopologyBuilder()\n"
        "builder.set_spout('numbers', FixedTupleSpout(['n'], [[1]]))\n"
        "topology = builder.build('shop', conf={'test.version': 'one', 'topology.message.timeout.secs': 1})\n"
    )

    def run(command: str, *options: str) -> subprocess.CompletedProcess[str]:
        return multilang(command, "shop.py", "--nimbus", address, *options, cwd=tmp_path)

    first = run("deploy", "--settled", "0")
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "it runs: 1 task of 1 component in 1 worker")
    again = run("submit", "--replace", "-c", "test.broken=ValueError: it does not start")
    assert again.returncode == 4
    assert again.stderr.endswith("ValueError: it does not start\nthe former one runs again\n")
    assert server.versions() == [(NAME, "one", "ACTIVE")]
    green = run("deploy", "--blue-green", "--drain", "0", "--settled", "0", "-c", "test.version=two")
    assert green.returncode == 0, green.stderr
    assert "its name on the cluster is 'shop-green' until the next deployment" in green.stdout
    refused = run("submit", "--replace", "--wait", "0")
    assert (refused.returncode, "leave --wait 0 out" in refused.stderr) == (2, True)
    assert server.versions() == [("shop-green", "two", "ACTIVE")]


@pytest.mark.parametrize("conf", ["[" * 100_000, "9" * 5000, "[]", "null", "{"])
@pytest.mark.parametrize("which", ["getNimbusConf", "getTopologyConf"])
def test_a_nimbus_whose_conf_is_no_json_is_told_in_a_sentence(
    server: NimbusServer, address: Address, monkeypatch: pytest.MonkeyPatch, conf: str, which: str
) -> None:
    put(address, "one")
    monkeypatch.setattr(server, which, lambda *_: conf)
    with pytest.raises(ShippingError, match=r"is no Nimbus: what it gives as .* is no JSON object"):
        put(address, "two")


def facts_of(**changed: Any) -> bytes:
    facts = {"former": "x", "active": True, "new": None, "host": "a", "pid": 1, "began": 1.0, "until": 9e99}
    return json.dumps({**facts, **changed}).encode()


@pytest.mark.parametrize(
    "facts",
    [b"[" * 100_000, facts_of(pid="1"), facts_of(pid=10**30, host=socket.gethostname()), facts_of(until="later")],
)
def test_facts_that_somebody_else_stored_are_told_in_a_sentence(
    server: NimbusServer, address: Address, facts: bytes
) -> None:
    put(address, "one")
    server.blobs[keys(NAME)[0]] = facts
    with pytest.raises(ShippingError, match="missing or not what multilang writes"):
        put(address, "two")


@pytest.mark.parametrize("part", ["jar", "structure", "empty structs"])
def test_a_former_topology_that_somebody_else_stored_takes_no_more_memory_than_its_blob(
    server: NimbusServer, address: Address, part: str
) -> None:
    """A blob of half a megabyte took a gigabyte."""
    put(address, "one")
    server.topologies.clear()
    server.blobs[keys(NAME)[0]] = facts_of(until=1.0)
    packed = zipfile.ZIP_DEFLATED if part == "jar" else zipfile.ZIP_STORED
    structure = {
        "jar": b"\0",
        "structure": b"\x0c\0\x09" * 100_000,
        "empty structs": b"\x0f\0\x09\x0c\0\x0f\0\0" + bytes(1_000_001),
    }[part]
    with zipfile.ZipFile(out := io.BytesIO(), "w", packed) as archive:
        about = {"name": NAME, "id": "x", "conf": {}, "active": True, "drain": 1}
        archive.writestr("about.json", json.dumps(about))
        archive.writestr("former.jar", bytes(1 << 26) if part == "jar" else b"")
        archive.writestr("structure.thrift", structure)
    server.blobs[keys(NAME)[1]] = out.getvalue()
    with Nimbus([address]) as nimbus:
        tracemalloc.start()
        try:
            with pytest.raises(ShippingError, match="missing or not what multilang writes"):
                stored_former(nimbus, NAME)
            assert tracemalloc.get_traced_memory()[1] < 30_000_000
        finally:
            tracemalloc.stop()
