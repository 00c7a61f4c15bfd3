"""A topology as Nimbus takes it, and its reports as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from multilang import BasicBolt, Spout, Stream, TopologyBuilder
from multilang.shipping.contents import Contents
from multilang.shipping.errors import ShippingError
from multilang.shipping.jar import Shipment
from multilang.shipping.thrift_topology import check_thrift, storm_topology
from multilang.shipping.thrift_types import types
from multilang.shipping.topology_status import ALL_TIME, ComponentError, readable, topology_status, worth_showing
from multilang.shipping.wheels import WheelTarget
from multilang.topology import Topology
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
    made = struct(builder.build("it"))
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
    made = struct(builder.build("it"))

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
    def error(component: str, report: str, time: int) -> ComponentError:
        return ComponentError(component, "host:6700", time, report)

    errors = [error("b", PYTHON_REPORT, 1), error("b", JAVA_REPORT, 2), error("b", PYTHON_REPORT, 3)]
    assert worth_showing(errors) == [(errors[2], 2)]
    silent = error("c", JAVA_REPORT, 4)
    assert worth_showing([*errors, silent]) == [(errors[2], 2), (silent, 1)]


def test_a_dry_run_shows_conf_and_commands_and_asks_no_cluster(tmp_path: Path) -> None:
    shown = multilang(
        "submit", ROOT / "examples" / "word_count.py", "--dry-run", "-c", "topology.workers=3", HOME=str(tmp_path)
    )
    assert shown.returncode == 0, shown.stderr
    assert "  count: python3 run_topology.py\n" in shown.stdout
    assert "  topology.workers = 3\n" in shown.stdout
    assert "java.math.BigDecimal" in shown.stdout
    assert "multilang.direct.task.plain = false" in shown.stdout


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
