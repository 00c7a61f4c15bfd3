"""Steps in other languages: a program's emits are counted, its failures told, and it goes where the topology goes."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path
from random import Random

import pytest
import ujson

from multilang import ShellBolt, TopologyBuilder
from multilang.coordination import COORD_STREAM, SINGLE, BatchBoltExecutor, CoordinatedBolt, KeyedFairBolt
from multilang.drpc import (
    DRPCExecutionException,
    DRPCSpout,
    JoinResult,
    LinearDRPCTopologyBuilder,
    LocalDRPC,
    PrepareRequest,
    ReturnResults,
)
from multilang.topology import TopologyError, load_topology
from tests.cli.command import multilang
from tests.drpc.steps_elsewhere.topology import Longest, topology

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None and "CI" not in os.environ, reason="node is not on the PATH"
)
WHERE = "tests/drpc/steps_elsewhere/topology.py"


def drawn(rng, most):
    letters = "abcdeüñ—"
    return " ".join("".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(rng.randint(0, most)))


@pytest.mark.parametrize("mode", ["inprocess", "simulated", "process"])
def test_each_request_is_answered_from_all_that_the_program_emitted(mode):
    rng = Random(5)
    requests = ["", "ask", "ask ask moon", *(drawn(rng, 40) for _ in range(12))]
    with LocalDRPC(mode) as drpc:
        drpc.submit(topology)
        futures = [drpc.start("words", text) for text in requests]
        drpc.wait(futures)
        assert [ujson.loads(future.result()) for future in futures] == [sorted(text.split()) for text in requests]


@pytest.mark.parametrize("mode", ["inprocess", "process"])
def test_what_goes_wrong_with_the_program_is_reported_and_the_next_request_is_answered(mode):
    causes = {
        "fail": r"'words' failed in step 0 .*: a tuple of it was failed",
        "die": r"'words' failed in step 0 .*the program \['node', '.*words.js'\] died: the process exited with status 3",
        "garbage": r"'words' failed in step 0 .*the program .* died: .* is not JSON .*no JSON",
    }
    with LocalDRPC(mode) as drpc:
        run = drpc.submit(topology)
        for deaths, (text, cause) in enumerate(causes.items()):
            with pytest.raises(DRPCExecutionException, match=cause):
                drpc.execute("words", text)
            # What came to the task that ends meanwhile would time out.
            run.wait(lambda it, due=deaths: it.counters["bolt0"].restarts >= due and all(t.alive for t in it.tasks), 60)
            assert ujson.loads(drpc.execute("words", "moon sun")) == ["moon", "sun"]


def test_a_program_that_keeps_a_tuple_is_ended():
    builder = LinearDRPCTopologyBuilder("keeps")
    builder.add_bolt(
        ShellBolt(
            ["sh", "-c", "read a; read b; printf '{\"pid\": 1}\\nend\\n'; cat > /dev/null"],
            output_fields=["id", "result"],
        )
    )
    whole = builder.build(conf={"topology.subprocess.timeout.secs": 1})
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(whole)
        with pytest.raises(
            DRPCExecutionException, match=r"it did not ack or fail the tuple .*before it is given the next one, for 1 s"
        ):
            drpc.execute("keeps", "anything")


def test_a_program_is_a_bolt_that_is_coordinated_by_hand(tmp_path):
    script = Path("tests/drpc/steps_elsewhere/words.js").absolute()
    program = ShellBolt(["node", str(script)], output_fields=["id", "word", "length"])
    builder = TopologyBuilder()
    builder.set_spout("requests", DRPCSpout("hand"))
    builder.set_bolt("prepare", PrepareRequest).none_grouping("requests")
    builder.set_bolt("words", CoordinatedBolt(program), 2).shuffle_grouping("prepare")
    last = CoordinatedBolt(KeyedFairBolt(BatchBoltExecutor(Longest())), {"words": SINGLE}, id_stream=("prepare", "id"))
    step = (
        builder.set_bolt("last", last, 2).fields_grouping("words", "id").direct_grouping("words", stream=COORD_STREAM)
    )
    step.fields_grouping("prepare", "request", stream="id")
    join = builder.set_bolt("join", JoinResult("prepare", "hand"))
    join.fields_grouping("last", "id").fields_grouping("prepare", "request", stream="ret")
    builder.set_bolt("return", ReturnResults).none_grouping("join")
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(builder.build("hand"))
        assert ujson.loads(drpc.execute("hand", "b a c")) == ["a", "b", "c"]


def test_the_program_is_found_from_elsewhere_and_goes_into_the_jar(tmp_path, monkeypatch):
    jar = tmp_path / "words.jar"
    done = multilang("package", f"{WHERE}:topology", "-o", str(jar))
    assert done.returncode == 0, done.stderr
    assert "resources/words.js" in zipfile.ZipFile(jar).namelist()
    root = Path.cwd()
    monkeypatch.chdir(tmp_path)
    with LocalDRPC("inprocess") as drpc:
        drpc.submit(load_topology(os.fspath(root / WHERE)))
        assert ujson.loads(drpc.execute("words", "b a")) == ["a", "b"]


def test_what_can_not_be_is_refused_where_it_is_declared():
    builder = LinearDRPCTopologyBuilder("refused")
    builder.add_bolt(ShellBolt(["node", "x.js"], output_fields=["id", "result"], change_child_cwd=False))
    with pytest.raises(TopologyError, match=r"change_child_cwd=False.*leave it out"):
        builder.build()
    builder = LinearDRPCTopologyBuilder("missing")
    builder.add_bolt(ShellBolt(["node", "resources/missing.js"], output_fields=["id", "result"]))
    with pytest.raises(
        TopologyError, match=r"bolt 'bolt0': the command .* names 'resources/missing.js', but no such file"
    ):
        builder.build()
