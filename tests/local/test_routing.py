"""The same emits are allowed in every mode, and the others are refused with the same words."""

from __future__ import annotations

import pytest

from tests.local import routing

HEARD = ["heard", "shuffled", "directed"]


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_every_emit_is_sent_or_refused_in_every_mode_alike(run_topology, mode):
    run = run_topology(routing.python, mode, capture=HEARD)
    rows = {name: [tup.values for tup in run.captured(name)] for name in HEARD}
    routing.check("says", rows)
    routing.check("speaks", rows)
    said = {
        who: [routing.whole(what) for whose, _, what in sorted(rows["heard"]) if whose == who]
        for who, *_ in rows["heard"]
    }
    assert said["says"] == said["speaks"]


def test_a_program_in_another_language_is_refused_with_the_same_words(run_topology):
    run = run_topology(routing.shell, "process", capture=HEARD)
    rows = {name: [tup.values for tup in run.captured(name)] for name in HEARD}
    routing.check("speaks", rows, [error.message for error in run.errors if error.fatal])
