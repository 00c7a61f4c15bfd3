"""Values arrive unchanged, and at the task that Storm would choose, in every mode of the embedded cluster."""

from __future__ import annotations

import pytest

from multilang.topology.javahash import task_index
from tests.values.test_values import SEED
from tests.values.topology import SEED as SEED_KEY
from tests.values.topology import SINKS, topology, values


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_values_arrive_unchanged_where_storm_would_send_them(run_topology, mode):
    run = run_topology(topology, mode, capture=["sink"], conf={SEED_KEY: SEED})
    assert sorted(tup.values for tup in run.captured("sink")) == [
        [n, True, task_index([value], SINKS)] for n, value in enumerate(values(SEED))
    ]
