"""Chains in the processes of the embedded cluster."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from multilang.chains.plan import chains
from multilang.local import LocalCluster
from tests.chains import running
from tests.differential import components
from tests.differential.local import run
from tests.differential.outcomes import check_same
from tests.differential.shapes import Shape, sample
from tests.soak import SOAK

if TYPE_CHECKING:
    from pathlib import Path

CHAINED = {"multilang.chaining": "shuffle"}
EXCHANGES = {
    "tuple": {"multilang.exchange": "tuple"},
    "auto": {},
    "block": {"multilang.exchange": "block", "multilang.exchange.tuples": 1},
}
SHAPES = 400 if SOAK else 2
LIMIT = 150  # seconds


def has_chains(shape: Shape) -> bool:
    declared: Any = components.built(  # type: ignore[no-untyped-call]
        shape, "memory:", 1, components.SHELL
    )
    return not shape["forget"] and bool(chains(declared.with_conf(CHAINED)).members)


def noted(folder: Path) -> Counter[int]:
    return Counter(map(int, (folder / "noted").read_text().split()))


def sunk(folder: Path, component: str = "sink") -> list[Any]:
    return [json.loads(line) for line in (folder / f"sink.{component}.0").read_text().splitlines()]


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_one_answer_with_processes(exchange: str) -> None:
    shapes = sample(SHAPES, 0, has_chains)
    for part in (part for shape in shapes for part in shape["components"]):
        if part["kind"] in ("basic", "shell"):
            part["kind"] = "many"  # and programs are in no chain
    for number, shape in enumerate(shapes):
        chained = run(shape, "process", number, {**CHAINED, **EXCHANGES[exchange]})
        check_same(shape, run(shape, "simulated", number), chained)


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
@pytest.mark.parametrize("mode", ["simulated", "inprocess"])
def test_one_answer_in_this_process(mode: str) -> None:
    for number, shape in enumerate(sample(10 * SHAPES, 5000, has_chains)):
        check_same(shape, run(shape, "simulated", number), run(shape, mode, number, CHAINED))


@pytest.mark.soak
def test_nothing_is_lost_when_chains_are_killed(tmp_path: Path) -> None:
    seed = random.Random(3)
    with LocalCluster("process", {**CHAINED, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.killed())
        kills = 40 if SOAK else 4
        for kill in range(kills):
            enough = (kill + 1) * running.NUMBERS // (kills + 2)
            topology.wait(lambda run, n=enough: run.counters["three"].acked >= n, timeout=LIMIT)  # type: ignore[misc]
            alive = [task.pid for task in topology.tasks if task.component == "late" and task.alive]
            if alive:
                os.kill(seed.choice(alive), signal.SIGKILL)  # type: ignore[arg-type]
        topology.wait(timeout=LIMIT)
        assert topology.counters["numbers"].lost == 0
        assert topology.counters["three"].restarts == topology.counters["late"].restarts >= 1
    assert set(noted(tmp_path)) == set(range(3 * running.NUMBERS))


def test_the_counters_and_the_status_tell_the_members(tmp_path: Path) -> None:
    with LocalCluster("process", {**CHAINED, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.killed())
        topology.wait(timeout=LIMIT)
        n = running.NUMBERS
        found = {
            id: (each.tasks, each.emitted, each.transferred, each.executed, each.acked, each.unfinished)
            for id, each in topology.counters.items()
            if each.kind == "bolt" and id[0] != "_"
        }
        assert found == {
            "three": (2, 3 * n, 3 * n, n, n, 0),
            "late": (2, 3 * n, 3 * n, 3 * n, 3 * n, 0),
            "note": (2, 3 * n, 0, 3 * n, 3 * n, 0),
        }
        status = {each.id: each for each in topology.status().components}
        assert [len(status[id].by_task) for id in ("numbers", "three", "late", "note")] == [2, 2, 2, 2]
        assert status["late"].busy_secs is not None
        pids = {
            task.component: {each.pid for each in topology.tasks if each.component == task.component}
            for task in topology.tasks
        }
        assert pids["three"] == pids["late"]
        assert len({task.id for task in topology.tasks}) == 8
    assert noted(tmp_path) == Counter(range(3 * n))


@pytest.mark.parametrize("exchange", ["tuple", "block"])
def test_members_see_the_topology_as_it_was_declared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, exchange: str
) -> None:
    conf = {**CHAINED, "multilang.exchange": exchange, "test.folder": str(tmp_path)}
    with caplog.at_level(logging.WARNING), LocalCluster("process", conf) as cluster:
        topology = cluster.submit(running.told())
        topology.wait(lambda _: (tmp_path / "sink.sink.0").exists(), timeout=LIMIT)
        topology.wait(lambda _: any(each[1] == "ticks" for each in sunk(tmp_path)), timeout=LIMIT)
        topology.wait(timeout=LIMIT)
        errors = [(each.component, each.message) for each in topology.errors]
        pids = {task.pid for task in topology.tasks if task.component in ("first", "second", "join")}
    assert len(pids) == 1
    assert sorted(errors) == sorted((id, f"five at {id}") for id in ("first", "join", "join", "second"))
    got = sunk(tmp_path)
    assert {tuple(each) for each in got if each[1] == "ticks"} == {("second", "ticks", 0, "second")}
    n = running.NUMBERS
    values = Counter((each[0], each[4]) for each in got if each[1] == "default")
    assert values == {("second", "first"): n, ("join", "first"): n, ("join", "second"): n}
    for source, key in values:  # each in the order in which the spout gave them
        assert [each[3] for each in got if each[0] == source and each[4:] == [key]] == list(range(n - 1, -1, -1))
    said = {record.name: record.getMessage() for record in caplog.records if "my conf" in record.getMessage()}
    assert said == {"first": "my conf: a None", "second": "my conf: b 0.05", "join": "my conf: c None"}


def test_a_thread_of_a_members_own_emits_acks_and_fails(tmp_path: Path) -> None:
    with LocalCluster("process", {**CHAINED, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.threaded())
        topology.wait(timeout=LIMIT)
        counters: Any = topology.counters
        assert counters["numbers"].acked == running.NUMBERS
        assert counters["threaded"].failed > 0
        assert [str(error) for error in topology.errors] == []
    assert noted(tmp_path) == Counter(range(running.NUMBERS))


def test_an_exception_of_a_member_ends_the_process_under_its_name_and_nothing_is_lost(tmp_path: Path) -> None:
    with LocalCluster("process", {**CHAINED, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.dies())
        topology.wait(timeout=LIMIT)
        errors = [(each.component, each.message.splitlines()[0]) for each in topology.errors]
        restarts = {topology.counters[id].restarts for id in ("first", "dies", "note")}
    assert restarts == {1}
    (fatal,) = [text for component, text in errors if component == "dies"]
    assert fatal.startswith("ValueError in component 'dies' (task ")
    assert "from 'first', stream 'default', values [77, 'numbers']: seventy-seven" in fatal
    assert ("first+dies+note", "the process exited with status 1") in errors
    assert any(component == "numbers" and "on tuple 78, after" in text for component, text in errors)
    assert set(noted(tmp_path)) == set(range(running.NUMBERS)) - {78}


def test_what_a_member_does_wrong_is_told_as_without_a_chain(tmp_path: Path) -> None:
    found = {}
    for chaining in ("off", "shuffle"):
        folder = tmp_path / chaining
        folder.mkdir()
        with LocalCluster("process", {"multilang.chaining": chaining, "test.folder": str(folder)}) as cluster:
            topology = cluster.submit(running.misuses())
            topology.wait(timeout=LIMIT)
            assert [str(error) for error in topology.errors] == []
        found[chaining] = [each[3:] for each in sunk(folder)]
    assert (
        [number for number, _ in found["shuffle"]]
        == [number for number, _ in found["off"]]
        == [0, 1, 2, 3, 4, 5, 10, 11]
    )
    assert found["shuffle"][:5] == found["off"][:5]
    assert [text.partition(":")[0] for _, text in found["shuffle"]] == [
        text.partition(":")[0] for _, text in found["off"]
    ]


def test_no_member_works_while_another_waits_in_a_timer(tmp_path: Path) -> None:
    with LocalCluster("process", {**CHAINED, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.asking())
        topology.wait(timeout=LIMIT)
        assert [str(error) for error in topology.errors] == []
    assert noted(tmp_path) == Counter(range(3 * running.NUMBERS))


def test_task_ids_come_at_once_and_to_a_callback() -> None:
    how = {"raw": "asks", "calls": "calls back"}
    inputs = {"raw": "s0", "calls": "raw", "end": "calls"}
    shape: Shape = {
        "ackers": 1,
        "stateful": False,
        "forget": None,
        "components": [
            {"id": "s0", "kind": "replays", "number": 0, "tasks": 2, "values": 5, "out": "both"},
            *(
                {
                    "id": id,
                    "kind": "raw" if id in how else "fails",
                    "tasks": 2,
                    "out": "both",
                    "how": how.get(id),
                    "fails": 1,
                    "every": 2,
                    "inputs": [
                        {"from": inputs[id], "stream": stream, "grouping": "shuffle"} for stream in ("default", "side")
                    ],
                }
                for id in inputs
            ),
        ],
    }
    check_same(shape, run(shape, "simulated", 1), run(shape, "process", 1, CHAINED))
