"""Topologies of any shape answer each request as plain Python does, whatever the order and whatever goes wrong."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang.coordination import CoordinatedBolt
from multilang.drpc import DRPCExecutionException, LocalDRPC
from multilang.local import Faults
from tests.drpc.pipelines import GROUPINGS, answer, drawn, pipeline, requests
from tests.patience import patient
from tests.soak import SOAK

STEP = st.tuples(st.integers(0, 2), st.integers(1, 8), st.sampled_from(GROUPINGS))


def tracked(run):
    """Return what the coordinated bolts of a topology still track, in all its tasks."""
    bolts = [actor.component for actor in run.bolts.values()]
    return [dict(bolt.tracked) for bolt in bolts if isinstance(bolt, CoordinatedBolt) and bolt.tracked]


@given(st.lists(STEP, min_size=1, max_size=5), st.integers(0, 2**32), st.sampled_from(["inprocess", "simulated"]))
@settings(max_examples=150 if SOAK else 25)
def test_every_shape_of_topology_answers_right_in_every_order(steps, seed, mode):
    asked = requests(Random(seed), 6, len(steps), 30)
    with LocalDRPC(mode, seed=seed) as drpc:
        run = drpc.submit(pipeline(steps))
        futures = [drpc.start("pipe", text) for text in asked]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [answer(text) for text in asked]
        run.wait(timeout=patient(100))
        assert tracked(run) == []


@pytest.mark.soak
@given(st.integers(0, 2**32), st.lists(STEP, min_size=1, max_size=3), st.integers(1, 4))
@settings(max_examples=500 if SOAK else 25)
def test_whatever_dies_a_request_has_its_right_answer_or_an_error(seed, steps, last):
    asked = requests(Random(seed), 8, len(steps), 20)
    faults = Faults(crash=0.01, acker_crash=0.005, late=0.02, limit=8)
    with LocalDRPC("simulated", seed=seed, faults=faults) as drpc:
        run = drpc.submit(pipeline(steps, last))
        futures = [drpc.start("pipe", text) for text in asked]
        drpc.wait(futures)
        for text, future in zip(asked, futures, strict=True):
            problem = future.exception()
            assert future.result() == answer(text) if problem is None else isinstance(problem, DRPCExecutionException)
        again = requests(Random(seed + 1), 4, len(steps), 20)
        run.faults = Faults(crash=0, acker_crash=0, late=0)
        run.run_for(400)  # virtual seconds: what is late has come, and who died is back
        later = [drpc.start("pipe", text) for text in again]
        drpc.wait(later)
        assert [future.result() for future in later] == [answer(text) for text in again]
        run.run_for(200)  # virtual seconds: what died with its task has expired
        assert tracked(run) == []
        assert len(drpc.requests) == 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_concurrent_requests_to_topologies_of_all_shapes_are_not_mixed_up():
    rng = Random(5)
    shapes = {f"pipe{number}": drawn(rng) for number in range(20 if SOAK else 6)}
    each = 500 if SOAK else 50
    asked = [
        (function, text)
        for function, (steps, _) in shapes.items()
        for text in requests(rng, each, len(steps), 1000 if SOAK else 100)
    ]
    rng.shuffle(asked)
    with LocalDRPC("inprocess", seed=1, timeout_secs=1800) as drpc:
        runs = [
            drpc.submit(pipeline(*shape, function), conf={"topology.message.timeout.secs": 1800})
            for function, shape in shapes.items()
        ]
        futures = [drpc.start(*call) for call in asked]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [answer(text) for _, text in asked]
        assert len(drpc.requests) == 0
        left = [info for run in runs for ids in tracked(run) for info in ids.values()]
        # Tasks of the last step that a request did not come to wait for its id, and let it go when its time is over.
        assert all(not info.held and not info.received for info in left)
