"""Saves batches of counts as a query does, in processes that are killed at one step after the other; no Spark takes part.

``python -m tests.spark.stream.killed_saves CONF``: prints the steps that there were, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from multilang.state.providers import provider_of
from spark_bridge.job.stateful import open_state
from spark_bridge.job.states import QUERIES_KEY, States
from tests.soak import SOAK
from tests.state.topologies import stored, topology

BATCHES = 3
QUERY = "query"


def batches(conf: dict[str, object]) -> None:
    """From the batch on that is not in the state yet; each adds 1 to a number of keys."""
    states = States(topology, conf)
    last = (states._coordinator.get(QUERIES_KEY) or {}).get(QUERY, -1)
    for batch in range(last + 1, BATCHES):
        assert states.begin(QUERY, batch) is not None
        changes = {}
        for name in states.saving.committed:
            provider = provider_of(conf)
            state = open_state(provider, name)
            for key in range(batch, batch + 3):
                state.put(f"{name} {key}", state.get(f"{name} {key}", 0) + 1)
            if batch == 2:
                state.delete(f"{name} 0")
            changes[name] = state.changes()
            state.close()
            provider.close()
        states.save(changes, QUERY, batch)
    states.close()


def due(names: list[str]) -> dict[str, int]:
    counts = {1: 2, 2: 3, 3: 2, 4: 1}
    return {f"{name} {key}": count for name in names for key, count in counts.items()}


def in_a_child(conf: dict[str, object], crashes: str, steps: Path | None = None) -> bool:
    """Run the batches in a child process, and return whether it came to the end."""
    pid = os.fork()
    if not pid:
        os.environ["CRASHES"] = crashes
        if steps is not None:
            os.environ["STEPS"] = str(steps)
        try:
            batches({**conf, "multilang.trace": "tests.state.crashing.at_step"})
        except BaseException as error:  # noqa: BLE001  # a fork of a test's process ends here, whatever happened
            print(f"{crashes}: {error!r}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or not status, crashes
    return status == 0


def check(conf: dict[str, object], where: str) -> None:
    provider = provider_of(conf)
    found = {**stored(provider, "count", 2), **stored(provider, "lengths", 1)}
    provider.close()
    assert found == due(["count-0", "count-1", "lengths-0"]), (where, found)


def emptied(conf: dict[str, object]) -> dict[str, object]:
    provider = provider_of(conf)
    provider.claim()
    provider.replace({name: {} for name in (*provider.namespaces(), "$checkpointspout-0")})
    provider.close()
    return conf


def main() -> None:
    conf = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder, "steps")
        assert in_a_child(emptied(conf), "", steps)
        check(conf, "none")
        every = list(dict.fromkeys(steps.read_text().splitlines()))
        for number, step in enumerate(every):
            for occurrence in (1, 2) if SOAK else (1 + number % 2,):
                marker = Path(folder, f"{number}-{occurrence}")
                assert not in_a_child(emptied(conf), f"{step}|{occurrence}|{marker}"), step
                assert in_a_child(conf, ""), step
                check(conf, step)
    print(json.dumps(every))


if __name__ == "__main__":
    main()
