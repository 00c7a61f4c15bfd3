"""A cluster sees a component's log, errors and metrics, and a component gets the cluster's messages."""

from __future__ import annotations

import json
import queue
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from multilang.engine.status import RunStatus
from multilang.shipping import pack
from multilang.shipping.conf import storm_conf
from multilang.shipping.thrift_topology import storm_topology
from multilang.shipping.thrift_types import types
from multilang.topology import load_topology
from tests.cli.command import COMMAND, multilang
from tests.storm.conftest import LIMIT, SHIPPED, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from multilang.shipping.cluster import Cluster
    from multilang.shipping.nimbus import Nimbus


def check_followed(name: str, at: tuple[str, ...]) -> None:
    """Read the log as it grows: what the spout's activation logs is there without a new command."""
    command = [COMMAND, "logs", name, "-f", "-n", "0", "--storm", "--grep", "ctivating spout", *at]
    following = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert following.stdout is not None
        with following.stdout as output:
            for line in output:
                lines.put(line)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        said: set[str] = set()
        deadline = time.monotonic() + LIMIT
        while len(said) < 2 and time.monotonic() < deadline:  # it may not read yet when the spout is switched first
            for order in ("deactivate", "activate"):
                assert multilang(order, name, *at).returncode == 0
            with suppress(queue.Empty):
                while len(said) < 2:
                    said.update(re.findall(r"(?:Dea|A)ctivating spout pulse", lines.get(timeout=10)))
        assert said == {"Deactivating spout pulse", "Activating spout pulse"}
        following.send_signal(signal.SIGINT)
        assert following.wait(LIMIT) == 130
    finally:
        following.kill()
        following.wait()
        reader.join(LIMIT)


METRICS_BOLT = "org.apache.storm.testing.PythonShellMetricsBolt"  # Storm's own; registers one metric
METRIC = re.compile(r"my-custom-shell-metric\s+(\d+)\s*$", re.M)


@pytest.fixture
def observed(storm: Cluster, nimbus: Nimbus, tmp_path: Path) -> str:
    """The topology's name; its bolt runs under Storm's PythonShellMetricsBolt in the place of ShellBolt."""
    conf = {
        "test.folder": str(tmp_path),
        "topology.metrics.consumer.register": [
            {"class": "org.apache.storm.metric.LoggingMetricsConsumer", "parallelism.hint": 1}
        ],
    }
    shipment = pack(load_topology(str(SHIPPED / "observed.py")).with_conf(conf, "observed"))
    structure = storm_topology(shipment)
    thrift = types()
    structure.bolts["watched"].bolt_object = thrift.ComponentObject(
        java_object=thrift.JavaObject(
            full_class_name=METRICS_BOLT,
            args_list=[thrift.JavaObjectArg(string_arg=word) for word in shipment.commands["watched"]],
        )
    )
    nimbus.call(
        "submitTopologyWithOpts",
        *("observed", nimbus.upload(shipment.jar()), json.dumps(storm_conf(shipment.topology)), structure),
        thrift.SubmitOptions(initial_status=thrift.TopologyInitialStatus.ACTIVE),
    )
    return "observed"


def test_logs_errors_metrics_ticks_and_being_switched_off_and_on(
    storm: Cluster, nimbus: Nimbus, observed: str, tmp_path: Path
) -> None:
    at = ("--nimbus", storm.address)

    def bolt() -> tuple[str, str, int, int]:
        """Return the source of ticks, how many came, and how many tuples."""
        component, stream, ticks, seen = (tmp_path / "bolt").read_text().split()
        return component, stream, int(ticks), int(seen)

    def spout() -> list[str]:
        """Return what the spout was told, in order, without repetitions in a row."""
        return [word for word, _ in groupby((tmp_path / "spout").read_text().split())]

    wait_for(lambda: (tmp_path / "bolt").exists() and bolt()[3] > 0, "the bolt has seen a tuple and then a tick")
    assert bolt()[:2] == ("__system", "__tick")

    assert multilang("deactivate", observed, *at).returncode == 0
    wait_for(lambda: spout()[-1] == "deactivate", "the spout is told that it is deactivated")
    ticks = bolt()[2]
    wait_for(lambda: bolt()[2] > ticks + 2, "time passes")
    assert spout() == ["activate", "next", "deactivate"]

    seen = bolt()[3]
    [log] = storm.logs.glob(f"workers-artifacts/{observed}-*/*/worker.log")
    wait_for(lambda: sum(map(int, METRIC.findall(log.read_text()))) == seen, "Storm's metric has counted every tuple")

    assert multilang("activate", observed, *at).returncode == 0
    wait_for(lambda: bolt()[3] > seen, "tuples come again")
    assert spout() == ["activate", "next", "deactivate", "activate", "next"]

    written = log.read_text()
    for level in ("info", "warn", "error"):
        assert re.search(rf"\[{level.upper()}\] .*this is {level}$", written, re.M)
    assert "this is trace" not in written  # Storm's own configuration keeps what is at least info
    assert "this is debug" not in written
    assert re.search(r"\[WARN\] .*from a logger$", written, re.M)
    assert re.search(r"\[INFO\] .*printed$", written, re.M)

    shown = multilang("logs", observed, "--component", "watched", "-n", 1000, *at)
    lines = shown.stdout.splitlines()
    assert any(re.search(r"WARN  watched this is warn$", line) for line in lines), shown.stdout + shown.stderr
    assert any(re.search(r"ERROR watched this is error$", line) for line in lines)
    assert not any(" pulse " in line or "Async loop" in line for line in lines)
    found = multilang("logs", observed, "--level", "warning", "--grep", "from a l.gger", *at).stdout
    assert re.fullmatch(r"\S+ WARN  watched .*from a logger\n", found), found
    check_followed(observed, at)
    shown = multilang("logs", observed, "--raw", "--component", "watched", "-n", 1000, *at)
    assert re.search(r"^==> 127.0.0.1:\d+ \(.*watched.*\) <==$", shown.stdout, re.M), shown.stderr
    assert "this is warn" in shown.stdout
    assert "this is warn" in multilang("logs", observed, "-n", 1000, "--folder", storm.logs).stdout
    assert multilang("logs", observed, "--raw", "-n", 2, *at).stdout.count("\n") == 3
    nobody = multilang("logs", observed, "--component", "nobody", *at)
    assert nobody.returncode == 2
    assert "runs a component 'nobody'; there are pulse, watched" in nobody.stderr

    wait_for(lambda: nimbus.status(observed)["watched"].kind == "bolt", "Nimbus has figures of the bolt")
    wait_for(
        lambda: None not in [nimbus.status(observed)[id].capacity for id in ("pulse", "watched")],
        "the processes have reported how busy they are, which Storm can't know",
    )
    found = nimbus.status(observed)
    assert (found.engine, found.state, found["watched"].up) == ("storm", "active", 1)
    assert all(0 <= found[id].capacity < 1 for id in ("pulse", "watched"))
    [metric] = found["watched"].by_task[0].metrics
    assert (metric.name, metric.value > 0) == ("my-custom-shell-metric", True)
    assert "TASK" not in multilang("logs", observed, "-n", 1000, *at).stdout
    document = json.loads(multilang("status", observed, "--json", *at).stdout)
    assert RunStatus.from_json(document)["watched"].by_task[0].where == found["watched"].by_task[0].where
    assert (document["status"], document["name"], document["least_uptime"] > 0) == ("ACTIVE", observed, True)
    [error] = found.errors
    assert (error.component, error.message) == ("watched", "nothing serious\nbut for two lines")
    assert "nothing serious" in multilang("status", observed, *at).stderr
