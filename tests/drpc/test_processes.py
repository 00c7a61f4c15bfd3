"""DRPC topologies in processes of their own, and what is killed there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from multilang.drpc import DRPCClient, DRPCConnectionError, DRPCExecutionException, LocalDRPC
from multilang.loading.modules import load_module
from multilang.local import LocalCluster
from multilang.topology import load_topology
from tests.cli.command import COMMAND, ROOT
from tests.drpc import dying, failing, pipelines
from tests.drpc.pipelines import answer, drawn, pipeline, requests
from tests.patience import patient
from tests.soak import SOAK

REACH = Path(ROOT) / "examples" / "reach.py"
EXCLAMATION = Path(ROOT) / "examples" / "exclamation.py"
LIMIT = patient(100.0)


@pytest.mark.parametrize("mode", ["process", "inprocess", "simulated"])
def test_the_examples_answer_as_plain_python_does(mode):
    reach = load_module(str(REACH)).reach
    urls = [f"foo.com/blog/{number}" for number in range(12)]
    with LocalDRPC(mode, timeout_secs=LIMIT) as drpc:
        drpc.submit(load_topology(str(REACH)))
        drpc.submit(load_topology(str(EXCLAMATION)))
        futures = [drpc.start("reach", url) for url in urls]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [str(reach(url)) for url in urls]
        assert drpc.execute("exclamation", "héllo") == "héllo!"
        assert len(drpc.requests) == 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4) if SOAK else [2])
def test_requests_under_way_at_once_in_processes_are_not_mixed_up(seed):
    rng = Random(seed)
    steps, last = drawn(rng) if SOAK else drawn(rng, (2, 2), (1, 3))
    asked = requests(rng, 10_000 if SOAK else 100, len(steps), 40)
    limit = 1800 if SOAK else LIMIT
    with LocalDRPC("process", timeout_secs=limit) as drpc:
        drpc.submit(pipeline(steps, last), conf={"topology.message.timeout.secs": limit})
        futures = [drpc.start("pipe", text) for text in asked]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [answer(text) for text in asked]


@pytest.mark.soak
def test_a_killed_bolt_is_an_error_at_once_and_later_requests_answer():
    rng = Random(3)
    asked = requests(Random(4), 40, 2, 40)
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(pipeline([(0, 2, "shuffle"), (2, 2, "fields")]), conf={"topology.message.timeout.secs": 1000})
        assert drpc.execute("pipe", asked[0]) == answer(asked[0])
        for _ in range(30 if SOAK else 3):
            futures = [drpc.start("pipe", text) for text in asked]
            victims = [task.pid for task in run.tasks if task.component.startswith("bolt") and task.pid]
            os.kill(rng.choice(victims), signal.SIGKILL)
            drpc.wait(futures)
            for text, future in zip(asked, futures, strict=True):
                problem = future.exception()
                if problem is None:
                    assert future.result() == answer(text)
                else:
                    assert isinstance(problem, DRPCExecutionException)
                    assert problem.kind == "FAILED_REQUEST"
            deadline = time.monotonic() + LIMIT
            while not all(task.alive for task in run.tasks):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert drpc.execute("pipe", asked[1]) == answer(asked[1])
        assert len(drpc.requests) == 0


def test_a_request_whose_spout_and_bolt_are_killed_fails_soon(tmp_path):
    started = tmp_path / "started"
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        drpc.server.orphan_secs = 0.5
        run = drpc.submit(pipelines.stuck, conf={"topology.message.timeout.secs": 1000, "test.started": str(started)})
        future = drpc.start("stuck", "now")
        deadline = time.monotonic() + LIMIT
        while not started.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for task in run.tasks:
            if task.component in ("spout", "bolt0"):
                os.kill(task.pid, signal.SIGKILL)
        drpc.wait([future])
        assert future.exception().kind == "FAILED_REQUEST"
        assert "'stuck' failed: the spout that fetched the request is gone" in str(future.exception())
        assert drpc.execute("stuck", "not now") == "not now"


def ask(drpc, function, texts, futures):
    """Ask for one after the other, as one client does."""
    for text in texts:
        futures[text] = drpc.start(function, text)
        drpc.wait([futures[text]])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10) if SOAK else [1])
@pytest.mark.parametrize(("topology", "places"), [(dying.alone, ["plain"]), (dying.dying, dying.PLACES)])
def test_every_request_ends_at_once_however_tasks_end_beside_it(topology, places, seed):
    rng = Random(seed)
    ways = ["good"] * 12 + ["raise", "leave", "exit", "kill"]
    asked = [
        [f"{rng.choice(ways)} {rng.choice(places)} {client}.{n}" for n in range(100 if SOAK else 16)]
        for client in range(4)
    ]
    futures: dict[str, Any] = {}
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(topology, conf={"topology.message.timeout.secs": 3600})
        clients = [Thread(target=ask, args=(drpc, topology.name, texts, futures)) for texts in asked]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert sorted(futures) == sorted(text for texts in asked for text in texts)
        for text, future in futures.items():
            problem = future.exception()
            if problem is None:
                assert text.startswith("good")
                assert future.result() == (text if topology is dying.alone else dying.answer(text))
            else:
                assert problem.kind == "FAILED_REQUEST", problem
                assert f"{topology.name!r} failed" in str(problem)
        assert any(future.exception() is None for future in futures.values())
        assert sum(task.restarts for task in run.tasks) > 3
        assert len(drpc.requests) == 0


@pytest.mark.soak
def test_no_request_hangs_when_spouts_are_killed():
    rng = Random(5)
    asked = requests(Random(6), 2000 if SOAK else 200, 1, 20)
    conf = {"topology.message.timeout.secs": 1000, "topology.max.spout.pending": 50}
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        drpc.server.orphan_secs = 1.0
        run = drpc.submit(pipeline([(0, 1, "shuffle")]), conf=conf)
        futures = [drpc.start("pipe", text) for text in asked]
        for _ in range(25 if SOAK else 3):
            enough = min(sum(each.done() for each in futures) + rng.randrange(10, 60), len(asked))
            run.wait(lambda _, n=enough: sum(each.done() for each in futures) >= n, LIMIT)
            for pid in [task.pid for task in run.tasks if task.component == "spout" and task.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        drpc.wait(futures)
        for text, future in zip(asked, futures, strict=True):
            problem = future.exception()
            if problem is None:
                assert future.result() == answer(text)
            else:
                assert problem.kind == "FAILED_REQUEST"
                assert "the spout that fetched the request is gone" in str(problem)
        assert drpc.execute("pipe", asked[1]) == answer(asked[1])
        assert len(drpc.requests) == 0


def test_a_bolt_killed_in_the_middle_of_a_request_is_an_error_at_once(tmp_path):
    started = tmp_path / "started"
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(pipelines.stuck, conf={"topology.message.timeout.secs": 1000, "test.started": str(started)})
        future = drpc.start("stuck", "now")
        deadline = time.monotonic() + LIMIT
        while not started.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (victim,) = [task.pid for task in run.tasks if task.component == "bolt0"]
        os.kill(victim, signal.SIGKILL)
        drpc.wait([future])
        assert future.exception().kind == "FAILED_REQUEST"
        assert drpc.execute("stuck", "not now") == "not now"
        assert len(drpc.requests) == 0


@contextmanager
def serving(port=0, invocations_port=0):
    """A DRPC server in a process of its own; that, and its two ports. It is killed at the end."""
    ports = ["--port", str(port), "--invocations-port", str(invocations_port), "--no-http"]
    with subprocess.Popen([COMMAND, "drpc", "serve", *ports], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server, *map(int, re.findall(r":(\d+)", server.stdout.readline()))
        finally:
            server.kill()


def test_a_server_that_is_killed_is_told_to_its_clients_and_the_next_one_is_found():
    with serving() as (server, port, invocations_port), LocalCluster("process") as cluster:
        conf = {"drpc.servers": ["127.0.0.1"], "drpc.invocations.port": invocations_port}
        run = cluster.submit(failing.alone, conf={**conf, "topology.message.timeout.secs": 1000})
        with DRPCClient(port=port, timeout=LIMIT) as client:
            assert client.execute("line", "before") == "before"
            with pytest.raises(DRPCExecutionException, match=r"'line' failed in step 2 .* nothing by naught in finish"):
                client.execute("line", "raise finish")
            server.kill()
            server.wait(LIMIT)
            with pytest.raises(DRPCConnectionError):
                client.execute("line", "meanwhile")
            with serving(port, invocations_port):
                assert client.execute("line", "after") == "after"
                with pytest.raises(DRPCExecutionException, match="nothing by naught in basic"):
                    client.execute("line", "raise basic")
        assert sum(task.restarts for task in run.tasks) == 0


def test_the_command_serves_a_topology_until_it_is_told_to_end():
    command = [COMMAND, "drpc", "serve", "examples/exclamation.py"]
    ports = ["--port", "0", "--invocations-port", "0", "--http-port", "0"]
    with subprocess.Popen([*command, *ports], cwd=ROOT, stdout=subprocess.PIPE, text=True) as serving:
        try:
            lines = [serving.stdout.readline(), serving.stdout.readline()]
            assert lines[0] == "topology 'exclamation' runs here\n"
            port = int(lines[1].split()[1].strip(",").rpartition(":")[2])
            with DRPCClient(port=port, timeout=LIMIT) as client:
                assert client.execute("exclamation", "a") == "a!"
        finally:
            serving.send_signal(signal.SIGINT)
        assert serving.wait(LIMIT) == 0
