"""One answer, wherever a topology runs: generated topologies, simulated, in process, with processes, on Spark and on Storm.

What is compared: the tuples that every task of every component got (its index where the grouping says which task gets a
tuple), each ack and fail that each spout was told, the spouts' figures, the errors, and how the run ended: drained, or what
it was waiting for, word for word. After a run was drained it goes on for some ticks: then it must be drained again, and no
tuple may have been under way.

What is not compared, since Storm promises none of it, and why: the order and time of anything (engines run at once what
does not depend on each other); the task that a shuffled tuple gets, and with partial keys (chosen by what was chosen before);
how many tuples ticks alone bring (as many as there are ticks), and so whatever has the key "tick"; which tuples a batch has
together. On Spark a topology with a cycle or with coordinated bolts is refused by name, and so is a spout that
can't tell its end; on Storm a tuple that was forgotten takes half a minute to time out, and no run ends, so that it is
complete when all that the simulated one got is there, and nothing more came by the time that other graphs were.

A failing shape prints its description: ``MULTILANG_SHAPE='...' pytest tests/differential -k by_its_description`` runs it again
everywhere on the embedded cluster. The soak (``MULTILANG_SOAK=full``) runs the shapes of the numbers MULTILANG_SHAPES,
"0:10000" unless given.
"""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.differential.local import run
from tests.differential.outcomes import check_same
from tests.differential.shapes import Shape, sample, shape_of, shapes
from tests.soak import SOAK

FIRST, LAST = map(int, os.environ.get("MULTILANG_SHAPES", "0:10000" if SOAK else "0:60").split(":"))
PROCESSES_EVERY = 50 if SOAK else 1  # of so many shapes one runs with processes, too
PROCESSES = (LAST - FIRST) // PROCESSES_EVERY if SOAK else 10


def quick(shape: Shape) -> bool:
    """Return whether nothing in it waits for a timeout of real seconds."""
    return shape["forget"] is None


@seeded(16)
@settings(max_examples=20, database=None)
@given(shapes(), st.integers(0, 2**32))
def test_drawn_by_hypothesis_simulated_and_in_process(shape: Shape, seed: int) -> None:
    check_same(shape, run(shape, "simulated", seed), run(shape, "inprocess", seed))


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 600)
def test_by_their_numbers_simulated_and_in_process() -> None:
    for number in range(FIRST, LAST):
        shape = shape_of(number)
        check_same(shape, run(shape, "simulated", number), run(shape, "inprocess", number))


@pytest.mark.soak
@pytest.mark.timeout(36_000 if SOAK else 600)
def test_by_their_numbers_with_processes() -> None:
    found = sample(PROCESSES, FIRST, lambda shape: shape["forget"] != "late")
    for number, shape in enumerate(found):
        check_same(shape, run(shape, "simulated", number), run(shape, "process", number))


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_one_by_its_description(mode: str) -> None:
    shape = json.loads(os.environ.get("MULTILANG_SHAPE") or json.dumps(sample(1, FIRST, quick)[0]))
    check_same(shape, run(shape, "simulated", 1), run(shape, mode, 1))


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_a_bolt_that_speaks_at_its_ticks_into_a_batch(mode: str) -> None:
    """A run with this shape in it did not end with processes."""
    inputs = [{"from": "b1", "stream": "default", "grouping": "shuffle"}]
    says = {
        "id": "b1",
        "kind": "says",
        "tasks": 1,
        "how": "none",
        "ticks": True,
        "inputs": [{**inputs[0], "from": "s0"}],
    }
    shape: Shape = {
        "ackers": 1,
        "stateful": False,
        "forget": None,
        "components": [
            {"id": "s0", "kind": "reliable", "number": 0, "tasks": 1, "values": 5},
            says,
            {"id": "b2", "kind": "batches", "tasks": 1, "how": "group", "ticks": True, "inputs": inputs},
        ],
    }
    check_same(shape, run(shape, "simulated", 1), run(shape, mode, 1))
