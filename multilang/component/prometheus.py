"""A Prometheus endpoint: an address that figures are read from."""

from __future__ import annotations

from multilang.component.errors import ConfigError
from multilang.helpers.extras import imported
from multilang.settings import PROMETHEUS_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from multilang.listening.http import Request

REQUIRES = {"prometheus_client": "prometheus-client>=0.20"}
TRIES = 100  # ports from the given one on
MAX_CONNECTIONS = 16  # for a new one, the oldest is ended
ANSWER_SECS = 10.0  # from the connection to the last byte of the answer


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
        from multilang.listening.accepting import bind
        from multilang.listening.http import HttpServer

        registry = prometheus.CollectorRegistry()
        registry.register(_Collector(collect))
        self._app = prometheus.make_wsgi_app(registry)
        try:
            listening = bind(host, port, TRIES)
        except OSError as error:
            raise ConfigError(f"no free port for Prometheus metrics from {port} on at {host}: {error}") from None
        self._server = HttpServer(
            listening, self._respond, connections=MAX_CONNECTIONS, secs=ANSWER_SECS, name="prometheus"
        )
        self.url = f"http://{host}:{self._server.port}/metrics"

    def close(self) -> None:
        """Close the endpoint."""
        self._server.close()

    async def _respond(self, request: Request) -> bytes:
        """Ask prometheus_client's application, which reads these of WSGI's entries alone."""
        from http import HTTPStatus

        from multilang.listening.http import answer

        head, started = request.head, []
        environ = {
            "REQUEST_METHOD": head.method,
            "PATH_INFO": head.path,
            "QUERY_STRING": head.query,
            "HTTP_ACCEPT": head.fields.get("accept", ""),
            "HTTP_ACCEPT_ENCODING": head.fields.get("accept-encoding", ""),
        }
        body = b"".join(self._app(environ, lambda *start: started.extend(start)))
        status, fields = started
        return answer(HTTPStatus(int(status[:3])), body, dict(fields))


class _Collector:
    """A custom collector of prometheus_client."""

    def __init__(self, collect: Callable[[], Iterable[Any]]) -> None:
        self.collect = collect
