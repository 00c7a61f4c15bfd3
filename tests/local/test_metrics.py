"""A component's own metrics are the same in each mode of the embedded cluster: in the log, the status and Prometheus."""

from __future__ import annotations

import json
import logging

import pytest

from multilang.engine.exposition import families
from multilang.engine.status import RunStatus
from multilang.local import LocalCluster
from tests.local import watched
from tests.patience import patient

MODES = ["process", "inprocess", "simulated"]


def reported(records):
    """Return what was added to each counter by component, in all reports together, and the last value of each gauge."""
    counted = {}
    for record in records:
        if record.getMessage().startswith("METRICS "):
            report = json.loads(record.getMessage().removeprefix("METRICS "))
            of = counted.setdefault(report["component"], {})
            for name, value in report["metrics"].items():
                if name == "taken":
                    of[name] = of.get(name, 0) + value["count"]
                else:
                    of[name] = value if name == "last" else of.get(name, 0) + value
    return counted


def test_they_are_the_same_in_each_mode(caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("MULTILANG_STATE_HOME", str(tmp_path))
    caplog.set_level(logging.INFO)
    found = []
    for mode in MODES:
        caplog.clear()
        with LocalCluster(mode) as cluster:
            run = cluster.submit(watched.counting, conf={"multilang.metrics.interval.secs": 0.05})
            run.wait(timeout=patient(60))
            run.run_for(0.1)  # of virtual time, too
            assert reported(caplog.records), f"nothing was reported after an interval in mode {mode}"
        status = run.status()
        assert RunStatus.from_json(json.loads(json.dumps(status.as_json()))).components == status.components
        own = {each.id: each.by_task[0].metrics for each in status.components if each.by_task}
        shown = {
            (sample.name, sample.labels["component"]): sample.value
            for family in families(status)
            for sample in family.samples
            if sample.labels.get("component") in ("counting", "state")
            and not sample.name.startswith(("multilang_task", "multilang_stream"))
        }
        found.append((reported(caplog.records), own, shown))
    assert found[0] == found[1] == found[2]
    logged, own, shown = found[0]
    total, n = sum(range(watched.TUPLES)), watched.TUPLES
    assert logged["counting"] == {"tuples": n, "sum": total, "last": n - 1, "taken": n}
    assert logged["state"] == {**logged["counting"], "begun": 1}
    assert {each.name: (each.kind, each.value, each.count) for each in own["counting"]} == {
        "tuples": ("counter", n, None),
        "sum": ("counter", total, None),
        "last": ("gauge", n - 1, None),
        "taken": ("timer", n / 2, n),
    }
    assert shown["multilang_sum_total", "state"] == total
    assert shown["multilang_taken_seconds_count", "counting"] == n


def test_a_run_in_one_process_frees_the_ports_of_its_metrics_at_its_end(caplog):
    pytest.importorskip("prometheus_client")
    caplog.set_level(logging.INFO)
    ports = []
    for _ in range(2):
        caplog.clear()
        with LocalCluster("inprocess") as cluster:
            port = ports[0] if ports else 0
            cluster.submit(watched.slow, conf={"multilang.metrics.prometheus.port": port}).run_for(0)
        at = [
            each.getMessage().split(":")[2] for each in caplog.records if "Prometheus metrics on" in each.getMessage()
        ]
        ports.append(min(int(each.partition("/")[0]) for each in at))
    assert ports[0] == ports[1]
