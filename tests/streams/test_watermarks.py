"""No way from a source to a window makes an element late: the slowest source's task decides, whatever is between."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multilang import LocalCluster
from tests.patience import patient
from tests.soak import SOAK
from tests.streams import skewed

TASKS = st.integers(1, 3)
STEPS = st.lists(st.tuples(st.sampled_from(list(skewed.STEPS)), TASKS), max_size=2)
SHAPES = st.fixed_dictionaries(
    {
        "sources": st.lists(
            st.tuples(TASKS, st.sampled_from([0.0, 1.0, 10.0]), st.sampled_from([0.0, 0.01, 0.2]), st.integers(0, 2)),
            min_size=1,
            max_size=2,
        ),
        "steps": STEPS,
        "together": STEPS,
        "tasks": TASKS,
        "window": st.sampled_from(list(skewed.WINDOWS)),
    }
)


@settings(max_examples=300 if SOAK else 12, deadline=None)
@given(SHAPES)
def test_no_element_is_late_that_was_not_late_at_its_source(shape) -> None:
    with TemporaryDirectory() as folder:
        state = {
            "topology.state.provider": "sqlite",
            "topology.state.provider.config": {"path": f"{folder}/state.sqlite"},
        }
        with LocalCluster("simulated", state, seed=7) as cluster:
            run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
            run.run_for(60)
            assert not run.captured("lates")
            assert skewed.seen(run.captured("end")) == skewed.worked_out(shape)
            assert not run.errors


@pytest.mark.parametrize("exchange", ["tuple", "block"])
def test_no_element_is_late_between_processes(exchange, tmp_path) -> None:
    shape = {
        "sources": [(2, 0.2, 0.01, 0), (1, 1.0, 0.0, 2)],
        "steps": [("fold", 2)],
        "together": [("unordered", 1), ("repartition", 2)],
        "tasks": 2,
        "window": "tumbling",
    }
    wanted = skewed.worked_out(shape)
    with LocalCluster("process", {"multilang.exchange": exchange}) as cluster:
        run = cluster.submit(skewed.built(shape), capture=["end", "lates"])
        run.wait(until=lambda run: skewed.seen(run.captured("end")).total() >= wanted.total(), timeout=patient(120))
        assert not run.captured("lates")
        assert skewed.seen(run.captured("end")) == wanted
        assert not run.errors
