"""A Prometheus endpoint: an address that figures are read from."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.extras import imported
from multilang.settings import PROMETHEUS_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


REQUIRES = {"prometheus_client": "prometheus-client>=0.20"}


class Endpoint:
    """An endpoint that is served by a thread of its own until ``close``.

    Several tasks of a worker can't share a port: the first free one of the 100 that begin with ``port`` is taken.

    Args:
        collect: Returns the present figures, as prometheus_client's metric families.
        port: The port; 0 for any free one.
        host: The address to listen at.
        setting: The setting that asks for it, for messages.

    Attributes:
        url: The endpoint's address.

    Raises:
        ConfigError: prometheus-client is not installed, or no port is free.
    """

    def __init__(
        self,
        collect: Callable[[], Iterable[Any]],
        port: int,
        host: str,
        setting: str = PROMETHEUS_PORT,
    ) -> None:
        prometheus = imported("prometheus_client", "metrics", setting, package="prometheus-client")
        from threading import Thread

        from multilang.component.prometheus_server import BoundedServer

        registry = prometheus.CollectorRegistry()
        registry.register(_Collector(collect))
        app = prometheus.make_wsgi_app(registry)
        last: OSError | None = None
        for candidate in range(port, min(port + 100, 65536)) if port else (0,):
            try:
                self._server = BoundedServer(candidate, host, app)
            except OSError as error:
                last = error
            else:
                self._thread = Thread(target=self._server.serve_forever, name="prometheus", daemon=True)
                self._thread.start()
                self.url = f"http://{host}:{self._server.server_port}/metrics"
                return
        raise ConfigError(f"no free port for Prometheus metrics from {port} on at {host}: {last}")

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Collector:
    """A custom collector of prometheus_client."""

    def __init__(self, collect: Callable[[], Iterable[Any]]) -> None:
        self.collect = collect
