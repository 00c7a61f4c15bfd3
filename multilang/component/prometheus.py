"""A task's metrics as a Prometheus endpoint."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.component.metrics import Counter, Gauge, MetricsRegistry, Timer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


REQUIRES = {"prometheus_client": "prometheus-client>=0.20"}


def serve(registry: MetricsRegistry, port: int, host: str) -> None:
    """Serve ``registry`` on ``host``, at ``port`` (0: any free port, which is logged).

    Several tasks of a worker can't share a port: the first free one of the 100 that begin with ``port`` is taken.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise ConfigError(
            "multilang.metrics.prometheus.port needs prometheus-client: pip install 'storm-multilang[metrics]'"
        ) from error
    registrar = CollectorRegistry()
    registrar.register(_Bridge(registry))
    last: OSError | None = None
    for candidate in range(port, min(port + 100, 65536)) if port else (0,):
        try:
            server, _ = start_http_server(candidate, addr=host, registry=registrar)
        except OSError as error:
            last = error
        else:
            registry._collector.log(f"Prometheus metrics on http://{host}:{server.server_port}/metrics")
            return
    raise ConfigError(f"no free port for Prometheus metrics from {port} on at {host}: {last}")


class _Bridge:
    """Shows the registry's totals to prometheus_client, as one of its custom collectors."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

        names = list(self._registry.labels)
        labels = list(self._registry.labels.values())
        for name, metric in self._registry.items():
            key = "multilang_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
            if isinstance(metric, Counter):
                counter = CounterMetricFamily(key, name, labels=names)
                counter.add_metric(labels, metric.total)
                yield counter
            elif isinstance(metric, Gauge) and metric.value is not None:
                gauge = GaugeMetricFamily(key, name, labels=names)
                gauge.add_metric(labels, metric.value)
                yield gauge
            elif isinstance(metric, Timer):
                summary = SummaryMetricFamily(key + "_seconds", name, labels=names)
                summary.add_metric(labels, metric.total_count, metric.total_sum)
                yield summary
