"""A run's status as Prometheus reads it, by its conventions for names and units.

Counts are those of tasks, so that they can be summed; rates are left to Prometheus. An unknown figure is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from multilang.component.metrics import families as own_families
from multilang.component.prometheus import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from multilang.engine.status import ComponentStatus, Figures, RunStatus

# Figure -> what it is. A counter's name ends in _total.
_COUNTERS = {
    "emitted": "Calls of emit",
    "transferred": "Deliveries that calls of emit led to",
    "executed": "Tuples that a bolt processed, ticks included",
    "acked": "Acked inputs of a bolt, or acked tuples of a spout",
    "failed": "Failed inputs of a bolt, or failed tuples of a spout",
    "timed_out": "Failed tuples of a spout that no bolt failed",
    "errors": "Errors that were reported, or that ended a task",
    "restarts": "Restarts of the task",
}
_GAUGES = {
    "pending": "Tuples of a spout that are neither acked nor failed yet",
    "lost": "Message ids of a spout that failed and were not acked since",
    "unfinished": "Inputs of a bolt that are neither acked nor failed yet",
}
_LATENCIES = {
    "execute": "Average time in process() of a bolt",
    "process": "Average time from the delivery of a tuple to its ack",
    "complete": "Average time from the emit of a spout to the ack of the whole tuple tree",
}
_LABELS = ("topology", "component", "kind", "task")


def families(status: RunStatus) -> Iterator[Any]:
    """Yield a status as prometheus_client's metric families."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

    about = {"topology": status.topology, "engine": status.engine, "state": status.state}
    yield InfoMetricFamily("multilang_run", "The run", about)
    of_run = (
        ("run_uptime_seconds", "Time since the start of the run", status.seconds),
        ("run_workers", "Workers of the run", status.workers),
        (
            "run_waiting",
            "What is still to come before the run is drained",
            None if status.waiting_for is None else len(status.waiting_for),
        ),
        ("checkpoint_number", "The last checkpoint that was committed", getattr(status.checkpoint, "number", None)),
        ("checkpoint_age_seconds", "Time since it was committed", getattr(status.checkpoint, "age_secs", None)),
        ("checkpoint_duration_seconds", "The time that it took", getattr(status.checkpoint, "seconds", None)),
    )
    for name, what, value in of_run:
        if value is not None:
            gauge = GaugeMetricFamily(f"multilang_{name}", what, labels=("topology",))
            gauge.add_metric((status.topology,), value)
            yield gauge
    rows = [row for each in status.components for row in _rows(status.topology, each)]
    for name, what, kind, read in _metrics():
        family: Any = (CounterMetricFamily if kind == "counter" else GaugeMetricFamily)(
            f"multilang_task_{name}", what, labels=_LABELS
        )
        for labels, figures in rows:
            value = read(figures)
            if value is not None:
                family.add_metric(labels, value)
        if family.samples:
            yield family
    streams = CounterMetricFamily(
        "multilang_stream_emitted", "Calls of emit on a stream", labels=("topology", "component", "stream")
    )
    for each in status.components:
        for stream in each.streams:
            if stream.emitted is not None:
                streams.add_metric((status.topology, each.id, stream.name), stream.emitted)
    if streams.samples:
        yield streams
    yield from own_families(
        (
            {"topology": status.topology, "component": each.id, "task": str(task.id)},
            [(metric.name, metric.kind, metric.value, metric.count) for metric in task.metrics],
        )
        for each in status.components
        for task in each.by_task
    )


def serve_status(
    source: Callable[[], RunStatus | None], port: int, host: str = "127.0.0.1", setting: str = "serve_status"
) -> Endpoint:
    """Serve a run's status as a Prometheus endpoint, until its ``close``.

    Args:
        source: Returns the status, or None as long as there is none; called in another thread. A topology that runs in
            this process is asked for its status by the thread that waits for it: give what that thread stored.
        port: The port; when it is taken, one of the next 99; 0 for any free one.
        host: The address to listen at.
        setting: The option that asks for it, for messages.

    Raises:
        ConfigError: prometheus-client is not installed, or no port is free.
    """

    def collect() -> Iterator[Any]:
        status = source()
        return iter(()) if status is None else families(status)

    return Endpoint(collect, port, host, setting)


def _rows(topology: str, component: ComponentStatus) -> list[tuple[tuple[str, ...], Figures]]:
    if not component.by_task:
        return [((topology, component.id, component.kind, ""), component)]
    return [
        (
            (
                topology,
                component.id,
                component.kind,
                str(task.id) if task.id == task.through else f"{task.id}-{task.through}",
            ),
            task,
        )
        for task in component.by_task
    ]


def _metrics() -> Iterator[tuple[str, str, str, Callable[[Figures], float | None]]]:
    """Yield for each metric of tasks its name, what it is, its kind, and the function that reads it."""
    for name, what in _COUNTERS.items():
        yield name, what, "counter", _reader(name)
    yield "busy_seconds", "Time in which the task was busy", "counter", _reader("busy_secs")
    for name, what in _GAUGES.items():
        yield name, what, "gauge", _reader(name)
    yield "call_seconds", "Time in a call of user code that takes long", "gauge", _call_secs
    yield "capacity_ratio", "Share of the last seconds in which the task was busy", "gauge", _reader("capacity")
    for share in ("p50", "p99"):
        what = f"Latency below which {share[1:]} % are: a spout's of the tree, a bolt's to its ack"
        yield f"latency_{share}_seconds", what, "gauge", _reader(f"latency_{share}_ms", 1000)
    for name, what in _LATENCIES.items():
        yield f"{name}_latency_seconds", what, "gauge", _reader(f"{name}_latency_ms", 1000)


def _call_secs(figures: Figures) -> float | None:
    call = getattr(figures, "call", None)  # which only a task has
    return None if call is None else call.secs


def _reader(name: str, divisor: float = 1) -> Callable[[Figures], float | None]:
    def read(figures: Figures) -> float | None:
        value = getattr(figures, name)
        return None if value is None else value / divisor

    return read
