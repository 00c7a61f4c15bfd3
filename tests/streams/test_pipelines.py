"""Streams give what plain Python gives for the same input: pipelines are generated, and run in all modes."""

from __future__ import annotations

from contextlib import contextmanager
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from tests.patience import patient
from tests.soak import SOAK
from tests.streams import pipelines

SOURCES = st.tuples(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 3))
STEPS = st.one_of(
    st.tuples(st.sampled_from(["map", "filter", "flat_map", "peek", "branch", "fork", "copy"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["merge", "repartition"]), st.integers(0, 5), st.integers(1, 3)),
)
ENDS = st.tuples(
    st.sampled_from([None, *pipelines.KEYERS]),
    st.lists(st.sampled_from(list(pipelines.ON_VALUES)), max_size=2),
    st.integers(0, 3),
    st.sampled_from([None, *pipelines.FOLDS]),
)
SHAPES = st.fixed_dictionaries(
    {
        "sources": st.lists(SOURCES, min_size=1, max_size=3),
        "steps": st.lists(STEPS, max_size=5),
        "ends": st.lists(ENDS, min_size=16, max_size=16),
    }
)

SMALL = st.fixed_dictionaries(  # for processes, of which each takes a while to start
    {
        "sources": st.lists(SOURCES, min_size=1, max_size=1),
        "steps": st.lists(STEPS, max_size=2),
        "ends": st.lists(ENDS, min_size=2, max_size=2),
    }
)


@contextmanager
def running(topology, mode, capture):
    with TemporaryDirectory() as folder:
        conf = {
            "topology.state.checkpoint.interval.ms": 100,
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": f"{folder}/state.sqlite"},
        }
        with LocalCluster(mode, conf, seed=7, fail_fast=mode != "process") as cluster:
            run = cluster.submit(topology, capture=capture)
            yield run
            assert run.errors == []


def check(shape, mode, **more):
    topology = pipelines.built(shape, **more)
    with running(topology, mode, pipelines.ends(shape)) as run:
        run.wait(timeout=patient(150))
        assert pipelines.seen(shape, run) == pipelines.worked_out(shape)


@settings(max_examples=400 if SOAK else 25, deadline=None)
@given(SHAPES)
def test_any_pipeline_gives_what_plain_python_gives(shape) -> None:
    check(shape, "inprocess")
    check(shape, "simulated")


@settings(max_examples=100 if SOAK else 10, deadline=None)
@given(SHAPES)
def test_any_pipeline_gives_it_with_exact_state(shape) -> None:
    check(shape, "simulated", conf={"multilang.state.alignment": "exact"})


@settings(max_examples=60 if SOAK else 3, deadline=None)
@given(SMALL, st.sampled_from(["tuple", "block"]))
def test_any_pipeline_gives_it_in_processes(shape, exchange) -> None:
    check(shape, "process", conf={"multilang.exchange": exchange})


EVENTS = st.lists(st.tuples(st.sampled_from(["ant", "bee", "cow"]), st.integers(0, 40)).map(list), max_size=20)
WINDOWED = st.fixed_dictionaries(
    {
        "sources": st.lists(st.tuples(EVENTS, st.integers(1, 2)), min_size=1, max_size=2),
        "tasks": st.integers(1, 3),
        "window": st.sampled_from(list(pipelines.WINDOWS)),
        "operation": st.sampled_from(
            ["count", "aggregate", "group", "join", "left_join", "right_join", "full_join", "co_group"]
        ),
    }
).map(pipelines.numbered)


def check_windows(shape, mode, **more):
    topology = pipelines.windowed(shape, **more)
    wanted = pipelines.windows_worked_out(shape)
    with running(topology, mode, ["end"]) as run:
        run.wait(until=lambda run: len(run.captured("end")) >= sum(wanted.values()), timeout=60)
        run.run_for(1)
        assert pipelines.windows_seen(run) == wanted


@settings(max_examples=400 if SOAK else 25, deadline=None)
@given(WINDOWED)
def test_windows_and_joins_give_what_plain_python_gives(shape) -> None:
    check_windows(shape, "simulated")


@settings(max_examples=100 if SOAK else 10, deadline=None)
@given(WINDOWED)
def test_windows_and_joins_give_it_with_exact_state(shape) -> None:
    check_windows(shape, "simulated", conf={"multilang.state.alignment": "exact"})
