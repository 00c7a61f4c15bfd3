"""Correct programs of many kinds pass, however busy the machine is. ``scripts/soak conformance`` repeats each a hundred times."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from multilang.conformance import Run, Target, all_cases
from multilang.conformance.case import selected
from multilang.conformance.target import TIMEOUT
from tests.soak import SOAK

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "conformance"
UNUSUAL = [sys.executable, str(HERE / "ordinary" / "correct.py")]
FAULTLESS = [sys.executable, str(HERE / "faulty" / "component.py")]
NODE = ["node", str(HERE / "faulty" / "component.js")]
# program -> its command, its kind, and whether it keeps the contract
CORRECT: dict[str, tuple[list[str], str, bool]] = {
    **{
        f"{language}-{program}": ([*command, program, "none"], program.split("-")[1], program.startswith("contract"))
        for language, command in (("python", FAULTLESS), ("node", NODE))
        for program in ("contract-bolt", "contract-spout", "ordinary-bolt", "ordinary-spout")
    },
    **{
        name: ([*UNUSUAL, name], kind, False)
        for kind, names in {
            "bolt": (
                *(
                    "HeartbeatThreadBolt",
                    "SlowStartBolt",
                    "ChattyBolt",
                    "TinyChunksBolt",
                    "LateAckBolt",
                    "TickBatchBolt",
                ),
                *("JoinBolt", "QueuesBolt", "ThreadedBolt", "BatchBolt"),
            ),
            "spout": ("SlowStartSpout", "ChattySpout", "TinyChunksSpout", "RetrySpout", "QuietSpout", "FewSpout"),
        }.items()
        for name in names
    },
    "plain-bolt": ([sys.executable, str(EXAMPLES / "plain.py"), "bolt"], "bolt", True),
    "plain-spout": ([sys.executable, str(EXAMPLES / "plain.py"), "spout"], "spout", True),
    "ours-bolt": ([sys.executable, str(EXAMPLES / "ours.py"), "bolt"], "bolt", True),
    "ours-spout": ([sys.executable, str(EXAMPLES / "ours.py"), "spout"], "spout", True),
}
REPEATED = (
    "HeartbeatThreadBolt",
    "LateAckBolt",
    "RetrySpout",
    "python-contract-bolt",
    "node-ordinary-spout",
    "ours-spout",
)
RUNS = 100
# What a sample of one is asked: the cases that depend on time the most.
SOME = {
    "bolt": ("bolt/ordinary", "bolt/tick", "bolt/heartbeat/14", "common/end/8", "common/end/9"),
    "spout": ("spout/ordinary", "spout/sync", "common/io/10", "common/end/8", "common/end/9"),
}


def missed(name: str) -> list[str]:
    """Return the MUST cases that a correct program breaks by the report, at the default limit."""
    command, kind, contract = CORRECT[name]
    if command[0] == "node" and shutil.which("node") is None:
        if os.environ.get("CI"):
            pytest.fail("there is no node here, though scripts/test installs it in CI")
        pytest.skip("there is no node on the path")
    target = Target(command, kind, timeout=TIMEOUT, contract=contract)
    result = Run(target).run(None if SOAK else selected(all_cases(kind), SOME[kind]))
    return [
        f"{case.path}: {case.why}" for case in result.cases if case.status in ("failed", "blocked") and case.is_must
    ]


@pytest.fixture
def busy() -> Iterator[None]:
    """Four processes for each core, which do nothing but work."""
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(4 * (os.cpu_count() or 1))]
    for burner in burners:
        burner.start()
    yield
    for burner in burners:
        burner.kill()
        burner.join()


def burn() -> None:
    while True:
        pass


@pytest.mark.parametrize("name", CORRECT if SOAK else ["HeartbeatThreadBolt", "LateAckBolt", "RetrySpout"])
def test_a_correct_program_breaks_no_must(name: str) -> None:
    assert missed(name) == []


@pytest.mark.skipif(not SOAK, reason="scripts/soak conformance runs six programs a hundred times on a busy machine")
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("name", REPEATED)
def test_it_breaks_none_on_a_busy_machine(name: str) -> None:
    for number in range(RUNS):
        assert missed(name) == [], f"run {number + 1} of {RUNS}"
