"""Names, texts and errors of a cluster, a project or a component change nothing on the terminal that shows them."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from rich.table import Table
from rich.text import Text

from multilang.cli.output import HarmlessConsole
from multilang.settings import EDGES
from multilang.shipping.thrift_types import types
from tests.cli.command import COMMAND, ROOT, multilang
from tests.shipping.test_answers import answer_of, frame
from tests.shipping.test_nimbus import listening

if TYPE_CHECKING:
    from pathlib import Path

TITLE, COLOURS, C1, TURNED = "\x1b]0;owned\x07", "\x1b[2J\x1b[31m", "\x9b2J", "\u202e"
EVIL = f"a{TITLE}{COLOURS}{C1}{TURNED}\r\x08[bold red]b[/bold red][/x][link=http://e]c[/link]"
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def cluster() -> Any:
    storm = types()
    topology = storm.TopologySummary(
        id=EVIL, name=EVIL, status=EVIL, num_tasks=1, num_executors=1, num_workers=1, uptime_secs=1
    )
    nimbus = storm.NimbusSummary(host=EVIL, port=1, uptime_secs=1, isLeader=True, version=EVIL)
    return storm.ClusterSummary(supervisors=[], topologies=[topology], nimbuses=[nimbus])


def info() -> Any:
    storm = types()
    executor = storm.ExecutorSummary(
        executor_info=storm.ExecutorInfo(task_start=1, task_end=1), component_id=EVIL, host=EVIL, port=1, uptime_secs=1
    )
    error = storm.ErrorInfo(error=EVIL, error_time_secs=1, host=EVIL, port=1)
    return storm.TopologyInfo(
        id=EVIL, name=EVIL, uptime_secs=1, executors=[executor], status=EVIL, errors={EVIL: [error]}
    )


def structure() -> Any:
    storm = types()
    conf = json.dumps({"topology.tasks": EVIL, EDGES: {"out": {EVIL: {EVIL: {"type": "fields", "fields": [EVIL]}}}}})
    source = storm.GlobalStreamId(componentId=EVIL, streamId=EVIL)
    common = storm.ComponentCommon(
        inputs={source: storm.Grouping(fields=[EVIL])},
        streams={EVIL: storm.StreamInfo(output_fields=[EVIL], direct=False)},
        json_conf=conf,
    )
    shell = storm.ComponentObject(shell=storm.ShellComponent(execution_command=EVIL, script=EVIL))
    return storm.StormTopology(spouts={}, bolts={EVIL: storm.Bolt(bolt_object=shell, common=common)}, state_spouts={})


def hostile(wire: socket.socket) -> None:
    """Answer whatever is asked, until the client hangs up."""
    answers = {b"getTopologyInfo": info, b"getUserTopology": structure, b"getClusterInfo": cluster}
    while question := wire.recv(1 << 16):
        call, answer = next((each for each in answers.items() if each[0] in question), (b"getClusterInfo", cluster))
        wire.sendall(frame(answer_of(call.decode(), answer())))


@pytest.mark.parametrize("arguments", [("list",), ("status", EVIL), ("list", "--json"), ("status", EVIL, "--json")])
def test_what_a_cluster_says_is_shown_and_not_obeyed(arguments: tuple[str, ...]) -> None:
    with listening(hostile) as address:
        shown = multilang(*arguments, "--nimbus", str(address))
    assert shown.returncode == 0, shown.stderr
    assert not OBEYED.search(shown.stdout + shown.stderr)
    if "--json" in arguments:
        document = json.loads(shown.stdout)
        assert EVIL in (document.get("name"), *(each["name"] for each in document.get("topologies", ())))
    else:
        assert "[bold red]b[/bold red][/x]" in shown.stdout, "no text is taken for markup"
        assert r"\x1b]0;owned\x07" in shown.stdout


def test_what_a_cluster_says_is_not_obeyed_where_there_is_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with listening(hostile) as address, open(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [COMMAND, "list", "--nimbus", str(address)],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
        )
        os.close(theirs)
        said = b""
        try:
            while part := screen.read(1 << 16):
                said += part
        except OSError:
            pass  # the other end is closed
        assert process.wait() == 0
    assert b"owned" in said
    for each in (TITLE, "\x1b[2J", C1, TURNED, "\x08"):
        assert each.encode() not in said


def test_an_error_of_a_cluster_is_shown_and_not_obeyed() -> None:
    def refuse(wire: socket.socket) -> None:
        wire.recv(1 << 16)
        problem = types().AuthorizationException(msg=EVIL)
        answer = types().Nimbus.getClusterInfo_result(aze=problem)
        wire.sendall(frame(answer_of("getClusterInfo", None, answer)))

    with listening(refuse) as address:
        shown = multilang("list", "--nimbus", str(address))
    assert shown.returncode == 2
    assert r"\x1b]0;owned\x07" in shown.stderr
    assert not OBEYED.search(shown.stdout + shown.stderr)


def test_an_own_topology_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "exclamation.py").read_text()
    path = tmp_path / f"b{COLOURS}.py"
    path.write_text(text)
    for arguments in (("show", path), ("show", tmp_path / f"no{TITLE}.py"), ("package", path, "-o", tmp_path / "j")):
        shown = multilang(*arguments, cwd=tmp_path)
        assert not OBEYED.search(shown.stdout + shown.stderr)


@pytest.mark.parametrize("shown", [EVIL, Text(EVIL), "table"])
def test_a_console_keeps_its_own_colours_and_none_of_a_text(tmp_path: Path, shown: Any) -> None:
    if shown == "table":
        shown = Table(EVIL)
        shown.add_row(EVIL, Text("own", style="bold red"))
    with (tmp_path / "screen").open("w+") as file:
        console = HarmlessConsole(file=file, force_terminal=True, color_system="standard", width=300, highlight=False)
        console.print(shown, style="bold")
        file.seek(0)
        said = file.read()
    assert "\x1b[1" in said, "its own colours are there"
    for each in (TITLE, "\x1b[2J", "\x1b[31m", C1, TURNED, "\x08", "\r"):
        assert each not in said
    assert "[bold red]b[/bold red]" in said
