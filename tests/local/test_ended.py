"""After its end a run still has its results, and nothing waits in vain."""

from __future__ import annotations

import pytest

from multilang.local import LocalCluster, LocalClusterError
from tests.local import topologies
from tests.patience import patient


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_what_a_run_did_stays_and_what_it_would_do_is_refused(mode):
    with LocalCluster(mode, seed=1) as cluster:
        run = cluster.submit(topologies.passing, capture=["numbers"])
        run.wait(timeout=patient(60))
        counters, captured = run.counters, len(run.captured("numbers"))
    assert run.killed
    assert captured
    assert (run.counters, len(run.captured("numbers"))) == (counters, captured)
    assert [task for task in run.tasks if task.alive or task.pid] == []
    for refused in (
        run.wait,
        lambda: run.wait(lambda _: True),
        lambda: run.run_for(0),
        run.activate,
        run.deactivate,
        lambda: run.waiting_for,
    ):
        with pytest.raises(LocalClusterError, match="was killed; submit it again"):
            refused()
    run.kill()  # again
