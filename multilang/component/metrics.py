"""Counters, gauges and timers: summed up in the process and reported at an interval.

Each interval (``multilang.metrics.interval.secs``, default 60) they are reported in three ways: as one structured line
in Storm's log; by the ``metrics`` command, but only the names in ``multilang.metrics.registered``, since Storm halts
the worker for a name that the Java side did not register; and on a Prometheus endpoint, if
``multilang.metrics.prometheus.port`` is set (the extra ``storm-multilang[metrics]``).
"""

from __future__ import annotations

from _thread import allocate_lock
from time import monotonic, perf_counter

from multilang.protocol.codec import dumps, reason_against
from multilang.settings import METRICS_INTERVAL, METRICS_REGISTERED, PROMETHEUS_HOST, PROMETHEUS_PORT, is_number, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeAlias, TypeVar

    from multilang.component.collector import Collector
    from multilang.component.context import Context
    from multilang.component.prometheus import Endpoint

    Metric = TypeVar("Metric", "Counter", "Gauge", "Timer")
    Total: TypeAlias = tuple[str, str, float, int | None]
    """A metric's name, kind, value (a timer's in seconds), and a timer's count."""


class Counter:
    """A number that goes up; the report has the increase in the interval."""

    kind = "counter"

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._since = 0
        self.total = 0

    def inc(self, n: int = 1) -> None:
        """Add ``n``.

        Raises:
            ValueError: It is negative.
        """
        if n < 0:
            raise ValueError(f"a counter only goes up; use a gauge for inc({n!r})")
        with self._lock:
            self._since += n
            self.total += n

    def take(self) -> int | None:
        """Return the increase since the last call; None when there is none."""
        with self._lock:
            since, self._since = self._since, 0
        return since or None


class Gauge:
    """The last value of something."""

    kind = "gauge"

    def __init__(self) -> None:
        self.value: float | None = None

    def set(self, value: float) -> None:
        """Set the current value."""
        self.value = value

    def take(self) -> float | None:
        """Return the value; None before the first."""
        return self.value


class Timer:
    """Durations in seconds; the report has their count, sum, min and max in the interval.

    Use ``with timer:`` or ``timer.record(seconds)``.
    """

    kind = "timer"

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._starts: list[float] = []
        self._reset()
        self.total_count = 0
        self.total_sum = 0.0

    def _reset(self) -> None:
        self._count = 0
        self._sum = 0.0
        self._min = float("inf")
        self._max = 0.0

    def record(self, seconds: float) -> None:
        """Add a duration in seconds."""
        with self._lock:
            self._count += 1
            self._sum += seconds
            self._min = min(self._min, seconds)
            self._max = max(self._max, seconds)
            self.total_count += 1
            self.total_sum += seconds

    def __enter__(self) -> Timer:  # noqa: PYI034 - typing.Self is 3.11
        self._starts.append(perf_counter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.record(perf_counter() - self._starts.pop())

    def take(self) -> dict[str, float] | None:
        """Return the interval's count, sum, min and max; None when nothing was recorded."""
        with self._lock:
            if not self._count:
                return None
            figures = {"count": self._count, "sum": self._sum, "min": self._min, "max": self._max}
            self._reset()
        return figures


def families(tasks: Iterable[tuple[Mapping[str, str], Iterable[Total]]]) -> Iterable[Any]:
    """Return the totals of tasks as prometheus_client's metric families.

    Args:
        tasks: The labels of each task, which all have the same names, and its totals.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

    kinds: dict[str, Any] = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "timer": SummaryMetricFamily}
    found: dict[tuple[str, str], Any] = {}
    for labels, totals in tasks:
        for name, kind, total, count in totals:
            key = "multilang_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
            family = found.get((key, kind))
            if family is None:
                title = f"{key}_seconds" if kind == "timer" else key
                family = found[key, kind] = kinds[kind](title, name, labels=list(labels))
            family.add_metric(list(labels.values()), *((total,) if count is None else (count, total)))
    return found.values()


class MetricsRegistry:
    """A component's metrics by name.

    Attributes:
        due: The instant of the next report, in monotonic seconds.
    """

    def __init__(
        self, collector: Collector, labels: dict[str, str], interval: float, registered: frozenset[str]
    ) -> None:
        self._collector = collector
        self._interval = interval
        self._registered = registered
        self._metrics: dict[str, Counter | Gauge | Timer] = {}
        self._endpoint: Endpoint | None = None
        self.due = monotonic() + interval
        self.labels = labels

    @classmethod
    def for_component(cls, collector: Collector, conf: dict[str, Any], context: Context) -> MetricsRegistry:
        """Make the registry that the conf asks for."""
        registered = value(conf, METRICS_REGISTERED)
        labels = {"component": context.component, "task": str(context.task)}
        registry = cls(collector, labels, float(value(conf, METRICS_INTERVAL)), frozenset(registered))
        port = value(conf, PROMETHEUS_PORT)
        if port is not None:
            from multilang.component.prometheus import Endpoint

            registry._endpoint = Endpoint(registry.families, port, value(conf, PROMETHEUS_HOST))
            collector.log(f"Prometheus metrics on {registry._endpoint.url}")
        return registry

    def counter(self, name: str) -> Counter:
        """Return the counter ``name``; it is created at first use."""
        return self._get(Counter, name)

    def gauge(self, name: str) -> Gauge:
        """Return the gauge ``name``; it is created at first use."""
        return self._get(Gauge, name)

    def timer(self, name: str) -> Timer:
        """Return the timer ``name``; it is created at first use."""
        return self._get(Timer, name)

    def _get(self, kind: type[Metric], name: str) -> Metric:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics.setdefault(name, kind())
        if type(metric) is not kind:
            raise ValueError(f"the metric {name!r} is a {metric.kind}, not a {kind.kind}")
        return metric

    def items(self) -> list[tuple[str, Counter | Gauge | Timer]]:
        """Return all metrics with their names."""
        return list(self._metrics.items())

    def totals(self) -> list[Total]:
        """Return the totals since the task's start; what is no number, such as a gauge without a value, is left out."""
        found: list[Total] = []
        for name, metric in self.items():
            if isinstance(metric, Counter):
                found.append((name, metric.kind, metric.total, None))
            elif isinstance(metric, Timer):
                found.append((name, metric.kind, metric.total_sum, metric.total_count))
            elif metric.value is not None:
                found.append((name, metric.kind, metric.value, None))
        return [each for each in found if is_number(each[2]) and reason_against(each[2]) is None]

    def families(self) -> Iterable[Any]:
        """Return the totals of all metrics, as prometheus_client's metric families."""
        return families([(self.labels, self.totals())])

    def report_if_due(self, now: float) -> None:
        """Report when the interval has passed (``now`` in monotonic seconds)."""
        if now >= self.due:
            self.due = now + self._interval
            self.report()

    def close(self) -> None:
        """Report what is left, and close the endpoint."""
        self.report()
        if self._endpoint is not None:
            self._endpoint.close()

    def report(self) -> None:
        """Report everything since the last report."""
        figures: dict[str, Any] = {}
        for name, metric in self.items():
            value = metric.take()
            reason = reason_against(value)
            if reason is not None:
                self._collector.log(f"the metric {name!r} can't be reported: {reason}", 3)
            elif value is not None:
                figures[name] = value
                if name in self._registered:
                    self._collector.report_metric(name, value)
        if figures:
            self._collector.log("METRICS " + dumps({**self.labels, "metrics": figures}), 2)
