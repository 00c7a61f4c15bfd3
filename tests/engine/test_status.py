"""The status' JSON document, and what Prometheus reads of it."""

from __future__ import annotations

import json
import random
import urllib.request
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multilang.engine.status import (
    CheckpointStatus,
    ComponentStatus,
    Figures,
    History,
    InputStatus,
    RunError,
    RunStatus,
    Series,
    StreamStatus,
    TaskStatus,
)

TEXTS = ("", "count", "wört", 'a "b"', "two\nlines", "\\", "日本")
SEEDS = st.integers(0, 2**32)


class _Drawing:
    """A status with every figure drawn from a seed; hypothesis itself would draw the hundreds of them too slowly."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, value):
        return value if self.random.random() < 0.7 else None

    def count(self):
        return self.maybe(self.random.choice([0, 1, 20, self.random.randrange(2**53)]))

    def secs(self):
        return self.maybe(self.random.choice([0.0, 0.1, self.random.random() * 1e6]))

    def share(self):
        return self.maybe(self.random.choice([0.0, 1.0, self.random.random()]))

    def text(self):
        return self.random.choice(TEXTS)

    def few(self, draw):
        return tuple(draw() for _ in range(self.random.randrange(4)))

    def figures(self):
        floats = {"execute_latency_ms", "process_latency_ms", "complete_latency_ms", "busy_secs", "rate"}
        floats |= {"latency_p50_ms", "latency_p99_ms"}
        names = [each.name for each in fields(Figures)]
        return {
            name: self.share() if name == "capacity" else self.secs() if name in floats else self.count()
            for name in names
        }

    def component(self, number):
        return ComponentStatus(
            id=f"{number}{self.text()}",
            kind=self.random.choice(["spout", "bolt", ""]),
            tasks=3,
            executors=self.count(),
            up=self.count(),
            inputs=self.few(
                lambda: InputStatus(
                    component=self.text(), stream=self.text(), grouping=self.maybe(self.text()), executed=self.count()
                )
            ),
            streams=tuple(
                StreamStatus(
                    name=f"{place}{self.text()}",
                    fields=self.maybe(self.few(self.text)),
                    emitted=self.count(),
                    transferred=self.count(),
                )
                for place in range(self.random.randrange(3))
            ),
            by_task=tuple(
                TaskStatus(
                    id=10 * place,
                    through=10 * place + self.random.randrange(2),
                    alive=self.maybe(True),
                    where=self.maybe(self.text()),
                    uptime_secs=self.secs(),
                    **self.figures(),
                )
                for place in range(self.random.randrange(3))
            ),
            **self.figures(),
        )

    def error(self):
        return RunError(
            component=self.text(),
            message=self.text(),
            task=self.count(),
            fatal=self.maybe(False),
            at=self.secs(),
            time=self.count(),
            where=self.maybe(self.text()),
            times=2,
            report=self.maybe(self.text()),
        )

    def series(self):
        return Series(
            rate=self.few(self.secs),
            failed=self.few(self.count),
            pending=self.few(self.count),
            latency_ms=self.few(self.secs),
            capacity=self.few(self.share),
        )

    def status(self):
        return RunStatus(
            topology=self.text(),
            engine="storm",
            state="active",
            seconds=self.random.random(),
            window_secs=self.secs(),
            id=self.maybe(self.text()),
            workers=self.count(),
            components=tuple(map(self.component, range(self.random.randrange(4)))),
            waiting_for=self.maybe(self.few(self.text)),
            errors=self.few(self.error),
            checkpoint=self.maybe(CheckpointStatus(number=3, age_secs=self.secs(), seconds=self.secs())),
            history=History(at=self.few(self.random.random), components={"a": self.series(), "b": self.series()}),
        )


@given(SEEDS)
def test_a_status_comes_back_from_its_json_document(seed):
    status = _Drawing(seed).status()
    document = json.loads(json.dumps(status.as_json()))
    assert document["version"] == 1
    assert RunStatus.from_json(document) == status


def test_keys_of_a_later_release_are_passed_over_and_another_version_is_refused():
    status = RunStatus(
        topology="t",
        engine="process",
        state="active",
        seconds=1.0,
        components=(ComponentStatus(id="a", kind="bolt", tasks=1),),
    )
    document = status.as_json()
    document["more"] = document["components"][0]["more"] = 1
    assert RunStatus.from_json(document) == status
    with pytest.raises(ValueError, match=r"of version 2, and this is version 1: read it with the release"):
        RunStatus.from_json({**document, "version": 2})


def test_a_component_that_is_not_there_is_named():
    status = RunStatus(
        topology="t",
        engine="process",
        state="active",
        seconds=1.0,
        components=(ComponentStatus(id="count", kind="bolt", tasks=1),),
    )
    with pytest.raises(KeyError, match=r"topology 't' has no component 'cuont'.*'count'"):
        status["cuont"]


def exposed(status):
    """Return what Prometheus' own parser reads: (name, labels) -> value."""
    prometheus = pytest.importorskip("prometheus_client")
    parser = pytest.importorskip("prometheus_client.parser")
    from multilang.engine.exposition import families

    class Collector:
        def collect(self):
            return families(status)

    registry = prometheus.CollectorRegistry()
    registry.register(Collector())
    text = prometheus.generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(SEEDS)
def test_prometheus_reads_every_figure_that_is_known_and_no_other(seed):
    status = _Drawing(seed).status()
    found = exposed(status)
    names = {"emitted": "emitted_total", "acked": "acked_total", "busy_secs": "busy_seconds_total", "pending": "pending", "capacity": "capacity_ratio"}  # fmt: skip
    for figure, name in names.items():
        due = {}
        for each in status.components:
            for task in each.by_task or [each]:
                if getattr(task, figure) is not None:
                    place = "" if task is each else str(task.id) if task.id == task.through else f"{task.id}-{task.through}"  # fmt: skip
                    labels = {"topology": status.topology, "component": each.id, "kind": each.kind, "task": place}
                    due[tuple(sorted(labels.items()))] = getattr(task, figure)
        read = {labels: value for (at, labels), value in found.items() if at == f"multilang_task_{name}"}
        assert read == pytest.approx(due)
    assert found["multilang_run_uptime_seconds", (("topology", status.topology),)] == pytest.approx(status.seconds)


def test_an_endpoint_serves_the_last_status_and_ends():
    pytest.importorskip("prometheus_client")
    from multilang.engine.exposition import serve_status

    last = []
    endpoint = serve_status(lambda: last[-1] if last else None, 0)
    try:
        assert endpoint.url.startswith("http://127.0.0.1:")
        assert read(endpoint.url) == []
        numbers = ComponentStatus(id="numbers", kind="spout", tasks=1, emitted=41, complete_latency_ms=1500.0)
        last.append(RunStatus(topology="t", engine="process", state="active", seconds=2.0, components=(numbers,)))
        lines = read(endpoint.url)
        labels = '{component="numbers",kind="spout",task="",topology="t"}'
        assert f"multilang_task_emitted_total{labels} 41.0" in lines
        assert f"multilang_task_complete_latency_seconds{labels} 1.5" in lines
        assert 'multilang_run_info{engine="process",state="active",topology="t"} 1.0' in lines
        assert not any("acked" in line for line in lines)
    finally:
        endpoint.close()
    with pytest.raises(OSError, match=r"refused|urlopen"):
        read(endpoint.url)


def read(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
