"""Programs as steps: inside a fair bolt, by hand, and when the task around them is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from multilang import ShellBolt, TopologyBuilder
from multilang.coordination import COORD_STREAM, SINGLE, BatchBoltExecutor, CoordinatedBolt, KeyedFairBolt
from multilang.drpc import DRPCSpout, JoinResult, LinearDRPCTopologyBuilder, LocalDRPC, PrepareRequest, ReturnResults
from multilang.topology import TopologyError
from tests.drpc.early import Count
from tests.patience import patient

LIMIT = patient(100.0)
NEVER = {"topology.message.timeout.secs": 3600}
TEXTS = ["a b c", "", "d", "e f", " ".join("abcdefgh" * 20)]
PROGRAM = str(Path("tests/drpc/steps_elsewhere/asks.py").absolute())


def program():
    return ShellBolt([sys.executable, PROGRAM], output_fields=["id", "word"])


def linear():
    builder = LinearDRPCTopologyBuilder("words")
    builder.add_bolt(KeyedFairBolt(program()), parallelism=2)
    builder.add_bolt(Count, parallelism=2).fields_grouping("id")
    return builder.build()


def by_hand():
    builder = TopologyBuilder()
    builder.set_spout("requests", DRPCSpout("words"))
    builder.set_bolt("prepare", PrepareRequest).none_grouping("requests")
    builder.set_bolt("words", CoordinatedBolt(KeyedFairBolt(program()))).shuffle_grouping("prepare")
    last = CoordinatedBolt(BatchBoltExecutor(Count()), {"words": SINGLE}, id_stream=("prepare", "id"))
    step = builder.set_bolt("last", last).fields_grouping("words", "id").direct_grouping("words", stream=COORD_STREAM)
    step.fields_grouping("prepare", "request", stream="id")
    join = builder.set_bolt("join", JoinResult("prepare", "words"))
    join.fields_grouping("last", "id").fields_grouping("prepare", "request", stream="ret")
    builder.set_bolt("return", ReturnResults).none_grouping("join")
    return builder.build("hand")


@pytest.mark.parametrize("make", [linear, by_hand])
@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_a_program_in_a_fair_bolt_may_ask_where_its_tuples_went(mode, make):
    with LocalDRPC(mode, timeout_secs=LIMIT, seed=1) as drpc:
        drpc.submit(make(), conf=NEVER)
        futures = [drpc.start("words", text) for text in TEXTS]
        drpc.wait(futures)
        assert [future.result() for future in futures] == [str(len(text.split())) for text in TEXTS]


def test_a_batch_bolt_s_executor_takes_nothing_else():
    with pytest.raises(TopologyError, match=r"BatchBoltExecutor stands around a BatchBolt, not ShellBolt\("):
        BatchBoltExecutor(program())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a process with its parent")
def test_a_program_that_is_at_work_does_not_outlive_its_task(tmp_path):
    builder = LinearDRPCTopologyBuilder("words")
    note = tmp_path / "pid"
    stuck = [
        "sh",
        "-c",
        f"read a; read b; printf '{{\"pid\": 1}}\\nend\\n'; read c; echo $$ > {note}.part; mv {note}.part {note}; exec sleep 3600",
    ]
    builder.add_bolt(ShellBolt(stuck, output_fields=["id", "result"]))
    with LocalDRPC("process", timeout_secs=LIMIT) as drpc:
        run = drpc.submit(builder.build(), conf=NEVER)
        drpc.start("words", "a")
        run.wait(lambda _: note.exists(), LIMIT)
        pid = int(note.read_text())
        task = next(task for task in run.tasks if task.component == "bolt0")
        os.kill(task.pid, signal.SIGKILL)
        run.wait(lambda _: not is_at_work(pid), LIMIT)


def is_at_work(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
