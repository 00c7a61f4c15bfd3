"""Blocks between the processes of the embedded cluster."""

from __future__ import annotations

import os
import random
import re
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from multilang.exchange.hops import hops
from multilang.local import LocalCluster, NotDrainedError
from tests.differential import components
from tests.differential.local import run
from tests.differential.outcomes import Outcome, check_same
from tests.differential.shapes import sample, shape_of
from tests.exchange import running
from tests.local import topologies
from tests.patience import patient
from tests.soak import SOAK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.differential.shapes import Shape

BLOCK = {"multilang.exchange": "block"}
SHAPES = 400 if SOAK else 2
LIMIT = patient(150)  # seconds


def noted(folder: Path) -> Counter[int]:
    return Counter(map(int, (folder / "noted").read_text().split()))


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
def test_one_answer_with_blocks_of_one_tuple() -> None:
    """Then nothing is failed together with what failed, so that even acks and fails are the same, one by one."""
    found = sample(SHAPES, 0, lambda shape: shape["forget"] != "late")
    for number, shape in enumerate(found):
        alone = run(shape, "process", number, {**BLOCK, "multilang.exchange.tuples": 1})
        check_same(shape, run(shape, "simulated", number), alone)


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
def test_one_answer_with_blocks_of_what_comes_of_one_tuple() -> None:
    """A tuple that fails takes nothing with it that would not fail alone: all is the same, one by one."""
    found = sample(SHAPES, 0, lambda shape: not shape["forget"] and any(p.get("fails") for p in shape["components"]))
    for number, shape in enumerate(found):
        together = run(shape, "process", number, {"multilang.exchange": "root"})
        check_same(shape, run(shape, "simulated", number), together)


def test_a_coordinated_bolt_holds_tuples_that_came_alone() -> None:
    """It anchors its reports to a tuple that it took back from being acked; the program that emitted it sends no blocks."""
    shape = shape_of(3061)
    assert {part["kind"] for part in shape["components"]} >= {"shell spout", "spreads"}
    alone = run(shape, "process", 0, {**BLOCK, "multilang.exchange.tuples": 1})
    check_same(shape, run(shape, "simulated", 0), alone)


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
def test_one_answer_where_nothing_fails() -> None:
    found = sample(
        SHAPES, 0, lambda shape: not shape["forget"] and not any(p.get("fails") for p in shape["components"])
    )
    for number, shape in enumerate(found):
        check_same(shape, run(shape, "simulated", number), run(shape, "process", number, BLOCK))


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
def test_one_answer_apart_from_repeats_where_something_fails() -> None:
    """A tuple that fails is replayed with its companions: the same tuples come to the same places, some of them more often."""
    found = sample(
        SHAPES,
        0,
        lambda shape: (
            not shape["forget"]
            and not shape["stateful"]  # which counts the repeats
            and any(part.get("fails") for part in shape["components"])
        ),
    )
    for number, shape in enumerate(found):
        alone, together = run(shape, "simulated", number), run(shape, "process", number, BLOCK)
        assert (together.end, once(together)) == (alone.end, once(alone)), shape


def chosen(shape: Shape) -> bool:
    """Return whether the library chooses blocks of many tuples for some of it."""
    declared: Any = components.built(shape, "memory:", 1, components.SHELL)  # type: ignore[no-untyped-call]
    return not shape["forget"] and any(hop.by_block and hop.by_root is None for hop in hops(declared))


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 180)
def test_one_answer_where_the_library_chooses() -> None:
    for number, shape in enumerate(sample(SHAPES, 0, chosen)):
        alone, together = run(shape, "simulated", number), run(shape, "process", number, {"multilang.exchange": "auto"})
        if any(part.get("fails") for part in shape["components"]):
            assert (together.end, once(together)) == (alone.end, once(alone)), shape
        else:
            check_same(shape, alone, together)


def once(outcome: Outcome) -> set[tuple[Any, ...]]:
    """The lines of a record that tell no failure, each once, without the number of the attempt."""
    found = set()
    for component, index, *what in outcome.record:
        if what[0] == "failed":
            continue
        found.add(
            (
                component,
                index,
                *(re.sub(r"^(\d+)/\d+", r"\1", each) if isinstance(each, str) else each for each in what),
            )
        )
    return found


def test_ticks_alone_keep_no_topology_from_being_drained() -> None:
    for number, most in ((17, 1), (38, 1000)):
        shape = shape_of(number)
        conf = {**BLOCK, "multilang.exchange.tuples": most}
        check_same(shape, run(shape, "simulated", number), run(shape, "process", number, conf))


@pytest.mark.soak
@pytest.mark.parametrize("how", ["block", "auto"] if SOAK else ["auto"])
def test_nothing_is_lost_when_processes_are_killed(tmp_path: Path, how: str) -> None:
    seed = random.Random(5)
    with LocalCluster("process", {"multilang.exchange": how, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.killed())
        kills = 40 if SOAK else 6
        for kill in range(kills):
            enough = (kill + 1) * running.NUMBERS // (kills + 2)
            topology.wait(lambda run, n=enough: run.counters["three"].acked >= n, timeout=LIMIT)  # type: ignore[misc]
            alive = [task.pid for task in topology.tasks if task.alive and task.pid is not None]
            os.kill(seed.choice(alive), signal.SIGKILL)
        topology.wait(timeout=LIMIT)
        assert topology.counters["numbers"].lost == 0
        assert sum(each.restarts for each in topology.counters.values()) >= 1
    assert set(noted(tmp_path)) == set(range(3 * running.NUMBERS))


def test_a_thread_of_a_bolts_own_emits_acks_and_fails(tmp_path: Path) -> None:
    with LocalCluster("process", {**BLOCK, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.threaded())
        topology.wait(timeout=LIMIT)
        counters: Any = topology.counters
        assert counters["numbers"].acked == running.NUMBERS
        assert counters["numbers"].failed > 0
        assert [str(error) for error in topology.errors] == []
    assert set(noted(tmp_path)) == set(range(running.NUMBERS))


def test_what_has_a_message_id_does_not_wait_for_what_has_none() -> None:
    topology = running.line("half", 100, running.EveryOther, ("passes", running.Passes), ("keeps", running.KeepsOdd))
    with LocalCluster("process", BLOCK) as cluster:
        topology_run = cluster.submit(topology)
        topology_run.wait(lambda each: each.counters["numbers"].acked == 20, timeout=patient(60))


def test_a_join_does_not_stand_still_unless_blocks_of_many_are_asked_for() -> None:
    """Its spout has room for the first halves alone, not for what would be in blocks with them."""
    with LocalCluster("process") as cluster:
        run = cluster.submit(running.joined())
        run.wait(timeout=LIMIT)
        assert run.counters["pairs"].acked == 24
        asked = cluster.submit(running.joined(), name="asked", conf=BLOCK)
        with pytest.raises(NotDrainedError):
            asked.wait(timeout=3)
        assert asked.counters["pairs"].acked < 24


def test_a_spout_that_drops_what_fails_loses_nothing_else(tmp_path: Path) -> None:
    with LocalCluster("process", {"test.folder": str(tmp_path)}) as cluster:
        run = cluster.submit(running.dropped())
        run.wait(timeout=LIMIT)
        assert run.counters["numbers"].failed == running.NUMBERS // 100
    assert noted(tmp_path) == Counter(n for n in range(running.NUMBERS) if n % 100)


def test_frequent_failures_repeat_few_others(tmp_path: Path) -> None:
    """After the first of them tuples travel apart for a while: what fails takes no others with it."""
    with LocalCluster("process", {"test.folder": str(tmp_path)}) as cluster:
        run = cluster.submit(running.failing())
        run.wait(timeout=LIMIT)
        assert run.counters["numbers"].acked == running.NUMBERS
    repeats = noted(tmp_path) - Counter(range(running.NUMBERS))
    assert set(noted(tmp_path)) == set(range(running.NUMBERS))
    assert sum(repeats.values()) <= 500  # those that were under way at the first


def test_slow_stages_do_not_time_out(tmp_path: Path) -> None:
    """A stage takes a second; a block must not wait for another one in each of them."""
    with LocalCluster("process", {"test.folder": str(tmp_path), "topology.message.timeout.secs": 8}) as cluster:
        run = cluster.submit(running.slow())
        run.wait(timeout=LIMIT)
        assert (run.counters["numbers"].acked, run.counters["numbers"].failed) == (100, 0)
    assert noted(tmp_path) == Counter(range(100))


def test_task_ids_come_to_a_callback_after_the_emit() -> None:
    with LocalCluster("process", BLOCK) as cluster:
        run = cluster.submit(topologies.called_back, capture=[("callsback", "told")])
        run.wait(timeout=LIMIT)
        assert run.counters["numbers"].acked == 100
        assert [str(error) for error in run.errors] == []
        assert len(run.captured("callsback", "told")) == 100


def test_a_tuple_that_always_fails_takes_no_other_with_it_for_good(tmp_path: Path) -> None:
    with LocalCluster("process", {**BLOCK, "test.folder": str(tmp_path)}) as cluster:
        run = cluster.submit(running.poisoned())
        run.wait(timeout=LIMIT)
        (gave_up,) = [str(error) for error in run.errors]  # and no other
        assert "on tuple 776, after 3 failures" in gave_up
    assert set(noted(tmp_path)) == set(range(1, running.NUMBERS + 1)) - {777}


@pytest.mark.parametrize("how", ["root", "auto"])
def test_what_a_bolt_emitted_arrives_while_it_works_on(tmp_path: Path, how: str) -> None:
    with LocalCluster("process", {"multilang.exchange": how, "test.folder": str(tmp_path)}) as cluster:
        run = cluster.submit(running.going())
        run.wait(timeout=LIMIT)
        assert [str(error) for error in run.errors] == []
        assert run.counters["numbers"].acked == 3


def test_the_counters_tell_tuples(tmp_path: Path) -> None:
    with LocalCluster("process", {**BLOCK, "test.folder": str(tmp_path)}) as cluster:
        topology = cluster.submit(running.killed())
        topology.wait(timeout=LIMIT)
        n = running.NUMBERS
        found = {id: (each.emitted, each.executed, each.acked) for id, each in topology.counters.items()}
        assert found["numbers"] == (n, 0, n)
        assert found["three"] == (3 * n, n, n)
        assert found["note"] == (3 * n, 3 * n, 3 * n)
        shown = {each.id: (each.streams, each.inputs) for each in topology.status().components}
        with LocalCluster("inprocess", {"test.folder": str(tmp_path)}) as other:
            declared = other.submit(running.killed(), name="declared").status().components
        names = {each.id: ([s.name for s in each.streams], each.inputs) for each in declared}
        assert {id: ([s.name for s in streams], inputs) for id, (streams, inputs) in shown.items()} == names
    assert noted(tmp_path) == Counter(range(3 * n))
