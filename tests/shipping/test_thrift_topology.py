"""A topology as Nimbus takes it, and its reports as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang import BasicBolt, Spout, Stream, TopologyBuilder
from multilang.engine.exposition import families
from multilang.engine.samples import Recorder
from multilang.engine.status import RunError, RunStatus, declared
from multilang.settings import EDGES, EXCHANGE
from multilang.shipping.contents import Contents
from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import Shipment
from multilang.shipping.thrift_topology import check_thrift, storm_topology
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import (
    ALL_TIME,
    component_error,
    component_errors,
    readable,
    started_again,
    topology_status,
)
from multilang.shipping.wheels import WheelTarget
from multilang.topology import Topology
from multilang.topology.groupings import Grouping
from tests.cli.command import ROOT, multilang


class Words(Spout):
    output_fields = ["word", "n"]
    output_streams = {"direct": Stream(["n"], direct=True)}

    def next_tuple(self) -> None:
        self.emit(["a", 1])


class Take(BasicBolt):
    pass


def struct(topology: Topology) -> Any:
    commands = dict.fromkeys(topology.components, ("python3", "run_topology.py"))
    return storm_topology(Shipment(topology, WheelTarget.of(None, None), Contents(), commands, []))


def test_components_have_two_words_streams_parallelism_and_conf() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words, parallelism=2, conf={"topology.max.spout.pending": 7})
    builder.set_bolt("take", Take, parallelism=2, tasks=5).shuffle_grouping("words")
    made = struct(builder.build("it", {"multilang.exchange": "tuple"}))
    spout, bolt = made.spouts["words"], made.bolts["take"]
    shell = spout.spout_object.shell
    assert (shell.execution_command, shell.script) == ("python3", "run_topology.py")
    streams = {name: (each.output_fields, each.direct) for name, each in spout.common.streams.items()}
    assert streams == {"default": (["word", "n"], False), "direct": (["n"], True)}
    assert spout.common.parallelism_hint == 2
    assert json.loads(spout.common.json_conf) == {"topology.max.spout.pending": 7}
    assert bolt.common.parallelism_hint == 2
    assert json.loads(bolt.common.json_conf) == {"topology.tasks": 5}


def test_every_grouping_has_its_struct() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    wanted = {
        "all": lambda bolt: bolt.all_grouping("words"),
        "direct": lambda bolt: bolt.direct_grouping("words", stream="direct"),
        "fields": lambda bolt: bolt.fields_grouping("words", "n", "word"),
        "global": lambda bolt: bolt.global_grouping("words"),
        "local_or_shuffle": lambda bolt: bolt.local_or_shuffle_grouping("words"),
        "none": lambda bolt: bolt.none_grouping("words"),
        "partial": lambda bolt: bolt.partial_key_grouping("words", "word"),
        "shuffle": lambda bolt: bolt.shuffle_grouping("words"),
    }
    for name, subscribe in wanted.items():
        subscribe(builder.set_bolt(name, Take))
    made = struct(builder.build("it", {"multilang.exchange": "tuple"}))

    def said(bolt: str) -> dict[str, Any]:
        ((source, grouping),) = made.bolts[bolt].common.inputs.items()
        assert source.componentId == "words"
        assert source.streamId == ("direct" if bolt == "direct" else "default")
        return {name: value for name, value in vars(grouping).items() if value is not None}

    assert said("fields") == {"fields": ["n", "word"]}
    assert said("global") == {"fields": []}
    for plain in ("all", "direct", "local_or_shuffle", "none", "shuffle"):
        assert list(said(plain)) == [plain]
    made_by = said("partial")["custom_object"]
    assert (made_by.full_class_name, made_by.args_list) == ("org.apache.storm.grouping.PartialKeyGrouping", [])


def test_what_thrift_cannot_say_is_refused() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("take", Take).partial_key_grouping("words", "n")
    with pytest.raises(ShippingError, match="the key is the stream's first field, which is 'word'"):
        check_thrift(builder.build("it"))


PYTHON_REPORT = """\
java.lang.Exception: Shell Process Exception: KeyError in component 'b' (task 2): 'x'
Traceback (most recent call last):
  File "/storm/supervisor/stormdist/it-1-17/resources/helping/broken.py", line 17, in process
    raise KeyError("x")
KeyError: 'x'

\tat org.apache.storm.task.ShellBolt.handleError(ShellBolt.java:232)
\tat org.apache.storm.task.ShellBolt$BoltReaderRunnable.run(ShellBolt.java:354)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
JAVA_REPORT = """\
java.lang.RuntimeException: java.lang.RuntimeException: pid:27702, name:b exitCode:-1, errorString:\x20
\tat org.apache.storm.utils.Utils$1.run(Utils.java:413)
Caused by: java.lang.RuntimeException: pid:27702, name:b exitCode:-1, errorString:\x20
\tat org.apache.storm.task.ShellBolt.die(ShellBolt.java:297)
\t... 1 more
Caused by: java.lang.RuntimeException: org.apache.storm.multilang.NoOutputException: Pipe to subprocess seems to be broken! No output read.
Serializer Exception:


\tat org.apache.storm.utils.ShellProcess.readShellMsg(ShellProcess.java:121)
\t... 1 more
"""
NO_PROGRAM_REPORT = """\
java.lang.RuntimeException: Error when launching multilang subprocess
\tat org.apache.storm.utils.ShellProcess.launch(ShellProcess.java:93)
Caused by: java.io.IOException: Cannot run program "python9" (in directory "/storm/it-1-17/resources"): error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
\t... 1 more
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
\t... 2 more
"""


def test_of_a_report_the_python_part_is_left() -> None:
    assert readable(PYTHON_REPORT).splitlines() == [
        "KeyError in component 'b' (task 2): 'x'",
        "Traceback (most recent call last):",
        '  File "helping/broken.py", line 17, in process',
        '    raise KeyError("x")',
        "KeyError: 'x'",
    ]
    assert readable(JAVA_REPORT).splitlines() == [
        "pid:27702, name:b exitCode:-1, errorString: ",
        "Pipe to subprocess seems to be broken! No output read.",
        "Serializer Exception:",
    ]
    assert readable(NO_PROGRAM_REPORT).splitlines() == [
        "Error when launching multilang subprocess",
        'Cannot run program "python9" (in directory "/storm/it-1-17/resources"): error=2, No such file or directory',
    ]


def test_an_error_is_shown_once_and_its_consequence_only_where_it_is_all_there_is() -> None:
    def error(component: str, report: str, time: int) -> RunError:
        return component_error(component, "host:6700", time, report)

    counted = PYTHON_REPORT.split("\nTraceback")[0] + " (as before, 13 times more in 16.0 s; 14 times in all)"
    errors = [error("b", PYTHON_REPORT, 3), error("b", PYTHON_REPORT, 1), error("b", JAVA_REPORT, 2)]
    (found,) = component_errors(errors)
    assert (found.message, found.task, found.times, found.first_time, found.time) == (errors[0].message, 2, 2, 1, 3)
    (found,) = component_errors([*errors, error("b", counted, 9)])
    assert (found.message, found.times, found.first_time, found.time) == (errors[0].message, 15, 1, 9)
    again = [error("c", JAVA_REPORT.replace("27702", str(pid)), pid) for pid in (4, 5)]  # of one process after another
    assert [(each.component, each.times) for each in component_errors([*errors, *again])] == [("b", 2), ("c", 2)]


def test_a_dry_run_shows_conf_and_commands_and_asks_no_cluster(tmp_path: Path) -> None:
    shown = multilang(
        "submit", ROOT / "examples" / "word_count.py", "--dry-run", "-c", "topology.workers=3", HOME=str(tmp_path)
    )
    assert shown.returncode == 0, shown.stderr
    assert "  count: python3 run_topology.py\n" in shown.stdout
    assert "  topology.workers = 3\n" in shown.stdout
    assert "java.math.BigDecimal" in shown.stdout
    assert "topology.subprocess.timeout.secs = 60" in shown.stdout


@pytest.mark.parametrize("name", ["a/b", "two words", "wört", "a+b", "*"])  # a supervisor loses the files of the second
def test_a_name_that_storm_takes_not_is_refused_before_anything_is_asked(name: str) -> None:
    shown = multilang("submit", ROOT / "examples" / "word_count.py", "--name", name, "--nimbus", "localhost:1")
    assert shown.returncode == 2
    assert f"Storm takes no topology called {name!r}" in shown.stderr


def test_ackers_are_shown_with_their_own_messages_and_others_without_storm_s() -> None:
    thrift = types()

    def executor(component: str, task: int, emitted: dict[str, int], inputs: dict[tuple[str, str], int]) -> Any:
        by_input = {thrift.GlobalStreamId(componentId=id, streamId=name): n for (id, name), n in inputs.items()}
        bolt = thrift.BoltStats(acked={ALL_TIME: by_input}, failed={ALL_TIME: {}}, executed={})
        stats = thrift.ExecutorStats(
            emitted={ALL_TIME: emitted}, transferred={}, specific=thrift.ExecutorSpecificStats(bolt=bolt)
        )
        info = thrift.ExecutorInfo(task_start=task, task_end=task)
        return thrift.ExecutorSummary(
            executor_info=info, component_id=component, host="a", port=1, uptime_secs=9, stats=stats
        )

    own = {"default": 7, "__ack_ack": 20, "__metrics": 3}
    inputs = {("words", "default"): 20, ("__system", "__tick"): 4}
    heard = {("words", "__ack_init"): 10, ("shout", "__ack_ack"): 20, ("__system", "__tick"): 4}
    executors = [
        executor("__acker", 1, {"__ack_ack": 9, "__ack_fail": 1, "__metrics": 3}, heard),
        executor("__acker", 2, {"__ack_ack": 5}, {("words", "__ack_init"): 5}),
        executor("shout", 3, own, inputs),
    ]
    info = thrift.TopologyInfo(id="t-1", name="t", uptime_secs=9, executors=executors, status="ACTIVE", errors={})
    shout, acker = topology_status(info).components
    assert (shout.id, shout.emitted, shout.acked) == ("shout", 7, 20)
    assert (acker.id, acker.tasks, acker.emitted, acker.acked, acker.failed) == ("__acker", 2, 15, 35, 0)


@pytest.mark.parametrize(
    ("state", "seconds", "uptimes", "young"),
    [
        ("ACTIVE", 500, (500, 3), 1),
        ("ACTIVE", 500, (0, 0), 2),
        ("ACTIVE", 500, (400, 60), 0),  # some time ago a worker was started again, or tasks were moved
        ("ACTIVE", 40, (0, 30), 0),  # it is only just starting
        ("INACTIVE", 500, (0, 3), 0),
    ],
)
def test_executors_that_are_started_again_and_again_are_told(
    state: str, seconds: int, uptimes: tuple[int, ...], young: int
) -> None:
    thrift = types()
    executors = [
        thrift.ExecutorSummary(
            executor_info=thrift.ExecutorInfo(task_start=task, task_end=task),
            component_id="count",
            host="a",
            port=6700,
            uptime_secs=uptime,
        )
        for task, uptime in enumerate(uptimes)
    ]
    info = thrift.TopologyInfo(id="t-1", name="t", uptime_secs=seconds, executors=executors, status=state, errors={})
    said = started_again(topology_status(info))
    assert said.startswith(f"{young} of 2 executors" if young else "")
    assert bool(said) == bool(young)


GROUPINGS = [("shuffle", []), ("fields", ["word"]), ("all", []), ("global", []), ("none", []), ("local_or_shuffle", [])]


class Split(BasicBolt):
    output_fields = ["word"]
    output_streams = {"long": ["word"]}


@pytest.mark.parametrize("both", [False, True])
def test_what_travels_in_blocks_is_shown_on_the_streams_that_are_declared(both: bool) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("split", Split, parallelism=2).fields_grouping("words", ["word"])
    taker = builder.set_bolt("take", Take).all_grouping("split", stream="long")
    if both:
        taker.shuffle_grouping("split")
    topology = builder.build("t").with_conf({EXCHANGE: "block"})
    thrift, structure = types(), struct(topology)
    assert "$blocks" in structure.bolts["split"].common.streams

    def executor(component: str, task: int, specific: Any) -> Any:
        return thrift.ExecutorSummary(
            executor_info=thrift.ExecutorInfo(task_start=task, task_end=task),
            component_id=component,
            host="a",
            port=6700,
            uptime_secs=9,
            stats=thrift.ExecutorStats(emitted={ALL_TIME: {"$blocks": 4}}, transferred={}, specific=specific),
        )

    def bolt(source: str) -> Any:
        counts, none = {ALL_TIME: {thrift.GlobalStreamId(source, "$blocks"): 4}}, {ALL_TIME: {}}
        return thrift.ExecutorSpecificStats(
            bolt=thrift.BoltStats(acked=counts, failed=none, process_ms_avg=none, executed=counts, execute_ms_avg=none)
        )

    info = thrift.TopologyInfo(id="t-1", name="t", uptime_secs=9, executors=[], status="ACTIVE", errors={})
    before = topology_status(info, structure=structure)
    of = topology.components
    assert {each.id: (each.kind, each.tasks, each.up) for each in before.components} == {
        id: (spec.kind, spec.tasks, 0) for id, spec in of.items()
    }
    info.executors = [
        executor("split", 1, bolt("words")),
        executor("split", 2, bolt("words")),
        executor("take", 3, bolt("split")),
    ]
    status = topology_status(info, structure=structure)
    assert status.notes[0].startswith("split and take: tuples travel in blocks")
    assert [(each.stream, each.grouping, each.executed) for each in status["split"].inputs] == [
        ("default", "fields (word)", 8)
    ]
    # Of two streams, nobody knows whose blocks they were.
    assert {(each.stream, each.grouping, each.executed) for each in status["take"].inputs} == (
        {("long", "all", None), ("default", "shuffle", None)} if both else {("long", "all", 4)}
    )
    assert {each.name: each.emitted for each in status["split"].streams} == (
        {"default": None, "long": None} if both else {"default": 0, "long": 8}
    )
    for shown in (before, status, topology_status(info)):
        assert "$blocks" not in json.dumps(shown.as_json())
        assert all("$blocks" not in str(family) for family in families(shown))


@pytest.mark.parametrize(
    "conf",
    [
        "[]",
        "{",
        '{"topology.tasks": "two"}',
        f'{{"{EDGES}": 1}}',
        f'{{"{EDGES}": {{"out": {{"a": {{"gone": {{"type": "all"}}}}}}}}}}',
        f'{{"{EDGES}": {{"out": {{"a": {{"take": {{"type": "odd"}}}}}}}}}}',
    ],
)
def test_a_topology_that_another_client_submitted_is_shown(conf: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("take", Take, parallelism=3).shuffle_grouping("words")
    structure = struct(builder.build("t", {EXCHANGE: "tuple"}))
    structure.bolts["take"].common.json_conf = conf
    info = types().TopologyInfo(id="t-1", name="t", uptime_secs=9, executors=[], status="ACTIVE", errors={})
    status = topology_status(info, structure=structure)
    assert {each.id: each.tasks for each in status.components} == {"words": 1, "take": 3}
    assert [(each.component, each.grouping) for each in status["take"].inputs] == [("words", "shuffle")]


@given(st.data())
def test_what_a_subscription_says_is_what_the_embedded_cluster_says(data: st.DataObject) -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", Words)
    builder.set_bolt("split", Split).shuffle_grouping("words")
    taker = builder.set_bolt("take", Take)
    for source, stream in (("words", "default"), ("split", "default"), ("split", "long")):
        kind, fields = data.draw(st.sampled_from(GROUPINGS))
        taker.grouping(source, Grouping(kind, fields), stream=stream)
    topology = builder.build("t").with_conf({EXCHANGE: data.draw(st.sampled_from(["tuple", "root", "block"]))})
    info = types().TopologyInfo(id="t-1", name="t", uptime_secs=9, executors=[], status="ACTIVE", errors={})
    status = topology_status(info, structure=struct(topology))
    for id, spec in topology.components.items():
        here, there = declared(spec), status[id]
        assert {each.name: each.fields for each in here["streams"]} == {
            each.name: each.fields for each in there.streams
        }
        assert set(here["inputs"]) == set(there.inputs)


def test_rates_and_latencies_are_storm_s_and_what_it_can_not_know_of_a_process_is_unknown() -> None:
    thrift = types()
    words, default, ack = thrift.GlobalStreamId("words", "default"), {"default": 1200}, "__ack_ack"

    def windows(now: Any, ever: Any) -> dict[str, Any]:
        return {"600": now, ALL_TIME: ever}

    def executor(component: str, tasks: tuple[int, int], stats: Any, uptime: int = 1000) -> Any:
        return thrift.ExecutorSummary(
            executor_info=thrift.ExecutorInfo(task_start=tasks[0], task_end=tasks[1]),
            component_id=component,
            host="a",
            port=6700 + tasks[0] % 2,
            uptime_secs=uptime,
            stats=stats,
        )

    def spout(acked: int, ms: float) -> Any:
        of = thrift.SpoutStats(
            acked=windows({"default": acked}, {"default": 2 * acked}),
            failed=windows({}, {"default": 1}),
            complete_ms_avg=windows({"default": ms}, {"default": ms}),
        )
        return thrift.ExecutorStats(
            emitted=windows(default, {"default": 2400, "__metrics": 9}),
            transferred=windows({}, default),
            specific=thrift.ExecutorSpecificStats(spout=of),
        )

    def bolt(source: Any, executed: int, ms: float) -> Any:
        counts = windows({source: executed}, {source: 2 * executed})
        of = thrift.BoltStats(
            acked=counts,
            failed=windows({}, {}),
            executed=counts,
            process_ms_avg=windows({source: ms}, {source: ms}),
            execute_ms_avg=windows({source: ms}, {source: ms}),
        )
        return thrift.ExecutorStats(
            emitted=windows({}, {}), transferred=windows({}, {}), specific=thrift.ExecutorSpecificStats(bolt=of)
        )

    executors = [
        executor("words", (1, 1), spout(600, 10.0)),
        executor("words", (2, 3), spout(1200, 40.0), uptime=300),
        executor("count", (4, 4), bolt(words, 1200, 2.0)),
        executor("late", (5, 6), None, uptime=0),
        executor("__acker", (7, 7), bolt(thrift.GlobalStreamId("words", ack), 3000, 0.1)),
    ]
    info = thrift.TopologyInfo(id="t-1", name="t", uptime_secs=1000, executors=executors, status="ACTIVE", errors={})
    status = topology_status(info)
    assert (status.engine, status.state, status.seconds, status.window_secs) == ("storm", "active", 1000.0, 600.0)
    assert (status.workers, status.missing, status.waiting_for, status.checkpoint) == (2, ["late"], None, None)

    found = status["words"]
    assert (found.kind, found.tasks, found.executors, found.up) == ("spout", 3, 2, 2)
    assert (found.emitted, found.acked, found.failed) == (4800, 3600, 2)
    assert found.rate == 600 / 600 + 1200 / 300  # an executor that is younger than the window has had less of it
    assert found.complete_latency_ms == (1200 * 10.0 + 2400 * 40.0) / 3600
    assert [(each.id, each.through, each.where, each.acked) for each in found.by_task] == [
        (1, 1, "a:6701", 1200),
        (2, 3, "a:6700", 2400),
    ]
    assert [(each.name, each.emitted, each.transferred) for each in found.streams] == [("default", 4800, 2400)]

    counted = status["count"]
    assert (counted.executed, counted.rate, counted.process_latency_ms) == (2400, 2.0, 2.0)
    assert [(each.component, each.stream, each.executed) for each in counted.inputs] == [("words", "default", 2400)]
    # Storm sees how long its JVM takes to hand a tuple over, and not the process that works on it.
    assert (counted.capacity, counted.execute_latency_ms, counted.busy_secs) == (None, None, None)
    assert (counted.pending, counted.unfinished, counted.lost, counted.errors) == (None,) * 4
    acker = status["__acker"]
    assert (acker.capacity, acker.execute_latency_ms) == (pytest.approx(3000 * 0.1 / 1000 / 600), 0.1)

    late = status["late"]
    assert (late.kind, late.up, late.emitted, late.acked, late.rate) == ("", 0, None, None, None)
    assert RunStatus.from_json(json.loads(json.dumps(status.as_json()))) == status

    recorder = Recorder(start=None)
    topology_status(info, recorder)
    info.uptime_secs += 10
    assert topology_status(info, recorder).history.components["count"].rate == (0.0,)
