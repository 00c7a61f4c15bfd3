"""Counters, gauges and timers, and the three ways they go out."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from multilang.protocol.messages import Log

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

COUNTING = """
class Part(BasicBolt):
    def process(self, tup):
        self.metrics.counter("tuples").inc()
        self.metrics.counter("bytes").inc(len(tup[0]))
        self.metrics.gauge("last").set(len(tup[0]))
        with self.metrics.timer("work"):
            pass
        self.metrics.timer("fixed").record(0.5)
"""


def reports(child: Child) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("METRICS ")) for line in child.logged(2) if line.startswith("METRICS ")]


def test_metrics_are_summed_and_reported_at_the_end_as_one_structured_line(start: Starter) -> None:
    child = start(COUNTING)
    for value in ("a", "bb", "ccc"):
        child.give(value)
    child.until(lambda: len(child.acked) == 3)
    child.close_input()
    child.ended(0)
    (report,) = reports(child)
    work = report["metrics"].pop("work")
    assert report == {
        "component": "part",
        "task": "4",
        "metrics": {
            "tuples": 3,
            "bytes": 6,
            "last": 3,
            "fixed": {"count": 3, "sum": 1.5, "min": 0.5, "max": 0.5},
        },
    }
    assert work["count"] == 3
    assert 0 <= work["min"] <= work["max"] <= work["sum"]
    assert child.metrics == []


def test_the_interval_reports_what_was_added_in_it_and_only_registered_names_by_the_command(start: Starter) -> None:
    conf = {"multilang.metrics.interval.secs": 0.2, "multilang.metrics.registered": ["tuples", "fixed", "unused"]}
    child = start(COUNTING, conf)
    child.give("a")
    child.until(lambda: reports(child))
    child.give("b")
    child.give("c")
    child.until(lambda: sum(report["metrics"].get("tuples", 0) for report in reports(child)) == 3)
    assert sum(value for name, value in child.metrics if name == "tuples") == 3
    assert {name for name, _ in child.metrics} == {"tuples", "fixed"}
    assert child.metrics[1][1]["sum"] == 0.5 * child.metrics[1][1]["count"]


def test_report_metric_goes_straight_to_the_command(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                self.report_metric("direct", {"any": [1]})
                try:
                    self.report_metric("direct", {1, 2})
                except Exception as error:
                    self.log(error)
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert child.metrics == [("direct", {"any": [1]})]
    assert "the metric 'direct'" in child.log_text


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "2**70", "{1}", "'\\ud800'"])
def test_a_value_that_cannot_be_sent_is_said_and_stops_nothing(start: Starter, value: str) -> None:
    child = start(f"""
        class Part(BasicBolt):
            def process(self, tup):
                self.metrics.gauge("odd").set({value})
                self.metrics.counter("n").inc()
        """, {"multilang.metrics.interval.secs": 0.1, "multilang.metrics.registered": ["odd", "n"]})  # fmt: skip
    child.give("x")
    child.until(lambda: reports(child))
    child.give("y")
    child.until(lambda: len(reports(child)) > 1)
    assert "'odd' can't be reported" in "\n".join(child.logged(3))
    assert {name for name, _ in child.metrics} == {"n"}


def test_misuse_is_said_clearly(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                for misuse in (lambda: self.metrics.counter("a").inc(-1), lambda: self.metrics.gauge("a")):
                    try:
                        misuse()
                    except ValueError as error:
                        self.log(error)
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert child.all(Log)[:2] == [
        Log("a counter only goes up; use a gauge for inc(-1)"),
        Log("the metric 'a' is a counter, not a gauge"),
    ]


def endpoint(child: Child) -> str:
    child.until(lambda: "Prometheus metrics on" in child.log_text)
    (url,) = (line.rpartition(" ")[2] for line in child.logged() if "Prometheus metrics on" in line)
    return url


def read(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def test_a_prometheus_endpoint_serves_totals_on_loopback_from_the_start(start: Starter) -> None:
    pytest.importorskip("prometheus_client")
    conf = {"multilang.metrics.prometheus.port": 0, "multilang.metrics.interval.secs": 0.1}
    child = start(COUNTING, conf).started()
    url = endpoint(child)
    assert url.startswith("http://127.0.0.1:")
    assert read(url) == {}
    child.give("a")
    child.give("bb")
    child.until(lambda: len(reports(child)) >= 1 and len(child.acked) == 2)
    labels = '{component="part",task="4"}'
    figures = read(url)
    assert figures["multilang_tuples_total" + labels] == 2  # the total, whatever was reported meanwhile
    assert figures["multilang_bytes_total" + labels] == 3
    assert figures["multilang_last" + labels] == 2
    assert figures["multilang_fixed_seconds_sum" + labels] == 1.0
    assert figures["multilang_fixed_seconds_count" + labels] == 2
    child.close_input()
    child.ended(0)


def test_tasks_on_one_machine_take_ports_one_after_the_other(start: Starter) -> None:
    pytest.importorskip("prometheus_client")
    first = start(COUNTING, {"multilang.metrics.prometheus.port": 0})
    port = int(endpoint(first).split(":")[2].split("/")[0])
    second = start(COUNTING, {"multilang.metrics.prometheus.port": port})
    assert int(endpoint(second).split(":")[2].split("/")[0]) in range(port + 1, port + 100)
